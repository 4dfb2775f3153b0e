//! The variables that an expression reads from outside, so that a misspelt one is found
//! before anything is evaluated.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::Expr;

use super::instrument::children;
use super::library::NAMESPACES;

/// Names of types, which are values too: `type(x) == int`.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "dyn",
    "google",
    "int",
    "list",
    "map",
    "net",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// Every name that no loop of the expression binds and no type or namespace goes by.
pub(super) fn variables(expr: &IdedExpr) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    collect(expr, &mut Vec::new(), &mut found);
    found
}

fn collect<'e>(expr: &'e IdedExpr, bound: &mut Vec<&'e str>, found: &mut BTreeSet<&'e str>) {
    match &expr.expr {
        Expr::Ident(name) => {
            let name = name.as_str();
            let known = [TYPES, NAMESPACES].iter().any(|names| names.contains(&name));
            if !known && !name.starts_with('@') && !bound.contains(&name) {
                found.insert(name);
            }
        }
        Expr::Comprehension(part) => {
            collect(&part.iter_range, bound, found);
            collect(&part.accu_init, bound, found);
            let outer = bound.len();
            bound.extend([part.iter_var.as_str(), part.accu_var.as_str()]);
            bound.extend(part.iter_var2.as_deref());
            for inner in [&part.loop_cond, &part.loop_step, &part.result] {
                collect(inner, bound, found);
            }
            bound.truncate(outer);
        }
        _ => children(expr).into_iter().for_each(|child| collect(child, bound, found)),
    }
}
