//! The index against the plainest reading of the rules: all bindings of the cluster, one by one.

use convoy_testkit::property;
use proptest::prelude::*;

use super::super::index::{Index, Source, Verdict};
use super::super::rule::{AccessTarget, Attributes, Rule};
use super::*;
use crate::caller::Caller;
use crate::encoding;
use crate::object_meta::{Entry, Store};

/// An object of one of the four kinds, present or absent.
#[derive(Clone, Debug)]
struct Step {
    source: Source,
    namespace: &'static str,
    name: &'static str,
    object: Option<Value>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn any_rule() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "get | core | pods",
        "get list | core apps | pods deployments",
        "* | core | pods/log",
        "get | * | */log",
        "list | core | pods | x y",
        "* | * | *",
        "get | /healthz /api/*",
        "create deletecollection | core | pods | x",
    ])
}

fn any_subject() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({"kind": "User", "name": "u"}),
        json!({"kind": "User", "name": "g"}),
        json!({"kind": "Group", "name": "g"}),
        json!({"kind": "ServiceAccount", "name": "u", "namespace": "n"}),
        json!({"kind": "User", "name": "system:serviceaccount:n:u"}),
        json!({"kind": "ServiceAccount", "name": "u"}),
    ])
}

fn any_step() -> impl Strategy<Value = Step> {
    let sources = prop::sample::select(vec![
        Source::ClusterRoles,
        Source::Roles,
        Source::ClusterRoleBindings,
        Source::RoleBindings,
    ]);
    let place = prop::sample::select(vec!["n", "m"]);
    let content = (
        prop::collection::vec(any_rule(), 0..3),
        prop::collection::vec(any_subject(), 0..3),
        prop::sample::select(vec!["Role", "ClusterRole", "Other"]),
        prop::sample::select(NAMES.to_vec()),
    );
    (sources, place, prop::sample::select(NAMES.to_vec()), prop::option::of(content)).prop_map(
        |(source, place, name, content)| {
            let object = content.map(|(rules, subjects, kind, role_name)| match source {
                Source::ClusterRoles | Source::Roles => role("X", name, &rules),
                _ => json!({"metadata": {"name": name}, "subjects": subjects,
                    "roleRef": {"kind": kind, "name": role_name}}),
            });
            let is_global = matches!(source, Source::ClusterRoles | Source::ClusterRoleBindings);
            Step { source, namespace: if is_global { "" } else { place }, name, object }
        },
    )
}

/// Reads the present objects as the rules are told, without any index.
fn naive(objects: &[Step], caller: &Caller, attributes: &Attributes<'_>) -> bool {
    let present = |source: Source| {
        objects.iter().filter(move |step| step.source == source && step.object.is_some())
    };
    let matches = |subject: &Value| match subject["kind"].as_str().unwrap() {
        "User" => subject["name"] == caller.name.as_str(),
        "Group" => caller.groups.iter().any(|group| subject["name"] == group.as_str()),
        _ => subject["namespace"].as_str().is_some_and(|namespace| {
            caller.name
                == format!(
                    "system:serviceaccount:{namespace}:{}",
                    subject["name"].as_str().unwrap()
                )
        }),
    };
    let bindings = present(Source::ClusterRoleBindings)
        .chain(present(Source::RoleBindings).filter(|step| step.namespace == attributes.namespace));
    let mut rules: Vec<Rule> = Vec::new();
    for binding in bindings {
        let object = binding.object.as_ref().unwrap();
        if !object["subjects"].as_array().unwrap().iter().any(matches) {
            continue;
        }
        let wanted = object["roleRef"]["name"].as_str().unwrap();
        let is_local = binding.source == Source::RoleBindings;
        let found = match object["roleRef"]["kind"].as_str().unwrap() {
            "ClusterRole" => present(Source::ClusterRoles).find(|role| role.name == wanted),
            "Role" if is_local => present(Source::Roles)
                .find(|role| role.name == wanted && role.namespace == binding.namespace),
            _ => None,
        };
        if let Some(role) = found {
            let list = role.object.as_ref().unwrap()["rules"].clone();
            rules.extend(serde_json::from_value::<Vec<Rule>>(list).unwrap());
        }
    }
    rules.iter().any(|rule| rule.allows(attributes))
}

fn entry(store: &Store, step: &Step, object: &Value) -> Arc<Entry> {
    use convoy_store::{Shelf, Transaction};
    // Every version stands on a key of its own; the index looks at namespace and name alone.
    let shelf = Shelf::new(&store.revision().0.to_string(), "x");
    let key = shelf.key(step.namespace, step.name);
    let written = store.write(Transaction::create(key, encoding::stored(object))).unwrap();
    Arc::clone(&written.entries[0])
}

fn requests() -> Vec<Attributes<'static>> {
    let mut requests = Vec::new();
    for namespace in ["", "n", "m"] {
        for verb in ["get", "list", "create", "deletecollection"] {
            for (resource, subresource, name) in [
                ("pods", "", "x"),
                ("pods", "", ""),
                ("pods", "log", "x"),
                ("deployments", "", "z"),
            ] {
                for group in ["", "apps"] {
                    let target = AccessTarget::Resource { group, resource, subresource, name };
                    requests.push(Attributes { verb, namespace, target });
                }
            }
        }
    }
    for path in ["/healthz", "/api/v1", "/metrics"] {
        requests.push(Attributes { verb: "get", namespace: "", target: AccessTarget::Path(path) });
    }
    requests
}

proptest! {
    #![proptest_config(property::config(64))]

    /// However objects come, change and go, the index says what the objects say.
    #[test]
    fn the_index_says_what_the_objects_say(steps in prop::collection::vec(any_step(), 1..24)) {
        let settings = convoy_store::Settings { inline: true, ..Default::default() };
        let store = Store::open(convoy_store::MemoryBackend, settings).unwrap();
        let mut index = Index::default();
        let mut objects: Vec<(Step, Option<Arc<Entry>>)> = Vec::new();
        for step in steps {
            let place = |known: &Step| {
                (known.source, known.namespace, known.name) == (step.source, step.namespace, step.name)
            };
            let at = objects.iter().position(|(known, _)| place(known));
            let previous = at.and_then(|at| objects.remove(at).1);
            if let Some(previous) = &previous {
                index.remove(step.source, previous);
            }
            let stored = step.object.as_ref().map(|object| entry(&store, &step, object));
            if let Some(stored) = &stored {
                index.put(step.source, stored);
            }
            objects.push((step, stored));
        }
        let objects: Vec<Step> = objects.into_iter().map(|(step, _)| step).collect();
        for (name, groups) in
            [("u", vec![]), ("u", vec!["g".to_owned()]), ("system:serviceaccount:n:u", vec![])]
        {
            let caller = Caller { name: name.to_owned(), groups, ..Caller::default() };
            for attributes in requests() {
                let found = matches!(index.judge(&caller, &attributes), Verdict::Allowed(_));
                prop_assert_eq!(found, naive(&objects, &caller, &attributes), "{:?} {:?}", caller, attributes);
            }
        }
    }
}
