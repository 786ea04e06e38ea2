//! What is served, for clients that ask: versions, groups and resources, plain and aggregated. All of it is read off
//! the table of kinds.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::kinds::{self, Kind, Subresource};
use crate::typed;

/// The version of Kubernetes that clients are told they talk to; kubectl compares it with its own.
pub const GIT_VERSION: &str = "v1.32.13-rigor";

/// `/version`.
pub fn version() -> Value {
    json!({
        "major": "1",
        "minor": "32",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": platform(),
    })
}

/// Operating system and architecture by the names that Kubernetes' clients know.
fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

/// `/api`; `server_address` is the address and port that clients reach the server at.
pub fn api_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    })
}

/// The groups served, the core group left out, each with its versions.
fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (group, version) in kinds::group_versions() {
        match groups.iter_mut().find(|(name, _)| *name == group) {
            _ if group.is_empty() => {}
            Some((_, versions)) => versions.push(version),
            None => groups.push((group, vec![version])),
        }
    }
    groups
}

fn group(name: &str, versions: &[&str]) -> Value {
    let all: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": all, "preferredVersion": all.first()})
}

/// `/apis`.
pub fn api_groups() -> Value {
    let groups: Vec<Value> = groups().iter().map(|(name, versions)| group(name, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; `None` for a group that is not served.
pub fn api_group(name: &str) -> Option<Value> {
    let groups = groups();
    let (name, versions) = groups.iter().find(|(group, _)| *group == name)?;
    let mut shown = group(name, versions);
    shown["kind"] = json!("APIGroup");
    shown["apiVersion"] = json!("v1");
    Some(shown)
}

/// `/api/VERSION` (empty group) or `/apis/GROUP/VERSION`; `None` for one that is not served.
pub fn resource_list(group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for kind in of_group(group, version) {
        let mut row = json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": kind.verbs,
        });
        add_names(&mut row, kind);
        if kind.is_stored() {
            row["storageVersionHash"] = json!(storage_version_hash(kind));
        }
        resources.push(row);
        for sub in kind.subresources {
            let mut row = json!({
                "name": format!("{}/{}", kind.plural, sub.name),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": sub.kind,
                "verbs": sub.verbs,
            });
            if is_foreign(kind, sub) {
                row["group"] = json!(sub.group);
                row["version"] = json!(sub.version);
            }
            resources.push(row);
        }
    }
    if resources.is_empty() {
        return None;
    }
    let mut list = json!({"kind": "APIResourceList", "resources": resources});
    if group.is_empty() {
        list["groupVersion"] = json!(version);
    } else {
        list["apiVersion"] = json!("v1");
        list["groupVersion"] = json!(format!("{group}/{version}"));
    }
    Some(list)
}

/// Kubernetes' short name of the form in which a kind is kept, which clients compare but never read.
fn storage_version_hash(kind: &Kind) -> String {
    const KEPT: usize = 8;
    let stored = kinds::by_resource(kind.resource).unwrap_or(kind);
    // Kubernetes still keeps these in the form of their beta.
    let version = if stored.kind == "CustomResourceDefinition" { "v1beta1" } else { stored.version };
    let hash = Sha256::digest(format!("{}/{version}/{}", stored.group, stored.kind));
    typed::base64(&hash[..KEPT])
}

fn of_group(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    kinds::all().iter().filter(move |kind| kind.group == group && kind.version == version)
}

fn is_foreign(kind: &Kind, sub: &Subresource) -> bool {
    (sub.group, sub.version) != (kind.group, kind.version)
}

fn add_names(row: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        row["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        row["categories"] = json!(kind.categories);
    }
}

/// `/api` in aggregated form; `version` is that of apidiscovery.k8s.io, `v2` or `v2beta1`.
pub fn aggregated_core(version: &str) -> Value {
    let metadata = json!({"creationTimestamp": null});
    aggregated(version, vec![json!({"metadata": metadata, "versions": [aggregated_version("", "v1")]})])
}

/// `/apis` in aggregated form; `version` is that of apidiscovery.k8s.io, `v2` or `v2beta1`.
pub fn aggregated_groups(version: &str) -> Value {
    let items = groups()
        .iter()
        .map(|(name, versions)| {
            let versions: Vec<Value> =
                versions.iter().map(|version| aggregated_version(name, version)).collect();
            json!({"metadata": {"name": name, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    aggregated(version, items)
}

fn aggregated(version: &str, items: Vec<Value>) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_version(group: &str, version: &str) -> Value {
    let resources: Vec<Value> = of_group(group, version)
        .map(|kind| {
            let mut row = json!({
                "resource": kind.plural,
                // A kind of the group itself goes without group and version.
                "responseKind": {"group": "", "version": "", "kind": kind.kind},
                "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": kind.singular,
                "verbs": kind.verbs,
            });
            add_names(&mut row, kind);
            let subresources: Vec<Value> =
                kind.subresources.iter().map(|sub| aggregated_sub(kind, sub)).collect();
            if !subresources.is_empty() {
                row["subresources"] = Value::Array(subresources);
            }
            row
        })
        .collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn aggregated_sub(kind: &Kind, sub: &Subresource) -> Value {
    let (group, version) = if is_foreign(kind, sub) { (sub.group, sub.version) } else { ("", "") };
    let mut row = Map::new();
    row.insert("subresource".to_owned(), json!(sub.name));
    row.insert("responseKind".to_owned(), json!({"group": group, "version": version, "kind": sub.kind}));
    row.insert("verbs".to_owned(), json!(sub.verbs));
    Value::Object(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
        list.as_array().unwrap().iter().find(|row| row[key] == name).unwrap()
    }

    #[test]
    fn plain_lists() {
        let list = resource_list("batch", "v1").unwrap();
        assert_eq!((&list["apiVersion"], &list["groupVersion"]), (&json!("v1"), &json!("batch/v1")));
        let expected = json!({
            "name": "jobs", "singularName": "job", "namespaced": true, "kind": "Job", "categories": ["all"],
            "storageVersionHash": "mudhfqk/qZY=",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        });
        assert_eq!(row(&list["resources"], "name", "jobs"), &expected);
        let expected = json!({
            "name": "jobs/status", "singularName": "", "namespaced": true, "kind": "Job",
            "verbs": ["get", "patch", "update"],
        });
        assert_eq!(row(&list["resources"], "name", "jobs/status"), &expected);

        let core = resource_list("", "v1").unwrap();
        assert_eq!((core.get("apiVersion"), &core["groupVersion"]), (None, &json!("v1")));
        let eviction = row(&core["resources"], "name", "pods/eviction");
        assert_eq!((&eviction["group"], &eviction["version"]), (&json!("policy"), &json!("v1")));
        assert!(resource_list("apps", "v9").is_none());
    }

    #[test]
    fn groups_lists() {
        let list = api_groups();
        let names: Vec<&str> =
            list["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "apiregistration.k8s.io",
                "apps",
                "events.k8s.io",
                "authentication.k8s.io",
                "authorization.k8s.io",
                "autoscaling",
                "batch",
                "certificates.k8s.io",
                "networking.k8s.io",
                "policy",
                "rbac.authorization.k8s.io",
                "storage.k8s.io",
                "admissionregistration.k8s.io",
                "apiextensions.k8s.io",
                "scheduling.k8s.io",
                "coordination.k8s.io",
                "node.k8s.io",
                "discovery.k8s.io",
                "flowcontrol.apiserver.k8s.io",
            ]
        );
        let expected = json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "apps",
            "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
            "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
        });
        assert_eq!(api_group("apps"), Some(expected));
        assert_eq!(api_group(""), None);
    }

    #[test]
    fn aggregated_lists() {
        let list = aggregated_groups("v2");
        assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
        let apps =
            list["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == "apps").unwrap();
        let expected = json!({
            "resource": "deployments",
            "responseKind": {"group": "", "version": "", "kind": "Deployment"},
            "scope": "Namespaced",
            "singularResource": "deployment",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["deploy"],
            "categories": ["all"],
            "subresources": [
                {
                    "subresource": "scale",
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                    "verbs": ["get", "patch", "update"],
                },
                {
                    "subresource": "status",
                    "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                    "verbs": ["get", "patch", "update"],
                },
            ],
        });
        assert_eq!(row(&apps["versions"][0]["resources"], "resource", "deployments"), &expected);
        assert_eq!(apps["versions"][0]["freshness"], "Current");
        let core = aggregated_core("v2beta1");
        assert_eq!(core["items"][0]["metadata"], json!({"creationTimestamp": null}));
        assert_eq!(core["apiVersion"], "apidiscovery.k8s.io/v2beta1");
    }

    #[test]
    fn the_version_is_one_that_kubectl_reads() {
        let shown = version();
        assert_eq!((&shown["major"], &shown["minor"]), (&json!("1"), &json!("32")));
        assert!(shown["gitVersion"].as_str().unwrap().starts_with("v1.32."));
    }
}
