//! Leader election in a simulation: processes that are suspended in the middle of their work, clocks
//! that go at different rates, requests that arrive late, and people who meddle with the lease.
//!
//! After every write one more invariant is checked: no leader writes after its successor has.

use convoy_controllers::request::Request;
use jiff::SignedDuration;
use serde_json::json;

use super::cluster::Author;
use super::controller::{Controller, ControllerEvent};
use super::elector::{Elector, ElectorChange, ElectorEvent, LEASE, LocalClock, NAMESPACE};
use super::environment::environment;
use super::trial::{Leadership, Trial};
use super::{Event, Simulation};

/// A write that was applied by a leader whose successor had already written.
pub(super) type Deposed = Option<String>;

impl<T: Trial> Simulation<T> {
    pub(super) fn start_elector(&mut self, index: usize, leadership: Leadership) {
        let slot = &mut self.loops[index];
        slot.number += 1;
        let clock = LocalClock {
            offset: std::time::Duration::from_secs(self.random.number() % 1_000_000),
            skew: self.random.between(-leadership.skew, leadership.skew),
        };
        let identity = format!("loop-{index}-{}", slot.number);
        slot.elector = Some(Elector::new(leadership.timing, &identity, clock));
        let (number, delay) = (slot.number, self.random.millis(0, 2_000));
        self.after(delay, Event::Elector(index, number, ElectorEvent::Poll));
    }

    pub(super) fn handle_loop(&mut self, index: usize, number: u32, event: ControllerEvent) {
        let (before, may_write) = (self.cluster.written(), self.may_write(index));
        let slot = &mut self.loops[index];
        let runs = slot.number == number && slot.process.is_some();
        match (event, &mut slot.process) {
            (ControllerEvent::Arrive(request), _) if !runs || slot.is_suspended => {
                self.arrive_without_process(index, number, request);
            }
            (event, Some(_)) if runs && slot.is_suspended => {
                slot.deferred.push(Event::Loop(index, number, event));
            }
            (event, Some(process)) if runs => {
                let mut environment =
                    environment(&mut self.cluster, &mut self.random, &self.faults);
                environment.may_write = may_write;
                environment.late = late(self.settings.leadership.filter(|_| self.are_faults_on));
                let term = slot.term;
                let scheduled = process.handle(event, &mut environment);
                self.schedule_loop(index, scheduled);
                self.note_writer(term, before);
            }
            _ => {}
        }
    }

    pub(super) fn handle_elector(&mut self, index: usize, number: u32, event: ElectorEvent) {
        let slot = &mut self.loops[index];
        if slot.number != number {
            return;
        }
        if slot.is_suspended && !event.is_of_server() {
            return slot.deferred.push(Event::Elector(index, number, event));
        }
        let Some(elector) = &mut slot.elector else { return };
        let mut environment = environment(&mut self.cluster, &mut self.random, &self.faults);
        environment.late = late(self.settings.leadership.filter(|_| self.are_faults_on));
        let (scheduled, change) = elector.handle(event, &mut environment);
        for (delay, event) in scheduled {
            self.after(delay, Event::Elector(index, number, event));
        }
        match change {
            ElectorChange::None => {}
            ElectorChange::Began(wait) => {
                self.terms += 1;
                self.loops[index].term = self.terms;
                self.launch(index);
                self.after(wait, Event::Loop(index, number, ControllerEvent::Wake));
            }
            // Without the look, writes go on until the process has ended in order.
            ElectorChange::Lost if !self.settings.leadership.is_some_and(|of| of.is_fenced) => {
                self.after(SignedDuration::from_secs(10), Event::Stop(index));
            }
            ElectorChange::Lost => {
                self.depose(index);
                let delay = self.random.millis(0, 5_000);
                self.after(delay, Event::Start(index));
            }
        }
    }

    /// The process ends; its requests in flight arrive all the same.
    pub(super) fn depose(&mut self, index: usize) {
        let slot = &mut self.loops[index];
        slot.elector = None;
        if let Some(process) = slot.process.take() {
            self.former.insert((index, slot.number), (slot.term, process));
        }
    }

    /// A request of a process that does not run arrives at the server, perhaps even later.
    pub(super) fn arrive_without_process(&mut self, index: usize, number: u32, request: u64) {
        let Some(leadership) = self.settings.leadership else { return };
        if self.are_faults_on
            && self.extended.insert((index, number, request))
            && self.random.happens(500)
        {
            let limit = i64::try_from(leadership.timing.server_limit().as_millis()).unwrap_or(0);
            let delay = self.random.millis(0, limit);
            return self.after(delay, Event::Loop(index, number, ControllerEvent::Arrive(request)));
        }
        let before = self.cluster.written();
        let mut environment = environment(&mut self.cluster, &mut self.random, &self.faults);
        let slot = &mut self.loops[index];
        let mut scheduled = Vec::new();
        let term = if slot.number == number && slot.process.is_some() {
            let Some(process) = &mut slot.process else { return };
            process.arrive(request, &mut environment, &mut scheduled);
            slot.term
        } else {
            let Some((term, process)) = self.former.get_mut(&(index, number)) else { return };
            process.arrive(request, &mut environment, &mut scheduled);
            *term
        };
        for (delay, event) in scheduled {
            self.after(delay, Event::Loop(index, number, event));
        }
        self.note_writer(term, before);
    }

    /// Checks who wrote the records since `before`.
    pub(super) fn note_writer(&mut self, term: u64, before: usize) {
        let mut records = self.cluster.records(before).iter();
        if self.settings.leadership.is_none()
            || !records.any(|record| record.by == Author::Controller)
        {
            return;
        }
        if term < self.last_term {
            let last = self.last_term;
            self.deposed = Some(format!("leader {term} writes after leader {last} has written"));
        }
        self.last_term = self.last_term.max(term);
    }

    /// Whether the process of a slot may write now.
    pub(super) fn may_write(&self, index: usize) -> bool {
        let Some(leadership) = self.settings.leadership else { return true };
        let elector = self.loops[index].elector.as_ref();
        !leadership.is_fenced || elector.is_some_and(|one| one.may_write(self.cluster.now()))
    }

    pub(super) fn suspend(&mut self, index: usize) {
        let Some(Leadership { suspended_for: (low, high), .. }) = self.settings.leadership else {
            return;
        };
        // Mostly in the middle of a step.
        let is_busy = self.loops[index].process.as_ref().is_some_and(Controller::is_busy);
        if !is_busy && self.random.happens(980) {
            let delay = self.random.millis(0, 200);
            return self.after(delay, Event::Suspend(index));
        }
        self.loops[index].is_suspended = true;
        let delay = self.random.millis(low, high);
        self.after(delay, Event::Resume(index));
    }

    /// The process goes on: everything that it would have done is done now, in any order.
    pub(super) fn resume(&mut self, index: usize) {
        let slot = &mut self.loops[index];
        slot.is_suspended = false;
        for event in std::mem::take(&mut slot.deferred) {
            let delay = self.random.millis(0, 5);
            self.after(delay, event);
        }
        self.schedule_suspension(index);
    }

    pub(super) fn schedule_suspension(&mut self, index: usize) {
        if let Some(Leadership { suspends_every: (low, high), .. }) = self.settings.leadership {
            let delay = self.random.millis(low, high);
            self.after(delay, Event::Suspend(index));
        }
    }

    pub(super) fn schedule_meddling(&mut self) {
        if let Some(Leadership { meddles_every: (low, high), .. }) = self.settings.leadership {
            let delay = self.random.millis(low, high);
            self.after(delay, Event::MeddleWithLease);
        }
    }

    pub(super) fn meddle(&mut self) {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}");
        let holder = |name: &str| Request::merge(&path, json!({"spec": {"holderIdentity": name}}));
        let request = match self.random.between(0, 3) {
            0 => holder(""),
            1 => holder("stranger"),
            _ => Request::delete(&path),
        };
        self.cluster.send(&request, Author::Person);
        self.schedule_meddling();
    }
}

/// How late a write may arrive, and how often.
fn late(leadership: Option<Leadership>) -> Option<(u32, SignedDuration)> {
    let Leadership { timing, late, .. } = leadership?;
    Some((late, SignedDuration::try_from(timing.request_limit()).ok()?))
}
