//! `rigor import`, and reading and writing histories.

use super::{Trouble, say};
use crate::exit::Exit;
use crate::import::import;
use clap::{Args, ValueEnum};
use rigor_model::{Constant, Constants, duration};
use rigor_trace::{History, jsonl};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Turn a history that was recorded elsewhere into ours.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// How the recording is written.
    #[arg(long, value_enum, default_value = "watch-jsonl")]
    from: Format,
    /// The recording.
    file: PathBuf,
    /// A constant of the recorded system, such as `leaseDuration=50s`; may be given several times. The others are
    /// taken to be the true ones (15 s, 15 s, 300 s).
    #[arg(long = "constant", value_name = "NAME=DURATION", value_parser = constant)]
    constants: Vec<(Constant, Duration)>,
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
        let constants = Constants::default().overridden(&self.constants.iter().copied().collect());
        let history = import(&name, &recording, &constants).map_err(|error| {
            Trouble::Input(miette::miette!(
                help =
                    "a watch-jsonl recording holds RecordingStarted, Observed, Request and Mark, one a line",
                "{}, {error}",
                self.file.display()
            ))
        })?;
        if let (Ok(file), Ok(out)) = (self.file.canonicalize(), self.out.canonicalize())
            && file == out
        {
            return Err(Trouble::Input(miette::miette!(
                help = "name another file with --out",
                "{} is the recording itself, which would be lost",
                self.out.display()
            )));
        }
        write(&self.out, &history).map_err(|error| {
            Trouble::Input(miette::miette!(
                help = "name a file that can be written with --out",
                "{}: {error}",
                self.out.display()
            ))
        })?;
        say(&format!("{} facts", history.len()));
        Ok(Exit::Passed)
    }
}

fn constant(text: &str) -> Result<(Constant, Duration), String> {
    let (name, length) = text.split_once('=').ok_or("write NAME=DURATION, for example leaseDuration=50s")?;
    let constant = Constant::named(name).ok_or_else(|| {
        let known = Constant::ALL.map(Constant::name).join(", ");
        format!("there is no constant `{name}`; known are {known}")
    })?;
    Ok((constant, duration::parse(length).map_err(|error| error.to_string())?))
}

fn write(path: &Path, history: &History) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    jsonl::write(history, &mut file)?;
    file.flush()
}

fn read(path: &Path) -> Result<String, Trouble> {
    std::fs::read_to_string(path).map_err(|error| {
        Trouble::Input(miette::miette!(help = "check the path", "{} cannot be read: {error}", path.display()))
    })
}

/// The histories in a file, which may hold those of many trials one after another.
pub(super) fn histories(path: &Path) -> Result<Vec<History>, Trouble> {
    let wrong = |error: &dyn std::fmt::Display| {
        Trouble::Input(miette::miette!(
            help = "a history is an events.jsonl of a report; other recordings go through rigor import first",
            "{}: {error}",
            path.display()
        ))
    };
    let file = File::open(path).map_err(|error| wrong(&error))?;
    jsonl::read(BufReader::new(file)).map_err(|error| wrong(&error))
}
