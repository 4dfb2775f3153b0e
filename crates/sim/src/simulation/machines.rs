//! The process of the simulated machines of one cluster: kubelets, the scheduler and the node
//! controller. It sees every write after a delay.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use convoy_api::object::member::text;
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use super::cluster::{Author, WriteRecord, path_in};
use super::environment::Environment;
use super::server::ServerResponse;
use crate::component::{Component, Key, Kind, WriteRequest, WriteResponse, apply_response};
use crate::fleet::send::{done, http_parts, refused};
use crate::kubelets::Kubelets;
use crate::lifecycle::Lifecycle;
use crate::scenario::Scenario;
use crate::scheduler::Scheduler;
use crate::shared_object::SharedObject;

/// An event of the machines.
#[derive(Debug)]
pub(crate) enum MachineEvent {
    Wake,
    /// They see the new records.
    CatchUp,
    Arrive(u64),
    Return(u64, WriteResponse),
}

pub(crate) type Scheduled = Vec<(SignedDuration, MachineEvent)>;

pub(crate) struct Machines {
    cluster: SmolStr,
    components: Vec<Box<dyn Component>>,
    /// Requests on their way, with the component that sent them.
    sent: BTreeMap<u64, (usize, WriteRequest)>,
    numbers: u64,
    /// How many records they have seen of.
    seen: usize,
    is_catching_up: bool,
    alarm: Option<Timestamp>,
}

impl Machines {
    pub(crate) fn new(cluster: SmolStr, scenario: Scenario) -> Self {
        let kubelets = Kubelets::new(Arc::new(scenario), convoy_apiserver::git_version());
        let components: Vec<Box<dyn Component>> =
            vec![Box::new(kubelets), Box::<Scheduler>::default(), Box::<Lifecycle>::default()];
        let (sent, alarm) = (BTreeMap::new(), None);
        Self { cluster, components, sent, numbers: 0, seen: 0, is_catching_up: false, alarm }
    }

    pub(crate) fn handle(
        &mut self,
        event: MachineEvent,
        environment: &mut Environment<'_>,
    ) -> Scheduled {
        let mut scheduled = Scheduled::new();
        match event {
            // A timer that was moved forward still fires at its former instant.
            MachineEvent::Wake => {
                self.alarm = self.alarm.filter(|alarm| *alarm > environment.cluster.now());
            }
            MachineEvent::CatchUp => {
                self.is_catching_up = false;
                self.catch_up(environment);
            }
            MachineEvent::Arrive(number) => self.arrive(number, environment, &mut scheduled),
            MachineEvent::Return(number, response) => {
                self.returned(number, &response, environment.cluster.now());
            }
        }
        self.work(environment, &mut scheduled);
        scheduled
    }

    /// The index before which they need no records.
    pub(crate) fn needs_from(&self) -> usize {
        self.seen
    }

    /// There are new records.
    pub(crate) fn notify(&mut self, environment: &mut Environment<'_>) -> Scheduled {
        let mut scheduled = Scheduled::new();
        if !self.is_catching_up && self.seen < environment.cluster.written() {
            self.is_catching_up = true;
            scheduled.push((environment.random.millis(0, 10), MachineEvent::CatchUp));
        }
        scheduled
    }

    fn catch_up(&mut self, environment: &Environment<'_>) {
        let now = environment.cluster.now();
        let records = environment.cluster.records(self.seen).iter();
        for record in records.filter(|record| record.object.key().cluster == self.cluster) {
            tell(&mut self.components, record, now);
        }
        self.seen = environment.cluster.written();
    }

    fn work(&mut self, environment: &mut Environment<'_>, scheduled: &mut Scheduled) {
        let now = environment.cluster.now();
        for (component, asked) in self.components.iter_mut().enumerate() {
            for request in asked.due(now) {
                self.numbers += 1;
                self.sent.insert(self.numbers, (component, request));
                scheduled
                    .push((environment.random.millis(0, 10), MachineEvent::Arrive(self.numbers)));
            }
        }
        let next = self.components.iter().filter_map(|component| component.next()).min();
        if let Some(at) = next.map(|at| at.max(now))
            && self.alarm.is_none_or(|alarm| at < alarm)
        {
            self.alarm = Some(at);
            scheduled.push((at.duration_since(now), MachineEvent::Wake));
        }
    }

    fn arrive(
        &mut self,
        number: u64,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let Some((_, request)) = self.sent.get(&number) else { return };
        let mut parts = http_parts(request);
        parts.uri = path_in(&self.cluster, &parts.uri);
        let ServerResponse { code, body } = environment.cluster.respond(&parts, Author::Machines);
        let response = if (200..300).contains(&code) {
            done(request, body)
        } else {
            refused(code, text(&body, "reason"), text(&body, "message"))
        };
        scheduled.push((environment.random.millis(0, 10), MachineEvent::Return(number, response)));
    }

    fn returned(&mut self, number: u64, response: &WriteResponse, now: Timestamp) {
        let Some((component, request)) = self.sent.remove(&number) else { return };
        apply_response(&mut self.components, &request, response, now);
        self.components[component].handle_response(&request, response, now);
    }
}

fn tell(components: &mut [Box<dyn Component>], record: &WriteRecord, now: Timestamp) {
    let kind = match (record.object.kind().group.as_str(), record.object.kind().kind.as_str()) {
        ("", "Pod") => Kind::Pod,
        ("", "Node") => Kind::Node,
        ("coordination.k8s.io", "Lease") => Kind::Lease,
        _ => return,
    };
    let key = Key::of(kind, record.object.raw());
    let object = (!record.is_deletion()).then(|| SharedObject::Object(record.object.clone()));
    for component in components {
        component.changed(&key, object.as_ref(), now);
    }
}

impl fmt::Debug for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machines").field("sent", &self.sent.len()).finish_non_exhaustive()
    }
}
