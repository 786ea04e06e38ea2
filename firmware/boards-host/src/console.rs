//! The board's console: standard output, a line at a time, each flushed before anything else happens.

use std::io::Write;
use std::panic;

/// Where console lines go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Console;

impl Console {
    /// Writes one line. A reader that went away ends the board: nobody watches it any more.
    pub fn line(self, line: &str) {
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            std::process::exit(0);
        }
    }

    /// Makes a panic a console line, as it is on a board: `PANIC …`; the process then exits with 101.
    pub fn catch_panics(self) {
        panic::set_hook(Box::new(move |info| {
            let text = info.to_string().replace('\n', " ");
            self.line(&format!("PANIC {text}"));
        }));
    }
}
