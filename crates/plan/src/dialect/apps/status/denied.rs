//! What Deployments and ReplicaSets say when the server denies what they need.

use convoy_api::apps::{POD, REPLICA_SET};
use jiff::Timestamp;
use serde_json::json;

use super::replica_set::status;
use crate::condition::Condition;
use crate::condition::dated::Conditions;
use crate::dialect::apps::names::{PROGRESSING, REPLICA_FAILURE};
use crate::dialect::apps::read::deployment::Deployment;
use crate::dialect::apps::read::replica_set::ReplicaSet;
use crate::snapshot::Snapshot;
use crate::status::is_same;
use crate::step::{Complaint, Denial};

/// A set that cannot make or delete its pods has failed, until it can.
pub(crate) fn replica_set(snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
    let set = snapshot.rollout();
    let (reason, doing) = match denial.verb {
        "create" if denial.target.kind == POD => ("FailedCreate", "creating"),
        "delete" if denial.target.kind == POD => ("FailedDelete", "deleting"),
        _ => return Complaint::about(set, denial),
    };
    let message = format!("Error {doing}: {}", denial.message);
    let mut complaint = Complaint::saying(set, reason, message);
    let failure = Condition::new(REPLICA_FAILURE, "True", reason, denial.message.as_str());
    let status = ReplicaSet::read(snapshot, now).ok().map(|read| status(&read, Some(&failure)));
    complaint.status = status.filter(|status| !is_same(status, set.status()));
    complaint
}

/// A Deployment whose new set is denied does not progress, where it has a deadline to keep.
pub(crate) fn deployment(snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
    let object = snapshot.rollout();
    let is_new_set = denial.verb == "create" && denial.target.kind == REPLICA_SET;
    // A namespace on its way out takes everything with it; that is no fault of the rollout.
    if !is_new_set || denial.message.contains("because it is being terminated") {
        return Complaint::about(object, denial);
    }
    let reason = "ReplicaSetCreateError";
    let name = denial.target.name.as_str();
    let message = format!("Failed to create new replica set {name:?}: {}", denial.message);
    let mut complaint = Complaint::saying(object, reason, message.clone());
    let deadline = Deployment::read(object).is_ok_and(|read| read.deadline_secs.is_some());
    if deadline {
        let mut status = object.status().clone();
        if !status.is_object() {
            status = json!({});
        }
        let mut conditions = Conditions::of(object);
        conditions.set(PROGRESSING, "False", reason, &message, now);
        status["conditions"] = conditions.as_slice().into();
        complaint.status = Some(status).filter(|status| !is_same(status, object.status()));
    }
    complaint
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{NOW, apps};

    use super::*;
    use crate::dialect::Dialect;
    use crate::dialect::apps::{Deployments, ReplicaSets};
    use crate::world::World;

    fn complaint(
        dialect: &dyn Dialect,
        world: &World,
        rollout: &str,
        denial: &Denial,
    ) -> Complaint {
        let mut rollouts = dialect.rollouts(world).into_iter();
        let rollout = rollouts.find(|object| object.name() == rollout).expect("it is there");
        let now = NOW.parse().expect("an instant");
        dialect.complaint(&dialect.snapshot(world, rollout), denial, now)
    }

    #[test]
    fn a_set_fails_until_it_can() {
        let mut world: World =
            [apps::replica_set("web-1", "web:v1", 2, 0).build()].into_iter().collect();
        let message = "pods \"web-1-a\" is forbidden: no".to_owned();
        let denial = Denial { target: POD.key("shop", "web-1-a"), verb: "create", message };
        let said = complaint(&ReplicaSets, &world, "web-1", &denial);
        assert_eq!(said.event.message, "Error creating: pods \"web-1-a\" is forbidden: no");
        let status = said.status.expect("it is news");
        let [failure] = status["conditions"].as_array().expect("a list").as_slice() else {
            panic!()
        };
        assert_eq!(
            (&failure["type"], &failure["reason"], &failure["message"]),
            (&json!("ReplicaFailure"), &json!("FailedCreate"), &json!(denial.message))
        );
        // Said once; and gone with the step that is carried out.
        let failed = apps::replica_set("web-1", "web:v1", 2, 0).with("/status", status).build();
        world.insert(failed);
        assert_eq!(complaint(&ReplicaSets, &world, "web-1", &denial).status, None);
        let rollout = ReplicaSets.rollouts(&world)[0];
        let step = ReplicaSets
            .step(&ReplicaSets.snapshot(&world, rollout), NOW.parse().expect("an instant"));
        assert_eq!(step.status.expect("it changes").get("conditions"), None);
    }

    #[test]
    fn a_deployment_says_that_its_new_set_is_denied() {
        let world: World = [apps::deployment(2, "web:v1").build()].into_iter().collect();
        let denial = |message: &str| {
            let target = REPLICA_SET.key("shop", "web-1");
            Denial { target, verb: "create", message: message.to_owned() }
        };
        let said = complaint(&Deployments, &world, "web", &denial("no"));
        assert_eq!(said.event.reason, "ReplicaSetCreateError");
        let status = said.status.expect("it is news");
        let message = "Failed to create new replica set \"web-1\": no";
        assert_eq!(status["conditions"][0]["message"], message);
        assert_eq!(status["conditions"][0]["status"], "False");
        let ending = "replicasets \"web-1\" is forbidden: unable to create new content in namespace shop because it is being terminated";
        let said = complaint(&Deployments, &world, "web", &denial(ending));
        assert_eq!((said.status, said.event.reason.as_str()), (None, "FailedCreate"));
    }
}
