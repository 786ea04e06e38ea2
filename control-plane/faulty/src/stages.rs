//! Which trials a mutant is tried with, and in which order.
//!
//! Most trials run on the simulated rig in moments. Some need processes: they drive a program that is not simulated, as kubectl
//! is, or concern one that is another program elsewhere, as the second scheduler is (`run` there, `machine` here).

use std::collections::BTreeSet;

use crate::mutant::Mutant;
use crate::shadow::SECOND_SCHEDULER;
use crate::trials::Trial;

/// The sources of the second scheduler that the simulated rig does not run: its loop, its sockets and its flags.
const UNSIMULATED: [&str; 6] = ["cli.rs", "client.rs", "clock.rs", "main.rs", "run.rs", "told.rs"];

/// The trials that need processes, and what they alone show.
#[derive(Debug, Clone, Default)]
pub struct Stages {
    /// Those that the simulated rig cannot run.
    only_there: Vec<Trial>,
    /// Those of the second scheduler, of which the simulated rig runs most, with a part of it.
    second: Vec<Trial>,
    /// Those that run on both rigs and concern what overlapping requests break.
    racing: Vec<Trial>,
    /// The requirements that trials on the simulated rig name.
    simulated: BTreeSet<String>,
}

impl Stages {
    /// The stages where these trials pass on the simulated rig and those with processes. `second` are the requirements of second
    /// schedulers, `racing` those that overlapping requests break.
    #[must_use]
    pub fn new(sim: &[Trial], host: Vec<Trial>, second: &[String], racing: &[String]) -> Self {
        let simulated = sim.iter().flat_map(|trial| trial.requirements.iter().cloned()).collect();
        let names: BTreeSet<&str> = sim.iter().map(|trial| trial.name.as_str()).collect();
        let (both, only_there): (Vec<Trial>, Vec<Trial>) =
            host.into_iter().partition(|trial| names.contains(trial.name.as_str()));
        let of = |ids: &[String], trials: &[Trial]| -> Vec<Trial> {
            trials.iter().filter(|trial| trial.names_one_of(ids)).cloned().collect()
        };
        let racing = of(racing, &both);
        let second = [of(second, &both), of(second, &only_there)].concat();
        Self { only_there, second, racing, simulated }
    }

    /// What needs processes and is worth trying with this mutant: a fault of the second scheduler cannot be seen where none runs,
    /// and what the simulated rig has of it acts there as it does here.
    fn with_processes(&self, mutant: &Mutant) -> impl Iterator<Item = &Trial> {
        let in_second: Vec<&str> = mutant
            .files
            .iter()
            .filter_map(|file| file.path.strip_prefix(SECOND_SCHEDULER)?.strip_prefix("/src/"))
            .collect();
        let is_elsewhere = in_second.len() < mutant.files.len();
        let is_unsimulated = in_second.iter().any(|file| UNSIMULATED.contains(file));
        let when = |is_worth: bool, trials| is_worth.then_some(trials).into_iter().flatten();
        let second = when(is_unsimulated, &self.second);
        let more = second.filter(move |trial| !is_elsewhere || !self.only_there.contains(trial));
        when(is_elsewhere, &self.only_there).chain(more)
    }

    /// What comes first, with processes: the trials of requirements that the mutant is meant to break and that the simulated rig
    /// has no trial of; or all of them, if only requests that overlap show it.
    #[must_use]
    pub fn first(&self, mutant: &Mutant) -> Vec<String> {
        if mutant.overlapping {
            let all = self.only_there.iter().chain(&self.racing);
            return names(all.filter(|trial| trial.names_one_of(&mutant.requirements)));
        }
        let alone: Vec<&String> =
            mutant.requirements.iter().filter(|id| !self.simulated.contains(*id)).collect();
        names(self.only_there.iter().filter(|trial| trial.names_one_of(alone.iter().copied())))
    }

    /// What comes with processes after what the simulated rig has of the same: trials of requirements that the mutant is meant to
    /// break and that no trial has shown as broken so far. `tried` come no second time.
    #[must_use]
    pub fn second(&self, mutant: &Mutant, broke: &[String], tried: &[String]) -> Vec<String> {
        let whole: Vec<&String> = mutant.requirements.iter().filter(|id| !broke.contains(id)).collect();
        let named = self.with_processes(mutant).filter(|trial| trial.names_one_of(whole.iter().copied()));
        names(named.filter(|trial| !tried.contains(&trial.name)))
    }

    /// What is left with processes, for a mutant that nothing has shown.
    #[must_use]
    pub fn last(&self, mutant: &Mutant, tried: &[String]) -> Vec<String> {
        names(self.with_processes(mutant).filter(|trial| !tried.contains(&trial.name)))
    }
}

fn names<'a>(trials: impl Iterator<Item = &'a Trial>) -> Vec<String> {
    trials.map(|trial| trial.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Kind;
    use crate::ledger::File;

    fn trial(name: &str, requirements: &[&str]) -> Trial {
        Trial {
            name: name.into(),
            outcome: "pass".into(),
            requirements: requirements.iter().map(|&id| id.into()).collect(),
        }
    }

    fn mutant(file: &str, requirements: &[&str]) -> Mutant {
        Mutant {
            id: "m".into(),
            kind: Kind::HandMade,
            description: String::new(),
            requirements: requirements.iter().map(|&id| id.into()).collect(),
            files: vec![File { path: file.into(), sha256: String::new() }],
            digest: String::new(),
            equivalent: None,
            overlapping: false,
        }
    }

    /// kubectl alone shows BIND-04 and shows EP-04, too; the second scheduler runs on both rigs, and what it prints is read on one.
    fn stages() -> Stages {
        let second = trial("second", &["EXT-01", "BIND-02"]);
        let race = trial("race", &["BIND-08"]);
        let sim = [trial("bind", &["BIND-02"]), trial("slices", &["EP-04"]), second.clone(), race.clone()];
        let says = trial("second-says", &["EXT-07"]);
        let kubectl = [trial("kubectl-binds", &["BIND-04"]), trial("kubectl-watches", &["EP-04"])];
        let host = kubectl.into_iter().chain([second, says, race]).collect();
        Stages::new(&sim, host, &["EXT-01".into(), "EXT-07".into()], &["BIND-08".into()])
    }

    const SERVER: &str = "control-plane/server/src/api/body.rs";
    const SECOND: &str = "control-plane/toy-scheduler/src/run.rs";

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.into()).collect()
    }

    #[test]
    fn what_only_overlapping_requests_show_is_tried_where_they_overlap() {
        let first = |requirements: &[&str]| {
            stages().first(&Mutant { overlapping: true, ..mutant(SERVER, requirements) })
        };
        assert_eq!(first(&["BIND-08"]), ["race"]);
        assert_eq!(first(&["BIND-08", "EP-04"]), ["kubectl-watches", "race"]);
        assert_eq!(first(&["BIND-02"]), [""; 0]);
    }

    #[test]
    fn what_only_processes_show_is_tried_there_before_anything_else() {
        let check = |requirements: &[&str], expected: &[&str]| {
            assert_eq!(stages().first(&mutant(SERVER, requirements)), expected, "{requirements:?}");
        };
        check(&["BIND-04"], &["kubectl-binds"]);
        check(&["BIND-02", "BIND-04"], &["kubectl-binds"]);
        check(&["EP-04"], &[]);
        check(&["BIND-08"], &[]);
        check(&["EXT-01"], &[]);
        check(&[], &[]);
    }

    #[test]
    fn a_row_that_stays_whole_on_the_simulated_rig_is_tried_with_processes_though_another_broke() {
        let check = |file: &str, requirements: &[&str], broke: &[&str], expected: &[&str]| {
            let asked = stages().second(&mutant(file, requirements), &strings(broke), &[]);
            assert_eq!(asked, expected, "{file} {requirements:?} {broke:?}");
        };
        check(SERVER, &["BIND-02", "EP-04"], &["BIND-02"], &["kubectl-watches"]);
        check(SERVER, &["BIND-02", "EP-04"], &["BIND-02", "EP-04"], &[]);
        check(SERVER, &["EXT-01"], &[], &[]);
        check(SECOND, &["EXT-01"], &[], &["second"]);
        check(SECOND, &["EXT-01"], &["EXT-01"], &[]);
        check(SECOND, &["EXT-07"], &[], &["second-says"]);
        check("control-plane/toy-scheduler/src/decide.rs", &["EXT-01"], &[], &[]);
        let tried = strings(&["second"]);
        assert!(stages().second(&mutant(SECOND, &["EXT-01"]), &[], &tried).is_empty());
    }

    #[test]
    fn a_survivor_meets_everything_that_needs_processes_once() {
        let last = |file: &str, tried: &[&str]| stages().last(&mutant(file, &[]), &strings(tried));
        assert_eq!(last(SERVER, &["kubectl-binds"]), ["kubectl-watches", "second-says"]);
        assert_eq!(last(SECOND, &[]), ["second", "second-says"]);
    }
}
