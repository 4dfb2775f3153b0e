//! Skyhooks, met with stock kubectl: upstream's own acceptance scenarios, the worked examples of
//! its document, and our guide. What they write on nodes, pods and statuses is compared with what
//! upstream's tools read.

mod batches;
mod config;
mod examples;
mod failures;
mod interrupts;
mod options;
mod order;
mod packages;
pub(crate) mod policies;
pub(crate) mod record;
mod removal;
mod safety;
mod sample_policy;
mod samples;
pub(crate) mod site;
mod starting_over;
mod taints;
mod versions;
mod waiting;
pub(crate) mod words;

use record::{course, words};
use site::Site;

#[test]
fn the_guide_rolls_out() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/skyhook.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = guide.split_once("```yaml\n").unwrap();
    let (objects, _) = rest.split_once("```").unwrap();
    let site = Site::alone();
    let nodes = site.record_nodes();
    site.access.kubectl_with("apply -f -", objects);
    site.access.kubectl("wait --for=condition=Ready skyhook/tuning --timeout=120s");
    let skyhook = site.skyhook("tuning");
    assert_eq!(skyhook["status"]["completeNodes"], "15/15");
    let course = course(&words(&nodes.all(&site.node(0)), "tuning"), &site.nodes);
    assert!(course.contains(&1) && course.iter().all(|count| *count <= 5), "{course:?}");
}
