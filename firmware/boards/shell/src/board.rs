//! What the shell asks of a board: time, sleep, a console, entropy and two facts about the hardware.
//! The network card is not here: it is a smoltcp `Device` of its own.

/// A board as the shell sees it. Every method returns at once, `idle_until` excepted.
pub trait Board {
    /// Microseconds since this boot; never goes back.
    fn now(&mut self) -> u64;

    /// Sleeps until `deadline` (microseconds since boot, `None` = no deadline) or until the network card
    /// wants attention, whichever is first. May return early for no reason; returns at once when the deadline
    /// has passed or the card already waits, so that nothing that arrives between a look at the card and the
    /// sleep is missed.
    fn idle_until(&mut self, deadline: Option<u64>);

    /// Writes one line to the console. `line` carries no line break.
    fn console(&mut self, line: &str);

    /// Draws 64 bits that differ between boards and between boots of one board. Asked once, at start.
    fn entropy(&mut self) -> u64;

    /// Free heap in bytes, measured now.
    fn free_heap(&mut self) -> u32;

    /// Whether the network card has a carrier.
    fn link_up(&mut self) -> bool;
}
