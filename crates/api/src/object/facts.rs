//! What decisions read out of an object, kept with it.
//!
//! A plan looks at thousands of objects of which few have changed since the last one. What it
//! reads of each follows from the object alone, so it is read once, and goes when the object
//! goes: an object never changes, a newer version is another one.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// One slot for each type that was asked for, which are one or two.
#[derive(Default)]
pub(super) struct Facts(OnceLock<Entry>);

struct Entry {
    facts: Box<dyn Any + Send + Sync>,
    others: Box<Facts>,
}

impl Facts {
    /// The facts of type `T`, read now if nobody has read them before.
    pub(super) fn get_or_read<T: Any + Send + Sync>(&self, read: impl FnOnce() -> T) -> &T {
        let mut slot = self;
        let mut read = Some(read);
        loop {
            let entry = slot.0.get_or_init(|| {
                let read = read.take().expect("the slot is filled once, and then it is of type T");
                Entry { facts: Box::new(read()), others: Box::default() }
            });
            match entry.facts.downcast_ref() {
                Some(facts) => return facts,
                None => slot = &entry.others,
            }
        }
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.0.get().is_some() { "read" } else { "not read" };
        write!(formatter, "Facts({state})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_read_once() {
        let facts = Facts::default();
        for _ in 0..2 {
            assert_eq!(facts.get_or_read(|| 7_u8), &7);
            assert_eq!(facts.get_or_read(|| "seven"), &"seven");
        }
        assert_eq!(facts.get_or_read(|| 8_u8), &7);
        assert_eq!(facts.get_or_read::<u16>(|| 9), &9);
    }
}
