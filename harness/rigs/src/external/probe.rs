//! What a cluster says of itself before the first trial: whether it answers, what this user may do there, its version,
//! its boards, and those constants that can be asked for. Reads and dry runs only.

use super::connection::Connection;
use crate::world::{ApiAnswer, Infra};
use futures_util::future::join_all;
use rigor_model::foreign::External;
use rigor_model::{Capability, Constant, Rig, duration};
use serde_json::{Value, json};
use std::time::Duration;

/// A permission: verb, group, resource (with subresource after a slash), namespace (empty for none).
type Right = (&'static str, &'static str, &'static str, &'static str);

/// The namespace of a trial, for questions: there is none yet.
const TRIAL: &str = "rigor-trial";

const COORDINATION: &str = "coordination.k8s.io";

/// Without these no trial can be run and judged.
const NEEDED: &[Right] = &[
    ("create", "", "namespaces", ""),
    ("get", "", "namespaces", ""),
    ("list", "", "namespaces", ""),
    ("watch", "", "namespaces", ""),
    ("delete", "", "namespaces", ""),
    ("create", COORDINATION, "leases", "rigor-lock"),
    ("get", COORDINATION, "leases", "rigor-lock"),
    ("update", COORDINATION, "leases", "rigor-lock"),
    ("list", "", "nodes", ""),
    ("watch", "", "nodes", ""),
    ("list", "", "pods", ""),
    ("list", COORDINATION, "leases", "kube-node-lease"),
    ("watch", COORDINATION, "leases", "kube-node-lease"),
    ("list", "", "events", "default"),
    ("watch", "", "events", "default"),
];

/// Resources of a trial's namespace that are listed, watched and written.
const OWN: &[(&str, &str)] = &[
    ("", "configmaps"),
    ("", "endpoints"),
    ("", "events"),
    ("", "pods"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("batch", "jobs"),
    ("discovery.k8s.io", "endpointslices"),
    (COORDINATION, "leases"),
];

/// What is done with each of them.
const OWN_VERBS: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// Subresources that scenarios write.
const SUBRESOURCES: &[Right] = &[
    ("create", "", "pods/binding", TRIAL),
    ("patch", "", "pods/status", TRIAL),
    ("patch", "apps", "deployments/scale", TRIAL),
];

/// What playing nodes takes.
const PLAYED: &[Right] = &[
    ("create", "", "nodes", ""),
    ("get", "", "nodes", ""),
    ("patch", "", "nodes", ""),
    ("patch", "", "nodes/status", ""),
    ("delete", "", "nodes", ""),
    ("create", COORDINATION, "leases", "kube-node-lease"),
    ("patch", COORDINATION, "leases", "kube-node-lease"),
    ("delete", COORDINATION, "leases", "kube-node-lease"),
];

/// What scenarios do to a board's Node.
const BOARDS: &[Right] = &[
    ("get", "", "nodes", ""),
    ("patch", "", "nodes", ""),
    ("get", COORDINATION, "leases", "kube-node-lease"),
];

/// The permissions that every rig of this kind needs, and those for nodes that the harness plays, one a line.
#[must_use]
pub fn rights() -> (Vec<String>, Vec<String>) {
    let all = |rights: &[Right]| rights.iter().map(|right| shown(*right)).collect();
    (all(&needed()), all(PLAYED))
}

fn needed() -> Vec<Right> {
    let own = OWN
        .iter()
        .flat_map(|(group, resource)| OWN_VERBS.iter().map(move |verb| (*verb, *group, *resource, TRIAL)));
    NEEDED.iter().copied().chain(own).chain(SUBRESOURCES.iter().copied()).collect()
}

fn shown((verb, group, resource, namespace): Right) -> String {
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let place = match namespace {
        "" => String::new(),
        TRIAL => " in namespaces of trials".to_owned(),
        namespace => format!(" in {namespace}"),
    };
    format!("{verb} {resource}{group}{place}")
}

/// Asks, and fills in what the rig file left open: constants and capabilities. Also gives the server's version.
pub(crate) async fn resolve(
    connection: &Connection,
    rig: &Rig,
    external: &External,
) -> Result<(Rig, String), Infra> {
    let version = version(connection).await?;
    let mut rig = rig.clone();
    let mut needed = needed();
    if !external.nodes.is_empty() {
        needed.extend(BOARDS);
    }
    let missing = lacking(connection, &needed).await?;
    if !missing.is_empty() {
        return Err(Infra::lasting(
            format!("the kubeconfig's user may not: {}", missing.join("; ")),
            "grant it (docs/external.md has the role), or name another user",
        ));
    }
    let mut offered = rig.capabilities.clone();
    if offered.contains(&Capability::PlayedNodes) && !lacking(connection, PLAYED).await?.is_empty() {
        offered.remove(&Capability::PlayedNodes);
    }
    if crate::binaries::on_path("kubectl").is_none() {
        offered.remove(&Capability::Kubectl);
    }
    if external.nodes.is_empty() || !external.nodes.keys().all(|board| external.tokens.contains_key(board)) {
        offered.remove(&Capability::BoardIdentity);
    }
    rig.capabilities = offered;
    boards(connection, external).await?;
    if let Some(found) = lease_duration(connection, external).await? {
        settle(&mut rig, external, Constant::LeaseDuration, found, "its boards' leases say")?;
    }
    let found = toleration(connection).await;
    match found {
        Ok(found) => settle(&mut rig, external, Constant::TolerationSeconds, found, "its admission says")?,
        Err(why) if external.probed.contains(&Constant::TolerationSeconds) => {
            return Err(Infra::lasting(
                format!("tolerationSeconds cannot be asked for: {why}"),
                "state it in the rig file (spec.constants)",
            ));
        }
        Err(_) => {}
    }
    if let Some(external) = &mut rig.external {
        external.probed.clear();
    }
    Ok((rig, version))
}

/// Takes what was found, or sees that it is what the file says.
fn settle(
    rig: &mut Rig,
    external: &External,
    constant: Constant,
    found: Duration,
    who: &str,
) -> Result<(), Infra> {
    let stated = rig.constants.get(constant);
    if !external.probed.contains(&constant) && stated != found {
        return Err(Infra::lasting(
            format!(
                "the rig file says that {} is {}, and {who} {}",
                constant.name(),
                duration::format(stated),
                duration::format(found)
            ),
            "correct it, or leave it out: it is asked for",
        ));
    }
    rig.constants.set(constant, found);
    Ok(())
}

fn no_answer(connection: &Connection, answer: &ApiAnswer) -> Infra {
    let why = answer.error.clone().unwrap_or_else(|| format!("{}: {}", answer.status, answer.text));
    Infra::lasting(
        format!("the cluster at {} does not answer as it should: {why}", connection.access().base),
        format!("try kubectl --context {} version", connection.access().context),
    )
}

async fn version(connection: &Connection) -> Result<String, Infra> {
    let answer = connection.own("GET", "/version", None).await;
    let version = answer.body.as_ref().and_then(|body| body["gitVersion"].as_str());
    match (answer.status, version) {
        (200, Some(version)) => Ok(version.to_owned()),
        _ => Err(no_answer(connection, &answer)),
    }
}

/// Which permissions this user does not have.
async fn lacking(connection: &Connection, rights: &[Right]) -> Result<Vec<String>, Infra> {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let ask = |(verb, group, resource, namespace): Right| async move {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace,
            }},
        });
        connection.own("POST", path, Some(&review)).await
    };
    let mut missing = Vec::new();
    for few in rights.chunks(16) {
        let answers = join_all(few.iter().map(|right| ask(*right))).await;
        for (right, answer) in few.iter().zip(answers) {
            match answer.body.as_ref().map(|body| &body["status"]["allowed"]) {
                Some(Value::Bool(true)) => {}
                Some(Value::Bool(false)) if answer.status == 201 => missing.push(shown(*right)),
                _ => return Err(no_answer(connection, &answer)),
            }
        }
    }
    Ok(missing)
}

async fn boards(connection: &Connection, external: &External) -> Result<(), Infra> {
    if external.nodes.is_empty() {
        return Ok(());
    }
    let answer = connection.own("GET", "/api/v1/nodes", None).await;
    let items = answer.body.as_ref().and_then(|body| body["items"].as_array());
    let Some(items) = items else { return Err(no_answer(connection, &answer)) };
    let names: Vec<&str> = items.iter().filter_map(|node| node["metadata"]["name"].as_str()).collect();
    match external.nodes.iter().find(|(_, node)| !names.contains(&node.as_str())) {
        Some((board, node)) => Err(Infra::lasting(
            format!("the cluster has no Node {node}, which the rig file calls board {board}"),
            format!("correct spec.boards; its Nodes are {}", names.join(", ")),
        )),
        None => Ok(()),
    }
}

/// What the boards' leases say; they have to agree.
async fn lease_duration(connection: &Connection, external: &External) -> Result<Option<Duration>, Infra> {
    let mut found: Option<(String, u64)> = None;
    for node in external.nodes.values() {
        let path = format!("/apis/{COORDINATION}/v1/namespaces/kube-node-lease/leases/{node}");
        let answer = connection.own("GET", &path, None).await;
        let seconds = answer.body.as_ref().and_then(|body| body["spec"]["leaseDurationSeconds"].as_u64());
        let Some(seconds) = seconds else {
            return Err(Infra::lasting(
                format!("the board {node} has no lease with a duration in kube-node-lease"),
                "power the board, or leave it out of the rig file",
            ));
        };
        match &found {
            Some((other, known)) if *known != seconds => {
                return Err(Infra::lasting(
                    format!("the lease of {other} is {known} s and that of {node} {seconds} s"),
                    "give all boards of a rig the same lease, or write a rig file for each sort",
                ));
            }
            Some(_) => {}
            None => found = Some((node.clone(), seconds)),
        }
    }
    Ok(found.map(|(_, seconds)| Duration::from_secs(seconds)))
}

/// What admission writes into a pod, by a dry run, which leaves nothing behind.
async fn toleration(connection: &Connection) -> Result<Duration, String> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rigor-asks"},
        "spec": {"schedulerName": "rigor.dev/nobody", "containers": [{"name": "main", "image": "rigor.dev/pause"}]},
    });
    let answer = connection.own("POST", "/api/v1/namespaces/default/pods?dryRun=All", Some(&pod)).await;
    let Some(body) = answer.body.filter(|_| answer.status == 201) else {
        return Err(format!("a dry run of a pod was answered {}", answer.error.unwrap_or(answer.text)));
    };
    let tolerations = body["spec"]["tolerations"].as_array().into_iter().flatten();
    let ours = tolerations.filter(|one| one["key"] == "node.kubernetes.io/unreachable");
    let seconds = ours.filter_map(|one| one["tolerationSeconds"].as_u64()).next();
    seconds.map(Duration::from_secs).ok_or_else(|| "its admission gives pods no tolerationSeconds".to_owned())
}
