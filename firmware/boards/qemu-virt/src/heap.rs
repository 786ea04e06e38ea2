//! The heap: the 200 KiB that the linker script sets apart.

use embedded_alloc::LlffHeap;

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

unsafe extern "C" {
    static _heap_start: u8;
    static _heap_end: u8;
}

/// Makes the heap usable. To be called once, before the first allocation.
pub fn start() {
    let start = &raw const _heap_start as usize;
    let end = &raw const _heap_end as usize;
    // SAFETY: the linker script gives this range to nothing else, and `main` calls this once.
    unsafe { HEAP.init(start, end - start) }
}

/// Free bytes.
pub fn free() -> u32 {
    HEAP.free() as u32
}
