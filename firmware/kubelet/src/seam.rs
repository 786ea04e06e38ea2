//! The types that pass between the state machine and its shell: inputs with the time, outputs, and
//! what a boot brings along. They carry bytes and numbers only, never a socket or a clock.

use alloc::string::String;
use alloc::vec::Vec;

/// The instant an input arrives, and what the shell measures at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic milliseconds since boot; never goes back.
    pub millis: u64,
    /// Heap that pods may still take, in bytes: what is free, less what the shell keeps for itself
    /// ([`crate::WORKING_RESERVE`] where the allocator is real).
    pub free_heap: u32,
}

/// Why the board started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// Power came on.
    PowerOn,
    /// The firmware asked for a reset.
    Software,
    /// The watchdog fired.
    Watchdog,
    /// The firmware panicked.
    Panic,
}

impl ResetReason {
    /// The word that stands in the boot banner.
    pub fn as_str(self) -> &'static str {
        match self {
            ResetReason::PowerOn => "power-on",
            ResetReason::Software => "software",
            ResetReason::Watchdog => "watchdog",
            ResetReason::Panic => "panic",
        }
    }
}

/// What a boot brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Why the board started.
    pub reason: ResetReason,
    /// Seeds jitter and identifiers; must differ from boot to boot, or container ids repeat.
    pub seed: u64,
}

/// One of the two connections a kubelet uses at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u8);

impl ConnId {
    /// The keep-alive connection all requests go over, one after the other.
    pub const REQUESTS: ConnId = ConnId(0);
    /// The connection of the pod watch.
    pub const WATCH: ConnId = ConnId(1);
}

/// What the shell tells the kubelet.
///
/// After [`Output::Close`] of a connection the shell reports nothing more about it until the next
/// [`Output::Open`] of the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// The board has an address; told again when it changes.
    NetworkUp {
        /// The board's IPv4 address.
        address: [u8; 4],
    },
    /// The link or the address is gone; all connections are, too.
    NetworkDown,
    /// A connection that was asked for stands.
    Connected(ConnId),
    /// Bytes of the server, in order, in pieces of any size.
    Received(ConnId, &'a [u8]),
    /// A connection was refused, reset or ended by the server.
    Closed(ConnId),
    /// Nothing happened but time; due at [`crate::Kubelet::deadline`], harmless at any other.
    Tick,
}

/// What the kubelet wants of the shell, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open a TCP connection to the configured server.
    Open(ConnId),
    /// Send these bytes.
    Send(ConnId, Vec<u8>),
    /// Drop the connection, whatever is in flight.
    Close(ConnId),
    /// One console line, without its line end.
    Log(String),
}
