//! From reset to `main`: registers, zeroed memory, the trap vector, a guard below the stack, a look at the
//! processor.
//!
//! Interrupts stay switched off for good. A pending one ends `wfi` all the same, so the board sleeps without
//! a handler, and whatever traps is a fault.

use crate::console;
use crate::power::{self, End};
use core::arch::{asm, global_asm};
use riscv::register::{mie, misa};

global_asm!(
    r#"
.section .text.start, "ax"
.global _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, _stack_top
    la t0, _fault
    csrw mtvec, t0
    la t0, _bss_start
    la t1, _bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  tail {main}         # a0 and a1 are still what the machine gave: hart and device tree

.balign 4
_fault:
    la sp, _trap_stack_top
    csrr a0, mcause
    csrr a1, mepc
    csrr a2, mtval
    tail {fault}
"#,
    main = sym crate::main,
    fault = sym fault,
);

/// Extensions of other processors that an ESP32-C3 (rv32imc) lacks.
const FOREIGN: [char; 3] = ['A', 'F', 'D'];

unsafe extern "C" {
    static _guard: u8;
}

/// Refuses a processor that can more than the board that this one stands for: an image that works here must
/// work there.
pub fn check_processor() {
    let Ok(isa) = misa::try_read() else { return };
    if FOREIGN.iter().any(|extension| isa.has_extension(*extension)) {
        power::fatal(format_args!(
            "the processor (misa {:#010x}) has extensions A, F or D, which an ESP32-C3 lacks; \
             start QEMU with -cpu rv32,\
             a=false,f=false,d=false,h=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false",
            isa.bits()
        ));
    }
}

/// Makes the page below the stack untouchable, so that an overflow ends the board instead of spoiling its
/// memory.
pub fn guard_stack() {
    /// Locked (also for machine mode), a naturally aligned power of two, no permission.
    const LOCKED_NO_ACCESS: u32 = 0x98;
    let page = &raw const _guard as usize;
    // SAFETY: takes all access to one page that the linker script gives to nothing.
    unsafe {
        asm!(
            "csrw pmpaddr0, {range}",
            "csrs pmpcfg0, {mode}",
            range = in(reg) page >> 2 | 0x1FF,
            mode = in(reg) LOCKED_NO_ACCESS,
            options(nostack)
        );
    }
}

/// Lets the timer and the interrupt controller end a sleep.
pub fn enable_wake_ups() {
    // SAFETY: interrupts are off in `mstatus` and stay off, so nothing is interrupted by these.
    unsafe {
        mie::set_mtimer();
        mie::set_mext();
    }
}

extern "C" fn fault(cause: u32, at: u32, value: u32) -> ! {
    let guard = &raw const _guard as u32;
    if (guard..guard + 4096).contains(&value) {
        console::line(format_args!("PANIC the stack is full, at {at:#010x}"));
    } else {
        console::line(format_args!("PANIC processor fault {cause} at {at:#010x}, value {value:#010x}"));
    }
    power::off(End::Fault)
}
