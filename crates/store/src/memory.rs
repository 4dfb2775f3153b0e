//! A backend that keeps nothing: for simulation, and for `--ephemeral`.

use crate::backend::{Backend, BackendError, Loaded, Record};
use crate::entry::Revision;

#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryBackend;

impl Backend for MemoryBackend {
    fn write(&mut self, _batch: &[Record]) -> Result<(), BackendError> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn load(&mut self) -> Result<Loaded, BackendError> {
        Ok(Loaded::default())
    }

    fn compact(&mut self, _revision: Revision) -> Result<(), BackendError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn recover(&mut self, _published: Revision) -> Result<Vec<Record>, BackendError> {
        Ok(Vec::new())
    }
}
