//! A process that runs the control loop: its brain, what it follows and what it has sent.
//! Everything takes its time, may fail, and dies with the process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use convoy_api::GroupKind;
use convoy_controllers::Settings;
use convoy_controllers::brain::Brain;
use convoy_controllers::cache::Rollout;
use convoy_controllers::errand::{Ask, Call, Errand, Reply};
use convoy_controllers::follower::{Closed, Follower, Seen, Wish};
use convoy_controllers::outcome::Answer;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use jiff::{SignedDuration, Timestamp};

use super::chance::Chance;
use super::cluster::{Author, Cluster, Fact, form};
use super::faults::{Fate, Faults, Mishap};

/// Something that happens to a process.
#[derive(Debug)]
pub(crate) enum Moment {
    /// Its own timer.
    Wake,
    /// It looks at what is new.
    Think,
    /// It asks for what its follower of a kind wishes for.
    Follow(usize),
    Listed(usize, Option<Answer>),
    /// The next event of a kind arrives.
    Deliver(usize),
    /// A request arrives at the server.
    Arrive(u64),
    /// Its answer comes back.
    Return(u64, Reply),
}

/// What a process lets happen later.
pub(crate) type Later = Vec<(SignedDuration, Moment)>;

/// How a process goes about its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// How long it may take to look at what is new. Zero: it does at once.
    pub thinks: SignedDuration,
    /// Whether it is told everything that there is to tell at once, and not one by one.
    pub in_bulk: bool,
}

/// Where things happen, and how badly.
pub(crate) struct Scene<'s> {
    pub(crate) cluster: &'s mut Cluster,
    pub(crate) chance: &'s mut Chance,
    pub(crate) faults: &'s Faults,
}

/// One process, from its start to its death.
pub(crate) struct Controller {
    brain: Brain,
    streams: Vec<Stream>,
    errands: BTreeMap<u64, (Rollout, Errand)>,
    /// Requests that have not arrived, or whose answer is on its way.
    sent: BTreeMap<u64, Sent>,
    numbers: u64,
    alarm: Option<Timestamp>,
    manner: Manner,
    /// It is about to look at what is new.
    is_thinking: bool,
}

struct Stream {
    follower: Follower,
    /// Where a watch stands in the facts of the cluster.
    at: Option<usize>,
    is_scheduled: bool,
}

#[derive(Clone, Debug)]
struct Sent {
    errand: u64,
    call: Call,
    request: Request,
    has_arrived: bool,
}

impl Controller {
    pub(crate) fn start(
        dialects: &[&'static dyn Dialect],
        manner: Manner,
        scene: &mut Scene<'_>,
    ) -> (Self, Later) {
        let brain = Brain::new(Settings::new(dialects.to_vec()));
        let kinds: Vec<GroupKind> = brain.projections().kinds().cloned().collect();
        let follower = |kind| Follower::new(kind, Arc::clone(brain.projections()));
        let streams = kinds.into_iter().map(|kind| Stream {
            follower: follower(kind),
            at: None,
            is_scheduled: false,
        });
        let streams: Vec<Stream> = streams.collect();
        let later = (0..streams.len())
            .map(|stream| (scene.chance.millis(0, 50), Moment::Follow(stream)))
            .collect();
        let (errands, sent) = (BTreeMap::new(), BTreeMap::new());
        let controller = Self {
            brain,
            streams,
            errands,
            sent,
            numbers: 0,
            alarm: None,
            manner,
            is_thinking: false,
        };
        (controller, later)
    }

    /// Whether there is nothing to do, nothing on its way and nothing unseen.
    pub(crate) fn is_quiet(&self, cluster: &Cluster) -> bool {
        let rests = self.errands.is_empty()
            && self.sent.is_empty()
            && !self.brain.is_troubled()
            && self.brain.pause(cluster.now()) != Some(Duration::ZERO);
        rests
            && self
                .streams
                .iter()
                .all(|stream| stream.at.is_some_and(|at| stream.next(cluster, at).is_none()))
    }

    /// The place before which it needs no fact any more; none if that is not known.
    pub(crate) fn needs_from(&self) -> Option<usize> {
        let places = self.streams.iter().map(|stream| stream.at);
        places.min_by_key(|at| at.unwrap_or(0)).flatten()
    }

    pub(crate) fn happen(&mut self, moment: Moment, scene: &mut Scene<'_>) -> Later {
        let mut later = Later::new();
        let is_time = matches!(moment, Moment::Think);
        match moment {
            // One that was brought forward rings a second time at its former hour.
            Moment::Wake => self.alarm = self.alarm.filter(|alarm| *alarm > scene.cluster.now()),
            Moment::Think => self.is_thinking = false,
            Moment::Follow(stream) => self.follow(stream, scene, &mut later),
            Moment::Listed(stream, answer) => self.listed(stream, answer, scene, &mut later),
            Moment::Deliver(stream) => self.deliver(stream, scene, &mut later),
            Moment::Arrive(number) => self.arrive(number, scene, &mut later),
            Moment::Return(number, reply) => self.returned(number, reply, scene, &mut later),
        }
        self.think(scene, &mut later, is_time);
        later
    }

    /// New facts are there: watches that had nothing to tell go on.
    pub(crate) fn stir(&mut self, scene: &mut Scene<'_>) -> Later {
        let mut later = Later::new();
        for index in 0..self.streams.len() {
            self.schedule_delivery(index, scene, &mut later);
        }
        later
    }

    /// The process dies. What it sent and has not arrived either still does, or never.
    pub(crate) fn die(self, scene: &mut Scene<'_>) {
        for sent in self.sent.into_values().filter(|sent| !sent.has_arrived) {
            if scene.chance.is(500) {
                scene.cluster.send(&sent.request, Author::Controller);
            }
        }
    }

    /// Begins the turns that may begin, or sees to it that they do after a while.
    fn think(&mut self, scene: &mut Scene<'_>, later: &mut Later, is_time: bool) {
        let now = scene.cluster.now();
        if self.manner.thinks.is_zero() || is_time {
            return self.take_turns(scene, later);
        }
        if self.brain.pause(now) != Some(Duration::ZERO) {
            self.set_alarm(now, later);
        } else if !self.is_thinking {
            self.is_thinking = true;
            let longest = i64::try_from(self.manner.thinks.as_millis()).unwrap_or(i64::MAX);
            later.push((scene.chance.millis(0, longest), Moment::Think));
        }
    }

    fn take_turns(&mut self, scene: &mut Scene<'_>, later: &mut Later) {
        let now = scene.cluster.now();
        while let Some(turn) = self.brain.turn(now) {
            if let Some(errand) = turn.errand {
                self.numbers += 1;
                let number = self.numbers;
                self.errands.insert(number, (turn.rollout, errand));
                self.advance(number, scene, later);
            }
        }
        drop(self.brain.notes());
        self.set_alarm(now, later);
    }

    fn set_alarm(&mut self, now: Timestamp, later: &mut Later) {
        let Some(pause) = self.brain.pause(now) else { return };
        let at = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        if self.alarm.is_none_or(|alarm| at < alarm) {
            self.alarm = Some(at);
            later.push((
                SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX),
                Moment::Wake,
            ));
        }
    }

    /// Sends what an errand asks for, or ends it.
    fn advance(&mut self, number: u64, scene: &mut Scene<'_>, later: &mut Later) {
        let Some((rollout, errand)) = self.errands.get_mut(&number) else { return };
        let asks = errand.asks();
        if let Some(ended) = errand.ended() {
            let rollout = rollout.clone();
            self.errands.remove(&number);
            self.brain.finish(&rollout, ended, scene.cluster.now());
            return;
        }
        for Ask { call, after } in asks {
            let Some((_, errand)) = self.errands.get(&number) else { return };
            let kind = errand.kind(call).clone();
            let resource = scene.cluster.resource(&kind);
            // One that is not served is asked for all the same, and answered so.
            let path = || Request::get(format!("/unserved/{}", errand.kind(call)));
            let request = resource.as_ref().map_or_else(path, |known| errand.request(call, known));
            self.numbers += 1;
            let sent = Sent { errand: number, call, request, has_arrived: false };
            self.sent.insert(self.numbers, sent);
            let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
            let transit = scene.chance.millis(0, 10);
            later.push((after.saturating_add(transit), Moment::Arrive(self.numbers)));
        }
    }

    fn arrive(&mut self, number: u64, scene: &mut Scene<'_>, later: &mut Later) {
        let Some(sent) = self.sent.get_mut(&number) else { return };
        sent.has_arrived = true;
        let fate = match sent.call {
            Call::Write(_) => scene.faults.of_write(scene.chance),
            Call::Look(_) => scene.faults.of_read(scene.chance),
        };
        let mut carry_out = || scene.cluster.answer(&form(&sent.request), Author::Controller);
        let reply = match fate {
            Fate::Sound => Reply::Answer(carry_out().into()),
            Fate::Refused(code) => Reply::Answer(Answer { code, ..Answer::default() }),
            Fate::Failed => {
                carry_out();
                Reply::Answer(Answer { code: 500, ..Answer::default() })
            }
            Fate::Lost => {
                carry_out();
                Reply::Lost("no answer".to_owned())
            }
        };
        let transit = match fate {
            Fate::Lost => scene.chance.millis(0, 5_000),
            _ => scene.chance.millis(0, 10),
        };
        later.push((transit, Moment::Return(number, reply)));
    }

    fn returned(&mut self, number: u64, reply: Reply, scene: &mut Scene<'_>, later: &mut Later) {
        let Some(Sent { errand: number, call, .. }) = self.sent.remove(&number) else { return };
        let Some((_, errand)) = self.errands.get_mut(&number) else { return };
        if let Some(news) = errand.replied(call, reply) {
            self.brain.tell(news);
        }
        self.advance(number, scene, later);
    }

    fn follow(&mut self, index: usize, scene: &mut Scene<'_>, later: &mut Later) {
        let stream = &mut self.streams[index];
        stream.at = None;
        match stream.follower.wish().0 {
            Wish::Resource => {
                let resource = scene.cluster.resource(stream.follower.kind());
                if let Some(news) = stream.follower.found(resource) {
                    self.brain.tell(news);
                }
                self.follow_on(index, scene, later);
            }
            Wish::List { path } => {
                let answer = match scene.faults.of_read(scene.chance) {
                    Fate::Sound => {
                        Some(scene.cluster.send(&Request::get(path), Author::Controller))
                    }
                    Fate::Refused(code) => Some(Answer { code, ..Answer::default() }),
                    Fate::Failed | Fate::Lost => None,
                };
                later.push((scene.chance.millis(0, 20), Moment::Listed(index, answer)));
            }
            Wish::Watch { version, .. } => {
                let version = version.parse().unwrap_or(0);
                stream.at = Some(scene.cluster.place_after(version));
                self.schedule_delivery(index, scene, later);
            }
        }
    }

    fn follow_on(&mut self, index: usize, scene: &mut Scene<'_>, later: &mut Later) {
        let (_, pause) = self.streams[index].follower.wish();
        self.streams[index].at = None;
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        later.push((pause.saturating_add(scene.chance.millis(0, 10)), Moment::Follow(index)));
    }

    fn listed(
        &mut self,
        index: usize,
        answer: Option<Answer>,
        scene: &mut Scene<'_>,
        later: &mut Later,
    ) {
        let follower = &mut self.streams[index].follower;
        let listed = answer.ok_or_else(String::new).and_then(|answer| follower.listed(answer));
        match listed {
            Ok(news) => {
                if let Some(news) = news {
                    self.brain.tell(news);
                }
            }
            Err(_) => follower.failed(),
        }
        self.follow_on(index, scene, later);
    }

    /// Tells one event, or all there are, unless something befalls the watch before.
    fn deliver(&mut self, index: usize, scene: &mut Scene<'_>, later: &mut Later) {
        let stream = &mut self.streams[index];
        stream.is_scheduled = false;
        let Some(at) = stream.at else { return };
        let closed = match scene.faults.of_watch(scene.chance) {
            Mishap::None => None,
            Mishap::Ended => Some(Closed::Properly),
            Mishap::Broken => Some(Closed::Broken("broken".to_owned())),
            Mishap::Expired => Some(Closed::Expired),
        };
        if let Some(closed) = closed {
            // Why it lists anew is of no interest here.
            drop(stream.follower.closed(closed));
            return self.follow_on(index, scene, later);
        }
        let mut from = at;
        while let Some((place, fact)) = stream.next(scene.cluster, from) {
            from = place + 1;
            let raw = Cow::Borrowed(fact.object.raw());
            let seen = if fact.is_deletion() { Seen::Deleted(raw) } else { Seen::Changed(raw) };
            if let Some(news) = stream.follower.seen(seen) {
                self.brain.tell(news);
            }
            if !self.manner.in_bulk {
                break;
            }
        }
        stream.at = Some(from);
        self.schedule_delivery(index, scene, later);
    }

    fn schedule_delivery(&mut self, index: usize, scene: &mut Scene<'_>, later: &mut Later) {
        let stream = &mut self.streams[index];
        let Some(at) = stream.at.filter(|_| !stream.is_scheduled) else { return };
        if stream.next(scene.cluster, at).is_some() {
            stream.is_scheduled = true;
            later.push((scene.faults.delay(scene.chance), Moment::Deliver(index)));
        } else {
            stream.at = Some(scene.cluster.written());
        }
    }
}

impl Stream {
    /// The next fact of its kind.
    fn next<'c>(&self, cluster: &'c Cluster, at: usize) -> Option<(usize, &'c Fact)> {
        let mut facts = cluster.facts(at).iter().enumerate();
        let (found, fact) = facts.find(|(_, fact)| fact.object.kind() == self.follower.kind())?;
        Some((at + found, fact))
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("errands", &self.errands.len())
            .field("sent", &self.sent.len())
            .finish_non_exhaustive()
    }
}
