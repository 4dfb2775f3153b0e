//! Label selectors as queries write them: `env in (dev,prod),tier!=web,!old,cpus>4`.

use std::str::FromStr;

use smol_str::SmolStr;

use super::{Selector, SelectorError, check_key, check_label_value};
use crate::requirement::{Requirement, Test};

/// The empty text selects everything.
impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut reader = Reader { rest: text };
        let mut requirements = Vec::new();
        if reader.is_done() {
            return Ok(requirements.into_iter().collect());
        }
        loop {
            requirements.push(reader.requirement()?);
            if reader.is_done() {
                return Ok(requirements.into_iter().collect());
            }
            if !reader.take(",") {
                return Err(reader.unexpected("',' or the end"));
            }
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.take("!");
        let key = self.word();
        if key.is_empty() {
            return Err(self.unexpected("a label key"));
        }
        check_key(key, &String::new)?;
        let test = if absent { Test::DoesNotExist } else { self.test()? };
        Ok(Requirement { key: SmolStr::new(key), test })
    }

    fn test(&mut self) -> Result<Test, SelectorError> {
        if self.is_done() || self.rest.trim_start().starts_with(',') {
            return Ok(Test::Exists);
        }
        if self.take("!=") {
            return Ok(Test::NotIn(vec![self.value()?]));
        }
        if self.take("==") || self.take("=") {
            return Ok(Test::In(vec![self.value()?]));
        }
        if self.take(">") {
            return Ok(Test::above(self.number()?));
        }
        if self.take("<") {
            return Ok(Test::below(self.number()?));
        }
        match self.word() {
            "in" => Ok(Test::In(self.values()?)),
            "notin" => Ok(Test::NotIn(self.values()?)),
            _ => Err(self.unexpected("one of '=', '==', '!=', '>', '<', 'in', 'notin'")),
        }
    }

    fn values(&mut self) -> Result<Vec<SmolStr>, SelectorError> {
        if !self.take("(") {
            return Err(self.unexpected("'('"));
        }
        let mut values = vec![self.value()?];
        while self.take(",") {
            values.push(self.value()?);
        }
        if self.take(")") { Ok(values) } else { Err(self.unexpected("',' or ')'")) }
    }

    fn value(&mut self) -> Result<SmolStr, SelectorError> {
        let value = self.word();
        check_label_value(value, &String::new)?;
        Ok(SmolStr::new(value))
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let word = self.word();
        word.parse().map_err(|_| SelectorError {
            field: String::new(),
            message: format!("{word:?} is not an integer, which '>' and '<' compare with"),
        })
    }

    fn word(&mut self) -> &'t str {
        let text = self.rest.trim_start();
        let is_end = |c: char| c.is_whitespace() || "=!<>(),".contains(c);
        let (word, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
        self.rest = rest;
        word
    }

    fn take(&mut self, symbol: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(symbol) else {
            return false;
        };
        self.rest = rest;
        true
    }

    fn is_done(&self) -> bool {
        self.rest.trim_start().is_empty()
    }

    fn unexpected(&self, want: &str) -> SelectorError {
        let found = match self.rest.trim() {
            "" => "the end".to_owned(),
            rest => format!("{rest:?}"),
        };
        let message = format!("unable to parse requirement: found {found}, want {want}");
        SelectorError { field: String::new(), message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_read() {
        let labels = [("env", "prod"), ("cpus", "8")];
        let cases = [
            ("", true),
            ("env=prod", true),
            ("env == prod , cpus", true),
            ("env!=prod", false),
            ("zone!=a", true),
            ("env in (dev, prod)", true),
            ("env notin (dev,prod)", false),
            ("zone notin (a)", true),
            ("!zone", true),
            ("!env", false),
            ("cpus>4,cpus<9", true),
            ("cpus>8", false),
            ("env>4", false),
            ("env=", false),
        ];
        for (text, expected) in cases {
            let selector: Selector = text.parse().unwrap();
            let look_up = |key: &str| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
            assert_eq!(selector.matches_with(look_up), expected, "{text}");
        }
    }

    #[test]
    fn unsound_texts_are_refused() {
        for text in ["a b", "a in b", "a in (b", ",", "a,", "=x", "a=b=c", "a>x", "-a=b", "a=b c"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }
}
