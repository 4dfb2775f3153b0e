//! Projections: the fields of an object that the watch cache keeps. For kinds with many objects
//! these are the metadata and the few fields that dialects name. `managedFields` is never kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use convoy_api::{CollectionKey, GroupKind, Object};
use convoy_plan::{Dialect, Keep, Watch};
use serde_json::{Map, Value};
use smol_str::SmolStr;

/// The fields kept of the objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    Whole,
    /// Metadata, and these dotted paths.
    Fields(BTreeSet<&'static str>),
}

/// The projection of every collection that is watched. Watches begin and end while writes are in
/// flight whose responses are read by the same projections, so all of them share one table.
#[derive(Debug, Default)]
pub struct Projections {
    collections: RwLock<BTreeMap<CollectionKey, Arc<Projection>>>,
}

impl Projections {
    /// The union of what `dialects` need of the home cluster.
    pub fn of(dialects: &[&'static dyn Dialect]) -> Self {
        let projections = Self::default();
        for (kind, projection) in united(dialects.iter().flat_map(|dialect| dialect.watches())) {
            projections.set(kind.in_cluster(""), projection);
        }
        projections
    }

    pub(crate) fn set(&self, collection: CollectionKey, projection: Projection) {
        let mut collections = self.collections.write().unwrap_or_else(PoisonError::into_inner);
        collections.insert(collection, Arc::new(projection));
    }

    pub(crate) fn remove(&self, collection: &CollectionKey) {
        self.collections.write().unwrap_or_else(PoisonError::into_inner).remove(collection);
    }

    /// The projection of an object in `cluster`; `None` if its kind is not watched there or it is
    /// not an object.
    pub fn read(&self, cluster: &str, raw: Cow<'_, Value>) -> Option<Object> {
        let word = |field: &str| raw.get(field).and_then(Value::as_str);
        let group = word("apiVersion")?.rsplit_once('/').map_or("", |(group, _)| group);
        let kind = GroupKind { group: SmolStr::new(group), kind: SmolStr::new(word("kind")?) };
        let projection = {
            let collections = self.collections.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(collections.get(&kind.in_cluster(cluster))?)
        };
        let object = Object::from_value(projection.project(raw)).ok()?;
        Some(if cluster.is_empty() { object } else { object.in_cluster(cluster) })
    }
}

/// What several watches need of each kind together.
pub(crate) fn united<'w>(
    watches: impl IntoIterator<Item = &'w Watch>,
) -> BTreeMap<GroupKind, Projection> {
    let mut kinds: BTreeMap<GroupKind, Projection> = BTreeMap::new();
    for watch in watches {
        let empty = Projection::Fields(BTreeSet::new());
        kinds.entry(watch.kind.clone()).or_insert(empty).widen(watch.keep);
    }
    kinds
}

impl Projection {
    fn widen(&mut self, keep: Keep) {
        match (&mut *self, keep) {
            (Self::Whole, _) => {}
            (Self::Fields(_), Keep::Whole) => *self = Self::Whole,
            (Self::Fields(paths), Keep::Fields(more)) => paths.extend(more),
        }
    }

    pub fn project(&self, raw: Cow<'_, Value>) -> Value {
        let mut kept = match self {
            Self::Whole => raw.into_owned(),
            Self::Fields(paths) => pick(raw, paths),
        };
        if let Some(Value::Object(metadata)) = kept.get_mut("metadata") {
            metadata.shift_remove("managedFields");
        }
        kept
    }
}

fn pick(mut raw: Cow<'_, Value>, paths: &BTreeSet<&'static str>) -> Value {
    let mut kept = Map::new();
    for always in ["apiVersion", "kind", "metadata"] {
        if let Some(value) = take(&mut raw, &[always]) {
            kept.insert(always.to_owned(), value);
        }
    }
    // A path sorts before the paths below it, which are then already taken.
    for path in paths {
        let steps: Vec<&str> = path.split('.').collect();
        if let Some(value) = take(&mut raw, &steps) {
            put(&mut kept, &steps, value);
        }
    }
    Value::Object(kept)
}

/// The value at the end of a path: moved out of an owned object, copied from a borrowed one.
fn take(raw: &mut Cow<'_, Value>, steps: &[&str]) -> Option<Value> {
    match raw {
        Cow::Borrowed(raw) => steps.iter().try_fold(*raw, |value, step| value.get(step)).cloned(),
        Cow::Owned(raw) => {
            let found = steps.iter().try_fold(raw, |value, step| value.get_mut(step))?;
            Some(found.take())
        }
    }
}

/// Puts `value` at the end of a path, creating the objects on the way.
fn put(object: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => _ = object.insert((*last).to_owned(), value),
        [first, rest @ ..] => {
            let inner = object.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::POD;
    use convoy_plan::dialect::apps::Deployments;
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "resourceVersion": "7", "managedFields": [{}]},
            "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1"}})
    }

    #[test]
    fn fields_that_are_named_are_kept_and_others_not() {
        let paths = ["spec.nodeName", "status.phase", "status.conditions"].into_iter().collect();
        let kept = Projection::Fields(paths).project(Cow::Owned(pod()));
        let metadata = json!({"name": "a", "resourceVersion": "7"});
        assert_eq!(
            kept,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})
        );
        assert_eq!(
            Projection::Fields(BTreeSet::new()).project(Cow::Owned(kept))["metadata"],
            metadata
        );
    }

    #[test]
    fn whole_objects_lose_only_managed_fields() {
        let mut whole = pod();
        let kept = Projection::Whole.project(Cow::Borrowed(&whole));
        whole["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
        assert_eq!(kept, whole);
    }

    #[test]
    fn the_fields_of_several_dialects_are_united() {
        let mut projection = Projection::Fields(BTreeSet::new());
        projection.widen(Keep::Fields(&["spec.nodeName"]));
        projection.widen(Keep::Fields(&["spec", "status.phase"]));
        let kept = projection.project(Cow::Owned(pod()));
        assert_eq!(kept["spec"], pod()["spec"]);
        projection.widen(Keep::Whole);
        projection.widen(Keep::Fields(&["spec"]));
        assert_eq!(projection, Projection::Whole);
    }

    #[test]
    fn kinds_that_are_not_watched_are_not_read() {
        let projections = Projections::of(&[&Deployments]);
        assert!(projections.read("", Cow::Owned(pod())).is_some());
        assert!(projections.read("member", Cow::Owned(pod())).is_none());
        projections.set(POD.in_cluster("member"), Projection::Whole);
        let member = projections.read("member", Cow::Owned(pod())).unwrap();
        assert_eq!(member.key().cluster, "member");
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
        assert!(projections.read("", Cow::Owned(node)).is_none());
    }
}
