//! What the server's answers mean. An answer is read as it comes, and a body that cannot be read counts as
//! none. Every refusal ends in another try later, but for those that say the object is not ours (KLET-08).

use alloc::format;
use alloc::string::String;

use crate::flight::{Flight, Intent, Listing, is_version};
use crate::http::{Head, Piece};
use crate::kubelet::{Kubelet, Registration, Standing};
use crate::node::NodeObject;
use crate::pod::Stage;
use crate::posting::Sent;
use crate::split::Cut;
use crate::wall::Wall;
use crate::wire::Pod;

/// Longest wait before something refused is tried again, in milliseconds.
const LONGEST_RETRY: u64 = 10_000;
/// When conditions are told again that someone contradicted while they were on their way, in milliseconds.
const CONTRADICTED: u64 = 500;

impl Kubelet {
    /// Bytes came over the connection of requests.
    pub(crate) fn received_answer(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while self.requests.is_up() {
            match self.requests.reader.next(&mut input) {
                Ok(None) => return,
                Ok(Some(piece)) => self.answer_piece(piece),
                Err(error) => return self.lose_requests(false, &format!("{error}")),
            }
        }
    }

    fn answer_piece(&mut self, piece: Piece<'_>) {
        let Some(mut flight) = self.flight.take() else {
            return self.lose_requests(false, "an answer nobody asked for");
        };
        match piece {
            Piece::Head(head) => {
                flight.head = Some(head);
                self.in_contact(head, flight.is_renewal());
            }
            Piece::Body(bytes) => {
                // A list may take its time, as long as something comes.
                flight.until = self.millis + self.timeout();
                let listed = flight.head.is_some_and(|head| head.status == 200);
                if listed && matches!(flight.intent, Intent::ListPods) {
                    self.read_list(&mut flight.listing, bytes);
                } else {
                    flight.keep(bytes);
                }
            }
            Piece::End => return self.finish(flight),
        }
        self.flight = Some(flight);
    }

    /// The server closed the connection of requests, or it could not be opened.
    pub(crate) fn requests_closed(&mut self) {
        if self.requests.is_down() {
            return;
        }
        if self.requests.reader.closed()
            && let Some(flight) = self.flight.take()
        {
            self.finish(flight);
            if !self.requests.is_down() {
                self.requests.down(self.millis, true, &mut self.outputs);
            }
        } else if self.flight.is_none() && self.requests.is_up() {
            // Idle connections may be closed; that is no sign of trouble.
            self.requests.lose(self.millis, true, &mut self.random, &mut self.outputs);
        } else {
            self.lose_requests(true, "connection closed");
        }
    }

    /// The connection of requests is of no more use, and that is trouble.
    pub(crate) fn lose_requests(&mut self, gone: bool, reason: &str) {
        self.abandon_flight();
        self.requests.lose(self.millis, gone, &mut self.random, &mut self.outputs);
        if self.out_of_contact.is_none() {
            self.out_of_contact = Some(self.millis);
            self.log(format!("api server lost: {reason}"));
        }
    }

    /// Gives up the request that is on its way, as if it had never been made: the server may have acted on it.
    pub(crate) fn abandon_flight(&mut self) {
        let Some(flight) = self.flight.take() else { return };
        match flight.intent {
            Intent::PodStatus { uid, sent } => {
                let millis = self.millis;
                if let Some(pod) = self.pod_mut(&uid) {
                    pod.posting.lose(sent, millis);
                }
            }
            Intent::NodeStatus { .. } => self.node.view = None,
            Intent::Event { name } => self.events.answered(&name, 0),
            Intent::CreateNode
            | Intent::AdoptNode
            | Intent::ReadNode
            | Intent::CreateLease
            | Intent::RenewLease
            | Intent::ListPods
            | Intent::DeletePod { .. } => {}
        }
    }

    /// The head of an answer came.
    fn in_contact(&mut self, head: Head, renewal: bool) {
        self.requests.succeeded();
        self.heard = true;
        self.read_date(head, renewal);
        let Some(since) = self.out_of_contact.take() else { return };
        let seconds = (self.millis - since) / 1000;
        self.log(format!("api server back after {seconds} s"));
        self.suspect();
        // A watch of before the silence may be dead without knowing.
        if self.watch.opened_at <= since {
            self.watch.down(self.millis, false, &mut self.outputs);
        }
    }

    /// Takes in the Date of an answer, to a renewal or to something else.
    pub(crate) fn read_date(&mut self, head: Head, renewal: bool) {
        let stood_still = head.date.is_some_and(|date| self.clock.observe(self.millis, date));
        if stood_still && !renewal {
            self.doubt_lease();
        }
    }

    /// The lease may have lapsed without this board noticing: it is renewed before all else.
    pub(crate) fn doubt_lease(&mut self) {
        if self.lease.standing != Standing::Returning {
            self.lease.standing = Standing::Doubted(self.millis);
        }
        if self.lease.failures == 0 {
            self.lease.due = self.lease.due.min(self.millis);
        }
    }

    /// The control plane may have thought us dead: what it shows of us is read and told anew.
    fn suspect(&mut self) {
        (self.node.view, self.node.before) = (None, None);
        (self.node.full, self.node.report_due) = (true, self.millis);
        self.pods.iter_mut().for_each(|pod| pod.posting.unsure = true);
    }

    /// An answer is complete.
    fn finish(&mut self, flight: Flight) {
        let Some(head) = flight.head else { return };
        if !head.keep_alive {
            self.requests.down(self.millis, false, &mut self.outputs);
        }
        if !flight.is_renewal() {
            self.pushed_aside = 0;
        }
        if !matches!(flight.intent, Intent::ListPods) {
            self.took = self.millis.saturating_sub(flight.sent);
        }
        let status = head.status;
        let good = (200..300).contains(&status);
        match &flight.intent {
            Intent::CreateNode => match status {
                409 => self.node.registration = Registration::Adopt,
                _ if good => self.registered(&flight, true),
                _ => self.node_failed(&flight, status, "node not created"),
            },
            Intent::AdoptNode => match status {
                404 => self.node_gone(),
                _ if good => self.registered(&flight, false),
                // Labels are worth trying, not worth staying away for.
                403 => {
                    self.log_refusal(&flight, status, "labels not written");
                    self.registered(&flight, false);
                }
                _ => self.node_failed(&flight, status, "node not adopted"),
            },
            Intent::ReadNode => match status {
                404 => self.node_gone(),
                _ if good => {
                    let seen = serde_json::from_slice::<NodeObject>(&flight.body).map(NodeObject::view);
                    match seen.ok().or_else(|| self.node.before.take()) {
                        Some(view) => {
                            self.node.view = Some(view);
                            self.node.retry.worked();
                        }
                        // Without it nobody knows which conditions change with the next report: leases show meanwhile that
                        // the board is well.
                        None => self.node_failed(&flight, status, "node cannot be read"),
                    }
                }
                _ => self.node_failed(&flight, status, "node not read"),
            },
            Intent::NodeStatus { .. } => self.reported(flight, status),
            Intent::CreateLease | Intent::RenewLease => self.lease_answered(&flight, head),
            Intent::ListPods => self.listed(flight, status),
            Intent::PodStatus { .. } => self.pod_status_answered(flight, status),
            Intent::DeletePod { .. } => self.pod_deleted(&flight, status),
            Intent::Event { name } => self.events.answered(name, status),
        }
    }

    fn registered(&mut self, flight: &Flight, created: bool) {
        let node: NodeObject = serde_json::from_slice(&flight.body).unwrap_or_default();
        self.node.uid = node.metadata.uid.clone();
        // Where the answer could not be read, the node is before the first report.
        self.node.view = if created || !node.metadata.name.is_empty() { Some(node.view()) } else { None };
        self.node.registration = Registration::Done;
        self.node.retry.worked();
        (self.node.full, self.node.report_due) = (true, self.millis);
        self.sync.first_wanted = self.millis;
        let (name, how) = (&self.config.node_name, if created { "registered" } else { "adopted" });
        let line = format!("node {how} node={name}");
        self.log(line);
    }

    fn node_gone(&mut self) {
        self.log("node object is gone; registering again".into());
        // The server may have forgotten more than that.
        self.sync.relist();
        (self.node.registration, self.node.before) = (Registration::Create, None);
        self.node.retry.failed(self.millis, LONGEST_RETRY, &mut self.random);
    }

    fn node_failed(&mut self, flight: &Flight, status: u16, what: &str) {
        if self.node.retry.failures == 0 {
            self.log_refusal(flight, status, what);
        }
        self.node.retry.failed(self.millis, LONGEST_RETRY, &mut self.random);
    }

    fn log_refusal(&mut self, flight: &Flight, status: u16, what: &str) {
        let message = flight.object().message;
        let message: String = message.chars().take(200).collect();
        self.log(format!("{what}: {status} {message}"));
    }

    fn reported(&mut self, mut flight: Flight, status: u16) {
        let intent = core::mem::replace(&mut flight.intent, Intent::ReadNode);
        let Intent::NodeStatus { figures, mut view } = intent else { return };
        match status {
            200..=299 => {
                // What the answer says of the version is what the next report is made for.
                view.version = flight.object().metadata.resource_version;
                self.node.view = Some(view);
                self.node.retry.worked();
                self.node.contested = false;
                self.node.reported = Some(figures);
                self.node.reported_at = self.millis;
                self.node.full = false;
                if self.lease.standing == Standing::Returning {
                    self.lease.standing = Standing::Sound;
                }
                self.node.report_due = self.millis + u64::from(self.config.status_millis);
                if !self.node.said_ready {
                    self.node.said_ready = true;
                    let line = format!("kubelet ready node={}", self.config.node_name);
                    self.log(line);
                }
            }
            404 => self.node_gone(),
            // Someone else wrote meanwhile: the node is read, and reported again at once.
            409 if !self.node.contested => self.node.contested = true,
            _ => self.node_failed(&flight, status, "status not taken"),
        }
    }

    fn lease_answered(&mut self, flight: &Flight, head: Head) {
        let creating = matches!(flight.intent, Intent::CreateLease);
        let renew = u64::from(self.config.lease.renew_millis);
        match head.status {
            200..=299 => {
                (self.lease.create, self.lease.failures) = (false, 0);
                self.lease.due = flight.sent + self.random.jitter(renew, 5);
                match self.lease.standing {
                    // Noticed while this one was on its way.
                    Standing::Doubted(since) if since > flight.sent => self.lease.due = self.millis,
                    Standing::Doubted(_) => self.lease.standing = Standing::Sound,
                    Standing::Sound | Standing::Returning => {}
                }
                // By the server's clock: this board may have stood still without noticing.
                let lapse = u64::from(self.config.lease.duration_seconds) * 1000;
                let lapsed = |before: Wall, after: Wall| after.0 >= before.0 + lapse.saturating_sub(1000);
                if let (Some(before), Some(after)) = (self.lease.taken_at, head.date)
                    && lapsed(before, after)
                {
                    self.lease.standing = Standing::Returning;
                    self.suspect();
                }
                self.lease.taken_at = head.date.or(self.lease.taken_at);
            }
            // At once the first time: that is how one finds out whether the lease exists.
            404 | 409 if self.lease.failures == 0 => {
                (self.lease.create, self.lease.failures) = (!creating, 1);
            }
            status => {
                self.lease.create = if matches!(status, 404 | 409) { !creating } else { creating };
                if self.lease.failures <= 1 {
                    self.log_refusal(flight, status, "lease not renewed");
                }
                let wait = (200u64 << self.lease.failures.min(8)).min(renew.min(2000));
                self.lease.failures = self.lease.failures.saturating_add(1);
                self.lease.due = self.millis + self.random.jitter(wait, 20);
            }
        }
    }

    /// Some bytes of a list of pods.
    fn read_list(&mut self, listing: &mut Listing, bytes: &[u8]) {
        let mut input = bytes;
        while let Some(cut) = listing.splitter.next(&mut input) {
            match cut {
                Cut::Metadata(text) => {
                    // The metadata of a list stands for itself here.
                    let metadata: crate::wire::Metadata = serde_json::from_slice(&text).unwrap_or_default();
                    listing.version = metadata.resource_version;
                }
                Cut::Object(text) => match serde_json::from_slice::<Pod>(&text) {
                    Ok(pod) => self.list_pod(listing, pod),
                    Err(_) => {
                        listing.incomplete = true;
                        self.log("list of pods: an item is garbage, skipped".into());
                    }
                },
                Cut::Oversized => {
                    listing.incomplete = true;
                    self.log("list of pods: an item is oversized, skipped".into());
                }
            }
        }
    }

    fn listed(&mut self, flight: Flight, status: u16) {
        let whole = flight.listing.splitter.complete() && is_version(&flight.listing.version);
        if status == 200 && whole {
            self.sync.retry.worked();
            return self.take_list(flight.listing);
        }
        // The first failure may have been the watch's.
        if self.sync.retry.failures <= 1 {
            if status == 200 {
                self.log("list of pods: the answer is garbage".into());
            } else {
                self.log_refusal(&flight, status, "pods not listed");
            }
        }
        self.sync.retry.failed(self.millis, LONGEST_RETRY, &mut self.random);
    }

    fn pod_status_answered(&mut self, mut flight: Flight, status: u16) {
        let intent = core::mem::replace(&mut flight.intent, Intent::ReadNode);
        let Intent::PodStatus { uid, sent } = intent else { return };
        let (millis, ip) = (self.millis, self.ip());
        let Some(pod) = self.pods.iter_mut().find(|pod| pod.uid == uid) else { return };
        let seen =
            || serde_json::from_slice::<Pod>(&flight.body).ok().filter(|seen| seen.metadata.uid == uid);
        match (status, sent) {
            (200..=299, None) => match seen() {
                Some(seen) => {
                    pod.posting.make_sure();
                    self.see_pod(&seen, false);
                }
                // What one of so many parts shows will not be learnt: its status is told all the same.
                None if flight.is_oversized() => {
                    pod.posting.make_sure();
                    pod.posting.lose_version();
                }
                // A list shows it too, or that there is another pod of this name by now.
                None => {
                    self.pod_status_failed(&flight, &uid, None, "cannot be read");
                    self.sync.relist();
                }
            },
            (200..=299, Some(sent)) => {
                let contradicted = pod.posting.accept(&sent, seen().as_ref(), &ip);
                if pod.stage == Stage::Stopping && pod.posting.is_settled() {
                    pod.stage = Stage::Deleting;
                }
                if contradicted {
                    pod.posting.postpone(millis + self.random.jitter(CONTRADICTED, 20));
                }
                // The scheduler counts a pod twice until a report covers its last change (SCHED-25).
                self.report_soon();
            }
            (409, Some(_)) if pod.posting.failures == 0 => pod.posting.refuse_as_stale(millis),
            // Moved elsewhere (KLET-08), or gone, or another pod by now.
            (403 | 404, _) => self.drop_copy(&uid, &format!("its status was refused: {status}")),
            (_, sent) => {
                self.pod_status_failed(&flight, &uid, sent, "status not taken");
                if status == 409 {
                    self.sync.relist();
                }
            }
        }
    }

    /// A pod's status was not taken, or could not be read where nothing was `sent`.
    fn pod_status_failed(&mut self, flight: &Flight, uid: &str, sent: Option<Sent>, what: &str) {
        let millis = self.millis;
        let Some(pod) = self.pods.iter_mut().find(|pod| pod.uid == uid) else { return };
        let failures = pod.posting.failures;
        pod.posting.failures = failures.saturating_add(1);
        let wait = (500u64 << failures.min(10)).min(LONGEST_RETRY);
        pod.posting.lose(sent, millis + self.random.jitter(wait, 20));
        let name = pod.full_name();
        if failures <= 1 {
            self.log_refusal(
                flight,
                flight.head.map_or(0, |head| head.status),
                &format!("pod {name} {what}"),
            );
        }
    }

    fn pod_deleted(&mut self, flight: &Flight, status: u16) {
        let Intent::DeletePod { uid } = &flight.intent else { return };
        let millis = self.millis;
        let Some(pod) = self.pods.iter_mut().find(|pod| pod.uid == *uid) else { return };
        let name = pod.full_name();
        match status {
            // 409: the name belongs to another pod by now. 403: it is another board's.
            200..=299 | 403 | 404 | 409 => {
                pod.stage = Stage::Tombstone;
                self.report_soon();
                if (200..300).contains(&status) {
                    self.log(format!("pod {name} removed"));
                } else {
                    self.log_refusal(flight, status, &format!("pod {name} not removed"));
                }
            }
            _ => {
                pod.delete_after = millis + self.random.jitter(1000, 20);
                self.log_refusal(flight, status, &format!("pod {name} not removed"));
            }
        }
    }
}
