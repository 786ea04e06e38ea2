//! What is to run: one trial a scenario (or a row of its table), and why one cannot.

use crate::filter::{Filter, Subject};
use crate::suite::{ScenarioFile, SuiteError};
use rigor_model::catalogue::Catalogue;
use rigor_model::{Profile, Rig, Scenario, Section};

/// A trial that was asked for.
#[derive(Debug)]
pub struct Planned {
    /// Trial name: `area/scenario` or `area/scenario/case`.
    pub name: String,
    /// What is to be tried; or why the file cannot be read, which makes it one failing trial.
    pub scenario: Result<Scenario, SuiteError>,
    /// Why the rig cannot run it.
    pub skip: Option<String>,
}

/// The trials of a file that the filter asks for; what is for none of the profiles is skipped.
#[must_use]
pub fn plan(
    file: &ScenarioFile,
    catalogue: &Catalogue,
    rig: &Rig,
    profiles: &[Profile],
    filter: &Filter,
) -> Vec<Planned> {
    match file.load(catalogue) {
        Ok(scenarios) => scenarios
            .into_iter()
            .map(|scenario| Planned {
                name: file.trial(scenario.case.as_deref()),
                skip: skip(&scenario, rig, profiles),
                scenario: Ok(scenario),
            })
            .filter(|planned| {
                planned.scenario.as_ref().is_ok_and(|scenario| asked(&planned.name, scenario, filter))
            })
            .collect(),
        // What cannot be read cannot be filtered out by what it says.
        Err(error) => vec![Planned { name: file.name(), scenario: Err(error), skip: None }],
    }
}

fn asked(name: &str, scenario: &Scenario, filter: &Filter) -> bool {
    filter.matches(&Subject {
        name,
        tags: &scenario.tags,
        requirements: &scenario.requirements,
        profile: scenario.profile.name(),
    })
}

/// Why a scenario cannot run here, if it cannot.
#[must_use]
pub fn skip(scenario: &Scenario, rig: &Rig, profiles: &[Profile]) -> Option<String> {
    if only_observes(scenario) {
        return Some("it observes a history that was recorded elsewhere: rigor judge".to_owned());
    }
    if !profiles.iter().any(|chosen| applies(scenario.profile, *chosen)) {
        let chosen: Vec<&str> = profiles.iter().map(|profile| profile.name()).collect();
        let were = if chosen.len() == 1 { "was" } else { "were" };
        let (own, chosen) = (scenario.profile.name(), chosen.join(" and "));
        return Some(format!("it is for the profile {own}, and {chosen} {were} chosen"));
    }
    rig.refuses(scenario)
}

/// Whether a scenario brings nothing about itself: no rig can run it.
pub(crate) fn only_observes(scenario: &Scenario) -> bool {
    scenario.observe && !scenario.plan.iter().any(|step| step.section == Section::Setup)
}

/// Whether a scenario or a requirement of that profile says something about an implementation of the chosen one.
pub(crate) fn applies(scenario: Profile, chosen: Profile) -> bool {
    match scenario {
        Profile::Both | Profile::Kubelet => true,
        Profile::Kube32 | Profile::Upstream | Profile::External => {
            scenario == chosen || chosen == Profile::Both
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_leaves_out_what_it_does_not_speak_of() {
        use Profile::{Both, External, Kube32, Kubelet, Upstream};
        for (scenario, chosen, expected) in [
            (Kube32, Kube32, true),
            (Both, Kube32, true),
            (Kubelet, Kube32, true),
            (Upstream, Kube32, false),
            (External, Kube32, false),
            (Kube32, Upstream, false),
            (Upstream, Upstream, true),
            (Upstream, Both, true),
        ] {
            assert_eq!(applies(scenario, chosen), expected, "{scenario:?} under {chosen:?}");
        }
    }
}
