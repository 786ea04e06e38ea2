//! The configuration that reaches a board without rebuilding its image: who it is, where the API
//! server is, what hardware it offers. JSON with camelCase keys; an unknown key is refused, so that
//! a typing mistake shows at boot and not as a default.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Deserialize;

/// Everything a board is told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// Name of the Node object, a lower-case DNS subdomain.
    pub node_name: String,
    /// Where the API server is: `http://HOST:PORT`.
    pub server: Server,
    /// Bearer token; absent where the server asks for none.
    #[serde(default)]
    pub token: Option<String>,
    /// Labels of the Node beside those every board has.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The lease that proves the board alive.
    #[serde(default)]
    pub lease: LeaseConfig,
    /// Longest time between two status reports, in milliseconds, 1 to 3,600,000.
    #[serde(default = "default_status_millis")]
    pub status_millis: u32,
    /// What the hardware is called.
    pub board: Board,
    /// What the hardware offers to pods.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Heap budget in bytes, for shells that model their heap; others measure theirs.
    #[serde(default = "default_heap_bytes")]
    pub heap_bytes: u32,
}

/// The API server's place, resolved from `http://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Server {
    /// Host name or IPv4 address.
    pub host: String,
    /// TCP port, 1 to 65535.
    pub port: u16,
}

/// Timing of the node's Lease (NODE-01).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaseConfig {
    /// `spec.leaseDurationSeconds`, in seconds, at least 1.
    pub duration_seconds: u32,
    /// Time between renewals, in milliseconds, at least 10 and shorter than the lease.
    pub renew_millis: u32,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        LeaseConfig { duration_seconds: 15, renew_millis: 5000 }
    }
}

/// What the hardware is called.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Board {
    /// Board name, as in `rigor.dev/board`.
    pub name: String,
    /// Instruction set, as in `kubernetes.io/arch`.
    pub arch: String,
}

/// What the hardware offers to pods (KLET-01).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Capabilities {
    /// Numbers of the pins pods may claim.
    pub gpio: BTreeSet<u16>,
    /// Numbers of the pins that exist and are the board's own (flash, console, straps); wins over `gpio`.
    pub reserved_gpio: BTreeSet<u16>,
    /// I²C buses, numbered from 0.
    pub i2c: u16,
    /// Serial ports, numbered from 0.
    pub uart: u16,
    /// Analogue inputs, numbered from 0.
    pub adc: u16,
    /// Remote-control transmitters, numbered from 0.
    pub rmt_tx: u16,
    /// Remote-control receivers, numbered from 0.
    pub rmt_rx: u16,
    /// PSRAM in bytes; 0 where there is none.
    pub psram_bytes: u32,
}

/// Why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not JSON, an unknown or missing key, or a value of the wrong type.
    #[error("the configuration is not valid JSON of the known keys: {0}")]
    Syntax(String),
    /// A value that cannot work.
    #[error("the configuration's {key} {problem}")]
    Value {
        /// The key, dotted from the top.
        key: &'static str,
        /// What is wrong, as the end of a sentence.
        problem: String,
    },
}

impl Config {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] for text that is not the JSON described here, [`ConfigError::Value`] for a
    /// value out of its range.
    pub fn from_json(json: &[u8]) -> Result<Config, ConfigError> {
        let config: Config =
            serde_json::from_slice(json).map_err(|error| ConfigError::Syntax(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key, problem: &str| Err(ConfigError::Value { key, problem: problem.to_string() });
        if !is_dns_subdomain(&self.node_name) {
            return refuse(
                "nodeName",
                "must be lower-case letters, digits, `-` and `.`, at most 253 of them",
            );
        }
        if self.lease.duration_seconds == 0 || self.lease.duration_seconds > 86_400 {
            return refuse("lease.durationSeconds", "must be 1 to 86400");
        }
        if self.lease.renew_millis < 10
            || u64::from(self.lease.renew_millis) >= u64::from(self.lease.duration_seconds) * 1000
        {
            return refuse("lease.renewMillis", "must be at least 10 and shorter than the lease");
        }
        if self.status_millis == 0 || self.status_millis > 3_600_000 {
            return refuse("statusMillis", "must be 1 to 3600000");
        }
        let token = self.token.as_deref().unwrap_or("x");
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return refuse("token", "must be printable ASCII without spaces, or absent");
        }
        if self.board.name.is_empty() || self.board.arch.is_empty() {
            return refuse("board", "needs a name and an arch");
        }
        Ok(())
    }

    /// Pins pods may claim: the usable ones less the reserved.
    pub fn claimable_pins(&self) -> Vec<u16> {
        self.capabilities.gpio.difference(&self.capabilities.reserved_gpio).copied().collect()
    }
}

impl TryFrom<String> for Server {
    type Error = String;

    fn try_from(url: String) -> Result<Server, String> {
        let wanted = "server must be http://HOST:PORT";
        if url.starts_with("https://") {
            return Err("server: https is not supported by this firmware; use http://HOST:PORT".to_string());
        }
        let rest = url.strip_prefix("http://").ok_or(wanted)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or(wanted)?;
        let port: u16 = port.parse().map_err(|_| wanted)?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
        if host.is_empty() || port == 0 || !host.bytes().all(plain) {
            return Err(wanted.to_string());
        }
        Ok(Server { host: host.to_string(), port })
    }
}

fn is_dns_subdomain(name: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().copied().is_some_and(edge)
                && bytes.last().copied().is_some_and(edge)
                && bytes.iter().all(|b| edge(*b) || *b == b'-')
        })
}

fn default_status_millis() -> u32 {
    10_000
}

fn default_heap_bytes() -> u32 {
    200 * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn with(key_and_value: &str) -> Result<Config, ConfigError> {
        let comma = if key_and_value.is_empty() { "" } else { "," };
        let base = r#""board":{"name":"qemu-virt","arch":"riscv32imc"}"#;
        let name = if key_and_value.contains("nodeName") { "" } else { r#","nodeName":"a""# };
        let server =
            if key_and_value.contains("server") { "" } else { r#","server":"http://10.0.2.2:18080""# };
        Config::from_json(format!("{{{base}{name}{server}{comma}{key_and_value}}}").as_bytes())
    }

    #[test]
    fn a_short_configuration_has_the_true_constants() {
        let config = with("").unwrap();
        assert_eq!(config.lease, LeaseConfig { duration_seconds: 15, renew_millis: 5000 });
        assert_eq!((config.status_millis, config.heap_bytes), (10_000, 204_800));
        assert_eq!(config.server, Server { host: "10.0.2.2".into(), port: 18080 });
    }

    #[test]
    fn reserved_pins_are_not_claimable() {
        let config = with(r#""capabilities":{"gpio":[0,1,2,11],"reservedGpio":[11,12]}"#).unwrap();
        assert_eq!(config.claimable_pins(), [0, 1, 2]);
    }

    #[test]
    fn bad_configurations_are_refused_with_the_key() {
        let check = |text: &str, expected: &str| {
            let error = with(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check(r#""nodename":"a""#, "nodename");
        check(r#""nodeName":"A""#, "nodeName");
        check(r#""nodeName":"a..b""#, "nodeName");
        check(r#""server":"https://10.0.2.2:1""#, "https");
        check(r#""server":"10.0.2.2:1""#, "http://HOST:PORT");
        check(r#""server":"http://10.0.2.2""#, "http://HOST:PORT");
        check(r#""server":"http://10.0.2.2:0""#, "http://HOST:PORT");
        check(r#""lease":{"durationSeconds":4,"renewMillis":4000}"#, "lease.renewMillis");
        check(r#""lease":{"durationSeconds":0,"renewMillis":100}"#, "lease.durationSeconds");
        check(r#""statusMillis":0"#, "statusMillis");
        check(r#""token":"a b""#, "token");
        check(r#""capabilities":{"gpios":[1]}"#, "gpios");
        check(r#""heapBytes":-1"#, "line 1 column");
    }
}
