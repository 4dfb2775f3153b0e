//! Rewrites a parsed expression so that the work it does is counted and its answers do not
//! depend on hash order. Operators that can copy, grow or compare much become calls of
//! [`operators`](super::library::operators), whose names no source text can spell.

use cel::IdedExpr;
use cel::common::ast::operators::{
    ADD, CONDITIONAL, EQUALS, IN, NOT_EQUALS, OPT_INDEX, OPT_SELECT,
};
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};
use cel::common::types::CelInt;

use super::construct;

/// Functions of strings and lists that read all of their target.
const READERS: &[&str] = &[
    "charAt",
    "contains",
    "distinct",
    "endsWith",
    "find",
    "findAll",
    "flatten",
    "format",
    "indexOf",
    "isSorted",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "matches",
    "max",
    "min",
    "replace",
    "reverse",
    "size",
    "slice",
    "sort",
    "split",
    "startsWith",
    "substring",
    "sum",
    "trim",
    "upperAscii",
];

/// Library functions replaced by bounded ones of our own.
const REPLACED: &[(&str, &str)] =
    &[("matches", "@matches"), ("replace", "@replace"), ("join", "@join")];

/// How many calls nest at most. Evaluation uses the stack in proportion.
pub(super) fn depth(expr: &IdedExpr) -> usize {
    1 + children(expr).into_iter().map(depth).max().unwrap_or(0)
}

pub(super) fn instrument(expr: &mut IdedExpr) {
    if let Expr::Struct(made) = &mut expr.expr
        && let Some(map) = construct::map_of(made, expr.id)
    {
        expr.expr = Expr::Map(map);
    }
    match &mut expr.expr {
        Expr::Call(call) => instrument_call(call),
        Expr::Comprehension(comprehension) => instrument_loop(comprehension),
        Expr::List(list) => list.elements.iter_mut().for_each(own),
        Expr::Map(map) => {
            map.entries.iter_mut().for_each(|entry| instrument_entry(&mut entry.expr));
        }
        Expr::Struct(fields) => {
            fields.entries.iter_mut().for_each(|entry| instrument_entry(&mut entry.expr));
        }
        Expr::Select(select) => instrument(&mut select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
    let is_optional = |call: &CallExpr| [OPT_SELECT, OPT_INDEX].contains(&call.func_name.as_str());
    if matches!(&expr.expr, Expr::Call(call) if is_optional(call)) {
        wrap("@weigh", expr, None);
    }
}

fn instrument_call(call: &mut CallExpr) {
    if let Some(target) = &mut call.target {
        instrument(target);
        if READERS.contains(&call.func_name.as_str()) && !is_name(target) {
            wrap("@weigh", target, None);
        }
    }
    call.args.iter_mut().for_each(instrument);
    let is_lists = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(name) if name == "lists");
    if call.func_name == "range" && call.target.as_deref().is_some_and(is_lists) {
        call.target = None;
        "@numbers".clone_into(&mut call.func_name);
    }
    let renamed = match call.func_name.as_str() {
        ADD => Some("@add"),
        EQUALS => Some("@eq"),
        NOT_EQUALS => Some("@ne"),
        IN => Some("@within"),
        name => REPLACED.iter().find(|(from, _)| *from == name).map(|(_, to)| *to),
    };
    if let Some(name) = renamed {
        call.func_name = name.to_owned();
    }
}

/// A target such as `lists` in `lists.range(3)`, which may name a namespace: it has to stay
/// a name for the call to be found.
fn is_name(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if super::library::NAMESPACES.contains(&name.as_str()))
}

fn instrument_loop(comprehension: &mut ComprehensionExpr) {
    let body = size(&comprehension.loop_step) + size(&comprehension.loop_cond);
    instrument(&mut comprehension.iter_range);
    instrument(&mut comprehension.loop_cond);
    instrument(&mut comprehension.result);
    own(&mut comprehension.accu_init);
    instrument_step(&comprehension.accu_var, &mut comprehension.loop_step);
    wrap("@range", &mut comprehension.iter_range, Some(body));
}

/// The interpreter appends in place where a step reads `@result + [x]`, so that shape stays.
fn instrument_step(accumulator: &str, step: &mut IdedExpr) {
    let is_accumulator =
        |expr: &IdedExpr| matches!(&expr.expr, Expr::Ident(name) if name == accumulator);
    match &mut step.expr {
        Expr::Call(call) if call.func_name == CONDITIONAL && call.args.len() == 3 => {
            instrument(&mut call.args[0]);
            instrument_step(accumulator, &mut call.args[1]);
            instrument_step(accumulator, &mut call.args[2]);
        }
        Expr::Call(call)
            if call.func_name == ADD && call.args.first().is_some_and(is_accumulator) =>
        {
            call.args.iter_mut().skip(1).for_each(instrument);
        }
        _ => instrument(step),
    }
}

fn instrument_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            instrument(&mut entry.key);
            own(&mut entry.value);
        }
        EntryExpr::StructField(field) => own(&mut field.value),
    }
}

/// Marks a place where a value is copied into another.
fn own(expr: &mut IdedExpr) {
    instrument(expr);
    if !matches!(expr.expr, Expr::Literal(_)) {
        wrap("@own", expr, None);
    }
}

fn wrap(function: &str, expr: &mut IdedExpr, number: Option<usize>) {
    let id = expr.id;
    let mut args = vec![std::mem::take(expr)];
    args.extend(number.map(|number| {
        let number = CelInt::from(i64::try_from(number).unwrap_or(i64::MAX));
        IdedExpr { id, expr: Expr::Literal(LiteralValue::Int(number)) }
    }));
    let call = CallExpr { func_name: function.to_owned(), target: None, args };
    *expr = IdedExpr { id, expr: Expr::Call(call) };
}

fn size(expr: &IdedExpr) -> usize {
    1 + children(expr).into_iter().map(size).sum::<usize>()
}

/// What an expression is made of.
pub(super) fn children(expr: &IdedExpr) -> Vec<&IdedExpr> {
    match &expr.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(part) => {
            vec![&part.iter_range, &part.accu_init, &part.loop_cond, &part.loop_step, &part.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| parts(&entry.expr)).collect(),
        Expr::Struct(fields) => {
            fields.entries.iter().flat_map(|entry| parts(&entry.expr)).collect()
        }
        Expr::Select(select) => vec![&select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}
