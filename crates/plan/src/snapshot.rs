//! What one decision looks at: the rollout object and the objects it concerns.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_api::{GroupKind, Object, ObjectKey};

use crate::memory::{Memory, Reading};
use crate::world::World;

/// One rollout and its surroundings, borrowed from a [`World`](crate::World).
#[derive(Clone, Debug)]
pub struct Snapshot<'w> {
    rollout: &'w Object,
    objects: BTreeMap<&'w GroupKind, Vec<&'w Object>>,
    memory: Option<&'w Memory>,
    /// Where the objects are from.
    world: Option<&'w World>,
}

impl<'w> Snapshot<'w> {
    /// `objects` may come in any order; they are kept by kind, then in key order.
    pub fn new(rollout: &'w Object, objects: impl IntoIterator<Item = &'w Object>) -> Self {
        let mut shelves: BTreeMap<&'w GroupKind, Vec<&'w Object>> = BTreeMap::new();
        let mut objects = objects.into_iter().peekable();
        while let Some(first) = objects.next() {
            // They mostly come kind by kind, so that the shelf is looked up once for many.
            let shelf = shelves.entry(first.kind()).or_default();
            shelf.push(first);
            while let Some(next) = objects.next_if(|next| next.kind() == first.kind()) {
                shelf.push(next);
            }
        }
        for shelf in shelves.values_mut() {
            let ordered = shelf.is_sorted_by(|a, b| place(a) < place(b));
            if !ordered {
                shelf.sort_by(|a, b| place(a).cmp(&place(b)));
                shelf.dedup_by(|a, b| a.key() == b.key());
            }
        }
        Self { rollout, objects: shelves, memory: None, world: None }
    }

    /// All objects of these kinds in the cluster of `rollout`, which a world has in order.
    pub(crate) fn of_kinds(
        rollout: &'w Object,
        world: &'w World,
        kinds: impl IntoIterator<Item = &'w GroupKind>,
    ) -> Self {
        let cluster = &rollout.key().cluster;
        let shelf = |kind| (kind, world.list(cluster, kind));
        let objects = kinds.into_iter().map(shelf).collect();
        Self { rollout, objects, memory: None, world: None }
    }

    /// The same, with what earlier decisions in the same world have read.
    #[must_use]
    pub(crate) fn remembering(mut self, memory: &'w Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The same, with the knowledge of which kinds there are no objects of.
    #[must_use]
    pub(crate) fn within(mut self, world: &'w World) -> Self {
        self.world = Some(world);
        self
    }

    /// Whether objects of a kind would be here, were there any.
    pub(crate) fn knows(&self, kind: &GroupKind) -> bool {
        !self.of(kind).is_empty() || self.world.is_some_and(|world| world.knows(kind))
    }

    /// Whether objects of a kind in a member cluster are known, if there are none here. A snapshot
    /// that is not of a world says yes: nobody can tell.
    pub(crate) fn knows_in(&self, cluster: &str, kind: &GroupKind) -> bool {
        self.world.is_none_or(|world| world.knows_in(cluster, kind))
    }

    /// What `read` makes of each object of a kind, in the order of [`Snapshot::of`].
    pub(crate) fn readings<T: Clone + Send + Sync + 'static>(
        &self,
        kind: &GroupKind,
        read: impl Fn(&Object) -> T + Sync,
    ) -> Arc<Vec<Reading<T>>> {
        let (cluster, objects) = (&self.rollout.key().cluster, self.of(kind));
        match self.memory {
            Some(memory) => memory.read(cluster, objects, read),
            None => Memory::default().read(cluster, objects, read),
        }
    }

    pub fn rollout(&self) -> &'w Object {
        self.rollout
    }

    /// The objects of a kind, by cluster, namespace and name.
    pub fn of(&self, kind: &GroupKind) -> &[&'w Object] {
        self.objects.get(kind).map_or(&[], Vec::as_slice)
    }

    /// One object of the rollout's own cluster; `namespace` is empty for cluster scope.
    pub fn find(&self, kind: &GroupKind, namespace: &str, name: &str) -> Option<&'w Object> {
        self.get(&self.rollout.key().sibling(kind, namespace, name))
    }

    pub fn get(&self, key: &ObjectKey) -> Option<&'w Object> {
        let shelf = self.objects.get(&key.kind)?;
        let at = shelf.binary_search_by(|object| object.key().cmp(key)).ok()?;
        Some(shelf[at])
    }

    /// Every object, by kind and key; the rollout object is not repeated here.
    pub fn iter(&self) -> impl Iterator<Item = &'w Object> {
        self.objects.values().flatten().copied()
    }
}

/// Where an object stands among those of its kind.
fn place(object: &Object) -> [&str; 3] {
    let key = object.key();
    [key.cluster.as_str(), key.namespace.as_str(), key.name.as_str()]
}
