//! The guide to Open Cluster Management, run from its first line to its last.

use crate::placements::guide::run_through;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/ocm.md");

#[test]
fn the_guide_to_ocm_prints_what_it_shows() {
    run_through(GUIDE, 15);
}
