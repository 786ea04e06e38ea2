//! What trials stand on: a rig file that was found, and a way to open a world on it.

use crate::runner::Asked;
use rigor_model::report::RigReport;
use rigor_model::rig::BoardProfile;
use rigor_model::{Mistakes, Rig, RigKind};
use rigor_rigs::external::Cluster;
use rigor_rigs::{Bench, BoardSpec, Infra, World, etcd, processes};
use std::fs;
use std::path::{Path, PathBuf};

/// Why there is no rig.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// No file of that name.
    #[error("there is no rig `{name}`: no file {path}; {remedy}")]
    Missing {
        /// What was asked for.
        name: String,
        /// Where it would be.
        path: String,
        /// What to do.
        remedy: String,
    },
    /// The file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

/// Finds the rig called `name` in the folder `rigs`, or at a path.
///
/// # Errors
/// See [`RigError`].
pub fn find_rig(name: &str, rigs: &Path) -> Result<Rig, RigError> {
    let is_path =
        name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "yaml");
    let path = if is_path { PathBuf::from(name) } else { rigs.join(format!("{name}.yaml")) };
    let source = fs::read_to_string(&path).map_err(|_| RigError::Missing {
        name: name.to_owned(),
        path: path.display().to_string(),
        remedy: known(rigs),
    })?;
    let mut rig = Rig::parse(&path.display().to_string(), &source)?;
    // What it names lies beside it.
    let beside = |name: &String| path.parent().unwrap_or(Path::new("")).join(name).display().to_string();
    rig.limitations = rig.limitations.as_ref().map(beside);
    for file in rig.equipment.images.values_mut() {
        *file = beside(file);
    }
    if let Some(external) = &mut rig.external {
        let home = |name: &&mut String| !name.starts_with("~/");
        for name in external.kubeconfig.iter_mut().chain(external.tokens.values_mut()).filter(home) {
            *name = beside(name);
        }
    }
    Ok(rig)
}

/// The rig with everything that its file leaves to be asked for: constants and capabilities of a cluster that is
/// there already, and what is not installed here. Reads and dry runs only.
///
/// # Errors
/// The cluster cannot be asked, or is not what the file says.
pub fn asked(rig: Rig) -> Result<Rig, Infra> {
    match rig.kind {
        RigKind::Sim => Ok(rig),
        RigKind::Host | RigKind::Qemu => Ok(etcd::as_installed(rig)),
        RigKind::External => Ok(Cluster::connect(&rig)?.rig().clone()),
    }
}

fn known(rigs: &Path) -> String {
    let mut names: Vec<String> = fs::read_dir(rigs)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".yaml").map(str::to_owned))
        .collect();
    names.sort();
    if names.is_empty() {
        format!(
            "{} holds no rig: run from the repository's root, or give the path of a rig file",
            rigs.display()
        )
    } else {
        format!("known are {}, or give the path of a rig file", names.join(", "))
    }
}

/// A rig that trials can be opened on: everything it starts has been found.
#[derive(Debug, Clone)]
pub struct Ground {
    rig: Rig,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    #[cfg(feature = "sim")]
    Sim,
    Bench(Box<Bench>),
    Cluster(Cluster),
}

impl Ground {
    /// Finds what the rig needs.
    ///
    /// # Errors
    /// A program or image is missing.
    pub fn prepare(rig: Rig) -> Result<Self, Infra> {
        let kind = match rig.kind {
            RigKind::Sim => simulated()?,
            RigKind::Host | RigKind::Qemu => {
                let bench = Bench::find(&rig)?;
                return Ok(Self { rig: etcd::as_installed(rig), kind: Kind::Bench(Box::new(bench)) });
            }
            RigKind::External => {
                let cluster = Cluster::connect(&rig)?;
                return Ok(Self { rig: cluster.rig().clone(), kind: Kind::Cluster(cluster) });
            }
        };
        Ok(Self { rig, kind })
    }

    /// Takes away what killed runs left on a cluster that is there already; what that was.
    ///
    /// # Errors
    /// The rig is of another kind, the cluster does not become free, or something cannot be removed.
    pub fn clean(&self) -> Result<Vec<String>, Infra> {
        match &self.kind {
            Kind::Cluster(cluster) => cluster.clean(),
            #[cfg(feature = "sim")]
            Kind::Sim => Ok(Vec::new()),
            // Their directories are removed by the next trial, whatever its rig.
            Kind::Bench(_) => Ok(Vec::new()),
        }
    }

    /// The rig; what its file leaves to be asked for has been.
    #[must_use]
    pub fn rig(&self) -> &Rig {
        &self.rig
    }

    /// What reports say of it.
    ///
    /// # Errors
    /// The emulator or the image cannot be asked.
    pub fn report(&self) -> Result<RigReport, Infra> {
        match &self.kind {
            #[cfg(feature = "sim")]
            Kind::Sim => Ok(RigReport {
                name: self.rig.name.clone(),
                kind: self.rig.kind,
                machine: self.rig.machine.clone(),
                emulator: None,
                firmware_sha256: None,
                control_plane: None,
            }),
            Kind::Cluster(cluster) => Ok(cluster.describe()),
            Kind::Bench(bench) => bench.describe(&self.rig),
        }
    }

    /// Looks whether trials can be opened with these flags of the scenario's own.
    ///
    /// # Errors
    /// A flag is the rig's, or the control plane does not have it.
    pub fn check_flags(&self, flags: &[String]) -> Result<(), Infra> {
        refuse_own(flags)?;
        match &self.kind {
            #[cfg(feature = "sim")]
            Kind::Sim => rigor_sim::check_flags(flags),
            Kind::Bench(bench) => bench.check_flags(flags),
            // Such a rig runs no scenario that has some.
            Kind::Cluster(_) => Ok(()),
        }
    }

    /// Opens a trial with boards of these names.
    ///
    /// # Errors
    /// The world does not come up, or the rig cannot inject faults and is to.
    pub fn open(&self, asked: &Asked<'_>) -> Result<Box<dyn World>, Infra> {
        let Asked { constants, boards, psram, flags, etcd, seed, faults, without } = *asked;
        refuse_own(flags)?;
        let boards: Vec<BoardSpec> = boards
            .iter()
            .map(|name| {
                let usual = &self.rig.board;
                let psram_bytes = psram.get(name).copied().unwrap_or(usual.psram_bytes);
                BoardSpec { name: name.clone(), profile: BoardProfile { psram_bytes, ..usual.clone() } }
            })
            .collect();
        match &self.kind {
            #[cfg(feature = "sim")]
            Kind::Sim => rigor_sim::open_with(constants, &boards, seed, faults, without, flags),
            Kind::Bench(_) | Kind::Cluster(_) if !faults.level().is_none() => Err(Infra::lasting(
                format!("rig {} cannot inject faults: nothing of it is simulated", self.rig.name),
                "run with a rig of kind sim, or without faults",
            )),
            Kind::Bench(bench) => {
                let bench = Bench { flags: flags.to_vec(), etcd, ..(**bench).clone() };
                processes::open(&bench, constants, &boards, seed)
            }
            Kind::Cluster(_) if !flags.is_empty() => Err(Infra::lasting(
                "the scenario wants its control plane started with flags of its own, and this one is running already",
                "use a rig that starts its control plane",
            )),
            Kind::Cluster(cluster) => {
                let letters: Vec<String> = boards.iter().map(|board| board.name.clone()).collect();
                cluster.open(constants, &letters)
            }
        }
    }
}

/// Refuses flags that are the rig's to state.
///
/// # Errors
/// One of them is.
pub fn refuse_own(flags: &[String]) -> Result<(), Infra> {
    for flag in flags {
        let name = flag.split('=').next().unwrap_or_default();
        if let Some((_, remedy)) = OWN_FLAGS.iter().find(|(own, _)| *own == name) {
            return Err(Infra::lasting(format!("the flag {name} is the rig's, not the scenario's"), *remedy));
        }
    }
    Ok(())
}

/// The control plane's flags that a rig states itself, and what a scenario does instead.
const OWN_FLAGS: [(&str, &str); 11] = [
    ("--listen", "leave it out: each trial has an address of its own"),
    ("--plain-http", "leave it out: trials speak HTTP"),
    ("--data-dir", "leave it out: each trial has a folder of its own"),
    (
        "--store",
        "leave it out: the store outlives a restart on every rig; for one in etcd write rig: {needs: [etcd]}",
    ),
    (
        "--etcd-servers",
        "leave it out, and write rig: {needs: [etcd]}: then each trial has an etcd of its own",
    ),
    ("--token-auth-file", "leave it out, and say with `user` who asks"),
    ("--admin-kubeconfig", "leave it out: `kubectl` has it"),
    ("--node-monitor-period", "write constants: {checkPeriod: …}"),
    ("--not-ready-timeout", "write constants: {noExecuteDelay: …}"),
    ("--eviction-timeout", "write constants: {tolerationSeconds: …}"),
    ("--reconcile-interval", "write constants: {retryPeriod: …}"),
];

#[cfg(feature = "sim")]
fn simulated() -> Result<Kind, Infra> {
    Ok(Kind::Sim)
}

#[cfg(not(feature = "sim"))]
fn simulated() -> Result<Kind, Infra> {
    Err(Infra::lasting("this rigor was built without the simulated rig", "build it with the feature `sim`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rigs() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rigs")
    }

    #[test]
    fn every_rig_file_can_be_read_and_is_called_as_its_rig() {
        let mut count = 0;
        // Beside them stands the folder of limitations that they name.
        for path in
            fs::read_dir(rigs()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
        {
            let rig = find_rig(path.to_str().unwrap(), Path::new("/nowhere")).unwrap();
            assert_eq!(Some(rig.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
            assert_eq!(find_rig(&rig.name, &rigs()).unwrap(), rig);
            count += 1;
        }
        assert!(count >= 4);
    }

    #[test]
    fn a_rig_that_is_not_there_is_told_with_those_that_are() {
        let error = find_rig("qemo", &rigs()).unwrap_err().to_string();
        assert!(error.starts_with("there is no rig `qemo`: no file "), "{error}");
        assert!(
            error.ends_with(
                "known are external, host, kubernetes, qemu, qemu-short, sim, or give the path of a rig file"
            ),
            "{error}"
        );
        let error = find_rig("sim", Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("run from the repository's root"), "{error}");
    }

    #[test]
    fn the_gate_for_slack_holds_in_every_rig_file() {
        for name in ["sim", "host", "qemu", "qemu-short"] {
            let rig = find_rig(name, &rigs()).unwrap();
            assert!(rig.constants.slack <= std::time::Duration::from_millis(500), "{name}");
            let truly =
                rigor_model::Constants { slack: rig.constants.slack, ..rigor_model::Constants::default() };
            assert_eq!(rig.constants == truly, name != "qemu-short", "{name}: the true constants");
        }
    }
}
