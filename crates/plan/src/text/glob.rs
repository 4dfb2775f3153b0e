//! Shell globs over config keys: `*`, `?` and `[...]`, none of which crosses a `/`.

/// Whether `text` matches `pattern`. A pattern that is malformed matches nothing but itself.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern_chars: Vec<char> = pattern.chars().collect();
    let text_chars: Vec<char> = text.chars().collect();
    pattern == text || glob(&pattern_chars, &text_chars)
}

/// Goes back to the last `*` on a mismatch, so that it takes at most the product of the
/// lengths, whatever the pattern.
fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, seen));
            at += 1;
            continue;
        }
        if at == pattern.len() && seen == text.len() {
            return true;
        }
        let step = text.get(seen).and_then(|letter| one(&pattern[at..], *letter));
        if let Some(width) = step {
            (at, seen) = (at + width, seen + 1);
            continue;
        }
        match star {
            Some((star_at, taken)) if text.get(taken).is_some_and(|letter| *letter != '/') => {
                star = Some((star_at, taken + 1));
                (at, seen) = (star_at + 1, taken + 1);
            }
            _ => return false,
        }
    }
}

/// How many characters of the pattern stand for `letter`; none if it does not match.
fn one(pattern: &[char], letter: char) -> Option<usize> {
    match pattern.first()? {
        '?' => (letter != '/').then_some(1),
        '[' => class(pattern, letter),
        '\\' => (*pattern.get(1)? == letter).then_some(2),
        plain => (*plain == letter).then_some(1),
    }
}

fn class(pattern: &[char], letter: char) -> Option<usize> {
    let negated = pattern.get(1) == Some(&'^');
    let first = 1 + usize::from(negated);
    let end = first + pattern.get(first..)?.iter().position(|part| *part == ']')?;
    let mut within = false;
    let mut at = first;
    while at < end {
        let low = *pattern.get(at)?;
        let range = pattern.get(at + 1) == Some(&'-') && at + 2 < end;
        let high = if range { *pattern.get(at + 2)? } else { low };
        within |= (low..=high).contains(&letter);
        at += if range { 3 } else { 1 };
    }
    (within != negated && letter != '/').then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_in_a_shell() {
        let cases = [
            ("*.properties", "tuned.properties", true),
            ("*.properties", "a/tuned.properties", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcd", false),
            ("?.conf", "a.conf", true),
            ("?.conf", "ab.conf", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[ab", "[ab", true),
            ("[ab", "a", false),
            ("**", "anything", true),
            ("", "", true),
            ("", "a", false),
            (r"\*", "*", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
