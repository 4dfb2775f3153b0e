//! Leases that are held, silent, released, cleared, deleted and stolen.

use convoy_testkit::NOW;
use http::Method;

use super::*;

fn secs(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn candidate() -> Candidate {
    Candidate::new(Election::new("kube-system", "convoy", "me"))
}

fn lease(uid: &str, version: &str, holder: &str) -> Value {
    json!({"metadata": {"uid": uid, "resourceVersion": version},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "renewTime": "2026-01-01T00:00:00.000000Z"}})
}

fn released(uid: &str, version: &str) -> Value {
    let mut lease = lease(uid, version, "");
    lease["spec"]["leaseDurationSeconds"] = json!(1);
    lease
}

/// As a manifest makes it.
fn unheld(uid: &str) -> Value {
    json!({"metadata": {"uid": uid, "resourceVersion": "1"}})
}

/// In short: who is waited for and how long, or the method and what went before.
fn short(claim: &Claim) -> String {
    match claim {
        Claim::Wait { who, left } => format!("wait {} s for {who:?}", left.as_secs()),
        Claim::Take { request, succession: Succession::Free } => format!("{} free", request.method),
        Claim::Take { request, succession: Succession::Expired(promised) } => {
            format!("{} expired {}", request.method, promised.as_secs())
        }
        Claim::Renew { request } => format!("renew by {}", request.method),
        Claim::Lost { holder } => format!("lost to {holder}"),
    }
}

/// The claims of one candidate about what it reads, one after the other.
fn claims(candidate: &mut Candidate, read: &[(u64, Option<Value>)]) -> Vec<String> {
    let now = NOW.parse().unwrap();
    let mut claim = |at, lease: Option<&Value>| short(&candidate.observe(lease, secs(at), now));
    read.iter().map(|(at, lease)| claim(*at, lease.as_ref())).collect()
}

#[test]
fn a_lease_is_taken_once_it_was_seen_unchanged_for_its_duration() {
    let held = |version| Some(lease("a", version, "other"));
    let read = [(100, held("1")), (114, held("1")), (120, held("2")), (134, held("2"))];
    let wait = |left| format!("wait {left} s for Other(\"other\")");
    assert_eq!(claims(&mut candidate(), &read), [wait(15), wait(1), wait(15), wait(1)]);
    let read = [(100, held("1")), (115, held("1"))];
    assert_eq!(claims(&mut candidate(), &read), [wait(15), "PUT expired 15".to_owned()]);
}

#[test]
fn the_holder_says_how_long_to_wait_if_that_is_longer() {
    let held = |promised: u64| {
        let mut lease = lease("a", "1", "other");
        lease["spec"]["leaseDurationSeconds"] = json!(promised);
        Some(lease)
    };
    let read = |promised| [(0, held(promised)), (14, held(promised)), (40, held(promised))];
    let wait = |left| format!("wait {left} s for Other(\"other\")");
    let claims = |promised| claims(&mut candidate(), &read(promised));
    assert_eq!(claims(40), [wait(40), wait(26), "PUT expired 40".to_owned()]);
    assert_eq!(claims(3), [wait(15), wait(1), "PUT expired 15".to_owned()]);
}

#[test]
fn a_lease_that_its_holder_released_or_nobody_ever_held_is_taken_at_once() {
    assert_eq!(claims(&mut candidate(), &[(0, Some(released("a", "1")))]), ["PUT free"]);
    assert_eq!(claims(&mut candidate(), &[(0, Some(unheld("a")))]), ["PUT free"]);
    let read = [(0, Some(lease("a", "1", "other"))), (2, Some(released("a", "2")))];
    assert_eq!(claims(&mut candidate(), &read)[1], "PUT free");
}

#[test]
fn a_lease_that_others_cleared_or_made_anew_is_waited_for() {
    let cleared = Some(lease("a", "2", ""));
    let wait = |left| format!("wait {left} s for Cleared");
    let read = [(0, cleared.clone()), (14, cleared.clone()), (15, cleared)];
    let expected = [wait(15), wait(1), "PUT expired 15".to_owned()];
    assert_eq!(claims(&mut candidate(), &read), expected);
    // Deleted and made anew, without a holder: whoever held the old one may act on.
    for anew in [unheld("b"), released("b", "5")] {
        let read = [(0, Some(lease("a", "1", "other"))), (2, Some(anew.clone())), (17, Some(anew))];
        assert_eq!(claims(&mut candidate(), &read)[1..], [wait(15), "PUT expired 15".to_owned()]);
    }
}

#[test]
fn an_absent_lease_counts_as_held() {
    let wait = |left| format!("wait {left} s for Absent");
    let read = [(0, None), (14, None), (15, None)];
    let expected = [wait(15), wait(1), "POST expired 15".to_owned()];
    assert_eq!(claims(&mut candidate(), &read), expected, "it may have been deleted just before");
    let read = [(0, Some(lease("a", "1", "other"))), (14, None), (28, None), (29, None)];
    assert_eq!(
        claims(&mut candidate(), &read)[1..],
        [wait(15), wait(1), "POST expired 15".to_owned()],
        "its holder may have renewed it after the last look"
    );
}

#[test]
fn a_leader_renews_its_lease_and_takes_it_back_but_not_from_another_holder() {
    let mut leader = candidate();
    leader.took();
    let read = [
        (0, Some(lease("a", "1", "me"))),
        (2, None),
        (4, Some(unheld("b"))),
        (6, Some(lease("b", "3", ""))),
        (8, Some(lease("b", "4", "other"))),
        (10, Some(lease("b", "4", "other"))),
    ];
    assert_eq!(
        claims(&mut leader, &read),
        [
            "renew by PUT",
            "renew by POST",
            "renew by PUT",
            "renew by PUT",
            "lost to other",
            "wait 15 s for Other(\"other\")"
        ]
    );
}

#[test]
fn a_lease_in_our_name_that_we_did_not_take_is_not_ours_yet() {
    let read = [(0, Some(lease("a", "1", "me"))), (15, Some(lease("a", "1", "me")))];
    let expected = ["wait 15 s for Other(\"me\")", "PUT expired 15"];
    assert_eq!(claims(&mut candidate(), &read), expected);
}

#[test]
fn a_takeover_is_a_transition_and_a_renewal_is_not() {
    let (election, now) = (Election::new("kube-system", "convoy", "me"), NOW.parse().unwrap());
    let transitions = |holder| {
        let request = election.taken(&lease("a", "1", holder), now);
        assert_eq!(request.method, Method::PUT);
        assert_eq!(request.body["metadata"]["resourceVersion"], "1", "it is fenced");
        assert_eq!(request.body["spec"]["holderIdentity"], "me");
        request.body["spec"]["leaseTransitions"].as_i64()
    };
    assert_eq!((transitions("me"), transitions("other")), (Some(3), Some(4)));
    assert_eq!(election.released(&lease("a", "1", "other"), now), None);
    let request = election.released(&lease("a", "1", "me"), now).unwrap();
    let released = (&request.body["spec"]["holderIdentity"], promised(&request.body));
    assert_eq!(released, (&json!(""), Some(secs(1))));
}

#[test]
fn instants_have_six_digits() {
    let at: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
    assert_eq!(micro_time(at), "2026-01-01T00:00:00.500000Z");
}
