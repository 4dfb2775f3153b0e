//! Actions of a StatefulSet, and the bodies of its pods and volume claims.

use convoy_api::kinds::{PERSISTENT_VOLUME_CLAIM, POD};
use convoy_api::object::member::{field, list, text};
use convoy_api::{Object, ObjectKey};
use serde_json::{Value, json};

use super::{note, of_revisions, retention};
use crate::dialect::workloads::decide::stateful_set::{StatefulSetDecision, Work};
use crate::dialect::workloads::names::{POD_INDEX, POD_NAME, REVISION_HASH};
use crate::dialect::workloads::read::stateful_set::StatefulSet;
use crate::dialect::workloads::read::template;
use crate::gate::Permit;
use crate::pods;
use crate::pods::writes::Writes;
use crate::snapshot::Snapshot;
use crate::step::{Action, Verb, Why};

pub(crate) fn writes<'o>(
    set: &StatefulSet<'o>,
    decision: &StatefulSetDecision<'_>,
    expired: &[&Object],
    snapshot: &Snapshot<'_>,
) -> Writes<'o> {
    of_revisions(set.owner, &set.revisions, &set.owned, expired, |writes| {
        // Before their pods go, or the claims would have nobody to go with.
        for (ordinal, (pod, _)) in &set.pods {
            let keys = claims(set.owner, *ordinal).into_iter().map(|(key, _)| key);
            let standing = retention::standing(keys, |key| snapshot.get(key));
            let renewed = standing
                .into_iter()
                .filter_map(|claim| retention::renewed(set, *ordinal, pod, claim));
            writes.actions.extend(renewed);
        }
        for (ordinal, work, permit) in &decision.works {
            match work {
                Work::Create => create(writes, set, *ordinal, *permit, snapshot),
                Work::Remove { pod, reason, message } => {
                    writes.remove(*permit, pod, Why::new(reason, message.clone()));
                }
            }
        }
    })
}

/// The pod of an ordinal, with its volumes.
fn create(
    writes: &mut Writes<'_>,
    set: &StatefulSet<'_>,
    ordinal: i64,
    permit: Permit,
    snapshot: &Snapshot<'_>,
) {
    // `OnDelete` has no partition: whoever deletes a pod asks for the present template.
    let stays = set.partition.is_some_and(|partition| ordinal < partition);
    let earlier = set.revisions.template_of(&set.current).filter(|_| stays);
    let (revision, template) = match &earlier {
        Some(template) => (&set.current, template),
        None => (&set.update, template(set.owner)),
    };
    for (key, claim) in claims(set.owner, ordinal) {
        if snapshot.get(&key).is_none() {
            let message = format!("pod {} has no such claim", set.name(ordinal));
            let why = Why::new("VolumeMissing", message);
            writes.actions.push(Action::create(Verb::Create, key, claim, why));
        }
    }
    let (key, pod) = pod(set.owner, ordinal, template, revision);
    let wanted = set.wanted.end - set.wanted.start;
    let why = Why::new("TooFew", format!("{} of {wanted} pods", set.pods.len()));
    writes.start(permit, key, pod, why);
}

/// The volume claims of an ordinal.
fn claims(owner: &Object, ordinal: i64) -> Vec<(ObjectKey, Value)> {
    let templates = list(owner.spec(), "volumeClaimTemplates").iter();
    let claims = templates.map(|template| {
        let name = claim_name(owner, template, ordinal);
        let key = owner.key().sibling(&PERSISTENT_VOLUME_CLAIM, owner.namespace(), &name);
        let mut claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": owner.namespace(),
                "annotations": field(template, "metadata").get("annotations"),
            },
            "spec": field(template, "spec"),
        });
        let own = field(field(template, "metadata"), "labels").as_object();
        let selected = field(field(owner.spec(), "selector"), "matchLabels").as_object();
        for (key, value) in own.into_iter().chain(selected).flatten() {
            note(&mut claim, "labels", key, value.as_str().unwrap_or_default());
        }
        if let Some(owners) = retention::of_new(owner) {
            claim["metadata"]["ownerReferences"] = owners;
        }
        (key, claim)
    });
    claims.collect()
}

fn claim_name(owner: &Object, template: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", text(field(template, "metadata"), "name"), owner.name())
}

/// The pod of an ordinal at a revision.
fn pod(owner: &Object, ordinal: i64, template: &Value, revision: &str) -> (ObjectKey, Value) {
    let name = format!("{}-{ordinal}", owner.name());
    let key = owner.key().sibling(&POD, owner.namespace(), &name);
    let mut pod = pods::pod(owner, template, &key);
    note(&mut pod, "labels", REVISION_HASH, revision);
    note(&mut pod, "labels", POD_NAME, &name);
    note(&mut pod, "labels", POD_INDEX, &ordinal.to_string());
    let spec = &mut pod["spec"];
    spec["hostname"] = json!(name);
    let service = owner.spec_text("serviceName");
    if !service.is_empty() {
        spec["subdomain"] = json!(service);
    }
    let claimed: Vec<Value> = list(owner.spec(), "volumeClaimTemplates")
        .iter()
        .map(|template| {
            json!({"name": text(field(template, "metadata"), "name"),
                "persistentVolumeClaim": {"claimName": claim_name(owner, template, ordinal)}})
        })
        .collect();
    if !claimed.is_empty() {
        let is_claimed = |volume: &&Value| claimed.iter().any(|own| own["name"] == volume["name"]);
        let others = list(spec, "volumes").iter().filter(|volume| !is_claimed(volume)).cloned();
        let volumes: Vec<Value> = claimed.iter().cloned().chain(others).collect();
        spec["volumes"] = Value::Array(volumes);
    }
    (key, pod)
}
