//! Bytes to text: UTF-8, or UTF-16 where a byte order mark says so (as `kubectl … > file`
//! writes it in some Windows shells).

use std::sync::Arc;

use super::location::{Problem, SourceLocation};

/// The text of a file, without its byte order mark.
pub(super) fn decode(file: &Arc<str>, bytes: Vec<u8>) -> Result<String, Problem> {
    let text = match bytes.as_slice() {
        [0xFF, 0xFE, rest @ ..] => utf16(file, rest, u16::from_le_bytes)?,
        [0xFE, 0xFF, rest @ ..] => utf16(file, rest, u16::from_be_bytes)?,
        [0xEF, 0xBB, 0xBF, ..] => utf8(file, bytes[3..].to_vec())?,
        _ => utf8(file, bytes)?,
    };
    match memchr::memchr(0, text.as_bytes()) {
        None => Ok(text),
        Some(at) => {
            let message = "NUL byte: not a text file";
            Err(Problem::error(location(file, text.as_bytes(), at), message))
        }
    }
}

fn utf8(file: &Arc<str>, bytes: Vec<u8>) -> Result<String, Problem> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[at];
        let message = format!("byte 0x{byte:02X} is not UTF-8: not a text file");
        Problem::error(location(file, error.as_bytes(), at), message)
    })
}

fn utf16(file: &Arc<str>, bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Problem> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text: Result<String, _> =
        char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    match text {
        Ok(text) if rest.is_empty() => Ok(text),
        _ => {
            let message = "the file has a UTF-16 byte order mark but is not valid UTF-16";
            Err(Problem::error(SourceLocation::file(file), message))
        }
    }
}

/// The location of a byte offset.
fn location(file: &Arc<str>, bytes: &[u8], at: usize) -> SourceLocation {
    let (line, column) = position(&bytes[..at]);
    SourceLocation { file: Arc::clone(file), line: Some(line), column: Some(column) }
}

/// Line and column, both from 1, of what follows `before`.
fn position(before: &[u8]) -> (usize, usize) {
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1) + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<String, String> {
        decode(&Arc::from("f"), bytes.to_vec())
            .map_err(|problem| format!("{}: {}", problem.location.unwrap(), problem.message))
    }

    #[test]
    fn byte_order_marks_are_understood() {
        let cases: [(&[u8], &str); 5] = [
            (b"a: b", "a: b"),
            (b"\xEF\xBB\xBFa: b", "a: b"),
            (b"\xFF\xFEa\0:\0", "a:"),
            (b"\xFE\xFF\0a\0:", "a:"),
            (b"", ""),
        ];
        for (bytes, text) in cases {
            assert_eq!(decoded(bytes).as_deref(), Ok(text));
        }
    }

    #[test]
    fn binary_input_is_refused_with_its_location() {
        assert_eq!(
            decoded(b"a\nbc\xC3"),
            Err("f:2:3: byte 0xC3 is not UTF-8: not a text file".to_owned())
        );
        assert_eq!(decoded(b"a\0"), Err("f:1:2: NUL byte: not a text file".to_owned()));
        assert!(decoded(b"\xFF\xFEa").is_err());
        assert!(decoded(b"\xFF\xFE\x00\xD8").is_err());
    }
}
