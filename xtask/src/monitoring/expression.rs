//! The metrics that an expression of `PromQL` names.

/// Words of the language that stand where a metric could.
const KEYWORDS: [&str; 10] =
    ["and", "or", "unless", "offset", "bool", "atan2", "inf", "nan", "start", "end"];

/// Words that are followed by labels in parentheses.
const LABEL_LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// The names of metrics in an expression, in order.
pub(super) fn metrics(expr: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = expr;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' => after(&rest[1..], '"'),
            '{' => after_braces(&rest[1..]),
            '[' => after(&rest[1..], ']'),
            _ if first.is_ascii_digit() => {
                rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.')
            }
            _ if is_name(first) => {
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                let next = behind.trim_start();
                if LABEL_LISTS.contains(&word) && next.starts_with('(') {
                    after(next, ')')
                } else {
                    if !is_called(next) && !KEYWORDS.contains(&word) {
                        found.push(word.to_owned());
                    }
                    behind
                }
            }
            _ => &rest[first.len_utf8()..],
        };
    }
    found
}

/// Whether the word before is a function, or an operator such as `sum by (label) (…)`.
fn is_called(next: &str) -> bool {
    let grouped = ["by", "without"].iter().find_map(|word| next.strip_prefix(word));
    next.starts_with('(') || grouped.is_some_and(|rest| rest.trim_start().starts_with('('))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// What comes after the next `end`.
fn after(text: &str, end: char) -> &str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

/// What comes after the labels of a selector, whose values may hold braces.
fn after_braces(text: &str) -> &str {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '}' if !quoted => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_labels_and_durations_are_no_metrics() {
        for (expr, want) in [
            ("convoy_queue_depth", &["convoy_queue_depth"][..]),
            ("sum by (dialect, le) (rate(a_bucket{x=\"}b_c\"}[5m])) > 10", &["a_bucket"]),
            ("max(a) / on (job) group_left (node) b offset 5m", &["a", "b"]),
            ("min_over_time((sum(a) by (b))[1h:1m]) > 1e3 or vector(0)", &["a"]),
            ("time() - a{b!=\"c\"} and a unless absent(d_total)", &["a", "a", "d_total"]),
        ] {
            assert_eq!(metrics(expr), want, "{expr}");
        }
    }
}
