//! Shared by the fuzz targets: bytes or damaged objects in, the output of `convoy` out.

pub mod server;

use std::sync::LazyLock;

use arbitrary::Unstructured;
use convoy_cli::finding;
use convoy_cli::input::{Limits, Manifests, read_bytes};
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

/// Small enough to stay below the memory limit of the fuzzer.
const LIMITS: Limits = Limits { file_bytes: 1 << 20, values: 200_000, alias_bytes: 4 << 20 };

/// The objects that `convoy` reads from a file with these bytes.
pub fn manifests_from_bytes(bytes: &[u8]) -> Manifests {
    let mut manifests = Manifests::default();
    // The first byte selects the file name, and with it the syntax.
    let (name, rest) = match bytes.split_first() {
        Some((first, rest)) if first % 2 == 0 => ("fuzz.yaml", rest),
        Some((_, rest)) => ("fuzz.json", rest),
        None => ("fuzz.yaml", bytes),
    };
    read_bytes(name, rest.to_vec(), LIMITS, &mut manifests);
    manifests
}

/// Objects from the vectors, damaged as `bytes` decide, and a time.
pub fn manifests_from_objects(bytes: &[u8]) -> Option<(Manifests, Timestamp)> {
    let mut source = Unstructured::new(bytes);
    let now = instant(&mut source)?;
    let objects = TEMPLATES.objects(&mut source).ok()?;
    let mut manifests = Manifests::default();
    for object in objects {
        read_bytes("fuzz.json", object.to_string().into_bytes(), LIMITS, &mut manifests);
    }
    Some((manifests, now))
}

/// The time of most vectors, sometimes another, sometimes the earliest or latest possible.
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

/// The output of `convoy plan`.
pub fn plan(manifests: Manifests, now: Timestamp) -> (String, Value) {
    let report = Report::new(manifests, now, &[], true);
    (convoy_cli::text::plan(&report), report.to_json())
}

/// The output of `convoy validate`.
pub fn validate(manifests: &Manifests) -> Value {
    finding::to_json(&finding::all(manifests, &convoy_plan::validate(&manifests.world)))
}
