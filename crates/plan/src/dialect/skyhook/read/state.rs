//! What a node carries about its packages: the `nodeState` annotation, read and written in
//! the exact form that other tools compare as text.

use std::collections::BTreeMap;

use convoy_api::skyhook::{PackageState, Stage};
use serde::{Deserialize, Serialize};

use crate::dialect::skyhook::names::unique;
use crate::dialect::skyhook::read::hook::Package;

/// One package on one node. The order of fields is the order on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Absent only in what operators before 0.5 wrote.
    #[serde(default)]
    pub(crate) image: String,
    #[serde(default, rename = "containerSHA", skip_serializing_if = "String::is_empty")]
    pub(crate) container_sha: String,
    pub(crate) stage: Stage,
    pub(crate) state: PackageState,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) restarts: i64,
}

/// The packages of one node, by `name|version`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct NodeState {
    pub(crate) entries: BTreeMap<String, Entry>,
}

impl Entry {
    pub(crate) fn is(&self, stage: Stage, state: PackageState) -> bool {
        self.stage == stage && self.state == state
    }

    /// Its pod is, or should be, running: neither finished nor passed over.
    pub(crate) fn is_running(&self) -> bool {
        use PackageState::{Erroring, InProgress, Unknown};
        matches!(self.state, InProgress | Erroring | Unknown)
    }

    pub(crate) fn unique(&self) -> String {
        unique(&self.name, &self.version)
    }
}

impl NodeState {
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The annotation's value: keys sorted, no spaces.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("maps of strings always serialise")
    }

    pub(crate) fn get(&self, unique: &str) -> Option<&Entry> {
        self.entries.get(unique)
    }

    pub(crate) fn put(&mut self, entry: Entry) {
        self.entries.insert(entry.unique(), entry);
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}

impl Package<'_> {
    /// Its entry in node state at a stage.
    pub(crate) fn entry(&self, stage: Stage, state: PackageState) -> Entry {
        Entry {
            name: self.name.clone(),
            version: self.version.clone(),
            image: self.image.clone(),
            container_sha: self.container_sha.clone(),
            stage,
            state,
            restarts: 0,
        }
    }
    /// Its entry once a pod for `stage` is created.
    pub(crate) fn begun(&self, stage: Stage) -> Entry {
        self.entry(stage, PackageState::InProgress)
    }

    /// A package that the spec no longer has: its entry in node state is enough to uninstall it,
    /// without environment, resources or config.
    pub(crate) fn recorded(entry: &Entry) -> Package<'static> {
        Package {
            name: entry.name.clone(),
            version: entry.version.clone(),
            unique: entry.unique(),
            image: entry.image.clone(),
            container_sha: String::new(),
            agent_image: None,
            interrupt: None,
            config_interrupts: BTreeMap::new(),
            interrupts: Vec::new(),
            depends_on: Vec::new(),
            config: BTreeMap::new(),
            updated: Vec::new(),
            env: None,
            resources: None,
            grace_secs: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The word of a stage in pods, arguments and events.
pub(crate) fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Apply => "apply",
        Stage::Interrupt => "interrupt",
        Stage::PostInterrupt => "post-interrupt",
        Stage::Config => "config",
        Stage::Uninstall => "uninstall",
        Stage::Upgrade => "upgrade",
    }
}

/// The word of a state on the wire and in metrics.
pub(crate) fn state_word(state: PackageState) -> &'static str {
    match state {
        PackageState::Complete => "complete",
        PackageState::InProgress => "in_progress",
        PackageState::Skipped => "skipped",
        PackageState::Erroring => "erroring",
        PackageState::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_is_written_as_it_was_read() {
        let text = concat!(
            r#"{"dexter|1.2.3":{"name":"dexter","version":"1.2.3","image":"ghcr.io/x/y","#,
            r#""containerSHA":"sha256:1","stage":"post-interrupt","state":"in_progress","#,
            r#""restarts":3},"zed|1":{"name":"zed","version":"1","image":"z","#,
            r#""stage":"config","state":"complete"}}"#
        );
        assert_eq!(NodeState::parse(text).unwrap().text(), text);
        assert_eq!(NodeState::default().text(), "{}");
        assert!(NodeState::parse(r#"{"a":{"stage":"never"}}"#).is_err());
    }
}
