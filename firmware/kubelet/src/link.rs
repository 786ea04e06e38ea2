//! One connection to the API server: whether it stands, how long to wait for it, and when to try again.
//! The first loss after an answer is tried again at once; then the wait doubles, with jitter, up to a
//! cap short enough that a healed link is noticed within seconds.

use alloc::collections::VecDeque;

use crate::http::ResponseReader;
use crate::random::Random;
use crate::seam::{ConnId, Output};

/// First wait, in milliseconds.
const FIRST_WAIT: u64 = 100;

/// Where a connection is. Instants in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    Down { retry_at: u64 },
    Opening { until: u64 },
    Up,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    id: ConnId,
    pub(crate) state: LinkState,
    /// Reads the answers that come over it.
    pub(crate) reader: ResponseReader,
    /// When it was last opened.
    pub(crate) opened_at: u64,
    failures: u8,
    /// Longest wait between two tries, in milliseconds.
    longest_wait: u64,
}

impl Link {
    /// Down, to be opened at once.
    pub(crate) fn new(id: ConnId, longest_wait: u64) -> Link {
        Link {
            id,
            state: LinkState::Down { retry_at: 0 },
            reader: ResponseReader::default(),
            opened_at: 0,
            failures: 0,
            longest_wait,
        }
    }

    /// Opens it when it is down and the wait is over.
    pub(crate) fn open_if_due(&mut self, millis: u64, timeout: u64, outputs: &mut VecDeque<Output>) {
        if let LinkState::Down { retry_at } = self.state
            && retry_at <= millis
        {
            self.state = LinkState::Opening { until: millis + timeout };
            self.opened_at = millis;
            self.reader = ResponseReader::default();
            outputs.push_back(Output::Open(self.id));
        }
    }

    /// The shell says it stands; `false` when nobody waited for that.
    pub(crate) fn connected(&mut self) -> bool {
        let waited = matches!(self.state, LinkState::Opening { .. });
        if waited {
            self.state = LinkState::Up;
        }
        waited
    }

    /// An answer came over it.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// It is lost or of no more use. `gone` says that the shell knows already.
    pub(crate) fn lose(
        &mut self,
        millis: u64,
        gone: bool,
        random: &mut Random,
        outputs: &mut VecDeque<Output>,
    ) {
        let wait = match self.failures {
            0 => 0,
            n => random.jitter((FIRST_WAIT << (n - 1).min(16)).min(self.longest_wait), 25),
        };
        self.failures = self.failures.saturating_add(1);
        self.down(millis + wait, gone, outputs);
    }

    /// Down until `retry_at`, without blame.
    pub(crate) fn down(&mut self, retry_at: u64, gone: bool, outputs: &mut VecDeque<Output>) {
        if !gone && !matches!(self.state, LinkState::Down { .. }) {
            outputs.push_back(Output::Close(self.id));
        }
        self.state = LinkState::Down { retry_at };
        self.reader = ResponseReader::default();
    }

    /// Forgets earlier failures: the network is new.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Whether it stands.
    pub(crate) fn is_up(&self) -> bool {
        self.state == LinkState::Up
    }

    /// Whether it is down.
    pub(crate) fn is_down(&self) -> bool {
        matches!(self.state, LinkState::Down { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn waits_grow_to_the_cap_and_start_over_after_an_answer() {
        let (mut random, mut outputs) = (Random::new(3), VecDeque::new());
        let mut link = Link::new(ConnId::REQUESTS, 2000);
        let mut lose = |link: &mut Link| {
            link.lose(0, true, &mut random, &mut outputs);
            match link.state {
                LinkState::Down { retry_at } => retry_at,
                LinkState::Opening { .. } | LinkState::Up => unreachable!("a lost link is down"),
            }
        };
        let waits: Vec<u64> = (0..30).map(|_| lose(&mut link)).collect();
        assert_eq!(waits[0], 0);
        assert!((75..=125).contains(&waits[1]) && (150..=250).contains(&waits[2]), "{waits:?}");
        assert!(waits[7..].iter().all(|wait| (1500..=2500).contains(wait)), "{waits:?}");
        link.succeeded();
        assert_eq!(lose(&mut link), 0);
    }
}
