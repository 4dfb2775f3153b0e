//! The webhooks of placements, overrides, evictions, budgets and member clusters, under the names
//! that upstream registers, and the guard rail, which tells who may write.

mod defaults;
pub(super) mod guard;
mod guarded;

use std::sync::LazyLock;

use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;
use convoy_api::{GroupKind, Object};
use serde_json::Value;

use super::names::{self, Family};
use super::read::placement::{field, list, text};
use super::validate::{Moment, rules};
use crate::admission::{Operation, Request, Role, Served, Verdict, Webhook};
use crate::diagnostic::{Diagnostic, Severity};
use crate::world::World;

const VERSION: &str = "v1beta1";
const MUTATING: &str = "fleet-mutating-webhook-configuration";
const VALIDATING: &str = "fleet-validating-webhook-configuration";

const PLACEMENTS: Served = Served {
    kind: Family::Cluster.placement(),
    version: VERSION,
    plural: "clusterresourceplacements",
};
const NAMESPACED_PLACEMENTS: Served =
    Served { kind: Family::Namespaced.placement(), version: VERSION, plural: "resourceplacements" };
const MEMBERS: Served =
    Served { kind: names::MEMBER_CLUSTER, version: VERSION, plural: "memberclusters" };
const CLUSTER_OVERRIDES: Served =
    Served { kind: names::CLUSTER_OVERRIDE, version: VERSION, plural: "clusterresourceoverrides" };
const OVERRIDES: Served =
    Served { kind: names::OVERRIDE, version: VERSION, plural: "resourceoverrides" };
const EVICTIONS: Served =
    Served { kind: names::EVICTION, version: VERSION, plural: "clusterresourceplacementevictions" };
const BUDGETS: Served = Served {
    kind: names::DISRUPTION_BUDGET,
    version: VERSION,
    plural: "clusterresourceplacementdisruptionbudgets",
};
const DEFINITIONS: Served =
    Served { kind: CUSTOM_RESOURCE_DEFINITION, version: "v1", plural: "customresourcedefinitions" };
const WRITES: &[Operation] = &[Operation::Create, Operation::Update];

pub(super) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        name: "fleet.clusterresourceplacementv1beta1.mutating",
        configuration: MUTATING,
        path: "/mutate-placement.kubernetes-fleet.io-v1beta1-clusterresourceplacement",
        role: Role::Mutates,
        about: PLACEMENTS,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "fleet.clusterresourceplacementv1beta1.validating",
        configuration: VALIDATING,
        path: "/validate-placement.kubernetes-fleet.io-v1beta1-clusterresourceplacement",
        role: Role::Validates,
        about: PLACEMENTS,
        operations: WRITES,
        beside: &[DEFINITIONS],
    },
    Webhook {
        name: "fleet.resourceplacementv1beta1.validating",
        configuration: VALIDATING,
        path: "/validate-placement.kubernetes-fleet.io-v1beta1-resourceplacement",
        role: Role::Validates,
        about: NAMESPACED_PLACEMENTS,
        operations: WRITES,
        beside: &[DEFINITIONS],
    },
    Webhook {
        name: "fleet.membercluster.validating",
        configuration: VALIDATING,
        path: "/validate-cluster.kubernetes-fleet.io-v1beta1-membercluster",
        role: Role::Validates,
        about: MEMBERS,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "fleet.clusterresourceoverride.validating",
        configuration: VALIDATING,
        path: "/validate-placement.kubernetes-fleet.io-v1beta1-clusterresourceoverride",
        role: Role::Validates,
        about: CLUSTER_OVERRIDES,
        operations: WRITES,
        beside: &[CLUSTER_OVERRIDES],
    },
    Webhook {
        name: "fleet.resourceoverride.validating",
        configuration: VALIDATING,
        path: "/validate-placement.kubernetes-fleet.io-v1beta1-resourceoverride",
        role: Role::Validates,
        about: OVERRIDES,
        operations: WRITES,
        beside: &[OVERRIDES],
    },
    Webhook {
        name: "fleet.clusterresourceplacementeviction.validating",
        configuration: VALIDATING,
        path: "/validate-placement.kubernetes-fleet.io-v1beta1-clusterresourceplacementeviction",
        role: Role::Validates,
        about: EVICTIONS,
        operations: &[Operation::Create],
        beside: &[PLACEMENTS],
    },
    Webhook {
        name: "fleet.clusterresourceplacementdisruptionbudget.validating",
        configuration: VALIDATING,
        path: "/validate-placement.kubernetes-fleet.io-v1beta1-clusterresourceplacementdisruptionbudget",
        role: Role::Validates,
        about: BUDGETS,
        operations: WRITES,
        beside: &[PLACEMENTS],
    },
];

/// The same and the guards.
pub(super) static WITH_GUARDS: LazyLock<Vec<Webhook>> =
    LazyLock::new(|| [WEBHOOKS, guarded::WEBHOOKS].concat());

/// What one of them says.
pub(super) fn admit(webhook: &Webhook, world: &World, request: &Request<'_>) -> Verdict {
    match (webhook.role, request.object) {
        (Role::Mutates, Some(object)) => {
            Verdict::Allowed { changes: defaults::changes(object), warnings: Vec::new() }
        }
        (Role::Validates, Some(_)) if asks_for_nothing_new(request) => Verdict::allowed(),
        (Role::Validates, Some(object)) => request
            .old
            .and_then(|old| changed(&webhook.about.kind, old, object))
            .map_or_else(|| sound(world, object), |message| Verdict::Refused(message.to_owned())),
        (Role::Warns | Role::Guards(_), _) | (_, None) => Verdict::allowed(),
    }
}

/// Whether the write is about other things than the spec, or the object is on its way out: what
/// was stored before can always be labelled and let go, whatever the rules say by now.
fn asks_for_nothing_new(request: &Request<'_>) -> bool {
    let (Some(object), Some(old)) = (request.object, request.old) else { return false };
    !object["metadata"]["deletionTimestamp"].is_null() || object["spec"] == old["spec"]
}

/// What of a placement must not change.
fn changed(kind: &GroupKind, old: &Value, new: &Value) -> Option<&'static str> {
    if *kind != PLACEMENTS.kind && *kind != NAMESPACED_PLACEMENTS.kind {
        return None;
    }
    let [old, new] = [old, new].map(|placement| field(field(placement, "spec"), "policy"));
    let [from, to] = [old, new].map(|policy| match text(policy, "placementType") {
        "" => "PickAll",
        given => given,
    });
    if from != to && (from, to) != ("PickN", "PickAll") {
        return Some("placement type is immutable, except from PickN to PickAll");
    }
    let kept = list(new, "tolerations");
    let is_kept = |toleration: &Value| kept.iter().any(|new| tolerates_same(toleration, new));
    // A placement that becomes PickAll keeps its tolerations too.
    let lost = list(old, "tolerations").iter().any(|toleration| !is_kept(toleration));
    lost.then_some(
        "tolerations have been updated/deleted, only additions to tolerations are allowed",
    )
}

fn tolerates_same(one: &Value, other: &Value) -> bool {
    let parts = |toleration: &'_ Value| {
        let operator = match text(toleration, "operator") {
            "" => "Equal".to_owned(),
            given => given.to_owned(),
        };
        let rest = ["key", "value", "effect"].map(|part| text(toleration, part).to_owned());
        (operator, rest)
    };
    parts(one) == parts(other)
}

/// Refuses an object with every rule that it breaks.
fn sound(world: &World, object: &Value) -> Verdict {
    let object = match Object::from_value(object.clone()) {
        Ok(object) => object,
        Err(error) => return Verdict::Refused(format!("{}: {}", error.field, error.message)),
    };
    let found = rules(world, &object, Moment::Admission);
    let (errors, warnings): (Vec<Diagnostic>, Vec<Diagnostic>) =
        found.into_iter().partition(|finding| finding.severity == Severity::Error);
    let printed = |finding: Diagnostic| format!("{}: {}", finding.field, finding.message);
    if errors.is_empty() {
        let warnings = warnings.into_iter().map(printed).collect();
        return Verdict::Allowed { changes: Vec::new(), warnings };
    }
    Verdict::Refused(errors.into_iter().map(printed).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests;
