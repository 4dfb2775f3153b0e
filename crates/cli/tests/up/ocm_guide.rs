//! The guide to Open Cluster Management, run from its first line to its last.

use crate::placements::guide::run_through;

#[test]
fn the_guide_to_ocm_prints_what_it_shows() {
    run_through("up/ocm_guide.rs::the_guide_to_ocm_prints_what_it_shows", 15);
}
