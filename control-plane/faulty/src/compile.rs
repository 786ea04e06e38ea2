//! Builds the shadow with cargo, and says which woven mutants the compiler refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::shadow::PROGRAMS;
use crate::weave;

/// Where the shadow is, and where cargo builds it.
#[derive(Debug, Clone)]
pub struct Yard {
    /// The shadow workspace.
    pub shadow: PathBuf,
    /// Its target folder.
    pub target: PathBuf,
    /// What the names of its programs end with.
    pub suffix: &'static str,
}

/// The programs of a build.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The harness, with the simulated rig in it.
    pub rigor: PathBuf,
    /// The control plane.
    pub control_plane: PathBuf,
    /// The kubelet as a process.
    pub kubelet_host: PathBuf,
    /// The second scheduler as a process.
    pub toy_scheduler: PathBuf,
}

/// What came of a build.
#[derive(Debug)]
pub enum Built {
    /// All of it.
    Programs(Programs),
    /// The marked mutants that the compiler refuses, with its words.
    Refused(BTreeMap<usize, String>),
}

impl Yard {
    fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new("cargo");
        // What is woven in is not to be linted, and nobody debugs it; little is compiled as one, so that a change costs little.
        cargo
            .arg(command)
            .args(["--release", "--quiet", "--manifest-path"])
            .arg(self.shadow.join("Cargo.toml"))
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_INCREMENTAL", "true")
            .stdin(Stdio::null());
        cargo
    }

    /// Builds the programs.
    ///
    /// # Errors
    /// cargo cannot be run, or it refuses code that is no marked mutant's; with its words.
    pub fn build(&self) -> Result<Built> {
        let mut cargo = self.cargo("build");
        for program in PROGRAMS {
            cargo.args(["--bin", &format!("{program}-{}", self.suffix)]);
        }
        let output = cargo
            .args(["--keep-going", "--message-format=json"])
            .stderr(Stdio::inherit())
            .output()
            .context("cargo cannot be run")?;
        if output.status.success() {
            let program = |name: &str| self.target.join("release").join(format!("{name}-{}", self.suffix));
            return Ok(Built::Programs(Programs {
                rigor: program("rigor"),
                control_plane: program("control-plane"),
                kubelet_host: program("kubelet-host"),
                toy_scheduler: program("toy-scheduler"),
            }));
        }
        let (mut refused, mut unexplained) = (BTreeMap::new(), Vec::new());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(Line { message: Some(message) }) = serde_json::from_str::<Line>(line) else { continue };
            if message.level != "error" || message.spans.is_empty() {
                continue;
            }
            let numbers: BTreeSet<usize> =
                message.spans.iter().filter_map(|span| mutant_at(&self.shadow, span)).collect();
            if numbers.is_empty() {
                unexplained.push(message.rendered);
            }
            for number in numbers {
                refused.entry(number).or_insert_with(|| message.message.clone());
            }
        }
        if refused.is_empty() {
            bail!(
                "the shadow workspace {} does not compile; correct the fault whose code this is:\n{}",
                self.shadow.display(),
                unexplained.join("\n")
            );
        }
        Ok(Built::Refused(refused))
    }
}

fn mutant_at(shadow: &Path, span: &Span) -> Option<usize> {
    let path = Path::new(&span.file_name);
    let path = if path.is_absolute() { path.to_owned() } else { shadow.join(path) };
    weave::marked_at(&fs::read_to_string(path).ok()?, span.byte_start)
}

#[derive(Deserialize)]
struct Line {
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    level: String,
    message: String,
    #[serde(default)]
    rendered: String,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
}
