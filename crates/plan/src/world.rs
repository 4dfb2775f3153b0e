//! Every object known, by kind, namespace and name; possibly of several clusters.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{GroupKind, Object, ObjectKey};
use smol_str::SmolStr;

/// A cache of objects. Iteration is in key order, whatever order they arrived in.
#[derive(Clone, Debug, Default)]
pub struct World {
    shelves: BTreeMap<(SmolStr, GroupKind), Shelf>,
}

/// Namespace and name.
type Place = (SmolStr, SmolStr);

/// The objects of one kind in one cluster.
#[derive(Clone, Debug, Default)]
struct Shelf {
    objects: BTreeMap<Place, Object>,
    /// Where those in namespaces stand, by the uid of their controller, empty where they have
    /// none: a namespace may have thousands of pods, of which a set has three. One set for all:
    /// one for each of thousands of controllers would mostly be room for more.
    controlled: BTreeSet<(SmolStr, Place)>,
}

impl Shelf {
    fn insert(&mut self, object: Object) -> Option<Object> {
        let place = (object.namespace().clone(), object.name().clone());
        let controller = controller(&object);
        let before = self.objects.insert(place.clone(), object);
        let known = before.as_ref().and_then(self::controller);
        if known != controller {
            self.forget(known, &place);
            if let Some(uid) = controller {
                note(&mut self.controlled, uid, place);
            }
        }
        before
    }

    fn remove(&mut self, place: &Place) -> Option<Object> {
        let removed = self.objects.remove(place)?;
        self.forget(controller(&removed), place);
        Some(removed)
    }

    fn forget(&mut self, controller: Option<SmolStr>, place: &Place) {
        if let Some(uid) = controller {
            self.controlled.remove(&(uid, place.clone()));
        }
    }
}

/// The uid by which an object is found: none of one that is in no namespace.
fn controller(object: &Object) -> Option<SmolStr> {
    let uid = || object.controller().map_or_else(SmolStr::default, |owner| SmolStr::new(owner.uid));
    (!object.namespace().is_empty()).then(uid)
}

/// Notes where one stands whose controller has this uid; those of one controller share the text.
fn note(controlled: &mut BTreeSet<(SmolStr, Place)>, uid: SmolStr, place: Place) {
    let from = (uid, Place::default());
    let next = controlled.range(&from..).next();
    let known = next.filter(|(known, _)| *known == from.0).map(|(known, _)| known.clone());
    controlled.insert((known.unwrap_or(from.0), place));
}

impl World {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an object in, and gives back the one that stood there.
    pub fn insert(&mut self, object: Object) -> Option<Object> {
        let key = object.key();
        let shelf = (key.cluster.clone(), key.kind.clone());
        self.shelves.entry(shelf).or_default().insert(object)
    }

    pub fn remove(&mut self, key: &ObjectKey) -> Option<Object> {
        let shelf = self.shelves.get_mut(&(key.cluster.clone(), key.kind.clone()))?;
        shelf.remove(&(key.namespace.clone(), key.name.clone()))
    }

    pub fn get(&self, key: &ObjectKey) -> Option<&Object> {
        let shelf = self.shelves.get(&(key.cluster.clone(), key.kind.clone()))?;
        shelf.objects.get(&(key.namespace.clone(), key.name.clone()))
    }

    /// Packs an object away until it is looked at again.
    pub fn pack(&mut self, key: &ObjectKey) {
        let shelf = self.shelves.get_mut(&(key.cluster.clone(), key.kind.clone()));
        let place = (key.namespace.clone(), key.name.clone());
        if let Some(object) = shelf.and_then(|shelf| shelf.objects.get_mut(&place)) {
            object.pack();
        }
    }

    /// The object of a kind in the home cluster; `namespace` is empty for cluster scope.
    pub fn find(&self, kind: &GroupKind, namespace: &str, name: &str) -> Option<&Object> {
        self.get(&kind.key(namespace, name))
    }

    /// All objects of a kind in the home cluster, by namespace and name.
    pub fn of<'w>(&'w self, kind: &GroupKind) -> impl Iterator<Item = &'w Object> + use<'w> {
        self.of_cluster("", kind)
    }

    /// All objects of a kind in one cluster, by namespace and name.
    pub fn of_cluster<'w>(
        &'w self,
        cluster: &str,
        kind: &GroupKind,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let shelf = self.shelves.get(&(SmolStr::new(cluster), kind.clone()));
        shelf.into_iter().flat_map(|shelf| shelf.objects.values())
    }

    /// The objects of a kind in one namespace of the home cluster, by name.
    pub fn in_namespace<'w>(
        &'w self,
        kind: &GroupKind,
        namespace: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        self.named(kind, namespace, "")
    }

    /// The objects of a kind in one namespace of the home cluster whose names begin like this,
    /// by name.
    pub fn named<'w>(
        &'w self,
        kind: &GroupKind,
        namespace: &str,
        prefix: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let shelf = self.shelves.get(&(SmolStr::default(), kind.clone()));
        let from = (SmolStr::new(namespace), SmolStr::new(prefix));
        let start = from.clone();
        let entries = shelf.into_iter().flat_map(move |shelf| shelf.objects.range(start.clone()..));
        let is_within = move |place: &Place| place.0 == from.0 && place.1.starts_with(&*from.1);
        entries.take_while(move |(place, _)| is_within(place)).map(|(_, object)| object)
    }

    /// The objects of a kind in one namespace of the home cluster whose controller has this
    /// uid, by name; with an empty one, those that have no controller.
    pub fn controlled<'w>(
        &'w self,
        kind: &GroupKind,
        namespace: &str,
        uid: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let shelf = self.shelves.get(&(SmolStr::default(), kind.clone()));
        let from = (SmolStr::new(uid), (SmolStr::new(namespace), SmolStr::default()));
        shelf.into_iter().flat_map(move |shelf| {
            let (uid, (namespace, _)) = from.clone();
            let near = shelf.controlled.range(&from..);
            let near = near.take_while(move |(of, place)| *of == uid && place.0 == namespace);
            near.filter_map(|(_, place)| shelf.objects.get(place))
        })
    }

    /// The kinds of which the home cluster has, or had, objects, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let home = self.shelves.keys().filter(|(cluster, _)| cluster.is_empty());
        home.map(|(_, kind)| kind)
    }

    /// Every object, in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.shelves.values().flat_map(|shelf| shelf.objects.values())
    }

    /// The objects by kind, cluster by cluster.
    pub fn by_kind(&self) -> impl Iterator<Item = (&GroupKind, impl Iterator<Item = &Object>)> {
        self.shelves.iter().map(|((_, kind), shelf)| (kind, shelf.objects.values()))
    }

    pub fn len(&self) -> usize {
        self.shelves.values().map(|shelf| shelf.objects.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.shelves.values().all(|shelf| shelf.objects.is_empty())
    }

    /// The same world with some objects left out.
    #[must_use]
    pub fn without(&self, keys: &BTreeSet<ObjectKey>) -> std::borrow::Cow<'_, Self> {
        if keys.is_empty() {
            return std::borrow::Cow::Borrowed(self);
        }
        let mut rest = self.clone();
        for key in keys {
            rest.remove(key);
        }
        std::borrow::Cow::Owned(rest)
    }
}

impl FromIterator<Object> for World {
    fn from_iter<I: IntoIterator<Item = Object>>(objects: I) -> Self {
        let mut shelves: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut objects = objects.into_iter().peekable();
        while let Some(first) = objects.next() {
            // They mostly come kind by kind, so that the shelf is looked up once for many.
            let key = first.key();
            let shelf = (key.cluster.clone(), key.kind.clone());
            let rest = objects.size_hint().0;
            let list = shelves.entry(shelf.clone()).or_insert_with(|| Vec::with_capacity(rest + 1));
            list.push(placed(first));
            let fits = |next: &Object| next.key().cluster == shelf.0 && *next.kind() == shelf.1;
            while let Some(next) = objects.next_if(|next| fits(next)) {
                list.push(placed(next));
            }
        }
        let shelves = shelves.into_iter().map(|(shelf, list)| (shelf, list.into_iter().collect()));
        Self { shelves: shelves.collect() }
    }
}

impl FromIterator<(Place, Object)> for Shelf {
    fn from_iter<I: IntoIterator<Item = (Place, Object)>>(objects: I) -> Self {
        let objects: BTreeMap<Place, Object> = objects.into_iter().collect();
        let mut controlled = BTreeSet::new();
        for (place, object) in &objects {
            if let Some(uid) = controller(object) {
                note(&mut controlled, uid, place.clone());
            }
        }
        Self { objects, controlled }
    }
}

/// An object beside its place on the shelf of its kind.
fn placed(object: Object) -> (Place, Object) {
    ((object.namespace().clone(), object.name().clone()), object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use convoy_api::kinds::POD;

    fn pod(namespace: &str, name: &str) -> Object {
        Object::from_value(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name}}))
        .unwrap()
    }

    #[test]
    fn objects_are_listed_by_namespace_and_name() {
        let world: World =
            [pod("b", "1"), pod("a", "2"), pod("a", "1"), pod("ab", "0")].into_iter().collect();
        let names = |objects: Vec<&Object>| -> Vec<String> {
            objects
                .iter()
                .map(|object| format!("{}/{}", object.namespace(), object.name()))
                .collect()
        };
        assert_eq!(names(world.of(&POD).collect()), ["a/1", "a/2", "ab/0", "b/1"]);
        assert_eq!(names(world.in_namespace(&POD, "a").collect()), ["a/1", "a/2"]);
    }

    #[test]
    fn the_last_of_several_versions_stays() {
        let version = |generation: i64| {
            let mut raw = pod("a", "1").raw().clone();
            raw["metadata"]["generation"] = json!(generation);
            pod("a", "1").with_raw(raw)
        };
        let world: World =
            [version(1), pod("b", "1"), version(3), version(2)].into_iter().collect();
        assert_eq!(world.len(), 2);
        assert_eq!(world.find(&POD, "a", "1").unwrap().generation(), 2);
    }

    #[test]
    fn objects_are_found_by_their_controller() {
        let owned = |name: &str, uid: &str| {
            let owners = json!([{"uid": uid, "controller": true}]);
            let mut raw = pod("a", name).raw().clone();
            raw["metadata"]["ownerReferences"] = owners;
            pod("a", name).with_raw(raw)
        };
        let objects = [owned("2", "x"), pod("a", "3"), owned("1", "x"), pod("b", "4")];
        let mut world: World = objects.clone().into_iter().collect();
        let mut grown = World::new();
        for object in objects {
            grown.insert(object);
        }
        let names = |world: &World, uid: &str| -> Vec<String> {
            world.controlled(&POD, "a", uid).map(|object| object.name().to_string()).collect()
        };
        for world in [&world, &grown] {
            assert_eq!(
                (names(world, "x"), names(world, "")),
                (vec!["1".into(), "2".into()], vec!["3".into()])
            );
        }
        world.insert(owned("3", "x"));
        world.insert(pod("a", "1"));
        world.remove(&POD.key("a", "2"));
        assert_eq!((names(&world, "x"), names(&world, "")), (vec!["3".into()], vec!["1".into()]));
    }

    #[test]
    fn clusters_are_kept_apart() {
        let world: World =
            [pod("a", "1"), pod("a", "1").in_cluster("member-1")].into_iter().collect();
        assert_eq!(world.len(), 2);
        assert_eq!(world.of_cluster("member-1", &POD).count(), 1);
    }
}
