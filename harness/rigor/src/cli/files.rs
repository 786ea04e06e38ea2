//! `rigor import`, and reading and writing histories.

use super::Trouble;
use crate::exit::Exit;
use crate::import::import;
use clap::{Args, ValueEnum};
use rigor_model::Constants;
use rigor_trace::{Fact, History, Record};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Turn a history that was recorded elsewhere into ours.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// How the recording is written.
    #[arg(long, value_enum, default_value = "watch-jsonl")]
    from: Format,
    /// The recording.
    file: PathBuf,
    /// Where the history goes.
    #[arg(long, value_name = "EVENTS")]
    out: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Watch events, requests and marks, one a line, times in seconds.
    WatchJsonl,
}

impl Import {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let Format::WatchJsonl = self.from;
        let recording = read(&self.file)?;
        let name = self.file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let history = import(&name, &recording, &Constants::default()).map_err(|error| {
            Trouble::Input(miette::miette!(
                help =
                    "a watch-jsonl recording holds RecordingStarted, Observed, Request and Mark, one a line",
                "{}, {error}",
                self.file.display()
            ))
        })?;
        write(&self.out, &history).map_err(|error| {
            Trouble::Input(miette::miette!(
                help = "name a file that can be written with --out",
                "{}: {error}",
                self.out.display()
            ))
        })?;
        println!("{} facts", history.len());
        Ok(Exit::Passed)
    }
}

fn write(path: &Path, history: &History) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for record in history.records() {
        serde_json::to_writer(&mut file, record)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

fn read(path: &Path) -> Result<String, Trouble> {
    std::fs::read_to_string(path).map_err(|error| {
        Trouble::Input(miette::miette!(help = "check the path", "{} cannot be read: {error}", path.display()))
    })
}

/// The histories in a file, which may hold those of many trials one after another.
pub(super) fn histories(path: &Path) -> Result<Vec<History>, Trouble> {
    let text = read(path)?;
    let mut histories: Vec<History> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let record: Record = serde_json::from_str(line).map_err(|error| {
            Trouble::Input(miette::miette!(
                help = "each line of a history is a record as in events.jsonl; other recordings go through rigor import",
                "{}, line {}: {error}",
                path.display(),
                index + 1
            ))
        })?;
        if histories.is_empty() || matches!(record.fact, Fact::TrialStarted { .. }) {
            histories.push(History::new());
        }
        if let Some(history) = histories.last_mut() {
            history.push(record.at, record.fact);
        }
    }
    Ok(histories)
}
