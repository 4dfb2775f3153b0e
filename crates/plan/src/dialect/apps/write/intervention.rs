//! What people ask of a Deployment, as `kubectl rollout` writes it.

use convoy_api::Object;
use convoy_api::apps::equality::same_template;
use convoy_api::apps::{DEPLOYMENT, REPLICA_SET};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::rollback;
use crate::condition::instant;
use crate::dialect::apps::decide::rollback::{Rollback, second_highest};
use crate::dialect::apps::names::{CHANGE_CAUSE, RESTARTED_AT};
use crate::dialect::apps::read::deployment::Deployment;
use crate::dialect::apps::read::owned_set::OwnedSet;
use crate::dialect::apps::read::template;
use crate::intervention::{Intervention, Refused, Revision};
use crate::ownership::is_controlled_by;
use crate::step::{Action, Verb, Why};
use crate::world::World;

/// The writes of a request.
pub(crate) fn intervene(
    world: &World,
    rollout: &Object,
    intervention: &Intervention,
    now: Timestamp,
) -> Result<Vec<Action>, Refused> {
    if *rollout.kind() != DEPLOYMENT {
        let instead = "it has one revision only: make it part of a Deployment";
        return Err(intervention.unsupported(rollout.kind(), instead));
    }
    let deployment =
        Deployment::read(rollout).map_err(|fields| refused(rollout, &invalid(&fields)))?;
    match intervention {
        Intervention::Pause if deployment.paused => Err(refused(rollout, "is already paused")),
        Intervention::Pause => Ok(vec![paused(rollout, true)]),
        Intervention::Resume if !deployment.paused => Err(refused(rollout, "is not paused")),
        Intervention::Resume => Ok(vec![paused(rollout, false)]),
        Intervention::Retry | Intervention::Undo { .. } if deployment.paused => {
            Err(refused(rollout, "is paused; run `convoy resume` first"))
        }
        Intervention::Retry if deployment.stored.is_complete(deployment.replicas, rollout) => {
            let why = "has nothing to retry: all its pods are available; to replace them all the \
                       same, run `kubectl rollout restart`";
            Err(refused(rollout, why))
        }
        Intervention::Retry => Ok(vec![restarted(rollout, now)]),
        Intervention::Undo { revision } => undone(world, &deployment, *revision),
        Intervention::Abort => Err(intervention.unsupported(
            rollout.kind(),
            "`convoy undo` goes back to the previous revision, `convoy pause` stops it here",
        )),
        Intervention::Approve { .. } => Err(intervention.unsupported(
            rollout.kind(),
            "`convoy pause` stops it for a check, `convoy resume` goes on",
        )),
        Intervention::Reset => Err(intervention
            .unsupported(rollout.kind(), "`convoy retry` replaces its pods by new ones")),
    }
}

fn invalid(fields: &[String]) -> String {
    format!("is invalid: {}", fields.join(", "))
}

fn refused(deployment: &Object, state: &str) -> Refused {
    Refused::not_now(format!("Deployment {:?} {state}", deployment.name()))
}

fn paused(deployment: &Object, value: bool) -> Action {
    let patch = json!({"spec": {"paused": if value { json!(true) } else { Value::Null }}});
    let (reason, message) =
        if value { ("Paused", "start nothing new") } else { ("Resumed", "go on") };
    Action::patch(Verb::Record, deployment, patch, Why::new(reason, message))
}

fn restarted(deployment: &Object, now: Timestamp) -> Action {
    let annotations = json!({RESTARTED_AT: instant(now)});
    let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
    Action::patch(Verb::Record, deployment, patch, Why::new("Retried", "replace all pods"))
}

fn undone(
    world: &World,
    deployment: &Deployment<'_>,
    asked: Option<i64>,
) -> Result<Vec<Action>, Refused> {
    let object = deployment.object;
    let sets = sets(world, object);
    let revision = match asked.filter(|revision| *revision != 0) {
        Some(revision) => revision,
        None => second_highest(sets.iter().filter_map(OwnedSet::revision)),
    };
    if revision == 0 {
        return Err(refused(object, "has no earlier revision"));
    }
    let Some(set) = sets.iter().find(|set| set.revision() == Some(revision)) else {
        let known: Vec<String> =
            sets.iter().filter_map(OwnedSet::revision).map(|known| known.to_string()).collect();
        let state = format!("has no revision {revision}; it has {}", known.join(", "));
        return Err(refused(object, &state));
    };
    if same_template(deployment.raw_template(), template(set.object)) {
        return Err(refused(object, &format!("is at revision {revision} already")));
    }
    let patch = rollback::patch(deployment, &Rollback::To { revision, set: set.object });
    let why = Why::new("RolledBack", format!("take the template of revision {revision}"));
    Ok(vec![Action::patch(Verb::RollBack, object, patch, why)])
}

/// The sets of a Deployment, by revision.
fn sets<'w>(world: &'w World, deployment: &Object) -> Vec<OwnedSet<'w>> {
    let all = world.in_namespace(&REPLICA_SET, deployment.namespace());
    let own = all.filter(|set| is_controlled_by(set, deployment));
    let mut sets: Vec<OwnedSet<'w>> = own.map(|set| OwnedSet::new(set, false)).collect();
    sets.sort_by_key(OwnedSet::revision);
    sets
}

/// The revisions that ReplicaSets remember.
pub(crate) fn revisions(world: &World, deployment: &Object) -> Vec<Revision> {
    let current = template(deployment);
    let told = sets(world, deployment).into_iter().filter_map(|set| {
        let object = set.object;
        Some(Revision {
            number: set.revision().filter(|number| *number > 0)?,
            object: format!("ReplicaSet {}", object.name()),
            created_at: object.created_at(),
            is_current: same_template(current, template(object)),
            content: content(object),
        })
    });
    told.collect()
}

/// The cause that someone gave, or the images.
fn content(set: &Object) -> String {
    if let Some(cause) = set.annotation(CHANGE_CAUSE) {
        return cause.to_owned();
    }
    let containers = template(set).pointer("/spec/containers").and_then(Value::as_array);
    let images: Vec<&str> = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container.get("image")?.as_str())
        .collect();
    images.join(", ")
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::annotation;
    use convoy_testkit::apps::{deployment, replica_set};

    use super::*;
    use crate::intervention::Intervention::{Abort, Pause, Resume, Retry, Undo};
    use crate::step::Write;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn set(name: &str, image: &str, revision: &str) -> Object {
        replica_set(name, image, 1, 1).annotation(annotation::REVISION, revision).build()
    }

    fn patch(rollout: &Object, world: &World, asked: &Intervention) -> Value {
        let mut actions = intervene(world, rollout, asked, now()).expect("it is possible");
        let Write::Patch { patch, .. } = actions.remove(0).write else { panic!("a patch") };
        patch
    }

    #[test]
    fn pause_and_resume_are_a_field() {
        let (world, plain) = (World::new(), deployment(1, "web:1").build());
        assert_eq!(patch(&plain, &world, &Pause), json!({"spec": {"paused": true}}));
        assert!(intervene(&world, &plain, &Resume, now()).is_err());
        let paused = deployment(1, "web:1").with("/spec/paused", json!(true)).build();
        assert_eq!(patch(&paused, &world, &Resume), json!({"spec": {"paused": null}}));
        for refused in [Pause, Retry, Undo { revision: None }, Abort] {
            assert!(intervene(&world, &paused, &refused, now()).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn only_what_is_not_complete_is_tried_again() {
        let said = |available: i64| {
            let status = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
                "availableReplicas": available});
            deployment(2, "web:1").with("/status", status).build()
        };
        let restart = patch(&said(1), &World::new(), &Retry);
        assert!(restart.to_string().contains("restartedAt"), "{restart}");
        let refused = intervene(&World::new(), &said(2), &Retry, now());
        assert!(refused.is_err_and(|why| why.to_string().contains("kubectl rollout restart")));
    }

    #[test]
    fn undo_takes_the_template_of_the_previous_revision() {
        let web = deployment(1, "web:2").build();
        let world: World = [set("web-1", "web:1", "1"), set("web-2", "web:2", "2"), web.clone()]
            .into_iter()
            .collect();
        let undone = patch(&web, &world, &Undo { revision: None });
        let images = undone.pointer("/spec/template/spec/containers/0/image");
        assert_eq!(images, Some(&json!("web:1")), "{undone}");
        let same = Undo { revision: Some(2) };
        assert!(intervene(&world, &web, &same, now()).is_err());
        let unknown = intervene(&world, &web, &Undo { revision: Some(7) }, now());
        assert!(unknown.is_err_and(|refused| refused.to_string().contains("it has 1, 2")));
        let told = revisions(&world, &web);
        assert_eq!((told.len(), told[1].is_current, told[0].content.as_str()), (2, true, "web:1"));
    }
}
