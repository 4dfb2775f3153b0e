//! `quantity('1.5Gi')` and its arithmetic.

use std::cmp::Ordering;

use cel::common::types::{CelDouble, CelInt, INT_TYPE, STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError};

use super::native::{NativeType, native, number, returned, truth};
use super::{Arguments, CallResult, failed, global, member, text};
use crate::text::Quantity;

static QUANTITY: Type = Type::new_unspecified_type("kubernetes.Quantity");

/// Billionths in a unit.
const NANO: i128 = 1_000_000_000;

impl NativeType for Quantity {
    const TYPE: &'static Type = &QUANTITY;

    fn text(&self) -> String {
        let nanos = self.as_nanos();
        if nanos % NANO == 0 { (nanos / NANO).to_string() } else { format!("{nanos}n") }
    }
}

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    let quantity = || QUANTITY.to_owned();
    env.add_type(quantity())?;
    global(env, "quantity", &[STRING_TYPE], parse)?;
    global(env, "isQuantity", &[STRING_TYPE], is_quantity)?;
    member(env, "isInteger", &[quantity()], is_integer)?;
    member(env, "asInteger", &[quantity()], as_integer)?;
    member(env, "asApproximateFloat", &[quantity()], as_float)?;
    member(env, "sign", &[quantity()], sign)?;
    for operand in [quantity(), INT_TYPE] {
        member(env, "add", &[quantity(), operand.to_owned()], add)?;
        member(env, "sub", &[quantity(), operand], subtract)?;
    }
    member(env, "isGreaterThan", &[quantity(), quantity()], is_greater)?;
    member(env, "isLessThan", &[quantity(), quantity()], is_less)?;
    member(env, "compareTo", &[quantity(), quantity()], compare_to)
}

fn parse<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    match text(&arguments[0])?.parse::<Quantity>() {
        Ok(quantity) => returned(quantity),
        Err(_) => failed(
            "quantity",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    }
}

fn is_quantity<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    truth(text(&arguments[0])?.parse::<Quantity>().is_ok())
}

fn whole(arguments: &[CowVal<'_, '_>]) -> Result<Option<i64>, ExecutionError> {
    let nanos = native::<Quantity>(&arguments[0])?.as_nanos();
    Ok((nanos % NANO == 0).then(|| i64::try_from(nanos / NANO).ok()).flatten())
}

fn is_integer<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    truth(whole(&arguments)?.is_some())
}

fn as_integer<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    match whole(&arguments)? {
        Some(units) => number(units),
        None => failed("asInteger", "cannot convert value to integer"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "approximate by name")]
fn as_float<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let nanos = native::<Quantity>(&arguments[0])?.as_nanos();
    Ok(CowVal::owned(CelDouble::from(nanos as f64 / NANO as f64)))
}

fn sign<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    number(order(native::<Quantity>(&arguments[0])?.cmp(&Quantity::ZERO)))
}

fn operand(argument: &CowVal<'_, '_>) -> Result<Quantity, ExecutionError> {
    match argument.downcast_ref::<CelInt>() {
        Some(units) => Ok(Quantity::from_units(*units.inner())),
        None => native::<Quantity>(argument).copied(),
    }
}

fn add<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    returned(native::<Quantity>(&arguments[0])?.saturating_add(operand(&arguments[1])?))
}

fn subtract<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    returned(native::<Quantity>(&arguments[0])?.saturating_sub(operand(&arguments[1])?))
}

fn is_greater<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    truth(native::<Quantity>(&arguments[0])? > native::<Quantity>(&arguments[1])?)
}

fn is_less<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    truth(native::<Quantity>(&arguments[0])? < native::<Quantity>(&arguments[1])?)
}

fn compare_to<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    number(order(native::<Quantity>(&arguments[0])?.cmp(native::<Quantity>(&arguments[1])?)))
}

/// -1, 0 or 1.
pub(super) fn order(order: Ordering) -> i64 {
    order as i64
}
