//! The static token file: one `token,user,uid,"group1,group2"` per line.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::caller::{AUTHENTICATED, Caller};

/// Known tokens. Only their digests are kept, and a lookup compares all of them, so that its
/// duration reveals nothing about a token.
#[derive(Default)]
pub struct TokenFile {
    entries: Vec<([u8; 32], Caller)>,
}

/// Why a token file cannot be used. The error names the line by number, because its text is secret.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the token file {problem}")]
pub struct TokenFileError {
    pub line: usize,
    pub problem: &'static str,
}

impl TokenFile {
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut entries: Vec<([u8; 32], Caller)> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let refuse = |problem| TokenFileError { line: at + 1, problem };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields = split(line).ok_or_else(|| refuse("has an open quote"))?;
            let [token, name, uid, ..] = &fields[..] else {
                return Err(refuse("has fewer than three fields"));
            };
            if token.is_empty() || name.is_empty() {
                return Err(refuse("has no token or no user"));
            }
            let digest = digest(token);
            if entries.iter().any(|(known, _)| *known == digest) {
                return Err(refuse("repeats a token"));
            }
            let groups = fields.get(3).map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
            let mut groups: Vec<String> = groups.map(str::to_owned).collect();
            groups.push(AUTHENTICATED.to_owned());
            let caller =
                Caller { name: name.clone(), uid: uid.clone(), groups, ..Caller::default() };
            entries.push((digest, caller));
        }
        Ok(Self { entries })
    }

    pub fn find(&self, token: &str) -> Option<&Caller> {
        let digest = digest(token);
        let mut found = None;
        for (known, caller) in &self.entries {
            let difference = known.iter().zip(&digest).fold(0, |sum, (a, b)| sum | (a ^ b));
            if difference == 0 {
                found = Some(caller);
            }
        }
        found
    }
}

/// Shows the number of tokens only.
impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenFile({} tokens)", self.entries.len())
    }
}

pub(super) fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The fields of a line of CSV; a quote inside quotes is doubled.
fn split(line: &str) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => fields.push(std::mem::take(&mut field).trim().to_owned()),
            (other, _) => field.push(other),
        }
    }
    fields.push(field.trim().to_owned());
    (!quoted).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_users_and_groups() {
        let text = "# people\ns3cret,ada,42,\"dev, ops\"\n\nother,bob,7\n\"a,b\",\"q\"\"x\",1,\n";
        let file = TokenFile::parse(text).unwrap();
        let ada = file.find("s3cret").unwrap();
        assert_eq!((ada.name.as_str(), ada.uid.as_str()), ("ada", "42"));
        assert_eq!(ada.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(file.find("other").unwrap().groups, ["system:authenticated"]);
        assert_eq!(file.find("a,b").unwrap().name, "q\"x");
        for wrong in ["", "s3cre", "s3cret ", "S3cret"] {
            assert!(file.find(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn errors_and_debug_output_hide_the_tokens() {
        for (text, problem) in [
            ("hidden,ada", "has fewer than three fields"),
            ("ok,ada,1\n,bob,2", "has no token or no user"),
            ("hidden,\"ada,1", "has an open quote"),
            ("same,a,1\nsame,b,2", "repeats a token"),
        ] {
            let error = TokenFile::parse(text).unwrap_err().to_string();
            assert!(error.ends_with(problem) && !error.contains("hidden"), "{error}");
        }
        let file = TokenFile::parse("hidden,ada,1").unwrap();
        assert_eq!(format!("{file:?}"), "TokenFile(1 tokens)");
    }
}
