//! `rigor new`: a commented skeleton that is right as it is, to be changed step by step.

use super::{Trouble, Where, say};
use crate::exit::Exit;
use crate::suite::{ScenarioFile, Suites};
use clap::Args;
use rigor_model::{Mistakes, Scenario};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write the skeleton of a scenario: commented, without a mistake, ready to run.
#[derive(Debug, Args)]
pub(super) struct New {
    /// The scenario's name: lower-case letters, digits and hyphens.
    name: String,
    /// The area: the folder of the suites that it goes to; made if it is not there.
    #[arg(long, default_value = "node-lifecycle")]
    area: String,
    /// What it shows: one to five ids of the catalogue, with commas between them.
    #[arg(long, value_name = "ID,…", value_delimiter = ',', required = true)]
    requirements: Vec<String>,
    /// How many boards it wants.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=26))]
    boards: u32,
    #[command(flatten)]
    place: Where,
}

impl New {
    pub(super) fn run(&self) -> Result<Exit, Trouble> {
        let suites = Suites::new(self.place.suites());
        let catalogue = suites.catalogue()?;
        let folder = self.place.suites().join(&self.area);
        if !is_area_name(&self.area) || holds_no_yaml(&folder) {
            return Err(Trouble::Input(miette::miette!(
                help = known_areas(&suites.files()?),
                "`{}` is no area: an area is a folder of the suites that holds scenarios",
                self.area
            )));
        }
        // A name has one file among all areas.
        let file = format!("{}.yaml", self.name);
        if let Some(taken) = suites.files()?.iter().find(|other| other.path().ends_with(&file)) {
            return Err(Trouble::Input(miette::miette!(
                help = "choose another name, or change that file",
                "{} is there already",
                taken.path().display()
            )));
        }
        let profile = self
            .requirements
            .iter()
            .find_map(|id| catalogue.get(id))
            .map_or("kube32", |row| row.profile.name());
        let text = skeleton(&self.name, &self.requirements, profile, self.boards);
        let path = folder.join(&file);
        // What lint would say is said before anything is written: a wrong name, an unknown requirement.
        Scenario::parse("", &text, &catalogue, &|_| Err("no files".to_owned())).map_err(said)?;
        let made = std::fs::create_dir_all(&folder)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).open(&path))
            .and_then(|mut file| file.write_all(text.as_bytes()));
        made.map_err(|error| {
            Trouble::Input(miette::miette!(
                help = "an existing file is never written over: choose another name, or a folder that can be written",
                "{}: {error}",
                path.display()
            ))
        })?;
        let shown = path.display();
        say(&format!("{shown} written\n  rigor lint {shown}\n  rigor run --watch {shown}"));
        Ok(Exit::Passed)
    }
}

/// The mistakes without the places that they would have in a file that is not written.
fn said(mistakes: Mistakes) -> Trouble {
    let messages: Vec<&str> = mistakes.iter().map(|one| one.message.as_str()).collect();
    let remedies: Vec<&str> = mistakes.iter().filter_map(|one| one.remedy.as_deref()).collect();
    Trouble::Input(miette::miette!(help = remedies.join("; "), "nothing is written: {}", messages.join("; ")))
}

fn is_area_name(area: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !area.is_empty() && area.chars().all(plain)
}

/// Whether a folder is somebody else's: it holds something, and nothing of it is YAML.
fn holds_no_yaml(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let yaml = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yaml");
    folder.is_file() || !paths.is_empty() && !paths.iter().any(yaml)
}

fn known_areas(files: &[ScenarioFile]) -> String {
    let areas: BTreeSet<String> =
        files.iter().filter_map(|file| Some(file.name().split_once('/')?.0.to_owned())).collect();
    let areas: Vec<String> = areas.into_iter().collect();
    let known = if areas.is_empty() { "none yet".to_owned() } else { areas.join(", ") };
    format!(
        "areas are {known}; a new one is a word of lower-case letters, digits and hyphens, such as --area node-lifecycle"
    )
}

/// The text of a new scenario.
fn skeleton(name: &str, requirements: &[String], profile: &str, boards: u32) -> String {
    let requirements = requirements.join(", ");
    let (place, running) = if boards == 0 {
        (
            "    # No boards: a node that the harness plays has exact figures, and runs nothing.\n    - node: {name: n1, allocatable: {memory: 64Ki}}\n",
            "    # What must be seen, and until when. `within` counts from the begin of this step.\n    - expect: {of: {kind: Pod, name: lamp}, match: {spec: {nodeName: n1}}, within: retryPeriod + slack + 5s}\n      as: bound\n",
        )
    } else {
        (
            "",
            "    # What must be seen, and until when. `within` counts from the begin of this step.\n    - expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, within: 10s}\n      as: running\n",
        )
    };
    let since = if boards == 0 { "bound" } else { "running" };
    format!(
        "# yaml-language-server: $schema=../schema/scenario.json\napiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata:\n  name: {name}\n  # What it shows, at most five: rows of suites/requirements.yaml.\n  requirements: [{requirements}]\n  # Whose behaviour it is: kube32, upstream, both, kubelet or external.\n  profile: {profile}\n  # Words to filter by: rigor run --filter tag:WORD.\n  tags: [new]\n  description: Say in a sentence what must be so.\nspec:\n  # The trial begins when the Nodes of its boards, a, b, c …, are Ready.\n  rig: {{boards: {boards}}}\n  steps:\n{place}    # What is done. Every verb: docs/scenario-reference.md.\n    - create: {{manifest: {{apiVersion: v1, kind: Pod, metadata: {{name: lamp}}, spec: {{containers: [{{name: main, image: rigor.dev/pause}}]}}}}}}\n{running}    # What must stay so, from the instant that `as` named.\n    - always: {{of: {{kind: Pod, name: lamp}}, match: {{metadata: {{deletionTimestamp: {{$is: absent}}}}}}, from: {since}, for: 5s}}\n"
    )
}
