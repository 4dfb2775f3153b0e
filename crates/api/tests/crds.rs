//! The CRDs of every dialect against what an API server demands of CRDs.

use convoy_api::schema;

#[test]
fn every_crd_is_one_that_an_api_server_serves_with_its_schema() {
    for dialect in ["skyhook", "fleet", "apps", "karpenter", "ocm"] {
        for crd in schema::crds(dialect).expect("all five are dialects") {
            let errors = schema::structural_errors(&crd);
            assert!(errors.is_empty(), "{}:\n{}", crd.spec.names.kind, errors.join("\n"));
        }
    }
}
