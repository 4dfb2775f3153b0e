//! What a simulated process runs in.

use jiff::SignedDuration;

use super::cluster::Cluster;
use super::faults::Faults;
use super::random::Random;

/// What a process runs in: the cluster, the random numbers and the failure rates.
pub(crate) struct Environment<'s> {
    pub(crate) cluster: &'s mut Cluster,
    pub(crate) random: &'s mut Random,
    pub(crate) faults: &'s Faults,
    /// Whether the process may write, by its own clock.
    pub(crate) may_write: bool,
    /// How many thousandths of the writes arrive late, and how late at most.
    pub(crate) late: Option<(u32, SignedDuration)>,
}

impl Environment<'_> {
    /// How long a write is on its way.
    pub(crate) fn transit(&mut self) -> SignedDuration {
        match self.late {
            Some((late, most)) if self.random.happens(late) => {
                self.random.millis(10, i64::try_from(most.as_millis()).unwrap_or(10))
            }
            _ => self.random.millis(0, 10),
        }
    }
}

/// The environment of a process that may write, and whose writes are not late.
pub(super) fn environment<'s>(
    cluster: &'s mut Cluster,
    random: &'s mut Random,
    faults: &'s Faults,
) -> Environment<'s> {
    Environment { cluster, random, faults, may_write: true, late: None }
}
