//! `pod-template-hash`: byte for byte what kube-controller-manager computes, so that names of
//! ReplicaSets stay the same whoever makes them.
//!
//! Upstream hashes what Go prints of the template struct. That text is determined by the types
//! alone, so [`types`](super::types) is enough to print it; [`write_template`] does.

use std::fmt::{self, Write};

use serde_json::Value;

use super::quantity::held;
use super::types::{Field, Release, Shape, Table, TypeId, table};
use super::{TEMPLATE_HASH, defaults};

/// Letters that spell no words: no vowels, no 0, 1 or 3.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a template as it would be stored, after `collisions` earlier ones were taken.
///
/// Only the hash label is left out; a `collisions` of 0 is not the same as none.
pub fn template_hash(template: &Value, collisions: Option<i64>, release: Release) -> String {
    let mut stored = defaults::template(template);
    if let Some(labels) = stored.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.shift_remove(TEMPLATE_HASH);
    }
    let mut fnv = Fnv::new();
    write_template(&mut fnv, &stored, release).expect("a hash takes every text");
    if let Some(collisions) = collisions {
        let count = u32::try_from(collisions).unwrap_or(u32::MAX);
        fnv.feed(&count.to_le_bytes());
        fnv.feed(&[0; 4]);
    }
    let digits = fnv.0.to_string();
    digits.bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

/// Prints a stored template as Go prints its struct.
pub fn write_template(out: &mut impl Write, template: &Value, release: Release) -> fmt::Result {
    let table = table(release);
    let printer = Printer { table };
    printer.value(out, Some(template), table.named("v1.PodTemplateSpec"), true)
}

/// FNV-1a, 32 bit.
struct Fnv(u32);

impl Fnv {
    fn new() -> Self {
        Self(2_166_136_261)
    }

    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(16_777_619);
        }
    }
}

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.feed(text.as_bytes());
        Ok(())
    }
}

struct Printer<'t> {
    table: &'t Table,
}

impl Printer<'_> {
    fn value(
        &self,
        out: &mut impl Write,
        value: Option<&Value>,
        of: TypeId,
        named: bool,
    ) -> fmt::Result {
        let of = self.table.get(of);
        let value = value.filter(|value| !value.is_null());
        if let Shape::Pointer(inner) = of.shape {
            write!(out, "({})", of.name)?;
            return match value {
                None => out.write_str("<nil>"),
                Some(_) => self.value(out, value, inner, false),
            };
        }
        if named {
            write!(out, "({})", of.name)?;
        }
        match &of.shape {
            Shape::Text => out.write_str(value.and_then(Value::as_str).unwrap_or_default()),
            Shape::Bool => write!(out, "{}", value.and_then(Value::as_bool).unwrap_or(false)),
            Shape::Int32 | Shape::Int64 => {
                write!(out, "{}", value.and_then(Value::as_i64).unwrap_or(0))
            }
            Shape::IntOrString => int_or_string(out, value),
            Shape::Quantity => quantity(out, value),
            // The templates of workloads carry no instants.
            Shape::Time | Shape::Opaque => out.write_str(
                "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}",
            ),
            Shape::List(item) => self.list(out, value, *item),
            Shape::Map(item) => self.map(out, value, *item),
            Shape::Struct(fields) => self.fields(out, value, fields),
            Shape::Pointer(_) => Ok(()), // written above
        }
    }

    fn list(&self, out: &mut impl Write, value: Option<&Value>, item: TypeId) -> fmt::Result {
        let items = value.and_then(Value::as_array).filter(|items| !items.is_empty());
        let Some(items) = items else { return out.write_str("<nil>") };
        out.write_str("[")?;
        for (index, entry) in items.iter().enumerate() {
            out.write_str(if index > 0 { " " } else { "" })?;
            self.value(out, Some(entry), item, false)?;
        }
        out.write_str("]")
    }

    fn map(&self, out: &mut impl Write, value: Option<&Value>, item: TypeId) -> fmt::Result {
        let entries = value.and_then(Value::as_object).filter(|entries| !entries.is_empty());
        let Some(entries) = entries else { return out.write_str("<nil>") };
        let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        out.write_str("map[")?;
        for (index, (key, entry)) in entries.into_iter().enumerate() {
            out.write_str(if index > 0 { " " } else { "" })?;
            write!(out, "{key}:")?;
            self.value(out, Some(entry), item, false)?;
        }
        out.write_str("]")
    }

    fn fields(&self, out: &mut impl Write, value: Option<&Value>, fields: &[Field]) -> fmt::Result {
        out.write_str("{")?;
        for (index, field) in fields.iter().enumerate() {
            out.write_str(if index > 0 { " " } else { "" })?;
            write!(out, "{}:", field.name)?;
            let part = match &field.json {
                Some(json) => value.and_then(|value| value.get(json)),
                None => value,
            };
            self.value(out, part, field.of, true)?;
        }
        out.write_str("}")
    }
}

fn int_or_string(out: &mut impl Write, value: Option<&Value>) -> fmt::Result {
    let (kind, number, text) = match value {
        Some(Value::String(text)) => (1, 0, text.as_str()),
        other => (0, other.and_then(Value::as_i64).unwrap_or(0), ""),
    };
    write!(out, "{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}")
}

fn quantity(out: &mut impl Write, value: Option<&Value>) -> fmt::Result {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    let held = held(text);
    write!(out, "{{i:(resource.int64Amount){{value:(int64){}", held.value)?;
    write!(out, " scale:(resource.Scale){}}} d:(resource.infDecAmount){{Dec:", held.scale)?;
    match held.wide {
        None => out.write_str("(*inf.Dec)<nil>")?,
        Some((negative, nanos)) => {
            write!(out, "(*inf.Dec){{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat)[")?;
            let words = [nanos & u128::from(u64::MAX), nanos >> 64];
            write!(out, "{}", words[0])?;
            if words[1] > 0 {
                write!(out, " {}", words[1])?;
            }
            out.write_str("]} scale:(inf.Scale)9}")?;
        }
    }
    write!(out, "}} s:(string){} Format:(resource.Format){}}}", held.text, held.format)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_is_kubernetes_own() {
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx:1.27"}]}});
        let hash = |collisions| template_hash(&template, collisions, Release::V1_37);
        assert_eq!(hash(None), "69c6f74b8b");
        assert_eq!(hash(Some(1)), "6bf49c6d99");
        assert_ne!(hash(Some(0)), hash(None));
        assert_ne!(template_hash(&template, None, Release::V1_36), hash(None));
    }

    #[test]
    fn the_hash_label_itself_is_left_out() {
        let bare = json!({"metadata": {"labels": {"app": "web"}}, "spec": {}});
        let labelled =
            json!({"metadata": {"labels": {"app": "web", TEMPLATE_HASH: "x"}}, "spec": {}});
        let hash = |template| template_hash(template, None, Release::V1_37);
        assert_eq!(hash(&bare), hash(&labelled));
    }

    #[test]
    fn quantities_print_as_go_holds_them() {
        let mut text = String::new();
        quantity(&mut text, Some(&json!("128Mi"))).unwrap();
        assert_eq!(
            text,
            "{i:(resource.int64Amount){value:(int64)134217728 scale:(resource.Scale)0} \
             d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string) Format:(resource.Format)BinarySI}"
        );
    }
}
