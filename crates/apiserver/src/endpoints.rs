//! Where the services are that webhooks stand behind.

use convoy_api::well_known::label::SERVICE_NAME;
use serde_json::Value;

use crate::hook_client::Services;
use crate::resource_request::ResourceRequest;

/// There is no cluster network here: a service is wherever its endpoints are.
impl Services for ResourceRequest {
    fn endpoint(&self, namespace: &str, name: &str, port: u64) -> Option<(String, u64)> {
        let request = self;
        let read = |group: &str, plural: &str| {
            let resource = request.registry.get(group, "v1", plural)?;
            let key = request.cluster.shelf(resource).key(namespace, name);
            request
                .server
                .store
                .snapshot()
                .get(&key)
                .map(|entry| crate::encoding::read_entry(entry))
        };
        let service = read("", "services")?;
        let mut ports = service["spec"]["ports"].as_array()?.iter();
        let port_name = ports.find(|one| one["port"].as_u64() == Some(port))?["name"].clone();
        let endpoints = read("", "endpoints").unwrap_or_default();
        let mut subsets = endpoints["subsets"].as_array().into_iter().flatten();
        let found = subsets.find_map(|subset| {
            let port = port_of(subset, &port_name)?;
            let address = subset["addresses"].as_array()?.first()?["ip"].as_str()?;
            Some((address.to_owned(), port))
        });
        found.or_else(|| sliced(request, namespace, name, &port_name))
    }
}

/// The same, by the slices of a service that has no Endpoints.
fn sliced(
    request: &ResourceRequest,
    namespace: &str,
    name: &str,
    port_name: &Value,
) -> Option<(String, u64)> {
    let resource = request.registry.get("discovery.k8s.io", "v1", "endpointslices")?;
    let snapshot = request.server.store.snapshot();
    let shelf = request.cluster.shelf(resource);
    let mut slices = snapshot
        .list_from(&shelf, namespace, "")
        .take_while(|entry| entry.key.namespace == namespace)
        .filter(|entry| entry.meta.label(SERVICE_NAME) == Some(name))
        .map(|entry| crate::encoding::read_entry(entry));
    slices.find_map(|slice| {
        let port = port_of(&slice, port_name)?;
        // What does not say is taken for ready.
        let mut endpoints = slice["endpoints"].as_array()?.iter();
        let ready = endpoints.find(|endpoint| endpoint["conditions"]["ready"] != false)?;
        let address = ready["addresses"].as_array()?.first()?.as_str()?;
        Some((address.to_owned(), port))
    })
}

fn port_of(of: &Value, name: &Value) -> Option<u64> {
    let text = |name: &Value| name.as_str().unwrap_or_default().to_owned();
    let mut ports = of["ports"].as_array()?.iter();
    ports.find(|one| text(&one["name"]) == text(name))?["port"].as_u64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::TestServer;

    #[test]
    fn a_service_is_where_its_endpoints_or_slices_are() {
        let test = TestServer::new();
        test.create("/api/v1/namespaces", &json!({"metadata": {"name": "a"}}));
        let port = json!([{"name": "https", "port": 443}]);
        test.create(
            "/api/v1/namespaces/a/services",
            &json!({"metadata": {"name": "hook"}, "spec": {"ports": port}}),
        );
        let cluster = test.server.cluster("").unwrap();
        let registry = cluster.registry();
        let resource = registry.get("", "v1", "services").unwrap();
        let found = || {
            let request = ResourceRequest::internal(&test.server, &cluster, resource, "a", "hook");
            request.endpoint("a", "hook", 443)
        };
        assert_eq!(found(), None);
        let slice = json!({"metadata": {"name": "hook-1", "labels": {SERVICE_NAME: "hook"}},
            "addressType": "IPv4", "ports": [{"name": "https", "port": 8443}], "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.2"]}]});
        test.create("/apis/discovery.k8s.io/v1/namespaces/a/endpointslices", &slice);
        assert_eq!(found(), Some(("10.0.0.2".to_owned(), 8_443)));
        let endpoints = json!({"metadata": {"name": "hook"}, "subsets": [
            {"addresses": [{"ip": "10.0.0.3"}], "ports": [{"name": "https", "port": 9443}]}]});
        test.create("/api/v1/namespaces/a/endpoints", &endpoints);
        assert_eq!(found(), Some(("10.0.0.3".to_owned(), 9_443)));
    }
}
