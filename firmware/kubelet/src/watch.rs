//! The list and watch of this node's pods: resumed where it broke off, listed anew where that cannot be,
//! and replaced when it has been silent for longer than the server was asked to let it live. Lines that
//! cannot be read are skipped, and a list puts right what they may have said.

use alloc::format;
use alloc::string::String;

use crate::flight::is_version;
use crate::http::{Head, Piece, Request};
use crate::kubelet::{Kubelet, Retry};
use crate::link::LinkState;
use crate::seam::{ConnId, Output};
use crate::split::{Cut, LineSplitter};
use crate::wire::{AnyObject, Pod, WatchKind, WatchObject, WatchStatus};

/// `timeoutSeconds` of a watch: the server ends it after that, and silence beyond is death.
const WATCH_SECONDS: u64 = 30;
/// How long past its end a watch is waited for, in milliseconds.
const WATCH_GRACE: u64 = 5000;
/// A watch that lived this long, in milliseconds, may be opened anew at once.
const LIVED: u64 = 1000;
/// When pods that could not be remembered are listed again, in milliseconds.
const RELIST_LATER: u64 = 5000;
/// When pods are listed again after a line of the watch was oversized, in milliseconds.
const LOOK_SOON: u64 = 5000;
/// When pods are listed again after one of a list could not be looked at, in milliseconds: it need not stay so.
const LOOK_AGAIN: u64 = 30_000;
/// Longest wait before a list is tried again, in milliseconds.
const LONGEST_RETRY: u64 = 10_000;

/// What the board knows of its pods' place in the server's history.
#[derive(Debug)]
pub(crate) struct Sync {
    /// A list is due.
    pub(crate) need_list: bool,
    /// Some list was taken since boot.
    pub(crate) listed: bool,
    /// When a list was first wanted, in milliseconds.
    pub(crate) first_wanted: u64,
    /// More pods were shown than could be remembered: list again once some are done with.
    pub(crate) relist_later: bool,
    pub(crate) retry: Retry,
    /// When pods that could not be looked at are looked for again, in milliseconds. The watch goes on until then: a pod that
    /// stays too large is no harm to the others.
    look_again: u64,
    /// The resourceVersion to watch from.
    version: String,
    head: Option<Head>,
    lines: LineSplitter,
    /// When the watch is given up, in milliseconds.
    until: u64,
}

impl Default for Sync {
    fn default() -> Self {
        Sync {
            need_list: true,
            listed: false,
            first_wanted: 0,
            relist_later: false,
            retry: Retry::default(),
            look_again: u64::MAX,
            version: String::new(),
            head: None,
            lines: LineSplitter::default(),
            until: u64::MAX,
        }
    }
}

impl Sync {
    /// What is known may be wrong: list.
    pub(crate) fn relist(&mut self) {
        self.need_list = true;
    }

    /// A list was taken at this version; where it is `incomplete` another follows.
    pub(crate) fn take_list(&mut self, version: String, incomplete: bool, millis: u64) {
        (self.version, self.need_list, self.listed) = (version, false, true);
        self.look_again = if incomplete { millis + LOOK_AGAIN } else { u64::MAX };
    }
}

impl Kubelet {
    /// Keeps the watch open, or closes it while a list is due.
    pub(crate) fn pump_watch(&mut self) {
        if self.sync.relist_later && !self.sync.need_list {
            self.sync.relist_later = false;
            self.sync.retry.due = self.millis + RELIST_LATER;
            self.sync.relist();
        }
        if self.sync.look_again <= self.millis {
            self.sync.look_again = u64::MAX;
            self.sync.relist();
        }
        if self.sync.need_list {
            self.watch.down(self.millis, false, &mut self.outputs);
            return;
        }
        let overdue = match self.watch.state {
            LinkState::Opening { until } => until <= self.millis,
            LinkState::Up => self.sync.until <= self.millis,
            LinkState::Down { .. } => false,
        };
        if overdue {
            self.log("watch silent; opening another".into());
            self.watch.lose(self.millis, false, &mut self.random, &mut self.outputs);
        }
        if self.may_watch() {
            let timeout = self.timeout();
            self.watch.open_if_due(self.millis, timeout, &mut self.outputs);
        }
    }

    /// Where requests find no server, another connection would not either. One that stands is enough: nothing may be due on it
    /// for as long as the lease is fresh, and pods are not to wait for that.
    fn may_watch(&self) -> bool {
        self.out_of_contact.is_none() || self.requests.is_up()
    }

    /// When the watch wants attention, in milliseconds.
    pub(crate) fn watch_deadline(&self) -> u64 {
        let watch = match self.watch.state {
            LinkState::Down { .. } if self.sync.need_list || !self.may_watch() => u64::MAX,
            LinkState::Down { retry_at } => retry_at,
            LinkState::Opening { until } => until,
            LinkState::Up => self.sync.until,
        };
        watch.min(self.sync.look_again)
    }

    /// The connection of the watch stands.
    pub(crate) fn begin_watch(&mut self) {
        let (node, version) = (&self.config.node_name, &self.sync.version);
        let path = format!(
            "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3D{node}&allowWatchBookmarks=true\
             &resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}"
        );
        let bytes = Request::get(path).encode(&self.host, self.config.token.as_deref());
        self.outputs.push_back(Output::Send(ConnId::WATCH, bytes));
        (self.sync.head, self.sync.lines) = (None, LineSplitter::default());
        self.sync.until = self.millis + WATCH_SECONDS * 1000 + WATCH_GRACE;
    }

    /// Bytes came over the connection of the watch.
    pub(crate) fn received_watch(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while self.watch.is_up() {
            match self.watch.reader.next(&mut input) {
                Ok(None) => return,
                Ok(Some(Piece::Head(head))) => {
                    self.read_date(head, false);
                    self.sync.head = Some(head);
                    if head.status != 200 {
                        return self.watch_refused(head.status);
                    }
                }
                Ok(Some(Piece::Body(bytes))) => self.watch_body(bytes),
                Ok(Some(Piece::End)) => return self.watch_ended(false),
                Err(error) => {
                    self.log(format!("watch: {error}"));
                    return self.watch_ended(false);
                }
            }
        }
    }

    /// The server closed the watch, or it could not be opened.
    pub(crate) fn watch_closed(&mut self) {
        if !self.watch.is_down() {
            self.watch_ended(true);
        }
    }

    fn watch_ended(&mut self, gone: bool) {
        let lived = self.sync.head.take().is_some() && self.millis >= self.watch.opened_at + LIVED;
        if lived {
            self.watch.succeeded();
        }
        self.watch.lose(self.millis, gone, &mut self.random, &mut self.outputs);
    }

    fn watch_refused(&mut self, status: u16) {
        self.log(format!("watch refused: {status}"));
        self.watch.lose(self.millis, false, &mut self.random, &mut self.outputs);
        if status == 410 { self.sync.relist() } else { self.relist_after_failure() }
    }

    /// A list is due, but not at once: something is wrong that a list may not cure.
    fn relist_after_failure(&mut self) {
        self.sync.retry.failed(self.millis, LONGEST_RETRY, &mut self.random);
        self.sync.relist();
    }

    fn watch_body(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while let Some(cut) = self.sync.lines.next(&mut input) {
            match cut {
                Cut::Object(line) => self.watch_line(&line),
                Cut::Oversized | Cut::Metadata(_) => {
                    self.log("watch: a line is oversized, skipped".into());
                    self.sync.look_again = self.sync.look_again.min(self.millis + LOOK_SOON);
                }
            }
            if self.sync.need_list {
                return;
            }
        }
    }

    fn watch_line(&mut self, line: &[u8]) {
        let kind = serde_json::from_slice::<WatchKind>(line).unwrap_or_default().kind;
        let version = match kind.as_str() {
            "ADDED" | "MODIFIED" => {
                let Some(pod) = object::<Pod>(line) else { return self.watch_garbage() };
                self.see_pod(&pod, kind == "ADDED");
                pod.metadata.resource_version
            }
            "DELETED" => {
                let Some(seen) = object::<AnyObject>(line) else { return self.watch_garbage() };
                self.forget_pod(&seen.metadata.uid, "not bound to this node any more");
                seen.metadata.resource_version
            }
            "BOOKMARK" => {
                let Some(seen) = object::<AnyObject>(line) else { return self.watch_garbage() };
                seen.metadata.resource_version
            }
            "ERROR" => {
                let status = object::<WatchStatus>(line).unwrap_or_default();
                let message: String = status.message.chars().take(200).collect();
                self.log(format!("watch: error {} {message}", status.code));
                if status.code == 410 {
                    self.sync.relist()
                } else {
                    self.relist_after_failure()
                }
                return;
            }
            _ => return self.watch_garbage(),
        };
        if is_version(&version) {
            self.sync.version = version;
        }
    }

    fn watch_garbage(&mut self) {
        self.log("watch: a line is garbage, listing anew".into());
        self.relist_after_failure();
    }
}

fn object<T: serde::de::DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice::<WatchObject<T>>(line).ok().map(|event| event.object)
}
