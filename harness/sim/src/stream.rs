//! Bodies of answers, read without waiting: whatever is there now, and a note when there is more.
//!
//! A body that has nothing now keeps a waker; when the server wakes it, its owner's name lands in [`Woken`], and only
//! then is it read again. So a quiet watch costs nothing.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use axum::body::Body;
use http_body::Body as _;

use crate::link::Connection;

/// Whose body it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reader {
    /// The harness's own observer of the stream with this index.
    Observer(usize),
    /// A board's connection.
    Connection(Connection),
    /// The request that the runner is waiting for.
    Runner,
    /// The second scheduler with this number.
    Scheduler(u32),
}

/// The readers whose bodies have more to give.
#[derive(Debug, Default)]
pub(crate) struct Woken(Mutex<BTreeSet<Reader>>);

impl Woken {
    /// Takes all of them, in the order of [`Reader`].
    pub(crate) fn take(&self) -> BTreeSet<Reader> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn insert(&self, reader: Reader) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(reader);
    }
}

struct Note {
    reader: Reader,
    woken: Arc<Woken>,
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.woken.insert(self.reader);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.insert(self.reader);
    }
}

/// A body that is being read.
#[derive(Debug)]
pub(crate) struct Stream {
    body: Body,
    waker: Waker,
}

/// How far a body was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reached {
    /// There may be more later.
    Pause,
    /// There is no more.
    End,
    /// The server broke it off.
    Broken(String),
}

impl Stream {
    /// Reads `body` on behalf of `reader`.
    pub(crate) fn new(body: Body, reader: Reader, woken: &Arc<Woken>) -> Self {
        Self { body, waker: Waker::from(Arc::new(Note { reader, woken: Arc::clone(woken) })) }
    }

    /// Hands out all frames that are there.
    pub(crate) fn read(&mut self, mut each: impl FnMut(&[u8])) -> Reached {
        let mut context = Context::from_waker(&self.waker);
        loop {
            match Pin::new(&mut self.body).poll_frame(&mut context) {
                Poll::Pending => return Reached::Pause,
                Poll::Ready(None) => return Reached::End,
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        each(data);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Reached::Broken(error.to_string()),
            }
        }
    }

    /// How long the body is, where that is known before it is read.
    pub(crate) fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }
}

/// Splits a byte stream at line ends.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Takes bytes and hands out each line that they complete, without its end; empty lines are left out.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if self.partial.is_empty() {
                each_unless_empty(line, &mut each);
            } else {
                self.partial.extend_from_slice(line);
                each_unless_empty(&std::mem::take(&mut self.partial), &mut each);
            }
            rest = after;
        }
        self.partial.extend_from_slice(rest);
    }
}

fn each_unless_empty(line: &[u8], each: &mut impl FnMut(&[u8])) {
    if !line.trim_ascii().is_empty() {
        each(line);
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Reached, Reader, Stream, Woken};
    use axum::body::Body;
    use futures_util::stream;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use std::task::{Poll, Waker};

    #[test]
    fn lines_come_whole_however_the_bytes_are_split() {
        let bytes = "{\"a\":1}\n\n{\"b\":\"\u{e4}\"}\n{\"c\"".as_bytes();
        for size in 1..=bytes.len() {
            let mut lines = Lines::default();
            let mut whole = Vec::new();
            for piece in bytes.chunks(size) {
                lines.feed(piece, |line| whole.push(String::from_utf8(line.to_vec()).unwrap()));
            }
            assert_eq!(whole, ["{\"a\":1}", "{\"b\":\"\u{e4}\"}"], "in pieces of {size}");
            assert_eq!(lines.partial, b"{\"c\"");
        }
    }

    #[test]
    fn a_body_is_read_again_only_when_it_was_woken() {
        let ready: Arc<Mutex<(Vec<&str>, Option<Waker>)>> = Arc::default();
        let source = ready.clone();
        let body = Body::from_stream(stream::poll_fn(move |context| {
            let mut source = source.lock().unwrap();
            if let Some(line) = source.0.pop() {
                return Poll::Ready(Some(Ok::<_, Infallible>(line)));
            }
            source.1 = Some(context.waker().clone());
            Poll::Pending
        }));
        let woken = Arc::new(Woken::default());
        let mut stream = Stream::new(body, Reader::Runner, &woken);
        assert_eq!((stream.length(), stream.read(|_| ())), (None, Reached::Pause));
        assert!(woken.take().is_empty());
        let waker = {
            let mut ready = ready.lock().unwrap();
            ready.0.push("line");
            ready.1.take().unwrap()
        };
        waker.wake();
        assert_eq!(woken.take().into_iter().collect::<Vec<_>>(), [Reader::Runner]);
        let mut read = Vec::new();
        assert_eq!(stream.read(|bytes| read.extend_from_slice(bytes)), Reached::Pause);
        assert_eq!(read, b"line");
    }
}
