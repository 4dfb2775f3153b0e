//! Names of pods that replace others.

use std::collections::BTreeSet;

use convoy_api::kinds::POD;

use super::*;

/// The name of the pod that a step creates.
fn created(step: &Step) -> String {
    let creates = step.actions.iter().filter_map(|action| match &action.write {
        Write::Create { .. } if action.target.kind == POD => Some(action.target.name.to_string()),
        _ => None,
    });
    let names: Vec<String> = creates.collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    name.clone()
}

/// The pod of the node is gone, time and again: nothing but the owner tells that it was there.
#[test]
fn a_daemon_pod_never_has_the_name_of_the_one_before() {
    let set = |version: &str, status: Value| {
        let set = owner("apps/v1", "DaemonSet", &json!({})).status(status);
        [set.with("/metadata/resourceVersion", json!(version)), node("n1")]
    };
    let counted = || json!({"observedGeneration": 1, "currentNumberScheduled": 1});
    let worlds = [("1", json!({})), ("4", counted()), ("9", counted())];
    let name =
        |(version, status): (&str, Value)| created(&step(&DAEMON_SETS, set(version, status)));
    let names: BTreeSet<String> = worlds.clone().map(name).into();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(worlds.map(name).into_iter().collect::<BTreeSet<_>>(), names);
}

#[test]
fn a_job_pod_never_has_the_name_of_the_one_before() {
    for mode in ["Indexed", "NonIndexed"] {
        let spec = json!({"completions": 1, "completionMode": mode});
        let name = |version: &str, status: Value| {
            let job = owner("batch/v1", "Job", &spec).status(status);
            created(&step(&JOBS, [job.with("/metadata/resourceVersion", json!(version))]))
        };
        let counted = |failed: i64| json!({"failed": failed, "uncountedTerminatedPods": {}});
        let names = [name("1", json!({})), name("4", counted(1)), name("8", counted(2))];
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 3, "{names:?}");
        assert_eq!(name("4", counted(1)), names[1]);
    }
}
