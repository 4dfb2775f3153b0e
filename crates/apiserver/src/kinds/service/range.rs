//! The range of addresses that services get theirs from.

use std::net::Ipv4Addr;

use serde_json::Value;

use crate::object_meta::Snapshot;
use crate::resource_request::ResourceRequest;

/// Where clusters have their services unless they say otherwise.
const RANGE: Range = Range { first: u32::from_be_bytes([10, 96, 0, 0]), bits: 16 };

/// A block of addresses of the fourth version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    first: u32,
    bits: u32,
}

impl Range {
    /// The range that the cluster's own object names.
    pub(super) fn of(request: &ResourceRequest, snapshot: &Snapshot) -> Self {
        let resource = request.registry.get("networking.k8s.io", "v1", "servicecidrs");
        let key =
            request.cluster.shelf(resource.expect("a built-in resource")).key("", "kubernetes");
        let Some(entry) = snapshot.get(&key) else { return RANGE };
        let object = crate::encoding::read_entry(entry);
        let ranges = object["spec"]["cidrs"].as_array().into_iter().flatten();
        ranges.filter_map(Value::as_str).find_map(Self::parse).unwrap_or(RANGE)
    }

    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        let bits = 32_u32.checked_sub(length.parse().ok()?)?;
        // Smaller ones have no room between their first and last address.
        (2..=24)
            .contains(&bits)
            .then(|| Self { first: u32::from(address) & (u32::MAX << bits), bits })
    }

    fn size(self) -> u32 {
        1 << self.bits
    }

    /// The first and the last address are not for services.
    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.first);
        (1..self.size() - 1).contains(&offset)
    }

    /// An address that nobody has. The lower part is left to those who choose for themselves,
    /// as long as there is another.
    pub(super) fn free(
        self,
        request: &ResourceRequest,
        is_taken: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let reserved = (self.size() / 16).clamp(16, 256).min(self.size() / 2);
        let random = request.server.surroundings.random();
        let random = u32::from_be_bytes([random[0], random[1], random[2], random[3]]);
        let around = |from: u32, to: u32| {
            let count = to.saturating_sub(from).max(1);
            (0..count).map(move |step| from + (random % count + step) % count)
        };
        let last = self.size() - 1;
        let candidates = around(reserved, last).chain(around(1, reserved));
        candidates
            .map(|offset| Ipv4Addr::from(self.first + offset).to_string())
            .find(|address| !is_taken(address))
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), 32 - self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_know_their_own() {
        let range = Range::parse("10.96.0.0/16").unwrap();
        assert_eq!((range, range.to_string().as_str()), (RANGE, "10.96.0.0/16"));
        assert_eq!(Range::parse("10.0.0.0/31"), None);
        for (address, expected) in [
            ("10.96.0.0", false),
            ("10.96.0.1", true),
            ("10.96.255.254", true),
            ("10.96.255.255", false),
            ("10.95.0.1", false),
        ] {
            assert_eq!(range.contains(address.parse().unwrap()), expected, "{address}");
        }
    }
}
