//! Rigs of real processes and emulators: power, links, consoles, and the recorder of what happens.
//!
//! `world` is the seam that the runner drives and every rig implements; `processes` implements it for rigs whose
//! control plane and boards are child processes, `external` for a control plane that is there already. A failure here is an [`Infra`], never a conformance failure.

pub mod bench;
pub mod binaries;
mod board;
pub mod clock;
mod control_plane;
pub mod etcd;
pub mod external;
mod heartbeat;
mod host;
mod http;
pub mod kubelet_config;
mod ledger;
mod log;
mod network;
pub mod place;
pub mod port;
pub mod process;
pub mod processes;
pub mod qemu;
pub mod qmp;
mod recorder;
mod recording;
pub mod relay;
pub mod scheduler;
pub mod signals;
mod spawn;
pub mod streams;
mod tool;
pub mod world;

pub use bench::Bench;
pub use world::{
    ApiAnswer, ApiRequest, BoardSpec, ControlPlaneAct, Identity, Infra, LinkChange, PowerAct, SchedulerAct,
    ToolOutcome, World,
};
