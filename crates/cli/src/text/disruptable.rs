//! Nodes of a NodePool that cannot be disrupted, whether or not they have a reason to go, in
//! upstream's words.

use std::collections::BTreeMap;

use convoy_plan::Step;
use smol_str::SmolStr;

use super::words::{names, plain};

/// What heads these lines.
pub(super) const HEADING: &str = "cannot be disrupted";

/// One line for each sentence, with the nodes that it is about.
pub(super) fn lines(step: &Step) -> Vec<String> {
    let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let texts = step.decision.get("notDisruptable").and_then(|texts| texts.as_object());
    for (node, text) in texts.into_iter().flatten() {
        by_text.entry(text.as_str().unwrap_or_default()).or_default().push(node);
    }
    let mut lines: Vec<(&str, Vec<&str>)> = by_text.into_iter().collect();
    lines.sort_by(|(_, one), (_, other)| one.cmp(other));
    lines.iter().map(|(text, nodes)| format!("{}: {}", names(nodes), plain(text))).collect()
}

/// The sentence about a node, which the rollout may know by any of `names`.
pub(crate) fn of_member<'s>(step: &'s Step, names: &[SmolStr]) -> Option<&'s str> {
    let texts = step.decision.get("notDisruptable")?;
    names.iter().find_map(|name| texts.get(name.as_str())?.as_str())
}

#[cfg(test)]
mod tests {
    use convoy_plan::Verdict;
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_with_the_same_sentence_share_a_line() {
        let pool = object("karpenter.sh/v1", "NodePool", "workers").build();
        let mut step = Step::new("karpenter", &pool, Verdict::Done);
        let texts =
            json!({"a": "node isn't initialized", "b": "another", "c": "node isn't initialized"});
        step.decision = json!({"notDisruptable": texts});
        assert_eq!(lines(&step), ["a, c: node isn't initialized", "b: another"]);
        assert_eq!(of_member(&step, &["x".into(), "b".into()]), Some("another"));
        assert!(lines(&Step::new("apps", &pool, Verdict::Done)).is_empty());
    }
}
