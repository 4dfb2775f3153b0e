//! Answers of a kube-apiserver 1.36.3, which was asked to store each expression.

use super::*;
use crate::cel::{CompileError, type_of};

/// A `spec` with a field of every kind.
fn spec() -> Type {
    let object = |name: &str, fields: &[(&str, Type)]| {
        Type::object(name, fields.iter().map(|(name, of)| ((*name).to_owned(), of.clone())))
    };
    let part = object("selfType.lo.@idx", &[("k", Type::String), ("v", Type::Int)]);
    object(
        "selfType",
        &[
            ("n", Type::Int),
            ("d", Type::Double),
            ("s", Type::String),
            ("b", Type::Bool),
            ("when", Type::Timestamp),
            ("dur", Type::Duration),
            ("by", Type::Bytes),
            ("l", Type::list(Type::String)),
            ("li", Type::list(Type::Int)),
            ("m", Type::map(Type::String, Type::String)),
            ("ios", Type::Dyn),
            ("free", object("selfType.free", &[])),
            ("o", object("selfType.o", &[("a", Type::String)])),
            ("lo", Type::list(part)),
        ],
    )
}

fn checked(source: &str) -> String {
    let declared = Declared::new()
        .variable("self", spec())
        .variable("old", Type::optional(spec()))
        .variable("object", Type::Dyn)
        .variable("authorizer", Type::Native("kubernetes.authorization.Authorizer"))
        .variable(
            "authorizer.requestResource",
            Type::Native("kubernetes.authorization.ResourceCheck"),
        );
    match type_of(source, &declared) {
        Ok(of) => of.to_string(),
        Err(CompileError::Types(text)) => {
            // Place and message of each; the line and the mark below it are checked once.
            let heads = text.lines().filter_map(|line| line.strip_prefix("ERROR: <input>:1:"));
            heads.collect::<Vec<_>>().join("; ")
        }
        Err(other) => other.to_string(),
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    let declared = Declared::new().variable("self", spec());
    let told = type_of("self.n > 0 &&\n  self.none == 1 || x", &declared).unwrap_err();
    assert_eq!(
        told.to_string(),
        "ERROR: <input>:2:7: undefined field 'none'\n |   self.none == 1 || x\n | ......^\n\
         ERROR: <input>:2:21: undeclared reference to 'x' (in container '')\n\
         \u{20}|   self.none == 1 || x\n | ....................^"
    );
}

fn holds(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter(|(source, want)| checked(source) != *want)
        .map(|(source, want)| format!("{source}\n  {}\n  {want}", checked(source)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_and_fields_have_to_be_declared() {
    holds(&[
        ("x == 1", "1: undeclared reference to 'x' (in container '')"),
        ("self.none == 1", "5: undefined field 'none'"),
        ("has(self.o.b)", "4: undefined field 'b'"),
        ("self.?none.hasValue()", "5: undefined field 'none'"),
        ("self.free.a == 1", "10: undefined field 'a'"),
        ("self.lo.exists(x, x.z == 1)", "20: undefined field 'z'"),
        ("self.n.foo", "7: type 'int' does not support field selection"),
        ("self.l.size", "7: type 'list(string)' does not support field selection"),
        ("object.x.map(a, a.b).y", "21: type 'list(dyn)' does not support field selection"),
        ("self.s.foo()", "11: undeclared reference to 'foo' (in container '')"),
        ("foo(self.s)", "4: undeclared reference to 'foo' (in container '')"),
        ("self.l.exists(x, y)", "18: undeclared reference to 'y' (in container '')"),
        (
            "authorizer.foo",
            "11: unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
        ),
        ("self.ios.foo == 1", "bool"),
        ("self.m.a == 'x'", "bool"),
        ("object.a < object.b", "bool"),
    ]);
}

#[test]
fn operators_want_types_that_go_together() {
    let none = |place: u32, name: &str, given: &str| {
        format!("{place}: found no matching overload for '{name}' applied to '{given}'")
    };
    let rows = [
        ("self.n == 'a'", none(8, "_==_", "(int, string)")),
        ("self.n + self.s == 'a'", none(8, "_+_", "(int, string)")),
        ("self.l.all(x, x > 1)", none(17, "_>_", "(string, int)")),
        ("self.li.map(x, x + 'a').size() > 0", none(18, "_+_", "(int, string)")),
        ("self.m['a'] == 1", none(13, "_==_", "(string, int)")),
        ("self.m[1] == 'x'", none(7, "_[_]", "(map(string, string), int)")),
        ("self.l['a'] == 'x'", none(7, "_[_]", "(list(string), string)")),
        ("self.free == 1", none(11, "_==_", "(selfType.free, int)")),
        ("self.when > '2020'", none(11, "_>_", "(timestamp, string)")),
        ("self.n == null", none(8, "_==_", "(int, null)")),
        ("self.n == 1u", none(8, "_==_", "(int, uint)")),
        ("self.n in ['a']", none(8, "@in", "(int, list(string))")),
        ("1 in self.l", none(3, "@in", "(int, list(string))")),
        ("self.b ? 1 : 'a'", none(8, "_?_:_", "(bool, int, string)")),
        ("[1,2] == ['a']", none(7, "_==_", "(list(int), list(string))")),
        ("!self.n", none(1, "!_", "(int)")),
        ("-self.s == 'a'", none(1, "-_", "(string)")),
        ("self.n % 2.0 == 1", none(8, "_%_", "(int, double)")),
        ("self.l == self.li", none(8, "_==_", "(list(string), list(int))")),
        ("self.m == self.o", none(8, "_==_", "(map(string, string), selfType.o)")),
        ("self.m.all(k, v, v > 1)", none(20, "_>_", "(string, int)")),
        (
            "self.l.filter(x, x).size() > 0",
            none(14, "_?_:_", "(string, list(string), list(string))"),
        ),
        ("old.n == self.n", none(7, "_==_", "(optional_type(int), int)")),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(source, want)| (*source, &**want)).collect();
    holds(&rows);
    holds(&[
        ("self.n > 1.5", "bool"),
        ("self.n < self.d", "bool"),
        ("self.o == null", "bool"),
        ("self.when > timestamp('2020-01-01T00:00:00Z')", "bool"),
        ("self.by == b'abc'", "bool"),
        ("type(self.n) == string", "bool"),
        ("self.n || true", "5: expected type 'bool' but found 'int'"),
        ("self.s.size() > 1 && self.n", "26: expected type 'bool' but found 'int'"),
        ("[1, 'a'].size() > 0", "5: expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 'c'}.size() > 0", "15: expected type 'int' but found 'string'"),
        ("'%s %d'.format(['a', 1]) == 'a 1'", "bool"),
        ("old.?n.orValue(1) == self.n", "bool"),
        ("old.value().n == self.n", "bool"),
        ("[].exists(x, x)", "bool"),
    ]);
}

#[test]
fn functions_want_what_they_take() {
    let none = |place: u32, name: &str, given: &str| {
        format!("{place}: found no matching overload for '{name}' applied to '{given}'")
    };
    let rows = [
        ("self.s.startsWith(1)", none(18, "startsWith", "string.(int)")),
        ("object.metadata.name.startsWith(1)", none(32, "startsWith", "dyn.(int)")),
        ("size(self.n) > 1", none(5, "size", "(int)")),
        ("int(self.l) > 1", none(4, "int", "(list(string))")),
        ("self.s.matches(self.n)", none(15, "matches", "string.(int)")),
        ("quantity(self.n).isInteger()", none(9, "quantity", "(int)")),
        ("quantity(self.s) > 1", none(18, "_>_", "(kubernetes.Quantity, int)")),
        ("self.lo.isSorted()", none(17, "isSorted", "list(selfType.lo.@idx).()")),
        ("self.l.sum() == 'a'", none(11, "sum", "list(string).()")),
        ("self.l.indexOf(1) == 1", none(15, "indexOf", "list(string).(int)")),
        ("self.li.join(',') == 'a'", none(13, "join", "list(int).(string)")),
        ("sets.contains(self.l, [1])", none(14, "sets.contains", "(list(string), list(int))")),
        ("self.?n.orValue('a') == 1", none(16, "orValue", "optional_type(int).(string)")),
        ("self.n.getFullYear() == 1", none(19, "getFullYear", "int.()")),
        (
            "authorizer.group('').resource(1)",
            none(30, "resource", "kubernetes.authorization.GroupCheck.(int)"),
        ),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(source, want)| (*source, &**want)).collect();
    holds(&rows);
    holds(&[
        ("self.s.matches('[')", "16: invalid matches argument"),
        ("duration('x') == duration('1s')", "10: invalid duration argument"),
        ("timestamp('x') == timestamp('2020-01-01T00:00:00Z')", "11: invalid timestamp argument"),
        ("duration(self.n) == duration('1s')", "bool"),
        ("self.m.transformList(k, v, k + v)", "list(string)"),
        ("self.m.transformMap(k, v, v.size())", "map(string, int)"),
        ("self.l.transformMapEntry(i, v, {v: i})", "map(string, int)"),
        ("self.m.all(k, v, k == v)", "bool"),
        ("self.l[?0].orValue('b')", "string"),
        ("self.m.?a.optMap(x, x + 'b').orValue('x')", "string"),
        ("self.l.exists_one(x, x == 'a')", "bool"),
        ("self.l.map(x, x.size() > 1, 1)", "list(int)"),
        ("object.?x.orValue(1)", "dyn"),
        ("dyn(self.n) == 'a'", "bool"),
        ("cel.bind(x, self.n, x + 1)", "int"),
        ("url(self.s).getQuery()['a'][0]", "string"),
        ("cidr(self.s).containsIP(self.s)", "bool"),
        ("format.dns1123Label().validate(self.s).hasValue()", "bool"),
        ("authorizer.requestResource.check('a').allowed()", "bool"),
        ("authorizer.path('a').check('b').reason()", "string"),
        ("math.greatest(1, 2)", "dyn"),
        ("self.li.sum()", "int"),
        ("self.dur + self.when", "timestamp"),
    ]);
}
