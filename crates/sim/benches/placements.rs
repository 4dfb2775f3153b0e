//! How long the hub of a large fleet takes to place resources, in virtual time, and to start again:
//! `cargo bench --profile release -p convoy-sim --bench placements -- MEMBERS PLACEMENTS CLUSTERS`,
//! where each placement is on CLUSTERS of the members.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench looks at the clock, and says what it measured"
)]

#[path = "common/figures.rs"]
mod figures;

use convoy_sim::simulation::placements::PlacementRehearsal;

use self::figures::{numbers, rehearse};

fn main() {
    let [members, placements, clusters] = numbers([1_000, 1_000, 10]);
    println!("{members} members, {placements} placements on {clusters} of them each");
    rehearse(PlacementRehearsal::new(members, placements, clusters));
}
