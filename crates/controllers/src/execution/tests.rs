//! Steps executed against servers that response, refuse and stay silent.

use convoy_api::apps::POD;
use convoy_plan::dialect::apps::ReplicaSets;
use convoy_plan::{Verb, Why};
use serde_json::{Value, json};

use super::*;

fn create(name: &str) -> Action {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}});
    Action::create(Verb::Create, POD.key("shop", name), object, Why::new("Test", "a test"))
}

fn execution(names: &[&str]) -> StepExecution {
    let actions = names.iter().map(|name| create(name)).collect();
    let projections = Arc::new(Projections::of(&[&ReplicaSets]));
    StepExecution::new(actions, None, "convoy", projections, Arc::default())
}

fn ids(execution: &mut StepExecution) -> Vec<RequestId> {
    execution.next_requests().into_iter().map(|pending| pending.id).collect()
}

fn response(code: u16, name: &str) -> RequestResult {
    let body = match name {
        "" => Value::Null,
        name => json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "resourceVersion": "7"}}),
    };
    RequestResult::Response(Response { code, retry_after: None, body })
}

#[test]
fn similar_writes_are_sent_in_growing_batches() {
    let mut execution = execution(&["a", "b", "c", "d"]);
    let mut batches = Vec::new();
    while execution.finished().is_none() {
        let batch = ids(&mut execution);
        for id in &batch {
            execution.handle(*id, response(201, "a"));
        }
        batches.push(batch.len());
    }
    assert_eq!(batches, [1, 2, 1, 0]);
    let finished = execution.finished().unwrap();
    assert_eq!((finished.result, finished.applied.len()), (StepResult::Done, 4));
}

#[test]
fn patches_of_several_nodes_are_concurrent_and_those_of_one_node_are_not() {
    let patch = |kind: &str, name: &str| {
        let object = convoy_testkit::object("v1", kind, name).build();
        let action = Action::patch(Verb::Record, &object, json!({}), Why::new("Test", "a test"));
        if kind == "Node" { action.concurrently() } else { action }
    };
    let widths = |actions: Vec<Action>| {
        let projections = Arc::new(Projections::of(&[&ReplicaSets]));
        let mut execution =
            StepExecution::new(actions, None, "convoy", projections, Arc::default());
        let mut widths = Vec::new();
        while execution.finished().is_none() {
            let batch = ids(&mut execution);
            for id in &batch {
                execution.handle(*id, response(200, "a"));
            }
            widths.extend(Some(batch.len()).filter(|width| *width > 0));
        }
        widths
    };
    assert_eq!(widths(["a", "b", "c"].map(|name| patch("Node", name)).to_vec()), [1, 2]);
    assert_eq!(widths(["a", "b", "b"].map(|name| patch("Node", name)).to_vec()), [1, 1, 1]);
    assert_eq!(widths(["a", "b", "c"].map(|name| patch("Skyhook", name)).to_vec()), [1, 1, 1]);
}

#[test]
fn a_write_without_a_clear_answer_is_looked_for_until_there_is_one() {
    for unclear in [RequestResult::Lost("reset".to_owned()), response(500, ""), response(504, "")] {
        let mut execution = execution(&["a", "b"]);
        assert_eq!(ids(&mut execution), [RequestId::Write(0)]);
        assert!(execution.handle(RequestId::Write(0), unclear).is_none());
        assert_eq!(ids(&mut execution), [RequestId::Read(0)]);
        assert!(ids(&mut execution).is_empty(), "one read at a time");
        execution.handle(RequestId::Read(0), response(503, ""));
        let [pending] = execution.next_requests()[..] else { panic!() };
        assert_eq!((pending.id, pending.delay), (RequestId::Read(0), READ_BACKOFF_FIRST));
        assert!(execution.finished().is_none(), "nothing is decided before the state is known");
        let event = execution.handle(RequestId::Read(0), response(200, "a"));
        assert!(matches!(event, Some(CacheEvent::Responded(_))), "it was applied");
        assert!(ids(&mut execution).is_empty());
        assert!(matches!(execution.finished().unwrap().result, StepResult::Retry { .. }));
    }
}

#[test]
fn a_write_that_was_throttled_needs_no_read() {
    let mut execution = execution(&["a"]);
    ids(&mut execution);
    execution.handle(RequestId::Write(0), response(429, ""));
    assert!(ids(&mut execution).is_empty());
    assert!(matches!(execution.finished().unwrap().result, StepResult::Retry { .. }));
}

#[test]
fn a_conflict_ends_the_step_and_the_applied_actions_are_known() {
    let mut execution = execution(&["a", "b", "c"]);
    ids(&mut execution);
    execution.handle(RequestId::Write(0), response(201, "a"));
    assert_eq!(ids(&mut execution), [RequestId::Write(1), RequestId::Write(2)]);
    execution.handle(RequestId::Write(2), response(201, "c"));
    execution.handle(RequestId::Write(1), response(409, ""));
    assert_eq!(ids(&mut execution), [RequestId::Read(1)]);
    let event = execution.handle(RequestId::Read(1), response(404, ""));
    assert!(event.is_none(), "an object of that name may have been created since: {event:?}");
    assert!(ids(&mut execution).is_empty());
    let finished = execution.finished().unwrap();
    assert_eq!(finished.result, StepResult::Conflict);
    let was_applied = |name: &str| finished.applied(&POD.key("shop", name));
    assert_eq!(["a", "b", "c", "web"].map(was_applied), [true, false, true, false]);
}

#[test]
fn an_apply_is_forced_over_fields_of_its_own_manager_only() {
    let conflict = |managers: &[&str]| {
        let cause = |manager: &&str| {
            json!({"reason": "FieldManagerConflict", "field": ".data.a",
                "message": format!("conflict with \"{manager}\" using v1")})
        };
        let causes: Vec<Value> = managers.iter().map(cause).collect();
        let body = json!({"message": "Apply failed", "details": {"causes": causes}});
        RequestResult::Response(Response { code: 409, retry_after: None, body })
    };
    let cases = [
        (vec!["convoy"], true),
        (vec!["convoy", "before-first-apply"], true),
        (vec!["convoy", "kubectl"], false),
    ];
    for (managers, is_forced) in cases {
        let object = convoy_testkit::object("v1", "Pod", "a").build();
        let why = Why::new("Test", "a test");
        let action = Action::apply(Verb::Advance, &object, object.raw().clone(), false, why);
        let projections = Arc::new(Projections::of(&[&ReplicaSets]));
        let mut execution =
            StepExecution::new(vec![action], None, "convoy", projections, Arc::default());
        let first = ids(&mut execution);
        execution.handle(first[0], conflict(&managers));
        let again = ids(&mut execution);
        assert_eq!(again.len(), usize::from(is_forced), "{managers:?}");
        let Write::Apply { force, .. } = &execution.actions()[0].write else { panic!() };
        assert_eq!(*force, is_forced, "{managers:?}");
        if is_forced {
            // Forced once, whatever the server says then.
            execution.handle(again[0], conflict(&managers));
            assert_eq!(ids(&mut execution), []);
        }
        let result = execution.finished().expect("the step has ended").result;
        assert!(matches!(result, StepResult::Denied(_)), "{result:?}");
    }
}

#[test]
fn a_read_after_a_conflict_tells_which_object_is_gone() {
    let object = convoy_testkit::object("v1", "Pod", "web").with("/metadata/uid", json!("one"));
    let why = Why::new("Test", "a test");
    let patch = Action::patch(Verb::Record, &object.build(), json!({}), why);
    let projections = Arc::new(Projections::of(&[&ReplicaSets]));
    let mut execution =
        StepExecution::new(vec![patch], None, "convoy", projections, Arc::default());
    ids(&mut execution);
    execution.handle(RequestId::Write(0), response(404, ""));
    assert_eq!(ids(&mut execution), [RequestId::Read(0)]);
    let event = execution.handle(RequestId::Read(0), response(404, ""));
    let Some(CacheEvent::Gone { uid, .. }) = event else { panic!("{event:?}") };
    assert_eq!(uid.as_deref(), Some("one"));
}
