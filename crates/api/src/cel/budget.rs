//! What an evaluation may cost. Rules come from manifests that strangers write, so work is
//! counted while it is done and an expression that asks for too much is stopped.

use std::cell::Cell;

use cel::ExecutionError;
use cel::common::types::{CelBytes, CelList, CelMap, CelString};
use cel::common::value::Val;

/// The work one evaluation may do, in units of about one visited node; some 0.5 s.
pub const BUDGET: u64 = 10_000_000;

thread_local! {
    // Library functions are plain `fn`s, so what is left travels beside them.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Runs `work` with `budget` units; `None` beside the result says they were used up.
pub(super) fn limited<T>(budget: u64, work: impl FnOnce() -> T) -> (T, Option<u64>) {
    let outer = LEFT.replace(Some(budget));
    let result = work();
    (result, LEFT.replace(outer))
}

/// Takes `cost` units, or fails for good: once the budget is gone every charge fails, however
/// an expression hides the error behind `||`.
pub(super) fn charge(cost: u64) -> Result<(), ExecutionError> {
    let left = LEFT.get().and_then(|left| left.checked_sub(cost));
    LEFT.set(left);
    match left {
        Some(_) => Ok(()),
        None => Err(ExecutionError::function_error("budget", "cost limit exceeded")),
    }
}

/// Units for reading `length` bytes, a tenth each as in Kubernetes.
pub(super) fn traversal(length: usize) -> u64 {
    1 + length as u64 / 10
}

/// Units for copying `value`. Shared lists and maps cost one, whatever they hold.
pub(super) fn copying(value: &dyn Val) -> u64 {
    if let Some(text) = value.downcast_ref::<CelString>() {
        traversal(text.inner().len())
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        traversal(bytes.inner().len())
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        1 + list.inner().iter().map(|item| copying(item.as_ref())).sum::<u64>()
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        1 + map.inner().values().map(|item| 1 + copying(item.as_ref())).sum::<u64>()
    } else {
        1
    }
}
