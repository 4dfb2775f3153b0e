//! Merging interrupts.

use convoy_api::Object;
use convoy_testkit::object;
use serde_json::{Value, json};

use super::*;
use crate::dialect::skyhook::read::hook::Hook;

fn skyhook(interrupts: &Value) -> Object {
    let packages = interrupts.as_object().unwrap().iter().map(|(name, interrupt)| {
        let body = json!({"version": "1.0.0", "image": "x", "interrupt": interrupt});
        (name.clone(), body)
    });
    let packages: serde_json::Map<String, Value> = packages.collect();
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
        .spec(json!({"packages": packages}))
        .build()
}

#[test]
fn what_disturbs_most_wins_and_services_are_joined() {
    let service = |names: &[&str]| json!({"type": "service", "services": names});
    let base = json!({"foo": service(&["foo", "bar"]), "bar": service(&["ducks", "kittens"]),
        "buz": service(&["foo", "log"])});
    let with = |name: &str, interrupt: Value| {
        let mut all = base.clone();
        all[name] = interrupt;
        all
    };
    let cases = [
        (base.clone(), "bar|1.0.0", "service", vec!["bar", "ducks", "foo", "kittens", "log"]),
        (with("omg", json!({"type": "reboot"})), "omg|1.0.0", "reboot", vec![]),
        (
            json!({"foo": {"type": "noop"}, "bar": service(&["a"])}),
            "bar|1.0.0",
            "service",
            vec!["a"],
        ),
        (
            json!({"bar": service(&["a"]), "baz": {"type": "restartAllServices"},
                "foo": {"type": "noop"}}),
            "baz|1.0.0",
            "restartAllServices",
            vec![],
        ),
    ];
    for (interrupts, runner, kind, services) in cases {
        let object = skyhook(&interrupts);
        let hook = Hook::read(&object).unwrap();
        let merged = merge(&hook.packages).unwrap();
        assert_eq!((merged.runner.as_str(), word(merged.interrupt.kind)), (runner, kind));
        assert_eq!(merged.interrupt.services.unwrap_or_default(), services);
    }
    assert_eq!(merge([]), None);
}
