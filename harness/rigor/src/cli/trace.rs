//! `rigor trace`: a run's history as a timeline in the terminal.

use super::files::histories;
use super::{Trouble, Where, tell};
use crate::exit::Exit;
use crate::suite::Suites;
use crate::terminal::Style;
use crate::timeline::{Layout, Wanted, missing, timeline};
use clap::Args;
use rigor_model::{Scenario, duration};
use rigor_trace::jsonl::trial_of;
use rigor_trace::{History, Micros};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Show a run's history as a timeline: steps, acts, changes of objects, events, consoles, requests, faults.
#[derive(Debug, Args)]
pub(super) struct Trace {
    /// A report's folder, a trial's evidence, or an events.jsonl.
    #[arg(value_name = "DIR|FILE")]
    history: PathBuf,
    /// Only this trial: `scenario` or `scenario/case`, with its area or without; all of them if left out.
    #[arg(long, value_name = "NAME")]
    trial: Option<String>,
    /// Only this object, with what was asked of it and the Events about it, such as `node/a` or `Pod/lamp`.
    #[arg(long, value_name = "KIND/NAME", value_parser = object)]
    object: Option<(String, String)>,
    /// Only this board: its console, power, link and faults, its Node and its lease.
    #[arg(long, value_name = "BOARD")]
    board: Option<String>,
    /// Only from this time after the trial's start, such as `12s`.
    #[arg(long, value_name = "DURATION", value_parser = instant)]
    from: Option<Micros>,
    /// Only up to this time after the trial's start.
    #[arg(long, value_name = "DURATION", value_parser = instant)]
    to: Option<Micros>,
    /// Only while this step runs, by its number, such as `3` or `4.2.1`.
    #[arg(long, value_name = "N")]
    step: Option<String>,
    /// Also heartbeats, polls, lists, and the bodies of requests.
    #[arg(long)]
    all: bool,
    /// Cut lines here; if left out, at the terminal's width, and nowhere where there is none.
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    #[command(flatten)]
    place: Where,
}

impl Trace {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let path = history_file(&self.history);
        let histories = histories(&path)?;
        let chosen: Vec<&History> = histories
            .iter()
            .filter(|history| {
                let named = |wanted: &str| title(history).is_some_and(|title| is_named(&title, wanted));
                self.trial.as_deref().is_none_or(named)
            })
            .collect();
        if chosen.is_empty() {
            let names: Vec<String> = histories.iter().filter_map(title).collect();
            return Err(Trouble::Input(miette::miette!(
                help = format!("it holds {}", names.join(", ")),
                "{} holds no trial {}",
                path.display(),
                self.trial.as_deref().unwrap_or_default()
            )));
        }
        let terminal = std::io::stdout().is_terminal();
        let layout = Layout {
            style: Style { colour: terminal && std::env::var_os("NO_COLOR").is_none() },
            width: self.width.or_else(|| {
                let (terminal_size::Width(columns), _) =
                    terminal_size::terminal_size().filter(|_| terminal)?;
                Some(usize::from(columns))
            }),
        };
        let wanted = Wanted {
            object: self.object.clone(),
            board: self.board.clone(),
            node: None,
            from: self.from.unwrap_or_default(),
            to: self.to,
            step: self.step.clone(),
            all: self.all,
        };
        let scenarios: Vec<Option<Scenario>> = chosen.iter().map(|history| self.scenario(history)).collect();
        let chosen: Vec<(&History, Option<&Scenario>)> =
            chosen.into_iter().zip(scenarios.iter().map(Option::as_ref)).collect();
        if let Some((what, remedy)) = missing(&chosen, &wanted) {
            return Err(Trouble::Input(miette::miette!(help = remedy, "{}: {what}", path.display())));
        }
        let texts = chosen.iter().map(|(history, scenario)| timeline(history, *scenario, &wanted, layout));
        let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return Err(Trouble::Input(miette::miette!(
                help = "fewer filters show more, and --all everything",
                "{}: nothing was recorded that all of these filters let through",
                path.display()
            )));
        }
        tell(&texts.join("\n"));
        Ok(Exit::Passed)
    }

    /// The scenario of a history, for the words of its steps, if it is among the suites and can be read.
    fn scenario(&self, history: &History) -> Option<Scenario> {
        let (name, case, _) = trial_of(history)?;
        let suites = Suites::new(self.place.suites());
        let catalogue = suites.catalogue().ok()?;
        let file =
            suites.files().ok()?.into_iter().find(|file| file.path().ends_with(format!("{name}.yaml")))?;
        let scenarios = file.load(&catalogue).ok()?;
        scenarios.into_iter().find(|scenario| scenario.case.as_deref() == case)
    }
}

/// Whether a trial of that title, which says nothing of its area, is meant: by its title, or as `rigor list` shows it.
fn is_named(title: &str, wanted: &str) -> bool {
    wanted == title || wanted.split_once('/').is_some_and(|(_, name)| name == title)
}

/// The history in a folder that a run left, or the file itself.
pub(super) fn history_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("events.jsonl") } else { path.to_owned() }
}

/// What a history says it is of.
pub(super) fn title(history: &History) -> Option<String> {
    let (name, case, _) = trial_of(history)?;
    Some(case.map_or_else(|| name.to_owned(), |case| format!("{name}/{case}")))
}

fn object(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok((kind.to_owned(), name.to_owned())),
        Some(_) | None => Err("write KIND/NAME, for example node/a".to_owned()),
    }
}

fn instant(text: &str) -> Result<Micros, String> {
    duration::parse(text).map(Micros::from_duration).map_err(|error| error.to_string())
}
