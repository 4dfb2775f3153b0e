//! Lists read as sets: `sets.contains`, `sets.equivalent`, `sets.intersects`.

use cel::common::types::{CelBool, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::{Arguments, CallResult, global};
use crate::cel::budget::charge;
use crate::cel::library::value::{equal, items};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    global(env, "sets.contains", &[LIST_TYPE, LIST_TYPE], contains)?;
    global(env, "sets.equivalent", &[LIST_TYPE, LIST_TYPE], equivalent)?;
    global(env, "sets.intersects", &[LIST_TYPE, LIST_TYPE], intersects)
}

fn contains<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let (list, parts) = both(&arguments)?;
    Ok(boolean(holds_all(&list, &parts)))
}

fn equivalent<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let (left, right) = both(&arguments)?;
    Ok(boolean(holds_all(&left, &right) && holds_all(&right, &left)))
}

fn intersects<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let (left, right) = both(&arguments)?;
    Ok(boolean(right.iter().any(|item| holds(&left, *item))))
}

type Both<'a, 'v> = (Vec<&'a (dyn Val + 'v)>, Vec<&'a (dyn Val + 'v)>);

fn both<'a, 'v>(arguments: &'a [CowVal<'_, 'v>]) -> Result<Both<'a, 'v>, ExecutionError> {
    let (left, right) = (items(arguments[0].as_ref()), items(arguments[1].as_ref()));
    charge((left.len() as u64).saturating_mul(right.len() as u64))?;
    Ok((left, right))
}

fn holds_all(list: &[&dyn Val], parts: &[&dyn Val]) -> bool {
    parts.iter().all(|part| holds(list, *part))
}

fn holds(list: &[&dyn Val], part: &dyn Val) -> bool {
    list.iter().any(|item| equal(*item, part))
}

fn boolean<'b, 'v>(value: bool) -> CowVal<'b, 'v> {
    CowVal::owned(CelBool::from(value))
}
