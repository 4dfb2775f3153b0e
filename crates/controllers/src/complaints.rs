//! What is wrong with a cluster is logged once, however many watches meet it and however often, until
//! it has gone. A server with the wrong certificate is one line, not one for each kind and attempt.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The complaints about one cluster that were logged and have not gone, and who has each of them.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<BTreeMap<String, u32>>);

/// The complaint of one task.
#[derive(Debug, Default)]
pub(crate) struct Complaint(Option<String>);

impl Complaint {
    /// The task fails because of `why`; whether that is to be logged.
    pub(crate) fn raise(&mut self, among: &Complaints, why: &str) -> bool {
        if self.0.as_deref() == Some(why) {
            return false;
        }
        self.settle(among);
        self.0 = Some(why.to_owned());
        let mut all = among.lock();
        let count = all.entry(why.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// The task has succeeded; the complaint that has gone with that, if no other task has it.
    pub(crate) fn settle(&mut self, among: &Complaints) -> Option<String> {
        let why = self.0.take()?;
        let mut all = among.lock();
        let count = all.get_mut(&why)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        all.remove(&why);
        Some(why)
    }
}

impl Complaints {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_of_many_is_raised_once_and_gone_with_the_last() {
        let all = Complaints::default();
        let [mut one, mut two] = [Complaint::default(), Complaint::default()];
        assert!(one.raise(&all, "away"));
        assert!(!one.raise(&all, "away"), "again");
        assert!(!two.raise(&all, "away"), "another task");
        assert!(two.raise(&all, "refused"), "another reason");
        assert_eq!(one.settle(&all).as_deref(), Some("away"));
        assert!(two.raise(&all, "away"), "it had gone");
        assert!(!one.raise(&all, "away"));
        assert_eq!((one.settle(&all), two.settle(&all).as_deref()), (None, Some("away")));
        assert_eq!(two.settle(&all), None);
    }
}
