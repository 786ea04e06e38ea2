//! One board's unix socket: frames from its emulator and to it.
//!
//! An emulator that does not read loses frames, as a card whose buffers are full does, and holds up nobody else. One
//! that sends what is no frame is not listened to any more.

use rigor_switch::codec::{Absurd, Reader, write};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Most frames that wait for an emulator to read them; QEMU's own socket buffer holds more besides.
const WAITING: usize = 256;

/// Bytes read at once: no emulator gets more than that before the others have their turn.
const READ: usize = 64 * 1024;

/// A board's place.
#[derive(Debug)]
pub(super) struct Port {
    listener: UnixListener,
    emulator: Option<Emulator>,
}

/// A connected emulator.
#[derive(Debug)]
struct Emulator {
    socket: UnixStream,
    reader: Reader,
    /// Frames with their lengths.
    waiting: VecDeque<Vec<u8>>,
    /// Bytes of the first of them that are out.
    written: usize,
}

impl Port {
    pub(super) fn listen(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, emulator: None })
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    pub(super) fn socket(&self) -> Option<&UnixStream> {
        self.emulator.as_ref().map(|emulator| &emulator.socket)
    }

    /// Whether something waits to be written.
    pub(super) fn wants_out(&self) -> bool {
        self.emulator.as_ref().is_some_and(|emulator| !emulator.waiting.is_empty())
    }

    /// Lets in the emulator that came last; one that was there before is gone.
    pub(super) fn accept(&mut self) {
        while let Ok((socket, _)) = self.listener.accept() {
            if socket.set_nonblocking(true).is_ok() {
                self.emulator = Some(Emulator {
                    socket,
                    reader: Reader::default(),
                    waiting: VecDeque::new(),
                    written: 0,
                });
            }
        }
    }

    /// Forgets the emulator, and any that asked to be let in.
    pub(super) fn close(&mut self) {
        self.accept();
        self.emulator = None;
    }

    /// Drops the frames that wait.
    pub(super) fn spill(&mut self) {
        if let Some(emulator) = &mut self.emulator {
            // A frame that is half out must be ended, or the emulator would take the next for its rest.
            emulator.waiting.truncate(usize::from(emulator.written > 0));
        }
    }

    /// Reads what there is, a bounded amount, and gives each whole frame out.
    pub(super) fn read(&mut self, mut frame: impl FnMut(&[u8])) -> Result<(), Absurd> {
        let Some(emulator) = &mut self.emulator else { return Ok(()) };
        let mut buffer = [0; READ];
        match emulator.socket.read(&mut buffer) {
            Ok(0) => self.emulator = None,
            Ok(length) => {
                emulator.reader.feed(&buffer[..length]);
                loop {
                    match emulator.reader.next_frame() {
                        Ok(Some(whole)) => frame(whole),
                        Ok(None) => break,
                        Err(absurd) => {
                            self.emulator = None;
                            return Err(absurd);
                        }
                    }
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => self.emulator = None,
        }
        Ok(())
    }

    /// Queues a frame; `false` when too many wait.
    pub(super) fn send(&mut self, frame: &[u8]) -> bool {
        let Some(emulator) = &mut self.emulator else { return true };
        if emulator.waiting.len() == WAITING {
            return false;
        }
        let mut bytes = Vec::with_capacity(frame.len() + 4);
        write(frame, &mut bytes);
        emulator.waiting.push_back(bytes);
        true
    }

    /// Writes what the emulator takes.
    pub(super) fn flush(&mut self) {
        let Some(emulator) = &mut self.emulator else { return };
        while let Some(first) = emulator.waiting.front() {
            match emulator.socket.write(&first[emulator.written..]) {
                Ok(length) => emulator.written += length,
                Err(error) if is_passing(&error) => return,
                Err(_) => {
                    self.emulator = None;
                    return;
                }
            }
            if emulator.written == first.len() {
                emulator.waiting.pop_front();
                emulator.written = 0;
            }
        }
    }
}

/// Whether an error says no more than "not now".
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
