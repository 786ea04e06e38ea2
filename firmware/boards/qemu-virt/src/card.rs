//! The network card: virtio-net as a smoltcp `Device`.
//!
//! Frames lie in fixed buffers outside the heap; a received one is read where the card put it, and nothing
//! waits for the card: when all send buffers are out, `transmit` says so.

use crate::slot::CardSlot;
use core::cell::{Cell, RefCell};
use core::ptr::NonNull;
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use virtio_drivers::device::net::VirtIONetRaw;
use virtio_drivers::transport::mmio::MmioTransport;
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

/// Buffers each way. The windows of two connections fill six.
const QUEUE: usize = 8;
/// An Ethernet frame and the card's header before it.
const FRAME_BYTES: usize = 1536;
/// An Ethernet frame without its check sum.
const LARGEST_FRAME: usize = 1514;
/// Two queues of two pages each.
const RING_PAGES: usize = 4;

type Driver = VirtIONetRaw<Rings, MmioTransport<'static>, QUEUE>;
type Frame = [u8; FRAME_BYTES];

/// Memory that the card and the image share.
#[repr(C, align(4096))]
struct Shared {
    rings: [[u8; PAGE_SIZE]; RING_PAGES],
    received: [Frame; QUEUE],
    sent: [Frame; QUEUE],
}

static mut SHARED: Shared = Shared {
    rings: [[0; PAGE_SIZE]; RING_PAGES],
    received: [[0; FRAME_BYTES]; QUEUE],
    sent: [[0; FRAME_BYTES]; QUEUE],
};

/// Gives out the ring pages, each once: the card stays for as long as the board runs.
struct Rings;

/// Ring pages given out so far.
static RINGS_TAKEN: critical_section::Mutex<Cell<usize>> = critical_section::Mutex::new(Cell::new(0));

// SAFETY: pages come from a static that nothing else names, zeroed, aligned by its type, each given out once.
// Addresses of the processor and of the devices are the same on this machine.
unsafe impl Hal for Rings {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let first = critical_section::with(|section| {
            let taken = RINGS_TAKEN.borrow(section);
            let first = taken.get();
            taken.set(first + pages);
            first
        });
        assert!(first + pages <= RING_PAGES, "the card asks for more ring pages than there are");
        // SAFETY: in bounds, as just asserted; only the address is taken.
        let page = unsafe { (&raw mut SHARED.rings).cast::<u8>().add(first * PAGE_SIZE) };
        (page as usize as PhysAddr, NonNull::new(page).expect("a static is not at 0"))
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        0
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, _: usize) -> NonNull<u8> {
        NonNull::new(address as usize as *mut u8).expect("devices are not at 0")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr() as usize as PhysAddr
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

/// Why the card cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// The slot's transport refuses.
    #[error("the card's slot is unusable: {0}")]
    Slot(#[from] virtio_drivers::transport::mmio::MmioError),
    /// The driver refuses.
    #[error("the card cannot be set up: {0}")]
    Driver(#[from] virtio_drivers::Error),
}

/// The card, ready to send and receive.
pub struct Card {
    driver: RefCell<Driver>,
    /// By the number of the descriptor that the card holds it under.
    received: RefCell<&'static mut [Frame; QUEUE]>,
    sending: RefCell<Sending>,
    /// Bytes of the card's own header before each frame.
    header: usize,
}

/// Send buffers, and which of them the card holds.
struct Sending {
    frames: &'static mut [Frame; QUEUE],
    free: [bool; QUEUE],
    /// The buffer behind a descriptor that the card holds, and how much of it was sent.
    held: [Option<(usize, usize)>; QUEUE],
}

impl Card {
    /// Sets the card up and gives it all receive buffers.
    ///
    /// # Errors
    /// When the slot or the card refuses.
    ///
    /// # Safety
    /// To be called once.
    pub unsafe fn start(slot: CardSlot) -> Result<Self, CardError> {
        // SAFETY: the caller calls once, so one transport is made.
        let mut driver = Driver::new(unsafe { slot.transport() }?)?;
        // SAFETY: the caller calls once, so these are the only references to the buffers.
        let (received, frames) = unsafe {
            let shared = &raw mut SHARED;
            (&mut (*shared).received, &mut (*shared).sent)
        };
        let header = driver.fill_buffer_header(&mut frames[0])?;
        for (number, frame) in received.iter_mut().enumerate() {
            // SAFETY: a buffer that the card holds is not touched until `receive_complete`.
            let descriptor = unsafe { driver.receive_begin(frame) }?;
            assert_eq!(usize::from(descriptor), number, "descriptors are given out in order");
        }
        driver.enable_interrupts();
        Ok(Self {
            driver: RefCell::new(driver),
            received: RefCell::new(received),
            sending: RefCell::new(Sending { frames, free: [true; QUEUE], held: [None; QUEUE] }),
            header,
        })
    }

    /// The card's hardware address.
    pub fn hardware_address(&self) -> [u8; 6] {
        self.driver.borrow().mac_address()
    }

    /// Takes back the send buffers that the card is done with; whether one is free.
    fn can_send(&self) -> bool {
        let mut driver = self.driver.borrow_mut();
        let mut sending = self.sending.borrow_mut();
        while let Some(descriptor) = driver.poll_transmit() {
            let Some((buffer, end)) = sending.held[usize::from(descriptor)].take() else { break };
            // SAFETY: these are the bytes that were sent under this descriptor, see `send`.
            if unsafe { driver.transmit_complete(descriptor, &sending.frames[buffer][..end]) }.is_err() {
                break;
            }
            sending.free[buffer] = true;
        }
        sending.free.contains(&true)
    }

    /// Builds a frame of `length` bytes in place and gives it to the card. Without a free buffer the frame is
    /// lost, as on any cable.
    fn send<R>(&self, length: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut sending = self.sending.borrow_mut();
        let buffer =
            sending.free.iter().position(|free| *free).expect("a token is made when a buffer is free");
        let end = self.header + length;
        let frame = &mut sending.frames[buffer][..end];
        let result = fill(&mut frame[self.header..]);
        let mut driver = self.driver.borrow_mut();
        // SAFETY: the buffer is not touched while it is not free, that is until `transmit_complete`.
        let begun = driver.fill_buffer_header(frame).and_then(|_| unsafe { driver.transmit_begin(frame) });
        if let Ok(descriptor) = begun {
            sending.free[buffer] = false;
            sending.held[usize::from(descriptor)] = Some((buffer, end));
        }
        result
    }
}

/// A frame that has arrived, still in the card's hands.
pub struct Arrived<'a>(&'a Card);

impl phy::RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let card = self.0;
        let mut received = card.received.borrow_mut();
        let descriptor = card.driver.borrow().poll_receive().map(usize::from);
        let Some(frame) = descriptor.and_then(|descriptor| received.get_mut(descriptor)) else {
            return read(&[]);
        };
        let descriptor = descriptor.unwrap_or_default() as u16;
        // SAFETY: buffers lie at the number of their descriptor, so this is the one that was given out under
        // it.
        let outcome = unsafe { card.driver.borrow_mut().receive_complete(descriptor, frame) };
        let result = match outcome {
            Ok((header, length)) => read(frame.get(header..header + length).unwrap_or(&[])),
            Err(_) => read(&[]),
        };
        // SAFETY: the card gets the buffer back, and it is not touched until `receive_complete`.
        let returned = unsafe { card.driver.borrow_mut().receive_begin(frame) };
        assert_eq!(returned, Ok(descriptor), "the one free descriptor is given out again");
        result
    }
}

/// Leave to send one frame.
pub struct Leave<'a>(&'a Card);

impl phy::TxToken for Leave<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        self.0.send(length, fill)
    }
}

impl phy::Device for Card {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = Leave<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, Leave<'_>)> {
        // A frame stays with the card until its answer has somewhere to go.
        (self.can_send() && self.driver.borrow().poll_receive().is_some())
            .then_some((Arrived(self), Leave(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leave<'_>> {
        self.can_send().then_some(Leave(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = LARGEST_FRAME;
        capabilities
    }
}
