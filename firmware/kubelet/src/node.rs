//! What the API is told of this node (KLET-01): the Node object, its labels, its status and its Lease.
//! Pure texts; when they are sent is `kubelet`'s business.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::claims::{Ledger, Unit};
use crate::config::Config;
use crate::json::Json;
use crate::wall::Wall;

/// Pods a board takes at once.
pub(crate) const MAX_PODS: usize = 32;
/// Free heap below which the board is under MemoryPressure, in bytes (KLET-07).
const PRESSURE: u32 = 8 * 1024;

/// The figures of a status report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Free heap in bytes.
    pub(crate) memory: u32,
    /// Free numbers of each unit, in the order of [`Unit::ALL`].
    pub(crate) units: [u64; 6],
    /// Free PSRAM in bytes.
    pub(crate) psram: u64,
    /// Heap held for pods in bytes.
    pub(crate) held: u32,
    /// The board's address.
    pub(crate) address: [u8; 4],
}

/// The conditions of the node, in the order they are written.
const CONDITIONS: [&str; 4] = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];

/// What the API shows of the node.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The resourceVersion; empty where it is not known.
    pub(crate) version: String,
    /// Status and lastTransitionTime of each type of condition.
    conditions: BTreeMap<String, (String, String)>,
}

/// A Node as far as the kubelet reads it.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NodeObject {
    pub(crate) metadata: crate::wire::Metadata,
    status: Option<NodeStatus>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct NodeStatus {
    conditions: Option<Vec<NodeCondition>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    last_transition_time: Option<String>,
}

impl View {
    /// The same conditions, of a version that is not known.
    pub(crate) fn of_any_version(&self) -> View {
        View { version: String::new(), conditions: self.conditions.clone() }
    }
}

impl NodeObject {
    /// What it shows.
    pub(crate) fn view(self) -> View {
        let mut view = View { version: self.metadata.resource_version, ..View::default() };
        for condition in self.status.and_then(|status| status.conditions).unwrap_or_default() {
            let NodeCondition { kind, status, last_transition_time } = condition;
            view.conditions.insert(kind, (status, last_transition_time.unwrap_or_default()));
        }
        view
    }
}

/// The labels of the node: its own, where the configuration has none of that name, and the configured ones.
fn write_labels(j: &mut Json, config: &Config) {
    let own = [
        ("kubernetes.io/arch", config.board.arch.as_str()),
        ("kubernetes.io/hostname", config.node_name.as_str()),
        ("kubernetes.io/os", "rigor"),
        ("rigor.dev/board", config.board.name.as_str()),
    ];
    j.key("labels").object(|j| {
        for (key, value) in own.into_iter().filter(|(key, _)| !config.labels.contains_key(*key)) {
            j.field(key, value);
        }
        for (key, value) in &config.labels {
            j.field(key, value);
        }
    });
}

/// A new Node; its status follows once the pods are known.
pub(crate) fn object(config: &Config) -> String {
    Json::document(|j| {
        j.field("kind", "Node");
        j.field("apiVersion", "v1");
        j.key("metadata").object(|j| {
            j.field("name", &config.node_name);
            write_labels(j, config);
        });
    })
}

/// A merge patch that gives a Node that exists this board's labels.
pub(crate) fn labels_patch(config: &Config) -> String {
    Json::document(|j| j.key("metadata").object(|j| write_labels(j, config)))
}

/// What a status report is made of.
pub(crate) struct Report<'a> {
    pub(crate) config: &'a Config,
    pub(crate) ledger: &'a Ledger,
    pub(crate) figures: &'a Figures,
    /// Heap for pods in all, in bytes.
    pub(crate) memory_capacity: u32,
    /// Differs from boot to boot.
    pub(crate) boot_id: u64,
    /// Everything, or what moves only.
    pub(crate) full: bool,
}

impl Report<'_> {
    /// A strategic merge patch of the status; `view` is brought up to what it leads to.
    pub(crate) fn patch(&self, view: &mut View, wall: Wall) -> String {
        let now = wall.rfc3339();
        Json::document(|j| {
            // One that was given up may still arrive, after a later one: it is to be refused then.
            if !view.version.is_empty() {
                j.key("metadata").object(|j| j.field("resourceVersion", &view.version));
            }
            j.key("status").object(|j| {
                if self.full {
                    j.key("capacity").object(|j| self.amounts(j, true));
                }
                j.key("allocatable").object(|j| self.amounts(j, false));
                j.key("conditions").array(|j| {
                    for kind in CONDITIONS {
                        self.condition(j, kind, view, &now);
                    }
                });
                if self.full {
                    self.identity(j);
                }
            });
        })
    }

    fn amounts(&self, j: &mut Json, capacity: bool) {
        let memory = if capacity { self.memory_capacity } else { self.figures.memory };
        j.field("memory", &format!("{}", memory.min(self.memory_capacity)));
        j.field("pods", &format!("{MAX_PODS}"));
        if self.ledger.psram_capacity() > 0 {
            let psram = if capacity { self.ledger.psram_capacity() } else { self.figures.psram };
            j.field("esp32.io/psram", &format!("{psram}"));
        }
        for (unit, free) in Unit::ALL.into_iter().zip(self.figures.units) {
            let amount = if capacity { self.ledger.capacity(unit) } else { free };
            j.field(&format!("esp32.io/{}", unit.as_str()), &format!("{amount}"));
        }
    }

    fn condition(&self, j: &mut Json, kind: &str, view: &mut View, now: &str) {
        let pressure = self.figures.memory < PRESSURE;
        let (holds, reason, message) = match kind {
            "MemoryPressure" if pressure => {
                (true, "KubeletHasInsufficientMemory", "kubelet has insufficient memory available")
            }
            "MemoryPressure" => {
                (false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
            }
            "DiskPressure" => (false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            "PIDPressure" => (false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            _ => (true, "KubeletReady", "kubelet is posting ready status"),
        };
        let status = if holds { "True" } else { "False" };
        let shown = view.conditions.get(kind);
        // The time of the last change moves with the status and never alone.
        let changed = shown.is_none_or(|(shown, since)| shown != status || since.is_empty());
        j.object(|j| {
            j.field("type", kind);
            j.field("status", status);
            j.field("lastHeartbeatTime", now);
            if changed || self.full {
                j.field("reason", reason);
                j.field("message", message);
            }
            if changed {
                j.field("lastTransitionTime", now);
            }
        });
        if changed {
            view.conditions.insert(kind.to_string(), (status.to_string(), now.to_string()));
        }
    }

    fn identity(&self, j: &mut Json) {
        let config = self.config;
        let [a, b, c, d] = self.figures.address;
        j.key("addresses").array(|j| {
            for (kind, address) in
                [("InternalIP", format!("{a}.{b}.{c}.{d}")), ("Hostname", config.node_name.clone())]
            {
                j.object(|j| {
                    j.field("type", kind);
                    j.field("address", &address);
                });
            }
        });
        let version = env!("CARGO_PKG_VERSION");
        j.key("nodeInfo").object(|j| {
            j.field("architecture", &config.board.arch);
            j.field("bootID", &format!("{:016x}", self.boot_id));
            j.field("containerRuntimeVersion", &format!("rigor://{version}"));
            j.field("kernelVersion", version);
            j.field("kubeProxyVersion", "");
            j.field("kubeletVersion", &format!("v{version}"));
            j.field("machineID", &config.node_name);
            j.field("operatingSystem", "rigor");
            j.field("osImage", &format!("rigor {version} ({})", config.board.name));
            j.field("systemUUID", &config.node_name);
        });
    }
}

/// The spec of this node's Lease.
fn write_lease_spec(j: &mut Json, config: &Config, wall: Wall) {
    j.key("spec").object(|j| {
        j.field("holderIdentity", &config.node_name);
        j.key("leaseDurationSeconds").number(i64::from(config.lease.duration_seconds));
        j.field("renewTime", &wall.rfc3339_micro());
    });
}

/// A new Lease, owned by the Node where its uid is known (NODE-01).
pub(crate) fn lease(config: &Config, node_uid: &str, wall: Wall) -> String {
    Json::document(|j| {
        j.field("kind", "Lease");
        j.field("apiVersion", "coordination.k8s.io/v1");
        j.key("metadata").object(|j| {
            j.field("name", &config.node_name);
            j.field("namespace", "kube-node-lease");
            if !node_uid.is_empty() {
                j.key("ownerReferences").array(|j| {
                    j.object(|j| {
                        j.field("apiVersion", "v1");
                        j.field("kind", "Node");
                        j.field("name", &config.node_name);
                        j.field("uid", node_uid);
                    });
                });
            }
        });
        write_lease_spec(j, config, wall);
    })
}

/// A merge patch that renews the Lease.
pub(crate) fn renewal(config: &Config, wall: Wall) -> String {
    Json::document(|j| write_lease_spec(j, config, wall))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(full: bool, view: &mut View, memory: u32) -> String {
        let json =
            br#"{"nodeName":"a","server":"http://h:1","board":{"name":"b","arch":"c"},"labels":{"zone":"z"},
            "capabilities":{"gpio":[0,1],"i2c":1}}"#;
        let config = Config::from_json(json).unwrap();
        let ledger = Ledger::new(&config);
        let figures =
            Figures { memory, units: [2, 1, 0, 0, 0, 0], psram: 0, held: 0, address: [10, 0, 2, 15] };
        let report = Report {
            config: &config,
            ledger: &ledger,
            figures: &figures,
            memory_capacity: 50_000,
            boot_id: 7,
            full,
        };
        report.patch(view, Wall(1_700_000_000_000))
    }

    #[test]
    fn the_node_and_its_lease() {
        let json = br#"{"nodeName":"a","server":"http://h:1","board":{"name":"b","arch":"c"},"labels":{"zone":"z"}}"#;
        let config = Config::from_json(json).unwrap();
        insta::assert_snapshot!(object(&config), @r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/arch":"c","kubernetes.io/hostname":"a","kubernetes.io/os":"rigor","rigor.dev/board":"b","zone":"z"}}}"#);
        insta::assert_snapshot!(lease(&config, "u", Wall(1_700_000_000_123)), @r#"{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","namespace":"kube-node-lease","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"a","uid":"u"}]},"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2023-11-14T22:13:20.123000Z"}}"#);
    }

    #[test]
    fn a_report_carries_what_moves() {
        let mut view = View::default();
        report(true, &mut view, 40_000);
        insta::assert_snapshot!(report(false, &mut view, 30_000), @r#"{"status":{"allocatable":{"memory":"30000","pods":"32","esp32.io/gpio":"2","esp32.io/i2c":"1","esp32.io/uart":"0","esp32.io/adc":"0","esp32.io/rmt-tx":"0","esp32.io/rmt-rx":"0"},"conditions":[{"type":"MemoryPressure","status":"False","lastHeartbeatTime":"2023-11-14T22:13:20Z"},{"type":"DiskPressure","status":"False","lastHeartbeatTime":"2023-11-14T22:13:20Z"},{"type":"PIDPressure","status":"False","lastHeartbeatTime":"2023-11-14T22:13:20Z"},{"type":"Ready","status":"True","lastHeartbeatTime":"2023-11-14T22:13:20Z"}]}}"#);
    }

    #[test]
    fn a_change_time_moves_with_its_status_only() {
        let unknown = r#"{"status":{"conditions":[{"type":"Ready","status":"Unknown","lastTransitionTime":"2020-01-01T00:00:00Z"},
            {"type":"DiskPressure","status":"False","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}"#;
        let mut view = serde_json::from_str::<NodeObject>(unknown).unwrap().view();
        let text = report(true, &mut view, 100);
        let moved = r#""lastTransitionTime":"2023-11-14T22:13:20Z"}"#;
        assert_eq!(text.matches(moved).count(), 3, "{text}");
        assert!(text.contains("KubeletHasInsufficientMemory"), "{text}");
        assert!(!report(true, &mut view, 100).contains("lastTransitionTime"));
        assert!(report(false, &mut view, 40_000).contains("KubeletHasSufficientMemory"));
    }
}
