//! Device registers. The one place that reads and writes them; the modules of the devices name their
//! addresses.

use core::marker::PhantomData;

/// A register of a device, as wide as `T`.
#[derive(Debug)]
pub struct Register<T> {
    address: usize,
    width: PhantomData<T>,
}

impl<T: Copy> Register<T> {
    /// The register at `address`.
    ///
    /// # Safety A device of this machine has a register of `T`'s width there, any value may be read from it
    /// and written to it, and no access touches memory that Rust owns.
    pub const unsafe fn at(address: usize) -> Self {
        Self { address, width: PhantomData }
    }

    /// Reads the register.
    pub fn read(&self) -> T {
        // SAFETY: `at` was promised a register of this width at this address.
        unsafe { core::ptr::read_volatile(self.address as *const T) }
    }

    /// Writes the register.
    pub fn write(&self, value: T) {
        // SAFETY: as in `read`.
        unsafe { core::ptr::write_volatile(self.address as *mut T, value) }
    }
}
