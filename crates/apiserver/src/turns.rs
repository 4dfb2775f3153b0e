//! Turns to charge the quotas of a namespace.

use tokio::sync::{Mutex, MutexGuard};

/// Namespaces are few at a time; two that share a turn wait for each other, and nothing else.
const TURNS: usize = 64;

/// Turns to charge the quotas of a namespace: without them, writers side by side would overtake
/// each other at every attempt.
#[derive(Debug)]
pub(crate) struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Turns {
    pub(crate) async fn take(&self, namespace: &str) -> MutexGuard<'_, ()> {
        let sum = namespace
            .bytes()
            .fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        self.0[sum % TURNS].lock().await
    }
}
