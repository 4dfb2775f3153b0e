//! What a managed cluster asks of its agent, and what its nodes and claims say.

pub(crate) mod resources;

use convoy_api::Object;
use convoy_api::object::member::{field, text};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Options;
use super::names::{MEMBER_ONLY, RESERVED_CLAIMS};

/// The lease duration of a cluster that gives none.
const DEFAULT_LEASE_SECS: i64 = 60;
/// An hour; a longer duration is renewed as often.
const LEASE_SECS_MAX: i64 = 3600;

/// The time between two renewals: the lease duration, up to 10 % less so that not all clusters of
/// a hub renew in the same instant; always the same for one cluster.
pub(crate) fn period(cluster: &Object) -> SignedDuration {
    let secs = field(cluster.spec(), "leaseDurationSeconds").as_i64().filter(|secs| *secs > 0);
    let secs = secs.unwrap_or(DEFAULT_LEASE_SECS).min(LEASE_SECS_MAX);
    let spread: i64 = cluster.name().bytes().map(i64::from).sum::<i64>() % 101;
    SignedDuration::from_millis(secs.saturating_mul(1000 - spread))
}

/// When a Lease was renewed last; none if it never was.
pub(crate) fn renewed_at(lease: &Object) -> Option<Timestamp> {
    timestamp(lease.spec().get("renewTime"))
}

/// The claims to report: reserved ones, and as many others as may be, each by name.
pub(crate) fn claims(claims: &[&Object], options: &Options) -> Vec<Value> {
    let exposed = claims.iter().filter(|claim| claim.label(MEMBER_ONLY).is_none()).copied();
    let is_reserved = |claim: &&Object| {
        let name = claim.name().as_str();
        let mut suffixes = options.reserved_cluster_claim_suffixes.iter();
        RESERVED_CLAIMS.contains(&name) || suffixes.any(|suffix| name.ends_with(suffix.as_str()))
    };
    let (mut reserved, mut custom): (Vec<&Object>, Vec<&Object>) = exposed.partition(is_reserved);
    reserved.sort_by_key(|claim| claim.name());
    custom.sort_by_key(|claim| claim.name());
    custom.truncate(options.max_custom_cluster_claims);
    let all = reserved.into_iter().chain(custom);
    all.map(|claim| json!({"name": claim.name(), "value": text(claim.spec(), "value")})).collect()
}
