//! The webhooks of Skyhooks and their policies, under the names that upstream registers.

mod defaults;

use convoy_api::Object;
use serde_json::Value;

use crate::admission::{Operation, Request, Role, Served, Verdict, Webhook};
use crate::diagnostic::{Diagnostic, Severity};
use crate::dialect::skyhook::read::hook::policy_name;
use crate::dialect::skyhook::validate::{Moment, validate};
use crate::world::World;
use convoy_api::skyhook::{DEPLOYMENT_POLICY, SKYHOOK};

const SKYHOOKS: Served = Served { kind: SKYHOOK, version: "v1alpha1", plural: "skyhooks" };
const POLICIES: Served =
    Served { kind: DEPLOYMENT_POLICY, version: "v1alpha1", plural: "deploymentpolicies" };

const MUTATING: &str = "skyhook-operator-mutating-webhook";
const VALIDATING: &str = "skyhook-operator-validating-webhook";

/// A Skyhook may always go, so nobody is asked about that.
const WRITES: &[Operation] = &[Operation::Create, Operation::Update];

pub(super) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        name: "mutate-skyhook.nvidia.com",
        configuration: MUTATING,
        path: "/mutate-skyhook-nvidia-com-v1alpha1-skyhook",
        role: Role::Mutates,
        about: SKYHOOKS,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "mutate-deploymentpolicy.nvidia.com",
        configuration: MUTATING,
        path: "/mutate-skyhook-nvidia-com-v1alpha1-deploymentpolicy",
        role: Role::Mutates,
        about: POLICIES,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "validate-skyhook.nvidia.com",
        configuration: VALIDATING,
        path: "/validate-skyhook-nvidia-com-v1alpha1-skyhook",
        role: Role::Validates,
        about: SKYHOOKS,
        operations: WRITES,
        beside: &[POLICIES],
    },
    Webhook {
        name: "validate-deploymentpolicy.nvidia.com",
        configuration: VALIDATING,
        path: "/validate-skyhook-nvidia-com-v1alpha1-deploymentpolicy",
        role: Role::Validates,
        about: POLICIES,
        operations: &[Operation::Create, Operation::Update, Operation::Delete],
        beside: &[SKYHOOKS],
    },
];

/// What one of them says.
pub(super) fn admit(webhook: &Webhook, world: &World, request: &Request<'_>) -> Verdict {
    match (webhook.role, request.object) {
        (Role::Mutates, Some(object)) => {
            let changes = defaults::changes(&webhook.about.kind, object);
            Verdict::Allowed { changes, warnings: Vec::new() }
        }
        (Role::Validates, Some(_)) if asks_for_nothing_new(request) => Verdict::allowed(),
        (Role::Validates, Some(object)) => sound(world, object),
        (Role::Validates, None) if webhook.about.kind == DEPLOYMENT_POLICY => {
            unreferenced(world, request)
        }
        (Role::Warns | Role::Guards(_), _) | (_, None) => Verdict::allowed(),
    }
}

/// Whether the write is about other things than the spec, or the object is on its way out: what
/// was stored before can always be labelled, paused and let go, whatever the rules say by now.
fn asks_for_nothing_new(request: &Request<'_>) -> bool {
    let (Some(object), Some(old)) = (request.object, request.old) else { return false };
    !object["metadata"]["deletionTimestamp"].is_null() || object["spec"] == old["spec"]
}

/// Refuses an object for the first rule that it breaks.
fn sound(world: &World, object: &Value) -> Verdict {
    let object = match Object::from_value(object.clone()) {
        Ok(object) => object,
        Err(error) => return Verdict::Refused(format!("{}: {}", error.field, error.message)),
    };
    let found = validate(world, &object, Moment::Admission);
    let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
    match found.iter().find(is_error) {
        Some(error) => Verdict::Refused(error.message.clone()),
        None => Verdict::Allowed {
            changes: Vec::new(),
            warnings: found.into_iter().map(|warning| warning.message).collect(),
        },
    }
}

/// Keeps a policy for as long as a Skyhook names it.
fn unreferenced(world: &World, request: &Request<'_>) -> Verdict {
    let policy = request.name;
    let naming = world.of(&SKYHOOK).filter(|skyhook| policy_name(skyhook) == Some(policy));
    let names: Vec<&str> = naming.map(|skyhook| skyhook.name().as_str()).collect();
    if names.is_empty() {
        return Verdict::allowed();
    }
    Verdict::Refused(format!(
        "cannot delete DeploymentPolicy {policy:?}: still referenced by {} Skyhook(s): [{}]",
        names.len(),
        names.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;
    use crate::admission::Circumstances;

    const VERSION: &str = "skyhook.nvidia.com/v1alpha1";

    fn policy(name: &str) -> Object {
        let spec = json!({"default": {"budget": {"count": 1}}});
        object(VERSION, "DeploymentPolicy", name).spec(spec).build()
    }

    fn skyhook(name: &str, policy: &str) -> Object {
        object(VERSION, "Skyhook", name).spec(json!({"deploymentPolicy": policy})).build()
    }

    fn asked(at: usize, world: &World, object: Option<&Value>, old: Option<&Value>) -> Verdict {
        let operation = match (object, old) {
            (Some(_), None) => Operation::Create,
            (Some(_), Some(_)) => Operation::Update,
            _ => Operation::Delete,
        };
        let name = object.or(old).and_then(|object| object["metadata"]["name"].as_str());
        let name = name.unwrap_or_default();
        let circumstances = Circumstances::default();
        let request = Request { operation, name, object, old, user: "", circumstances };
        admit(&WEBHOOKS[at], world, &request)
    }

    fn refusal(verdict: Verdict) -> String {
        match verdict {
            Verdict::Refused(message) | Verdict::Invalid(message) => message,
            Verdict::Allowed { .. } => String::new(),
        }
    }

    #[test]
    fn a_policy_that_is_named_has_to_be_there_and_stays() {
        let mut world = World::new();
        let tuning = skyhook("tuning", "slow");
        let refused = refusal(asked(2, &world, Some(tuning.raw()), None));
        assert_eq!(refused, "deploymentPolicy \"slow\" not found");
        world.insert(policy("slow"));
        assert_eq!(asked(2, &world, Some(tuning.raw()), None), Verdict::allowed());
        let other = skyhook("tuning", "fast");
        let refused = refusal(asked(2, &world, Some(other.raw()), Some(tuning.raw())));
        assert_eq!(refused, "deploymentPolicy \"fast\" not found");

        world.insert(tuning);
        world.insert(skyhook("another", "slow"));
        world.insert(skyhook("free", ""));
        let slow = policy("slow");
        assert_eq!(
            refusal(asked(3, &world, None, Some(slow.raw()))),
            "cannot delete DeploymentPolicy \"slow\": still referenced by 2 Skyhook(s): [another tuning]"
        );
        assert_eq!(asked(3, &world, None, Some(policy("x").raw())), Verdict::allowed());
    }

    #[test]
    fn what_is_stored_can_be_labelled_and_let_go_though_rules_are_broken() {
        let world = World::new();
        let stored = skyhook("tuning", "gone");
        let mut labelled = stored.raw().clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        let verdict = asked(2, &world, Some(&labelled), Some(stored.raw()));
        assert_eq!(verdict, Verdict::allowed());
        let mut leaving = stored.raw().clone();
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        leaving["spec"]["serial"] = json!(true);
        let verdict = asked(2, &world, Some(&leaving), Some(stored.raw()));
        assert_eq!(verdict, Verdict::allowed());
    }

    #[test]
    fn the_first_broken_rule_is_the_answer() {
        let world = World::new();
        let spec = json!({"deploymentPolicy": "none", "packages": {"cookies": {"version": "3.2.3",
            "image": "x", "dependsOn": {"milkshake": "1.2.3"}}}});
        let cookies = object(VERSION, "Skyhook", "x").spec(spec).build();
        let refused = refusal(asked(2, &world, Some(cookies.raw()), None));
        assert!(refused.contains("missing: [milkshake|1.2.3]"), "{refused}");
        let compartment = json!({"name": "a", "budget": {"count": 1},
            "selector": {"matchLabels": {"a": "b"}}});
        let spec = json!({"default": {"budget": {"percent": 50}},
            "compartments": [compartment, compartment]});
        let twice = object(VERSION, "DeploymentPolicy", "x").spec(spec).build();
        let refused = refusal(asked(3, &world, Some(twice.raw()), None));
        assert_eq!(refused, "compartment name \"a\" is not unique");
    }
}
