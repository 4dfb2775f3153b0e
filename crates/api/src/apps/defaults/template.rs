//! The pod template part of defaulting. Only what is done for templates of workloads is done
//! here; pods get a few more defaults of their own.

use serde_json::{Map, Value, json};

use super::{fill, fill_number, fill_text};
use crate::apps::quantity;

type Fields = Map<String, Value>;

/// A pod template as it would be stored: defaults filled in, quantities in their stored form.
pub fn template(given: &Value) -> Value {
    let mut stored = given.clone();
    if let Some(spec) = stored.get_mut("spec").and_then(Value::as_object_mut) {
        pod_spec(spec);
    }
    stored
}

fn pod_spec(spec: &mut Fields) {
    fill_text(spec, "dnsPolicy", "ClusterFirst");
    fill_text(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", || json!({}));
    fill(spec, "terminationGracePeriodSeconds", || json!(30));
    fill_text(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for_each(spec.get_mut(list), container);
    }
    for_each(spec.get_mut("volumes"), volume);
    amounts(spec.get_mut("overhead"));
    resources(spec.get_mut("resources"));
}

/// The old and the new spelling mirror each other; the new one wins.
fn service_account(spec: &mut Fields) {
    let named = |spec: &Fields, key: &str| {
        spec.get(key).and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned)
    };
    let name = named(spec, "serviceAccountName").or_else(|| named(spec, "serviceAccount"));
    if let Some(name) = name {
        spec.insert("serviceAccountName".to_owned(), json!(name));
        spec.insert("serviceAccount".to_owned(), json!(name));
    }
}

fn container(container: &mut Fields) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = pull_policy(image);
    fill_text(container, "imagePullPolicy", policy);
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    for_each(container.get_mut("ports"), |port| fill_text(port, "protocol", "TCP"));
    for_each(container.get_mut("env"), |variable| {
        let Some(source) = fields(variable.get_mut("valueFrom")) else { return };
        field_ref(source);
        if let Some(key) = fields(source.get_mut("fileKeyRef")) {
            fill(key, "optional", || json!(false));
        }
    });
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = fields(container.get_mut(kind)) {
            probe(found);
        }
    }
    if let Some(lifecycle) = fields(container.get_mut("lifecycle")) {
        for hook in ["postStart", "preStop"] {
            if let Some(handler) = fields(lifecycle.get_mut(hook)) {
                http_get(handler);
            }
        }
    }
    resources(container.get_mut("resources"));
}

/// Images that may change under their name are pulled each time.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    let last = name.rsplit('/').next().unwrap_or(name);
    let (repository, tag) = match last.rsplit_once(':') {
        Some((_, tag)) => (&name[..name.len() - tag.len() - 1], Some(tag)),
        None => (name, None),
    };
    // A name that cannot be parsed has no tag either.
    let path = repository.split_once('/').map_or(repository, |(_, path)| path);
    let sound = !path.is_empty() && !path.bytes().any(|byte| byte.is_ascii_uppercase());
    match tag {
        Some("latest") if sound => "Always",
        None if sound && !digest => "Always",
        _ => "IfNotPresent",
    }
}

fn probe(probe: &mut Fields) {
    fill_number(probe, "timeoutSeconds", 1);
    fill_number(probe, "periodSeconds", 10);
    fill_number(probe, "successThreshold", 1);
    fill_number(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = fields(probe.get_mut("grpc")) {
        fill(grpc, "service", || json!(""));
    }
}

fn http_get(handler: &mut Fields) {
    if let Some(get) = fields(handler.get_mut("httpGet")) {
        fill_text(get, "path", "/");
        fill_text(get, "scheme", "HTTP");
    }
}

/// The downward API, in variables and in files.
fn field_ref(source: &mut Fields) {
    if let Some(field) = fields(source.get_mut("fieldRef")) {
        fill_text(field, "apiVersion", "v1");
    }
    if let Some(field) = fields(source.get_mut("resourceFieldRef")) {
        fill(field, "divisor", || json!("0"));
        amount(field.get_mut("divisor"), false);
    }
}

fn volume(volume: &mut Fields) {
    if volume.iter().all(|(key, source)| key == "name" || source.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for kind in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = fields(volume.get_mut(kind)) {
            fill(source, "defaultMode", || json!(420));
        }
    }
    if let Some(source) = fields(volume.get_mut("downwardAPI")) {
        for_each(source.get_mut("items"), field_ref);
    }
    if let Some(source) = fields(volume.get_mut("projected")) {
        for_each(source.get_mut("sources"), projection);
    }
    if let Some(source) = fields(volume.get_mut("hostPath")) {
        fill(source, "type", || json!(""));
    }
    if let Some(source) = fields(volume.get_mut("emptyDir")) {
        amount(source.get_mut("sizeLimit"), false);
    }
    if let Some(source) = fields(volume.get_mut("image")) {
        let policy =
            pull_policy(source.get("reference").and_then(Value::as_str).unwrap_or_default());
        fill_text(source, "pullPolicy", policy);
    }
    if let Some(source) = fields(volume.get_mut("ephemeral")) {
        claim_template(source);
    }
    disks(volume);
}

fn projection(source: &mut Fields) {
    if let Some(token) = fields(source.get_mut("serviceAccountToken")) {
        fill(token, "expirationSeconds", || json!(3600));
    }
    if let Some(downward) = fields(source.get_mut("downwardAPI")) {
        for_each(downward.get_mut("items"), field_ref);
    }
}

fn claim_template(source: &mut Fields) {
    let claim = fields(source.get_mut("volumeClaimTemplate"));
    let Some(spec) = claim.and_then(|claim| fields(claim.get_mut("spec"))) else { return };
    fill(spec, "volumeMode", || json!("Filesystem"));
    resources(spec.get_mut("resources"));
}

fn disks(volume: &mut Fields) {
    let texts: [(&str, &[(&str, &str)]); 3] = [
        ("iscsi", &[("iscsiInterface", "default")]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ];
    for (kind, defaults) in texts {
        if let Some(source) = fields(volume.get_mut(kind)) {
            for (key, text) in defaults {
                fill_text(source, key, text);
            }
        }
    }
    if let Some(source) = fields(volume.get_mut("azureDisk")) {
        fill(source, "cachingMode", || json!("ReadWrite"));
        fill(source, "fsType", || json!("ext4"));
        fill(source, "readOnly", || json!(false));
        fill(source, "kind", || json!("Shared"));
    }
}

fn resources(resources: Option<&mut Value>) {
    let Some(resources) = fields(resources) else { return };
    amounts(resources.get_mut("limits"));
    amounts(resources.get_mut("requests"));
}

/// A list of resources: amounts finer than a thousandth are rounded up.
fn amounts(list: Option<&mut Value>) {
    for (_, value) in fields(list).into_iter().flatten() {
        amount(Some(value), true);
    }
}

fn amount(value: Option<&mut Value>, milli: bool) {
    let Some(value) = value else { return };
    let text = match &*value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    if let Some(stored) = quantity::stored(&text, milli) {
        *value = json!(stored);
    }
}

fn fields(value: Option<&mut Value>) -> Option<&mut Fields> {
    value.and_then(Value::as_object_mut)
}

fn for_each(list: Option<&mut Value>, mut change: impl FnMut(&mut Fields)) {
    let items = list.and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(&mut change);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_decides_how_images_are_pulled() {
        let cases = [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("registry:5000/nginx", "Always"),
            ("registry:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
            ("nginx:latest@sha256:abc", "Always"),
            ("", "IfNotPresent"),
            ("Not/Parsable", "IfNotPresent"),
        ];
        for (image, policy) in cases {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn volumes_and_probes_are_filled_in() {
        let given = json!({"spec": {
            "serviceAccount": "robot",
            "containers": [{"name": "a", "image": "a:1", "livenessProbe": {"httpGet": {"port": 80}},
                "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}],
            "volumes": [{"name": "scratch"}, {"name": "settings", "configMap": {"name": "settings"}}],
        }});
        let spec = &template(&given)["spec"];
        assert_eq!(spec["serviceAccountName"], "robot");
        assert_eq!(spec["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(spec["volumes"][1]["configMap"]["defaultMode"], 420);
        let container = &spec["containers"][0];
        assert_eq!(container["livenessProbe"]["httpGet"]["scheme"], "HTTP");
        assert_eq!(container["livenessProbe"]["failureThreshold"], 3);
        assert_eq!(container["resources"]["limits"], json!({"cpu": "500m", "memory": "1Gi"}));
    }
}
