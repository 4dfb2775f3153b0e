//! Schema fragments that several kinds share: patterns, maps, quantities, rules.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A label or taint key: an optional DNS prefix, then a name.
pub(crate) const QUALIFIED: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
pub(crate) const DURATION: &str = r"^([0-9]+(s|m|h))+$";
pub(crate) const DURATION_OR_NEVER: &str = r"^(([0-9]+(s|m|h))+|Never)$";
pub(crate) const BUDGET_NODES: &str = r"^((100|[0-9]{1,2})%|[0-9]+)$";
pub(crate) const BUDGET_SCHEDULE: &str =
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$";
pub(crate) const BUDGET_DURATION: &str = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$";

/// Labels that every node made from a template gets.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 100,
        "additionalProperties": {
            "type": "string",
            "maxLength": 63,
            "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        },
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [
            rule(r#"label domain "karpenter.sh" is restricted"#,
                "self.all(x, x in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !x.find('^([^/]+)').endsWith('karpenter.sh'))"),
            rule(r#"label "karpenter.sh/nodepool" is restricted"#, "self.all(x, x != 'karpenter.sh/nodepool')"),
            rule(r#"label "kubernetes.io/hostname" is restricted"#, "self.all(x, x != 'kubernetes.io/hostname')"),
        ],
    })
}

/// A map from resource names to quantities.
pub(crate) fn resources(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            "x-kubernetes-int-or-string": true,
        },
    })
}

/// A string or an integer; the integer is read as if it were quoted.
pub(crate) fn lenient_nodes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
        "pattern": BUDGET_NODES,
        "minimum": 0,
        "default": "10%",
    })
}

/// The reasons of `v1`, each at most once. Upstream has no `Expired`: it is ours, for pools whose
/// expiration keeps to budgets, and refused for others once the pool is read.
pub(crate) fn reasons(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 50,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "enum": ["Underutilized", "Empty", "Drifted", "Expired"]},
    })
}

/// The reasons of `v1beta1`, in any of their spellings.
pub(crate) fn lenient_reasons(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 50,
        "items": {"type": "string", "enum": super::convert::REASON_WORDS},
    })
}

/// Whatever JSON there is, kept as it is.
pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Rules over a whole list of requirements. NodeClaims may name their pool, templates not.
pub(crate) fn requirement_rules() -> Value {
    json!([
        rule(
            "requirements with operator 'In' must have a value defined",
            "self.all(x, x.operator == 'In' ? (has(x.values) && x.values.size() != 0) : true)"
        ),
        rule(
            "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
            "self.all(x, (x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) ? (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0) : true)"
        ),
        rule(
            "requirements with 'minValues' must have at least that many values specified in the 'values' field",
            "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)"
        ),
    ])
}

/// Rules over the key of a requirement.
pub(crate) fn key_rules(of_template: bool) -> Value {
    let mut rules = vec![
        rule(
            r#"label domain "karpenter.sh" is restricted"#,
            "self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')",
        ),
        rule(r#"label "kubernetes.io/hostname" is restricted"#, "self != 'kubernetes.io/hostname'"),
    ];
    if of_template {
        let pool = r#"label "karpenter.sh/nodepool" is restricted"#;
        rules.push(rule(pool, "self != 'karpenter.sh/nodepool'"));
    }
    Value::Array(rules)
}

pub(crate) fn rule(message: &str, rule: &str) -> Value {
    json!({"message": message, "rule": rule})
}

/// Rules over the spec of a NodePool.
pub(crate) fn pool_rules() -> Value {
    json!([
        rule(
            "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
            "has(self.replicas) == has(oldSelf.replicas)"
        ),
        rule(
            "only 'limits.nodes' is supported on static NodePools",
            "!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))"
        ),
        rule(
            "'weight' is not supported on static NodePools",
            "!has(self.replicas) || !has(self.weight)"
        ),
    ])
}

/// Pools keep the kind of their node class.
pub(crate) fn template_rules() -> Value {
    let rule = |field: &str| {
        rule(
            &format!("nodeClassRef.{field} is immutable"),
            &format!("self.spec.nodeClassRef.{field} == oldSelf.spec.nodeClassRef.{field}"),
        )
    };
    json!([rule("group"), rule("kind")])
}

/// Rules over `disruption` of `v1beta1`.
pub(crate) fn lenient_disruption_rules() -> Value {
    json!([
        rule(
            "consolidateAfter cannot be combined with consolidationPolicy=WhenUnderutilized",
            "has(self.consolidateAfter) ? ((has(self.consolidationPolicy) ? self.consolidationPolicy : 'WhenUnderutilized') != 'WhenUnderutilized' || self.consolidateAfter == 'Never') : true"
        ),
        rule(
            "consolidateAfter must be specified with consolidationPolicy=WhenEmpty",
            "(has(self.consolidationPolicy) && self.consolidationPolicy == 'WhenEmpty') ? has(self.consolidateAfter) : true"
        ),
    ])
}

/// The conditions of a node class that nobody has looked at yet.
pub(crate) fn ready_from_the_start() -> Value {
    json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T01:01:01Z",
        "reason": "Ready", "message": ""}])
}
