//! What type an expression has, found without evaluating it: names that nobody declared, fields
//! that an object cannot have and calls that no function takes are told with their place, in the
//! words of Kubernetes' compiler.

mod functions;
mod literals;
mod source;
mod types;

use cel::IdedExpr;
use cel::common::ast::operators::{INDEX, LOGICAL_AND, LOGICAL_OR, OPT_SELECT};
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, StructExpr,
};
use cel::common::types::CelInt;

use super::construct::{JSON_PATCH, is_made};
use functions::overloads;
use source::Source;
use types::Found;

pub use types::{Object, Type};

/// What an expression may name.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    variables: Vec<(String, Type)>,
    makes_objects: bool,
}

impl Declared {
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a variable, in place of one of the same name.
    #[must_use]
    pub fn variable(mut self, name: &str, of: Type) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), of));
        self
    }

    /// Declares the types `Object`, `Object.spec` and so on, and `JSONPatch`.
    #[must_use]
    pub fn making_objects(mut self) -> Self {
        self.makes_objects = true;
        self
    }
}

/// Types are values too, under these names.
fn named_type(name: &str) -> Option<Type> {
    let of = match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "dyn" => Type::Dyn,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "string" => Type::String,
        "null_type" => Type::Null,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "type" => Type::Meta(Box::new(Type::Dyn)),
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "net.IP" => Type::Native("net.IP"),
        "net.CIDR" => Type::Native("net.CIDR"),
        _ => return None,
    };
    Some(Type::Meta(Box::new(of)))
}

/// The type of objects that an expression makes under this name: `Object.spec{}`.
pub(super) fn made_type(name: &str) -> Option<Type> {
    if name == JSON_PATCH {
        let texts = ["op", "path", "from"].map(|field| (field.to_owned(), Type::String));
        let fields = texts.into_iter().chain([("value".to_owned(), Type::Dyn)]);
        return Some(Type::object(name, fields));
    }
    is_made(name).then(|| Type::open_object(name))
}

/// The type of an expression, or every mistake in it.
pub(super) fn check(
    expression: &IdedExpr,
    info: cel::common::ast::SourceInfo,
    declared: &Declared,
) -> Result<Type, String> {
    let mut check = Check {
        declared,
        source: Source::new(info),
        bound: Vec::new(),
        found: Found::default(),
        mixed: Vec::new(),
    };
    let of = check.expression(expression);
    if check.source.is_sound() {
        check.tell_mixed();
        literals::check(expression, &mut check.source);
    }
    let of = check.found.final_type(&of);
    check.source.told().map_or(Ok(of), Err)
}

struct Check<'d> {
    declared: &'d Declared,
    source: Source,
    /// Names that loops bind, innermost last.
    bound: Vec<(String, Type)>,
    found: Found,
    /// Lists and maps whose parts differ: where, and in what.
    mixed: Vec<(u64, Type, Type)>,
}

impl Check<'_> {
    fn expression(&mut self, expr: &IdedExpr) -> Type {
        match &expr.expr {
            Expr::Literal(value) => literal(value),
            Expr::Ident(name) => self.name(expr.id, name),
            Expr::Select(select) => self.select(expr, select),
            Expr::Call(call) => self.call(expr, call),
            Expr::List(list) => {
                // The halves of a round of `transformMap`.
                if let [first, second] = list.elements.as_slice()
                    && half(first).is_some()
                {
                    let pair = (self.expression(first), self.expression(second));
                    return Type::Pair(Box::new(pair));
                }
                let mut item = None;
                for (index, element) in list.elements.iter().enumerate() {
                    let mut of = self.expression(element);
                    if list.optional_indices.contains(&index) {
                        of = self.unwrapped(of);
                    }
                    item = Some(self.joined(element.id, item, of));
                }
                Type::list(item.unwrap_or_else(|| self.found.fresh()))
            }
            Expr::Map(map) => {
                let (mut key, mut value) = (None, None);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    let of = self.expression(&entry.key);
                    key = Some(self.joined(entry.key.id, key, of));
                    let mut of = self.expression(&entry.value);
                    if entry.optional {
                        of = self.unwrapped(of);
                    }
                    value = Some(self.joined(entry.value.id, value, of));
                }
                let key = key.unwrap_or_else(|| self.found.fresh());
                Type::map(key, value.unwrap_or_else(|| self.found.fresh()))
            }
            Expr::Struct(made) => self.made(expr, made),
            Expr::Comprehension(part) => self.comprehension(part),
            Expr::Unspecified => Type::Error,
        }
    }

    /// The type of an object, and whether its fields have theirs.
    fn made(&mut self, expr: &IdedExpr, made: &StructExpr) -> Type {
        let made_as = made_type(&made.type_name);
        let of = match made_as.filter(|_| self.declared.makes_objects) {
            Some(of) => of,
            None => match named_type(&made.type_name) {
                Some(Type::Meta(of)) => *of,
                _ => self.undeclared(expr, &made.type_name),
            },
        };
        for entry in &made.entries {
            let EntryExpr::StructField(field) = &entry.expr else { continue };
            let mut given = self.expression(&field.value);
            if field.optional {
                given = self.unwrapped(given);
            }
            if !matches!(of, Type::Object(_)) {
                continue;
            }
            let place = self.source.place(&field.value);
            let wanted = self.field(place, &of, &field.field, false);
            if !self.found.fits(&wanted, &given) {
                let given = self.found.settled(&given);
                let message = format!(
                    "expected type of field '{}' is '{wanted}' but provided type is '{given}'",
                    field.field
                );
                self.source.tell_at(place, &message);
            }
        }
        of
    }

    /// The type of what came before together with the next one.
    fn joined(&mut self, id: u64, before: Option<Type>, next: Type) -> Type {
        let Some(before) = before else { return next };
        if self.found.fits(&before, &next) {
            return Found::more_general(&before, &next);
        }
        let (before, next) = (self.found.settled(&before), self.found.settled(&next));
        self.mixed.push((id, before, next));
        Type::Dyn
    }

    fn tell_mixed(&mut self) {
        for (id, wanted, given) in std::mem::take(&mut self.mixed) {
            self.source.tell(id, &format!("expected type '{wanted}' but found '{given}'"));
        }
    }

    fn unwrapped(&self, of: Type) -> Type {
        match self.found.settled(&of) {
            Type::Optional(value) => *value,
            other => other,
        }
    }

    fn undeclared(&mut self, expr: &IdedExpr, name: &str) -> Type {
        let place = self.source.place(expr);
        self.source.tell_at(place, &format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn known(&self, name: &str) -> Option<Type> {
        let bound = self.bound.iter().rev().find(|(known, _)| known == name);
        let declared = || self.declared.variables.iter().find(|(known, _)| known == name);
        bound.or_else(declared).map(|(_, of)| of.clone()).or_else(|| named_type(name))
    }

    fn name(&mut self, id: u64, name: &str) -> Type {
        self.known(name).unwrap_or_else(|| {
            self.source.tell(id, &format!("undeclared reference to '{name}' (in container '')"));
            Type::Error
        })
    }

    fn select(&mut self, expr: &IdedExpr, select: &SelectExpr) -> Type {
        if let Some(of) = qualified(expr).and_then(|name| self.known(&name)) {
            return of;
        }
        let of = self.expression(&select.operand);
        let place = self.source.place(expr);
        let field = self.field(place, &of, &select.field, false);
        if select.test { Type::Bool } else { field }
    }

    /// What a field of a type has.
    fn field(&mut self, place: usize, of: &Type, name: &str, is_optional: bool) -> Type {
        let of = self.found.settled(of);
        let (target, was_optional) = match of {
            Type::Optional(value) => (*value, true),
            other => (other, false),
        };
        let field = match &target {
            Type::Map(parts) => parts.1.clone(),
            Type::Object(object) => match object.fields.get(name) {
                Some(field) => field.clone(),
                None if object.is_open => Type::Dyn,
                None => {
                    self.source.tell_at(place, &format!("undefined field '{name}'"));
                    Type::Error
                }
            },
            Type::Variable(_) => {
                self.found.fits(&Type::Dyn, &target);
                Type::Dyn
            }
            some if some.is_dyn() => Type::Dyn,
            Type::Native(native) if native.starts_with("kubernetes.") => {
                self.source.tell_at(place, &format!("unexpected failed resolution of '{native}'"));
                Type::Error
            }
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.source.tell_at(place, &message);
                Type::Error
            }
        };
        if was_optional || is_optional { Type::optional(field) } else { field }
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Type {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (LOGICAL_AND | LOGICAL_OR, operands) => {
                for operand in operands {
                    self.wants(operand, &Type::Bool);
                }
                return Type::Bool;
            }
            (OPT_SELECT, [operand, field]) => {
                let of = self.expression(operand);
                let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
                    return Type::Error;
                };
                let place = self.source.place(expr);
                return self.field(place, &of, name.inner(), true);
            }
            (INDEX, [pair, _]) if half(expr).is_some() => {
                let of = self.expression(pair);
                return match (self.found.settled(&of), half(expr)) {
                    (Type::Pair(parts), Some(0)) => parts.0,
                    (Type::Pair(parts), _) => parts.1,
                    _ => Type::Dyn,
                };
            }
            _ => {}
        }
        let spaced = call.target.as_deref().and_then(qualified);
        let spaced = spaced.map(|space| format!("{space}.{}", call.func_name));
        let spaced = spaced.filter(|name| overloads(name).is_some() || name.starts_with("math."));
        let target = match &spaced {
            Some(_) => None,
            None => call.target.as_deref().map(|target| self.expression(target)),
        };
        let is_member = target.is_some();
        let given: Vec<Type> = target
            .into_iter()
            .chain(call.args.iter().map(|argument| self.argument(call, argument)))
            .collect();
        let name = spaced.as_deref().unwrap_or(&call.func_name);
        self.applied(expr, name, is_member, &given)
    }

    /// An argument; what a text is formatted with may be of any types.
    fn argument(&mut self, call: &CallExpr, argument: &IdedExpr) -> Type {
        let before = self.mixed.len();
        let of = self.expression(argument);
        if call.func_name == "format" {
            self.mixed.truncate(before);
        }
        of
    }

    /// What a function gives for arguments of these types.
    fn applied(&mut self, expr: &IdedExpr, name: &str, is_member: bool, given: &[Type]) -> Type {
        let Some(known) = overloads(name) else {
            // Ours alone: what loops are made of, and what upstream does not have.
            if name.starts_with('@') || name.starts_with("math.") {
                return Type::Dyn;
            }
            return self.undeclared(expr, name);
        };
        let mut result: Option<Type> = None;
        for overload in known.iter().filter(|one| one.is_member == is_member) {
            let (takes, gives) = overload.opened(&mut self.found);
            if !self.found.all_fit(&takes, given) {
                continue;
            }
            let gives = self.found.settled(&gives);
            result = Some(match result {
                None => gives,
                Some(before) if before == gives => before,
                Some(_) => Type::Dyn,
            });
        }
        result.unwrap_or_else(|| {
            let shown: Vec<String> =
                given.iter().map(|of| self.found.settled(of).to_string()).collect();
            let shown = match shown.split_first() {
                Some((target, rest)) if is_member => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            let place = self.source.place(expr);
            let message = format!("found no matching overload for '{name}' applied to '{shown}'");
            self.source.tell_at(place, &message);
            Type::Error
        })
    }

    fn wants(&mut self, expr: &IdedExpr, wanted: &Type) {
        let given = self.expression(expr);
        if !self.found.fits(wanted, &given) {
            let (wanted, given) = (self.found.settled(wanted), self.found.settled(&given));
            let place = self.source.place(expr);
            let message = format!("expected type '{wanted}' but found '{given}'");
            self.source.tell_at(place, &message);
        }
    }

    fn comprehension(&mut self, part: &ComprehensionExpr) -> Type {
        let range = self.expression(&part.iter_range);
        let accumulated = self.expression(&part.accu_init);
        let range = self.found.settled(&range);
        let (first, second) = match range {
            Type::List(item) => (*item.clone(), (Type::Int, *item)),
            Type::Map(parts) => (parts.0.clone(), *parts),
            Type::Variable(_) => {
                self.found.fits(&Type::Dyn, &range);
                (Type::Dyn, (Type::Dyn, Type::Dyn))
            }
            some if some.is_dyn() => (Type::Dyn, (Type::Dyn, Type::Dyn)),
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                let place = self.source.place(&part.iter_range);
                self.source.tell_at(place, &message);
                (Type::Error, (Type::Error, Type::Error))
            }
        };
        let outer = self.bound.len();
        self.bound.push((part.accu_var.clone(), accumulated.clone()));
        let result = outer + 1;
        match &part.iter_var2 {
            None => self.bound.push((part.iter_var.clone(), first)),
            Some(name) => {
                self.bound.push((part.iter_var.clone(), second.0));
                self.bound.push((name.clone(), second.1));
            }
        }
        self.wants(&part.loop_cond, &Type::Bool);
        self.wants(&part.loop_step, &accumulated);
        self.bound.truncate(result);
        let of = self.expression(&part.result);
        self.bound.truncate(outer);
        self.found.settled(&of)
    }
}

fn literal(value: &LiteralValue) -> Type {
    match value {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// The dotted name that an expression spells, if it is one.
fn qualified(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// Which half of a round's pair an expression takes: see `library/pairs.rs`.
fn half(expr: &IdedExpr) -> Option<i64> {
    let Expr::Call(CallExpr { func_name, args, .. }) = &expr.expr else { return None };
    let [IdedExpr { expr: Expr::Ident(name), .. }, index] = args.as_slice() else { return None };
    match &index.expr {
        Expr::Literal(LiteralValue::Int(index)) if func_name == INDEX && name == "@pair" => {
            Some(*CelInt::inner(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
