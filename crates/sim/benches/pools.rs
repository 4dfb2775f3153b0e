//! How long a NodePool takes to get its nodes and to replace all of them after a change of its
//! template, in virtual time, and to start again:
//! `cargo bench --profile release -p convoy-sim --bench pools -- NODES`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench looks at the clock, and says what it measured"
)]

#[path = "common/figures.rs"]
mod figures;

use convoy_sim::simulation::pools::PoolRehearsal;

use self::figures::{numbers, processor_seconds, rehearse};

fn main() {
    let [nodes] = numbers([5_000]);
    println!("{nodes} nodes with a pod each, 50 budgets, a tenth disrupted at a time");
    rehearse(PoolRehearsal::new(nodes, || {
        println!("all nodes are there, processor time so far: {:.1} s", processor_seconds());
    }));
}
