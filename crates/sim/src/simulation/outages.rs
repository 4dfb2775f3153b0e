//! Connections between a process and a cluster that fail for a while, or become slow.

use smol_str::SmolStr;

use super::{Event, Simulation, Trial};
use crate::scenario::{Latency, LinkState};

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
        let loops = i64::try_from(self.loops.len()).unwrap_or(i64::MAX);
        let index = usize::try_from(self.random.between(0, loops - 1)).unwrap_or(0);
        let mut clusters = self.trial.members(index);
        clusters.push(SmolStr::default());
        let Some(cluster) = self.random.pick(&clusters).cloned() else { return };
        let state = match self.random.between(0, 2) {
            0 => {
                let most = self.random.between(50, 3_000);
                LinkState { delay: Some(Latency::from_millis(0, most)), ..LinkState::default() }
            }
            _ => LinkState { is_silent: true, ..LinkState::default() },
        };
        let delay = self.random.millis(low, high);
        self.set_link(index, cluster.clone(), Some(state));
        self.after(delay, Event::EndOutage(index, cluster));
        self.schedule_outage();
    }

    /// A connection is from now on as the trial has it, until it changes.
    pub(super) fn follow_link(&mut self, index: usize, cluster: SmolStr) {
        let now = self.cluster.now();
        let (state, next) = self.trial.link(index, &cluster, now);
        self.set_link(index, cluster.clone(), Some(state));
        if let Some(next) = next {
            self.after(next.duration_since(now), Event::Link(index, cluster));
        }
    }

    pub(super) fn set_link(&mut self, index: usize, cluster: SmolStr, state: Option<LinkState>) {
        let slot = &mut self.loops[index];
        if let Some(process) = &mut slot.process {
            process.set_link(&cluster, state.clone());
        }
        match state {
            Some(state) => _ = slot.links.insert(cluster, state),
            None => _ = slot.links.remove(&cluster),
        }
    }
}
