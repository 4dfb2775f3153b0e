//! Addresses and node ports as clients see them come and go.

use serde_json::{Value, json};

use crate::testing::TestServer;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn server() -> TestServer {
    let server = TestServer::new();
    server.call("POST", "/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
    server
}

fn service(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["ports"] = json!([{"port": 80}]);
    json!({"metadata": {"name": name}, "spec": spec})
}

#[test]
fn every_service_has_an_address_of_its_own() {
    let server = server();
    let first = server.create(SERVICES, &service("a", json!({})));
    let address = first["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("10.96."), "{address}");
    let path = format!("/apis/networking.k8s.io/v1/ipaddresses/{address}");
    assert_eq!(server.get(&path)["spec"]["parentRef"]["name"], "a");
    let (code, answer) =
        server.call("POST", SERVICES, &service("b", json!({"clusterIP": address})));
    assert_eq!(code, 422);
    let message = answer["message"].as_str().unwrap();
    assert!(message.ends_with("provided IP is already allocated"), "{message}");
    assert_eq!(server.call("DELETE", &format!("{SERVICES}/a"), &Value::Null).0, 200);
    assert_eq!(server.call("GET", &path, &Value::Null).0, 404);
    server.create(SERVICES, &service("b", json!({"clusterIP": address})));
}

#[test]
fn node_ports_come_and_go_with_the_type() {
    let server = server();
    let made = server.create(SERVICES, &service("a", json!({"type": "NodePort"})));
    let port = made["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    assert!((30_000..=32_767).contains(&port));
    let mut taken = service("b", json!({"type": "NodePort"}));
    taken["spec"]["ports"][0]["nodePort"] = json!(port);
    let (code, answer) = server.call("POST", SERVICES, &taken);
    assert_eq!(code, 422);
    assert!(answer["message"].as_str().unwrap().ends_with("provided port is already allocated"));
    let (code, answer) =
        server.call("PATCH", &format!("{SERVICES}/a"), &json!({"spec": {"type": "ClusterIP"}}));
    assert_eq!((code, &answer["spec"]["ports"][0]["nodePort"]), (200, &Value::Null), "{answer}");
    assert_eq!(answer["spec"]["clusterIP"], made["spec"]["clusterIP"]);
    server.create(SERVICES, &taken);
    let name = json!({"spec": {"type": "ExternalName", "externalName": "example.com"}});
    let (code, answer) = server.call("PATCH", &format!("{SERVICES}/a"), &name);
    assert_eq!((code, &answer["spec"]["clusterIP"]), (200, &Value::Null), "{answer}");
    let addresses = server.get("/apis/networking.k8s.io/v1/ipaddresses");
    assert_eq!(addresses["items"].as_array().unwrap().len(), 1, "{addresses}");
}

#[test]
fn an_address_stays() {
    let server = server();
    let made = server.create(SERVICES, &service("a", json!({})));
    let kept = server.call(
        "PUT",
        &format!("{SERVICES}/a"),
        &service("a", json!({"selector": {"x": "y"}})),
    );
    assert_eq!((kept.0, &kept.1["spec"]["clusterIP"]), (200, &made["spec"]["clusterIP"]));
    let other = json!({"spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}});
    let (code, answer) = server.call("PATCH", &format!("{SERVICES}/a"), &other);
    assert_eq!(code, 422);
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.contains(
            "spec.clusterIPs[0]: Invalid value: [\"10.96.0.9\"]: may not change once set"
        ),
        "{message}"
    );
}

#[test]
fn many_at_once_share_nothing() {
    let server = server();
    let mut addresses = std::collections::BTreeSet::new();
    std::thread::scope(|scope| {
        let shared = &server.server;
        let made: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    let mut made = Vec::new();
                    for number in 0..8 {
                        let body =
                            service(&format!("s-{thread}-{number}"), json!({"type": "NodePort"}));
                        let request = http::Request::post(SERVICES)
                            .header("content-type", "application/json")
                            .body(http_body_util::Full::new(bytes::Bytes::from(body.to_string())))
                            .unwrap();
                        let peer = crate::access::Peer { is_local: true, ..Default::default() };
                        let answer = runtime.block_on(async {
                            let response = crate::handler::handle(shared, request, &peer).await;
                            let body = response.into_body();
                            http_body_util::BodyExt::collect(body).await.unwrap().to_bytes()
                        });
                        made.push(serde_json::from_slice::<Value>(&answer).unwrap());
                    }
                    made
                })
            })
            .collect();
        for service in made.into_iter().flat_map(|thread| thread.join().unwrap()) {
            assert!(addresses.insert(service["spec"]["clusterIP"].to_string()), "{service}");
            assert!(
                addresses.insert(service["spec"]["ports"][0]["nodePort"].to_string()),
                "{service}"
            );
        }
    });
    assert_eq!(addresses.len(), 64);
}
