//! The webhooks and policies of one logical cluster, compiled once per state of their
//! configurations.

use std::sync::Arc;

use convoy_store::Shelf;
use parking_lot::RwLock;
use serde_json::Value;

use super::hook::Hook;
use super::policy::{Binding, Bound, Mutations, Policy, Validations};
use crate::encoding;
use crate::object_meta::{Entry, Snapshot, Store, shelf_name};
use crate::server::Cluster;

/// Every look sees the configurations of all writes that were acknowledged before it; one at
/// unchanged configurations compares pointers.
#[derive(Debug)]
pub(super) struct Webhooks {
    mutating: Kept<Hook>,
    validating: Kept<Hook>,
    policies: Kept<Policy<Validations>>,
    bindings: Kept<Binding>,
    mutating_policies: Kept<Policy<Mutations>>,
    mutating_bindings: Kept<Binding>,
}

#[derive(Debug)]
struct Kept<T> {
    shelf: Shelf,
    read: fn(&Value) -> Vec<T>,
    compiled: RwLock<Compiled<T>>,
}

#[derive(Debug)]
struct Compiled<T> {
    /// The configurations, by name.
    from: Vec<Arc<Entry>>,
    /// What they hold, in the same order.
    all: Arc<[T]>,
}

impl Cluster {
    /// Its webhooks and policies.
    pub(super) fn webhooks(&self) -> Arc<Webhooks> {
        self.attached.get(|| Webhooks::new(&self.name))
    }
}

impl Webhooks {
    fn new(cluster: &str) -> Self {
        Self {
            mutating: Kept::new(cluster, "mutatingwebhookconfigurations", Hook::of),
            validating: Kept::new(cluster, "validatingwebhookconfigurations", Hook::of),
            policies: Kept::new(cluster, "validatingadmissionpolicies", Policy::of),
            bindings: Kept::new(cluster, "validatingadmissionpolicybindings", Binding::of),
            mutating_policies: Kept::new(cluster, "mutatingadmissionpolicies", Policy::of),
            mutating_bindings: Kept::new(cluster, "mutatingadmissionpolicybindings", Binding::of),
        }
    }

    pub(super) fn mutating(&self, store: &Store) -> Arc<[Hook]> {
        self.mutating.of(&store.snapshot())
    }

    pub(super) fn validating(&self, store: &Store) -> Arc<[Hook]> {
        self.validating.of(&store.snapshot())
    }

    /// The validating policies, and what binds them.
    pub(super) fn policies(&self, store: &Store) -> Bound<Validations> {
        let snapshot = store.snapshot();
        (self.policies.of(&snapshot), self.bindings.of(&snapshot))
    }

    /// The mutating policies, and what binds them.
    pub(super) fn mutating_policies(&self, store: &Store) -> Bound<Mutations> {
        let snapshot = store.snapshot();
        (self.mutating_policies.of(&snapshot), self.mutating_bindings.of(&snapshot))
    }
}

impl<T> Kept<T> {
    fn new(cluster: &str, plural: &str, read: fn(&Value) -> Vec<T>) -> Self {
        let shelf = Shelf::new(cluster, &shelf_name("admissionregistration.k8s.io", plural));
        let compiled = Compiled { from: Vec::new(), all: Vec::new().into() };
        Self { shelf, read, compiled: RwLock::new(compiled) }
    }

    fn of(&self, snapshot: &Snapshot) -> Arc<[T]> {
        let known = self.compiled.read();
        if known.is_of(snapshot.list(&self.shelf)) {
            return Arc::clone(&known.all);
        }
        drop(known);
        // Made without the lock: two who look at once both work, and nobody else waits.
        let from: Vec<Arc<Entry>> = snapshot.list(&self.shelf).cloned().collect();
        let all: Arc<[T]> =
            from.iter().flat_map(|entry| (self.read)(&encoding::read_entry(entry))).collect();
        *self.compiled.write() = Compiled { from, all: Arc::clone(&all) };
        all
    }
}

impl<T> Compiled<T> {
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
        let look = || cluster.webhooks().validating(&test.server.store);
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
