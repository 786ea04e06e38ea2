//! Lines to a file or to standard output, written by one thread from a bounded queue.
//!
//! A request waits until its line is written, so whoever has an answer finds the line; but never for long. What a full disk, a
//! full queue or a closed pipe lose is counted, and the requests go on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use prometheus::IntCounter;
use tokio::sync::oneshot;

use super::{AuditSink, Written};
use crate::clock::within;
use crate::observe::Metrics;

/// Bytes that may wait for the writer.
const QUEUE: usize = 8 * 1024 * 1024;
/// So long a request waits for its line at most.
const PATIENCE: Duration = Duration::from_millis(100);

/// An audit log that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the audit log {path} cannot be opened ({error}): check --audit-log-path; `-` is standard output")]
pub struct AuditFileError {
    path: PathBuf,
    error: io::Error,
}

enum Order {
    Line(String, oneshot::Sender<()>),
    Reopen,
    Drain(oneshot::Sender<()>),
}

/// The path that stands for standard output.
pub const STDOUT: &str = "-";

/// The place that `--audit-log-path` names, opened.
#[derive(Debug)]
pub struct AuditOutput {
    path: PathBuf,
    output: Output,
}

impl AuditOutput {
    /// Opens the file to append to, readable by its owner only, or standard output for `-`.
    ///
    /// # Errors
    /// [`AuditFileError`] when it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, AuditFileError> {
        let output = Output::open(path).map_err(|error| AuditFileError { path: path.into(), error })?;
        Ok(Self { path: path.into(), output })
    }
}

/// The sink of `--audit-log-path`.
#[derive(Debug)]
pub struct AuditFile {
    orders: Sender<Order>,
    waiting: Arc<AtomicUsize>,
    /// A line was waited for in vain, and none has been written since: nobody waits.
    late: Arc<AtomicBool>,
    lost: IntCounter,
    patience: Duration,
}

impl AuditFile {
    /// Begins to write there; what is lost is counted in `metrics`.
    ///
    /// # Errors
    /// [`AuditFileError`] when there is no thread for it.
    pub fn start(output: AuditOutput, metrics: &Metrics) -> Result<Self, AuditFileError> {
        let AuditOutput { path, output } = output;
        let (orders, incoming) = channel();
        let lost = metrics.audit_lost.with_label_values(&["log"]);
        let (waiting, late) = (Arc::default(), Arc::default());
        let sink = Self { orders, waiting, late, lost: lost.clone(), patience: PATIENCE };
        let (waiting, late) = (Arc::clone(&sink.waiting), Arc::clone(&sink.late));
        let writer = Writer { path: path.clone(), output, torn: false, failing: false, lost, waiting, late };
        let thread = std::thread::Builder::new().name("audit-writer".into());
        thread.spawn(move || writer.run(&incoming)).map_err(|error| AuditFileError { path, error })?;
        Ok(sink)
    }

    /// Opens the path again, for whoever has moved the file away. Until then lines go to the moved one.
    pub fn reopen(&self) {
        drop(self.orders.send(Order::Reopen));
    }

    /// Completes when all lines so far are written, or nobody writes any more.
    pub async fn drained(&self) {
        let (drained, done) = oneshot::channel();
        if self.orders.send(Order::Drain(drained)).is_ok() {
            drop(done.await);
        }
    }
}

impl AuditSink for AuditFile {
    fn write(&self, mut line: String) -> Written {
        line.push('\n');
        let (written, done) = oneshot::channel();
        let length = line.len();
        let before = self.waiting.fetch_add(length, Ordering::SeqCst);
        if before + length > QUEUE || self.orders.send(Order::Line(line, written)).is_err() {
            self.waiting.fetch_sub(length, Ordering::SeqCst);
            self.lost.inc();
            return Box::pin(std::future::ready(()));
        }
        if self.late.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(()));
        }
        let (late, patience) = (Arc::clone(&self.late), self.patience);
        Box::pin(async move {
            if within(patience, done).await.is_none() {
                late.store(true, Ordering::SeqCst);
            }
        })
    }
}

#[derive(Debug)]
enum Output {
    Stdout(io::Stdout),
    File(File),
}

impl Output {
    fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new(STDOUT) {
            return Ok(Self::Stdout(io::stdout()));
        }
        OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(Self::File)
    }

    /// Writes all of it, or says how much of it went out before the failure.
    fn write(&mut self, text: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut sent = 0;
        while sent < text.len() {
            let written = match self {
                Self::Stdout(out) => out.write(&text[sent..]),
                Self::File(file) => file.write(&text[sent..]),
            };
            match written {
                Ok(0) => return Err((sent, io::ErrorKind::WriteZero.into())),
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((sent, error)),
            }
        }
        let flushed = match self {
            Self::Stdout(out) => out.flush(),
            Self::File(_) => Ok(()),
        };
        flushed.map_err(|error| (sent, error))
    }
}

struct Writer {
    path: PathBuf,
    output: Output,
    /// The last line is there in part only.
    torn: bool,
    failing: bool,
    lost: IntCounter,
    waiting: Arc<AtomicUsize>,
    late: Arc<AtomicBool>,
}

impl Writer {
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            match order {
                Order::Line(line, written) => {
                    self.line(&line);
                    self.waiting.fetch_sub(line.len(), Ordering::SeqCst);
                    self.late.store(false, Ordering::SeqCst);
                    // Nobody may be waiting any more, here and below.
                    let _: Result<(), ()> = written.send(());
                }
                Order::Reopen => self.reopen(),
                Order::Drain(drained) => {
                    let _: Result<(), ()> = drained.send(());
                }
            }
        }
    }

    fn line(&mut self, line: &str) {
        // The rest of a torn line must not become the beginning of this one.
        let text = if self.torn { format!("\n{line}") } else { line.to_owned() };
        match self.output.write(text.as_bytes()) {
            Ok(()) => {
                self.torn = false;
                if std::mem::replace(&mut self.failing, false) {
                    tracing::info!(path = %self.path.display(), "the audit log can be written again");
                }
            }
            Err((sent, error)) => {
                self.torn |= sent > 0;
                self.lost.inc();
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::error!(path = %self.path.display(), %error, "the audit log cannot be written");
                }
            }
        }
    }

    fn reopen(&mut self) {
        match Output::open(&self.path) {
            Ok(output) => {
                (self.output, self.torn) = (output, false);
                tracing::info!(path = %self.path.display(), "the audit log was opened again");
            }
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "the audit log stays where it was");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        std::fs::read_to_string(path).unwrap().lines().map(Into::into).collect()
    }

    #[tokio::test]
    async fn a_line_is_in_the_file_when_it_is_written_and_in_the_new_one_after_a_move() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("audit.log"), dir.path().join("audit.1"));
        let mut sink = AuditFile::start(AuditOutput::open(&path).unwrap(), &Metrics::new()).unwrap();
        // Whatever holds up the writing thread, short of a hang.
        sink.patience = Duration::from_secs(60);
        sink.write("one".into()).await;
        assert_eq!(lines(&path), ["one"]);
        std::fs::rename(&path, &moved).unwrap();
        sink.write("two".into()).await;
        sink.reopen();
        sink.write("three".into()).await;
        assert_eq!((lines(&moved), lines(&path)), (vec!["one".into(), "two".into()], vec!["three".into()]));
    }

    #[tokio::test]
    async fn what_a_full_disk_loses_is_counted_and_nobody_waits_for_it() {
        let metrics = Metrics::new();
        let lost = || metrics.audit_lost.with_label_values(&["log"]).get();
        // Each write there fails with ENOSPC.
        let sink = AuditFile::start(AuditOutput::open(Path::new("/dev/full")).unwrap(), &metrics).unwrap();
        sink.write("one".into()).await;
        sink.write("two".into()).await;
        sink.drained().await;
        assert_eq!(lost(), 2);
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_fills_the_queue_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let metrics = Metrics::new();
        let sink = AuditFile::start(AuditOutput::open(&path).unwrap(), &metrics).unwrap();
        let line = "x".repeat(1024 * 1024);
        for _ in 0..12 {
            sink.write(line.clone()).await;
        }
        // One is with the writer, and as many wait as fit.
        let lost = metrics.audit_lost.with_label_values(&["log"]).get();
        assert!((3..=5).contains(&lost), "{lost}");
        assert!(sink.waiting.load(Ordering::SeqCst) <= QUEUE);
        drop(reader);
        sink.drained().await;
    }
}
