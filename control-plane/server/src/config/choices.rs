//! Settings that are one of a few.

use std::str::FromStr;

use super::{BadValue, Dialect};

/// The value that stands for a word.
///
/// # Errors
/// [`BadValue`] with the words that there are, for a `what` that is none of them.
pub(crate) fn choose<T: Copy>(what: &str, text: &str, known: &[(&str, T)]) -> Result<T, BadValue> {
    known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let words = match words.as_slice() {
            [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            words => words.join(""),
        };
        BadValue(format!("unknown {what} `{text}`: use {words}"))
    })
}

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
        choose("store", text, &[("memory", Self::Memory), ("redb", Self::Redb), ("etcd", Self::Etcd)])
    }
}

/// Reads `--dialect`: what validation accepts where the small boards' documents and Kubernetes differ (SCHED-20).
///
/// # Errors
/// [`BadValue`] for an unknown name.
pub fn dialect(text: &str) -> Result<Dialect, BadValue> {
    choose("dialect", text, &[("kube32", Dialect::Kube32), ("kubernetes", Dialect::Kubernetes)])
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
        choose("scheduler profile", text, &[("kube32", Self::Kube32), ("upstream", Self::Upstream)])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_none_are_told_those_that_are() {
        let check = |known: &[(&str, u8)], words: &str| {
            let refused = choose("thing", "x", known).unwrap_err().to_string();
            assert_eq!(refused, format!("unknown thing `x`: use {words}"));
        };
        check(&[("a", 1)], "a");
        check(&[("a", 1), ("b", 2)], "a or b");
        check(&[("a", 1), ("b", 2), ("c", 3)], "a, b or c");
        assert_eq!(choose("thing", "b", &[("a", 1), ("b", 2)]), Ok(2));
    }
}
