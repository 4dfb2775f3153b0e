//! Limits of requests and of what they may cost.

use std::time::Duration;

/// Limits of requests and of what they may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub body_bytes_max: usize,
    /// Bytes that the bodies of all requests may take at a time.
    pub bodies_bytes_max: usize,
    /// Bytes that all watches may keep for clients that do not read them.
    pub watch_bytes_max: usize,
    /// Connections that may be open at a time, if the process's file limit is at least twice that.
    pub connections_max: usize,
    pub reads_in_flight_max: usize,
    pub writes_in_flight_max: usize,
    /// Long lists that are made at a time.
    pub long_lists_max: usize,
    /// How long requests in flight may take during a shutdown.
    pub shutdown_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 3 << 20,
            bodies_bytes_max: 256 << 20,
            watch_bytes_max: 256 << 20,
            connections_max: 4_096,
            reads_in_flight_max: 400,
            writes_in_flight_max: 200,
            long_lists_max: 16,
            shutdown_timeout: Duration::from_mins(1),
        }
    }
}
