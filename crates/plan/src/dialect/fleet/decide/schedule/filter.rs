//! Which clusters may carry a placement at all. The filters run in a fixed order and the first
//! one that fails gives the reason.

use std::borrow::Cow;

use convoy_api::Object;
use jiff::Timestamp;

use crate::dialect::fleet::names::Family;
use crate::dialect::fleet::read::member::ineligibility;
use crate::dialect::fleet::read::placement::{Placement, field, list};
use crate::dialect::fleet::read::policy::Wishes;
use crate::taint::{Taint, first_intolerable};

/// Why `cluster` may not carry the placement, whatever else is picked. None: it may.
pub(crate) fn refusal(
    placement: &Placement<'_>,
    wishes: &Wishes<'_>,
    cluster: &Object,
    now: Timestamp,
) -> Option<Cow<'static, str>> {
    affinity(wishes, cluster)
        .or_else(|| ineligibility(cluster, now))
        .map(Cow::Borrowed)
        .or_else(|| namespace(placement, cluster).map(Cow::Owned))
        .or_else(|| taint(wishes, cluster).map(Cow::Owned))
}

fn affinity(wishes: &Wishes<'_>, cluster: &Object) -> Option<&'static str> {
    let required = &wishes.required;
    let fits = required.is_empty() || required.iter().any(|term| term.matches(cluster));
    (!fits).then_some("cluster matches no required term of the cluster affinity")
}

/// A namespaced placement needs its namespace on the cluster, if the cluster reports them.
fn namespace(placement: &Placement<'_>, cluster: &Object) -> Option<String> {
    if placement.family == Family::Cluster {
        return None;
    }
    let collected = cluster.condition_status("NamespaceCollectionSucceeded") == Some("True");
    let namespaces = field(cluster.status(), "namespaces").as_object()?;
    let wanted = placement.namespace();
    let missing = collected && !namespaces.contains_key(wanted.as_str());
    missing.then(|| format!("cluster has no namespace {wanted:?}"))
}

fn taint(wishes: &Wishes<'_>, cluster: &Object) -> Option<String> {
    let taints: Vec<Taint<'_>> =
        list(cluster.spec(), "taints").iter().map(Taint::from_value).collect();
    let found = first_intolerable(&taints, &wishes.tolerations)?;
    Some(format!("taint {found} is not tolerated"))
}
