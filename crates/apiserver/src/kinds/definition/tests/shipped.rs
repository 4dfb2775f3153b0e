//! Every definition that Convoy ships is accepted, and serves the samples of its kind.

use super::*;

const DIALECTS: [&str; 4] = ["skyhook", "fleet", "karpenter", "ocm"];

fn samples(dialect: &str) -> Vec<(String, String)> {
    let folder = format!("{}/../api/testdata/{dialect}", env!("CARGO_MANIFEST_DIR"));
    let mut samples = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for document in text.split("\n---").filter(|text| text.contains("kind:")) {
            let document = document.trim_start_matches("---").trim_start_matches('\n');
            samples.push((name.clone(), document.to_owned()));
        }
    }
    samples.sort();
    samples
}

/// Creates a sample where it belongs; what the server says.
fn create(server: &TestServer, yaml: &str) -> (u16, Value, Value) {
    let sample: Value = serde_saphyr::from_str(yaml).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let registry = server.server.cluster("").unwrap().registry();
    let api_version = text(&sample["apiVersion"]);
    let resource = registry.of_kind(&api_version, &text(&sample["kind"]));
    let resource = resource.unwrap_or_else(|| panic!("{} is not served", sample["kind"]));
    let mut path = format!("/apis/{api_version}");
    if resource.namespaced {
        let namespace = match text(&sample["metadata"]["namespace"]).as_str() {
            "" => "default".to_owned(),
            given => given.to_owned(),
        };
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        server.call("POST", "/api/v1/namespaces", &object);
        path = format!("{path}/namespaces/{namespace}");
    }
    path = format!("{path}/{}?fieldValidation=Strict", resource.plural);
    let headers = [("content-type", "application/yaml")];
    let answered = server.send("POST", &path, &headers, yaml.to_owned());
    (answered.code, answered.json(), sample)
}

#[test]
fn every_shipped_definition_serves_its_samples() {
    let server = TestServer::new();
    let mut count = 0;
    for dialect in DIALECTS {
        for definition in convoy_api::schema::crds(dialect).unwrap() {
            let definition = serde_json::to_value(&definition).unwrap();
            let created = server.create(DEFINITIONS, &definition);
            let name = created["metadata"]["name"].as_str().unwrap();
            let stored = server.get(&format!("{DEFINITIONS}/{name}"));
            assert_eq!(conditions(&stored)[1], "Established=True InitialNamesAccepted", "{name}");
            count += 1;
        }
        for (file, yaml) in samples(dialect) {
            let (code, made, sample) = create(&server, &yaml);
            assert_eq!(code, 201, "{dialect}/{file}: {made}");
            // What was sent is there; defaults may have come.
            let missing = missing(&sample["spec"], &made["spec"], "spec");
            assert_eq!(missing, Vec::<String>::new(), "{dialect}/{file}");
        }
    }
    assert_eq!(count, 43);
    let again = TestServer::over(server.server.store.clone());
    let served = again.server.cluster("").unwrap().registry();
    assert!(served.of_kind("skyhook.nvidia.com/v1alpha1", "Skyhook").is_some());
}

/// Places where the second value lacks what the first has.
fn missing(sent: &Value, stored: &Value, path: &str) -> Vec<String> {
    match (sent, stored) {
        (Value::Object(sent), Value::Object(stored)) => sent
            .iter()
            .filter(|(_, value)| !value.is_null())
            .flat_map(|(name, value)| {
                let other = stored.get(name).unwrap_or(&Value::Null);
                missing(value, other, &format!("{path}.{name}"))
            })
            .collect(),
        (Value::Array(sent), Value::Array(stored)) if sent.len() == stored.len() => {
            let pairs = sent.iter().zip(stored).enumerate();
            pairs
                .flat_map(|(at, (sent, stored))| missing(sent, stored, &format!("{path}[{at}]")))
                .collect()
        }
        (sent, stored) if sent == stored => Vec::new(),
        (sent, stored) => vec![format!("{path}: {sent} became {stored}")],
    }
}
