//! What a rig file says of a control plane that the rig does not start, and what a scenario may do there.
//!
//! Whoever runs trials on a cluster of their own keeps everything that is not the trial's: a write goes to the trial's
//! namespace or to its nodes, or it is not sent. Which one it is follows from method and path alone ([`area`]), so the
//! listing, which knows no cluster, and the rig, which asks before each request, agree.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::act::Api;
use crate::capability::Capability;
use crate::constants::Constant;
use crate::duration;
use crate::kinds::{LEASE_NAMESPACE, ObjectKind};
use crate::reader::{Fields, Reader};
use crate::rig::{Rig, RigKind};
use crate::scenario::Scenario;
use crate::template;
use crate::verbs::Action;
use crate::yaml::{Kind, Node};

/// Constants that can be asked of a running cluster: of the boards' leases, and of admission.
const PROBED: [Constant; 2] = [Constant::LeaseDuration, Constant::TolerationSeconds];

/// Where a foreign control plane is, and what is there already.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct External {
    /// The kubeconfig; what `KUBECONFIG` names, or `~/.kube/config`, if absent.
    pub kubeconfig: Option<String>,
    /// Which of its contexts; its current one if absent.
    pub context: Option<String>,
    /// The Node of each board that is there, by the board's letter.
    pub nodes: BTreeMap<String, String>,
    /// Files with the boards' own bearer tokens, by the board's letter.
    pub tokens: BTreeMap<String, String>,
    /// Constants that the file leaves to be asked for.
    pub probed: BTreeSet<Constant>,
}

/// Reads what only rigs of the kind `external` have, and notes it on others.
pub(crate) fn read(reader: &mut Reader<'_>, spec: &Fields<'_>, kind: RigKind) -> Option<External> {
    match kind {
        RigKind::External => {}
        RigKind::Sim | RigKind::Host | RigKind::Qemu => {
            for key in ["kubeconfig", "context", "boardTokens"] {
                if let Some(node) = spec.get(key) {
                    reader.wrong(
                        &node.span,
                        format!(
                            "a rig of kind {} starts its control plane itself and has no {key}",
                            kind.name()
                        ),
                        "leave it out, or write kind: external",
                    );
                }
            }
            return None;
        }
    }
    for key in ["board", "emulator"] {
        if let Some(node) = spec.get(key) {
            reader.wrong(
                &node.span,
                format!("the boards of an external rig are there already, so `{key}` says nothing"),
                "leave it out",
            );
        }
    }
    let nodes = spec.get("boards").map(|node| letters(reader, node)).unwrap_or_default();
    let tokens = match spec.get("boardTokens") {
        Some(node) => {
            let entries = reader.map(node);
            for entry in entries.iter().filter(|entry| !nodes.contains_key(&entry.key)) {
                reader.wrong(
                    &entry.key_span,
                    format!("the rig has no board `{}`", entry.key),
                    "give it a Node under `boards` first",
                );
            }
            entries.iter().filter_map(|entry| Some((entry.key.clone(), reader.text(&entry.value)?))).collect()
        }
        None => BTreeMap::new(),
    };
    let stated =
        |constant: Constant| spec.get("constants").is_some_and(|node| node.get(constant.name()).is_some());
    Some(External {
        kubeconfig: spec.get("kubeconfig").and_then(|node| reader.text(node)),
        context: spec.get("context").and_then(|node| reader.text(node)),
        nodes,
        tokens,
        probed: PROBED.into_iter().filter(|constant| !stated(*constant)).collect(),
    })
}

/// `{a: NODE, b: NODE}`: letters from `a` on without a hole, each Node once.
fn letters(reader: &mut Reader<'_>, node: &Node) -> BTreeMap<String, String> {
    let mut nodes = BTreeMap::new();
    if !matches!(node.kind, Kind::Map(_)) {
        let message = format!("the boards of an external rig are Nodes that it has, not {}", node.describe());
        reader.wrong(&node.span, message, "write the Node of each, {a: NODE, b: NODE}, or leave it out");
        return nodes;
    }
    for entry in reader.map(node) {
        if let Some(name) = reader.text(&entry.value) {
            if nodes.values().any(|known| *known == name) {
                reader.wrong(&entry.value.span, format!("`{name}` is a board twice"), "name each Node once");
            }
            nodes.insert(entry.key.clone(), name);
        }
    }
    let expected: BTreeSet<String> = ('a'..='z').take(nodes.len()).map(String::from).collect();
    if !nodes.keys().eq(expected.iter()) {
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        reader.wrong(
            &node.span,
            "scenarios call their boards a, b, c … in order",
            format!("call these {}", expected.join(", ")),
        );
    }
    nodes
}

/// Notes constants that are neither stated nor can be asked for.
pub(crate) fn check_missing(
    reader: &mut Reader<'_>,
    node: &Node,
    missing: &[Constant],
    external: Option<&External>,
) {
    let names = |constants: &[Constant]| {
        constants.iter().map(|constant| constant.name()).collect::<Vec<_>>().join(", ")
    };
    let start = node.span.start..node.span.start;
    let unstated: Vec<Constant> =
        missing.iter().copied().filter(|constant| external.is_none() || !PROBED.contains(constant)).collect();
    if !unstated.is_empty() {
        let (are, them) = if unstated.len() == 1 { ("is", "it") } else { ("are", "them") };
        let message = match external {
            Some(_) => {
                format!("{} {are} missing, and a cluster cannot be asked for {them}", names(&unstated))
            }
            None => format!("a rig states every constant, and {} {are} missing", names(&unstated)),
        };
        reader.wrong(&start, message, "add it with its duration, for example slack: 500ms");
    }
    if let Some(external) = external
        && external.nodes.is_empty()
        && missing.contains(&Constant::LeaseDuration)
    {
        reader.wrong(
            &start,
            "leaseDuration is missing, and the rig has no board whose lease could say it",
            "add it with its duration: played nodes take it, for example leaseDuration: 40s",
        );
    }
}

/// Where a letter of a board stands as it is, and is not a handle of the board itself (`board: a`): the byte.
pub(crate) fn bare_board<'n>(node: &'n Node, boards: &[String]) -> Option<(&'n str, usize)> {
    match &node.kind {
        Kind::Text(text) => boards.contains(text).then_some((text.as_str(), node.span.start)),
        Kind::List(items) => items.iter().find_map(|item| bare_board(item, boards)),
        Kind::Map(entries) => entries
            .iter()
            .filter(|entry| entry.key != "board")
            .find_map(|entry| bare_board(&entry.value, boards)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => None,
    }
}

/// What of a cluster a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Area {
    /// What lives in a namespace: its resource and name, where the path names one.
    Inside {
        /// The namespace.
        namespace: String,
        /// `pods`, `leases`.
        resource: String,
        /// The object; absent where the path is the collection's.
        name: Option<String>,
    },
    /// A Namespace itself; absent where the path is the collection's.
    Namespace(Option<String>),
    /// A Node; absent where the path is the collection's.
    Node(Option<String>),
    /// A question that is asked with a POST and leaves nothing behind.
    Review,
    /// Anything else.
    Elsewhere,
}

/// What a path is about.
#[must_use]
pub fn area(path: &str) -> Area {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    // A path that climbs, or hides its slashes, is not looked into.
    if parts.iter().any(|part| matches!(*part, "." | "..") || part.contains('%')) {
        return Area::Elsewhere;
    }
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return Area::Elsewhere,
    };
    let core = parts[0] == "api";
    match rest {
        ["namespaces"] if core => Area::Namespace(None),
        ["namespaces", name] | ["namespaces", name, "status" | "finalize"] if core => {
            Area::Namespace(Some((*name).to_owned()))
        }
        ["namespaces", namespace, resource, name @ ..] => Area::Inside {
            namespace: (*namespace).to_owned(),
            resource: (*resource).to_owned(),
            name: name.first().map(|name| (*name).to_owned()),
        },
        ["nodes", name @ ..] if core => Area::Node(name.first().map(|name| (*name).to_owned())),
        [
            "selfsubjectaccessreviews"
            | "selfsubjectrulesreviews"
            | "selfsubjectreviews"
            | "subjectaccessreviews"
            | "tokenreviews",
        ] => Area::Review,
        _ => Area::Elsewhere,
    }
}

/// Whether a request reads only. What reaches into a pod or past the API server does not, whatever its method.
#[must_use]
pub fn reads(method: &str, path: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let reaches = |part: &str| matches!(part, "exec" | "attach" | "portforward" | "proxy");
    matches!(method, "GET" | "HEAD" | "OPTIONS") && !path.split('/').any(reaches)
}

/// Why a trial on a foreign cluster cannot be judged or must not be run, if so.
pub(crate) fn refuses(rig: &Rig, external: &External, scenario: &Scenario) -> Option<String> {
    if let Some((board, line)) = &scenario.bare_board {
        return Some(format!(
            "line {line} writes `{board}` for a Node's name, which is another one here: write ${{{board}}}"
        ));
    }
    for (constant, wanted) in &scenario.constants {
        let (ours, probed) = (rig.constants.get(*constant), external.probed.contains(constant));
        let of_boards = matches!(constant, Constant::LeaseDuration | Constant::RenewInterval);
        if (of_boards && scenario.boards.is_empty()) || (*wanted == ours && !probed) {
            continue;
        }
        let is = if probed { "not known before it is asked".to_owned() } else { duration::format(ours) };
        return Some(format!(
            "it wants {} {}, and the cluster's is {is}",
            constant.name(),
            duration::format(*wanted)
        ));
    }
    if rig.capabilities.contains(&Capability::ExclusiveCluster) {
        return None;
    }
    let outside = scenario.plan.iter().find_map(|step| {
        let acts: Vec<&Action> = match &step.action {
            Action::Parallel(steps) => steps.iter().map(|step| &step.action).collect(),
            other => vec![other],
        };
        acts.into_iter().find_map(|act| outside(act, &scenario.boards)).map(|what| (step.line, what))
    });
    outside.map(|(line, what)| {
        format!(
            "line {line} writes {what}, outside the trial's namespace and nodes: only with exclusive-cluster"
        )
    })
}

/// The trial's namespace, as scenarios write it.
const OWN: &str = "${namespace}";

/// What an act writes outside the trial's namespace and nodes, as far as the file tells.
fn outside(action: &Action, boards: &[String]) -> Option<String> {
    let object = |object: &Value, api: &Api| {
        let kind = object["kind"].as_str()?;
        let row = ObjectKind::named(kind)?;
        let namespace = object["metadata"]["namespace"].as_str().or(api.namespace.as_deref()).unwrap_or(OWN);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        elsewhere("POST", &row.object_path(namespace, name)).then(|| format!("the {kind} {name}"))
    };
    let target = |kind: &'static ObjectKind, name: &str, api: &Api, method: &str| {
        let namespace = api.namespace.as_deref().unwrap_or(OWN);
        elsewhere(method, &kind.object_path(namespace, name)).then(|| format!("the {} {name}", kind.kind))
    };
    if let Action::Apply(act) = action {
        return act.objects.iter().find_map(|one| object(one, &act.api));
    }
    if let Action::Create(act) = action {
        return object(&act.object, &act.api);
    }
    if let Action::Replace(act) = action {
        return object(&act.object, &act.api);
    }
    if let Action::Patch(act) = action {
        return target(act.target.kind, &act.target.name, &act.api, "PATCH");
    }
    if let Action::Delete(act) = action {
        // A board's Node is its owner's, and whether the server refuses it to others is not tried on theirs.
        let board = template::whole(&act.target.name).filter(|name| boards.iter().any(|board| board == name));
        if let (Some(board), "Node") = (board, act.target.kind.kind) {
            return Some(format!("a DELETE of the Node of board {board}"));
        }
        return target(act.target.kind, &act.target.name, &act.api, "DELETE");
    }
    if let Action::Request(act) = action {
        return (!reads(&act.method, &act.path) && elsewhere(&act.method, &act.path))
            .then(|| format!("by {} {}", act.method, act.path));
    }
    None
}

/// Whether a write to that path is certainly not the trial's. Which nodes are is known to the rig only.
fn elsewhere(method: &str, path: &str) -> bool {
    match area(path) {
        Area::Inside { namespace, resource, .. } => {
            namespace != OWN && !(namespace == LEASE_NAMESPACE && resource == "leases")
        }
        Area::Namespace(Some(name)) => name != OWN || method == "DELETE",
        Area::Namespace(None) | Area::Elsewhere => true,
        Area::Node(_) | Area::Review => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_it_is_about() {
        let inside = |namespace: &str, resource: &str, name: Option<&str>| Area::Inside {
            namespace: namespace.to_owned(),
            resource: resource.to_owned(),
            name: name.map(str::to_owned),
        };
        for (path, expected) in [
            ("/api/v1/namespaces/n/pods", inside("n", "pods", None)),
            ("/api/v1/namespaces/n/pods/p/binding?dryRun=All", inside("n", "pods", Some("p"))),
            ("/apis/apps/v1/namespaces/n/deployments/d", inside("n", "deployments", Some("d"))),
            ("/api/v1/namespaces", Area::Namespace(None)),
            ("/api/v1/namespaces/n", Area::Namespace(Some("n".to_owned()))),
            ("/api/v1/namespaces/n/finalize", Area::Namespace(Some("n".to_owned()))),
            ("/api/v1/nodes", Area::Node(None)),
            ("/api/v1/nodes/x/status", Area::Node(Some("x".to_owned()))),
            ("//api//v1//nodes//x", Area::Node(Some("x".to_owned()))),
            ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Area::Review),
            ("/apis/rbac.authorization.k8s.io/v1/clusterroles", Area::Elsewhere),
            ("/apis/example.com/v1/nodes/x", Area::Elsewhere),
            ("/api/v1/namespaces/own/../../nodes/x", Area::Elsewhere),
            ("/api/v1/namespaces/own/%2e%2e/pods", Area::Elsewhere),
            ("/api/v1/pods", Area::Elsewhere),
            ("/healthz", Area::Elsewhere),
            ("", Area::Elsewhere),
        ] {
            assert_eq!(area(path), expected, "{path}");
        }
    }

    #[test]
    fn what_is_certainly_not_the_trials_is_known_without_a_cluster() {
        for (method, path, expected) in [
            ("POST", "/api/v1/namespaces/${namespace}/pods", false),
            ("POST", "/api/v1/namespaces/default/pods", true),
            ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1", false),
            ("POST", "/api/v1/namespaces/kube-node-lease/configmaps", true),
            ("POST", "/api/v1/namespaces", true),
            ("PATCH", "/api/v1/namespaces/${namespace}", false),
            ("DELETE", "/api/v1/namespaces/${namespace}", true),
            ("DELETE", "/api/v1/nodes/n1", false),
            ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", false),
            ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", true),
        ] {
            assert_eq!(elsewhere(method, path), expected, "{method} {path}");
        }
    }
}
