//! Expressions of policies and webhooks: what they may name, and what they have to come to.

use convoy_api::cel::{Declared, Type, type_of};

use super::at::{At, Errors};

/// What conditions of webhooks may name.
pub(super) fn of_conditions() -> Declared {
    let group_version = ["group", "version"];
    let named =
        |last: &str| texts(&format!("kubernetes.{last}"), &[&group_version[..], &[last]].concat());
    let user = fields(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", Type::list(Type::String)),
            ("extra", Type::map(Type::String, Type::list(Type::String))),
        ],
    );
    let request = fields(
        "kubernetes.AdmissionRequest",
        [
            ("kind", named("kind")),
            ("resource", named("resource")),
            ("subResource", Type::String),
            ("requestKind", named("kind")),
            ("requestResource", named("resource")),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    );
    let check = Type::Native("kubernetes.authorization.ResourceCheck");
    Declared::new()
        .variable("object", Type::Dyn)
        .variable("oldObject", Type::Dyn)
        .variable("request", request)
        .variable("namespaceObject", namespace())
        .variable("authorizer", Type::Native("kubernetes.authorization.Authorizer"))
        .variable("authorizer.requestResource", check)
}

/// What policies may name besides.
pub(super) fn of_policies(has_parameters: bool) -> Declared {
    let declared = of_conditions();
    if has_parameters { declared.variable("params", Type::Dyn) } else { declared }
}

fn namespace() -> Type {
    let words = || Type::map(Type::String, Type::String);
    let metadata = fields(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", words()),
            ("annotations", words()),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", Type::list(Type::String)),
        ],
    );
    let spec = fields("kubernetes.NamespaceSpec", [("finalizers", Type::list(Type::String))]);
    fields(
        "kubernetes.Namespace",
        [
            ("metadata", metadata),
            ("spec", spec),
            ("status", texts("kubernetes.NamespaceStatus", &["phase"])),
        ],
    )
}

/// The same with variables of a policy, in the order of their names.
pub(super) fn with_variables(declared: &Declared, known: &[(String, Type)]) -> Declared {
    let variables = Type::object("kubernetes.variables", known.iter().cloned());
    declared.clone().variable("variables", variables)
}

/// The type of an expression, which has to be one of those that are wanted, if any are.
pub(super) fn compiles(
    expression: &At<'_>,
    declared: &Declared,
    wanted: &[Type],
    errors: &mut Errors,
) -> Type {
    let found = match type_of(expression.text(), declared) {
        Ok(found) => found,
        Err(error) => {
            errors.push(expression.invalid(&format!("compilation failed: {error}")));
            return Type::Dyn;
        }
    };
    if !wanted.is_empty() && !wanted.contains(&found) {
        let names: Vec<String> = wanted.iter().map(Type::name).collect();
        let names = match names.as_slice() {
            [one] => one.clone(),
            several => format!("one of [{}]", several.join(" ")),
        };
        let detail = format!("must evaluate to {names} but got {}", found.name());
        errors.push(expression.invalid(&detail));
    }
    found
}

fn fields<const COUNT: usize>(name: &str, fields: [(&str, Type); COUNT]) -> Type {
    Type::object(name, fields.into_iter().map(|(field, of)| (field.to_owned(), of)))
}

fn texts(name: &str, names: &[&str]) -> Type {
    Type::object(name, names.iter().map(|field| ((*field).to_owned(), Type::String)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(source: &str, wanted: &[Type]) -> String {
        let source = json!(source);
        let mut errors = Errors::new();
        let declared = with_variables(&of_policies(false), &[("a".to_owned(), Type::Int)]);
        compiles(&At::new("e", &source), &declared, wanted, &mut errors);
        let told = errors.first().map(ToString::to_string).unwrap_or_default();
        let told = told.lines().next().unwrap_or_default().to_owned();
        told.rsplit_once("<input>:1:").map_or(told.clone(), |(_, rest)| rest.to_owned())
    }

    #[test]
    fn expressions_come_to_what_is_wanted_of_them() {
        // As a kube-apiserver 1.36.3 answers.
        for (source, want) in [
            ("object.x == 1", ""),
            ("object.x", "e: Invalid value: \"object.x\": must evaluate to bool but got dyn"),
            ("null", "e: Invalid value: \"null\": must evaluate to bool but got null_type"),
            ("request.foo == 1", "8: undefined field 'foo'"),
            ("request.kind.foo == 1", "13: undefined field 'foo'"),
            (
                "request.userInfo.groups.exists(g, g == 1)",
                "37: found no matching overload for '_==_' applied to '(string, int)'",
            ),
            ("request.options.x == 1", ""),
            ("request.dryRun", ""),
            ("params.x == 1", "1: undeclared reference to 'params' (in container '')"),
            ("namespaceObject.metadata.uid == 'x'", "25: undefined field 'uid'"),
            (
                "namespaceObject.metadata.creationTimestamp == 1",
                "44: found no matching overload for '_==_' applied to '(timestamp, int)'",
            ),
            (
                "authorizer.requestResource.check('a')",
                "e: Invalid value: \"authorizer.requestResource.check('a')\": must evaluate to \
                 bool but got kubernetes.authorization.Decision",
            ),
            (
                "variables.a == 'x'",
                "13: found no matching overload for '_==_' applied to '(int, string)'",
            ),
            ("variables.z", "10: undefined field 'z'"),
        ] {
            assert_eq!(told(source, &[Type::Bool]), want, "{source}");
        }
        assert_eq!(
            told("1", &[Type::String, Type::Null]),
            "e: Invalid value: \"1\": must evaluate to one of [string null_type] but got int"
        );
        assert_eq!(told("1", &[]), "");
    }
}
