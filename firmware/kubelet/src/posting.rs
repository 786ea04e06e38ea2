//! What the API knows of a pod's status: which parts it has taken, which conditions it shows, and what is
//! unknown because an answer got lost or the board was out of contact. A lastTransitionTime moves with its
//! status as the API shows it, whoever set that, so a board starts from the API and not from itself.

use alloc::string::{String, ToString};

use crate::wire::Pod;

/// The parts a patch is made of.
pub(crate) const PARTS: usize = 8;
/// Which of them are [`CONDITIONS`].
pub(crate) const CONDITION_PARTS: core::ops::Range<usize> = 2..6;
/// The conditions a board sets, in the order they are written.
pub(crate) const CONDITIONS: [&str; 4] = ["Initialized", "Ready", "ContainersReady", "PodScheduled"];
/// The place of PodScheduled among them.
pub(crate) const SCHEDULED: usize = 3;

/// What the API shows of [`CONDITIONS`]: their status, `None` where absent or neither True nor False.
pub(crate) type Shown = [Option<bool>; CONDITIONS.len()];

/// What this version of the pod shows.
pub(crate) fn shown(pod: &Pod) -> Shown {
    CONDITIONS.map(|kind| pod.status.condition(kind))
}

/// Whether and what the API has taken.
#[derive(Debug)]
pub(crate) struct Posting {
    /// Something may have changed since the last patch was built.
    changed: bool,
    /// A patch is on its way.
    on_its_way: bool,
    /// Hash of each part the API has taken; 0 for none.
    pub(crate) taken: [u32; PARTS],
    /// Failures in a row.
    pub(crate) failures: u8,
    /// Not to be tried before, in milliseconds.
    not_before: u64,
    /// The newest resourceVersion that the API has shown, which patches are made for; 0 where it is not known.
    pub(crate) version: u64,
    /// The conditions as of that version.
    pub(crate) shown: Shown,
    /// The API may show something else by now: it is read before anything is written.
    pub(crate) unsure: bool,
    /// The last patch, where nobody knows whether it was taken.
    lost: Option<Sent>,
    /// The address the API shows, to replace it where it is another board's or boot's.
    pub(crate) known_ip: String,
}

impl Posting {
    /// Nothing of ours is known to the API.
    pub(crate) fn new(pod: &Pod) -> Posting {
        Posting {
            changed: true,
            on_its_way: false,
            taken: [0; PARTS],
            failures: 0,
            not_before: 0,
            version: pod.metadata.version(),
            shown: shown(pod),
            unsure: false,
            lost: None,
            known_ip: pod.status.pod_ip.clone(),
        }
    }

    /// Something may have changed.
    pub(crate) fn touch(&mut self) {
        self.changed = true;
    }

    /// What there is to tell is about to be looked through.
    pub(crate) fn look_through(&mut self) {
        self.changed = false;
    }

    /// There was something, and it is on its way.
    pub(crate) fn send(&mut self) {
        self.on_its_way = true;
    }

    /// The API may have lost what it had taken: all of it is told again.
    pub(crate) fn forget(&mut self) {
        self.taken = [0; PARTS];
        self.changed = true;
    }

    /// Whether this version of the pod is older than what the API has shown.
    pub(crate) fn is_stale(&self, seen: &Pod) -> bool {
        let version = seen.metadata.version();
        version != 0 && version < self.version
    }

    /// The API showed the pod like this, at some time.
    pub(crate) fn learn(&mut self, seen: &Pod) {
        if !self.is_stale(seen) {
            self.version = self.version.max(seen.metadata.version());
            self.shown = shown(seen);
        }
    }

    /// The API shows a newer version than is known here, and which one cannot be told.
    pub(crate) fn lose_version(&mut self) {
        self.version = 0;
    }

    /// A patch was refused because the API shows a newer version by now: that is read first.
    pub(crate) fn refuse_as_stale(&mut self, millis: u64) {
        (self.unsure, self.failures) = (true, 1);
        self.postpone(millis);
    }

    /// What the API shows now has been learnt.
    pub(crate) fn make_sure(&mut self) {
        (self.unsure, self.lost) = (false, None);
    }

    /// Whether the API is to be read before this is sent. What got lost may be sent again at once as it was.
    pub(crate) fn needs_reading(&self, sent: &Sent) -> bool {
        let other = |lost: &Sent| (lost.conditions, lost.before) != (sent.conditions, sent.before);
        self.unsure || self.lost.as_ref().is_some_and(other)
    }

    /// The lastTransitionTime of a patch that may have been taken, for it is repeated as it was.
    pub(crate) fn lost_since(&self) -> Option<&str> {
        self.lost.as_ref().map(|lost| lost.since.as_str())
    }

    /// Whether the API has taken all there is.
    pub(crate) fn is_settled(&self) -> bool {
        !self.changed && !self.on_its_way
    }

    /// Whether a patch is due at `millis`.
    pub(crate) fn is_due(&self, millis: u64) -> bool {
        self.changed && !self.on_its_way && self.not_before <= millis
    }

    /// When a patch that waits is due, in milliseconds.
    pub(crate) fn deadline(&self) -> u64 {
        if self.changed && !self.on_its_way { self.not_before } else { u64::MAX }
    }

    /// A patch, or a read where nothing was sent, has failed or its answer got lost: it is tried again at
    /// `not_before`.
    pub(crate) fn lose(&mut self, sent: Option<Sent>, not_before: u64) {
        self.lost = sent.or(self.lost.take());
        self.postpone(not_before);
    }

    /// There is something to tell, at `not_before`.
    pub(crate) fn postpone(&mut self, not_before: u64) {
        (self.on_its_way, self.changed, self.not_before) = (false, true, not_before);
    }

    /// A patch was taken; `answer` is what it made of the pod, where that could be read. Whether the
    /// conditions, by now, are others than were sent.
    pub(crate) fn accept(&mut self, sent: &Sent, answer: Option<&Pod>, ip: &str) -> bool {
        self.taken = sent.hashes;
        self.known_ip = ip.to_string();
        (self.failures, self.not_before, self.on_its_way) = (0, 0, false);
        let said = sent.conditions.map(Some);
        match answer {
            Some(pod) => {
                self.learn(pod);
                self.make_sure();
            }
            None => {
                (self.shown, self.lost) = (said, None);
                self.lose_version();
            }
        }
        self.shown != said
    }
}

/// The whole status that a patch leads to: hashes of its parts, and its conditions.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) hashes: [u32; PARTS],
    pub(crate) conditions: [bool; CONDITIONS.len()],
    /// What the API showed of them.
    pub(crate) before: Shown,
    /// The lastTransitionTime of those whose status was another.
    pub(crate) since: String,
}
