//! Every write to some kinds, in the order of their versions, and what is to be said about it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use convoy_api::Object;
use convoy_check::Compartments;
use serde_json::Value;

use crate::stage::{Stage, until};
use crate::watcher::Watcher;

/// What was written, and whether it is gone, by version.
type Writes = BTreeMap<u64, (Object, bool)>;

pub(crate) struct Log {
    writes: Arc<Mutex<Writes>>,
    watchers: Vec<(&'static str, Watcher)>,
}

pub(super) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

impl Log {
    /// Follows every write to what these paths list.
    pub(super) async fn follow<const N: usize>(stage: &Stage, paths: [&'static str; N]) -> Self {
        let writes: Arc<Mutex<Writes>> = Arc::default();
        let mut watchers = Vec::new();
        for path in paths {
            let writes = Arc::clone(&writes);
            let keep = move |object: &Object, is_gone: bool| {
                let write = (object.clone(), is_gone);
                writes.lock().unwrap().insert(version(object.raw()), write);
                Ok(())
            };
            watchers.push((path, Watcher::start(stage.client.clone(), path, keep).await));
        }
        Self { writes, watchers }
    }

    /// Waits until it ends with what the server has; how many writes there were.
    pub(crate) async fn complete(&self, stage: &Stage) -> usize {
        for (path, watcher) in &self.watchers {
            until("in the log", async || {
                let list = stage.get(path).await;
                let kind = list["kind"].as_str().unwrap().strip_suffix("List").unwrap();
                let items = list["items"].as_array().unwrap().iter();
                let there: BTreeMap<String, u64> = items
                    .map(|item| {
                        (item["metadata"]["name"].as_str().unwrap().to_owned(), version(item))
                    })
                    .collect();
                let known = self.last(kind);
                if there == known { Ok(()) } else { Err(serde_json::json!([there, known])) }
            })
            .await;
            watcher.approve();
        }
        self.writes.lock().unwrap().len()
    }

    /// What is there of a kind at the end.
    fn last(&self, kind: &str) -> BTreeMap<String, u64> {
        let mut last = BTreeMap::new();
        for (version, (object, is_gone)) in self.writes.lock().unwrap().iter() {
            if object.kind().kind != kind {
                continue;
            }
            if *is_gone {
                last.remove(object.name().as_str());
            } else {
                last.insert(object.name().to_string(), *version);
            }
        }
        last
    }

    /// Holds everything against the promise, instant by instant, with every compartment's terms
    /// as `edit` leaves them. At `rests` the loop had said that all was done. Err: what did not
    /// hold.
    pub(crate) fn judge(&self, rests: &[u64], edit: impl Fn(&mut Value)) -> Result<(), String> {
        let mut vigil = Compartments::of("tuning");
        let mut rests = rests.iter().peekable();
        for (version, (object, is_gone)) in self.writes.lock().unwrap().iter() {
            while rests.next_if(|rest| **rest < *version).is_some() {
                vigil.rest();
            }
            let object = edited(object, &edit);
            let seen = vigil.see(&object, *is_gone);
            seen.map_err(|finding| format!("at {version}: {finding}"))?;
        }
        Ok(())
    }
}

/// A policy with other terms; anything else as it is.
fn edited(object: &Object, edit: &impl Fn(&mut Value)) -> Object {
    if object.kind().kind != "DeploymentPolicy" {
        return object.clone();
    }
    let mut raw = object.raw().clone();
    edit(&mut raw["spec"]["default"]);
    raw["spec"]["compartments"].as_array_mut().unwrap().iter_mut().for_each(edit);
    Object::from_value(raw).unwrap()
}
