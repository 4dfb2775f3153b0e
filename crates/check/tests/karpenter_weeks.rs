//! Weeks of a pool in virtual time: templates and budgets change, windows open and close, nodes
//! fail and recover. Every write is watched: no disruption starts beyond what its reason allows,
//! no pod is evicted against its budget, and no node stays tainted after its disruption.

#[path = "karpenter_weeks/home.rs"]
mod home;

use convoy_testkit::{property, seeds};
use home::{Home, Random};
use serde_json::{Value, json};

/// A budget whose window, if it has one, opens at a full hour of every day.
fn budget(random: &mut Random) -> Value {
    let nodes = ["0", "1", "2", "34%", "100%"][random.below(5)];
    let mut budget = json!({"nodes": nodes});
    if random.below(2) == 0 {
        let reason = ["Drifted", "Underutilized", "Empty"][random.below(3)];
        budget["reasons"] = json!([reason]);
    }
    if random.below(2) == 0 {
        budget["schedule"] = json!(format!("0 {} * * *", random.below(24)));
        budget["duration"] = json!(format!("{}h", 1 + random.below(12)));
    }
    budget
}

/// What people and machines do to a pool, at some hours.
fn befall(home: &mut Home, random: &mut Random) {
    match random.below(6) {
        0 | 1 => home.change_template(),
        2 => home.change_budgets((0..random.below(4)).map(|_| budget(random)).collect()),
        3 => home.scale(2 + random.below(9)),
        4 => home.fail_node(random.below(8)),
        _ => home.recover_nodes(),
    }
}

/// Disruptions and evictions in the weeks of a seed.
fn weeks(seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let mut home = Home::new(seed, 6);
    home.run_for_hours(1);
    for _ in 0..12 {
        befall(&mut home, &mut random);
        home.run_for_hours(1 + u32::try_from(random.below(48)).expect("small"));
    }
    home.recover_nodes();
    home.change_budgets(vec![json!({"nodes": "100%"})]);
    home.run_for_hours(48);
    home.is_at_rest();
    home.seen
}

/// Enough to meet every pair of what befalls a pool.
const SEEDS: u32 = 1_000;

#[test]
fn pools_keep_their_budgets_for_weeks() {
    let test = "--test karpenter_weeks";
    let seen = seeds::every_seed("convoy-check", test, SEEDS, |seed| Ok(weeks(seed)));
    let disruptions: usize = seen.iter().map(|(disruptions, _)| disruptions).sum();
    let evictions: usize = seen.iter().map(|(_, evictions)| evictions).sum();
    let count = seen.len();
    eprintln!("{count} seeds, {disruptions} disruptions, {evictions} evictions");
    // A few of each in the weeks of most seeds: otherwise nothing was watched.
    assert!(disruptions > 3 * count, "{disruptions} disruptions of {count} seeds");
    assert!(evictions > 3 * count, "{evictions} evictions of {count} seeds");
}

#[test]
fn nodes_that_fail_are_repaired_one_at_a_time() {
    for seed in property::seeds(20) {
        let mut random = Random::new(seed);
        let mut home = Home::new(seed, 6).repairing();
        home.run_for_hours(1);
        for _ in 0..24 {
            home.fail_node(random.below(3));
            if random.below(3) == 0 {
                home.change_template();
            }
            home.run_for_hours(1);
            assert!(home.is_up(), "seed {seed}: a node stays down");
        }
        home.run_for_hours(24);
        home.is_at_rest();
    }
}
