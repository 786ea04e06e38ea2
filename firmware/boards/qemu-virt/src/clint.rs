//! Time and its alarm: the CLINT's 64-bit counter at 10 MHz and the compare register that raises the timer
//! interrupt.

use crate::mmio::Register;

const TICKS_PER_MICRO: u64 = 10;

// SAFETY: the CLINT of the machine `virt` lies at 0x200_0000; these are its counter and hart 0's compare
// register, each as two words.
const MTIME: [Register<u32>; 2] = unsafe { [Register::at(0x0200_BFF8), Register::at(0x0200_BFFC)] };
// SAFETY: as above.
const MTIMECMP: [Register<u32>; 2] = unsafe { [Register::at(0x0200_4000), Register::at(0x0200_4004)] };

/// Ticks of 100 ns since the machine was switched on. Stands still while the emulator is stopped.
pub fn ticks() -> u64 {
    loop {
        let high = MTIME[1].read();
        let low = MTIME[0].read();
        if MTIME[1].read() == high {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

/// Microseconds between `since` and now.
pub fn micros_since(since: u64) -> u64 {
    (ticks() - since) / TICKS_PER_MICRO
}

/// Makes the timer interrupt pending from `micros` after `since` on; `None` = never.
pub fn set_alarm(since: u64, micros: Option<u64>) {
    let at = micros.map_or(u64::MAX, |micros| micros.saturating_mul(TICKS_PER_MICRO).saturating_add(since));
    // The high word goes out of the way first, lest the half-written value be due already.
    MTIMECMP[1].write(u32::MAX);
    MTIMECMP[0].write(at as u32);
    MTIMECMP[1].write((at >> 32) as u32);
}
