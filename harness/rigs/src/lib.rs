//! Rigs of real processes and emulators: power, links, consoles, and the recorder of what happens.

pub mod clock;
mod heartbeat;
pub mod kubelet_config;
mod ledger;
pub mod place;
pub mod port;
pub mod process;
pub mod qmp;
pub mod relay;
mod spawn;
pub mod world;

pub use world::{
    ApiAnswer, ApiRequest, BoardSpec, ControlPlaneAct, Identity, Infra, KubectlOutcome, LinkAct, PowerAct,
    RigFacts, World,
};
