//! The rollout engine beside upstream's own rollout helper: the same rollouts through both give the
//! same answers, except where the helper is known to differ from its documentation.

#[path = "ocm_upstream/cases.rs"]
mod cases;

use convoy_api::ocm::names::{MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET};
use convoy_plan::dialect::ocm::Ocm;
use convoy_plan::{Dialect, Step};
use convoy_testkit::NOW;
use convoy_testkit::ocm::NAMESPACE;
use jiff::Timestamp;
use serde_json::{Value, json};

use cases::{Case, Group, Member, Status, ask, helper};

const CASES: u64 = 4_000;
const DEADLINE: i64 = 90;
const SOAK: i64 = 60;

#[test]
fn upstreams_rollout_helper_gives_the_same_answers() {
    let cases: Vec<Case> = (0..CASES).map(|seed| random_case(&mut Random(seed))).collect();
    let responses = ask(&helper(), &cases, 1);
    assert_eq!(responses.len(), cases.len());
    let (mut same, mut compared) = (0, 0);
    for (seed, (case, theirs)) in cases.iter().zip(&responses).enumerate() {
        let step = decision(case);
        let ours = starts(&step);
        let is_same = ours == theirs.starts;
        same += u32::from(is_same);
        if excuse(case).is_some() {
            continue;
        }
        compared += 1;
        assert!(is_same, "case {seed}: {ours:?} and not {:?}: {case:#?}", theirs.starts);
        // Where a limit is reached upstream looks no further, and may miss an earlier instant.
        if case.strategy["type"] != "Progressive" {
            assert_eq!(recheck(&step), theirs.recheck_after, "case {seed}: {case:#?}");
        }
    }
    assert!(compared >= 1_500, "only {compared} cases are to be the same");
    let share = f64::from(same) / f64::from(u32::try_from(CASES).expect("a small number"));
    assert!(share >= 0.9, "{same} of {CASES} are the same");
    eprintln!("{same} of {CASES} cases are the same, {compared} of them have to be");
}

fn decision(case: &Case) -> Step {
    let world = case.world();
    let set = world.find(&MANIFEST_WORK_REPLICA_SET, NAMESPACE, "web").expect("made above");
    Ocm.step(&Ocm.snapshot(&world, set), now())
}

fn now() -> Timestamp {
    NOW.parse().expect("an instant")
}

/// The clusters that get the template.
fn starts(step: &Step) -> Vec<String> {
    let works = step.actions.iter().filter(|action| action.target.kind == MANIFEST_WORK);
    let mut names: Vec<String> = works.map(|action| action.target.namespace.to_string()).collect();
    names.sort();
    names
}

/// Seconds until time alone changes something; 0 for never.
fn recheck(step: &Step) -> i64 {
    step.wake_at.map_or(0, |at| at.duration_since(now()).as_secs())
}

/// Why the helper may answer otherwise, as the specification lists it.
fn excuse(case: &Case) -> Option<&'static str> {
    let block = &case.strategy[if case.strategy["type"] == "Progressive" {
        "progressive"
    } else {
        "progressivePerGroup"
    }];
    if case.strategy["type"] == "All" {
        return None;
    }
    let by_group = case.strategy["type"] == "ProgressivePerGroup";
    let has_mandatory = case.groups.iter().any(|group| is_mandatory(group, block));
    let groups = || case.groups.iter().enumerate();
    let is_late = |it: &Member| has_missed(it, block);
    let is_busy = |it: &Member| is_in_flight(it, block);
    if (by_group || has_mandatory) && case.members().any(is_late) {
        return Some("timed-out clusters are subtracted from those that are still rolling");
    }
    let outside = case.groups.iter().filter(|group| !is_mandatory(group, block));
    if has_mandatory && outside.flat_map(|group| &group.members).any(is_busy) {
        return Some("the mandatory phase looks at all clusters");
    }
    let waits = |group: &Group| group.members.iter().any(|it| it.status.is_none());
    let first = case.groups.iter().position(waits).unwrap_or(usize::MAX);
    let is_partial = groups().any(|(index, group)| {
        let has_failed = |it: &Member| matches!(it.status, Some((Status::Failed, _)));
        group.members.iter().any(is_busy) && (index >= first || has_mandatory)
            || group.members.iter().any(has_failed) && index > 0
    });
    if (by_group || has_mandatory) && first > 0 && first < usize::MAX && is_partial {
        return Some("a group is not completed while another has clusters in flight");
    }
    let most = block["maxFailures"].as_u64().unwrap_or(0);
    let smallest = if by_group {
        case.groups.iter().map(|group| group.members.len()).min().unwrap_or(0)
    } else {
        case.members().count()
    };
    (most > smallest as u64).then_some("maxFailures above the total is 0")
}

fn is_mandatory(group: &Group, block: &Value) -> bool {
    let listed = block["mandatoryDecisionGroups"].as_array().into_iter().flatten();
    listed.into_iter().any(|entry| entry["groupName"] == group.name.as_str())
}

fn has_missed(member: &Member, block: &Value) -> bool {
    let has_deadline = block.get("progressDeadline").is_some();
    member.status.is_some_and(|(status, secs)| {
        has_deadline && secs >= DEADLINE && [Status::Progressing, Status::Failed].contains(&status)
    })
}

fn is_in_flight(member: &Member, block: &Value) -> bool {
    let soaks = |secs: i64| block.get("minSuccessTime").is_some() && secs < SOAK;
    let is_started = |(status, secs)| status != Status::Succeeded || soaks(secs);
    member.status.is_some_and(is_started) && !has_missed(member, block)
}

/// A rollout that has come as far as some group, and sometimes a cluster that does not fit in.
fn random_case(random: &mut Random) -> Case {
    let count = 1 + random.below(4);
    let front = random.below(count + 1);
    let mut number = 0;
    let groups = (0..count).map(|index| {
        let members = (0..=random.below(4)).map(|_| {
            number += 1;
            let is_started = match index.cmp(&front) {
                std::cmp::Ordering::Less => !random.happens(10),
                std::cmp::Ordering::Equal => random.happens(500),
                std::cmp::Ordering::Greater => random.happens(20),
            };
            let share = if index < front { 900 } else { 300 };
            let status = is_started.then(|| random_status(random, share));
            Member { cluster: format!("cluster-{number:02}"), status }
        });
        let members = members.collect();
        let name = if index == 0 && random.happens(400) { "canary" } else { "" };
        Group { name: name.to_owned(), members }
    });
    let groups = groups.collect();
    Case { groups, strategy: random_strategy(random) }
}

fn random_status(random: &mut Random, successful: u64) -> (Status, i64) {
    let secs = i64::try_from(random.below(12) * 10).expect("a small number");
    let status = if random.happens(successful) {
        Status::Succeeded
    } else {
        [Status::ToApply, Status::Progressing, Status::Failed][random.below(3)]
    };
    (status, secs)
}

fn random_strategy(random: &mut Random) -> Value {
    let mut block = json!({});
    if random.happens(400) {
        block["progressDeadline"] = json!(format!("{DEADLINE}s"));
    }
    if random.happens(300) {
        block["minSuccessTime"] = json!(format!("{SOAK}s"));
    }
    if random.happens(400) {
        block["maxFailures"] =
            [json!(1), json!(2), json!("50%"), json!("100%")][random.below(4)].clone();
    }
    match random.below(5) {
        0 => {
            // Neither counts there.
            if let Some(fields) = block.as_object_mut() {
                fields.retain(|name, _| name == "progressDeadline");
            }
            json!({"type": "All", "all": block})
        }
        1 | 2 => {
            if random.happens(300) {
                block["mandatoryDecisionGroups"] = json!([{"groupName": "canary"}]);
            }
            let sizes = [json!(1), json!(2), json!(4), json!("25%"), json!("50%"), json!(0)];
            block["maxConcurrency"] = sizes[random.below(6)].clone();
            json!({"type": "Progressive", "progressive": block})
        }
        _ => {
            if random.happens(300) {
                block["mandatoryDecisionGroups"] = json!([{"groupName": "canary"}]);
            }
            json!({"type": "ProgressivePerGroup", "progressivePerGroup": block})
        }
    }
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).expect("below a usize")
    }

    fn happens(&mut self, thousandths: u64) -> bool {
        (self.below(1_000) as u64) < thousandths
    }
}
