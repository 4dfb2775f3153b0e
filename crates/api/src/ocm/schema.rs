//! The pieces of schema that no derive can say.

use schemars::{Schema, SchemaGenerator, json_schema};

/// `25%` from 1 to 100, or a number from 1, or the seed's `None`.
pub(super) fn group_length(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true,
        "pattern": "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*|None)$"})
}

/// `25%` from 0 to 100, or a number.
pub(super) fn share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true,
        "pattern": "^((100|[0-9]{1,2})%|[0-9]+)$"})
}

/// A text or a number.
pub(super) fn int_or_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true})
}

/// Quantities by the name of the resource.
pub(super) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"}})
}

/// A list in which every entry may have any shape.
pub(super) fn anything_listed(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}})
}

/// A list of whole objects of other kinds.
pub(super) fn embedded_objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "object",
        "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}})
}
