//! Rules of a pod's spec, alone or in a template.

use convoy_api::text::Name;
use serde_json::json;

use super::{containers, sysctls, volumes};
use crate::kinds::at::{At, Errors};
use crate::kinds::selector;

/// The object that a pod spec belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds) enum SpecParent {
    Pod,
    Template,
}

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(in crate::kinds) fn validate(spec: &At<'_>, parent: SpecParent, errors: &mut Errors) {
    let known = volumes::validate(&spec.get("volumes"), errors);
    containers::validate(spec, &known, errors);
    spec.get("restartPolicy").one_of(&["Always", "OnFailure", "Never"], errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    spec.get("dnsPolicy").one_of(&policies, errors);
    if spec.get("dnsPolicy").text() == "None" && spec.get("dnsConfig.nameservers").is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.push(spec.get("dnsConfig.nameservers").required(detail));
    }
    spec.get("nodeSelector").labels(errors);
    affinity(&spec.get("affinity"), errors);
    gates(spec, parent, errors);
    spread(&spec.get("topologySpreadConstraints"), errors);
    for name in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        spec.get(name).name(Name::Dns1123Subdomain, errors);
    }
    spec.get("activeDeadlineSeconds").within(1, i64::from(i32::MAX), errors);
    spec.get("hostname").name(Name::Dns1123Label, errors);
    spec.get("subdomain").name(Name::Dns1123Label, errors);
    tolerations(&spec.get("tolerations"), errors);
    sysctls::validate(spec, errors);
    if !spec.get("preemptionPolicy").is_absent() {
        spec.get("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
    }
    for secret in spec.get("imagePullSecrets").items() {
        if secret.get("name").is_empty() {
            errors.push(secret.get("name").required(""));
        }
    }
    for alias in spec.get("hostAliases").items() {
        if alias.get("ip").text().parse::<std::net::IpAddr>().is_err() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(alias.get("ip").invalid_as(alias.get("ip").text(), detail));
        }
    }
}

fn gates(spec: &At<'_>, parent: SpecParent, errors: &mut Errors) {
    let gates = spec.get("schedulingGates");
    let mut seen: Vec<&str> = Vec::new();
    for gate in gates.items() {
        let name = gate.get("name");
        for detail in Name::QualifiedName.errors(name.text()) {
            errors.push(gate.invalid_as(name.text(), &detail));
        }
        if seen.contains(&name.text()) {
            errors.push(At::new(&gate.path, name.value).duplicate());
        }
        seen.push(name.text());
    }
    if parent == SpecParent::Pod && !gates.is_empty() && !spec.get("nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(spec.get("nodeName").forbidden(detail));
    }
    for gate in spec.get("readinessGates").items() {
        let name = gate.get("conditionType");
        for detail in Name::QualifiedName.errors(name.text()) {
            errors.push(name.invalid_as(name.text(), &detail));
        }
    }
}

fn affinity(affinity: &At<'_>, errors: &mut Errors) {
    let node = affinity.get("nodeAffinity");
    let required = node.get("requiredDuringSchedulingIgnoredDuringExecution");
    if !required.is_absent() {
        let terms = required.get("nodeSelectorTerms");
        if terms.is_empty() {
            errors.push(terms.required("must have at least one node selector term"));
        }
        terms.items().iter().for_each(|term| node_term(term, errors));
    }
    for preferred in node.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
        weight(&preferred, errors);
        node_term(&preferred.get("preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let kind = affinity.get(kind);
        for term in kind.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
            pod_term(&term, errors);
        }
        for preferred in kind.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
            weight(&preferred, errors);
            pod_term(&preferred.get("podAffinityTerm"), errors);
        }
    }
}

fn weight(preferred: &At<'_>, errors: &mut Errors) {
    let weight = preferred.get("weight");
    if !(1..=100).contains(&weight.integer().unwrap_or(0)) {
        errors.push(weight.invalid_as(weight.integer().unwrap_or(0), "must be in the range 1-100"));
    }
}

fn pod_term(term: &At<'_>, errors: &mut Errors) {
    selector::validate(&term.get("labelSelector"), errors);
    selector::validate(&term.get("namespaceSelector"), errors);
    let key = term.get("topologyKey");
    if key.text().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    for detail in Name::QualifiedName.errors(key.text()) {
        errors.push(key.invalid_as(key.text(), &detail));
    }
}

pub(in crate::kinds) fn node_term(term: &At<'_>, errors: &mut Errors) {
    for requirement in term.get("matchExpressions").items() {
        let values = requirement.get("values");
        let count = values.items().len();
        match requirement.get("operator").text() {
            "In" | "NotIn" if count == 0 => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(values.required(detail));
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(values.forbidden(detail));
            }
            "Gt" | "Lt" if count != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(values.required(detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.push(
                requirement.get("operator").invalid_as(other, "not a valid selector operator"),
            ),
        }
        if matches!(requirement.get("operator").text(), "In" | "NotIn") {
            values.items().iter().for_each(|value| value.name(Name::LabelValue, errors));
        }
        let key = requirement.get("key");
        for detail in Name::QualifiedName.errors(key.text()) {
            errors.push(key.invalid_as(key.text(), &detail));
        }
    }
}

fn spread(constraints: &At<'_>, errors: &mut Errors) {
    let all = constraints.items();
    for (index, constraint) in all.iter().enumerate() {
        let skew = constraint.get("maxSkew");
        if skew.integer().unwrap_or(0) <= 0 {
            errors.push(skew.invalid_as(skew.integer().unwrap_or(0), "must be greater than zero"));
        }
        let key = constraint.get("topologyKey");
        if key.text().is_empty() {
            errors.push(key.required("can not be empty"));
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&constraint.get("whenUnsatisfiable").text()) {
            errors.push(constraint.get("whenUnsatisfiable").unsupported(&actions));
        }
        let pair = |one: &At<'_>| {
            (
                one.get("topologyKey").text().to_owned(),
                one.get("whenUnsatisfiable").text().to_owned(),
            )
        };
        let (key, action) = pair(constraint);
        if all[index + 1..].iter().any(|other| pair(other) == (key.clone(), action.clone())) {
            let path = format!("{}.{{topologyKey, whenUnsatisfiable}}", constraint.path);
            errors.push(At::new(&path, &json!(format!("{{{key}, {action}}}"))).duplicate());
        }
        selector::validate(&constraint.get("labelSelector"), errors);
    }
}

pub(in crate::kinds) fn tolerations(tolerations: &At<'_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        toleration.get("key").name(Name::QualifiedName, errors);
        let operator = toleration.get("operator");
        if toleration.get("key").is_empty() && operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(operator.invalid_as(operator.text(), detail));
        }
        let effect = toleration.get("effect");
        if !toleration.get("tolerationSeconds").is_absent() && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(effect.invalid_as(effect.text(), detail));
        }
        let value = toleration.get("value").text();
        match operator.text() {
            "Equal" | "" => {
                let details = Name::LabelValue.errors(value);
                if !details.is_empty() {
                    errors.push(operator.invalid_as(value, &details.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(operator.invalid_as(value, detail));
            }
            "Exists" => {}
            _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
        }
        if !effect.text().is_empty() {
            effect.one_of(&EFFECTS, errors);
        }
    }
}
