//! Failures between a client and the server, and their rates.

use jiff::SignedDuration;

use super::random::Random;

/// Failure rates in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Writes that are answered with 409, 429 or 500 and not carried out.
    pub refused: u32,
    /// Writes that are carried out and answered with 500, or not at all.
    pub lost: u32,
    /// Reads that fail.
    pub unread: u32,
    /// Events before which a watch breaks off, and before which its place is forgotten.
    pub broken: u32,
    pub expired: u32,
    /// Events that are held up for long, and with them those behind.
    pub stalled: u32,
}

/// The failure of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFault {
    None,
    /// Not carried out, and answered so.
    Refused(u16),
    /// Carried out, and answered with a failure; or not answered.
    Failed,
    Lost,
}

/// The failure of a watch before its next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchFault {
    None,
    Ended,
    Broken,
    Expired,
}

impl Faults {
    /// A random level of failures: none, mild, bad or severe.
    pub fn random(random: &mut Random) -> Self {
        let level = [0, 1, 3, 10][usize::try_from(random.between(0, 3)).unwrap_or(0)];
        Self {
            refused: 20 * level,
            lost: 10 * level,
            unread: 10 * level,
            broken: 5 * level,
            expired: 5 * level,
            stalled: 5 * level,
        }
    }

    pub(crate) fn of_write(&self, random: &mut Random) -> RequestFault {
        if random.happens(self.refused) {
            return RequestFault::Refused(*random.pick(&[409, 429, 500]).unwrap_or(&500));
        }
        if random.happens(self.lost) {
            return if random.happens(500) { RequestFault::Failed } else { RequestFault::Lost };
        }
        RequestFault::None
    }

    pub(crate) fn of_read(&self, random: &mut Random) -> RequestFault {
        if !random.happens(self.unread) {
            return RequestFault::None;
        }
        if random.happens(500) { RequestFault::Refused(500) } else { RequestFault::Lost }
    }

    pub(crate) fn of_watch(&self, random: &mut Random) -> WatchFault {
        if random.happens(self.expired) {
            return WatchFault::Expired;
        }
        if random.happens(self.broken) {
            return if random.happens(500) { WatchFault::Ended } else { WatchFault::Broken };
        }
        WatchFault::None
    }

    /// The latency of a watch event.
    pub(crate) fn delay(&self, random: &mut Random) -> SignedDuration {
        if random.happens(self.stalled) { random.millis(200, 8_000) } else { random.millis(0, 20) }
    }
}
