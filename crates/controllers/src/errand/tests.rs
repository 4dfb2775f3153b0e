//! Writes carried out, and what may befall them.

use convoy_api::apps::POD;
use convoy_plan::dialect::apps::ReplicaSets;
use convoy_plan::{Verb, Why};
use serde_json::{Value, json};

use super::*;

fn create(name: &str) -> Action {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}});
    Action::create(Verb::Create, POD.key("shop", name), object, Why::new("Test", "a test"))
}

fn errand(names: &[&str]) -> Errand {
    let actions = names.iter().map(|name| create(name)).collect();
    let projections = Arc::new(Projections::of(&[&ReplicaSets]));
    Errand::new(actions, None, projections, Arc::default())
}

fn calls(errand: &mut Errand) -> Vec<Call> {
    errand.asks().into_iter().map(|ask| ask.call).collect()
}

fn answer(code: u16, name: &str) -> Reply {
    let body = match name {
        "" => Value::Null,
        name => json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "resourceVersion": "7"}}),
    };
    Reply::Answer(Answer { code, retry_after: None, body })
}

#[test]
fn writes_that_are_alike_go_in_batches_that_grow() {
    let mut errand = errand(&["a", "b", "c", "d"]);
    let mut batches = Vec::new();
    while errand.ended().is_none() {
        let batch = calls(&mut errand);
        for call in &batch {
            errand.replied(*call, answer(201, "a"));
        }
        batches.push(batch.len());
    }
    assert_eq!(batches, [1, 2, 1, 0]);
    let ended = errand.ended().unwrap();
    assert_eq!((ended.ending, ended.done.len()), (Ending::Done, 4));
}

#[test]
fn patches_of_nodes_go_together_and_those_of_one_node_after_each_other() {
    let patch = |kind: &str, name: &str| {
        let object = convoy_testkit::object("v1", kind, name).build();
        let action = Action::patch(Verb::Record, &object, json!({}), Why::new("Test", "a test"));
        if kind == "Node" { action.concurrently() } else { action }
    };
    let widths = |actions: Vec<Action>| {
        let projections = Arc::new(Projections::of(&[&ReplicaSets]));
        let mut errand = Errand::new(actions, None, projections, Arc::default());
        let mut widths = Vec::new();
        while errand.ended().is_none() {
            let batch = calls(&mut errand);
            for call in &batch {
                errand.replied(*call, answer(200, "a"));
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
    for unclear in [Reply::Lost("reset".to_owned()), answer(500, ""), answer(504, "")] {
        let mut errand = errand(&["a", "b"]);
        assert_eq!(calls(&mut errand), [Call::Write(0)]);
        assert!(errand.replied(Call::Write(0), unclear).is_none());
        assert_eq!(calls(&mut errand), [Call::Look(0)]);
        assert!(calls(&mut errand).is_empty(), "one look at a time");
        errand.replied(Call::Look(0), answer(503, ""));
        let [ask] = errand.asks()[..] else { panic!() };
        assert_eq!((ask.call, ask.after), (Call::Look(0), LOOK_FIRST));
        assert!(errand.ended().is_none(), "nothing is decided before it is known");
        let news = errand.replied(Call::Look(0), answer(200, "a"));
        assert!(matches!(news, Some(News::Answered(_))), "it was carried out");
        assert!(calls(&mut errand).is_empty());
        assert!(matches!(errand.ended().unwrap().ending, Ending::Later { .. }));
    }
}

#[test]
fn what_the_server_refused_for_now_needs_no_look() {
    let mut errand = errand(&["a"]);
    calls(&mut errand);
    errand.replied(Call::Write(0), answer(429, ""));
    assert!(calls(&mut errand).is_empty());
    assert!(matches!(errand.ended().unwrap().ending, Ending::Later { .. }));
}

#[test]
fn a_conflict_ends_it_and_what_was_done_is_known() {
    let mut errand = errand(&["a", "b", "c"]);
    calls(&mut errand);
    errand.replied(Call::Write(0), answer(201, "a"));
    assert_eq!(calls(&mut errand), [Call::Write(1), Call::Write(2)]);
    errand.replied(Call::Write(2), answer(201, "c"));
    errand.replied(Call::Write(1), answer(409, ""));
    assert_eq!(calls(&mut errand), [Call::Look(1)]);
    let news = errand.replied(Call::Look(1), answer(404, ""));
    assert!(matches!(news, Some(News::Forgotten(_))));
    assert!(calls(&mut errand).is_empty());
    let ended = errand.ended().unwrap();
    assert_eq!(ended.ending, Ending::Conflict);
    let did = |name: &str| ended.did(&POD.key("shop", name));
    assert_eq!(["a", "b", "c", "web"].map(did), [true, false, true, false]);
}
