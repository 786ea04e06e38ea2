//! seam
use crate::{Decision, Key, Now, Snapshot};
use std::collections::BTreeMap;
/// What the collector knows of the kinds that owner references name.
#[derive(Debug, Clone, Default)]
pub struct GarbageConfig {
    /// Plural resource by (group, kind); group `""` for core. Owners of other kinds are never taken for gone.
    pub kinds: BTreeMap<(String, String), &'static str>,
}
/// Looks at one object, as a dependant and as an owner that is being deleted.
#[must_use]
pub fn decide(
    _snapshot: &Snapshot,
    _config: &GarbageConfig,
    _resource: &'static str,
    _key: &Key,
    _now: &Now,
) -> Decision {
    Decision::nothing("seam")
}
/// The objects that the collector has to look at: those with owners and those with a finalizer of its own.
#[must_use]
pub fn candidates(_snapshot: &Snapshot) -> Vec<(&'static str, Key)> {
    Vec::new()
}
