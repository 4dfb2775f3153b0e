//! Expressions of a policy, and the variables that they share.

use std::cell::RefCell;
use std::collections::BTreeMap;

use convoy_api::cel::{Program, Scope};
use serde_json::{Map, Value};

use crate::admission::authorizer;

/// One expression.
#[derive(Debug)]
pub(in crate::admission) struct Expression {
    pub(super) source: String,
    program: Result<Program, String>,
    /// The variables of its policy that it names.
    uses: Vec<String>,
}

/// An evaluation of one policy for one object: a variable is evaluated on first use, once for
/// all expressions.
pub(super) struct Evaluation<'p> {
    variables: &'p [(String, Expression)],
    scope: Scope,
    values: RefCell<BTreeMap<usize, Result<Value, String>>>,
}

impl Expression {
    pub(super) fn read(source: &str) -> Self {
        let program = Program::compile(source).map_err(|error| error.to_string());
        Self { source: source.to_owned(), program, uses: named_variables(source) }
    }

    /// Whether it uses `authorizer`.
    pub(super) fn asks(&self) -> bool {
        self.program.as_ref().is_ok_and(|program| program.mentions(authorizer::NAME))
    }
}

impl<'p> Evaluation<'p> {
    pub(super) fn new(variables: &'p [(String, Expression)], scope: Scope) -> Self {
        Self { variables, scope, values: RefCell::default() }
    }

    /// What its expressions see besides the variables.
    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(super) fn value(&self, expression: &Expression) -> Result<Value, String> {
        self.value_before(expression, self.variables.len())
    }

    /// The value of an expression that sees the variables before `end`.
    fn value_before(&self, expression: &Expression, end: usize) -> Result<Value, String> {
        let program = expression.program.as_ref().map_err(Clone::clone)?;
        let (mut known, mut missed) = (Map::new(), Vec::new());
        for name in &expression.uses {
            let found = self.variables[..end].iter().rposition(|(known, _)| known == name);
            match found.map(|index| self.variable(index)) {
                Some(Ok(value)) => drop(known.insert(name.clone(), value)),
                Some(Err(why)) => missed.push((name, why)),
                None => {}
            }
        }
        let scope = self.scope.clone().variable("variables", &Value::Object(known));
        program.evaluate(&scope).map_err(|error| {
            // One that has no value matters to those alone who come to it.
            let error = error.to_string();
            let missing = missed.iter().find(|(name, _)| error == format!("no such key: {name}"));
            missing.map_or(error, |(name, why)| {
                format!("composited variable {name:?} fails to evaluate: {why}")
            })
        })
    }

    fn variable(&self, index: usize) -> Result<Value, String> {
        if let Some(value) = self.values.borrow().get(&index) {
            return value.clone();
        }
        let value = self.value_before(&self.variables[index].1, index);
        self.values.borrow_mut().insert(index, value.clone());
        value
    }
}

/// What stands behind `variables.` in an expression. One in a text costs an evaluation, and
/// changes no answer.
fn named_variables(source: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names: Vec<String> = Vec::new();
    for (at, word) in source.match_indices("variables") {
        let begins = !source[..at].ends_with(|c: char| is_part(c) || c == '.');
        let rest = source[at + word.len()..].trim_start();
        let Some(rest) = rest.strip_prefix('.').filter(|_| begins) else { continue };
        let rest = rest.trim_start_matches('?').trim_start();
        let name = &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())];
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_an_expression_names_are_found() {
        for (source, expected) in [
            ("variables.a + variables . b_2", &["a", "b_2"][..]),
            ("variables.a.b == variables.a", &["a"]),
            ("object.variables.a || myvariables.b", &[]),
            ("variables.?c.orValue(1)", &["c"]),
            ("variables", &[]),
        ] {
            assert_eq!(named_variables(source), expected, "{source}");
        }
    }

    #[test]
    fn variables_have_values_when_they_are_asked_for() {
        let variables: Vec<(String, Expression)> = [
            ("a", "1"),
            ("broken", "object.none"),
            ("b", "variables.a + 1"),
            ("early", "variables.late"),
            ("late", "1"),
        ]
        .map(|(name, source)| (name.to_owned(), Expression::read(source)))
        .into();
        let scope = Scope::new().variable("object", &serde_json::json!({}));
        let evaluation = Evaluation::new(&variables, scope);
        let value = |source: &str| evaluation.value(&Expression::read(source));
        assert_eq!(value("variables.b == 2"), Ok(Value::Bool(true)));
        assert_eq!(value("true || variables.broken"), Ok(Value::Bool(true)));
        assert_eq!(
            value("variables.broken == 1"),
            Err("composited variable \"broken\" fails to evaluate: no such key: none".to_owned())
        );
        assert!(value("variables.early == 1").is_err(), "it comes before what it uses");
        assert_eq!(evaluation.values.borrow().len(), 4, "nobody asked for the last one");
    }
}
