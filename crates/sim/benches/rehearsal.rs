//! How long it takes to rehearse a Skyhook on a large fleet in virtual time:
//! `cargo bench -p convoy-sim --bench rehearsal -- NODES PACKAGES`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench looks at the clock, and says what it measured"
)]

#[path = "common/figures.rs"]
mod figures;

use convoy_sim::simulation::rehearsal::Rehearsal;

use self::figures::{numbers, rehearse};

fn main() {
    let [nodes, packages] = numbers([10_000, 1]);
    println!("{nodes} nodes, packages: {packages}");
    rehearse(Rehearsal::new(nodes, packages as usize));
}
