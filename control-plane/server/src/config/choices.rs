//! Settings that are one of a few.

use std::str::FromStr;

use super::{BadValue, Dialect};

/// `--store`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Forgotten at the end of the process.
    Memory,
    /// One file in the data directory.
    Redb,
    /// An etcd cluster, which several control planes may share.
    Etcd,
}

impl FromStr for StoreKind {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "memory" => Ok(Self::Memory),
            "redb" => Ok(Self::Redb),
            "etcd" => Ok(Self::Etcd),
            other => Err(BadValue(format!("unknown store `{other}`: use memory, redb or etcd"))),
        }
    }
}

/// Reads `--dialect`: what validation accepts where the small boards' documents and Kubernetes differ (SCHED-20).
///
/// # Errors
/// [`BadValue`] for an unknown name.
pub fn dialect(text: &str) -> Result<Dialect, BadValue> {
    match text {
        "kube32" => Ok(Dialect::Kube32),
        "kubernetes" => Ok(Dialect::Kubernetes),
        other => Err(BadValue(format!("unknown dialect `{other}`: use kube32 or kubernetes"))),
    }
}

/// The rules by which the built-in scheduler decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerProfile {
    /// The small boards' rules.
    Kube32,
    /// Kubernetes' rules.
    Upstream,
}

impl FromStr for SchedulerProfile {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "kube32" => Ok(Self::Kube32),
            "upstream" => Ok(Self::Upstream),
            other => Err(BadValue(format!("unknown scheduler profile `{other}`: use kube32 or upstream"))),
        }
    }
}

/// A schedulerName and the profile that places its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProfile {
    /// The `spec.schedulerName` of the pods.
    pub scheduler: String,
    /// The profile.
    pub profile: SchedulerProfile,
}

impl FromStr for NamedProfile {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let Some((scheduler, profile)) = text.split_once('=').filter(|(scheduler, _)| !scheduler.is_empty())
        else {
            return Err(BadValue(format!(
                "`{text}` is no NAME=PROFILE: write for example `second=upstream`"
            )));
        };
        Ok(Self { scheduler: scheduler.to_owned(), profile: profile.parse()? })
    }
}
