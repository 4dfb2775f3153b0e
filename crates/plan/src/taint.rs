//! Taints and tolerations, with Kubernetes' matching rules. Nodes, member clusters and
//! managed clusters use the same shapes; which effects count is the dialect's matter.

use convoy_api::Object;
use convoy_api::object::member::{list, text};
use serde_json::Value;

/// A taint as a node or cluster carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taint<'o> {
    pub key: &'o str,
    pub value: &'o str,
    pub effect: &'o str,
}

/// A toleration as a rollout carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toleration<'o> {
    /// Empty with operator Exists: every key.
    pub key: &'o str,
    /// Empty means Equal.
    pub operator: &'o str,
    pub value: &'o str,
    /// Empty: every effect.
    pub effect: &'o str,
}

impl<'o> Taint<'o> {
    pub fn from_value(value: &'o Value) -> Self {
        let [key, value, effect] = ["key", "value", "effect"].map(|field| text(value, field));
        Self { key, value, effect }
    }
}

impl<'o> Toleration<'o> {
    pub fn from_value(value: &'o Value) -> Self {
        let [key, operator, text_value, effect] =
            ["key", "operator", "value", "effect"].map(|field| text(value, field));
        Self { key, operator, value: text_value, effect }
    }

    pub fn tolerates(&self, taint: &Taint<'_>) -> bool {
        let effect = self.effect.is_empty() || self.effect == taint.effect;
        let key = self.key.is_empty() || self.key == taint.key;
        let value = match self.operator {
            "Exists" => true,
            "" | "Equal" => !self.key.is_empty() && self.value == taint.value,
            _ => false,
        };
        effect && key && value
    }
}

/// The taints of a node as it carries them, but for those with this key.
pub(crate) fn others(node: &Object, key: &str) -> Vec<Value> {
    let taints = list(node.spec(), "taints").iter();
    taints.filter(|taint| text(taint, "key") != key).cloned().collect()
}

/// The taints of a node as it carries them, but for the one with this key and effect.
pub(crate) fn but(node: &Object, key: &str, effect: &str) -> Vec<Value> {
    let taints = list(node.spec(), "taints").iter();
    taints.filter(|taint| !is(&Taint::from_value(taint), key, effect)).cloned().collect()
}

/// Whether a taint has this key and effect, whatever its value.
pub(crate) fn is(taint: &Taint<'_>, key: &str, effect: &str) -> bool {
    (taint.key, taint.effect) == (key, effect)
}

/// `key=value:effect`, as `kubectl taint` writes it.
impl std::fmt::Display for Taint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, value, effect } = self;
        if value.is_empty() {
            write!(f, "{key}:{effect}")
        } else {
            write!(f, "{key}={value}:{effect}")
        }
    }
}

/// The first taint that no toleration covers.
pub fn first_intolerable<'o>(
    taints: &[Taint<'o>],
    tolerations: &[Toleration<'_>],
) -> Option<Taint<'o>> {
    let tolerated =
        |taint: &Taint<'_>| tolerations.iter().any(|toleration| toleration.tolerates(taint));
    taints.iter().find(|taint| !tolerated(taint)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toleration_matches_by_key_operator_value_and_effect() {
        let taint = Taint { key: "gpu", value: "yes", effect: "NoSchedule" };
        let cases = [
            ("gpu", "Equal", "yes", "NoSchedule", true),
            ("gpu", "", "yes", "", true),
            ("gpu", "Equal", "no", "", false),
            ("gpu", "Exists", "", "", true),
            ("", "Exists", "", "", true),
            ("", "Exists", "", "NoExecute", false),
            ("", "Equal", "yes", "", false),
            ("cpu", "Exists", "", "", false),
        ];
        for (key, operator, value, effect, expected) in cases {
            let toleration = Toleration { key, operator, value, effect };
            assert_eq!(toleration.tolerates(&taint), expected, "{toleration:?}");
        }
    }
}
