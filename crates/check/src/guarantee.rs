//! One module per guarantee: a function over one step and the world it was decided from.

pub(crate) mod budget;
mod defect;
mod evidence;
mod partition;
mod size;
mod stuck;
mod timer;
mod undo;

use crate::{Finding, Subject};

/// A guarantee as code: pushes a finding for each violation.
pub(crate) type Rule = fn(&Subject<'_>, &mut Vec<Finding>);

pub(crate) const RULES: &[Rule] = &[
    budget::never_over,
    evidence::is_of_this_revision,
    partition::one_state_each,
    partition::who_waits_says_why,
    stuck::never_silently,
    size::no_object_grows_with_the_fleet,
    undo::only_what_we_did,
    timer::names_the_instant,
    defect::none_is_told,
];
