//! Host ports, of which each node has every one once.

use serde_json::Value;

use crate::json;

/// A port of the host that a container asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// `0.0.0.0` stands for every address.
    address: String,
    protocol: String,
    port: i64,
}

const EVERY_ADDRESS: &str = "0.0.0.0";

impl HostPort {
    /// Those that the containers of `pod` ask for.
    #[must_use]
    pub fn all_of(pod: &Value) -> Vec<Self> {
        let containers = json::list(pod, &["spec", "containers"]).iter();
        containers.flat_map(|container| json::list(container, &["ports"])).filter_map(Self::read).collect()
    }

    fn read(port: &Value) -> Option<Self> {
        let named = |field, otherwise: &str| {
            json::text(port, &[field]).filter(|it| !it.is_empty()).unwrap_or(otherwise).to_owned()
        };
        Some(Self {
            address: named("hostIP", EVERY_ADDRESS),
            protocol: named("protocol", "TCP"),
            port: json::int(port, &["hostPort"]).filter(|port| *port > 0)?,
        })
    }

    /// Whether one node cannot have both.
    #[must_use]
    pub fn collides_with(&self, other: &Self) -> bool {
        let every = |it: &Self| it.address == EVERY_ADDRESS;
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address || every(self) || every(other))
    }
}
