//! ControllerRevisions that are created, renumbered and deleted.

use convoy_api::Object;
use convoy_api::kinds::CONTROLLER_REVISION;
use convoy_api::object::member::field;
use serde_json::{Value, json};

use crate::dialect::workloads::names::REVISION_HASH;
use crate::dialect::workloads::read::revisions::{Change, PATCH, Revisions};
use crate::dialect::workloads::read::template;
use crate::ownership;
use crate::pods::writes::Writes;
use crate::step::{Action, Propagation, Verb, Why};

impl Writes<'_> {
    /// Makes the newest revision the one of the template.
    pub(super) fn renew(&mut self, revisions: &Revisions<'_>) {
        let action = match revisions.change {
            None => return,
            Some(Change::Create { number }) => {
                let owner = revisions.owner;
                let key =
                    owner.key().sibling(&CONTROLLER_REVISION, owner.namespace(), &revisions.name);
                let why = Why::new("NewTemplate", format!("revision {number}"));
                Action::create(Verb::Record, key, body(revisions, number), why)
            }
            Some(Change::Renumber { revision, number }) => {
                let why = Why::new("WentBack", format!("{} is the template again", revisions.name));
                Action::patch(Verb::Record, revision, json!({"revision": number}), why)
            }
        };
        self.actions.push(action);
    }

    pub(super) fn trim(&mut self, revisions: &Revisions<'_>, expired: &[&Object]) {
        for revision in expired {
            let message = format!("revisionHistoryLimit keeps {} old revisions", revisions.limit);
            let why = Why::new("HistoryLimit", message);
            let delete = Action::delete(Verb::Delete, revision, Propagation::Background, why);
            self.actions.push(delete);
        }
    }
}

fn body(revisions: &Revisions<'_>, number: i64) -> Value {
    let owner = revisions.owner;
    let mut template = template(owner).clone();
    let mut labels = field(field(&template, "metadata"), "labels").clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels[REVISION_HASH] = json!(revisions.hash);
    template[PATCH] = json!("replace");
    // As Go writes maps. Kubernetes' own controllers compare the bytes: with another order they
    // would take the template for a new one, and roll every pod.
    template.sort_all_objects();
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revisions.name,
            "namespace": owner.namespace(),
            "labels": labels,
            "annotations": owner.metadata().get("annotations"),
            "ownerReferences": [ownership::reference(owner)],
        },
        "data": {"spec": {"template": template}},
        "revision": number,
    })
}
