//! The `successPolicy` of an indexed Job: which indexes have to succeed, and how many.

use convoy_api::object::member::{field, list, member};
use serde_json::Value;

use crate::dialect::workloads::read::job::Job;
use crate::text::indexes::Indexes;

/// The number of the first rule that is met.
pub(super) fn rule_met(job: &Job<'_>) -> Option<usize> {
    let rules = list(field(job.owner.spec(), "successPolicy"), "rules");
    rules.iter().filter(|_| job.is_indexed).position(|rule| is_met(rule, &job.tally.completed))
}

/// A rule names indexes, a number of them, or both: then so many of the named ones.
fn is_met(rule: &Value, succeeded: &Indexes) -> bool {
    let count = member(rule, "succeededCount").and_then(Value::as_u64);
    let count = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let Some(named) = member(rule, "succeededIndexes").and_then(Value::as_str) else {
        return count.is_some_and(|count| succeeded.len() >= count);
    };
    let named = Indexes::read(named);
    succeeded.shared(&named) >= count.unwrap_or(named.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_names_indexes_or_counts_them() {
        let cases = [
            (json!({"succeededIndexes": "0,2-3"}), "0,2", false),
            (json!({"succeededIndexes": "0,2-3"}), "0-3", true),
            (json!({"succeededCount": 2}), "7", false),
            (json!({"succeededCount": 2}), "1,7", true),
            (json!({"succeededIndexes": "0-3", "succeededCount": 2}), "2,7", false),
            (json!({"succeededIndexes": "0-3", "succeededCount": 2}), "2-3", true),
            (json!({}), "0-9", false),
        ];
        for (rule, succeeded, expected) in cases {
            assert_eq!(is_met(&rule, &Indexes::read(succeeded)), expected, "{rule} {succeeded}");
        }
    }
}
