//! Numbers about rollouts for those who watch many of them: what a decision says, as series of
//! the text format of Prometheus.

pub use crate::metric::{Increment, Metric, Series};
use crate::step::{GroupReport, Step};

const BATCH_NUMBER: Metric =
    Metric::new("convoy_batch_number", "The batch that a group is at, from 1");
const BATCH_SIZE: Metric = Metric::new("convoy_batch_size", "How many members the batch may hold");
const BATCH_FAILURES: Metric = Metric::new("convoy_batch_failures", "Batches in a row that failed");
const BATCH_STOPPED: Metric =
    Metric::new("convoy_batch_stopped", "Whether failures have stopped the group");
const BATCH_CEILING: Metric =
    Metric::new("convoy_batch_ceiling", "Members that may be in flight at once");
const BATCH_MEMBERS: Metric =
    Metric::new("convoy_batch_members", "Members of the group, by where they stand");
const BATCH_HOLDS: Metric =
    Metric::new("convoy_batch_holds", "Members that stand still, by reason");

/// All series of a step: the dialect's own, and those of every group that goes in batches. They
/// replace those of the previous step.
pub fn of_step(step: &Step) -> Vec<Series> {
    let mut all = step.series.clone();
    for group in &step.groups {
        all.extend(of_group(step, group));
    }
    all
}

fn of_group(step: &Step, group: &GroupReport) -> Vec<Series> {
    let Some(batch) = &group.batch else { return Vec::new() };
    let rollout = match step.rollout.namespace.as_str() {
        "" => step.rollout.name.to_string(),
        namespace => format!("{namespace}/{}", step.rollout.name),
    };
    let labels = [("dialect", step.dialect), ("rollout", &rollout), ("group", &group.name)];
    let mut all = vec![
        Series::new(&BATCH_NUMBER, &labels, batch.number),
        Series::new(&BATCH_SIZE, &labels, batch.size),
        Series::new(&BATCH_FAILURES, &labels, batch.consecutive_failures),
        Series::new(&BATCH_STOPPED, &labels, batch.stopped),
    ];
    all.extend(group.ceiling.map(|ceiling| Series::new(&BATCH_CEILING, &labels, ceiling)));
    let with = |name: &'static str, value: &str, metric: &'static Metric, count: u32| {
        let labels = [labels[0], labels[1], labels[2], (name, value)];
        Series::new(metric, &labels, count)
    };
    for (state, count) in [
        ("waiting", group.waiting),
        ("moving", group.moving),
        ("settling", group.settling),
        ("done", group.done),
        ("failed", group.failed),
        ("gone", group.gone),
    ] {
        all.push(with("state", state, &BATCH_MEMBERS, count));
    }
    let mut holds = std::collections::BTreeMap::<&'static str, u32>::new();
    let of_group = |hold: &&crate::Hold| hold.group.as_deref() == Some(&group.name);
    for hold in step.holds.iter().filter(of_group) {
        *holds.entry(hold.reason.word()).or_default() += 1;
    }
    all.extend(holds.into_iter().map(|(word, count)| with("reason", word, &BATCH_HOLDS, count)));
    all
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;
    use crate::hold::{Hold, HoldReason};
    use crate::step::{BatchReport, MemberState, Verdict};

    fn told(series: &[Series]) -> Vec<String> {
        let line = |one: &Series| {
            let labels: Vec<String> =
                one.labels.iter().skip(2).map(|(name, value)| format!("{name}={value}")).collect();
            format!("{} {} {}", one.metric.name, labels.join(","), one.value)
        };
        series.iter().map(line).collect()
    }

    #[test]
    fn groups_that_go_in_batches_say_how_far_they_are_and_what_holds_them() {
        let rollout = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "x").build();
        let mut step = Step::new("skyhook", &rollout, Verdict::Moving);
        let mut group = GroupReport::new("canary");
        group.count(MemberState::Moving);
        group.count(MemberState::Waiting);
        group.batch =
            Some(BatchReport { number: 2, size: 1, consecutive_failures: 0, stopped: false });
        step.groups = vec![group, GroupReport::new("at once")];
        step.holds = vec![Hold::of_member("a", HoldReason::Paused).in_group("canary")];
        let told = told(&of_step(&step));
        for line in [
            "convoy_batch_number group=canary 2",
            "convoy_batch_size group=canary 1",
            "convoy_batch_stopped group=canary 0",
            "convoy_batch_members group=canary,state=waiting 1",
            "convoy_batch_members group=canary,state=done 0",
            "convoy_batch_holds group=canary,reason=Paused 1",
        ] {
            assert!(told.iter().any(|found| found == line), "{line} is not in {told:#?}");
        }
        assert!(!told.iter().any(|line| line.contains("at once")), "{told:#?}");
    }
}
