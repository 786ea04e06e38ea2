//! The cable between one board and the switch: whether it carries, how slow it is and how much it loses.
//!
//! Both directions have the same delay and loss. Frames are numbered by direction from the trial's start, whatever
//! becomes of them, and that number decides their fate.

use crate::fate::{number_of, percentile};

/// Most frames under way on a link and in one direction; more are dropped, as a full queue drops them.
pub const LONGEST_QUEUE: usize = 1024;

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the board to the switch.
    Up,
    /// From the switch to the board.
    Down,
}

/// What became of the frames of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All that were sent.
    pub sent: u64,
    /// Those that the loss took.
    pub lost: u64,
    /// Those that a cut link or a board without power did not take, or that were under way then.
    pub cut: u64,
    /// Those that found the queue full.
    pub full: u64,
    /// Those that are no Ethernet frames.
    pub malformed: u64,
}

/// A link.
#[derive(Debug)]
pub struct Link {
    seed: u64,
    /// Its streams of fates, by direction.
    names: [u64; 2],
    up: bool,
    powered: bool,
    delay: u64,
    loss: u8,
    under_way: [usize; 2],
    counts: [Counts; 2],
}

impl Link {
    /// The link of the board `name`: it carries, without delay or loss; the board has no power yet.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        Self {
            seed,
            names: ["up", "down"].map(|direction| number_of(&format!("{name}:{direction}"))),
            up: true,
            powered: false,
            delay: 0,
            loss: 0,
            under_way: [0; 2],
            counts: [Counts::default(); 2],
        }
    }

    /// Whether frames pass.
    #[must_use]
    pub fn carries(&self) -> bool {
        self.up && self.powered
    }

    /// Whether it is whole, with or without a powered board at its end.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// What became of the frames of one direction.
    #[must_use]
    pub fn counts(&self, direction: Direction) -> Counts {
        self.counts[direction as usize]
    }

    pub(crate) fn set_up(&mut self, up: bool) {
        self.up = up;
        if up {
            (self.delay, self.loss) = (0, 0);
        }
    }

    pub(crate) fn set_powered(&mut self, powered: bool) {
        self.powered = powered;
    }

    pub(crate) fn set_delay(&mut self, micros: u64) {
        self.delay = micros;
    }

    pub(crate) fn set_loss(&mut self, percent: u8) {
        self.loss = percent;
    }

    /// A frame sets out: after how many microseconds it arrives, or nothing where it never does.
    pub(crate) fn send(&mut self, direction: Direction) -> Option<u64> {
        let counts = &mut self.counts[direction as usize];
        let number = counts.sent;
        counts.sent += 1;
        if !(self.up && self.powered) {
            counts.cut += 1;
            return None;
        }
        if percentile(self.seed, self.names[direction as usize], number) < self.loss {
            counts.lost += 1;
            return None;
        }
        let under_way = &mut self.under_way[direction as usize];
        if *under_way == LONGEST_QUEUE {
            counts.full += 1;
            return None;
        }
        *under_way += 1;
        Some(self.delay)
    }

    /// A frame that set out has arrived.
    pub(crate) fn arrived(&mut self, direction: Direction) {
        self.under_way[direction as usize] -= 1;
    }

    /// All frames under way are lost.
    pub(crate) fn spill(&mut self) {
        for (under_way, counts) in self.under_way.iter_mut().zip(&mut self.counts) {
            counts.cut += std::mem::take(under_way) as u64;
        }
    }

    /// What came from the board is no Ethernet frame.
    pub(crate) fn malformed(&mut self) {
        self.counts[Direction::Up as usize].malformed += 1;
    }

    /// The emulator did not take a frame that had arrived.
    pub(crate) fn overflowed(&mut self) {
        self.counts[Direction::Down as usize].full += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(seed: u64, percent: u8, since: u64) -> Vec<u64> {
        let mut link = Link::new(seed, "a");
        link.set_powered(true);
        (0..2000)
            .filter(|number| {
                if *number == since {
                    link.set_loss(percent);
                }
                let passed = link.send(Direction::Up).is_some();
                if passed {
                    link.arrived(Direction::Up);
                }
                !passed
            })
            .collect()
    }

    #[test]
    fn the_fate_of_a_frame_depends_on_nothing_but_seed_link_and_number() {
        let all = lost(3, 20, 0);
        assert!((300..500).contains(&all.len()), "{} of 2000 at 20 %", all.len());
        let later: Vec<u64> = all.iter().copied().filter(|number| *number >= 700).collect();
        assert_eq!(lost(3, 20, 700), later, "what passed before shifts nothing");
        assert_ne!(lost(4, 20, 0), all);
        assert_eq!(lost(3, 0, 0), Vec::<u64>::new());
        assert_eq!(lost(3, 100, 0).len(), 2000);
        let fewer = lost(3, 5, 0);
        assert!(fewer.iter().all(|number| all.contains(number)), "a greater loss takes the same and more");
    }

    #[test]
    fn healing_ends_delay_and_loss() {
        let mut link = Link::new(1, "a");
        link.set_powered(true);
        link.set_loss(100);
        link.set_delay(5);
        assert_eq!(link.send(Direction::Down), None);
        link.set_up(true);
        assert_eq!(link.send(Direction::Down), Some(0));
    }

    #[test]
    fn a_full_queue_drops_and_a_cut_spills() {
        let mut link = Link::new(1, "a");
        link.set_powered(true);
        let passed = (0..LONGEST_QUEUE + 5).filter(|_| link.send(Direction::Up).is_some()).count();
        assert_eq!(passed, LONGEST_QUEUE);
        link.spill();
        let counts = link.counts(Direction::Up);
        assert_eq!((counts.full, counts.cut), (5, LONGEST_QUEUE as u64));
        assert!(link.send(Direction::Up).is_some());
    }
}
