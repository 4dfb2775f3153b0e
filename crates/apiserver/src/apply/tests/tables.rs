//! The rules of the specification, one row each.

use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::shapes::{Kinds, kinds};
use crate::apply::compare::compare;
use crate::apply::merge::merge;
use crate::apply::own::set_of;
use crate::apply::{Context, Error, Managers, Reset, apply, revert_times, track_update};

/// Somebody who writes widgets, at some second.
struct Writer<'k> {
    kinds: &'k Kinds,
    manager: &'k str,
    second: i64,
    reset: Reset,
}

fn writer<'k>(kinds: &'k Kinds, manager: &'k str, second: i64) -> Writer<'k> {
    Writer { kinds, manager, second, reset: Reset::names(&[&["status"]]) }
}

impl Writer<'_> {
    fn context(&self) -> Context<'_> {
        Context {
            shape: self.kinds.shape("Widget"),
            api_version: "example.dev/v1",
            served: &[],
            manager: self.manager,
            subresource: "",
            now: Timestamp::new(1_767_225_600 + self.second, 0).unwrap(),
            reset: &self.reset,
        }
    }

    fn applies(&self, live: Option<&Value>, spec: Value) -> Result<Value, Error> {
        apply(&self.context(), live, &widget(spec), false)
    }

    fn writes(&self, live: Option<&Value>, mut new: Value) -> Value {
        track_update(&self.context(), live, &mut new);
        new["metadata"]["uid"] = "u".into();
        new
    }
}

fn widget(spec: Value) -> Value {
    let (version, kind) = ("example.dev/v1", "Widget");
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": spec})
}

fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let text = |entry: &Value| {
        let time = entry["time"].as_str().unwrap_or("never");
        let seconds = &time[time.len() - 3..];
        let (manager, operation) = (&entry["manager"], &entry["operation"]);
        format!("{manager} {operation} {seconds} {}", entry["fieldsV1"]).replace('"', "")
    };
    entries.map(text).collect()
}

#[test]
fn a_configuration_owns_what_it_mentions() {
    let kinds = kinds();
    let rows = [
        ("a scalar", json!({"size": 1}), r#"{"f:size":{}}"#),
        ("a list that is one value", json!({"args": ["x"]}), r#"{"f:args":{}}"#),
        ("an empty list of items", json!({"tags": []}), "{}"),
        (
            "null and an empty object",
            json!({"tags": null, "limits": {}}),
            r#"{"f:limits":{},"f:tags":{}}"#,
        ),
        (
            "items of a set",
            json!({"tags": ["b", "a"]}),
            r#"{"f:tags":{"v:\"a\"":{},"v:\"b\"":{}}}"#,
        ),
        (
            "an item twice",
            json!({"rules": [{"name": "a"}, {"name": "a", "weight": 1}]}),
            r#"{"f:rules":{"k:{\"name\":\"a\"}":{}}}"#,
        ),
        (
            "a key with its default",
            json!({"rules": [{"name": "a", "ports": [{"port": 80}]}]}),
            r#"{"f:rules":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}}"#,
        ),
        (
            "keys of a map",
            json!({"groups": {"g": {"size": 1}}}),
            r#"{"f:groups":{"f:g":{".":{},"f:size":{}}}}"#,
        ),
        (
            "an atomic struct",
            json!({"selector": {"matchLabels": {"a": "b"}}}),
            r#"{"f:selector":{}}"#,
        ),
        (
            "what has no schema",
            json!({"free": {"a": {"b": [1]}}}),
            r#"{"f:free":{"f:a":{".":{},"f:b":{}}}}"#,
        ),
    ];
    for (name, spec, expected) in rows {
        let set = set_of(kinds.shape("Widget").child("spec").unwrap(), &spec);
        assert_eq!(set.to_value().to_string(), expected, "{name}");
    }
}

#[test]
fn what_changed_is_told_by_presence_and_by_value() {
    let kinds = kinds();
    let rows = [
        ("a value", r#"{"size":1}"#, r#"{"size":2}"#, "~.size"),
        ("one number in two spellings", r#"{"ratio":1}"#, r#"{"ratio":1.0}"#, ""),
        ("the order of items", r#"{"tags":["a","b"]}"#, r#"{"tags":["b","a"]}"#, ""),
        ("the order of one value", r#"{"args":["a","b"]}"#, r#"{"args":["b","a"]}"#, "~.args"),
        ("a map with its key", "{}", r#"{"limits":{"a":1}}"#, "+.limits +.limits.a"),
        ("the last key goes", r#"{"limits":{"a":1}}"#, r#"{"limits":{}}"#, "-.limits.a"),
        ("null becomes empty", r#"{"limits":null}"#, r#"{"limits":{}}"#, "~.limits"),
        ("another kind", r#"{"free":1}"#, r#"{"free":{"a":1}}"#, "+.free.a ~.free"),
        (
            "an item twice",
            r#"{"tags":["a"]}"#,
            r#"{"tags":["a","a"]}"#,
            r#"+.tags[="a"] -.tags[="a"]"#,
        ),
    ];
    for (name, old, new, expected) in rows {
        let spec = kinds.shape("Widget").child("spec").unwrap();
        let (old, new) = (serde_json::from_str(old).unwrap(), serde_json::from_str(new).unwrap());
        let changes = compare(spec, &old, &new);
        let sets = [("+", changes.added), ("-", changes.removed), ("~", changes.modified)];
        let mut found: Vec<String> = Vec::new();
        for (sign, set) in sets {
            set.for_each(&mut Vec::new(), &mut |path| {
                let path: String = path.iter().map(ToString::to_string).collect();
                found.push(format!("{sign}{path}"));
            });
        }
        assert_eq!(found.join(" "), expected, "{name}");
    }
}

#[test]
fn merged_lists_keep_the_order_of_the_configuration() {
    let kinds = kinds();
    let rows = [
        ("shared items", "abc", "cba", "cba"),
        ("what is only live stays before its successor", "axb", "ba", "xba"),
        ("what is new follows its neighbour", "ab", "amb", "amb"),
        ("nothing in common", "ab", "cd", "abcd"),
        ("both", "xaqbz", "bwa", "xqbzwa"),
    ];
    for (name, live, config, expected) in rows {
        let list = |letters: &str| -> Value {
            json!({"tags": letters.chars().map(String::from).collect::<Vec<_>>()})
        };
        let spec = kinds.shape("Widget").child("spec").unwrap();
        let merged = merge(spec, &list(live), &list(config));
        assert_eq!(merged, list(expected), "{name}");
    }
}

#[test]
fn owners_come_and_go() {
    let kinds = kinds();
    let (a, b) = (writer(&kinds, "a", 1), writer(&kinds, "b", 2));
    let first = a.applies(None, json!({"size": 1, "mode": "x"})).unwrap();
    assert_eq!(owners(&first), ["a Apply 01Z {f:spec:{f:mode:{},f:size:{}}}"]);

    let shared = b.applies(Some(&first), json!({"size": 1})).unwrap();
    let sharing = [
        "b Apply ver {f:spec:{f:size:{}}}", // nothing changed, so there is no time of a change
        "a Apply 01Z {f:spec:{f:mode:{},f:size:{}}}",
    ];
    assert_eq!(owners(&shared), sharing);

    let taken = b.writes(Some(&shared), widget(json!({"size": 2, "mode": "x"})));
    let expected = ["a Apply 01Z {f:spec:{f:mode:{}}}", "b Update 02Z {f:spec:{f:size:{}}}"];
    assert_eq!(owners(&taken), expected);

    let withdrawn = writer(&kinds, "a", 3).applies(Some(&taken), json!({"on": true})).unwrap();
    assert_eq!(withdrawn["spec"], json!({"size": 2, "on": true}));
    let expected = ["a Apply 03Z {f:spec:{f:on:{}}}", "b Update 02Z {f:spec:{f:size:{}}}"];
    assert_eq!(owners(&withdrawn), expected);
}

#[test]
fn a_conflict_names_who_and_what() {
    let kinds = kinds();
    let live = writer(&kinds, "test", 0).writes(None, widget(json!({"size": 1, "tags": ["x"]})));
    let refused = writer(&kinds, "m2", 1).applies(Some(&live), json!({"size": 2}));
    let Err(Error::Conflicts(conflicts)) = refused else { panic!("no conflict") };
    let expected =
        r#"Apply failed with 1 conflict: conflict with "test" using example.dev/v1: .spec.size"#;
    assert_eq!(conflicts.message(), expected);
    let cause = conflicts.causes().next().unwrap();
    assert_eq!(cause.reason, "FieldManagerConflict");
    assert_eq!(cause.message, r#"conflict with "test" using example.dev/v1"#);
    assert_eq!(cause.field, ".spec.size");
}

#[test]
fn what_a_client_says_about_owners_counts_except_nonsense() {
    let kinds = kinds();
    let writer = writer(&kinds, "w", 1);
    let live = writer.writes(None, widget(json!({"size": 1})));
    let own = "w Update 01Z {f:spec:{.:{},f:size:{}}}";
    let entry = |manager: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "example.dev/v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}}})
    };
    let bad = json!({"manager": "x", "operation": "Guess", "apiVersion": "example.dev/v1"});
    let rows = [
        ("nothing", Value::Null, vec![own]),
        ("its own list", json!([entry("mine")]), vec!["mine Update ver {f:spec:{f:size:{}}}"]),
        ("an empty list", json!([]), vec![]),
        ("an empty entry", json!([{}]), vec![]),
        ("one bad entry", json!([entry("mine"), bad]), vec![own]),
    ];
    for (name, sent, expected) in rows {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = sent;
        assert_eq!(owners(&writer.writes(Some(&live), new)), expected, "{name}");
    }
}

#[test]
fn fields_from_before_the_first_apply_have_an_owner() {
    let kinds = kinds();
    let mut live = widget(json!({"size": 1, "on": true}));
    live["metadata"]["uid"] = "u".into();
    let untracked = writer(&kinds, "u", 1).writes(Some(&live), live.clone());
    assert_eq!(owners(&untracked), Vec::<String>::new());
    let applied = writer(&kinds, "a", 2).applies(Some(&untracked), json!({"size": 1})).unwrap();
    let expected = [
        "a Apply ver {f:spec:{f:size:{}}}",
        "before-first-apply Update 02Z {f:spec:{.:{},f:on:{},f:size:{}}}",
    ];
    assert_eq!(owners(&applied), expected);
}

#[test]
fn the_oldest_of_many_writers_are_merged() {
    let kinds = kinds();
    let names: Vec<String> = (0..12).map(|number| format!("w{number}")).collect();
    let mut live = widget(json!({"limits": {}}));
    for (second, name) in names.iter().enumerate() {
        let mut new = live.clone();
        new["spec"]["limits"][name] = 1.into();
        let writer = writer(&kinds, name, i64::try_from(second).unwrap());
        live = writer.writes((second > 0).then_some(&live), new);
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), 10);
    let merged =
        "ancient-changes Update 02Z {f:spec:{.:{},f:limits:{.:{},f:w0:{},f:w1:{},f:w2:{}}}}";
    assert_eq!(owners[0], merged);
}

#[test]
fn entries_of_versions_that_are_gone_are_dropped() {
    let kinds = kinds();
    let entry = |version: &str| {
        json!({"manager": "m", "operation": "Update", "apiVersion": version,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}}})
    };
    let mut live = widget(json!({"size": 1}));
    live["metadata"]["managedFields"] = json!([entry("example.dev/v0"), entry("example.dev/v2")]);
    let writer = writer(&kinds, "a", 1);
    let served = [SmolStr::new("example.dev/v2")];
    let context = Context { served: &served, ..writer.context() };
    let applied = apply(&context, Some(&live), &widget(json!({"size": 1})), false).unwrap();
    let managers = Managers::parse(Some(&applied["metadata"]["managedFields"])).unwrap();
    let versions: Vec<_> =
        managers.entries().iter().map(|entry| entry.manager.api_version.as_str()).collect();
    assert_eq!(versions, ["example.dev/v1", "example.dev/v2"]);
}

#[test]
fn times_alone_are_no_change() {
    let kinds = kinds();
    let old = writer(&kinds, "a", 1).applies(None, json!({"size": 1})).unwrap();
    let later = |mut object: Value| {
        object["metadata"]["managedFields"][0]["time"] = "2026-02-02T00:00:00Z".into();
        object
    };
    let mut new = later(old.clone());
    revert_times(&old, &mut new);
    assert_eq!(new, old);
    let mut changed = later(old.clone());
    changed["spec"]["size"] = 2.into();
    let expected = changed.clone();
    revert_times(&old, &mut changed);
    assert_eq!(changed, expected);
}
