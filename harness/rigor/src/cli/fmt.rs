//! `rigor fmt`: one layout for scenario and rig files.

use super::lint::files_of;
use super::{Trouble, Where, say, tell};
use crate::exit::Exit;
use clap::Args;
use rigor_model::format::format;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Lay out scenario and rig files; what they mean, and their comments, stay.
///
/// Two blanks a level, keys in the order of the reference (a step's verb before its `as`), one blank after `:` and `,`, no
/// blanks at the end of a line. Quotes, block and flow style, and the order inside a verb stay as they were written. A file
/// with a mistake of YAML is left alone and the mistake told.
#[derive(Debug, Args)]
pub(super) struct Fmt {
    /// Areas, folders or files; all scenarios and rigs if left out; `-` reads standard input and writes standard output.
    #[arg(value_name = "SUITE|FILE")]
    what: Vec<String>,
    /// Only say which files would change, and end with 2 if there is one.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    place: Where,
}

impl Fmt {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        if self.what == ["-"] {
            return self.standard_input();
        }
        let (mut odd, mut broken) = (0, 0);
        let files = files_of(&self.what, &self.place)?;
        for file in &files {
            let shown = file.display().to_string();
            let source = read(file)?;
            match format(&shown, &source) {
                Ok(text) if text == source => {}
                Ok(text) => {
                    odd += 1;
                    if self.check {
                        say(&format!("{shown} is not laid out"));
                    } else {
                        write(file, &text)?;
                        say(&format!("{shown} laid out"));
                    }
                }
                Err(mistakes) => {
                    broken += 1;
                    eprintln!("{:?}", miette::Report::from(mistakes));
                }
            }
        }
        if self.check && odd > 0 {
            say("run rigor fmt");
        }
        Ok(if broken > 0 || (self.check && odd > 0) { Exit::BadInput } else { Exit::Passed })
    }

    fn standard_input(&self) -> Result<Exit, Trouble> {
        let mut source = String::new();
        std::io::stdin().read_to_string(&mut source).map_err(Trouble::input)?;
        let text = format("standard input", &source).map_err(|mistakes| Trouble::Input(mistakes.into()))?;
        if !self.check {
            tell(&text);
        }
        Ok(if self.check && text != source { Exit::BadInput } else { Exit::Passed })
    }
}

fn read(file: &Path) -> Result<String, Trouble> {
    std::fs::read_to_string(file).map_err(|error| {
        Trouble::Input(miette::miette!(
            help = "check the path; files are UTF-8",
            "{}: {error}",
            file.display()
        ))
    })
}

/// Puts a new file in the place of the old one, so that whoever reads meanwhile reads one of the two, whole.
fn write(file: &Path, text: &str) -> Result<(), Trouble> {
    // What a link points at is laid out, not the link.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let mut beside = target.clone().into_os_string();
    beside.push(".fmt");
    let beside = PathBuf::from(beside);
    let written = std::fs::metadata(&target)
        .and_then(|old| std::fs::write(&beside, text).map(|()| old))
        .and_then(|old| std::fs::set_permissions(&beside, old.permissions()))
        .and_then(|()| std::fs::rename(&beside, &target));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        Trouble::Input(miette::miette!(
            help = "make the file and its folder writable",
            "{}: {error}",
            file.display()
        ))
    })
}
