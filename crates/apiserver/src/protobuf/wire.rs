//! Protobuf's wire format: a sequence of numbered fields, each a number or a run of bytes.

use super::ProtobufError;

/// What a field carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'b> {
    Varint(u64),
    Fixed64(u64),
    /// No field of a built-in kind is one.
    Fixed32,
    Bytes(&'b [u8]),
}

/// The fields of a message, in order; ends after the first error.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u32, Content<'b>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field().ok_or(ProtobufError::Malformed("it is cut short"));
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'b> Fields<'b> {
    fn field(&mut self) -> Option<(u32, Content<'b>)> {
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
        let content = match key & 7 {
            0 => Content::Varint(varint(&mut self.rest)?),
            1 => Content::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                Content::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Content::Fixed32
            }
            _ => return None,
        };
        Some((number, content))
    }

    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

/// Takes one number of up to 64 bits.
pub(super) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

impl<'b> Content<'b> {
    pub(super) fn bytes(self) -> Result<&'b [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(ProtobufError::Malformed("a number stands where a message was expected")),
        }
    }

    /// Bytes that are no UTF-8 are replaced, as Go's JSON encoder does.
    pub(super) fn text(self) -> Result<String, ProtobufError> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub(super) fn integer(self) -> Result<i64, ProtobufError> {
        match self {
            Self::Varint(number) => Ok(number.cast_signed()),
            _ => Err(ProtobufError::Malformed("no integer stands where one was expected")),
        }
    }
}
