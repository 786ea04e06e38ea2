//! The machine's eight virtio slots: which one holds the network card, and what is asked of it outside its
//! driver.

use crate::mmio::Register;
use core::ptr::NonNull;
use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::mmio::{MmioError, MmioTransport, VirtIOHeader};

const FIRST: usize = 0x1000_1000;
const BYTES: usize = 0x1000;
const COUNT: u32 = 8;

// Offsets of virtio's registers.
const MAGIC: usize = 0x00;
const DEVICE: usize = 0x08;
const INTERRUPT_STATUS: usize = 0x60;
const INTERRUPT_ACK: usize = 0x64;
/// The `status` word in a network card's configuration, after its address of six bytes.
const CARD_STATUS: usize = 0x100 + 6;

const MAGIC_VALUE: u32 = 0x7472_6976;
const CARRIER: u16 = 1;

/// A slot that holds a network card.
#[derive(Debug, Clone, Copy)]
pub struct CardSlot {
    number: u32,
}

impl CardSlot {
    /// The first slot with a network card in it.
    pub fn find() -> Option<Self> {
        (0..COUNT).map(|number| Self { number }).find(|slot| {
            slot.register::<u32>(MAGIC).read() == MAGIC_VALUE
                && slot.register::<u32>(DEVICE).read() == DeviceType::Network as u32
        })
    }

    /// The number of the slot's interrupt at the interrupt controller.
    pub fn interrupt(self) -> u32 {
        self.number + 1
    }

    /// Withdraws the slot's interrupt. What happens on the card from now on raises it again.
    pub fn quieten(self) {
        let status = self.register::<u32>(INTERRUPT_STATUS).read();
        self.register(INTERRUPT_ACK).write(status);
    }

    /// Whether the card has a carrier.
    pub fn carrier(self) -> bool {
        self.register::<u16>(CARD_STATUS).read() & CARRIER != 0
    }

    /// The transport for the card's driver.
    ///
    /// # Safety
    /// At most one is made of a slot.
    pub unsafe fn transport(self) -> Result<MmioTransport<'static>, MmioError> {
        let header = NonNull::new(self.base() as *mut VirtIOHeader).expect("slots lie above 0");
        // SAFETY: the slot's registers are there for good, and the caller makes one transport only. The reads
        // and writes above touch registers that the driver uses for nothing else.
        unsafe { MmioTransport::new(header, BYTES) }
    }

    fn base(self) -> usize {
        FIRST + self.number as usize * BYTES
    }

    fn register<T: Copy>(self, offset: usize) -> Register<T> {
        // SAFETY: every slot has virtio's registers, an empty one included; offsets and widths are those of
        // the standard.
        unsafe { Register::at(self.base() + offset) }
    }
}
