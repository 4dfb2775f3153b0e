//! What is found out about a request while it is carried out: it travels beside the request,
//! which does not change.

use std::collections::BTreeMap;

use convoy_api::size::SizeBudget;
use convoy_store::{Key, Revision};
use parking_lot::Mutex;
use serde_json::Value;

use crate::custom::Custom;
use crate::growth;
use crate::object_meta::Entry;

#[derive(Debug)]
pub(crate) struct Findings {
    warnings: Mutex<Vec<String>>,
    /// Annotations of the audit event, by key.
    annotations: Mutex<Vec<(String, String)>>,
    /// Objects that a webhook has converted for the request, by key and revision.
    converted: Mutex<BTreeMap<(Key, Revision), Value>>,
    /// What the objects that it reads may still grow by.
    growth: Mutex<SizeBudget>,
}

impl Default for Findings {
    fn default() -> Self {
        Self {
            warnings: Mutex::default(),
            annotations: Mutex::default(),
            converted: Mutex::default(),
            growth: Mutex::new(growth::of_reads()),
        }
    }
}

impl Findings {
    /// Adds a warning, once.
    pub(crate) fn warn(&self, text: String) {
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }

    pub(crate) fn annotate(&self, key: &str, value: String) {
        self.annotations.lock().push((key.to_owned(), value));
    }

    pub(crate) fn take_annotations(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.annotations.lock())
    }

    pub(crate) fn converted(&self, entry: &Entry) -> Option<Value> {
        self.converted.lock().get(&(entry.key.clone(), entry.modified)).cloned()
    }

    pub(crate) fn has_converted(&self, entry: &Entry) -> bool {
        self.converted.lock().contains_key(&(entry.key.clone(), entry.modified))
    }

    pub(crate) fn keep_converted(&self, entry: &Entry, object: Value) {
        self.converted.lock().insert((entry.key.clone(), entry.modified), object);
    }

    /// What was converted is sent, and not needed again.
    pub(crate) fn forget_converted(&self) {
        self.converted.lock().clear();
    }

    /// Fills in defaults of an object that was read; false if some are missing, since it, or all
    /// that were read, would be too large with them.
    pub(crate) fn default_read(&self, most: usize, custom: &Custom, object: &mut Value) -> bool {
        growth::default_read(most, &mut self.growth.lock(), custom, object)
    }

    /// What is read from now on may grow again.
    pub(crate) fn renew_growth(&self) {
        *self.growth.lock() = growth::of_reads();
    }
}
