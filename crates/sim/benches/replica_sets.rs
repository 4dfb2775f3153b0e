//! How long the hub of Open Cluster Management takes to register a large fleet, cut it into decision
//! groups and roll a template through them, in virtual time, and to start again:
//! `cargo bench --profile release -p convoy-sim --bench replica_sets -- CLUSTERS`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench looks at the clock, and says what it measured"
)]

#[path = "common/figures.rs"]
mod figures;

use convoy_sim::simulation::replica_sets::ReplicaSetRehearsal;

use self::figures::{numbers, rehearse};

fn main() {
    let [clusters] = numbers([3_500]);
    println!("{clusters} clusters in groups of 150, canaries first, then 10% at a time");
    rehearse(ReplicaSetRehearsal::new(clusters));
}
