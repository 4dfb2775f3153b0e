//! What holds for all objects and configurations.

use convoy_testkit::property;
use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::shapes::{Kinds, kinds};
use crate::apply::compare::{Changes, compare};
use crate::apply::own::set_of;
use crate::apply::{Context, Error, FieldSet, Reset, apply, track_update};

fn context<'c>(kinds: &'c Kinds, manager: &'c str, second: i64, reset: &'c Reset) -> Context<'c> {
    Context {
        shape: kinds.shape("Widget"),
        api_version: "example.dev/v1",
        served: &[],
        manager,
        subresource: "",
        now: Timestamp::new(1_767_225_600 + second, 0).unwrap(),
        reset,
    }
}

fn applied(
    kinds: &Kinds,
    manager: &str,
    second: i64,
    live: Option<&Value>,
    config: &Value,
) -> Value {
    let reset = Reset::nothing();
    apply(&context(kinds, manager, second, &reset), live, config, true).unwrap()
}

/// A widget with whatever its schema allows, without empty containers: those are owned by
/// nobody, or by all.
fn widget() -> impl Strategy<Value = Value> {
    let word = || prop_oneof![Just("a"), Just("b"), Just("c"), Just("<d>")];
    let texts = btree_map(word().prop_map(String::from), word(), 1..3).prop_map(|map| json!(map));
    let set = proptest::sample::subsequence(vec!["x", "y", "z"], 1..3).prop_shuffle();
    let rule = (word(), 0..3, any::<bool>()).prop_map(|(name, weight, ports)| {
        let mut rule = json!({"name": name, "weight": weight});
        if ports {
            rule["ports"] = json!([{"port": 80 + weight}, {"port": 80, "protocol": "UDP"}]);
        }
        rule
    });
    let rules = vec(rule, 1..4).prop_map(|mut rules| {
        rules.sort_by_key(|rule| rule["name"].to_string());
        rules.dedup_by_key(|rule| rule["name"].to_string());
        json!(rules)
    });
    let spec = (
        proptest::option::of(0..3),
        proptest::option::of(texts.clone()),
        proptest::option::of(set),
        proptest::option::of(rules),
        proptest::option::of(texts.clone()),
        proptest::option::of(texts),
    );
    spec.prop_map(|(size, limits, tags, rules, free, fixed)| {
        let mut spec = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                spec.insert(key.to_owned(), value);
            }
        };
        put("size", size.map(Value::from));
        put("limits", limits);
        put("tags", tags.map(|tags| json!(tags)));
        put("rules", rules);
        put("free", free);
        put("fixed", fixed);
        configuration(&Value::Object(spec))
    })
}

fn configuration(spec: &Value) -> Value {
    let (version, kind) = ("example.dev/v1", "Widget");
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": spec})
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z<\\\\\"]{0,3}".prop_map(Value::from),
    ];
    let keys = prop_oneof![
        "[a-c]",
        "[fkvix]:[0-9\"a{}]{0,3}",
        Just(".".to_owned()),
        proptest::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "managedFields",
            "rules",
            "tags",
            "name",
            "ports",
            "port",
            "manager",
            "operation",
            "fieldsV1",
            "fieldsType",
            "labels",
            "finalizers",
        ])
        .prop_map(String::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(keys.clone(), inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(property::config(256))]

    #[test]
    fn a_set_comes_back_from_its_text(object in any_json()) {
        let set = set_of(crate::shape::untyped(), &object);
        prop_assert_eq!(&FieldSet::parse(&set.to_value()).unwrap(), &set);
    }

    #[test]
    fn sets_obey_their_laws(a in any_json(), b in any_json()) {
        let (a, b) = (set_of(crate::shape::untyped(), &a), set_of(crate::shape::untyped(), &b));
        prop_assert_eq!(&a.difference(&b).union(&a.intersection(&b)), &a);
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert!(a.recursive_difference(&b).difference(&a.difference(&b)).is_empty());
        let mut rest = a.clone();
        rest.subtract(&b);
        prop_assert_eq!(rest, a.difference(&b));
    }

    #[test]
    fn applying_twice_is_quiet(config in widget()) {
        let kinds = kinds();
        let once = applied(&kinds, "a", 1, None, &config);
        let twice = applied(&kinds, "a", 2, Some(&once), &config);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn who_withdraws_takes_along_what_nobody_else_wants(a in widget(), b in widget()) {
        let kinds = kinds();
        let first = applied(&kinds, "a", 1, None, &a);
        let both = applied(&kinds, "b", 2, Some(&first), &b);
        let mut left = applied(&kinds, "a", 3, Some(&both), &configuration(&Value::Null));
        let mut alone = applied(&kinds, "b", 2, None, &b);
        for object in [&mut left, &mut alone] {
            object["metadata"] = Value::Null;
        }
        if left["spec"].is_null() {
            left["spec"] = json!({});
        }
        let changes = compare(kinds.shape("Widget"), &left, &alone);
        prop_assert_eq!(changes, Changes::default(), "{} and {}", left, alone);
    }

    #[test]
    fn managers_of_different_fields_never_conflict(config in widget(), mask in any::<u8>()) {
        let kinds = kinds();
        let reset = Reset::nothing();
        let mut halves = [Map::new(), Map::new()];
        for (bit, (key, value)) in config["spec"].as_object().unwrap().iter().enumerate() {
            halves[usize::from(mask >> bit & 1)].insert(key.clone(), value.clone());
        }
        let mut live = None;
        for (half, manager) in halves.into_iter().zip(["a", "b"]) {
            let half = configuration(&Value::Object(half));
            live = Some(apply(&context(&kinds, manager, 1, &reset), live.as_ref(), &half, false)?);
        }
        prop_assert_eq!(&live.unwrap()["spec"], &config["spec"]);
    }

    #[test]
    fn no_object_and_no_list_of_owners_is_too_odd(
        live in any_json(), new in any_json(), owners in any_json(), config in any_json(),
    ) {
        let kinds = kinds();
        let reset = Reset::names(&[&["status"]]);
        let context = context(&kinds, "a", 1, &reset);
        let (mut live, mut new) = (live, new);
        for object in [&mut live, &mut new] {
            if let Value::Object(object) = object {
                object.insert("metadata".into(), json!({"uid": "u", "managedFields": owners}));
            }
        }
        track_update(&context, Some(&live), &mut new);
        track_update(&context, None, &mut new);
        let _outcome: Result<Value, Error> = apply(&context, Some(&live), &config, true);
    }
}
