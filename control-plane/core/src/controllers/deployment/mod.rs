//! seam
use crate::{Decision, Key, Now, Snapshot};
use std::time::Duration;
/// Durations of the deployment controller.
#[derive(Debug, Clone)]
pub struct DeploymentConfig {
    /// W: the controller's period.
    pub period: Duration,
}
/// One pass over one deployment.
#[must_use]
pub fn decide(_snapshot: &Snapshot, _config: &DeploymentConfig, _key: &Key, _now: &Now) -> Decision {
    Decision::nothing("seam")
}
