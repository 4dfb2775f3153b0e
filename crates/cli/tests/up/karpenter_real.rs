//! NodePools and NodeClaims on a real API server with simulated nodes attached, with the account of
//! `deploy/karpenter`.

use std::sync::OnceLock;

use convoy_kubernetes::Process;

use crate::access::Access;
use crate::home::real_with_karpenter;
use crate::karpenter::{apply, class, drifts_within_its_budget, fill, keeps_its_meaning};

/// The cluster, started once for all tests.
pub(crate) fn cluster() -> &'static Access {
    static CLUSTER: OnceLock<(Access, Vec<Process>)> = OnceLock::new();
    let (access, _) = CLUSTER.get_or_init(|| {
        let (access, processes) = real_with_karpenter();
        apply(&access, &class());
        (access, processes)
    });
    access
}

#[test]
fn a_pool_makes_nodes_and_drifts_within_its_budget_with_least_rights() {
    let cluster = cluster();
    fill(cluster);
    drifts_within_its_budget(cluster);
}

#[test]
fn a_pool_of_v1beta1_is_converted_by_the_webhook() {
    let cluster = cluster();
    let definition = cluster.get("crd nodepools.karpenter.sh");
    let conversion = &definition["spec"]["conversion"];
    assert_eq!(conversion["strategy"], "Webhook", "{conversion}");
    // It takes the API server a moment to see that.
    let mut probe = crate::karpenter::pool(&serde_json::json!({"consolidateAfter": "Never"}));
    probe["metadata"]["name"] = "probe".into();
    apply(cluster, &probe);
    cluster.until("nodepools.v1beta1.karpenter.sh probe", |pool| {
        pool["spec"]["template"]["spec"]["nodeClassRef"]["apiVersion"].is_string()
    });
    keeps_its_meaning(cluster);
    cluster.kubectl("delete nodepools.v1beta1.karpenter.sh probe older --timeout=60s");
}
