//! The audit log: one `audit.k8s.io/v1` Event a line for each request, in Kubernetes' form.
//!
//! Where the lines go is an [`AuditSink`]; without one nothing is made. Bodies of secrets and of tokens are never recorded,
//! whatever the level, and no header but the user agent is.

mod event;
mod file;
mod memory;

pub use self::event::{End, Record, Stage};
pub use self::file::{AuditFile, AuditFileError, AuditOutput, STDOUT};
pub use self::memory::AuditMemory;

use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use crate::config::{BadValue, choose};

/// How much of each request is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    /// Nothing.
    None,
    /// Who asked what of which object, and how it ended.
    Metadata,
    /// The body of the request too.
    Request,
    /// The body of the answer too.
    RequestResponse,
}

impl AuditLevel {
    /// The word in events.
    fn word(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

impl FromStr for AuditLevel {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let known = [
            ("none", Self::None),
            ("metadata", Self::Metadata),
            ("request", Self::Request),
            ("request-response", Self::RequestResponse),
        ];
        choose("audit level", text, &known)
    }
}

/// Completes when a line is written, lost, or so late that nobody should wait for it. May be dropped.
pub type Written = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where lines go.
pub trait AuditSink: Send + Sync {
    /// Takes one line, which ends without a line break. Never blocks.
    fn write(&self, line: String) -> Written;
}

/// The audit log of a control plane.
#[derive(Clone)]
pub struct Audit {
    /// How much is recorded.
    pub level: AuditLevel,
    /// Where it goes.
    pub sink: Arc<dyn AuditSink>,
}
