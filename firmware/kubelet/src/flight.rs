//! The request that is on its way, and what comes back of it. Of an answer's body only a bounded part is ever
//! held; one that is too large counts as none, for the status code has said enough (KLET-06). Of a Node and of one pod long
//! strings are shortened first: what they show of conditions nothing else says, and of a pod nothing else is looked at.

use alloc::string::String;
use alloc::vec::Vec;

use crate::http::Head;
use crate::node::{Figures, View};
use crate::posting::Sent;
use crate::skim::Skim;
use crate::split::ListSplitter;
use crate::wire::{AnyObject, Pod};

/// Most of a body that is kept, in bytes.
const MAX_BODY: usize = 8 * 1024;

/// What a request was made for.
#[derive(Debug)]
pub(crate) enum Intent {
    CreateNode,
    AdoptNode,
    ReadNode,
    NodeStatus {
        figures: Figures,
        view: View,
    },
    CreateLease,
    RenewLease,
    ListPods,
    /// `sent` is `None` where nothing was written and the pod only read.
    PodStatus {
        uid: String,
        sent: Option<Sent>,
    },
    DeletePod {
        uid: String,
    },
    Event {
        name: String,
    },
}

/// A list of pods while it is read.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) splitter: ListSplitter,
    /// Pods this board does not know yet; admitted in order once all are here.
    pub(crate) unknown: Vec<Pod>,
    /// Some pod could not be looked at: nothing may be concluded from absence.
    pub(crate) incomplete: bool,
    pub(crate) version: String,
}

/// The request that is on its way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) intent: Intent,
    /// When it was sent, in milliseconds.
    pub(crate) sent: u64,
    /// When it is given up, in milliseconds.
    pub(crate) until: u64,
    pub(crate) head: Option<Head>,
    pub(crate) body: Vec<u8>,
    oversized: bool,
    skim: Skim,
    pub(crate) listing: Listing,
}

impl Flight {
    /// Sent just now.
    pub(crate) fn new(intent: Intent, millis: u64, timeout: u64) -> Flight {
        Flight {
            intent,
            sent: millis,
            until: millis + timeout,
            head: None,
            body: Vec::new(),
            oversized: false,
            skim: Skim::default(),
            listing: Listing::default(),
        }
    }

    /// Whether it renews the lease.
    pub(crate) fn is_renewal(&self) -> bool {
        matches!(self.intent, Intent::CreateLease | Intent::RenewLease)
    }

    /// Whether the body was larger than what is kept of one.
    pub(crate) fn is_oversized(&self) -> bool {
        self.oversized
    }

    /// Whether it is answered with something whose conditions are read.
    fn shows_conditions(&self) -> bool {
        matches!(
            self.intent,
            Intent::CreateNode
                | Intent::AdoptNode
                | Intent::ReadNode
                | Intent::NodeStatus { .. }
                | Intent::PodStatus { .. }
        )
    }

    /// Some bytes of the body.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        let skimmed = if self.shows_conditions() { Some(self.skim.piece(bytes)) } else { None };
        let bytes = skimmed.as_deref().unwrap_or(bytes);
        if self.oversized
            || self.body.len() + bytes.len() > MAX_BODY
            || self.body.try_reserve_exact(bytes.len()).is_err()
        {
            self.oversized = true;
            self.body = Vec::new();
        } else {
            self.body.extend_from_slice(bytes);
        }
    }

    /// The body as an object; an empty one where it cannot be read.
    pub(crate) fn object(&self) -> AnyObject {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Whether a resourceVersion can stand in a path.
pub(crate) fn is_version(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric())
}
