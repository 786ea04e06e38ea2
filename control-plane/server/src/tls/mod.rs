//! TLS: certificates made or taken from the user, the listener's side of a handshake, and who a client's certificate names.
//!
//! GHOST-05. Times come from the injected clock; private keys are readable by their owner only and never part of a message.

mod authority;
mod clients;
mod files;
mod server;

pub use self::authority::{Authority, Issued};
pub use self::clients::{Clients, Peer};
pub use self::files::{TlsError, existing, read_text};
pub use self::server::{Identity, acceptor};

use jiff::Timestamp;

/// The clock's date as TLS libraries want it.
fn unix_time(now: Timestamp) -> rustls::pki_types::UnixTime {
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    rustls::pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}
