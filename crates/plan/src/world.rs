//! Every object known, by kind, namespace and name; possibly of several clusters.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{GroupKind, Object, ObjectKey};
use smol_str::SmolStr;

/// A cache of objects. Iteration is in key order, whatever order they arrived in.
#[derive(Clone, Debug, Default)]
pub struct World {
    shelves: BTreeMap<(SmolStr, GroupKind), BTreeMap<(SmolStr, SmolStr), Object>>,
}

impl World {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an object in, and gives back the one that stood there.
    pub fn insert(&mut self, object: Object) -> Option<Object> {
        let key = object.key();
        let shelf = (key.cluster.clone(), key.kind.clone());
        let place = (key.namespace.clone(), key.name.clone());
        self.shelves.entry(shelf).or_default().insert(place, object)
    }

    pub fn remove(&mut self, key: &ObjectKey) -> Option<Object> {
        let shelf = self.shelves.get_mut(&(key.cluster.clone(), key.kind.clone()))?;
        shelf.remove(&(key.namespace.clone(), key.name.clone()))
    }

    pub fn get(&self, key: &ObjectKey) -> Option<&Object> {
        let shelf = self.shelves.get(&(key.cluster.clone(), key.kind.clone()))?;
        shelf.get(&(key.namespace.clone(), key.name.clone()))
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
        shelf.into_iter().flat_map(BTreeMap::values)
    }

    /// The objects of a kind in one namespace of the home cluster, by name.
    pub fn in_namespace<'w>(
        &'w self,
        kind: &GroupKind,
        namespace: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let shelf = self.shelves.get(&(SmolStr::default(), kind.clone()));
        let namespace = SmolStr::new(namespace);
        let from = (namespace.clone(), SmolStr::default());
        let entries = shelf.into_iter().flat_map(move |shelf| shelf.range(from.clone()..));
        entries.take_while(move |((place, _), _)| *place == namespace).map(|(_, object)| object)
    }

    /// The kinds of which the home cluster has, or had, objects, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let home = self.shelves.keys().filter(|(cluster, _)| cluster.is_empty());
        home.map(|(_, kind)| kind)
    }

    /// Every object, in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.shelves.values().flat_map(BTreeMap::values)
    }

    /// The objects by kind, cluster by cluster.
    pub fn by_kind(&self) -> impl Iterator<Item = (&GroupKind, impl Iterator<Item = &Object>)> {
        self.shelves.iter().map(|((_, kind), shelf)| (kind, shelf.values()))
    }

    pub fn len(&self) -> usize {
        self.shelves.values().map(BTreeMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.shelves.values().all(BTreeMap::is_empty)
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

/// An object beside its place on the shelf of its kind.
fn placed(object: Object) -> ((SmolStr, SmolStr), Object) {
    ((object.namespace().clone(), object.name().clone()), object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: GroupKind = GroupKind::new("", "Pod");

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
    fn clusters_are_kept_apart() {
        let world: World =
            [pod("a", "1"), pod("a", "1").in_cluster("member-1")].into_iter().collect();
        assert_eq!(world.len(), 2);
        assert_eq!(world.of_cluster("member-1", &POD).count(), 1);
    }
}
