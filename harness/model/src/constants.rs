//! The constants that timed requirements are written in, under the names scenarios use for them.
//!
//! A rig file states them; a scenario may override some for its own trial; every report repeats the
//! ones in force. One table ([`Constant`]) carries names and meaning for parser, schema and docs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::shape::{Field, FieldType, Shape};

/// All constants in force for a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Constants {
    /// L: `leaseDurationSeconds` of a board's lease. Whole seconds, at least one.
    #[serde(with = "crate::duration")]
    pub lease_duration: Duration,
    /// How often a board renews its lease.
    #[serde(with = "crate::duration")]
    pub renew_interval: Duration,
    /// N: delay from the NoSchedule to the NoExecute taint.
    #[serde(with = "crate::duration")]
    pub no_execute_delay: Duration,
    /// T: the `tolerationSeconds` that admission writes into a pod. Whole seconds.
    #[serde(with = "crate::duration")]
    pub toleration_seconds: Duration,
    /// C: how often the lifecycle controller looks at the leases.
    #[serde(with = "crate::duration")]
    pub check_period: Duration,
    /// R: how often the scheduler retries pending pods.
    #[serde(with = "crate::duration")]
    pub retry_period: Duration,
    /// W: the period of the other controllers.
    #[serde(with = "crate::duration")]
    pub controller_period: Duration,
    /// S: slack for delivery of an observation. At most 500 ms where a gate is to accept the report.
    #[serde(with = "crate::duration")]
    pub slack: Duration,
}

impl Default for Constants {
    /// The true constants, with the slack of a rig in real time.
    fn default() -> Self {
        Constants {
            lease_duration: Duration::from_secs(15),
            renew_interval: Duration::from_secs(5),
            no_execute_delay: Duration::from_secs(15),
            toleration_seconds: Duration::from_secs(300),
            check_period: Duration::from_millis(500),
            retry_period: Duration::from_secs(1),
            controller_period: Duration::from_secs(1),
            slack: Duration::from_millis(500),
        }
    }
}

/// The name of one constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Constant {
    /// L
    LeaseDuration,
    /// Between two renewals.
    RenewInterval,
    /// N
    NoExecuteDelay,
    /// T
    TolerationSeconds,
    /// C
    CheckPeriod,
    /// R
    RetryPeriod,
    /// W
    ControllerPeriod,
    /// S
    Slack,
}

impl Constant {
    /// Every constant, in the order of the documents.
    pub const ALL: [Constant; 8] = [
        Constant::LeaseDuration,
        Constant::RenewInterval,
        Constant::NoExecuteDelay,
        Constant::TolerationSeconds,
        Constant::CheckPeriod,
        Constant::RetryPeriod,
        Constant::ControllerPeriod,
        Constant::Slack,
    ];

    /// The word that stands for it in scenarios and rig files.
    pub const fn name(self) -> &'static str {
        match self {
            Constant::LeaseDuration => "leaseDuration",
            Constant::RenewInterval => "renewInterval",
            Constant::NoExecuteDelay => "noExecuteDelay",
            Constant::TolerationSeconds => "tolerationSeconds",
            Constant::CheckPeriod => "checkPeriod",
            Constant::RetryPeriod => "retryPeriod",
            Constant::ControllerPeriod => "controllerPeriod",
            Constant::Slack => "slack",
        }
    }

    /// The constant of that name.
    pub fn named(name: &str) -> Option<Constant> {
        Constant::ALL.into_iter().find(|constant| constant.name() == name)
    }

    /// What it is, in one line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Constant::LeaseDuration => "L, leaseDurationSeconds of a board's lease",
            Constant::RenewInterval => "how often a board renews its lease",
            Constant::NoExecuteDelay => "N, delay from the NoSchedule to the NoExecute taint",
            Constant::TolerationSeconds => "T, the tolerationSeconds that admission gives a pod",
            Constant::CheckPeriod => "C, how often the lifecycle controller looks",
            Constant::RetryPeriod => "R, how often the scheduler retries pending pods",
            Constant::ControllerPeriod => "W, the period of the other controllers",
            Constant::Slack => "S, slack for the delivery of an observation",
        }
    }
}

/// A constant as a key.
const fn field(constant: Constant) -> Field {
    Field::optional(constant.name(), FieldType::Duration, constant.meaning()).such_as("4s")
}

/// What a scenario may change.
pub(crate) static OVERRIDES: Shape = Shape::new(
    "constants",
    "Constants that the scenario needs otherwise; all others come from the rig.",
    &[
        field(Constant::LeaseDuration),
        field(Constant::RenewInterval),
        field(Constant::NoExecuteDelay),
        field(Constant::TolerationSeconds),
        field(Constant::CheckPeriod),
        field(Constant::RetryPeriod),
        field(Constant::ControllerPeriod),
    ],
);

/// What a rig states; which may be left out depends on its sort, and the reader tells.
pub(crate) static STATED: Shape = Shape::new(
    "constants",
    "Every constant, so that a report can be read by itself; an external rig may leave out what can be asked.",
    &[
        field(Constant::LeaseDuration),
        field(Constant::RenewInterval),
        field(Constant::NoExecuteDelay),
        field(Constant::TolerationSeconds),
        field(Constant::CheckPeriod),
        field(Constant::RetryPeriod),
        field(Constant::ControllerPeriod),
        field(Constant::Slack),
    ],
);

impl Constants {
    /// The value of one constant.
    pub fn get(&self, constant: Constant) -> Duration {
        match constant {
            Constant::LeaseDuration => self.lease_duration,
            Constant::RenewInterval => self.renew_interval,
            Constant::NoExecuteDelay => self.no_execute_delay,
            Constant::TolerationSeconds => self.toleration_seconds,
            Constant::CheckPeriod => self.check_period,
            Constant::RetryPeriod => self.retry_period,
            Constant::ControllerPeriod => self.controller_period,
            Constant::Slack => self.slack,
        }
    }

    /// Gives one constant another value.
    pub fn set(&mut self, constant: Constant, value: Duration) {
        let place = match constant {
            Constant::LeaseDuration => &mut self.lease_duration,
            Constant::RenewInterval => &mut self.renew_interval,
            Constant::NoExecuteDelay => &mut self.no_execute_delay,
            Constant::TolerationSeconds => &mut self.toleration_seconds,
            Constant::CheckPeriod => &mut self.check_period,
            Constant::RetryPeriod => &mut self.retry_period,
            Constant::ControllerPeriod => &mut self.controller_period,
            Constant::Slack => &mut self.slack,
        };
        *place = value;
    }

    /// These constants with a scenario's overrides laid over them.
    pub fn overridden(mut self, overrides: &std::collections::BTreeMap<Constant, Duration>) -> Self {
        for (constant, value) in overrides {
            self.set(*constant, *value);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_go_both_ways() {
        let mut constants = Constants::default();
        for (index, constant) in Constant::ALL.into_iter().enumerate() {
            assert_eq!(Constant::named(constant.name()), Some(constant));
            let value = Duration::from_secs(100 + index as u64);
            constants.set(constant, value);
            assert_eq!(constants.get(constant), value);
            let written = serde_json::to_value(constant).expect("a name");
            assert_eq!(written, serde_json::json!(constant.name()));
        }
        let written = serde_json::to_value(constants).expect("constants");
        assert_eq!(written["slack"], "1m47s");
        assert_eq!(serde_json::from_value::<Constants>(written).expect("read back"), constants);
    }
}
