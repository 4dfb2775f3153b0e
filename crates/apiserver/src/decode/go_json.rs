//! What is wrong with a text that is no JSON, in the words that clients of Go's servers know.
//!
//! Used only after decoding has failed, so it need not be fast.

/// Why `text` is no JSON document; none if it is one, or nests too deeply to be looked at.
pub(crate) fn error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0 };
    let outcome = scanner.value(0).and_then(|()| {
        scanner.space();
        match scanner.peek() {
            None => Ok(()),
            Some(byte) => Err(Wrong::Character(byte, "after top-level value".to_owned())),
        }
    });
    match outcome {
        Ok(()) | Err(Wrong::Depth) => None,
        Err(Wrong::End) => Some("unexpected end of JSON input".to_owned()),
        Err(Wrong::Character(byte, place)) => {
            Some(format!("invalid character {} {place}", quoted(byte)))
        }
    }
}

/// Deeper than any body that is read; what is wrong there is not looked for.
const DEPTH_MAX: usize = 200;

enum Wrong {
    End,
    Depth,
    Character(u8, String),
}

type Read = Result<(), Wrong>;

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    /// The next byte, which has to be of a kind.
    fn expect(&mut self, is_right: impl Fn(u8) -> bool, place: &str) -> Result<u8, Wrong> {
        match self.peek() {
            None => Err(Wrong::End),
            Some(byte) if is_right(byte) => {
                self.at += 1;
                Ok(byte)
            }
            Some(byte) => Err(Wrong::Character(byte, place.to_owned())),
        }
    }

    fn value(&mut self, depth: usize) -> Read {
        if depth > DEPTH_MAX {
            return Err(Wrong::Depth);
        }
        self.space();
        let begins = |byte: u8| b"{[\"-tfn".contains(&byte) || byte.is_ascii_digit();
        match self.expect(begins, "looking for beginning of value")? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            first => self.number(first),
        }
    }

    fn object(&mut self, depth: usize) -> Read {
        self.space();
        let key = "looking for beginning of object key string";
        if self.expect(|byte| byte == b'"' || byte == b'}', key)? == b'}' {
            return Ok(());
        }
        loop {
            self.string()?;
            self.space();
            self.expect(|byte| byte == b':', "after object key")?;
            self.value(depth + 1)?;
            self.space();
            let next = self.expect(|byte| b",}".contains(&byte), "after object key:value pair")?;
            if next == b'}' {
                return Ok(());
            }
            self.space();
            self.expect(|byte| byte == b'"', key)?;
        }
    }

    fn array(&mut self, depth: usize) -> Read {
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.space();
            let next = self.expect(|byte| b",]".contains(&byte), "after array element")?;
            if next == b']' {
                return Ok(());
            }
        }
    }

    fn string(&mut self) -> Read {
        loop {
            match self.expect(|byte| byte >= b' ', "in string literal")? {
                b'"' => return Ok(()),
                b'\\' => {
                    let escapes = |byte: u8| b"\"\\/bfnrtu".contains(&byte);
                    if self.expect(escapes, "in string escape code")? == b'u' {
                        for _ in 0..4 {
                            let place = "in \\u hexadecimal character escape";
                            self.expect(|byte| byte.is_ascii_hexdigit(), place)?;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Read {
        for letter in word.bytes().skip(1) {
            let place = format!("in literal {word} (expecting {})", quoted(letter));
            self.expect(|byte| byte == letter, &place)?;
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Read {
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let mut first = first;
        if first == b'-' {
            first = self.expect(is_digit, "in numeric literal")?;
        }
        if first != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.expect(is_digit, "after decimal point in numeric literal")?;
            self.digits();
        }
        if self.peek().is_some_and(|byte| b"eE".contains(&byte)) {
            self.at += 1;
            if self.peek().is_some_and(|byte| b"+-".contains(&byte)) {
                self.at += 1;
            }
            self.expect(is_digit, "in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        ..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0x9f | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_pointed_at() {
        let end = "unexpected end of JSON input";
        for (text, expected) in [
            ("", end),
            ("{", end),
            ("[1, {\"a\": ", end),
            ("<a/>", "invalid character '<' looking for beginning of value"),
            ("{} {}", "invalid character '{' after top-level value"),
            ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\": 1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("tru", end),
            ("trie", "invalid character 'i' in literal true (expecting 'u')"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("-a", "invalid character 'a' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
        ] {
            assert_eq!(error(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(error("[".repeat(100_000).as_bytes()), None);
        for text in ["{}", " [1, -2.5e+3, \"\\u00e9\", null, true] ", "0"] {
            assert_eq!(error(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            error(&[0x9e]).unwrap(),
            "invalid character '\\u009e' looking for beginning of value"
        );
    }
}
