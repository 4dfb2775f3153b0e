//! Regular expressions in messages, in words: a person who typed `ten` wants to know what to type, and
//! not to read an expression.

/// The patterns of the definitions that Convoy knows, and the values that match them.
const WORDS: [(&str, &str); 19] = [
    ("^(100|[1-9][0-9]?)%$", "want a number, or a percentage from 1% to 100%"),
    (
        "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*|None)$",
        "want a number of at least 1, a percentage from 1% to 100%, or None",
    ),
    (r"^(?:(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:s|m|h))+$", "want a duration such as 30s, 10m or 1h30m"),
    ("^([0-9]+[hms].*|None|)$", "want a duration such as 30s, 10m or 1h, or None"),
    ("^[a-z0-9]+$", "want lower case letters and digits"),
    (
        "^[a-z][-a-z0-9]{0,41}[a-z]$",
        "want 2 to 43 lower case letters, digits and '-', with a letter at both ends",
    ),
    (
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "want lower case letters, digits and '-', with a letter or digit at both ends",
    ),
    (
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "want lower case letters, digits, '-' and '.', with a letter or digit at both ends",
    ),
    ("^((100|[0-9]{1,2})%|[0-9]+)$", "want a number, or a percentage from 0% to 100%"),
    ("^([0-9]+(s|m|h))+$", "want a duration such as 30s, 10m or 1h30m"),
    ("^(([0-9]+(s|m|h))+|Never)$", "want a duration such as 30s, 10m or 1h30m, or Never"),
    (
        "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$",
        "want hours and minutes such as 8h, 30m or 1h30m",
    ),
    ("^[0-9]+[hms]$", "want a duration with one unit such as 30s, 10m or 1h"),
    (
        r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$",
        "want a schedule of five fields such as \"0 9 * * mon-fri\", or a word such as @daily",
    ),
    ("^[^/]*$", "want a name without a slash"),
    ("^work-agent", "want a name that begins with work-agent"),
    (
        "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        "want letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    ),
    (
        "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$",
        "want 2 to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    ),
    (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "want a quantity such as 500m, 2 or 8Gi",
    ),
];

/// Patterns of names with an optional DNS prefix differ in how they write the slash.
const QUALIFIED_START: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "want a name of letters, digits, '-', '_' and '.', with a letter or digit at both ends, \
     after an optional DNS prefix and a slash";

/// The message with words instead of a pattern that is known.
pub(super) fn in_words(message: &str) -> String {
    pattern(message).or_else(|| example(message)).unwrap_or_else(|| message.to_owned())
}

/// `field in body should match 'pattern'`, which an OpenAPI schema leads to.
fn pattern(message: &str) -> Option<String> {
    let (title, pattern) = message.split_once(" in body should match '")?;
    let (pattern, rest) = pattern.rsplit_once('\'')?;
    // The field stands before the message already.
    let (title, _field) = title.rsplit_once(": ")?;
    let known = WORDS.iter().find(|(known, _)| *known == pattern).map(|(_, words)| *words);
    let words = known.or_else(|| {
        let bare = pattern.replace("^((", "^(").replace(r"\/", "/");
        bare.starts_with(QUALIFIED_START).then_some(QUALIFIED)
    })?;
    Some(format!("{title}: {words}{rest}"))
}

/// `(e.g. 'example.com', regex used for validation is '…')`, which names are refused with.
fn example(message: &str) -> Option<String> {
    let (before, pattern) = message.split_once(", regex used for validation is '")?;
    let (_, rest) = pattern.rsplit_once("')")?;
    Some(format!("{before}){rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_pattern_becomes_words() {
        let rows = [
            (
                "Invalid value: \"ten\": spec.a in body should match '^((100|[0-9]{1,2})%|[0-9]+)$'",
                "Invalid value: \"ten\": want a number, or a percentage from 0% to 100%",
            ),
            (
                "Invalid value: \"x: y\": spec.a in body should match '^[0-9]+[hms]$'",
                "Invalid value: \"x: y\": want a duration with one unit such as 30s, 10m or 1h",
            ),
            (
                "must be lower case (e.g. 'my.name', regex used for validation is '[a-z]('')?')",
                "must be lower case (e.g. 'my.name')",
            ),
        ];
        for (message, expected) in rows {
            assert_eq!(in_words(message), expected);
        }
    }

    #[test]
    fn the_patterns_of_our_definitions_are_known() {
        let mut patterns = Vec::new();
        for dialect in ["skyhook", "fleet", "karpenter", "ocm"] {
            let definitions = convoy_api::schema::crds(dialect).expect("the dialect has some");
            let definitions = serde_json::to_value(definitions).expect("definitions are JSON");
            collect(&definitions, &mut patterns);
        }
        assert!(patterns.len() > 5, "{patterns:?}");
        for pattern in patterns {
            let message = format!("Invalid value: \"x\": spec.a in body should match '{pattern}'");
            assert!(in_words(&message).contains(": want "), "no words for {pattern}");
        }
    }

    fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(members) => {
                for (name, member) in members {
                    // A controller writes the status, and not a person.
                    if name == "status" {
                        continue;
                    }
                    match member.as_str() {
                        Some(text) if name == "pattern" => found.push(text.to_owned()),
                        _ => collect(member, found),
                    }
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
}
