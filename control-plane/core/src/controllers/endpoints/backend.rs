//! A pod as its services see it.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::pod::{self, Phase};
use crate::{conditions, json};

/// A family of addresses, of which a slice has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// The families of a service, the first of which its Endpoints have.
    pub(super) fn all_of(service: &Value) -> Vec<Self> {
        let named = json::list(service, &["spec", "ipFamilies"]).iter().filter_map(|family| {
            match family.as_str()? {
                "IPv4" => Some(Self::V4),
                "IPv6" => Some(Self::V6),
                _ => None,
            }
        });
        let mut families: Vec<Self> = Vec::new();
        for family in named {
            if !families.contains(&family) {
                families.push(family);
            }
        }
        if families.is_empty() { vec![Self::V4] } else { families }
    }

    /// As `addressType` has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn has(self, address: &str) -> bool {
        match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => self == Self::V4,
            Ok(IpAddr::V6(_)) => self == Self::V6,
            Err(_) => false,
        }
    }
}

/// A selected pod that has an address and did not finish (EP-02).
#[derive(Debug, Clone, Copy)]
pub(super) struct Backend<'a> {
    pub(super) pod: &'a Value,
    /// Running and Ready (EP-04).
    pub(super) serving: bool,
    pub(super) terminating: bool,
}

impl<'a> Backend<'a> {
    pub(super) fn of(pod: &'a Value) -> Option<Self> {
        let phase = Phase::of(pod);
        let has_address = json::text(pod, &["status", "podIP"]).is_some_and(|ip| !ip.is_empty());
        if !has_address || phase.is_finished() {
            return None;
        }
        let serving = phase == Phase::Running && pod::is_ready(pod);
        Some(Self { pod, serving, terminating: pod::is_terminating(pod) })
    }

    /// The pod's address of this family.
    pub(super) fn address(&self, family: Family) -> Option<&'a str> {
        let all = json::list(self.pod, &["status", "podIPs"]);
        let all = all.iter().filter_map(|one| json::text(one, &["ip"]));
        all.chain(json::text(self.pod, &["status", "podIP"])).find(|ip| family.has(ip))
    }

    pub(super) fn uid(&self) -> &'a str {
        json::uid(self.pod)
    }

    /// What Endpoints and slices say alike of where the address leads: `hostname`, `nodeName`, `targetRef`.
    pub(super) fn describe(&self, service: &Value, fields: &mut Map<String, Value>) {
        let of_spec = |field| json::text(self.pod, &["spec", field]).filter(|text| !text.is_empty());
        if let Some(hostname) = of_spec("hostname")
            && of_spec("subdomain") == Some(json::name(service))
        {
            fields.insert("hostname".to_owned(), hostname.into());
        }
        if let Some(node) = pod::node(self.pod) {
            fields.insert("nodeName".to_owned(), node.into());
        }
        let target = json!({
            "kind": "Pod",
            "name": json::name(self.pod),
            "namespace": json::namespace(self.pod),
            "uid": self.uid(),
        });
        fields.insert("targetRef".to_owned(), target);
    }
}

/// Whether two versions of a pod are the same to every service, whatever else changed.
pub(super) fn same(old: &Value, new: &Value) -> bool {
    const FIELDS: [&[&str]; 10] = [
        &["metadata", "uid"],
        &["metadata", "labels"],
        &["metadata", "deletionTimestamp"],
        &["spec", "nodeName"],
        &["spec", "hostname"],
        &["spec", "subdomain"],
        &["status", "phase"],
        &["status", "podIP"],
        &["status", "podIPs"],
        // Only images change in the containers of a pod; but whoever reads must not count on it.
        &["spec", "containers"],
    ];
    FIELDS.iter().all(|path| json::get(old, path) == json::get(new, path))
        && json::get(old, &["spec", "initContainers"]) == json::get(new, &["spec", "initContainers"])
        && conditions::status(old, "Ready") == conditions::status(new, "Ready")
}
