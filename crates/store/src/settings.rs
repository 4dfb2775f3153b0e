//! Bounds of a store.

/// How much is kept and how much may wait.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Old versions are kept for watches and lists in the past, up to this many bytes.
    pub history_bytes_max: usize,
    /// Writes that may wait for their commit; beyond, they are refused as busy.
    pub queue_max: usize,
    /// Whether writes are committed on the caller's thread, one by one, in call order: for
    /// simulation, where the order of everything comes from one seed.
    pub inline: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { history_bytes_max: 64 << 20, queue_max: 4_096, inline: false }
    }
}
