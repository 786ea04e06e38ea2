//! The console: the first 16550 UART, polled. A line is dropped rather than waited for when nobody takes it.

use crate::clint;
use crate::mmio::Register;
use core::fmt::{Arguments, Write};

// SAFETY: the UART of the machine `virt` lies at 0x1000_0000: transmit holding register and line status.
const TRANSMIT: Register<u8> = unsafe { Register::at(0x1000_0000) };
// SAFETY: as above.
const LINE_STATUS: Register<u8> = unsafe { Register::at(0x1000_0005) };
const HOLDING_EMPTY: u8 = 1 << 5;

/// How long one line may wait for a console that takes nothing. A board must live on when its console is not
/// read.
const PATIENCE_MICROS: u64 = 50_000;

struct Line {
    started: u64,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            while LINE_STATUS.read() & HOLDING_EMPTY == 0 {
                if clint::micros_since(self.started) > PATIENCE_MICROS {
                    return Err(core::fmt::Error);
                }
            }
            TRANSMIT.write(byte);
        }
        Ok(())
    }
}

/// Writes one line.
pub fn line(text: Arguments<'_>) {
    let mut line = Line { started: clint::ticks() };
    // The only error is a console that takes nothing.
    let _ = line.write_fmt(text).and_then(|()| line.write_str("\n"));
}
