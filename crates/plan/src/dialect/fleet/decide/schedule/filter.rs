//! Which clusters may carry a placement at all. The filters run in a fixed order and the first
//! one that fails gives the reason.

use std::borrow::Cow;

use convoy_api::Object;
use jiff::Timestamp;

use crate::dialect::fleet::names::Family;
use crate::dialect::fleet::read::member::{ineligibility, namespaces, taints};
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::read::policy::SchedulingPolicy;
use crate::taint::first_intolerable;

/// Why `cluster` may not carry the placement, whatever else is picked. None: it may.
pub(crate) fn refusal(
    placement: &Placement<'_>,
    policy: &SchedulingPolicy<'_>,
    cluster: &Object,
    now: Timestamp,
) -> Option<Cow<'static, str>> {
    affinity(policy, cluster)
        .or_else(|| ineligibility(cluster, now))
        .map(Cow::Borrowed)
        .or_else(|| namespace(placement, cluster).map(Cow::Owned))
        .or_else(|| taint(policy, cluster).map(Cow::Owned))
}

fn affinity(policy: &SchedulingPolicy<'_>, cluster: &Object) -> Option<&'static str> {
    let required = &policy.required;
    let fits = required.is_empty() || required.iter().any(|term| term.matches(cluster));
    (!fits).then_some("cluster matches no required term of the cluster affinity")
}

/// A namespaced placement needs its namespace on the cluster, if the cluster reports them.
fn namespace(placement: &Placement<'_>, cluster: &Object) -> Option<String> {
    if placement.family == Family::Cluster {
        return None;
    }
    let wanted = placement.namespace();
    let is_missing = !namespaces(cluster)?.contains_key(wanted.as_str());
    is_missing.then(|| format!("cluster has no namespace {wanted:?}"))
}

fn taint(policy: &SchedulingPolicy<'_>, cluster: &Object) -> Option<String> {
    let taints = taints(cluster);
    let found = first_intolerable(&taints, &policy.tolerations)?;
    Some(format!("taint {found} is not tolerated"))
}
