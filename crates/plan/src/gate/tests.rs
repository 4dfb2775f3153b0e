//! What the gate promises, over all limits and candidates.

use proptest::prelude::*;

use super::*;

fn slots(in_flight: u32, ceiling: u32) -> Limit {
    Limit::slots("maxUnavailable", in_flight, ceiling, ["busy"])
}

#[test]
fn the_smallest_room_decides_and_of_equals_the_first_explains() {
    let cases = [
        ("the smallest", 5, vec![slots(0, 3), Limit::batch(2, 1)], 1, "batch 2 is full (size 1)"),
        (
            "the first of equals",
            5,
            vec![Limit::closed(HoldReason::Paused), Limit::closed(HoldReason::Disabled)],
            0,
            "paused",
        ),
        (
            "numbers after",
            5,
            vec![slots(1, 3)],
            2,
            "3 of 3 slots of maxUnavailable in use by busy and 2 more",
        ),
        (
            "over full",
            5,
            vec![slots(4, 3)],
            0,
            "maxUnavailable allows 3, but 4 are in use by busy and 3 more",
        ),
        (
            "a floor",
            5,
            vec![Limit::floor("minAvailable", 5, 3, 0, [""; 0])],
            2,
            "minAvailable requires 3, and 3 are available; 2 are not",
        ),
    ];
    for (case, wanted, limits, count, told) in cases {
        let grant = grant(wanted, &limits);
        assert_eq!(grant.count, count, "{case}");
        assert_eq!(grant.hold.map(|hold| hold.to_string()).as_deref(), Some(told), "{case}");
    }
    let all = grant(2, &[slots(0, 2)]);
    assert_eq!((all.count, all.hold), (2, None));
    assert_eq!(grant(2, &[]).permit(), Some(Permit(())));
    assert_eq!(grant(2, &[slots(1, 1)]).permit(), None);
}

#[test]
fn whoever_starts_is_named_to_those_who_wait() {
    let candidates = vec![
        Candidate::blocked("a", 0, HoldReason::Draining { pods: 1 }),
        Candidate::free("b", 1),
        Candidate::free("c", 2),
    ];
    let admission = admit(candidates, &[slots(1, 2)]);
    assert_eq!(admission.starts, [Member { name: "b", index: 1 }]);
    let told: Vec<String> =
        admission.holds.iter().map(|(member, hold)| format!("{}: {hold}", member.name)).collect();
    let full = "c: 2 of 2 slots of maxUnavailable in use by busy, b";
    assert_eq!(told, ["a: draining, 1 pod left", full]);
}

fn limit() -> impl Strategy<Value = Limit> {
    let slots = (0..12u32, 0..12u32).prop_map(|(in_flight, ceiling)| slots(in_flight, ceiling));
    let floor =
        (0..12u32, 0..12u32).prop_map(|(has, needs)| Limit::floor("min", has, needs, 0, [""; 0]));
    let batch = (0..12u32).prop_map(|size| Limit::batch(1, size));
    prop_oneof![slots, floor, batch, Just(Limit::closed(HoldReason::Paused))]
}

fn candidates() -> impl Strategy<Value = Vec<Candidate<'static>>> {
    let obstacles = proptest::collection::vec(any::<bool>(), 0..12);
    obstacles.prop_map(|obstacles| {
        let candidate = |(index, is_blocked)| {
            let obstacle = Some(HoldReason::NoReason).filter(|_| is_blocked);
            Candidate { obstacle, ..Candidate::free("m", index) }
        };
        obstacles.into_iter().enumerate().map(candidate).collect()
    })
}

/// Whoever starts is missing from then on.
#[test]
fn a_floor_names_who_is_not_available() {
    let floor = [Limit::floor("minAvailable", 3, 2, 4, ["down-1", "down-2"])];
    let admission = admit(vec![Candidate::free("a", 0), Candidate::free("b", 1)], &floor);
    let told: Vec<String> = admission.holds.iter().map(|(_, hold)| hold.to_string()).collect();
    let named = "not available: down-1, down-2, a and 2 more";
    assert_eq!(told, [format!("minAvailable requires 2, and 2 are available; {named}")]);
    let unnamed = [Limit::floor("minAvailable", 8, 8, 8, [""; 0])];
    let told = grant(1, &unnamed).hold.map(|hold| hold.to_string());
    assert_eq!(told.as_deref(), Some("minAvailable requires 8, and 8 are available; 8 are not"));
}

proptest! {
    #![proptest_config(convoy_testkit::property::config(256))]

    #[test]
    fn starts_are_the_minimum_and_everyone_else_has_one_hold(
        candidates in candidates(),
        limits in proptest::collection::vec(limit(), 0..5),
    ) {
        let free = candidates.iter().filter(|candidate| candidate.obstacle.is_none()).count();
        let all = candidates.len();
        let admission = admit(candidates, &limits);
        let least = limits.iter().map(Limit::room).min().unwrap_or(u32::MAX);
        prop_assert_eq!(admission.starts.len(), free.min(usize::try_from(least).unwrap()));
        let mut seen: Vec<usize> = admission.starts.iter().map(|member| member.index).collect();
        seen.extend(admission.holds.iter().map(|(member, _)| member.index));
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..all).collect::<Vec<_>>());
    }

    #[test]
    fn without_a_limit_no_fewer_start(
        candidates in candidates(),
        limits in proptest::collection::vec(limit(), 1..5),
        away in 0..5usize,
    ) {
        let mut fewer = limits.clone();
        fewer.remove(away % limits.len());
        let (with, without) = (admit(candidates.clone(), &limits), admit(candidates, &fewer));
        prop_assert!(without.starts.len() >= with.starts.len());
    }

    #[test]
    fn a_hold_names_a_limit_that_is_full(
        candidates in candidates(),
        limits in proptest::collection::vec(limit(), 0..5),
    ) {
        let started = crate::count(admit(candidates.clone(), &limits).starts.len());
        for (_, hold) in admit(candidates, &limits).holds {
            match hold {
                HoldReason::BudgetSpent { in_flight, ceiling, .. } => {
                    prop_assert!(in_flight >= ceiling);
                    prop_assert!(in_flight == ceiling || started == 0, "it was over before");
                }
                HoldReason::AvailabilityFloor { available, required, .. } => {
                    prop_assert!(available <= required);
                    prop_assert!(available == required || started == 0, "it was below before");
                }
                HoldReason::BatchFull { size, .. } => prop_assert_eq!(size, started),
                _ => prop_assert!(started == 0 || hold == HoldReason::NoReason),
            }
        }
    }

    #[test]
    fn a_number_is_granted_like_as_many_members(
        wanted in 0..12usize,
        limits in proptest::collection::vec(limit(), 0..5),
    ) {
        let candidates: Vec<_> = (0..wanted).map(|index| Candidate::free("m", index)).collect();
        let admission = admit(candidates, &limits);
        let grant = grant(crate::count(wanted), &limits);
        prop_assert_eq!(crate::count(admission.starts.len()), grant.count);
        prop_assert_eq!(admission.holds.is_empty(), grant.hold.is_none());
    }

    #[test]
    fn whoever_is_asked_about_one_by_one_is_told_the_same(
        candidates in candidates(),
        mut limits in proptest::collection::vec(limit(), 0..5),
    ) {
        let together = admit(candidates.clone(), &limits);
        let (mut starts, mut holds) = (Vec::new(), Vec::new());
        for candidate in candidates {
            let name = candidate.member.name;
            let admission = admit(vec![candidate], &limits);
            if !admission.starts.is_empty() {
                spend(&mut limits, name);
            }
            starts.extend(admission.starts);
            holds.extend(admission.holds);
        }
        prop_assert_eq!(starts, together.starts);
        prop_assert_eq!(holds, together.holds);
    }
}
