//! How much clients can take of this process: file descriptors, connections, a share of them for each peer, and memory for
//! bodies that are being received.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// File descriptors that are kept for the store, the logs, and connections being refused.
const RESERVE: u64 = 64;
/// Connections at most, whatever the system would allow: each takes some tens of KiB.
const MOST: u64 = 16_384;
/// Connections at least, however little the system allows.
const LEAST: u64 = 16;
/// From so many percent of all connections on, one peer may hold no more than half of them.
const CROWDED: usize = 90;

/// Bodies up to so many bytes are received without asking for room.
pub const SMALL_BODY: usize = 64 * 1024;
/// Bytes of larger bodies that are received and handled at the same time.
const LARGE_BODIES: usize = 96 * 1024 * 1024;

/// Lets this process open as many files as the system allows it, and says how many connections fit.
pub fn connections() -> u32 {
    let limit = getrlimit(Resource::Nofile);
    // Kept as it was where it cannot be raised.
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _: Result<(), rustix::io::Errno> = setrlimit(Resource::Nofile, raised);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(MOST);
    u32::try_from(files.saturating_sub(RESERVE).clamp(LEAST, MOST)).unwrap_or(u32::MAX)
}

/// The connections of each peer.
#[derive(Debug)]
pub struct Peers {
    room: usize,
    open: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A place among the connections, for as long as it is held.
#[derive(Debug)]
pub struct Place {
    peers: Arc<Peers>,
    peer: IpAddr,
}

impl Peers {
    /// Nobody yet, with room for so many connections.
    pub fn new(room: u32) -> Arc<Self> {
        Arc::new(Self { room: usize::try_from(room).unwrap_or(usize::MAX), open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more connection of this peer; none where it is crowded and most connections are this peer's, so that
    /// there is always room for the others.
    pub fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let mut open = self.open();
        let all: usize = open.values().sum();
        let own = open.entry(peer).or_default();
        if all.saturating_mul(100) >= self.room.saturating_mul(CROWDED) && *own * 2 > self.room {
            return None;
        }
        *own += 1;
        Some(Place { peers: Arc::clone(self), peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.peers.open();
        if let Some(own) = open.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

/// Room for large bodies.
#[derive(Clone, Debug)]
pub struct BodyRoom(Arc<Semaphore>);

impl Default for BodyRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_BODIES)))
    }
}

impl BodyRoom {
    /// Waits until there is room for a body of this many bytes.
    pub async fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(LARGE_BODIES)).unwrap_or(u32::MAX);
        Arc::clone(&self.0).acquire_many_owned(bytes).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn one_peer_cannot_take_the_last_places() {
        let peers = Peers::new(100);
        let (greedy, other) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        let taken: Vec<_> = std::iter::from_fn(|| peers.enter(greedy)).collect();
        assert_eq!(taken.len(), 90);
        let others: Vec<_> = (0..10).map(|_| peers.enter(other)).collect();
        assert!(others.iter().all(Option::is_some));
        drop(taken);
        drop(others);
        assert!(peers.open().is_empty());
        assert!(peers.enter(greedy).is_some());
    }

    #[test]
    fn there_is_room_for_some_connections_whatever_the_system_says() {
        let connections = u64::from(connections());
        assert!((LEAST..=MOST).contains(&connections), "{connections}");
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
