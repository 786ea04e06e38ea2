//! A client that has closed its sending half still gets the answer to what it sent.
//!
//! The HTTP library takes the end of the input for the end of the client. That is right for a watch, and wrong while a change
//! waits for the disk: the end is held back until the answer is made, and seen then.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Debug, Default)]
struct State {
    busy: bool,
    /// Whom to tell that the end, which was held back, can be seen now.
    reader: Option<Waker>,
}

/// Whether the client waits for an answer.
#[derive(Clone, Debug, Default)]
pub struct Busy(Arc<Mutex<State>>);

impl Busy {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It does from now on.
    pub fn begin(&self) {
        self.state().busy = true;
    }

    /// It does no longer.
    pub fn end(&self) {
        let reader = {
            let mut state = self.state();
            state.busy = false;
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// A stream whose end is not seen while there is something to answer.
#[derive(Debug)]
pub struct Halves<S> {
    stream: S,
    busy: Busy,
}

impl<S> Halves<S> {
    /// Holds back the end of `stream` while `busy` says so.
    pub fn new(stream: S, busy: Busy) -> Self {
        Self { stream, busy }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Halves<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let ended = matches!(polled, Poll::Ready(Ok(()))) && buffer.filled().len() == before;
        if ended && buffer.remaining() > 0 {
            let mut state = self.busy.state();
            if state.busy {
                state.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Halves<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
