//! The clock and the random source of the server. Simulations bring their own.

use std::fmt;

use convoy_api::clock::Clock;
use jiff::Timestamp;

pub trait Surroundings: fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// For whoever keeps time beside the server.
    fn clock(&self) -> Clock {
        Clock::default()
    }

    /// Sixteen bytes that nobody can guess.
    fn random(&self) -> [u8; 16];
}

/// A clock at the machine's pace, and the machine's source of randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct System {
    pub clock: Clock,
}

impl Surroundings for System {
    fn now(&self) -> Timestamp {
        self.clock.at(Timestamp::now())
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn random(&self) -> [u8; 16] {
        uuid::Uuid::new_v4().into_bytes()
    }
}

/// A time as Kubernetes writes it: UTC, whole seconds.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time as logs and leases have it: UTC, microseconds.
pub fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// A fresh uid.
pub fn new_uid(surroundings: &dyn Surroundings) -> String {
    uuid::Builder::from_random_bytes(surroundings.random()).into_uuid().to_string()
}

/// Five characters that make a generated name unlike any other; the alphabet has no vowels and
/// no look-alikes.
pub fn name_suffix(surroundings: &dyn Surroundings) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let random = surroundings.random();
    // Bytes that version and variant bits of a UUID occupy are left out.
    let usable = random[..6].iter().chain(&random[9..]);
    usable.take(5).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_texts_have_kubernetes_form() {
        assert_eq!(new_uid(&System::default()).len(), 36);
        let suffix = name_suffix(&System::default());
        assert!(suffix.len() == 5 && suffix.chars().all(|c| c.is_ascii_alphanumeric()));
        let time: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
        assert_eq!(seconds(time), "2026-01-02T03:04:05Z");
    }
}
