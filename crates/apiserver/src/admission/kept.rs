//! The webhooks of one logical cluster, compiled once per state of their configurations.

use std::sync::Arc;

use convoy_store::Shelf;
use parking_lot::RwLock;

use super::hook::Hook;
use crate::encoding;
use crate::head::{Entry, Snapshot, Store, shelf_name};

/// Every look sees the configurations of all writes that were acknowledged before it; one at
/// unchanged configurations compares pointers.
#[derive(Debug)]
pub(crate) struct Webhooks {
    mutating: Kept,
    validating: Kept,
}

#[derive(Debug)]
struct Kept {
    shelf: Shelf,
    compiled: RwLock<Compiled>,
}

#[derive(Debug, Default)]
struct Compiled {
    /// The configurations, by name.
    from: Vec<Arc<Entry>>,
    /// Their webhooks, in the same order.
    hooks: Arc<[Hook]>,
}

impl Webhooks {
    pub(crate) fn new(cluster: &str) -> Self {
        let kept = |plural: &str| {
            let shelf = Shelf::new(cluster, &shelf_name("admissionregistration.k8s.io", plural));
            Kept { shelf, compiled: RwLock::default() }
        };
        Self {
            mutating: kept("mutatingwebhookconfigurations"),
            validating: kept("validatingwebhookconfigurations"),
        }
    }

    pub(super) fn mutating(&self, store: &Store) -> Arc<[Hook]> {
        self.mutating.of(&store.snapshot())
    }

    pub(super) fn validating(&self, store: &Store) -> Arc<[Hook]> {
        self.validating.of(&store.snapshot())
    }
}

impl Kept {
    fn of(&self, snapshot: &Snapshot) -> Arc<[Hook]> {
        let known = self.compiled.read();
        if known.is_of(snapshot.list(&self.shelf)) {
            return Arc::clone(&known.hooks);
        }
        drop(known);
        // Made without the lock: two who look at once both work, and nobody else waits.
        let fresh = Compiled::new(snapshot.list(&self.shelf));
        let hooks = Arc::clone(&fresh.hooks);
        *self.compiled.write() = fresh;
        hooks
    }
}

impl Compiled {
    fn new<'s>(entries: impl Iterator<Item = &'s Arc<Entry>>) -> Self {
        let from: Vec<Arc<Entry>> = entries.cloned().collect();
        let hooks = from.iter().flat_map(|entry| Hook::of(&encoding::read_entry(entry))).collect();
        Self { from, hooks }
    }

    fn is_of<'s>(&self, entries: impl Iterator<Item = &'s Arc<Entry>>) -> bool {
        let mut known = self.from.iter();
        for entry in entries {
            if !known.next().is_some_and(|one| Arc::ptr_eq(one, entry)) {
                return false;
            }
        }
        known.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::TestServer;

    #[test]
    fn webhooks_are_compiled_again_when_a_configuration_changes_and_only_then() {
        let test = TestServer::new();
        let cluster = test.server.cluster("").unwrap();
        let look = || cluster.webhooks.validating(&test.server.store);
        assert!(look().is_empty());
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let hook = |policy: &str| {
            json!({"name": "a.example.com", "sideEffects": "None", "failurePolicy": policy,
                "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1"}})
        };
        let wanted = json!({"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "a"},
            "kind": "ValidatingWebhookConfiguration", "webhooks": [hook("Fail")]});
        test.create(path, &wanted);
        let first = look();
        assert!(Arc::ptr_eq(&first, &look()));
        let change = json!({"webhooks": [hook("Ignore")]});
        assert_eq!(test.call("PATCH", &format!("{path}/a"), &change).0, 200);
        let second = look();
        assert!(!first[0].ignores_failure && second[0].ignores_failure);
        assert_eq!(test.call("DELETE", &format!("{path}/a"), &serde_json::Value::Null).0, 200);
        assert!(look().is_empty());
    }
}
