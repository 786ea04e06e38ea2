//! A mutant, whoever thought it up, and the shadow that holds all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::cargo_mutants::{self, Mutant as Drawn, lasting_name};
use crate::compile::{Built, Programs, Yard};
use crate::digest;
use crate::fault::{Fault, Kind};
use crate::ledger::{File, Line, Verdict};
use crate::shadow::{self, Woven};
use crate::weave;

/// After so many rounds of taking away what does not compile, something else is wrong.
const ROUNDS: usize = 12;

/// Something that is broken on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// What it is chosen by.
    pub id: String,
    /// Where it comes from.
    pub kind: Kind,
    /// What goes wrong.
    pub description: String,
    /// The requirements that it is meant to break.
    pub requirements: Vec<String>,
    /// The sources that it mutates, with their digests.
    pub files: Vec<File>,
    /// The digest of the mutant itself.
    pub digest: String,
    /// Why nothing can see it, if a person has said so.
    pub equivalent: Option<String>,
    /// Whether only requests that overlap show it.
    pub overlapping: bool,
}

impl Mutant {
    /// A hand-made one.
    ///
    /// # Errors
    /// A source of it cannot be read.
    pub fn of_fault(root: &Path, fault: &Fault) -> Result<Self> {
        let names: BTreeSet<&str> = fault.edits.iter().map(|edit| edit.file.as_str()).collect();
        Ok(Self {
            id: fault.id.clone(),
            kind: fault.kind,
            description: fault.goes_wrong.clone(),
            requirements: fault.breaks.clone(),
            files: names.into_iter().map(|name| file(root, name)).collect::<Result<_>>()?,
            digest: fault.digest.clone(),
            equivalent: fault.equivalent.clone(),
            overlapping: fault.overlapping,
        })
    }

    /// One of cargo-mutants, of which `equivalent` tells by names without places.
    ///
    /// # Errors
    /// Its source cannot be read.
    pub fn of_drawn(root: &Path, drawn: &Drawn, equivalent: &BTreeMap<String, String>) -> Result<Self> {
        let (_, what) = drawn.name.split_once(": ").unwrap_or(("", &drawn.name));
        Ok(Self {
            id: drawn.name.clone(),
            kind: Kind::Cargo,
            description: what.to_owned(),
            requirements: Vec::new(),
            files: vec![file(root, &drawn.file)?],
            digest: drawn.digest.clone(),
            equivalent: equivalent.get(&lasting_name(&drawn.name)).cloned(),
            overlapping: false,
        })
    }

    /// Its line in the ledger, before anything is known of it but the digest of the scenarios.
    #[must_use]
    pub fn line(&self, suites: &str, seed: u64) -> Line {
        Line {
            id: self.id.clone(),
            kind: self.kind,
            description: self.description.clone(),
            requirements: self.requirements.clone(),
            files: self.files.clone(),
            mutant: self.digest.clone(),
            suites: suites.to_owned(),
            verdict: Verdict::Survived,
            how: None,
            reason: None,
            trials: Vec::new(),
            broke: Vec::new(),
            rig: String::new(),
            seed,
            seconds: 0.0,
        }
    }
}

fn file(root: &Path, path: &str) -> Result<File> {
    Ok(File { path: path.to_owned(), sha256: digest::of_file(&root.join(path))? })
}

/// Where it is said which mutants of cargo-mutants nothing can see, from the root of the repository.
pub const EQUIVALENT: &str = "control-plane/faulty/equivalent.yaml";

/// The reasons of [`EQUIVALENT`], by name without place.
///
/// # Errors
/// The file cannot be read.
pub fn equivalent(root: &Path) -> Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root.join(EQUIVALENT))
        .with_context(|| format!("{EQUIVALENT} cannot be read"))?;
    match serde_saphyr::from_str(&text) {
        Ok(reasons) => Ok(reasons),
        Err(error) => bail!("{EQUIVALENT}: {}", error.without_snippet()),
    }
}

/// A shadow that is built, and what it holds.
#[derive(Debug)]
pub struct Shadow {
    /// The programs.
    pub programs: Programs,
    /// Of cargo-mutants, those that compile.
    pub woven: Vec<Drawn>,
    /// Of cargo-mutants, those that do not, with the compiler's words.
    pub refused: Vec<(Drawn, String)>,
}

/// Builds a shadow with all `faults` and `count` of `drawn`: the first ones that compile.
///
/// # Errors
/// A fault does not fit or does not compile, or cargo fails otherwise.
pub fn build(root: &Path, yard: &Yard, faults: &[Fault], drawn: Vec<Drawn>, count: usize) -> Result<Shadow> {
    let hand_made = Woven::of(root, faults)?;
    let mut waiting: Vec<Drawn> = drawn.into_iter().rev().collect();
    let mut chosen: Vec<Drawn> = Vec::new();
    let mut refused: Vec<(Drawn, String)> = Vec::new();
    for _ in 0..ROUNDS {
        while chosen.len() < count {
            let Some(next) = waiting.pop() else { break };
            if fits(root, &hand_made, &next)? {
                chosen.push(next);
            }
        }
        let woven = with(&hand_made, &chosen);
        shadow::write(root, &yard.shadow, &woven, yard.suffix)?;
        let wrong = match yard.build()? {
            Built::Programs(programs) => return Ok(Shadow { programs, woven: chosen, refused }),
            Built::Refused(wrong) => wrong,
        };
        let first = hand_made.names.len() + 1;
        let mut number = first;
        chosen.retain(|drawn| {
            let words = wrong.get(&number);
            number += 1;
            refused.extend(words.map(|words| (drawn.clone(), words.clone())));
            words.is_none()
        });
    }
    bail!(
        "after {ROUNDS} rounds there are still mutants of cargo-mutants that do not compile; draw others with --seed"
    )
}

/// Whether a mutant can be woven in beside the hand-made faults.
fn fits(root: &Path, hand_made: &Woven, drawn: &Drawn) -> Result<bool> {
    let Some(edits) = hand_made.edits.get(&drawn.file) else { return Ok(true) };
    let source = std::fs::read_to_string(root.join(&drawn.file))
        .with_context(|| format!("{} cannot be read", drawn.file))?;
    let mut edits = edits.clone();
    edits.push(drawn.placed(usize::MAX));
    Ok(weave::weave(&source, &edits).is_ok())
}

fn with(hand_made: &Woven, chosen: &[Drawn]) -> Woven {
    let mut woven = Woven { edits: hand_made.edits.clone(), names: hand_made.names.clone() };
    for drawn in chosen {
        woven.names.push(drawn.name.clone());
        let placed = drawn.placed(woven.names.len());
        woven.edits.entry(drawn.file.clone()).or_default().push(placed);
    }
    woven
}

/// The shard of the day: up to twice `count` of what cargo-mutants lists, without what `taken` names.
///
/// # Errors
/// cargo-mutants is missing or fails.
pub fn shard(root: &Path, seed: u64, count: usize, taken: &BTreeSet<String>) -> Result<Vec<Drawn>> {
    Ok(cargo_mutants::drawn(&cargo_mutants::list(root)?, seed, count * 2, taken))
}
