//! What a report must be to stand for a release: everything decided, with the true constants, in real time, on boards or
//! emulators whose firmware is named.

use super::{Refusal, Sort, because};
use crate::plan::applies;
use rigor_model::catalogue::Feature;
use rigor_model::report::Report;
use rigor_model::{Constant, Constants, Outcome, Profile, RigKind, duration};
use std::time::Duration;

/// The constants that a release is shown with: lease, NoExecute, toleration.
const TRUE: [Constant; 3] = [Constant::LeaseDuration, Constant::NoExecuteDelay, Constant::TolerationSeconds];

/// The largest slack of which a release's windows mean something.
const SLACK: Duration = Duration::from_millis(500);

/// Why the report cannot stand for a release. Trials that are undecided, or whose rig failed, are refused by every gate.
pub(super) fn refusals(report: &Report) -> Vec<Refusal> {
    let mut refusals = rig(report);
    let mut refuse = |what: String, remedy| refusals.push(Refusal::new(Sort::Conformance, what, remedy));
    let usual = Constants::default();
    for constant in TRUE {
        let (is, must) = (report.constants.get(constant), usual.get(constant));
        if is != must {
            refuse(
                format!(
                    "constants.{} is {}, not {}",
                    constant.name(),
                    duration::format(is),
                    duration::format(must)
                ),
                "run on a rig with the true constants, such as rigs/qemu.yaml (ci/conformance --full)",
            );
        }
    }
    if report.constants.slack > SLACK {
        refuse(
            format!(
                "constants.slack is {}, above {}",
                duration::format(report.constants.slack),
                duration::format(SLACK)
            ),
            "state 500ms or less in the rig file, and run again",
        );
    }
    for trial in &report.scenarios {
        if let Some(quarantined) = &trial.quarantined {
            refuse(
                format!("{} is {} and {quarantined}", trial.name, trial.outcome.name()),
                "mend it and take the entry out of its file: what counts for nothing shows nothing",
            );
        }
    }
    let profile = report.profile.unwrap_or(Profile::Kube32);
    let skipped = report.requirements.iter().filter(|row| {
        row.feature == Feature::Core && row.outcome == Outcome::Skipped && applies(row.profile, profile)
    });
    for row in skipped {
        let whys: Vec<String> = report
            .scenarios
            .iter()
            .filter(|trial| row.scenarios.contains(&trial.name))
            .map(|trial| format!("{}{}", trial.name, because(trial)))
            .collect();
        refuse(
            format!("{} is core and skipped: {}", row.id, whys.join(", ")),
            "run on a rig that has what it needs",
        );
    }
    refusals
}

/// What it ran on must be an emulator or a board, and named.
fn rig(report: &Report) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut refuse = |what: String| {
        refusals.push(Refusal::new(
            Sort::Conformance,
            what,
            "run on boards or emulators, such as rigs/qemu.yaml",
        ));
    };
    let rig = &report.rig;
    match rig.kind {
        RigKind::Sim | RigKind::Host => refuse(format!(
            "rig.kind is {}: {} has neither emulator nor board, so no firmware image ran",
            rig.kind.name(),
            rig.name
        )),
        RigKind::External => refuse(format!(
            "rig.kind is external: the control plane of {} and its boards are somebody else's, and no image is named",
            rig.name
        )),
        RigKind::Qemu => {
            for (field, value) in [("emulator", &rig.emulator), ("firmwareSha256", &rig.firmware_sha256)] {
                if value.as_ref().is_none_or(String::is_empty) {
                    refuse(format!("rig.{field} is missing: nothing says what ran"));
                }
            }
        }
    }
    refusals
}
