//! Looking on while a trial runs: at every write, and at every decision before its writes.

use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_sim::scenario::Scenario;
use convoy_sim::simulation::cluster::{Cluster, WriteRecord};
use convoy_sim::simulation::random::Random;
use convoy_sim::simulation::{Decision, Trial};
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

pub(crate) trait Onlooker {
    /// `Err` says what is wrong with a write.
    fn see(&mut self, _record: &WriteRecord) -> Result<(), String> {
        Ok(())
    }

    fn decided(&mut self, decision: &Decision<'_>);
}

/// A trial that somebody looks on at.
pub(crate) struct Observed<'o, T, O> {
    pub(crate) trial: T,
    pub(crate) onlooker: &'o mut O,
}

impl<T: Trial, O: Onlooker> Trial for Observed<'_, T, O> {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        self.trial.loops()
    }

    fn members(&self, index: usize) -> Vec<SmolStr> {
        self.trial.members(index)
    }

    fn scenario(&self) -> Scenario {
        self.trial.scenario()
    }

    fn begin(&mut self) -> Vec<Request> {
        self.trial.begin()
    }

    fn act(&mut self, random: &mut Random, cluster: &mut Cluster) -> Vec<Request> {
        self.trial.act(random, cluster)
    }

    fn end(&mut self, cluster: &mut Cluster) -> Vec<Request> {
        self.trial.end(cluster)
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        self.onlooker.see(record)?;
        self.trial.see(record)
    }

    fn observes_decisions(&self) -> bool {
        true
    }

    fn decided(&mut self, decision: &Decision<'_>) {
        self.onlooker.decided(decision);
        self.trial.decided(decision);
    }

    fn react(
        &mut self,
        record: &WriteRecord,
        random: &mut Random,
    ) -> Vec<(SignedDuration, Request)> {
        self.trial.react(record, random)
    }

    fn is_routine(&self, record: &WriteRecord) -> bool {
        self.trial.is_routine(record)
    }

    fn rest(&mut self, now: Timestamp) {
        self.trial.rest(now);
    }

    fn is_complete(&self) -> Result<(), String> {
        self.trial.is_complete()
    }
}
