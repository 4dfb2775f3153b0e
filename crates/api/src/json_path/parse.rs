//! Reading paths. Nothing nests: filters contain plain paths and constants.

use serde_json::{Value, json};

use super::{Operator, PathError, Step, To};

pub(super) fn path(text: &str) -> Result<Vec<Step>, PathError> {
    let inner = match text.strip_prefix('{') {
        Some(rest) => match rest.strip_suffix('}') {
            Some(inner) => inner,
            None => {
                return Err(PathError { reason: "a brace is not closed", position: text.len() });
            }
        },
        None => text,
    };
    let mut reader = Reader { text: inner, position: 0, allows_filters: true };
    reader.steps()
}

struct Reader<'t> {
    text: &'t str,
    position: usize,
    /// False inside a filter.
    allows_filters: bool,
}

impl Reader<'_> {
    fn steps(&mut self) -> Result<Vec<Step>, PathError> {
        let mut steps = Vec::new();
        while let Some(next) = self.peek() {
            match next {
                ' ' | '@' | '$' => self.position += 1,
                '.' if self.rest().starts_with("..") => {
                    if steps.last() == Some(&Step::Descend) {
                        return Err(self.error("a descent follows a descent"));
                    }
                    self.position += 2;
                    steps.push(Step::Descend);
                    if self.peek().is_some_and(|next| next.is_alphanumeric() || next == '_') {
                        steps.push(self.field());
                    }
                }
                '.' => {
                    self.position += 1;
                    steps.push(self.field());
                }
                '[' if self.rest().starts_with("[?(") => steps.push(self.filter()?),
                '[' => steps.extend(self.brackets()?),
                '"' | '\'' => steps.push(Step::Constant(Value::String(self.quoted(next)?))),
                '+' | '-' | '0'..='9' => steps.push(self.number()?),
                _ => steps.push(self.word()?),
            }
        }
        Ok(steps)
    }

    fn rest(&self) -> &str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, reason: &'static str) -> PathError {
        PathError { reason, position: self.position }
    }

    /// A name up to a character that ends it; a backslash takes that power from the next one.
    fn field(&mut self) -> Step {
        let mut name = String::new();
        let mut escaped = false;
        let mut end = self.text.len();
        for (at, letter) in self.rest().char_indices() {
            if !escaped && is_terminator(letter) {
                end = self.position + at;
                break;
            }
            escaped = !escaped && letter == '\\';
            if !escaped {
                name.push(letter);
            }
        }
        self.position = end;
        if name == "*" { Step::Each } else { Step::Field(name) }
    }

    /// `true` and `false`; no other words mean anything here.
    fn word(&mut self) -> Result<Step, PathError> {
        for (word, value) in [("true", true), ("false", false)] {
            let is_whole = self
                .rest()
                .strip_prefix(word)
                .is_some_and(|rest| rest.chars().next().is_none_or(is_terminator));
            if is_whole {
                self.position += word.len();
                return Ok(Step::Constant(Value::Bool(value)));
            }
        }
        Err(self.error("a character that begins nothing"))
    }

    fn number(&mut self) -> Result<Step, PathError> {
        let rest = self.rest();
        let signed = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let digits = signed.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(signed.len());
        let text = &rest[..rest.len() - signed.len() + digits];
        let value = match text.parse::<i64>() {
            Ok(whole) => json!(whole),
            Err(_) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => json!(number),
                _ => return Err(self.error("a number that is none")),
            },
        };
        self.position += text.len();
        Ok(Step::Constant(value))
    }

    fn quoted(&mut self, quote: char) -> Result<String, PathError> {
        let mut text = String::new();
        let mut escaped = false;
        for (at, letter) in self.rest().char_indices().skip(1) {
            match letter {
                _ if escaped => {
                    text.push(match letter {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        other => other,
                    });
                    escaped = false;
                }
                '\\' => escaped = true,
                letter if letter == quote => {
                    self.position += at + letter.len_utf8();
                    return Ok(text);
                }
                letter => text.push(letter),
            }
        }
        Err(self.error("a quotation mark is not closed"))
    }

    /// An index, a slice, a key in quotes, or several of them.
    fn brackets(&mut self) -> Result<Vec<Step>, PathError> {
        let Some(end) = self.rest().find(']') else {
            return Err(self.error("a bracket is not closed"));
        };
        let inner = self.rest()[1..end].to_owned();
        let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
        let steps = if let [one] = parts[..] {
            vec![self.bracket(one)?]
        } else {
            let parts = parts.into_iter().map(|part| Ok(vec![self.bracket(part)?]));
            vec![Step::Union(parts.collect::<Result<_, PathError>>()?)]
        };
        self.position += end + 1;
        Ok(steps)
    }

    fn bracket(&self, text: &str) -> Result<Step, PathError> {
        if text == "*" {
            return Ok(Step::Slice { from: None, to: To::End, by: None });
        }
        for quote in ['\'', '"'] {
            if let Some(key) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
                return Ok(Step::Field(key.replace('\\', "")));
            }
        }
        let parts: Vec<&str> = text.split(':').collect();
        let read = |part: Option<&&str>| match part.copied() {
            None | Some("") => Ok(None),
            Some(part) => {
                part.parse::<i64>().map(Some).map_err(|_| self.error("an index is no number"))
            }
        };
        let (from, to, by) = (read(parts.first())?, read(parts.get(1))?, read(parts.get(2))?);
        match (parts.len(), from) {
            (1, Some(_)) => Ok(Step::Slice { from, to: To::Next, by: None }),
            (2 | 3, _) => Ok(Step::Slice { from, to: to.map_or(To::End, To::At), by }),
            _ => Err(self.error("an index is no number")),
        }
    }

    fn filter(&mut self) -> Result<Step, PathError> {
        if !self.allows_filters {
            return Err(self.error("a filter stands in a filter"));
        }
        let start = self.position + "[?(".len();
        let Some(length) = filter_length(&self.text[start..]) else {
            return Err(self.error("a filter is not closed"));
        };
        let text = &self.text[start..start + length];
        let inside = |text: &str| {
            Reader { text, position: 0, allows_filters: false }.steps().map_err(|mut error| {
                error.position += start;
                error
            })
        };
        let sign = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let (left, test) = match text.find(sign) {
            None => (inside(text)?, None),
            Some(at) => {
                let rest = &text[at..];
                let end = rest.find(|c| !sign(c)).unwrap_or(rest.len());
                let operator = operator(&rest[..end]);
                let operator = operator.ok_or_else(|| self.error("a comparison that is none"))?;
                (inside(&text[..at])?, Some((operator, inside(&rest[end..])?)))
            }
        };
        self.position = start + length + ")]".len();
        Ok(Step::Filter { left, test })
    }
}

/// How long a filter is, up to the parenthesis and bracket that close it outside of quotes.
fn filter_length(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), letter) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, ')') => return text[at..].starts_with(")]").then_some(at),
            _ => {}
        }
    }
    None
}

fn operator(text: &str) -> Option<Operator> {
    Some(match text {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => return None,
    })
}

fn is_terminator(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
