//! Deployments without ReplicaSets (DEPL-01 to DEPL-13): pods belong to their Deployment directly.
//!
//! [`decide`] is one pass over one Deployment. A pass makes what is missing, deletes what is too much, replaces at
//! most one pod of an old template, and writes the status that follows from what it saw. It never adopts a pod, and
//! never lets more pods stand than asked for: a pin can be claimed once, so there is no surge.

mod owned;
mod pass;
mod progress;
mod status;
mod template;

use std::time::Duration;

pub use pass::decide;
pub use template::hash as template_hash;

/// Label of a Deployment's pods: the hash of the template that they were made from.
pub const TEMPLATE_HASH: &str = "pod-template-hash";

/// Durations of the deployment controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeploymentConfig {
    /// W: from one pass to the next while something is left to do.
    pub period: Duration,
}
