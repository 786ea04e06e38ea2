//! A fault as a file: what goes wrong, which requirements that breaks, and the code to put in place of the sound one.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::digest;

/// Where a mutant comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A fault of the control plane, thought up by a person.
    HandMade,
    /// A fault of the kubelet, thought up by a person.
    Firmware,
    /// One that cargo-mutants thinks up.
    Cargo,
}

impl Kind {
    /// Every kind, in the order in which they are run.
    pub const ALL: [Self; 3] = [Self::HandMade, Self::Firmware, Self::Cargo];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::HandMade => "hand-made",
            Self::Firmware => "firmware",
            Self::Cargo => "cargo",
        })
    }
}

/// One replacement of sound code.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The source that is replaced, from the root of the repository.
    pub file: String,
    /// Text before the sound code, where that alone is not the only one of its kind: the first after it is meant.
    #[serde(default)]
    pub within: Option<String>,
    /// The sound code. Only its words count, not how they are laid out.
    pub sound: String,
    /// What stands there when the fault is on; with the words FAULT or SOUND in it, what stands there in any case.
    pub broken: String,
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The stem of its file; no other fault has it.
    pub id: String,
    /// By the folder it lies in.
    pub kind: Kind,
    /// One sentence.
    pub goes_wrong: String,
    /// Which systems had the like.
    pub like: String,
    /// Ids of the requirements that it breaks.
    pub breaks: Vec<String>,
    /// Why nothing that a client or the bench can observe differs, where that turned out so.
    pub equivalent: Option<String>,
    /// Whether only requests that overlap show it, which those of the simulated rig never do.
    pub overlapping: bool,
    /// What is replaced.
    pub edits: Vec<Edit>,
    /// SHA-256 of its file.
    pub digest: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FaultFile {
    goes_wrong: String,
    like: String,
    breaks: Vec<String>,
    #[serde(default)]
    equivalent: Option<String>,
    #[serde(default)]
    overlapping: bool,
    edits: Vec<Edit>,
}

/// The folder of the faults, from the root of the repository.
pub const FOLDER: &str = "control-plane/faulty/faults";

/// All faults of the repository at `root`, by id.
///
/// # Errors
/// A file cannot be read, lacks something, or has the name of another.
pub fn load(root: &Path) -> Result<Vec<Fault>> {
    let mut files = Vec::new();
    yaml_files(&root.join(FOLDER), &mut files)?;
    let mut faults = files.iter().map(|file| read(root, file)).collect::<Result<Vec<_>>>()?;
    faults.sort_by(|one, other| one.id.cmp(&other.id));
    for pair in faults.windows(2) {
        let [one, other] = pair else { continue };
        ensure!(one.id != other.id, "two faults are called {}: rename one of the files", one.id);
    }
    Ok(faults)
}

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("{} cannot be listed", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("{} cannot be listed", folder.display()))?.path();
        if path.is_dir() {
            yaml_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    Ok(())
}

fn read(root: &Path, path: &Path) -> Result<Fault> {
    let shown = path.strip_prefix(root).unwrap_or(path).display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{shown} cannot be read"))?;
    let file: FaultFile = match serde_saphyr::from_str(&text) {
        Ok(file) => file,
        Err(error) => bail!("{shown}: {}", error.without_snippet()),
    };
    ensure!(!file.edits.is_empty(), "{shown}: `edits` is empty: say what to replace");
    ensure!(!file.breaks.is_empty(), "{shown}: `breaks` is empty: name the requirements that it breaks");
    for (name, said) in [("goes-wrong", &file.goes_wrong), ("like", &file.like)] {
        ensure!(!said.trim().is_empty(), "{shown}: `{name}` is empty: say it in a sentence");
    }
    let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_firmware = path.parent().is_some_and(|folder| folder.ends_with("firmware"));
    Ok(Fault {
        id,
        kind: if is_firmware { Kind::Firmware } else { Kind::HandMade },
        goes_wrong: file.goes_wrong.trim().to_owned(),
        like: file.like,
        breaks: file.breaks,
        equivalent: file.equivalent,
        overlapping: file.overlapping,
        edits: file.edits,
        digest: digest::of(text.as_bytes()),
    })
}
