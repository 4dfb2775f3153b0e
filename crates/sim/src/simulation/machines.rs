//! The process that plays the machines: kubelets, the scheduler and the node controller, told
//! of every fact after a while.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use convoy_api::object::member::text;
use jiff::{SignedDuration, Timestamp};

use super::cluster::{Author, Fact, Response};
use super::controller::Scene;
use crate::fleet::send::{done, form, refused};
use crate::known::Known;
use crate::kubelets::Kubelets;
use crate::lifecycle::Lifecycle;
use crate::part::{Answer, Key, Kind, Part, Request, tell_answer};
use crate::scenario::Scenario;
use crate::scheduler::Scheduler;

/// Something that happens to the machines.
#[derive(Debug)]
pub(crate) enum Moment {
    Wake,
    /// They hear of the next fact.
    Hear,
    Arrive(u64),
    Return(u64, Answer),
}

pub(crate) type Later = Vec<(SignedDuration, Moment)>;

pub(crate) struct Machines {
    parts: Vec<Box<dyn Part>>,
    /// Requests on their way, with the part that sent them.
    sent: BTreeMap<u64, (usize, Request)>,
    numbers: u64,
    /// How many facts they have heard of.
    heard: usize,
    is_hearing: bool,
    alarm: Option<Timestamp>,
}

impl Machines {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let kubelets = Kubelets::new(Arc::new(scenario));
        let parts: Vec<Box<dyn Part>> =
            vec![Box::new(kubelets), Box::<Scheduler>::default(), Box::<Lifecycle>::default()];
        let (sent, alarm) = (BTreeMap::new(), None);
        Self { parts, sent, numbers: 0, heard: 0, is_hearing: false, alarm }
    }

    pub(crate) fn happen(&mut self, moment: Moment, scene: &mut Scene<'_>) -> Later {
        let mut later = Later::new();
        match moment {
            // One that was brought forward rings a second time at its former hour.
            Moment::Wake => self.alarm = self.alarm.filter(|alarm| *alarm > scene.cluster.now()),
            Moment::Hear => {
                self.is_hearing = false;
                self.hear(scene);
            }
            Moment::Arrive(number) => self.arrive(number, scene, &mut later),
            Moment::Return(number, answer) => self.returned(number, &answer, scene.cluster.now()),
        }
        self.work(scene, &mut later);
        later
    }

    /// The place before which they need no fact any more.
    pub(crate) fn needs_from(&self) -> usize {
        self.heard
    }

    /// New facts are there.
    pub(crate) fn stir(&mut self, scene: &mut Scene<'_>) -> Later {
        let mut later = Later::new();
        if !self.is_hearing && self.heard < scene.cluster.written() {
            self.is_hearing = true;
            later.push((scene.chance.millis(0, 10), Moment::Hear));
        }
        later
    }

    fn hear(&mut self, scene: &Scene<'_>) {
        let now = scene.cluster.now();
        for fact in scene.cluster.facts(self.heard) {
            tell(&mut self.parts, fact, now);
        }
        self.heard = scene.cluster.written();
    }

    fn work(&mut self, scene: &mut Scene<'_>, later: &mut Later) {
        let now = scene.cluster.now();
        for (part, asked) in self.parts.iter_mut().enumerate() {
            for request in asked.due(now) {
                self.numbers += 1;
                self.sent.insert(self.numbers, (part, request));
                later.push((scene.chance.millis(0, 10), Moment::Arrive(self.numbers)));
            }
        }
        let next = self.parts.iter().filter_map(|part| part.next()).min();
        if let Some(at) = next.map(|at| at.max(now))
            && self.alarm.is_none_or(|alarm| at < alarm)
        {
            self.alarm = Some(at);
            later.push((at.duration_since(now), Moment::Wake));
        }
    }

    fn arrive(&mut self, number: u64, scene: &mut Scene<'_>, later: &mut Later) {
        let Some((_, request)) = self.sent.get(&number) else { return };
        let Response { code, body } = scene.cluster.answer(&form(request), Author::Machines);
        let answer = if (200..300).contains(&code) {
            done(request, body)
        } else {
            refused(code, text(&body, "reason"), text(&body, "message"))
        };
        later.push((scene.chance.millis(0, 10), Moment::Return(number, answer)));
    }

    fn returned(&mut self, number: u64, answer: &Answer, now: Timestamp) {
        let Some((part, request)) = self.sent.remove(&number) else { return };
        tell_answer(&mut self.parts, &request, answer, now);
        self.parts[part].answered(&request, answer, now);
    }
}

fn tell(parts: &mut [Box<dyn Part>], fact: &Fact, now: Timestamp) {
    let kind = match (fact.object.kind().group.as_str(), fact.object.kind().kind.as_str()) {
        ("", "Pod") => Kind::Pod,
        ("", "Node") => Kind::Node,
        ("coordination.k8s.io", "Lease") => Kind::Lease,
        _ => return,
    };
    let key = Key::of(kind, fact.object.raw());
    let object = (!fact.is_deletion()).then(|| Known::Object(fact.object.clone()));
    for part in parts {
        part.changed(&key, object.as_ref(), now);
    }
}

impl fmt::Debug for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machines").field("sent", &self.sent.len()).finish_non_exhaustive()
    }
}
