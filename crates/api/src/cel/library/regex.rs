//! `matches`, `find` and `findAll`. Patterns are RE2's, which the `regex` crate follows: no
//! back-references, time linear in the text.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cel::common::types::{CelBool, CelInt, CelList, CelString, INT_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

use super::{Arguments, CallResult, failed, global, member, text};
use crate::cel::budget::{charge, traversal};

/// Patterns kept compiled, per thread; when there are more, all are forgotten.
const KEPT_MAX: usize = 64;

/// What compiling a pattern costs in units, per byte of it.
const COMPILING: u64 = 50;

thread_local! {
    static KEPT: RefCell<BTreeMap<String, Regex>> = const { RefCell::new(BTreeMap::new()) };
}

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    member(env, "@matches", &[STRING_TYPE, STRING_TYPE], matches)?;
    global(env, "@matches", &[STRING_TYPE, STRING_TYPE], matches)?;
    member(env, "find", &[STRING_TYPE, STRING_TYPE], find)?;
    member(env, "findAll", &[STRING_TYPE, STRING_TYPE], find_all)?;
    member(env, "findAll", &[STRING_TYPE, STRING_TYPE, INT_TYPE], find_all)
}

fn matches<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let (source, pattern) = (text(&arguments[0])?, compiled(text(&arguments[1])?)?);
    charge(traversal(source.len()))?;
    Ok(CowVal::owned(CelBool::from(pattern.is_match(source))))
}

fn find<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let (source, pattern) = (text(&arguments[0])?, compiled(text(&arguments[1])?)?);
    charge(traversal(source.len()))?;
    let found = pattern.find(source).map_or("", |found| found.as_str());
    Ok(CowVal::owned(CelString::from(found.to_owned())))
}

fn find_all<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let (source, pattern) = (text(&arguments[0])?, compiled(text(&arguments[1])?)?);
    charge(traversal(source.len()) * 2)?;
    let limit = arguments.get(2).and_then(|limit| limit.downcast_ref::<CelInt>());
    let limit = match limit.map(|limit| *limit.inner()) {
        Some(limit) if limit >= 0 => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let found = pattern.find_iter(source).take(limit);
    let found = found
        .map(|found| Box::new(CelString::from(found.as_str().to_owned())) as Box<dyn Val + 'v>);
    Ok(CowVal::owned(CelList::from(found.collect::<Vec<_>>())))
}

fn compiled(pattern: &str) -> Result<Regex, ExecutionError> {
    if let Some(known) = KEPT.with_borrow(|kept| kept.get(pattern).cloned()) {
        return Ok(known);
    }
    charge(COMPILING.saturating_mul(pattern.len() as u64))?;
    let Ok(regex) = Regex::new(pattern) else {
        return failed("matches", format!("error parsing regexp: `{pattern}`"));
    };
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(pattern.to_owned(), regex.clone());
    });
    Ok(regex)
}
