//! What [`instrument`](crate::cel::instrument) puts in the place of operators: the same
//! answers, with the work counted first.

use cel::common::types::{
    CelBool, CelInt, CelList, CelMap, CelString, DYN_TYPE, INT_TYPE, Kind, LIST_TYPE, STRING_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::{Arguments, CallResult, failed, global, member, text};
use crate::cel::budget::{charge, copying, traversal};
use crate::cel::library::value::json;
use crate::cel::library::value::{equal, items};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    global(env, "@add", &[DYN_TYPE, DYN_TYPE], add)?;
    global(env, "@eq", &[DYN_TYPE, DYN_TYPE], equals)?;
    global(env, "@ne", &[DYN_TYPE, DYN_TYPE], differs)?;
    global(env, "@within", &[DYN_TYPE, DYN_TYPE], is_in)?;
    global(env, "@own", &[DYN_TYPE], own)?;
    global(env, "@weigh", &[DYN_TYPE], own)?;
    global(env, "@range", &[DYN_TYPE, INT_TYPE], range)?;
    global(env, "@numbers", &[INT_TYPE], numbers)?;
    member(env, "@join", &[LIST_TYPE], join)?;
    member(env, "@join", &[LIST_TYPE, STRING_TYPE], join)?;
    member(env, "@replace", &[STRING_TYPE, STRING_TYPE, STRING_TYPE], replace)?;
    member(env, "@replace", &[STRING_TYPE, STRING_TYPE, STRING_TYPE, INT_TYPE], replace)
}

fn add<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let [left, right] = pair(arguments)?;
    charge(weight(left.as_ref()) + weight(right.as_ref()))?;
    let missing = || {
        let types = [&left, &right].map(|value| value.get_type().name().to_owned());
        ExecutionError::no_such_overload("_+_", types.into())
    };
    let sum = left.as_adder().ok_or_else(missing)?.add(right.as_ref())?.into_owned();
    Ok(CowVal::Owned(sum))
}

fn equals<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let [left, right] = pair(arguments)?;
    charge(weight(left.as_ref()).min(weight(right.as_ref())))?;
    Ok(CowVal::owned(CelBool::from(equal(left.as_ref(), right.as_ref()))))
}

fn differs<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let [left, right] = pair(arguments)?;
    charge(weight(left.as_ref()).min(weight(right.as_ref())))?;
    Ok(CowVal::owned(CelBool::from(!equal(left.as_ref(), right.as_ref()))))
}

fn is_in<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let [item, container] = pair(arguments)?;
    charge(weight(container.as_ref()))?;
    let found = match container.get_type().kind() {
        Kind::List => {
            items(container.as_ref()).into_iter().any(|other| equal(other, item.as_ref()))
        }
        _ => match container.as_container() {
            Some(container) => container.contains(item.as_ref())?,
            None => return Err(ExecutionError::no_such_overload("@in", Vec::new())),
        },
    };
    Ok(CowVal::owned(CelBool::from(found)))
}

fn own<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let Some(value) = arguments.pop() else {
        return Err(ExecutionError::invalid_argument_count(1, 0));
    };
    charge(copying(value.as_ref()))?;
    Ok(value)
}

/// What a loop runs over. Pays for every round beforehand, and gives the keys of a map literal
/// an order.
fn range<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let [range, body] = pair(arguments)?;
    let rounds = items(range.as_ref());
    let body = body.downcast_ref::<CelInt>().map_or(1, |body| body.inner().unsigned_abs());
    let rounds_cost = (rounds.len() as u64).saturating_mul(body);
    charge(rounds.iter().map(|item| copying(*item)).sum::<u64>().saturating_add(rounds_cost))?;
    if range.downcast_ref::<CelMap>().is_none() {
        return Ok(range);
    }
    let mut keys: Vec<Box<dyn Val + 'v>> = rounds.into_iter().map(Val::clone_as_boxed).collect();
    keys.sort_by_cached_key(|key| json::text_of(key.as_ref()));
    Ok(CowVal::owned(CelList::from(keys)))
}

/// `lists.range(n)`: 0 to n - 1.
fn numbers<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let count = arguments.first().and_then(|count| count.downcast_ref::<CelInt>());
    let count = count.map_or(0, |count| *count.inner()).max(0);
    charge(count.unsigned_abs())?;
    let numbers: Vec<Box<dyn Val + 'v>> =
        (0..count).map(|number| Box::new(CelInt::from(number)) as Box<dyn Val + 'v>).collect();
    Ok(CowVal::owned(CelList::from(numbers)))
}

fn join<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let separator = arguments.get(1).map(text).transpose()?.unwrap_or_default();
    let mut parts = Vec::new();
    for item in items(arguments[0].as_ref()) {
        match item.downcast_ref::<CelString>() {
            Some(part) => parts.push(part.inner()),
            None => return Err(ExecutionError::no_such_overload("join", Vec::new())),
        }
    }
    let length: usize = parts.iter().map(|part| part.len() + separator.len()).sum();
    charge(traversal(length))?;
    Ok(CowVal::owned(CelString::from(parts.join(separator))))
}

fn replace<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let [source, from, to] = [text(&arguments[0])?, text(&arguments[1])?, text(&arguments[2])?];
    let limit = arguments.get(3).and_then(|limit| limit.downcast_ref::<CelInt>());
    let limit = match limit.map(|limit| *limit.inner()) {
        Some(limit) if limit >= 0 => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let found = source.matches(from).count().min(limit);
    let Some(length) = found.checked_mul(to.len()) else {
        return failed("replace", "result is too long");
    };
    charge(traversal(source.len()) + traversal(length))?;
    Ok(CowVal::owned(CelString::from(source.replacen(from, to, limit))))
}

/// What reading all of `value` costs.
fn weight(value: &dyn Val) -> u64 {
    match value.get_type().kind() {
        Kind::List | Kind::Map => {
            1 + value.as_sizer().map_or(0, |sizer| sizer.size().inner().unsigned_abs())
        }
        _ => copying(value),
    }
}

fn pair<'b, 'v>(arguments: Arguments<'b, 'v>) -> Result<[CowVal<'b, 'v>; 2], ExecutionError> {
    arguments
        .try_into()
        .map_err(|arguments: Vec<_>| ExecutionError::invalid_argument_count(2, arguments.len()))
}
