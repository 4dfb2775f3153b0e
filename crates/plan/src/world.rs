//! Every object known, by kind, namespace and name; possibly of several clusters.

mod collection;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use convoy_api::{CollectionKey, GroupKind, Object, ObjectKey};
use smol_str::SmolStr;

#[cfg(test)]
pub(crate) use self::collection::indexed_label;
use self::collection::{Collection, NamespacedName, Visible};
use crate::memory::Memory;

/// The objects that decisions read. Iteration is in key order, whatever order they arrived in.
///
/// A clone shares its collections with the original until one of the two changes; only the
/// collection that changes is copied then.
#[derive(Clone, Debug, Default)]
pub struct World {
    collections: BTreeMap<CollectionKey, Arc<Collection>>,
    /// Objects that no accessor shows, see [`World::without`]. A collection without any has no
    /// entry, so reading it costs nothing more.
    hidden: BTreeMap<CollectionKey, BTreeSet<NamespacedName>>,
    /// Shared by all clones.
    memory: Arc<Memory>,
}

impl World {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an object in, and gives back the one it replaces.
    pub fn insert(&mut self, object: Object) -> Option<Object> {
        let key = object.key();
        let collection = key.collection();
        self.show(&collection, &(key.namespace.clone(), key.name.clone()));
        Arc::make_mut(self.collections.entry(collection).or_default()).insert(object)
    }

    pub fn remove(&mut self, key: &ObjectKey) -> Option<Object> {
        let collection = key.collection();
        let name = (key.namespace.clone(), key.name.clone());
        self.show(&collection, &name);
        Arc::make_mut(self.collections.get_mut(&collection)?).remove(&name)
    }

    pub fn get(&self, key: &ObjectKey) -> Option<&Object> {
        let collection = self.collection(&key.cluster, &key.kind)?;
        collection.get(&(key.namespace.clone(), key.name.clone()))
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
        self.collection(cluster, kind).into_iter().flat_map(Visible::objects)
    }

    /// The same as a list, which is quicker to make than one that grows.
    pub(crate) fn list<'w>(&'w self, cluster: &str, kind: &GroupKind) -> Vec<&'w Object> {
        self.collection(cluster, kind).map_or_else(Vec::new, Visible::list)
    }

    /// The objects of a kind in one namespace of the home cluster, by name.
    pub fn in_namespace<'w>(
        &'w self,
        kind: &GroupKind,
        namespace: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        self.named(kind, namespace, "")
    }

    /// The objects of a kind in one namespace of the home cluster whose names have a prefix, by
    /// name.
    pub fn named<'w>(
        &'w self,
        kind: &GroupKind,
        namespace: &str,
        prefix: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let collection = self.collection("", kind);
        let from = (SmolStr::new(namespace), SmolStr::new(prefix));
        let start = from.clone();
        let entries = collection.into_iter().flat_map(move |visible| visible.from(start.clone()));
        let is_within =
            move |name: &NamespacedName| name.0 == from.0 && name.1.starts_with(&*from.1);
        entries.take_while(move |(name, _)| is_within(name)).map(|(_, object)| object)
    }

    /// The objects of a kind in one namespace of the home cluster whose controller has this
    /// uid, by name; with an empty one, those that have no controller.
    pub fn controlled<'w>(
        &'w self,
        kind: &GroupKind,
        namespace: &str,
        uid: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let (namespace, uid) = (SmolStr::new(namespace), SmolStr::new(uid));
        let collection = self.collection("", kind).into_iter();
        collection.flat_map(move |visible| visible.controlled(&namespace, &uid))
    }

    /// The objects of a kind in one namespace of the home cluster whose indexed label has this
    /// value, by name: the label that names the placement of a binding or snapshot.
    pub fn labelled<'w>(
        &'w self,
        kind: &GroupKind,
        namespace: &str,
        value: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let (namespace, value) = (SmolStr::new(namespace), SmolStr::new(value));
        let collection = self.collection("", kind).into_iter();
        collection.flat_map(move |visible| visible.identified(&namespace, &value))
    }

    /// The Nodes or NodeClaims of a cluster that stand for the machine with this ID, by name.
    pub(crate) fn of_machine<'w>(
        &'w self,
        cluster: &str,
        kind: &GroupKind,
        provider_id: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let id = SmolStr::new(provider_id);
        let collection = self.collection(cluster, kind).into_iter();
        collection.flat_map(move |visible| visible.identified("", &id))
    }

    /// The objects of a kind in one cluster that are being deleted, by namespace and name.
    pub(crate) fn deleting<'w>(
        &'w self,
        cluster: &str,
        kind: &GroupKind,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        self.collection(cluster, kind).into_iter().flat_map(Visible::deleting)
    }

    /// The kinds of which the home cluster has, or had, objects, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let home = self.collections.keys().filter(|key| key.cluster.is_empty());
        home.map(|key| &key.kind)
    }

    /// Notes that all objects of a collection are known, even if there are none.
    pub fn observe(&mut self, collection: &CollectionKey) {
        if !self.collections.contains_key(collection) {
            self.collections.insert(collection.clone(), Arc::default());
        }
    }

    /// Whether the objects of a kind in the home cluster are known: there are, or were, some, or it
    /// was noted that there are none. If all of them are left out, nobody can tell.
    pub(crate) fn knows(&self, kind: &GroupKind) -> bool {
        self.knows_in("", kind)
    }

    /// The same in one cluster.
    pub(crate) fn knows_in(&self, cluster: &str, kind: &GroupKind) -> bool {
        let is_whole = |visible: Visible<'_>| visible.hidden.is_none_or(BTreeSet::is_empty);
        self.collection(cluster, kind).is_some_and(|visible| visible.len() > 0 || is_whole(visible))
    }

    /// Leaves out a whole collection, of which nothing is known from now on.
    pub fn forget(&mut self, collection: &CollectionKey) {
        self.collections.remove(collection);
        self.hidden.remove(collection);
    }

    /// Every object, in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.visible().flat_map(|(_, visible)| visible.objects())
    }

    /// What decisions have read of the objects.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The objects by kind, cluster by cluster.
    pub fn by_kind(&self) -> impl Iterator<Item = (&GroupKind, impl Iterator<Item = &Object>)> {
        self.visible().map(|(kind, visible)| (kind, visible.objects()))
    }

    pub fn len(&self) -> usize {
        self.visible().map(|(_, visible)| visible.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same world with some objects left out. Nothing is copied: the result shares its
    /// objects with `self` and skips the ones left out.
    #[must_use]
    pub fn without(&self, keys: &BTreeSet<ObjectKey>) -> Cow<'_, Self> {
        if keys.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut rest = self.clone();
        for key in keys.iter().filter(|key| self.get(key).is_some()) {
            let hidden = rest.hidden.entry(key.collection()).or_default();
            hidden.insert((key.namespace.clone(), key.name.clone()));
        }
        Cow::Owned(rest)
    }

    fn collection(&self, cluster: &str, kind: &GroupKind) -> Option<Visible<'_>> {
        let key = kind.in_cluster(cluster);
        let collection = self.collections.get(&key)?;
        let hidden = if self.hidden.is_empty() { None } else { self.hidden.get(&key) };
        Some(Visible { collection, hidden })
    }

    fn visible(&self) -> impl Iterator<Item = (&GroupKind, Visible<'_>)> {
        self.collections.iter().map(|(key, collection)| {
            let hidden = if self.hidden.is_empty() { None } else { self.hidden.get(key) };
            (&key.kind, Visible { collection, hidden })
        })
    }

    /// An object that is written to is no longer hidden.
    fn show(&mut self, collection: &CollectionKey, name: &NamespacedName) {
        if let Some(hidden) = self.hidden.get_mut(collection) {
            hidden.remove(name);
        }
    }
}

impl FromIterator<Object> for World {
    fn from_iter<I: IntoIterator<Item = Object>>(objects: I) -> Self {
        let mut lists: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut objects = objects.into_iter().peekable();
        while let Some(first) = objects.next() {
            // They mostly come kind by kind, so that the list is looked up once for many.
            let key = first.key();
            let collection = key.collection();
            let rest = objects.size_hint().0;
            let list =
                lists.entry(collection.clone()).or_insert_with(|| Vec::with_capacity(rest + 1));
            list.push(named(first));
            let fits = |next: &Object| {
                next.key().cluster == collection.cluster && *next.kind() == collection.kind
            };
            while let Some(next) = objects.next_if(|next| fits(next)) {
                list.push(named(next));
            }
        }
        let collections =
            lists.into_iter().map(|(key, list)| (key, Arc::new(list.into_iter().collect())));
        Self { collections: collections.collect(), ..Self::default() }
    }
}

fn named(object: Object) -> (NamespacedName, Object) {
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
    fn objects_that_are_being_deleted_are_found() {
        let going = |name: &str| {
            let mut raw = pod("a", name).raw().clone();
            raw["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod("a", name).with_raw(raw)
        };
        let mut world: World = [going("1"), pod("a", "2"), going("3")].into_iter().collect();
        let names = |world: &World| -> Vec<String> {
            world.deleting("", &POD).map(|object| object.name().to_string()).collect()
        };
        assert_eq!(names(&world), ["1", "3"]);
        world.insert(going("2"));
        world.insert(pod("a", "1"));
        world.remove(&POD.key("a", "3"));
        assert_eq!(names(&world), ["2"]);
        let hidden = world.without(&[POD.key("a", "2")].into_iter().collect()).into_owned();
        assert_eq!(names(&hidden), [""; 0]);
    }

    #[test]
    fn bindings_are_found_by_their_placement() {
        let kind = GroupKind::new("placement.kubernetes-fleet.io", "ResourceBinding");
        let binding = |namespace: &str, name: &str, parent: &str| {
            let labels = json!({"kubernetes-fleet.io/parent-CRP": parent});
            let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
            let object = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
                "kind": "ResourceBinding", "metadata": metadata});
            Object::from_value(object).unwrap()
        };
        let objects = [
            binding("a", "2", "web"),
            binding("a", "1", "web"),
            binding("b", "3", "web"),
            binding("a", "4", "web-2"),
        ];
        let mut world: World = objects.clone().into_iter().collect();
        let mut grown = World::new();
        for object in objects {
            grown.insert(object);
        }
        let names = |world: &World, parent: &str| -> Vec<String> {
            let found = world.labelled(&kind, "a", parent);
            found.map(|object| object.name().to_string()).collect()
        };
        for world in [&world, &grown] {
            assert_eq!(names(world, "web"), ["1", "2"]);
            assert_eq!(names(world, "we"), [""; 0]);
        }
        world.insert(binding("a", "1", "web-2"));
        world.remove(&kind.key("a", "2"));
        assert_eq!((names(&world, "web").len(), names(&world, "web-2").len()), (0, 2));
        let hidden = world.without(&[kind.key("a", "4")].into_iter().collect()).into_owned();
        assert_eq!(names(&hidden, "web-2"), ["1"]);
    }

    #[test]
    fn objects_that_are_left_out_are_in_no_listing() {
        let controlled = |name: &str| {
            let mut raw = pod("a", name).raw().clone();
            raw["metadata"]["ownerReferences"] = json!([{"uid": "x", "controller": true}]);
            pod("a", name).with_raw(raw)
        };
        let world: World = [controlled("1"), controlled("2"), pod("b", "3")].into_iter().collect();
        let keys = [POD.key("a", "2"), POD.key("a", "absent")].into_iter().collect();
        let rest = world.without(&keys);
        assert!(Arc::ptr_eq(
            world.collections.values().next().unwrap(),
            rest.collections.values().next().unwrap()
        ));
        let names = |objects: Vec<&Object>| -> Vec<String> {
            objects.iter().map(|object| object.name().to_string()).collect()
        };
        assert_eq!(names(rest.of(&POD).collect()), ["1", "3"]);
        assert_eq!(names(rest.iter().collect()), ["1", "3"]);
        assert_eq!(names(rest.in_namespace(&POD, "a").collect()), ["1"]);
        assert_eq!(names(rest.controlled(&POD, "a", "x").collect()), ["1"]);
        assert_eq!(names(rest.by_kind().flat_map(|(_, objects)| objects).collect()), ["1", "3"]);
        assert_eq!((rest.len(), rest.find(&POD, "a", "2")), (2, None));
        let mut rest = rest.into_owned();
        rest.insert(pod("a", "2"));
        assert_eq!((rest.len(), world.len()), (3, 3), "a write shows it again");
    }

    #[test]
    fn clusters_are_kept_apart() {
        let world: World =
            [pod("a", "1"), pod("a", "1").in_cluster("member-1")].into_iter().collect();
        assert_eq!(world.len(), 2);
        assert_eq!(world.of_cluster("member-1", &POD).count(), 1);
    }
}
