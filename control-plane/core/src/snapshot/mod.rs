//! The state that decisions read: objects as the reflector knows them, and a few instants that no object carries.
//!
//! A decision never looks elsewhere. The server feeds every object it finds at start through
//! [`Snapshot::restore`], every accepted write (its own too, at once) through [`Snapshot::observe`], and every
//! accepted status write of a node through [`Snapshot::status_reported`]. From these the snapshot keeps, on the
//! monotonic clock: when each lease was renewed (NODE-03, NODE-11, NODE-26) and when each stamp that delays are
//! counted from was really written ([`Snapshot::since`]).

mod boards;
mod events;
mod indexes;
mod instants;
mod key;
mod leases;
mod ledgers;
mod references;
mod said;
mod state;
#[cfg(test)]
mod tests;
mod touches;

pub use instants::Mark;
pub use key::{Key, Object};
pub use leases::LEASE_NAMESPACE;
pub use references::{Owner, Place, References};
pub use state::Snapshot;
pub(crate) use touches::Touch;
