//! Loops with two variables: `map.all(key, value, …)`, `list.transformList(index, item, …)`.
//!
//! The interpreter has one loop variable, so a loop runs over pairs, and each round names the
//! halves of its pair.

use cel::common::ast::operators::{
    ADD, CONDITIONAL, EQUALS, INDEX, LOGICAL_AND, LOGICAL_OR, NOT_STRICTLY_FALSE,
};
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue};
use cel::common::types::{CelBool, CelInt, CelList, CelMap, CelMapKey, DYN_TYPE, Kind, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env, ExecutionError, IdedExpr};

use super::bind::bind;
use super::{Arguments, CallResult, failed, global};
use crate::cel::budget::{charge, copying};
use crate::cel::library::value::items;

const PAIR: &str = "@pair";
const RESULT: &str = "@result";

type Helper<'a, 'b> = &'a mut MacroExprHelper<'b>;

/// What a loop starts from, does and ends with.
struct Loop {
    start: Expr,
    goes_on: Expr,
    step: IdedExpr,
    result: Expr,
}

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    global(env, "@pairs", &[DYN_TYPE], pairs)?;
    global(env, "@mapped", &[LIST_TYPE], mapped)?;
    global(env, "@merged", &[LIST_TYPE], merged)?;
    for (name, arity) in [("all", 3), ("exists", 3), ("exists_one", 3), ("existsOne", 3)] {
        env.add_macro(Macro::receiver(name, arity, move |helper, target, args| {
            expand(helper, target, args, |helper, args| match name {
                "all" => quantified(helper, args, LOGICAL_AND, true),
                "exists" => quantified(helper, args, LOGICAL_OR, false),
                _ => counted(helper, args),
            })
        }))?;
    }
    for name in ["transformList", "transformMap", "transformMapEntry"] {
        for arity in [3, 4] {
            env.add_macro(Macro::receiver(name, arity, move |helper, target, args| {
                let list = expand(helper, target, args, |helper, args| {
                    transformed(helper, args, name == "transformMap")
                })?;
                Ok(list.map(|list| match name {
                    "transformMap" => call(helper, "@mapped", vec![list]),
                    "transformMapEntry" => call(helper, "@merged", vec![list]),
                    _ => list,
                }))
            }))?;
        }
    }
    Ok(())
}

fn expand(
    helper: Helper<'_, '_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    body: impl FnOnce(Helper<'_, '_>, Vec<IdedExpr>) -> Loop,
) -> Result<Option<IdedExpr>, ParseError> {
    let mut names = Vec::new();
    for name in &args[..2] {
        match &name.expr {
            Expr::Ident(name) => names.push(name.clone()),
            _ => return Err(helper.new_error(name.id, "argument must be a simple name")),
        }
    }
    let Some(range) = target.take() else { return Ok(None) };
    let bodies = args.split_off(2).into_iter().map(|body| named(helper, &names, body)).collect();
    let Loop { start, goes_on, step, result } = body(helper, bodies);
    let comprehension = ComprehensionExpr {
        iter_range: call(helper, "@pairs", vec![range]),
        iter_var: PAIR.to_owned(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: helper.next_expr(start),
        loop_cond: helper.next_expr(goes_on),
        loop_step: step,
        result: helper.next_expr(result),
    };
    Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(comprehension)))))
}

/// `body` with both names standing for the halves of the round's pair.
fn named(helper: Helper<'_, '_>, names: &[String], body: IdedExpr) -> IdedExpr {
    let mut named = body;
    for (name, half) in names.iter().zip([0, 1]).rev() {
        let pair = helper.next_expr(Expr::Ident(PAIR.to_owned()));
        let half = helper.next_expr(Expr::Literal(LiteralValue::Int(CelInt::from(half))));
        let value = call(helper, INDEX, vec![pair, half]);
        named = bind(helper, name, value, named);
    }
    named
}

fn quantified(helper: Helper<'_, '_>, args: Vec<IdedExpr>, operator: &str, start: bool) -> Loop {
    let result = helper.next_expr(Expr::Ident(RESULT.to_owned()));
    let undecided = if start { result.clone() } else { call(helper, "!_", vec![result.clone()]) };
    let goes_on = call(helper, NOT_STRICTLY_FALSE, vec![undecided]).expr;
    let operands = std::iter::once(result).chain(args).collect();
    Loop {
        start: Expr::Literal(LiteralValue::Boolean(CelBool::from(start))),
        goes_on,
        step: call(helper, operator, operands),
        result: Expr::Ident(RESULT.to_owned()),
    }
}

fn counted(helper: Helper<'_, '_>, mut args: Vec<IdedExpr>) -> Loop {
    let result = helper.next_expr(Expr::Ident(RESULT.to_owned()));
    let one = helper.next_expr(Expr::Literal(LiteralValue::Int(CelInt::from(1))));
    let more = call(helper, ADD, vec![result.clone(), one.clone()]);
    args.extend([more, result.clone()]);
    Loop {
        start: Expr::Literal(LiteralValue::Int(CelInt::from(0))),
        goes_on: Expr::Literal(LiteralValue::Boolean(CelBool::from(true))),
        step: call(helper, CONDITIONAL, args),
        result: call(helper, EQUALS, vec![result, one]).expr,
    }
}

/// The list of what each round gives; with its key where a map is wanted.
fn transformed(helper: Helper<'_, '_>, mut args: Vec<IdedExpr>, keyed: bool) -> Loop {
    let result = helper.next_expr(Expr::Ident(RESULT.to_owned()));
    let mut item = args.pop().unwrap_or_default();
    if keyed {
        let pair = helper.next_expr(Expr::Ident(PAIR.to_owned()));
        let first = helper.next_expr(Expr::Literal(LiteralValue::Int(CelInt::from(0))));
        let key = call(helper, INDEX, vec![pair, first]);
        item = helper.next_expr(Expr::List(ListExpr::new(vec![key, item])));
    }
    let list = helper.next_expr(Expr::List(ListExpr::new(vec![item])));
    let appended = call(helper, ADD, vec![result.clone(), list]);
    let step = match args.pop() {
        Some(filter) => call(helper, CONDITIONAL, vec![filter, appended, result]),
        None => appended,
    };
    Loop {
        start: Expr::List(ListExpr::new(Vec::new())),
        goes_on: Expr::Literal(LiteralValue::Boolean(CelBool::from(true))),
        step,
        result: Expr::Ident(RESULT.to_owned()),
    }
}

fn call(helper: Helper<'_, '_>, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let call = CallExpr { func_name: function.to_owned(), target: None, args };
    helper.next_expr(Expr::Call(call))
}

/// The entries of a map, or a list's elements with their indices, as lists of two.
fn pairs<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let range = arguments[0].as_ref();
    let is_map = range.get_type().kind() == Kind::Map;
    let mut pairs: Vec<Box<dyn Val + 'v>> = Vec::new();
    for (index, item) in (0_i64..).zip(items(range)) {
        let pair: Vec<Box<dyn Val + 'v>> = if is_map {
            let missing = || ExecutionError::no_such_overload("@pairs", Vec::new());
            let value = range.as_indexer().ok_or_else(missing)?.get(item)?;
            charge(copying(value.as_ref()))?;
            vec![item.clone_as_boxed(), value.into_owned()]
        } else {
            charge(copying(item))?;
            vec![Box::new(CelInt::from(index)), item.clone_as_boxed()]
        };
        pairs.push(Box::new(CelList::from(pair)));
    }
    Ok(CowVal::owned(CelList::from(pairs)))
}

/// A map of lists of two.
fn mapped<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let mut entries = std::collections::HashMap::new();
    for pair in items(arguments[0].as_ref()) {
        if let [key, value] = items(pair)[..] {
            let key = CelMapKey::try_from(CowVal::Owned(key.clone_as_boxed()))?;
            entries.insert(key, value.clone_as_boxed());
        }
    }
    Ok(CowVal::owned(CelMap::from(entries)))
}

/// A map of all entries of a list of maps; each key once.
fn merged<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let mut entries = std::collections::HashMap::new();
    for map in items(arguments[0].as_ref()) {
        for key in items(map) {
            let missing = || ExecutionError::no_such_overload("transformMapEntry", Vec::new());
            let value = map.as_indexer().ok_or_else(missing)?.get(key)?.into_owned();
            let name = CelMapKey::try_from(CowVal::Owned(key.clone_as_boxed()))?;
            if entries.insert(name, value).is_some() {
                return failed("transformMapEntry", "insert failed: key already exists");
            }
        }
    }
    Ok(CowVal::owned(CelMap::from(entries)))
}
