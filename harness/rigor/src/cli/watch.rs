//! `rigor run --watch`: on each change of a file, or of what it names, it is linted and run again.
//!
//! Files are asked for their signature four times a second, which costs nothing and does not mind editors that put a new
//! file in the place of the old one. It ends on Ctrl-C, at which the simulated rig leaves nothing behind.

use super::run::Run;
use super::{Trouble, Where, say, tell};
use crate::exit::Exit;
use crate::lint::{Chosen, Found, Severity, lint};
use crate::suite::{ScenarioFile, Suites, beside};
use rigor_model::Scenario;
use rigor_rigs::clock::Clock;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(250);

/// What tells one state of a file from another: size and time of its last change; nothing while it is not there.
type Signature = Vec<(PathBuf, Option<(u64, SystemTime)>)>;

/// Runs until it is ended from outside.
///
/// # Errors
/// The suites cannot be read, or nothing is named.
pub(super) fn watch(run: &Run, what: &[String], place: &Where) -> Result<Exit, Trouble> {
    let suites = Suites::new(place.suites());
    let chosen = suites.chosen(what)?;
    if what.is_empty() || chosen.is_empty() {
        return Err(Trouble::Input(miette::miette!(
            help = "name the scenario you are writing: rigor run --watch suites/AREA/NAME.yaml",
            "nothing is named to be watched"
        )));
    }
    let names: Vec<String> = chosen.iter().map(|file| file.path().display().to_string()).collect();
    loop {
        // What a file names is looked up anew each time: it may have changed as well.
        let watched = watched(&chosen, place);
        let before = signature(&watched);
        if std::io::stdout().is_terminal() {
            tell("\u{1b}[2J\u{1b}[H");
        }
        once(run, &chosen, &suites, place);
        say(&format!("watching {} and what it names; Ctrl-C ends", names.join(", ")));
        settle(&watched, &before);
    }
}

/// Waits for a change, and then until nothing changes any more and the files are there.
fn settle(watched: &BTreeSet<PathBuf>, before: &Signature) {
    let mut last = before.clone();
    let mut changed = false;
    loop {
        Clock::sleep(LOOK);
        let now = signature(watched);
        changed |= now != *before;
        if changed && now == last && now.iter().any(|(_, file)| file.is_some()) {
            return;
        }
        last = now;
    }
}

fn signature(watched: &BTreeSet<PathBuf>) -> Signature {
    watched
        .iter()
        .map(|path| {
            let told = std::fs::metadata(path).ok();
            let told = told.and_then(|told| Some((told.len(), told.modified().ok()?)));
            (path.clone(), told)
        })
        .collect()
}

/// The files, what they name, the catalogue and the rigs.
fn watched(chosen: &[ScenarioFile], place: &Where) -> BTreeSet<PathBuf> {
    let suites = Suites::new(place.suites());
    let mut watched: BTreeSet<PathBuf> = chosen.iter().map(|file| file.path().to_owned()).collect();
    watched.insert(place.suites().join("requirements.yaml"));
    watched.extend(super::rig_files(&place.rigs()));
    let Ok(catalogue) = suites.catalogue() else { return watched };
    for file in chosen {
        let Ok(source) = std::fs::read_to_string(file.path()) else { continue };
        let folder = file.path().parent().unwrap_or(Path::new("."));
        let named = RefCell::new(BTreeSet::new());
        let read = beside(file.path());
        let noted = |name: &str| {
            named.borrow_mut().insert(folder.join(name));
            read(name)
        };
        let _ = Scenario::parse(&file.path().display().to_string(), &source, &catalogue, &noted);
        watched.extend(named.into_inner());
    }
    watched
}

/// Lints, and where nothing is wrong, runs.
fn once(run: &Run, chosen: &[ScenarioFile], suites: &Suites, place: &Where) {
    let found = suites.catalogue().map(|catalogue| {
        let files = Chosen { scenarios: chosen.to_vec(), ..Chosen::default() };
        lint(&files, suites, &catalogue, &place.rigs())
    });
    match found {
        Err(error) => eprintln!("{error}"),
        Ok(found) => {
            found.iter().for_each(told);
            if found.iter().any(|one| one.severity == Severity::Error) {
                return;
            }
            match run.once() {
                Ok(_) => {}
                Err(Trouble::Input(report)) => eprintln!("{report:?}"),
                Err(Trouble::Infra(error)) => eprintln!("rigor: {}", error.whole()),
            }
        }
    }
}

fn told(found: &Found) {
    match found.severity {
        Severity::Error => say(&format!("{:?}", miette::Report::from(found.mistakes.clone()))),
        Severity::Warning => {
            for one in found.findings() {
                say(&format!("{}:{}:{}: warning: {}", one.file, one.line, one.column, one.message));
            }
        }
    }
}
