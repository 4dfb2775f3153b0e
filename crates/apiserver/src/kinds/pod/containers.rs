//! Containers of a pod: the regular ones, those before them, and those added later.

use convoy_api::text::Name;
use serde_json::Value;

use super::{resources, volumes};
use crate::kinds::at::{At, Errors};

/// Volumes that containers may mount, by name.
type Volumes<'v> = [(&'v str, &'v Value)];

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn validate(pod: &At<'_>, known: &Volumes<'_>, errors: &mut Errors) {
    let regular = pod.get("containers");
    if regular.is_empty() {
        errors.push(regular.required(""));
    }
    let mut names: Vec<&str> = Vec::new();
    for container in regular.items() {
        common(&container, known, errors);
        unique(&container, &mut names, errors);
        running(&container, errors);
    }
    host_ports(&regular.items(), errors);
    for container in pod.get("initContainers").items() {
        common(&container, known, errors);
        let policy = container.get("restartPolicy");
        policy.one_of_if_given(&["Always", "OnFailure", "Never"], errors);
        unique(&container, &mut names, errors);
        host_ports(std::slice::from_ref(&container), errors);
        if policy.text() == "Always" {
            running(&container, errors);
            continue;
        }
        for field in ["lifecycle"].iter().chain(&PROBES) {
            if !container.get(field).is_absent() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(container.get(field).forbidden(detail));
            }
        }
    }
    for container in pod.get("ephemeralContainers").items() {
        common(&container, known, errors);
        unique(&container, &mut names, errors);
        ephemeral(&container, &names, errors);
    }
}

fn unique<'v>(container: &At<'v>, names: &mut Vec<&'v str>, errors: &mut Errors) {
    let name = container.get("name");
    if names.contains(&name.text()) && !name.text().is_empty() {
        errors.push(name.duplicate());
    }
    names.push(name.text());
}

fn ephemeral(container: &At<'_>, names: &[&str], errors: &mut Errors) {
    let target = container.get("targetContainerName");
    if !target.text().is_empty() && !names.contains(&target.text()) {
        errors.push(target.not_found());
    }
    for field in ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
        if !container.get(field).is_empty() {
            let detail = "cannot be set for an Ephemeral Container";
            errors.push(container.get(field).forbidden(detail));
        }
    }
    if !container.get("resources").is_empty() {
        let detail = "cannot be set for an Ephemeral Container";
        errors.push(container.get("resources").forbidden(detail));
    }
}

fn common(container: &At<'_>, known: &Volumes<'_>, errors: &mut Errors) {
    container.get("name").required_name(Name::Dns1123Label, errors);
    if container.get("image").is_empty() {
        errors.push(container.get("image").required(""));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    container.get("terminationMessagePolicy").one_of(&policies, errors);
    ports(&container.get("ports"), errors);
    environment(container, errors);
    mounts(container, known, errors);
    container.get("imagePullPolicy").one_of(&["Always", "IfNotPresent", "Never"], errors);
    resources::resources(&container.get("resources"), errors);
}

fn ports(ports: &At<'_>, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            let before = errors.len();
            port_name(&name, errors);
            if errors.len() == before && names.contains(&name.text()) {
                errors.push(name.duplicate());
            }
            names.push(name.text());
        }
        let number = port.get("containerPort");
        if number.integer().unwrap_or(0) == 0 {
            errors.push(number.required(""));
        } else {
            number.port(errors);
        }
        if port.get("hostPort").integer().unwrap_or(0) != 0 {
            port.get("hostPort").port(errors);
        }
        port.get("protocol").one_of(&PROTOCOLS, errors);
    }
}

/// Names of ports are the services of IANA: short, with a letter, no double hyphen.
pub(in crate::kinds) fn port_name(name: &At<'_>, errors: &mut Errors) {
    let text = name.text();
    if text.len() > 15 {
        errors.push(name.invalid("must be no more than 15 characters"));
    }
    if text.is_empty()
        || !text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    {
        let detail = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
        errors.push(name.invalid(detail));
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        errors.push(name.invalid("must contain at least one letter (a-z)"));
    }
    if text.contains("--") {
        errors.push(name.invalid("must not contain consecutive hyphens"));
    }
    if text.starts_with('-') || text.ends_with('-') {
        errors.push(name.invalid("must not begin or end with a hyphen"));
    }
}

fn environment(container: &At<'_>, errors: &mut Errors) {
    for variable in container.get("env").items() {
        let name = variable.get("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else if name.text().contains('=')
            || !name.text().chars().all(|c| (' '..='~').contains(&c))
        {
            let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.push(name.invalid(detail));
        }
        let from = variable.get("valueFrom");
        if from.is_absent() {
            continue;
        }
        let sources = from.entries().len();
        if sources == 0 {
            let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
            errors.push(from.invalid_as("", detail));
        } else if !variable.get("value").is_empty() {
            errors.push(from.invalid_as("", "may not be specified when `value` is not empty"));
        } else if sources > 1 {
            let detail = "may not have more than one field specified at a time";
            errors.push(from.invalid_as("", detail));
        }
        for kind in ["configMapKeyRef", "secretKeyRef"] {
            let source = from.get(kind);
            if !source.is_absent() && source.get("key").is_empty() {
                errors.push(source.get("key").required(""));
            }
        }
        field_reference(&from.get("fieldRef"), errors);
    }
}

/// A field of the pod that its containers can be told.
fn field_reference(reference: &At<'_>, errors: &mut Errors) {
    const FIELDS: [&str; 12] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.annotations",
        "metadata.labels",
        "spec.nodeName",
        "spec.serviceAccountName",
        "spec.restartPolicy",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let path = reference.get("fieldPath");
    if reference.is_absent() {
        return;
    }
    // One key of a map is named in brackets.
    let field = path.text().split("['").next().unwrap_or_default();
    if path.text().is_empty() {
        errors.push(path.required(""));
    } else if reference.get("apiVersion").text() != "v1" {
        let version = reference.get("apiVersion").text();
        let detail = format!("error converting fieldPath: unsupported pod version: {version}");
        errors.push(path.invalid(&detail));
    } else if !FIELDS.contains(&field) {
        let detail =
            format!("error converting fieldPath: field label not supported: {}", path.text());
        errors.push(path.invalid(&detail));
    }
}

fn mounts(container: &At<'_>, known: &Volumes<'_>, errors: &mut Errors) {
    let mut paths: Vec<&str> = Vec::new();
    for mount in container.get("volumeMounts").items() {
        let name = mount.get("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        }
        if !known.iter().any(|(volume, _)| *volume == name.text()) {
            errors
                .push(At { path: name.path.clone(), value: &Value::from(name.text()) }.not_found());
        }
        let path = mount.get("mountPath");
        if path.text().is_empty() {
            errors.push(path.required(""));
        }
        if paths.contains(&path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        paths.push(path.text());
        volumes::local_path(&mount.get("subPath"), errors);
        let expression = mount.get("subPathExpr");
        if !expression.is_empty() && !mount.get("subPath").is_empty() {
            errors.push(expression.invalid("subPathExpr and subPath are mutually exclusive"));
        }
    }
    for device in container.get("volumeDevices").items() {
        let name = device.get("name");
        if !known.iter().any(|(volume, _)| *volume == name.text()) {
            errors.push(name.not_found());
        }
        if device.get("devicePath").is_empty() {
            errors.push(device.get("devicePath").required(""));
        }
    }
}

/// What only containers that keep running have.
fn running(container: &At<'_>, errors: &mut Errors) {
    for kind in PROBES {
        let probe = container.get(kind);
        if probe.is_absent() {
            continue;
        }
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], errors);
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            probe.get(field).not_negative(errors);
        }
        let grace = probe.get("terminationGracePeriodSeconds");
        if grace.integer().is_some_and(|seconds| seconds <= 0) {
            errors.push(grace.invalid("must be greater than 0"));
        }
        let threshold = probe.get("successThreshold");
        if kind != "readinessProbe" && threshold.integer() != Some(1) {
            errors.push(threshold.invalid("must be 1"));
        }
    }
    for hook in ["postStart", "preStop"] {
        let hook = container.get("lifecycle").get(hook);
        if !hook.is_absent() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], errors);
        }
    }
}

fn handler(handler: &At<'_>, kinds: &[&str], errors: &mut Errors) {
    let given: Vec<&&str> = kinds.iter().filter(|kind| !handler.get(kind).is_absent()).collect();
    for extra in given.iter().skip(1) {
        let detail = "may not specify more than 1 handler type";
        errors.push(handler.get(extra).forbidden(detail));
    }
    let Some(kind) = given.first() else {
        errors.push(handler.required("must specify a handler type"));
        return;
    };
    let action = handler.get(kind);
    match **kind {
        "exec" if action.get("command").is_empty() => {
            errors.push(action.get("command").required(""));
        }
        "httpGet" => {
            if action.get("path").is_empty() {
                errors.push(action.get("path").required(""));
            }
            port_reference(&action.get("port"), errors);
            action.get("scheme").one_of(&["HTTP", "HTTPS"], errors);
            for header in action.get("httpHeaders").items() {
                if header.get("name").is_empty() {
                    errors.push(header.get("name").required(""));
                }
            }
        }
        "tcpSocket" => port_reference(&action.get("port"), errors),
        "grpc" => action.get("port").port(errors),
        _ => {}
    }
}

/// A port by number, or by the name that a container gives it.
pub(in crate::kinds) fn port_reference(port: &At<'_>, errors: &mut Errors) {
    match port.value {
        Value::String(_) if port.text().is_empty() => errors.push(port.required("")),
        Value::String(_) => port_name(port, errors),
        Value::Number(_) => port.port(errors),
        _ => errors.push(port.invalid_as(0, "must be between 1 and 65535, inclusive")),
    }
}

fn host_ports(containers: &[At<'_>], errors: &mut Errors) {
    let mut taken: Vec<String> = Vec::new();
    for container in containers {
        for port in container.get("ports").items() {
            let number = port.get("hostPort");
            let Some(host) = number.integer().filter(|host| *host != 0) else { continue };
            let claim =
                format!("{}/{}/{host}", port.get("protocol").text(), port.get("hostIP").text());
            if taken.contains(&claim) {
                errors.push(number.duplicate());
            }
            taken.push(claim);
        }
    }
}
