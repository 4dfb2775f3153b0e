//! Kubernetes' list functions: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.

use std::cmp::Ordering;

use cel::common::types::{CelBool, CelInt, DYN_TYPE, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::{Arguments, CallResult, failed, member};
use crate::cel::budget::charge;
use crate::cel::library::value::{equal, items};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    member(env, "isSorted", &[LIST_TYPE], is_sorted)?;
    member(env, "sum", &[LIST_TYPE], sum)?;
    member(env, "min", &[LIST_TYPE], min)?;
    member(env, "max", &[LIST_TYPE], max)?;
    member(env, "indexOf", &[LIST_TYPE, DYN_TYPE], index_of)?;
    member(env, "lastIndexOf", &[LIST_TYPE, DYN_TYPE], last_index_of)
}

fn is_sorted<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let list = items(arguments[0].as_ref());
    let mut sorted = true;
    for pair in list.windows(2) {
        sorted &= compare(pair[0], pair[1])? != Ordering::Greater;
    }
    Ok(CowVal::owned(CelBool::from(sorted)))
}

/// The sum of an empty list is 0, whatever its elements would have been.
fn sum<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let list = items(arguments[0].as_ref());
    let Some((first, rest)) = list.split_first() else {
        return Ok(CowVal::owned(CelInt::from(0)));
    };
    let mut total: Box<dyn Val + 'v> = first.clone_as_boxed();
    for item in rest {
        let missing = || ExecutionError::no_such_overload("sum", Vec::new());
        total = total.as_adder().ok_or_else(missing)?.add(*item)?.into_owned();
    }
    Ok(CowVal::Owned(total))
}

fn min<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    extreme(&arguments, "min", Ordering::Less)
}

fn max<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    extreme(&arguments, "max", Ordering::Greater)
}

fn extreme<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    name: &str,
    wanted: Ordering,
) -> CallResult<'b, 'v> {
    let list = items(arguments[0].as_ref());
    let Some((first, rest)) = list.split_first() else {
        return failed(name, format!("{name} called on empty list"));
    };
    let mut best = *first;
    for item in rest {
        if compare(*item, best)? == wanted {
            best = *item;
        }
    }
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

fn index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let list = items(arguments[0].as_ref());
    charge(list.len() as u64)?;
    let found = list.iter().position(|item| equal(*item, arguments[1].as_ref()));
    Ok(index(found))
}

fn last_index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let list = items(arguments[0].as_ref());
    charge(list.len() as u64)?;
    let found = list.iter().rposition(|item| equal(*item, arguments[1].as_ref()));
    Ok(index(found))
}

fn index<'b, 'v>(found: Option<usize>) -> CowVal<'b, 'v> {
    let index = found.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1);
    CowVal::owned(CelInt::from(index))
}

fn compare(left: &dyn Val, right: &dyn Val) -> Result<Ordering, ExecutionError> {
    charge(1)?;
    match left.as_comparer() {
        Some(comparer) => comparer.compare(right),
        None => Err(ExecutionError::no_such_overload("compare", Vec::new())),
    }
}
