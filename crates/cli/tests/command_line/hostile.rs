//! Input made to hurt: it is refused in words, with its location, in bounded time and memory.

use std::fmt::Write;

use serde_json::Value;

use crate::binary::{Run, run_with};

/// Runs both commands on `input`. Neither may be ended by a signal or a panic.
fn survives(input: &[u8]) -> Run {
    let plan = run_with(input, &["plan", "-f", "-", "--now", "2026-01-01T00:00:00Z"]);
    assert!(matches!(plan.code, Some(0 | 2)), "{plan:?}");
    let run = run_with(input, &["validate", "-f", "-"]);
    assert!(matches!(run.code, Some(0..=2)), "{run:?}");
    for text in [&plan.stderr, &run.stderr] {
        assert!(!text.contains("panicked"), "{text}");
    }
    run
}

fn refused(input: impl AsRef<[u8]>, message: &str) {
    let run = survives(input.as_ref());
    assert_eq!(run.code, Some(2), "{message}: {run:?}");
    assert!(run.stdout.contains(message), "want {message:?} in {}", run.stdout);
}

#[test]
fn deep_nesting_is_refused() {
    let cases = [
        "[".repeat(100_000),
        "{\"a\":".repeat(100_000),
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("a: {}", "[".repeat(100_000)),
        format!("a: {}", "{a: ".repeat(100_000)),
        "- ".repeat(100_000),
        format!(
            "{{\"kind\": \"List\", \"items\": [{}]}}",
            "[".repeat(50_000) + &"]".repeat(50_000)
        ),
    ];
    for (index, text) in cases.iter().enumerate() {
        let run = survives(text.as_bytes());
        assert_eq!(run.code, Some(2), "case {index}");
        let messages = ["nested deeper than 100 levels", "unclosed bracket"];
        assert!(
            messages.iter().any(|message| run.stdout.contains(message)),
            "{index}: {}",
            run.stdout
        );
    }
    let mut indented = String::new();
    for level in 0..3_000 {
        let _ = writeln!(indented, "{}a:", " ".repeat(level));
    }
    refused(indented, "<stdin>:101:");
    let lists = "{\"kind\":\"List\",\"items\":[".repeat(1_000);
    refused(format!("{lists}{}", "]}".repeat(1_000)), "lists are nested deeper");
}

#[test]
fn a_deep_item_hides_no_other() {
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}"#;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let text = format!("{{\"kind\":\"List\",\"items\":[{{\"a\":{deep}}},{node}]}}");
    let run = survives(text.as_bytes());
    assert!(run.stdout.contains("1 object read: 1 error"), "{}", run.stdout);
}

#[test]
fn aliases_cannot_multiply_without_end() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        let _ = writeln!(bomb, "a{level}: &a{level} [{aliases}]");
    }
    refused(bomb, "the size limit");
    let long = "x".repeat(1_000_000);
    refused(format!("a: &a {long}\nb: [{}]\n", "*a, ".repeat(2_000)), "the size limit");
    let mut chain = String::from("a0: &a0 [x]\n");
    for level in 1..1_000 {
        let _ = writeln!(chain, "a{level}: &a{level} [*a{}]", level - 1);
    }
    refused(chain, "nested deeper than 100 levels");
    refused("a: &a [*a]\n", "refers to a node that contains it");
    refused("a: &a {<<: *a}\n", "refers to a node that contains it");
    refused("a: *nothing\n", "<stdin>:1:4");
}

#[test]
fn what_is_not_text_is_refused() {
    refused(b"kind: a\0b", "<stdin>:1:8: NUL byte");
    refused(b"\x89PNG\r\n\x1a\n\0\0", "byte 0x89 is not UTF-8");
    refused(b"a: \xC3\x28", "<stdin>:1:4: byte 0xC3 is not UTF-8");
    refused(b"\xFF\xFEa", "UTF-16");
    let bytes: Vec<u8> = (0..100_000_u32).map(|byte| (byte * 31 % 251) as u8).collect();
    assert_eq!(survives(&bytes).code, Some(2));
}

#[test]
fn wide_text_with_a_mark_is_read() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n";
    let wide: Vec<u8> = node.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (mark, bytes) in [(&b"\xEF\xBB\xBF"[..], node.as_bytes()), (b"\xFF\xFE", &wide)] {
        let run = survives(&[mark, bytes].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stdout.contains("1 object read"), "{run:?}");
    }
}

#[test]
fn nothing_is_told_as_such() {
    for text in ["", "\n\n", "# only a comment\n", "---\n---\n...\n", "null", "\u{feff}"] {
        let run = survives(text.as_bytes());
        assert_eq!(run.code, Some(2), "{text:?}: {run:?}");
        assert!(run.stdout.contains("no Kubernetes object was found"), "{run:?}");
    }
}

#[test]
fn wrong_roots_are_named() {
    for (text, got) in [
        ("[1, 2]", "got array"),
        ("[\"a\"]", "got array"),
        ("just words", "got string"),
        ("17", "got integer"),
        ("- a\n- b\n", "got array"),
        ("kind: Node", "apiVersion: required"),
        ("apiVersion: v1\nkind: [Node]", "kind: expected a string, got array"),
        ("apiVersion: v1\nkind: Node\nmetadata: 3", "metadata.name: required"),
        ("apiVersion: v1\nkind: Node\nmetadata: {generateName: a-}", "generateName"),
        ("{\"apiVersion\": \"v1\", \"apiVersion\": \"v2\"}", "duplicate key \"apiVersion\""),
        ("? [a, b]\n: c\n", "a list cannot be a key"),
        ("~: c\n", "null cannot be a key"),
        ("a: .inf\n", "has no JSON representation"),
        ("a: !!int x\n", "is not a !!int"),
        ("a: *b\n", "<stdin>:1:4"),
        ("a:\n\t- b\n", "<stdin>:2:"),
    ] {
        refused(text, got);
    }
}

#[test]
fn absurd_numbers_are_refused_or_are_text() {
    let json = |number: &str| {
        format!(
            "{{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\",\n \"metadata\": {{\"name\": \"a\", \
             \"namespace\": \"b\"}}, \"spec\": {{\"replicas\": {number}}}}}"
        )
    };
    for number in ["1e999", "-1e999", &"9".repeat(400), "0x10", "+1", "01", "NaN", "1.", ".5", "-"]
    {
        refused(json(number), "<stdin>:2:");
    }
    for number in ["1e308", "-0", "1e-999", "18446744073709551616", "1.0", "1E3"] {
        survives(json(number).as_bytes());
    }
    for number in ["1e999", &"9".repeat(400), "0o9", "1__2", "-0x8000000000000001"] {
        let yaml = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\n";
        survives(format!("{yaml}spec: {{replicas: {number}}}\n").as_bytes());
    }
}

#[test]
fn many_problems_are_cut_short() {
    let text = "{\"kind\": 1}".repeat(5_000);
    let run = survives(text.as_bytes());
    assert_eq!(run.code, Some(2));
    assert!(run.stdout.lines().count() < 200, "{}", run.stdout.lines().count());
}

#[test]
fn what_is_too_long_is_not_repeated() {
    let key = "k".repeat(1_000_000);
    let run = survives(format!("{{\"{key}\": 1, \"{key}\": 2}}").as_bytes());
    assert!(run.stdout.len() < 2_000 && run.stdout.contains("kkk…"), "{}", run.stdout.len());
}

#[test]
fn text_from_objects_cannot_steer_the_terminal() {
    let text = "apiVersion: v1\nkind: \"No\\ede\\e[2J\"\nmetadata: {name: \"a\\nb\"}\n";
    let run = survives(text.as_bytes());
    assert!(!run.stdout.contains('\u{1b}'), "{:?}", run.stdout);
    let json = run_with(text.as_bytes(), &["validate", "-f", "-", "-o", "json"]);
    assert!(serde_json::from_str::<Value>(&json.stdout).is_ok());
}
