//! What the fuzz targets share: bytes or damaged objects in, everything `convoy` would say out.

use std::sync::LazyLock;

use arbitrary::Unstructured;
use convoy_cli::finding;
use convoy_cli::input::{Bag, Limits, read_bytes};
use convoy_cli::report::Report;
use convoy_testkit::mutate::Templates;
use jiff::Timestamp;
use serde_json::Value;

static TEMPLATES: LazyLock<Templates> = LazyLock::new(|| {
    Templates::from_vectors(&[
        include_str!("../../crates/cli/tests/vectors/deployment.json"),
        include_str!("../../crates/cli/tests/vectors/karpenter.json"),
        include_str!("../../crates/cli/tests/vectors/kubefleet.json"),
        include_str!("../../crates/cli/tests/vectors/ocm.json"),
        include_str!("../../crates/cli/tests/vectors/skyhook.json"),
    ])
});

/// Small enough that a fuzzer's memory limit is never the one that is met.
const LIMITS: Limits = Limits { file_bytes: 1 << 20, values: 200_000, alias_bytes: 4 << 20 };

/// What `convoy` reads from a file with these bytes.
pub fn bag_of_bytes(bytes: &[u8]) -> Bag {
    let mut bag = Bag::default();
    // The first byte picks the name, which decides what brackets may mean.
    let (name, rest) = match bytes.split_first() {
        Some((first, rest)) if first % 2 == 0 => ("fuzz.yaml", rest),
        Some((_, rest)) => ("fuzz.json", rest),
        None => ("fuzz.yaml", bytes),
    };
    read_bytes(name, rest.to_vec(), LIMITS, &mut bag);
    bag
}

/// Objects from the vectors, damaged as `bytes` say, and an instant.
pub fn bag_of_objects(bytes: &[u8]) -> Option<(Bag, Timestamp)> {
    let mut source = Unstructured::new(bytes);
    let now = instant(&mut source)?;
    let objects = TEMPLATES.bag(&mut source).ok()?;
    let mut bag = Bag::default();
    for object in objects {
        read_bytes("fuzz.json", object.to_string().into_bytes(), LIMITS, &mut bag);
    }
    Some((bag, now))
}

/// The instant of most vectors, sometimes another, sometimes the end of time.
fn instant(source: &mut Unstructured<'_>) -> Option<Timestamp> {
    match source.int_in_range(0..=9).ok()? {
        0 => Some(Timestamp::MIN),
        1 => Some(Timestamp::MAX),
        2 => {
            let secs = source.int_in_range(-62_000_000_000_i64..=250_000_000_000).ok()?;
            Timestamp::from_second(secs).ok()
        }
        _ => Timestamp::from_second(1_767_225_600).ok(),
    }
}

/// Everything that `convoy plan` would print.
pub fn plan(bag: Bag, now: Timestamp) -> (String, Value) {
    let report = Report::new(bag, now, &[], true);
    (report.to_text(), report.to_json())
}

/// Everything that `convoy validate` would print.
pub fn validate(bag: &Bag) -> Value {
    finding::to_json(&finding::all(bag, &convoy_plan::validate(&bag.world)))
}
