//! Objects that an expression makes, as mutating policies write them:
//! `Object{spec: Object.spec{replicas: 3}}` and `JSONPatch{op: "remove", path: "/spec/paused"}`.
//!
//! Any field may be named in an `Object`: which ones its kind has is found out when it is merged.
//! While an expression is evaluated, an object is a map with its type under a key that no source
//! text can spell; [`plain`] takes the types away again and refuses an object in the wrong place.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, LiteralValue, MapEntryExpr, MapExpr};
use cel::common::ast::{StructExpr, StructFieldExpr};
use cel::common::types::CelString;
use serde_json::Value;

/// One operation of a JSON patch.
pub(super) const JSON_PATCH: &str = "JSONPatch";

/// Where a map keeps the type that it was made as.
const TYPE: &str = "@type";

/// Whether expressions make objects of this type.
pub(super) fn is_made(name: &str) -> bool {
    let path = name.strip_prefix("Object");
    name == JSON_PATCH || path.is_some_and(|path| path.is_empty() || path.starts_with('.'))
}

/// The map that an object becomes; `None` for objects of other types.
pub(super) fn map_of(made: &mut StructExpr, id: u64) -> Option<MapExpr> {
    if !is_made(&made.type_name) {
        return None;
    }
    let entry = |id: u64, key: &str, value: IdedExpr, optional: bool| {
        let key = text(id, key);
        IdedEntryExpr { id, expr: EntryExpr::MapEntry(MapEntryExpr { key, value, optional }) }
    };
    let mut entries = vec![entry(id, TYPE, text(id, &made.type_name), false)];
    for IdedEntryExpr { id, expr } in std::mem::take(&mut made.entries) {
        let EntryExpr::StructField(StructFieldExpr { field, value, optional }) = expr else {
            continue;
        };
        entries.push(entry(id, &field, value, optional));
    }
    Some(MapExpr { entries })
}

fn text(id: u64, text: &str) -> IdedExpr {
    IdedExpr { id, expr: Expr::Literal(LiteralValue::String(CelString::from(text.to_owned()))) }
}

/// What an expression made, as JSON. An object in a field has to have the type that the path to it
/// spells, `Object.spec.selector`; lists and maps on the way add nothing to it.
pub fn plain(made: Value) -> Result<Value, String> {
    plain_at(made, None)
}

fn plain_at(made: Value, place: Option<&str>) -> Result<Value, String> {
    match made {
        Value::Array(items) => items.into_iter().map(|item| plain_at(item, place)).collect(),
        Value::Object(mut fields) => {
            let Some(Value::String(name)) = fields.shift_remove(TYPE) else {
                let fields = fields.into_iter();
                return fields.map(|(key, value)| Ok((key, plain_at(value, place)?))).collect();
            };
            if let Some(place) = place.filter(|place| *place != name) {
                return Err(format!(
                    "unexpected type name {name:?}, expected {place:?}, which matches field name \
                     path from root Object type"
                ));
            }
            let within = |key: &str| (name != JSON_PATCH).then(|| format!("{name}.{key}"));
            let plain = |(key, value): (String, Value)| {
                let value = plain_at(value, within(&key).as_deref())?;
                Ok((key, value))
            };
            fields.into_iter().map(plain).collect()
        }
        scalar => Ok(scalar),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::cel::check::made_type;
    use crate::cel::{Declared, Program, Scope, Type, plain, type_of};

    fn made(source: &str) -> Result<serde_json::Value, String> {
        let scope = Scope::new().variable("object", &json!({"spec": {"replicas": 3}}));
        let program = Program::compile(source).map_err(|error| error.to_string())?;
        plain(program.evaluate(&scope).map_err(|error| error.to_string())?)
    }

    #[test]
    fn objects_become_json_without_their_types() {
        for (source, want) in [
            ("Object{}", json!({})),
            (
                "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
                json!({"spec": {"replicas": 4}}),
            ),
            (
                r#"Object{metadata: Object.metadata{annotations: {"by": "me"}}}"#,
                json!({"metadata": {"annotations": {"by": "me"}}}),
            ),
            (
                r#"Object{spec: Object.spec{items: [Object.spec.items{name: "a"}]}}"#,
                json!({"spec": {"items": [{"name": "a"}]}}),
            ),
            (
                "Object{?spec: has(object.status) ? optional.of(Object.spec{}) : optional.none()}",
                json!({}),
            ),
            (
                r#"[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a~b/c"),
                    value: Object.metadata{x: Object.metadata.x{}}}]"#,
                json!([{"op": "add", "path": "/metadata/labels/a~0b~1c", "value": {"x": {}}}]),
            ),
        ] {
            assert_eq!(made(source), Ok(want), "{source}");
        }
        let wrong = made("Object{spec: Object.spec{selector: Object.spec.wrong{}}}").unwrap_err();
        assert!(wrong.contains(r#"expected "Object.spec.selector""#), "{wrong}");
    }

    #[test]
    fn only_those_who_may_make_objects_do() {
        let makers = Declared::new().making_objects();
        let of = |source: &str, declared: &Declared| {
            type_of(source, declared)
                .map(|of| of.name())
                .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
        };
        assert_eq!(of("Object{a: 1}", &makers), Ok("Object".to_owned()));
        assert_eq!(of("Object{a: 1}.b", &makers), Ok("dyn".to_owned()));
        let patches = r#"[JSONPatch{op: "remove", path: "/a"}]"#;
        assert_eq!(of(patches, &makers), Ok("list(JSONPatch)".to_owned()));
        assert_eq!(type_of(patches, &makers), Ok(Type::list(made_type("JSONPatch").unwrap())));
        for (source, want) in [
            ("JSONPatch{oops: 1}", "undefined field 'oops'"),
            (
                "JSONPatch{op: 1}",
                "expected type of field 'op' is 'string' but provided type is 'int'",
            ),
            ("Objects{}", "undeclared reference to 'Objects' (in container '')"),
        ] {
            let told = of(source, &makers).unwrap_err();
            assert!(told.ends_with(want), "{source}: {told}");
        }
        assert!(of("Object{}", &Declared::new()).is_err());
    }
}
