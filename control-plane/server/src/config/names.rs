//! Controllers and admission plugins by the names that flags give them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{BadValue, choose};

macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal, $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl $name {
            /// Every one, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// All names, for the help of flags.
            pub fn names() -> String {
                [$($text),+].join(", ")
            }

            /// The name used in flags.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = BadValue;

            fn from_str(text: &str) -> Result<Self, BadValue> {
                choose($what, text, &[$(($text, Self::$variant)),+])
            }
        }
    };
}

named!(
    /// A controller that can be left out with `--controllers=*,-NAME`.
    Controller, "controller",
    /// Binds pods, at creation and by retry.
    Scheduler = "scheduler",
    /// Judges nodes by their leases, taints, evicts.
    NodeLifecycle = "node-lifecycle",
    /// Makes and replaces the pods of Deployments.
    Deployment = "deployment",
    /// Makes and replaces the pods of DaemonSets.
    DaemonSet = "daemonset",
    /// Runs Jobs.
    Job = "job",
    /// Computes Endpoints and EndpointSlices.
    Endpoints = "endpoints",
    /// Writes the rules of cluster roles that aggregate.
    ClusterRoleAggregation = "clusterrole-aggregation",
    /// Makes the default ServiceAccount of each namespace.
    ServiceAccount = "serviceaccount",
    /// Removes finished pods beyond a threshold, and deleted pods whose node is gone.
    PodGarbage = "pod-garbage",
    /// Deletes what lost its owner.
    Garbage = "garbage",
    /// Empties namespaces that are being deleted.
    Namespace = "namespace",
);

named!(
    /// An admission plugin that can be switched off.
    Admission, "admission plugin",
    /// Refuses pods whose service account is missing (GHOST-04).
    ServiceAccount = "ServiceAccount",
    /// Gives pods the not-ready and unreachable tolerations (NODE-13).
    DefaultTolerationSeconds = "DefaultTolerationSeconds",
    /// Keeps a board's writes to what is its own (KLET-08).
    NodeRestriction = "NodeRestriction",
);

/// The value of `--controllers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers(BTreeSet<Controller>);

impl Controllers {
    /// Every controller.
    pub fn all() -> Self {
        Self(Controller::ALL.iter().copied().collect())
    }

    /// Whether this one runs.
    pub fn has(&self, controller: Controller) -> bool {
        self.0.contains(&controller)
    }
}

impl FromStr for Controllers {
    type Err = BadValue;

    /// Names separated by commas; `*` is all, `-name` leaves one out wherever it stands. Only exclusions mean all but these, and
    /// `none` alone means none.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text.trim() == "none" {
            return Ok(Self(BTreeSet::new()));
        }
        let mut chosen = BTreeSet::new();
        let mut left_out = BTreeSet::new();
        let mut named = false;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.strip_prefix('-') {
                Some(name) => {
                    left_out.insert(name.parse::<Controller>()?);
                }
                None if word == "*" => {
                    named = true;
                    chosen = Self::all().0;
                }
                None => {
                    named = true;
                    chosen.insert(word.parse::<Controller>()?);
                }
            }
        }
        match (named, left_out.is_empty()) {
            (false, true) => {
                return Err(BadValue::new(
                    "--controllers is empty: name some, write `none` to run none, or leave the flag out to run all".into(),
                ));
            }
            (false, false) => chosen = Self::all().0,
            (true, _) => {}
        }
        Ok(Self(chosen.difference(&left_out).copied().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_chosen_by_name_star_and_exclusion() {
        let check = |text: &str, expected: &[Controller]| {
            let expected = Controllers(expected.iter().copied().collect());
            assert_eq!(text.parse::<Controllers>(), Ok(expected), "{text}");
        };
        check("scheduler", &[Controller::Scheduler]);
        check("scheduler, deployment", &[Controller::Scheduler, Controller::Deployment]);
        check("none", &[]);
        let without: Vec<Controller> =
            Controller::ALL.iter().copied().filter(|it| *it != Controller::ServiceAccount).collect();
        check("*,-serviceaccount", &without);
        check("-serviceaccount,*", &without);
        check("-serviceaccount", &without);
        assert_eq!("*".parse::<Controllers>(), Ok(Controllers::all()));
    }

    #[test]
    fn to_run_no_controllers_is_said_and_not_left_unsaid() {
        for text in ["", " ", ",", " , "] {
            let message = text.parse::<Controllers>().unwrap_err().to_string();
            assert!(message.contains("`none`"), "{text:?}: {message}");
        }
        let message = "none,scheduler".parse::<Controllers>().unwrap_err().to_string();
        assert!(message.contains("unknown controller `none`"), "{message}");
    }

    #[test]
    fn unknown_names_are_listed_with_the_known_ones() {
        let message = "*,-schedular".parse::<Controllers>().unwrap_err().to_string();
        assert!(message.contains("`schedular`") && message.contains("node-lifecycle"), "{message}");
        let message = "PodSecurity".parse::<Admission>().unwrap_err().to_string();
        assert!(message.contains("`PodSecurity`") && message.contains("NodeRestriction"), "{message}");
    }
}
