//! Words for counts, names and verdicts, and text from objects made safe for a terminal.

use convoy_api::ObjectKey;
use convoy_plan::Verdict;

/// How many names are listed before `and 9 more`.
const NAMES_MAX: usize = 5;

/// How long a list of names may get; one is always shown.
const NAMES_CHARS_MAX: usize = 80;

/// `1 node`, `2 nodes`.
pub(super) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {}", plural(noun)) }
}

/// `a, b and 3 more`.
pub(super) fn names<S: AsRef<str>>(all: &[S]) -> String {
    let mut shown = String::new();
    for (index, name) in all.iter().enumerate() {
        let name = plain(name.as_ref());
        let is_long = shown.chars().count() + name.chars().count() > NAMES_CHARS_MAX;
        if index > 0 && (index >= NAMES_MAX || is_long) {
            return format!("{shown} and {} more", all.len() - index);
        }
        shown.push_str(if index == 0 { "" } else { ", " });
        shown.push_str(&name);
    }
    shown
}

/// `Kind namespace/name`, with the cluster if it is another one.
pub(super) fn target(key: &ObjectKey) -> String {
    let cluster = if key.cluster.is_empty() { String::new() } else { format!("{}: ", key.cluster) };
    let namespace =
        if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    plain(&format!("{cluster}{} {namespace}{}", key.kind.kind, key.name))
}

pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Done => "Done",
        Verdict::Moving => "Moving",
        Verdict::Held => "Held",
        Verdict::Stopped => "Stopped",
        Verdict::Paused => "Paused",
        Verdict::Invalid => "Invalid",
    }
}

/// The noun for a member of a rollout, by dialect and group.
pub(super) fn member(dialect: &str, group: Option<&str>) -> &'static str {
    match (dialect, group) {
        ("skyhook" | "karpenter", _) => "node",
        ("fleet", Some("bindings")) => "binding",
        ("fleet" | "ocm", _) => "cluster",
        ("apps", _) => "pod",
        _ => "member",
    }
}

/// Text from an object on one line, with control characters escaped.
pub(super) fn plain(text: &str) -> String {
    let steers = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(steers) {
        return text.to_owned();
    }
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => safe.push(' '),
            _ if steers(letter) => safe.extend(letter.escape_unicode()),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Good for nouns and kinds: `nodes`, `Policies`, `Ingresses`.
pub(super) fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x']) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_names_are_cut() {
        assert_eq!(names(&["a", "b"]), "a, b");
        let many: Vec<String> = (1..=14).map(|number| format!("n{number}")).collect();
        assert_eq!(names(&many), "n1, n2, n3, n4, n5 and 9 more");
        let long = ["a".repeat(50), "b".repeat(50)];
        assert_eq!(names(&long), format!("{} and 1 more", long[0]));
    }

    #[test]
    fn kinds_have_plurals() {
        for (one, many) in
            [("Node", "Nodes"), ("Policy", "Policies"), ("Ingress", "Ingresses"), ("Day", "Days")]
        {
            assert_eq!(plural(one), many);
        }
    }

    #[test]
    fn text_cannot_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\u{202E}"), "a\\u{1b}[2Jb c\\u{202e}");
    }
}
