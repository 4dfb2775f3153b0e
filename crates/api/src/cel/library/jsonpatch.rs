//! `jsonpatch.escapeKey(key)`: a key as a JSON pointer spells it.

use cel::common::types::{CelString, STRING_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env};

use super::{Arguments, CallResult, global, text};
use crate::cel::budget::{charge, traversal};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    global(env, "jsonpatch.escapeKey", &[STRING_TYPE], escape_key)
}

fn escape_key<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let key = text(&arguments[0])?;
    charge(traversal(key.len()))?;
    let escaped = key.replace('~', "~0").replace('/', "~1");
    Ok(CowVal::owned(CelString::from(escaped)))
}
