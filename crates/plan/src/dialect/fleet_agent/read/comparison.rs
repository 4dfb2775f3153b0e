//! What differs between a manifest and the object on the member.

use convoy_api::Object;

use super::desired::{comparable, overlaid, sanitized};
use super::manifest::Manifest;
use super::strategy::Comparison;
use crate::json_diff::{Difference, differences};

/// No status tells more about one object.
const DETAILS_MAX: usize = 100;

const REDACTED: &str = "(redacted for security reasons)";

/// The differences, with the data of secrets left out.
pub(crate) fn compared(manifest: &Manifest<'_>, live: &Object, how: Comparison) -> Vec<Difference> {
    let member = comparable(live.raw());
    let mut hub = match how {
        Comparison::Full => sanitized(manifest.raw),
        Comparison::Partial => overlaid(manifest, live),
    };
    hub["apiVersion"] = live.api_version().into();
    let mut found = differences(&comparable(&hub), &member, DETAILS_MAX);
    let kind = live.kind();
    if kind.group.is_empty() && kind.kind == "Secret" {
        let data = |it: &&mut Difference| {
            it.path.starts_with("/data") || it.path.starts_with("/stringData")
        };
        for difference in found.iter_mut().filter(data) {
            for side in [&mut difference.in_hub, &mut difference.in_member] {
                *side = side.as_ref().map(|_| REDACTED.to_owned());
            }
        }
    }
    found
}
