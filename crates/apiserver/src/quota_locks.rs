//! Locks of the quotas of namespaces.

use tokio::sync::{Mutex, MutexGuard};

/// Namespaces are few at a time; two that share a lock wait for each other, and nothing else.
const LOCKS: usize = 64;

/// A writer holds the lock of its namespace while it charges the quotas there: without it, writers
/// side by side would overtake each other at every attempt.
#[derive(Debug)]
pub(crate) struct QuotaLocks([Mutex<()>; LOCKS]);

impl Default for QuotaLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl QuotaLocks {
    pub(crate) async fn lock(&self, namespace: &str) -> MutexGuard<'_, ()> {
        let sum = namespace
            .bytes()
            .fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        self.0[sum % LOCKS].lock().await
    }
}
