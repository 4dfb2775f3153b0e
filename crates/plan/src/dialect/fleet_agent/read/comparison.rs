//! What differs between a manifest and the object on the member.

use convoy_api::Object;

use super::desired::{comparable, overlaid, sanitized};
use super::immutable::is_immutable;
use super::manifest::Manifest;
use super::strategy::Comparison;
use crate::json_diff::{Difference, differences};

/// No status tells more about one object.
const DETAILS_MAX: usize = 100;

const REDACTED: &str = "(redacted for security reasons)";

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Compared {
    /// With the data of secrets left out.
    pub(crate) differences: Vec<Difference>,
    /// All fields were compared though only those of the manifest count: one of these can never
    /// become as the manifest says.
    pub(crate) is_degraded: bool,
}

pub(crate) fn compared(manifest: &Manifest<'_>, live: &Object, how: Comparison) -> Compared {
    let found = differences_of(manifest, live, how);
    let is_degraded =
        how == Comparison::Partial && found.iter().any(|it| is_immutable(live, &it.path));
    if !is_degraded {
        return Compared { differences: found, is_degraded };
    }
    Compared { differences: differences_of(manifest, live, Comparison::Full), is_degraded }
}

fn differences_of(manifest: &Manifest<'_>, live: &Object, how: Comparison) -> Vec<Difference> {
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
