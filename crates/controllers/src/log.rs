//! The decision log: every decision with its reasons and inputs, one line of JSON each. A decision
//! that equals the previous one of its rollout is not logged again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::Path;

use convoy_plan::Step;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::rollout::Rollout;

/// An append-only log of decisions.
#[derive(Debug)]
pub struct DecisionLog<W = File> {
    out: W,
    /// A hash of the last line of each rollout.
    last: BTreeMap<Rollout, u64>,
}

impl DecisionLog {
    /// Appends to the file, creating it if necessary.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::new(OpenOptions::new().create(true).append(true).open(path)?))
    }
}

impl<W: Write> DecisionLog<W> {
    pub fn new(out: W) -> Self {
        Self { out, last: BTreeMap::new() }
    }

    /// Appends `step`, unless it equals the previous one of its rollout.
    pub fn append(
        &mut self,
        rollout: &Rollout,
        step: &Step,
        cache: &Cache,
        now: Timestamp,
    ) -> io::Result<()> {
        let decision = decision(step);
        let mut hasher = DefaultHasher::new();
        decision.to_string().hash(&mut hasher);
        let hash = hasher.finish();
        if self.last.insert(rollout.clone(), hash) == Some(hash) {
            return Ok(());
        }
        let mut line = json!({"at": now.to_string(), "dialect": cache.dialect(rollout).name(),
            "rollout": rollout.key.to_string()});
        if let (Value::Object(line), Value::Object(decision)) = (&mut line, decision) {
            line.extend(decision);
            line.insert("inputs".to_owned(), inputs(rollout, cache));
        }
        // One write, so that lines of several processes do not mix.
        self.out.write_all(format!("{line}\n").as_bytes())
    }

    pub fn forget(&mut self, rollout: &Rollout) {
        self.last.remove(rollout);
    }
}

fn decision(step: &Step) -> Value {
    let actions = step.actions.iter().map(|action| {
        json!({"verb": action.verb, "target": action.target.to_string(),
            "reason": action.why.reason, "message": action.why.message})
    });
    json!({"verdict": step.verdict, "actions": actions.collect::<Vec<_>>(),
        "holds": step.holds, "status": step.status.is_some(),
        "wakeAt": step.wake_at.map(|at| at.to_string())})
}

/// The version of the rollout, and the newest version of each collection in the cache.
fn inputs(rollout: &Rollout, cache: &Cache) -> Value {
    let object = cache.world().get(&rollout.key);
    let versions = cache.versions().iter().map(|(at, version)| (at.to_string(), json!(version)));
    json!({"rollout": object.and_then(|object| object.resource_version()),
        "kinds": versions.collect::<serde_json::Map<_, _>>()})
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::DEPLOYMENT;
    use convoy_plan::dialect::apps::Deployments;
    use convoy_testkit::{NOW, apps};

    use super::*;

    #[test]
    fn a_decision_is_written_once_with_its_reasons_and_inputs() {
        let mut cache = Cache::new(vec![&Deployments]);
        cache.apply(
            apps::deployment(2, "web:v1").with("/metadata/resourceVersion", json!("7")).build(),
        );
        let rollout = Rollout { dialect: 0, key: DEPLOYMENT.key("shop", "web") };
        let now = NOW.parse().unwrap();
        let step = cache.decide(&rollout, now).unwrap();
        let mut log = DecisionLog::new(Vec::new());
        log.append(&rollout, &step, &cache, now).unwrap();
        log.append(&rollout, &step, &cache, now).unwrap();
        let text = String::from_utf8(log.out).unwrap();
        assert_eq!(text.lines().count(), 1);
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["rollout"], "apps/Deployment/shop/web");
        assert_eq!(line["actions"][0]["verb"], "Create");
        assert_eq!(line["inputs"], json!({"rollout": "7", "kinds": {"apps/Deployment": 7}}));
    }
}
