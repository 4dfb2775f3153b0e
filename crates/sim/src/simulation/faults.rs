//! What goes wrong between a client and the server, and how often.

use jiff::SignedDuration;

use super::chance::Chance;

/// Shares of a thousand.
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

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Sound,
    /// Not carried out, and answered so.
    Refused(u16),
    /// Carried out, and answered with a failure; or not answered.
    Failed,
    Lost,
}

/// What becomes of a watch before its next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    None,
    Ended,
    Broken,
    Expired,
}

impl Faults {
    /// Mild, bad, or none, as chance has it.
    pub fn drawn(chance: &mut Chance) -> Self {
        let level = [0, 1, 3, 10][usize::try_from(chance.between(0, 3)).unwrap_or(0)];
        Self {
            refused: 20 * level,
            lost: 10 * level,
            unread: 10 * level,
            broken: 5 * level,
            expired: 5 * level,
            stalled: 5 * level,
        }
    }

    pub(crate) fn of_write(&self, chance: &mut Chance) -> Fate {
        if chance.is(self.refused) {
            return Fate::Refused(*chance.pick(&[409, 429, 500]).unwrap_or(&500));
        }
        if chance.is(self.lost) {
            return if chance.is(500) { Fate::Failed } else { Fate::Lost };
        }
        Fate::Sound
    }

    pub(crate) fn of_read(&self, chance: &mut Chance) -> Fate {
        if !chance.is(self.unread) {
            return Fate::Sound;
        }
        if chance.is(500) { Fate::Refused(500) } else { Fate::Lost }
    }

    pub(crate) fn of_watch(&self, chance: &mut Chance) -> Mishap {
        if chance.is(self.expired) {
            return Mishap::Expired;
        }
        if chance.is(self.broken) {
            return if chance.is(500) { Mishap::Ended } else { Mishap::Broken };
        }
        Mishap::None
    }

    /// How long an event takes to its watcher.
    pub(crate) fn delay(&self, chance: &mut Chance) -> SignedDuration {
        if chance.is(self.stalled) { chance.millis(200, 8_000) } else { chance.millis(0, 20) }
    }
}
