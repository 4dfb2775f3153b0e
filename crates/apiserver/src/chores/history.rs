//! Old versions are kept for watches that resume and lists that go on, and then they go: a
//! server that is left alone holds what is live and little more.
//!
//! The store knows no time. Marks of where it was, and when, are what ages here.

use std::collections::VecDeque;

use convoy_store::Revision;
use jiff::{SignedDuration, Timestamp};

use crate::server::Server;

/// Kept at least: a client that lost its connection, or is busy with a page, comes back by then.
const AGE: SignedDuration = SignedDuration::from_mins(5);
/// Kept at least, however old: those who come back after a quiet hour need not list again.
const EVENTS_KEPT: usize = 10_000;
/// How far apart marks are: so much later than need be an event goes at most.
const MARK_EVERY: SignedDuration = SignedDuration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct History {
    /// Where the store was at which time, oldest first.
    marks: VecDeque<(Timestamp, Revision)>,
    /// The newest mark that was made, though it may be spent.
    last: Option<(Timestamp, Revision)>,
    /// Where the store is now.
    seen: Revision,
}

impl History {
    /// Marks where the store is, and has it forget what is old enough.
    pub(super) fn step(&mut self, server: &Server) {
        let now = server.now();
        self.seen = server.store.revision();
        if self.last.is_none() || self.next_mark().is_some_and(|at| at <= now) {
            self.last = Some((now, self.seen));
            self.marks.extend(self.last);
        }
        let old = self.marks.partition_point(|(at, _)| now.duration_since(*at) >= AGE);
        if let Some((_, until)) = self.marks.drain(..old).next_back() {
            // However much is kept: clients rely on a list to end sooner than its history does.
            server.expire_pages(until);
            server.store.forget(until, EVENTS_KEPT);
        }
    }

    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        let oldest = self.marks.front().and_then(|(at, _)| at.checked_add(AGE).ok());
        oldest.into_iter().chain(self.next_mark()).min()
    }

    /// When the store's place is marked next, if it has moved since it was.
    fn next_mark(&self) -> Option<Timestamp> {
        let (at, revision) = self.last?;
        let has_moved = revision < self.seen;
        at.checked_add(MARK_EVERY).ok().filter(|_| has_moved)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::TestServer;

    #[test]
    fn lists_of_a_kind_that_does_not_change_expire_too() {
        let test = TestServer::new();
        let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
        for name in ["a", "b", "c"] {
            test.create(path, &json!({"metadata": {"name": name}, "value": 1}));
        }
        let mut history = History::default();
        let path = &format!("{path}?limit=1");
        let token = test.get(path)["metadata"]["continue"].as_str().unwrap().to_owned();
        let next = || test.call("GET", &format!("{path}&continue={token}"), &Value::Null);
        history.step(&test.server);
        test.create("/api/v1/namespaces", &json!({"metadata": {"name": "other"}}));
        assert_eq!(next().1["items"][0]["metadata"]["name"], "b");
        test.advance_secs(30);
        history.step(&test.server);
        test.advance_secs(299);
        history.step(&test.server);
        assert_eq!(next().0, 200);
        test.advance_secs(1);
        history.step(&test.server);
        let (code, expired) = next();
        assert_eq!((code, &expired["reason"]), (410, &json!("Expired")));
        let fresh = expired["metadata"]["continue"].as_str().unwrap();
        let rest = test.get(&format!("{path}&continue={fresh}"));
        assert_eq!(rest["items"][0]["metadata"]["name"], "b");
    }

    #[test]
    fn what_is_older_than_five_minutes_goes_but_the_newest_ten_thousand_stay() {
        let test = TestServer::new();
        let (server, mut history) = (&test.server, History::default());
        let write = |count: usize| {
            let shelf = convoy_store::Shelf::new("", "configmaps");
            for _ in 0..count {
                let key = shelf.key("default", &format!("c{}", server.store.revision().0));
                let value = json!({"metadata": {}}).to_string().into();
                server.store.write(convoy_store::Transaction::create(key, value)).unwrap();
            }
            server.store.revision()
        };
        let is_kept = |after: Revision| {
            let shelf = convoy_store::Shelf::new("", "configmaps");
            server.store.watch(&shelf, after).read().is_ok()
        };
        let first = write(10_100);
        history.step(server);
        assert_eq!(history.wake_at(), Some(server.now() + AGE));
        test.advance_secs(4 * 60);
        let second = write(100);
        history.step(server);
        assert!(is_kept(Revision(first.0 - 10_100)), "nothing is old yet");
        test.advance_secs(60);
        history.step(server);
        assert!(!is_kept(Revision(first.0 - 9_950)), "beyond ten thousand, and old");
        assert!(is_kept(Revision(second.0 - 10_000)));
        let third = write(11_000);
        test.advance_secs(4 * 60);
        history.step(server);
        assert!(is_kept(Revision(third.0 - 11_000)), "more than ten thousand, but young");
        test.advance_secs(6 * 60);
        history.step(server);
        assert!(!is_kept(Revision(third.0 - 10_500)));
        assert!(is_kept(Revision(third.0 - 10_000)));
        assert_eq!(history.wake_at(), None, "nothing happens, so nothing is to be done");
    }
}
