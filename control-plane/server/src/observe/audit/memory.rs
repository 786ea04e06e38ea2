//! Lines kept in memory, for tests and for simulated runs.

use std::sync::{Mutex, PoisonError};

use super::{AuditSink, Written};

/// A sink that keeps every line.
#[derive(Debug, Default)]
pub struct AuditMemory(Mutex<Vec<String>>);

impl AuditMemory {
    /// Takes out the lines since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AuditSink for AuditMemory {
    fn write(&self, line: String) -> Written {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Box::pin(std::future::ready(()))
    }
}
