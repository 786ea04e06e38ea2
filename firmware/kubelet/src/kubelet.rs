//! The state machine.

use alloc::collections::VecDeque;
use alloc::format;

use crate::config::Config;
use crate::random::Random;
use crate::seam::{Boot, ConnId, Input, Now, Output};

/// The kubelet of one board, from boot to power-off.
#[derive(Debug)]
pub struct Kubelet {
    config: Config,
    random: Random,
    outputs: VecDeque<Output>,
    deadline: u64,
}

impl Kubelet {
    /// A kubelet that has just booted; its first output is the banner.
    pub fn new(config: Config, boot: Boot) -> Self {
        let banner = format!(
            "rigor kubelet {} board={} reset={}",
            env!("CARGO_PKG_VERSION"),
            config.board.name,
            boot.reason.as_str()
        );
        Kubelet {
            config,
            random: Random::new(boot.seed),
            outputs: VecDeque::from([Output::Log(banner)]),
            deadline: u64::MAX,
        }
    }

    /// Takes one input; afterwards the shell drains [`Kubelet::next_output`] and looks at
    /// [`Kubelet::deadline`].
    pub fn handle(&mut self, now: Now, input: Input<'_>) {
        if let Input::NetworkUp { .. } = input {
            self.deadline = now.millis + self.random.jitter(u64::from(self.config.lease.renew_millis), 5);
            self.outputs.push_back(Output::Open(ConnId::REQUESTS));
        }
    }

    /// The next thing to do, in order; `None` when there is nothing left.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the kubelet wants [`Input::Tick`], in milliseconds since boot; `u64::MAX` for never.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Heap held for pods, in bytes, for shells that model their heap.
    pub fn reserved_bytes(&self) -> u32 {
        0
    }
}
