//! Connections between a process and a cluster that fail for a while, or become slow.

use jiff::SignedDuration;
use smol_str::SmolStr;

use super::controller::LinkState;
use super::{Event, Simulation, Trial};

impl<T: Trial> Simulation<T> {
    pub(super) fn schedule_outage(&mut self) {
        if let Some(((low, high), _)) = self.settings.outages {
            let delay = self.random.millis(low, high);
            self.after(delay, Event::Outage);
        }
    }

    /// The connection of a loop to one of its clusters fails for a while, or becomes slow.
    pub(super) fn fail_connection(&mut self) {
        let Some((_, (low, high))) = self.settings.outages else { return };
        let index = self.random.number() as usize % self.loops.len();
        let mut clusters = self.trial.members(index);
        clusters.push(SmolStr::default());
        let Some(cluster) = self.random.pick(&clusters).cloned() else { return };
        let state = match self.random.between(0, 2) {
            0 => LinkState::Slow(SignedDuration::from_millis(self.random.between(50, 3_000))),
            _ => LinkState::Down,
        };
        let delay = self.random.millis(low, high);
        self.set_link(index, cluster.clone(), Some(state));
        self.after(delay, Event::EndOutage(index, cluster));
        self.schedule_outage();
    }

    pub(super) fn set_link(&mut self, index: usize, cluster: SmolStr, state: Option<LinkState>) {
        let slot = &mut self.loops[index];
        if let Some(process) = &mut slot.process {
            process.set_link(&cluster, state);
        }
        match state {
            Some(state) => _ = slot.links.insert(cluster, state),
            None => _ = slot.links.remove(&cluster),
        }
    }
}
