//! The observed scenarios over recordings of Kubernetes 1.32: what each says of each, and that falsified recordings turn the
//! right expectation red.

mod forged;

use rigor::suite::Suites;
use rigor_model::{Outcome, Scenario};
use rigor_trace::judge::{ScenarioVerdict, judge};
use rigor_trace::{History, jsonl};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The recordings, by their names.
pub(crate) const RECORDINGS: [&str; 2] = ["power-loss", "workloads"];

/// What neither recording decides, by scenario: the requirement, and why.
const OPEN: [(&str, &str, &str); 6] = [
    (
        "daemons-are-not-evicted",
        "NODE-17",
        "the taint stood for 345 s, and never means 360 s: tolerationSeconds and a minute",
    ),
    (
        "endless-toleration-stays",
        "NODE-16",
        "the taint stood for 345 s, and never means 600 s: twice tolerationSeconds",
    ),
    ("no-eviction-with-every-node-down", "UP-06", "one node of three fell silent"),
    ("pods-of-a-deleted-node", "UP-05", "no Node was deleted"),
    (
        "ready-again-after-the-return",
        "NODE-27",
        "the kubelets were played, and did not report the pods of the node that came back",
    ),
    ("return-cancels-evictions", "UP-04", "when the node came back every toleration that ends had run out"),
];

fn place(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A recording as it lies in the repository, line by line.
pub(crate) fn lines(recording: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place(&format!("tests/corpus/{recording}.jsonl"))).unwrap();
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn history(lines: &[String]) -> History {
    jsonl::read(lines.join("\n").as_bytes()).unwrap().remove(0)
}

/// All observed scenarios of the suites, with their files' names; rows of tables each by itself.
pub(crate) fn observed() -> Vec<(String, Scenario)> {
    let suites = Suites::new(place("../../suites"));
    let catalogue = suites.catalogue().unwrap();
    let files = suites.chosen(&["upstream".to_owned()]).unwrap();
    let scenarios = files.iter().flat_map(|file| file.load(&catalogue).unwrap());
    scenarios.filter(|scenario| scenario.observe).map(|scenario| (scenario.title(), scenario)).collect()
}

fn verdicts() -> Vec<(Scenario, Vec<ScenarioVerdict>)> {
    let histories: Vec<History> = RECORDINGS.iter().map(|recording| history(&lines(recording))).collect();
    let all = observed().into_iter();
    all.map(|(_, scenario)| {
        let verdicts = histories.iter().map(|history| judge(&scenario, history)).collect();
        (scenario, verdicts)
    })
    .collect()
}

/// The page that tells the verdicts.
fn page(verdicts: &[(Scenario, Vec<ScenarioVerdict>)]) -> String {
    let mut page = "# Verdicts over recorded histories\n\n\
        What the observed scenarios of [suites/upstream](../suites/upstream) say of two recordings of Kubernetes 1.32.13, which lie in\n\
        [harness/rigor/tests/corpus](../harness/rigor/tests/corpus): a node that was silent for 390 s (*power-loss*), and workloads of every kind\n\
        (*workloads*). `-` stands where a recording does not hold what the scenario is given. The page is written by a test\n\
        (`UPDATE_OBSERVED=1`), which fails where it is not as the recordings are judged; the same command judges any other recording\n\
        ([histories.md](histories.md#recordings-from-elsewhere)).\n\n\
        | Scenario | Requirements | power-loss | workloads |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for (scenario, verdicts) in verdicts {
        let told: Vec<&str> = verdicts
            .iter()
            .map(|verdict| match verdict.outcome {
                Outcome::Undecided if !is_open(scenario) => "-",
                outcome => outcome.name(),
            })
            .collect();
        page += &format!(
            "| [{}](../suites/upstream/{}.yaml) | {} | {} |\n",
            scenario.title(),
            scenario.name,
            scenario.requirements.join(", "),
            told.join(" | ")
        );
    }
    page += "\nNo Job of *workloads* runs under OnFailure: restarts-count holds there for want of restarts, and a falsified copy shows that it can fail.\n";
    page += "\nUndecided over both, and why:\n\n| Scenario | Requirement | Why |\n| --- | --- | --- |\n";
    for (scenario, requirement, why) in OPEN {
        page += &format!("| {scenario} | {requirement} | {why} |\n");
    }
    page
}

fn is_open(scenario: &Scenario) -> bool {
    OPEN.iter().any(|(name, _, _)| *name == scenario.name)
}

#[test]
fn kubernetes_passes_wherever_a_recording_decides() {
    let verdicts = verdicts();
    for (scenario, verdicts) in &verdicts {
        let outcomes: BTreeSet<Outcome> = verdicts.iter().map(|verdict| verdict.outcome).collect();
        let told: Vec<_> = verdicts.iter().map(|verdict| (&verdict.outcome, &verdict.message)).collect();
        let decided = BTreeSet::from([Outcome::Pass, Outcome::Undecided]);
        assert!(outcomes.is_subset(&decided), "{}: {told:?}", scenario.title());
        assert_eq!(outcomes.contains(&Outcome::Pass), !is_open(scenario), "{}: {told:?}", scenario.title());
    }
    let path = place("../../docs/observed.md");
    let page = page(&verdicts);
    if std::env::var_os("UPDATE_OBSERVED").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        there, page,
        "docs/observed.md is not as the recordings are judged: UPDATE_OBSERVED=1 writes it"
    );
}

#[test]
fn every_row_of_upstream_s_lifecycle_is_observed() {
    let suites = Suites::new(place("../../suites"));
    let catalogue = suites.catalogue().unwrap();
    let cited: BTreeSet<String> =
        observed().into_iter().flat_map(|(_, scenario)| scenario.requirements).collect();
    let missing: Vec<&str> = catalogue
        .iter()
        .map(|row| row.id.as_str())
        .filter(|id| (id.starts_with("UP-") || *id == "JOB-09") && !cited.contains(*id))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn a_falsified_recording_turns_the_right_expectation_red() {
    let mut forged: BTreeSet<String> = BTreeSet::new();
    let mut wrong = Vec::new();
    let scenarios: BTreeMap<String, Scenario> = observed().into_iter().collect();
    for forgery in forged::all() {
        let scenario = scenarios.get(forgery.scenario).unwrap_or_else(|| panic!("no {}", forgery.scenario));
        forged.insert(forgery.scenario.to_owned());
        let lines = match forgery.lines() {
            Ok(lines) => lines,
            Err(why) => {
                wrong.push(format!("{} ({}): {why}", forgery.scenario, forgery.what));
                continue;
            }
        };
        let verdict = judge(scenario, &history(&lines));
        let failed = verdict.steps.iter().find(|(_, step)| step.outcome != Outcome::Pass);
        let sentence = failed.map_or("nothing", |(index, _)| scenario.plan[*index].sentence.as_str());
        // Monitors see some of this, too; the expectation has to see it by itself.
        let is_red = failed.is_some_and(|(_, step)| step.outcome == Outcome::Fail);
        if !is_red || !sentence.contains(forgery.red) {
            wrong.push(format!(
                "{} ({}): {:?} by {sentence}\n  {}",
                forgery.scenario,
                forgery.what,
                verdict.outcome,
                verdict.message.unwrap_or_default()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), forged::all().count(), wrong.join("\n"));
    let unforged: Vec<&String> = scenarios.keys().filter(|name| !forged.contains(*name)).collect();
    assert!(unforged.is_empty(), "no forgery for {unforged:?}");
}
