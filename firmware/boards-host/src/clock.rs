//! The only place of the host shell that reads a clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Time since the process began to be a board.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that stands at zero.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Milliseconds since the start.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn millis(&self) -> u64 {
        u64::try_from(Instant::now().duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    /// A number that no other boot on this machine draws: the wall time in nanoseconds and the process's id.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn boot_seed() -> u64 {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        nanos ^ (u64::from(std::process::id()) << 40)
    }
}
