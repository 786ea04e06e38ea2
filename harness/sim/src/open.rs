//! Opens a trial of the simulated rig: the server's configuration from the constants, the boards from their specs.

use std::collections::BTreeSet;
use std::sync::Arc;

use control_plane::Config;
use control_plane::cli::Flags;
use control_plane::config::StoreKind;
use rigor_model::{Constants, FaultName, Faults};
use rigor_rigs::kubelet_config::{MachineName, kubelet_config};
use rigor_rigs::{BoardSpec, Infra, World};

use crate::board::{Board, Core, Image};
use crate::clock::Time;
use crate::faults::Sites;
use crate::plane::RealLaunch;
use crate::seed::generator;
use crate::server::Server;
use crate::simulation::Simulation;
use crate::world::{Simulated, Tokens, bearer};

/// Where boards find the server; nothing resolves it.
const SERVER: &str = "http://10.0.0.1:6443";
/// Most boards of one trial: each has an address of its own in 10.0.1.0/24.
const MOST_BOARDS: usize = 250;

/// Opens a trial: the control plane serves, its objects have been listed, the boards have just been powered.
///
/// # Errors
/// A board's configuration is refused, there are too many boards, or the control plane does not come up.
pub fn open(
    constants: &Constants,
    boards: &[BoardSpec],
    seed: u64,
    faults: &Faults,
) -> Result<Box<dyn World>, Infra> {
    open_with(constants, boards, seed, faults, &BTreeSet::new(), &[])
}

/// Opens a trial in which the faults `without` do not strike, and whose control plane has flags besides the rig's own, read as
/// the program reads them.
///
/// # Errors
/// A flag is unknown or has a value that cannot be; and see [`open`].
pub fn open_with(
    constants: &Constants,
    boards: &[BoardSpec],
    seed: u64,
    faults: &Faults,
    without: &BTreeSet<FaultName>,
    flags: &[String],
) -> Result<Box<dyn World>, Infra> {
    let time = Time::default();
    let launch = RealLaunch { config: server_config(constants, boards, flags)?, store: Arc::default(), seed };
    let server = Server::new(Box::new(launch), time.clone());
    let mut specs: Vec<&BoardSpec> = boards.iter().collect();
    specs.sort_by(|one, other| one.name.cmp(&other.name));
    if specs.len() > MOST_BOARDS {
        return Err(Infra::lasting(format!("more than {MOST_BOARDS} boards"), "ask for fewer"));
    }
    let boards = (1..)
        .zip(specs)
        .map(|(number, spec)| Ok(Board::new(&spec.name, image(spec, constants)?, [10, 0, 1, number], seed)))
        .collect::<Result<Vec<_>, Infra>>()?;
    let proof = |token: &str| bearer(token).map_err(|fault| Infra::transient(fault.text()));
    let (admin, scheduler) = (proof(Tokens.admin())?, proof(Tokens.scheduler())?);
    let names: Vec<&str> = boards.iter().map(Board::name).collect();
    let sites = Sites::new(faults, constants, &names, seed).withholding(without);
    let simulation = Simulation::new(seed, time, server, boards, admin, scheduler).with_faults(sites);
    Ok(Box::new(Simulated::start(simulation, generator(seed, "control-plane"))?))
}

/// Reads flags as the control plane does, to know before any trial whether it takes them.
///
/// # Errors
/// A flag is unknown, or has a value that cannot be.
pub fn check_flags(flags: &[String]) -> Result<(), Infra> {
    read_flags(flags).map(|_| ())
}

fn read_flags(flags: &[String]) -> Result<Config, Infra> {
    Flags::of_server(flags).map_err(|problem| {
        Infra::lasting(
            format!("the control plane does not take the scenario's flags: {problem}"),
            "correct spec.controlPlane.flags; control-plane --help lists what there is",
        )
    })
}

fn server_config(constants: &Constants, boards: &[BoardSpec], flags: &[String]) -> Result<Config, Infra> {
    let asked = read_flags(flags)?;
    let mut tokens = format!("{},rigor-admin,rigor-admin,\"system:masters\"\n", Tokens.admin());
    let scheduler = Tokens.scheduler();
    tokens.push_str(&format!("{scheduler},system:kube-scheduler,system:kube-scheduler\n"));
    for board in boards {
        let (token, user) = (Tokens.board(&board.name), format!("system:node:{}", board.name));
        tokens.push_str(&format!("{token},{user},{user},\"system:nodes\"\n"));
    }
    Ok(Config {
        store: StoreKind::Memory,
        plain_http: true,
        token_auth_text: Some(tokens),
        reconcile_interval: constants.retry_period,
        node_monitor_period: constants.check_period,
        not_ready_timeout: constants.no_execute_delay,
        eviction_timeout: constants.toleration_seconds,
        controller_period: constants.controller_period,
        ..asked
    })
}

/// The kubelet core with a board's configuration in its flash.
fn image(spec: &BoardSpec, constants: &Constants) -> Result<Image, Infra> {
    let machine = MachineName { name: spec.profile.name.clone(), arch: spec.profile.arch.clone() };
    let token = Tokens.board(&spec.name);
    let config = kubelet_config(spec, &machine, SERVER, &token, constants).to_string();
    let config = kubelet::Config::from_json(config.as_bytes()).map_err(|error| {
        Infra::lasting(
            format!("the kubelet of board {} refuses its configuration: {error}", spec.name),
            "correct the scenario's boards",
        )
    })?;
    Ok(Core::image(config))
}
