//! Memory of pods, held as real heap (SCHED-22): what a pod asks for is taken from the allocator, so the
//! free heap that the board measures and reports falls by it. In blocks, so that a fragmented heap does
//! not refuse what it has.

use alloc::vec::Vec;

const BLOCK: usize = 16 * 1024;
/// How much of [`crate::WORKING_RESERVE`] the kubelet's own records may use before they count against the
/// pods, in bytes.
const RECORDS: u32 = 16 * 1024;
/// What the allocator must have left after a pod took its memory, in bytes (KLET-07).
const HEADROOM: usize = 8 * 1024;

/// What pods may have: all there is for them less what they hold, whatever the kubelet's records take, as
/// long as those stay within their part of the reserve. So the figure that is reported moves by exactly what
/// pods ask for, and a pod that the scheduler found room for has it. `free` is the shell's measurement.
pub(crate) fn offered(capacity: u32, held: u32, free: u32) -> u32 {
    let ideal = capacity.saturating_sub(held);
    // The reserve has been broken into: by the records if no more than their part is missing, else by who knows.
    if free == 0 && ideal > RECORDS { 0 } else { ideal.min(free.saturating_add(RECORDS)) }
}

/// Heap held for one pod; given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    blocks: Vec<Vec<u8>>,
    bytes: u32,
}

impl Reservation {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// What may still be taken while one input is handled: the shell measured once, and the kubelet took and
/// gave back since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heap {
    measured: u32,
    taken: i64,
}

impl Heap {
    /// A fresh measurement.
    pub(crate) fn measured(free: u32) -> Heap {
        Heap { measured: free, taken: 0 }
    }

    /// Bytes that are free now.
    pub(crate) fn free(&self) -> u32 {
        u32::try_from((i64::from(self.measured) - self.taken).max(0)).unwrap_or(u32::MAX)
    }

    /// Takes `bytes`; `None` when they are not free or the allocator refuses.
    pub(crate) fn reserve(&mut self, bytes: u32) -> Option<Reservation> {
        if bytes > self.free() {
            return None;
        }
        let mut left = bytes as usize;
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(left.div_ceil(BLOCK)).ok()?;
        while left > 0 {
            let mut block: Vec<u8> = Vec::new();
            block.try_reserve_exact(left.min(BLOCK)).ok()?;
            left -= left.min(BLOCK);
            blocks.push(block);
        }
        // Whatever was measured: if this cannot be had, the next answer of the server could not be read.
        let mut headroom: Vec<u8> = Vec::new();
        headroom.try_reserve_exact(HEADROOM).ok()?;
        core::hint::black_box(&headroom);
        self.taken += i64::from(bytes);
        Some(Reservation { blocks, bytes })
    }

    /// Gives a reservation back, leaving an empty one.
    pub(crate) fn release(&mut self, reservation: &mut Reservation) {
        self.taken -= i64::from(reservation.bytes);
        drop(core::mem::take(&mut reservation.blocks));
        reservation.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_do_not_count_until_they_are_many() {
        let check =
            |held, free, expected| assert_eq!(offered(100_000, held, free), expected, "{held} {free}");
        check(0, 100_000, 100_000);
        check(0, 90_000, 100_000);
        check(60_000, 35_000, 40_000);
        check(60_000, 10_000, 26_384);
        check(60_000, 0, 0);
        check(90_000, 0, 10_000);
        check(100_000, 0, 0);
        check(0, 120_000, 100_000);
    }

    #[test]
    fn the_last_byte_can_be_had_and_no_more() {
        let mut heap = Heap::measured(50_000);
        let mut first = heap.reserve(30_000).unwrap();
        assert!(heap.reserve(20_001).is_none());
        let mut second = heap.reserve(20_000).unwrap();
        assert_eq!((heap.free(), first.bytes(), second.bytes()), (0, 30_000, 20_000));
        assert!(first.blocks.iter().map(Vec::capacity).sum::<usize>() >= 30_000);
        heap.release(&mut first);
        heap.release(&mut second);
        assert_eq!((heap.free(), first.bytes()), (50_000, 0));
    }
}
