//! Schemas that a Rust type cannot express: values of two types, embedded objects, and the
//! rules across fields.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// `(rule, message)` pairs as a schema carries them.
fn rules(rules: &[(&str, &str)]) -> Value {
    rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect()
}

pub(super) fn immutable() -> Value {
    rules(&[("self == oldSelf", "the field is immutable")])
}

const POLICY_STAYS: (&str, &str) =
    ("!has(oldSelf.policy) || has(self.policy)", "policy cannot be removed once it is set");

/// At most one namespace selector, by name, where the other selectors pick from it.
const PART_OF_NAMESPACE: (&str, &str) = (
    "!self.resourceSelectors.exists(x, x.kind == 'Namespace' && x.group == '' && has(x.selectionScope) && x.selectionScope == 'NamespaceWithResourceSelectors') || self.resourceSelectors.filter(x, x.kind == 'Namespace' && x.group == '').all(x, has(x.name) && size(x.name) > 0) && size(self.resourceSelectors.filter(x, x.kind == 'Namespace' && x.group == '')) == 1",
    "resourceSelectors with selectionScope NamespaceWithResourceSelectors take exactly one namespace, by name",
);

pub(super) fn placement_rules() -> Value {
    rules(&[POLICY_STAYS, PART_OF_NAMESPACE])
}

pub(super) fn cluster_placement_rules() -> Value {
    rules(&[
        POLICY_STAYS,
        PART_OF_NAMESPACE,
        (
            "!has(self.statusReportingScope) || self.statusReportingScope != 'NamespaceAccessible' || size(self.resourceSelectors.filter(x, x.kind == 'Namespace')) == 1",
            "statusReportingScope NamespaceAccessible needs exactly one resourceSelector of kind Namespace",
        ),
        (
            "!has(oldSelf.statusReportingScope) || (has(self.statusReportingScope) && self.statusReportingScope == oldSelf.statusReportingScope)",
            "statusReportingScope is immutable",
        ),
    ])
}

pub(super) fn selector_rules() -> Value {
    rules(&[(
        "self.all(x, !(has(x.name) && size(x.name) > 0 && has(x.labelSelector)))",
        "name and labelSelector exclude each other",
    )])
}

pub(super) fn policy_rules() -> Value {
    rules(&[
        (
            "!has(oldSelf.placementType) || !has(self.placementType) || self.placementType == oldSelf.placementType || (oldSelf.placementType == 'PickN' && self.placementType == 'PickAll')",
            "placement type is immutable, except from PickN to PickAll",
        ),
        (
            "!has(self.placementType) || self.placementType != 'PickFixed' || !(has(self.affinity) || has(self.numberOfClusters) || has(self.topologySpreadConstraints) || has(self.tolerations))",
            "PickFixed takes no affinity, numberOfClusters, topologySpreadConstraints or tolerations",
        ),
        (
            "(has(self.placementType) && self.placementType != 'PickAll') || !(has(self.clusterNames) || has(self.numberOfClusters) || has(self.topologySpreadConstraints))",
            "PickAll takes no clusterNames, numberOfClusters or topologySpreadConstraints",
        ),
        (
            "!has(self.placementType) || self.placementType != 'PickN' || (!has(self.clusterNames) && has(self.numberOfClusters))",
            "PickN takes no clusterNames and needs numberOfClusters",
        ),
    ])
}

pub(super) fn toleration_rules() -> Value {
    rules(&[
        (
            "self.all(x, !has(x.operator) || x.operator != 'Exists' || !has(x.value) || size(x.value) == 0)",
            "a toleration with operator Exists takes no value",
        ),
        (
            "self.all(x, (has(x.key) && size(x.key) > 0) || (has(x.operator) && x.operator == 'Exists'))",
            "a toleration without a key needs operator Exists",
        ),
    ])
}

pub(super) fn strategy_type_rules() -> Value {
    rules(&[(
        "oldSelf != 'External' || self == 'External'",
        "strategy type External does not change back",
    )])
}

pub(super) fn report_back_rules() -> Value {
    rules(&[(
        "self.type != 'Mirror' || (has(self.destination) && size(self.destination) > 0)",
        "reportBackStrategy of type Mirror needs a destination",
    )])
}

const PLACEMENT_REFERENCE: (&str, &str) = (
    "has(oldSelf.placement) == has(self.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",
    "placement is immutable",
);

pub(super) fn override_rules() -> Value {
    rules(&[PLACEMENT_REFERENCE])
}

pub(super) fn cluster_override_rules() -> Value {
    rules(&[
        PLACEMENT_REFERENCE,
        (
            "!has(self.placement) || !has(self.placement.scope) || self.placement.scope != 'Namespaced'",
            "placement of a ClusterResourceOverride cannot have scope Namespaced",
        ),
    ])
}

pub(super) fn budget_rules() -> Value {
    rules(&[(
        "!(has(self.maxUnavailable) && has(self.minAvailable))",
        "maxUnavailable and minAvailable exclude each other",
    )])
}

/// Runs go from Initialize to Run, and between Run and Stop.
pub(super) fn run_rules() -> Value {
    rules(&[(
        "!has(oldSelf.state) || !has(self.state) || self.state == oldSelf.state || (oldSelf.state == 'Initialize' && self.state == 'Run') || (oldSelf.state == 'Run' && self.state == 'Stop') || (oldSelf.state == 'Stop' && self.state == 'Run')",
        "state goes from Initialize to Run, and between Run and Stop",
    )])
}

const NO_WAIT_FOR_APPROVAL: (&str, &str) =
    ("!self.exists(e, e.type == 'Approval' && has(e.waitTime))", "waitTime is for TimedWait only");

pub(super) fn after_task_rules() -> Value {
    rules(&[
        NO_WAIT_FOR_APPROVAL,
        ("!self.exists(e, e.type == 'TimedWait' && !has(e.waitTime))", "TimedWait needs waitTime"),
        (
            "size(self.filter(e, e.type == 'TimedWait')) <= 1 && size(self.filter(e, e.type == 'Approval')) <= 1",
            "tasks after a stage are of different types",
        ),
    ])
}

pub(super) fn before_task_rules() -> Value {
    rules(&[
        NO_WAIT_FOR_APPROVAL,
        ("!self.exists(e, e.type == 'TimedWait')", "TimedWait is not possible before a stage"),
    ])
}

/// A count, or a percentage of clusters; a quarter if absent.
pub(super) fn share_of_clusters(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "pattern": "^((100|[0-9]{1,2})%|[0-9]+)$",
        "default": "25%",
    })
}

pub(super) fn budget(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "x-kubernetes-validations": rules(&[(
            "type(self) == string ? self.matches('^(100|[0-9]{1,2})%$') : self >= 0",
            "want a count of at least 0, or a percentage from 0% to 100%",
        )]),
    })
}

pub(super) fn concurrency(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "pattern": "^(100|[1-9][0-9]?)%$",
        "default": 1,
        "x-kubernetes-validations": rules(&[(
            "type(self) != int || self >= 1",
            "maxConcurrency must be at least 1",
        )]),
    })
}

/// Amounts by resource.
pub(super) fn resources(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
        },
    })
}

/// A whole object of any kind, kept as it is.
pub(super) fn embedded(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

pub(super) fn embedded_list(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": embedded(generator)})
}

/// Any JSON value.
pub(super) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// An object of any shape.
pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Metadata is checked by the API server itself.
pub(super) fn metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}

/// What an envelope wraps.
pub(super) fn wrapped(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 50,
        "additionalProperties": embedded(generator),
    })
}
