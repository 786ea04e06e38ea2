//! The identical-seed proof: what a trial on the simulated rig records is a function of scenario and seed, to the byte, with mild and
//! harsh faults too; other seeds give other histories.
#![cfg(feature = "sim")]

use rigor::ground::{Ground, find_rig};
use rigor::runner::{Trial, run_trial, seed_of};
use rigor::suite::Suites;
use rigor_model::{FaultLevel, Faults};
use rigor_trace::jsonl;
use std::path::Path;

/// One of each area in which something is lost and found again.
const TRIALS: [&str; 5] = [
    "node-lifecycle/power-cut-unknown",
    "node-lifecycle/flapping-link",
    "deployment/deployment-becomes-available",
    "node-lifecycle/eviction-and-rebind",
    "kubelet/runs-a-pod",
];

#[test]
fn one_seed_gives_the_same_bytes_whatever_the_faults() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let suites = Suites::new(root.join("suites"));
    let catalogue = suites.catalogue().unwrap();
    let ground = Ground::prepare(find_rig("sim", &root.join("rigs")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in TRIALS {
        let (file, case) = suites.find(name).unwrap_or_else(|| panic!("there is no {name}"));
        let scenarios = file.load(&catalogue).unwrap();
        let scenario = scenarios.iter().find(|scenario| scenario.case == case || case.is_none()).unwrap();
        let bytes = |seed: u64, faults: &Faults| {
            let trial = Trial {
                name,
                scenario,
                rig: ground.rig(),
                seed: seed_of(seed, name),
                faults: faults.clone(),
                evidence: Some(folder.path().join(name)),
                keep: false,
            };
            let report = run_trial(&trial, &|asked| ground.open(asked));
            let mut bytes = Vec::new();
            jsonl::write(&report.history, &mut bytes).unwrap();
            (bytes, report.outcome, report.text)
        };
        for faults in [Faults::None, Faults::Drawn(FaultLevel::Mild), Faults::Drawn(FaultLevel::Harsh)] {
            let level = faults.level();
            let (first, again) = (bytes(11, &faults), bytes(11, &faults));
            let differs = first.0.split(|byte| *byte == b'\n').zip(again.0.split(|byte| *byte == b'\n'));
            let differs = differs.enumerate().find(|(_, (one, other))| one != other);
            assert!(
                differs.is_none(),
                "{name} with {level} faults differs from line {:?}",
                differs.map(|(line, _)| line)
            );
            assert_eq!(first, again, "{name} with {level} faults");
            assert!(first.0.len() > 10_000, "{name}: {} bytes", first.0.len());
            assert_ne!(first.0, bytes(12, &faults).0, "{name} with {level} faults: the seed decides nothing");
        }
    }
}
