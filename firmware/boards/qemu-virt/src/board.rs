//! The machine as the shell's `Board`.

use crate::slot::CardSlot;
use crate::{clint, console, device_tree, heap, plic, start};

/// Time, sleep and console of one boot.
pub struct Virt {
    /// Ticks at boot: the counter outlives a reset.
    origin: u64,
    slot: CardSlot,
    /// Where the machine put its device tree.
    tree: usize,
}

impl Virt {
    /// Takes the slot's interrupt into use as what ends a sleep.
    ///
    /// # Safety
    /// `tree` is what the machine put in `a1` at reset.
    pub unsafe fn new(origin: u64, slot: CardSlot, tree: usize) -> Self {
        plic::enable_only(slot.interrupt());
        start::enable_wake_ups();
        Self { origin, slot, tree }
    }
}

impl shell::Board for Virt {
    fn now(&mut self) -> u64 {
        clint::micros_since(self.origin)
    }

    fn idle_until(&mut self, deadline: Option<u64>) {
        if deadline.is_some_and(|deadline| deadline <= self.now()) {
            return;
        }
        clint::set_alarm(self.origin, deadline);
        // A pending interrupt ends this, whether it came before or during the sleep.
        riscv::asm::wfi();
        plic::serve(|| self.slot.quieten());
    }

    fn console(&mut self, line: &str) {
        console::line(format_args!("{line}"));
    }

    fn entropy(&mut self) -> u64 {
        // SAFETY: `new` was promised the machine's own address.
        let seed = unsafe { device_tree::seed(self.tree) }.unwrap_or(0);
        seed ^ clint::ticks().rotate_left(32)
    }

    fn free_heap(&mut self) -> u32 {
        heap::free()
    }

    fn link_up(&mut self) -> bool {
        self.slot.carrier()
    }
}
