//! Power off with an exit status, through the machine's test device. No board of silicon has one; there a
//! panic resets.

use crate::console;
use crate::mmio::Register;
use core::fmt::Arguments;
use core::panic::PanicInfo;

// SAFETY: the test device of the machine `virt` lies at 0x10_0000.
const FINISH: Register<u32> = unsafe { Register::at(0x0010_0000) };
const FAIL: u32 = 0x3333;

/// Why the board ends itself. The number is the emulator's exit status.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// The machine or the configuration is unfit.
    Fatal = 2,
    /// A panic in the image.
    Panic = 3,
    /// A fault of the processor: a bad access or instruction, or the stack's end.
    Fault = 4,
}

/// Switches the machine off.
pub fn off(end: End) -> ! {
    FINISH.write((end as u32) << 16 | FAIL);
    loop {
        riscv::asm::wfi();
    }
}

/// Says on the console why the board cannot work, and switches it off.
pub fn fatal(why: Arguments<'_>) -> ! {
    console::line(format_args!("FATAL: {why}"));
    off(End::Fatal)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    match info.location() {
        Some(at) => console::line(format_args!("PANIC {} at {}:{}", info.message(), at.file(), at.line())),
        None => console::line(format_args!("PANIC {}", info.message())),
    }
    off(End::Panic)
}
