//! Where JSON values begin and end, found without building them.
//!
//! Knowing the ranges first gives every list item its line, keeps one bad item from hiding
//! the others, and measures nesting before anything recursive runs. Whether a value is
//! correct inside its range is left to the real parser.

use std::ops::Range;

/// The extent of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) range: Range<usize>,
    /// Maps and lists within each other, itself included.
    pub(super) depth: usize,
}

/// Invalid syntax at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) at: usize,
    pub(super) message: &'static str,
}

/// The next offset that is not white space.
pub(super) fn skip_space(text: &[u8], at: usize) -> usize {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    at + text[at..].iter().take_while(space).count()
}

/// The value that begins at `at`, which is not white space.
pub(super) fn value(text: &[u8], at: usize) -> Result<Extent, SyntaxError> {
    let (mut next, mut open, mut depth) = (at, 0_usize, 0_usize);
    while let Some(byte) = text.get(next) {
        match byte {
            b'"' => next = string_end(text, next)?,
            b'{' | b'[' => {
                open += 1;
                depth = depth.max(open);
                next += 1;
            }
            b'}' | b']' => {
                open = open.saturating_sub(1);
                next += 1;
            }
            _ if open == 0 => next = word_end(text, next),
            _ => next += 1,
        }
        if open == 0 {
            return Ok(Extent { range: at..next, depth });
        }
    }
    Err(SyntaxError { at: text.len(), message: "unexpected end of input: unclosed bracket" })
}

/// The members of the object at `range`: the text of each key with its quotes, and the value.
pub(super) fn members(
    text: &[u8],
    range: Range<usize>,
) -> Result<Vec<(Range<usize>, Extent)>, SyntaxError> {
    let mut members = Vec::new();
    elements(text, range, |text, at| {
        if text.get(at) != Some(&b'"') {
            return Err(SyntaxError { at, message: "expected a key in double quotes" });
        }
        let key = at..string_end(text, at)?;
        let colon = skip_space(text, key.end);
        if text.get(colon) != Some(&b':') {
            return Err(SyntaxError { at: colon, message: "expected a colon after the key" });
        }
        let extent = value(text, skip_space(text, colon + 1))?;
        let end = extent.range.end;
        members.push((key, extent));
        Ok(end)
    })?;
    Ok(members)
}

/// The items of the array at `range`.
pub(super) fn items(text: &[u8], range: Range<usize>) -> Result<Vec<Extent>, SyntaxError> {
    let mut items = Vec::new();
    elements(text, range, |text, at| {
        let extent = value(text, at)?;
        let end = extent.range.end;
        items.push(extent);
        Ok(end)
    })?;
    Ok(items)
}

/// Calls `element` at the start of every element between brackets; it gives back the end.
fn elements(
    text: &[u8],
    range: Range<usize>,
    mut element: impl FnMut(&[u8], usize) -> Result<usize, SyntaxError>,
) -> Result<(), SyntaxError> {
    let text = &text[..range.end];
    let last = range.end - 1; // the closing bracket
    if !matches!((text[range.start], text[last]), (b'{', b'}') | (b'[', b']')) {
        return Err(SyntaxError { at: last, message: "mismatched closing bracket" });
    }
    let mut at = skip_space(text, range.start + 1);
    if at == last {
        return Ok(());
    }
    loop {
        if at >= last {
            return Err(SyntaxError {
                at: last,
                message: "expected a value before the closing bracket",
            });
        }
        at = skip_space(text, element(text, at)?);
        match text.get(at) {
            Some(b',') => at = skip_space(text, at + 1),
            _ if at == last => return Ok(()),
            _ => return Err(SyntaxError { at, message: "expected a comma or a closing bracket" }),
        }
    }
}

/// The offset after the string that begins at `at`.
fn string_end(text: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let mut next = at + 1;
    while let Some(found) = text.get(next..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if text[next + found] == b'"' {
            return Ok(next + found + 1);
        }
        next += found + 2;
    }
    Err(SyntaxError { at, message: "unterminated string" })
}

/// The offset after a number or a word; at least one byte, so that scanning makes progress.
fn word_end(text: &[u8], at: usize) -> usize {
    let ends = |byte: &u8| b" \t\r\n,:{}[]\"".contains(byte);
    let length = text[at..].iter().position(ends).unwrap_or(text.len() - at);
    // Within a character of several bytes nothing above matches, so this is a boundary.
    at + length.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_their_brackets_close() {
        let cases = [
            (r#"{"a": "}"} x"#, 10, 1),
            (r#"[[], {"b": [1]}] []"#, 16, 3),
            (r#""a\"b" "#, 6, 0),
            ("12, 3", 2, 0),
            ("true", 4, 0),
            (",", 1, 0),
            ("]", 1, 0),
        ];
        for (text, end, depth) in cases {
            let want = Extent { range: 0..end, depth };
            assert_eq!(value(text.as_bytes(), 0), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_breaks_off_says_where() {
        for (text, at) in [("{", 1), ("[[]", 3), (r#"{"a": "b}"#, 6), (r#"["\"#, 1)] {
            assert_eq!(value(text.as_bytes(), 0).unwrap_err().at, at, "{text}");
        }
    }

    #[test]
    fn members_and_items_need_commas_between_them() {
        let ranges = |text: &str| -> Result<Vec<String>, usize> {
            let all = 0..text.len();
            let found = if text.starts_with('[') {
                items(text.as_bytes(), all)
            } else {
                let members = members(text.as_bytes(), all);
                members.map(|members| members.into_iter().map(|(_, value)| value).collect())
            };
            let text_of = |extent: Extent| text[extent.range].to_owned();
            found.map(|found| found.into_iter().map(text_of).collect()).map_err(|error| error.at)
        };
        let strings = |words: &[&str]| Ok(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(ranges("[ ]"), strings(&[]));
        assert_eq!(ranges("[1, {} , [2]]"), strings(&["1", "{}", "[2]"]));
        assert_eq!(ranges(r#"{"a": 1, "b": [2]}"#), strings(&["1", "[2]"]));
        assert_eq!(ranges("[1}"), Err(2));
        assert_eq!(ranges("[1 2]"), Err(3));
        assert_eq!(ranges("[1,]"), Err(3));
        assert_eq!(ranges(r#"{"a" 1}"#), Err(5));
        assert_eq!(ranges("{a: 1}"), Err(1));
    }
}
