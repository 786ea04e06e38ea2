//! What the pump drives: the kubelet, or a script of it under test. The contract is the kubelet's own, see
//! [`kubelet::Input`] and [`kubelet::Output`].

use kubelet::{Input, Kubelet, Now, Output};

/// A state machine that takes inputs, wants outputs carried out, and names its next deadline.
pub trait Machine {
    /// Takes one input.
    fn handle(&mut self, now: Now, input: Input<'_>);

    /// The next thing to carry out, in order; asked after each input until there is none.
    fn next_output(&mut self) -> Option<Output>;

    /// When it wants [`Input::Tick`], in milliseconds since boot; `u64::MAX` = never.
    fn deadline(&self) -> u64;
}

impl Machine for Kubelet {
    fn handle(&mut self, now: Now, input: Input<'_>) {
        Kubelet::handle(self, now, input);
    }

    fn next_output(&mut self) -> Option<Output> {
        Kubelet::next_output(self)
    }

    fn deadline(&self) -> u64 {
        Kubelet::deadline(self)
    }
}
