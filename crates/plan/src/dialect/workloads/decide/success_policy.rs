//! The `successPolicy` of an indexed Job: which indexes have to succeed, and how many.

use crate::dialect::workloads::read::job::Job;
use crate::dialect::workloads::read::success_policy::SuccessRule;
use crate::text::indexes::Indexes;

/// The number of the first rule that is met.
pub(super) fn rule_met(job: &Job<'_>) -> Option<usize> {
    let mut rules = SuccessRule::all(job.owner).filter(|_| job.is_indexed);
    rules.position(|rule| is_met(&rule, &job.tally.completed))
}

fn is_met(rule: &SuccessRule, succeeded: &Indexes) -> bool {
    let Some(named) = &rule.indexes else {
        return rule.count.is_some_and(|count| succeeded.len() >= count);
    };
    succeeded.shared(named) >= rule.count.unwrap_or(named.len())
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
            let met = is_met(&SuccessRule::read(&rule), &Indexes::read(succeeded));
            assert_eq!(met, expected, "{rule} {succeeded}");
        }
    }
}
