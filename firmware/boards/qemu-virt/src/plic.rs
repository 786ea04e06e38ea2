//! The interrupt controller, as far as one hart in machine mode needs it: which source may end a sleep.

use crate::mmio::Register;

const BASE: usize = 0x0C00_0000;
// SAFETY: the PLIC of the machine `virt` lies at `BASE`; these are the enable word for sources 1-31, the
// threshold and the claim register of context 0, which is hart 0 in machine mode.
const ENABLE: Register<u32> = unsafe { Register::at(BASE + 0x2000) };
// SAFETY: as above.
const THRESHOLD: Register<u32> = unsafe { Register::at(BASE + 0x20_0000) };
// SAFETY: as above.
const CLAIM: Register<u32> = unsafe { Register::at(BASE + 0x20_0004) };

/// Lets `source` (1-31), and nothing else, make the external interrupt pending.
pub fn enable_only(source: u32) {
    assert!((1..32).contains(&source), "interrupt source {source} is out of range");
    // SAFETY: each source has a priority word at four times its number.
    let priority: Register<u32> = unsafe { Register::at(BASE + 4 * source as usize) };
    priority.write(1);
    THRESHOLD.write(0);
    ENABLE.write(1 << source);
}

/// Takes the pending interrupt, lets `quieten` silence its device, and hands it back.
pub fn serve(quieten: impl FnOnce()) {
    let source = CLAIM.read();
    if source != 0 {
        quieten();
        CLAIM.write(source);
    }
}
