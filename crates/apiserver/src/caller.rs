//! The identity that a request acts under.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The identity that a request acts under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

pub const MASTERS: &str = "system:masters";
pub const AUTHENTICATED: &str = "system:authenticated";
pub const ANONYMOUS: &str = "system:anonymous";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

impl Caller {
    /// The server itself: its own controllers and bootstrap.
    pub fn server() -> Self {
        let groups = vec![MASTERS.to_owned(), AUTHENTICATED.to_owned()];
        Self { name: "system:apiserver".to_owned(), groups, ..Self::default() }
    }

    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// A user as reviews and the audit log show it.
    pub(crate) fn user_info(&self) -> Value {
        let mut info = Map::new();
        info.insert("username".into(), json!(self.name));
        if !self.uid.is_empty() {
            info.insert("uid".into(), json!(self.uid));
        }
        if !self.groups.is_empty() {
            info.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".into(), json!(self.extra));
        }
        Value::Object(info)
    }
}
