//! Texts that can be seen to mean nothing: patterns, durations and times that do not parse.

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue};

use super::super::instrument::children;
use super::source::Source;
use crate::cel::converted;

pub(super) fn check(expr: &IdedExpr, source: &mut Source) {
    if let Expr::Call(call) = &expr.expr
        && let Some(argument) = call.args.last()
        && let Expr::Literal(LiteralValue::String(text)) = &argument.expr
    {
        let text = text.inner();
        let (name, is_member) = (call.func_name.as_str(), call.target.is_some());
        let is_sound = match name {
            "matches" => regex::Regex::new(text).is_ok(),
            "duration" | "timestamp" if !is_member => converted(name, text).is_some(),
            _ => true,
        };
        if !is_sound {
            source.tell(argument.id, &format!("invalid {name} argument"));
        }
    }
    for child in children(expr) {
        check(child, source);
    }
}
