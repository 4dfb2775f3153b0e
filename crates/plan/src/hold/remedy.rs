//! What frees whoever is held.

use super::HoldReason;

impl HoldReason {
    /// What has to happen, as the end of "is freed when". Empty for members that want nothing.
    pub fn remedy(&self) -> String {
        match self {
            Self::BudgetSpent { limit, ceiling: 0, .. } => {
                format!("{limit} allows more than 0")
            }
            Self::BudgetSpent { limit, .. } => {
                format!("a member in flight finishes, or {limit} is raised")
            }
            Self::AvailabilityFloor { limit, .. } => {
                format!("more members become available, or {limit} is lowered")
            }
            Self::BatchRunning { batch, .. } => format!("batch {batch} is finished"),
            Self::BatchFull { batch, .. } => {
                format!("batch {batch} is finished and the next one starts")
            }
            Self::FailureStop { .. } => {
                "the cause is fixed and someone runs `convoy retry`".to_owned()
            }
            Self::WindowClosed => "the window opens, or is changed".to_owned(),
            Self::GroupOrder { behind, .. } => format!("{behind} is finished"),
            Self::BehindRollout { rollout, .. } => format!("{rollout} is finished on this member"),
            Self::Paused | Self::Disabled => "someone runs `convoy resume`".to_owned(),
            Self::Ignored { .. } => "the mark is removed from the member".to_owned(),
            Self::TaintNotTolerated { taint } => {
                format!("taint {taint} is removed, or tolerated by the rollout")
            }
            Self::Missing { kind, name } => format!("{kind} {name:?} is created"),
            Self::PodDisruptionBudget { budget, .. } => {
                format!("PodDisruptionBudget {budget} allows a disruption")
            }
            Self::PodProtected { pod } => format!("pod {pod} ends, or someone deletes it"),
            Self::Draining { .. } => "its pods have ended".to_owned(),
            Self::Settling { for_secs } => format!("it has stayed available for {for_secs}s"),
            Self::NotAvailable { .. } => "it becomes available".to_owned(),
            Self::Depends { on } => format!("{on} is there"),
            Self::Approval { .. } => "someone runs `convoy approve`".to_owned(),
            Self::Failed { .. } => {
                "its cause is fixed; `convoy retry` tries again at once, where the API can"
                    .to_owned()
            }
            Self::NotSelected { .. } => "the selection, or the member, changes".to_owned(),
            Self::NotDisruptable { .. } => "the rule no longer applies to it".to_owned(),
            Self::NoReason => String::new(),
            Self::Stalled { .. } => "someone finds out what is missing".to_owned(),
            Self::Invalid { fields } => format!("{} is corrected", fields.join(", ")),
            Self::HangsOnRefused { object, .. } => format!("{object} is corrected"),
            Self::NotObserved { .. } => "these objects can be read".to_owned(),
            Self::PlanFailed { .. } => "the defect is fixed".to_owned(),
        }
    }

    /// How much a person who asks wants to hear of it; 0 is the most. Causes come before those who
    /// wait for them.
    ///
    /// | rank | reasons                                                  |
    /// |-----:|----------------------------------------------------------|
    /// |    0 | nothing but a person frees the member                    |
    /// |    1 | the member itself takes its time, or something about it  |
    /// |    2 | it waits for other members                               |
    /// |    3 | it stays as it is on purpose                             |
    pub fn rank(&self) -> u8 {
        match self {
            Self::FailureStop { .. }
            | Self::Failed { .. }
            | Self::Stalled { .. }
            | Self::Invalid { .. }
            | Self::HangsOnRefused { .. }
            | Self::PlanFailed { .. }
            | Self::Missing { .. }
            | Self::Approval { .. }
            | Self::Paused
            | Self::Disabled
            | Self::PodProtected { .. }
            | Self::PodDisruptionBudget { .. } => 0,
            Self::WindowClosed
            | Self::TaintNotTolerated { .. }
            | Self::Draining { .. }
            | Self::Settling { .. }
            | Self::NotAvailable { .. }
            | Self::Depends { .. }
            | Self::NotObserved { .. } => 1,
            Self::BudgetSpent { .. }
            | Self::AvailabilityFloor { .. }
            | Self::BatchRunning { .. }
            | Self::BatchFull { .. }
            | Self::GroupOrder { .. }
            | Self::BehindRollout { .. } => 2,
            Self::Ignored { .. }
            | Self::NotSelected { .. }
            | Self::NotDisruptable { .. }
            | Self::NoReason => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::Names;

    /// Each reason once.
    fn reasons() -> Vec<HoldReason> {
        let text = || "x".to_owned();
        let (limit, by) = ("maxUnavailable", Names::from(vec!["n1".into()]));
        vec![
            HoldReason::BudgetSpent { limit, in_flight: 1, ceiling: 1, by: by.clone() },
            HoldReason::BudgetSpent { limit, in_flight: 0, ceiling: 0, by: Names::default() },
            HoldReason::AvailabilityFloor {
                limit,
                available: 1,
                required: 1,
                unavailable: 1,
                by: by.clone(),
            },
            HoldReason::BatchRunning { batch: 1, unfinished: 1, by },
            HoldReason::BatchFull { batch: 1, size: 1 },
            HoldReason::FailureStop { limit, value: 1, failures: 1, remedy: "look" },
            HoldReason::WindowClosed,
            HoldReason::GroupOrder { behind: text(), unfinished: 1 },
            HoldReason::BehindRollout { rollout: text(), priority: 1 },
            HoldReason::Paused,
            HoldReason::Disabled,
            HoldReason::Ignored { by: text() },
            HoldReason::TaintNotTolerated { taint: text() },
            HoldReason::Missing { kind: "MemberCluster", name: text() },
            HoldReason::PodDisruptionBudget { budget: text(), pod: text(), allowed: 0 },
            HoldReason::PodProtected { pod: text() },
            HoldReason::Draining { pods: 1 },
            HoldReason::Settling { for_secs: 1 },
            HoldReason::NotAvailable { detail: text() },
            HoldReason::Depends { on: text() },
            HoldReason::Approval { request: text() },
            HoldReason::Failed { detail: text() },
            HoldReason::NotSelected { detail: text() },
            HoldReason::NotDisruptable { detail: text() },
            HoldReason::Stalled { detail: text() },
            HoldReason::Invalid { fields: vec![text()] },
            HoldReason::HangsOnRefused {
                object: text(),
                field: text(),
                message: text(),
                others: 0,
            },
            HoldReason::NotObserved { cluster: text(), kind: text(), detail: text() },
            HoldReason::PlanFailed { panic: text() },
        ]
    }

    #[test]
    fn every_reason_says_what_frees_it() {
        for reason in reasons() {
            assert!(!reason.remedy().is_empty(), "{}", reason.word());
        }
        assert_eq!(HoldReason::NoReason.remedy(), "");
    }

    #[test]
    fn what_only_a_person_frees_comes_first() {
        let first = |rank: u8| -> Vec<&'static str> {
            let all = reasons();
            all.iter().filter(|reason| reason.rank() == rank).map(HoldReason::word).collect()
        };
        assert_eq!(first(3), ["Ignored", "NotSelected", "NotDisruptable"]);
        let persons = [
            "FailureStop",
            "Paused",
            "Disabled",
            "Missing",
            "PodDisruptionBudget",
            "PodProtected",
            "Approval",
            "Failed",
            "Stalled",
            "Invalid",
            "HangsOnRefused",
            "PlanFailed",
        ];
        assert_eq!(first(0), persons);
    }
}
