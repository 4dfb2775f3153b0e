//! Simulations that begin with given objects and run undisturbed, as long as their trial wants.

use convoy_api::Object;
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use super::cluster::Cluster;
use super::{Decision, Event, Failure, RunSettings, Simulation, Trial};
use crate::seed::Seed;

impl<T: Trial> Simulation<T> {
    /// With these objects, at this instant, on the small server.
    pub fn holding(
        objects: Vec<Object>,
        start: Timestamp,
        seed: Seed,
        settings: RunSettings,
        trial: T,
    ) -> Self {
        Self::on(Cluster::holding(objects, start), seed, settings, trial)
    }

    /// Runs until an instant, or until `is_over` says so of the trial, given whether all loops
    /// rest; returns the trial. The first loop starts after `lead`, as do the others unless the
    /// trial wants them at once.
    pub fn play(
        mut self,
        lead: SignedDuration,
        until: Timestamp,
        is_over: impl Fn(&T, Timestamp, bool) -> bool,
    ) -> Result<T, Failure> {
        self.check_writes()?;
        self.wake_machines();
        for index in 0..self.loops.len() {
            let is_early = self.trial.starts_at_once(index);
            self.after(if is_early { SignedDuration::ZERO } else { lead }, Event::Start(index));
            for member in self.trial.members(index) {
                self.after(lead, Event::Link(index, SmolStr::default()));
                self.after(lead, Event::Link(index, member));
            }
        }
        self.run_until(until, |world| {
            let is_quiet = world.is_quiet();
            is_over(&world.trial, world.cluster.now(), is_quiet)
        })?;
        Ok(self.trial)
    }

    /// Tells the trial what the loops have decided since it was last told.
    pub(super) fn tell_decisions(&mut self) {
        if !self.trial.observes_decisions() {
            return;
        }
        let now = self.cluster.now();
        for (index, slot) in self.loops.iter_mut().enumerate() {
            let Some(process) = &mut slot.process else { continue };
            for step in &process.take_steps() {
                let cache = process.cache();
                self.trial.decided(&Decision { index, step, now, cache });
            }
        }
    }
}
