//! What the test runner lists: trials of one rig or of several, under names that lead back to both.
//!
//! With one rig a test is called as its trial, `area/scenario`; with several, `RIG/area/scenario`, so that the runner's
//! own filters, groups and partitions know the rig. Pure.

use crate::filter::{Filter, FilterError};
use rigor_model::catalogue::Catalogue;
use rigor_model::{Profile, RigKind};

/// Why an environment variable cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// `RIGOR_RIG` names nothing, or one rig twice.
    #[error(
        "RIGOR_RIG `{given}` {problem}; write one rig, or several with commas between them: sim,host,qemu-short"
    )]
    Rigs {
        /// Its value.
        given: String,
        /// What is wrong with it.
        problem: String,
    },
    /// `RIGOR_PROFILE` names no profile.
    #[error(
        "RIGOR_PROFILE `{given}` {problem}; write one of {known}, or several with commas between them",
        known = known_profiles()
    )]
    Profiles {
        /// Its value.
        given: String,
        /// What is wrong with it.
        problem: String,
    },
    /// `RIGOR_FILTER` is no filter.
    #[error("RIGOR_FILTER: {0}")]
    Filter(#[from] FilterError),
}

/// The rigs that a value of `RIGOR_RIG` names; the simulated one without it.
///
/// # Errors
/// It names nothing, or one rig twice.
pub fn rigs(given: Option<&str>) -> Result<Vec<String>, ListingError> {
    let given = given.unwrap_or("sim");
    let wrong = |problem: String| ListingError::Rigs { given: given.to_owned(), problem };
    let names: Vec<String> = given.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(wrong("has a rig without a name".to_owned()));
    }
    let mut seen = std::collections::BTreeSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(wrong(format!("names {twice} twice"))),
        None => Ok(names),
    }
}

/// The profiles that a value of `RIGOR_PROFILE` names, whose scenarios are run. Without it: all on the simulated rig,
/// where time costs nothing, and `kube32` on others.
///
/// # Errors
/// It names what is no profile.
pub fn profiles(given: Option<&str>, rig: RigKind) -> Result<Vec<Profile>, ListingError> {
    let Some(given) = given else {
        return Ok(match rig {
            RigKind::Sim => vec![Profile::Both, Profile::External],
            RigKind::Host | RigKind::Qemu | RigKind::External => vec![Profile::Kube32],
        });
    };
    let find = |name: &str| Profile::ALL.into_iter().find(|profile| profile.name() == name);
    given
        .split(',')
        .map(str::trim)
        .map(|name| {
            find(name).ok_or_else(|| {
                let problem = match name {
                    "" => "has a profile without a name".to_owned(),
                    name => format!("names {name}, which is no profile"),
                };
                ListingError::Profiles { given: given.to_owned(), problem }
            })
        })
        .collect()
}

fn known_profiles() -> String {
    Profile::ALL.map(Profile::name).join(", ")
}

/// The filter that a value of `RIGOR_FILTER` is, as `rigor run --filter` takes it; everything without it.
///
/// # Errors
/// It cannot be read, or names a requirement that the catalogue does not have.
pub fn filter(given: Option<&str>, catalogue: &Catalogue) -> Result<Filter, ListingError> {
    Ok(given.map_or(Ok(Filter::All), |expression| Filter::known(expression, catalogue))?)
}

/// The name under which a trial is listed; `several`: beside those of other rigs.
#[must_use]
pub fn listed(rig: &str, trial: &str, several: bool) -> String {
    if several { format!("{rig}/{trial}") } else { trial.to_owned() }
}

/// The trial of this rig that is listed under that name, if one is.
#[must_use]
pub fn trial_of<'a>(name: &'a str, rig: &str, several: bool) -> Option<&'a str> {
    if several { name.strip_prefix(rig)?.strip_prefix('/') } else { Some(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_all_where_time_costs_nothing_or_those_that_are_named() {
        use Profile::{Both, External, Kube32, Upstream};
        assert_eq!(profiles(None, RigKind::Sim).unwrap(), [Both, External]);
        assert_eq!(profiles(None, RigKind::Qemu).unwrap(), [Kube32]);
        assert_eq!(profiles(Some("upstream, external"), RigKind::Sim).unwrap(), [Upstream, External]);
        let said = |given| profiles(Some(given), RigKind::Sim).unwrap_err().to_string();
        let known = "write one of kube32, upstream, both, kubelet, external, or several";
        assert!(said("upstraem").contains("names upstraem, which is no profile"), "{}", said("upstraem"));
        assert!(said("both,").contains("has a profile without a name") && said("both,").contains(known));
    }

    #[test]
    fn rigs_come_alone_or_with_commas() {
        assert_eq!(rigs(None).unwrap(), ["sim"]);
        assert_eq!(rigs(Some("host")).unwrap(), ["host"]);
        assert_eq!(rigs(Some("sim, rigs/mine.yaml")).unwrap(), ["sim", "rigs/mine.yaml"]);
        for (given, problem) in [
            ("", "has a rig without a name"),
            ("sim,", "has a rig without a name"),
            ("sim,host,sim", "names sim twice"),
        ] {
            let error = rigs(Some(given)).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("write one rig"), "{error}");
        }
    }

    #[test]
    fn names_lead_back_to_rig_and_trial() {
        for (several, expected) in [(false, "node/loss/short"), (true, "qemu/node/loss/short")] {
            let name = listed("qemu", "node/loss/short", several);
            assert_eq!(name, expected);
            assert_eq!(trial_of(&name, "qemu", several), Some("node/loss/short"));
        }
        assert_eq!(trial_of("qemu-short/node/loss", "qemu", true), None);
        assert_eq!(trial_of("sim/node/loss", "qemu", true), None);
    }

    #[test]
    fn a_filter_names_what_there_is() {
        let source = "version: 2\nareas: {node: [{id: NODE-03, profile: kube32, must: one}]}\n";
        let catalogue = Catalogue::parse("c.yaml", source).unwrap();
        assert_eq!(filter(None, &catalogue).unwrap(), Filter::All);
        assert!(filter(Some("tag:power & req:NODE"), &catalogue).is_ok());
        let said = |expression| filter(Some(expression), &catalogue).unwrap_err().to_string();
        assert!(said("req:NODE-30").contains("no requirement is called NODE-30; did you mean NODE-03?"));
        assert!(said("req:ZZZ").contains("stand in suites/requirements.yaml"));
        assert!(said("tag:").starts_with("RIGOR_FILTER: filter `tag:`, column 1"));
    }
}
