//! What is a trial's on somebody else's cluster: its namespace, the boards it was given, and the nodes it makes. Every
//! write is asked for here before it is sent; nothing else of the cluster is ever written.

use crate::world::{ApiAnswer, ApiRequest};
use rigor_model::foreign::{Area, area, reads};
use rigor_model::kinds::LEASE_NAMESPACE;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The label by which a later run finds what a trial made.
pub(crate) const TRIAL_LABEL: &str = "rigor.dev/trial";

/// The annotation of the trial's namespace that holds the boards' Nodes as they were before the trial wrote to them.
pub(crate) const BOARDS_ANNOTATION: &str = "rigor.dev/boards";

/// What is a trial's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// The value of the label.
    pub(crate) id: String,
    /// The namespace.
    pub(crate) namespace: String,
    /// Nobody else is on the cluster, so that everything may be written.
    pub(crate) exclusive: bool,
    /// The Node of each board, by its letter.
    pub(crate) boards: BTreeMap<String, String>,
    /// Nodes that the trial made.
    pub(crate) nodes: BTreeSet<String>,
    /// Nodes that it tried to make.
    pub(crate) asked: BTreeSet<String>,
    /// Leases beside nodes that the trial made.
    pub(crate) leases: BTreeSet<String>,
    /// Boards' Nodes that it wrote to.
    pub(crate) touched: BTreeSet<String>,
    /// Paths of what it made elsewhere, in order.
    pub(crate) others: Vec<String>,
}

impl Scope {
    fn is_board(&self, node: &str) -> bool {
        self.boards.values().any(|board| board == node)
    }

    fn is_node(&self, node: &str) -> bool {
        self.is_board(node) || self.nodes.contains(node)
    }

    /// Whether a request may be sent; if not, why.
    pub(crate) fn allows(&self, request: &ApiRequest) -> Result<(), String> {
        if reads(&request.method, &request.path) {
            return Ok(());
        }
        let refused = |what: String| Err(format!("not sent, because {what}"));
        let method = request.method.as_str();
        match area(&request.path) {
            Area::Inside { namespace, .. } if namespace == self.namespace => Ok(()),
            Area::Inside { namespace, resource, name }
                if namespace == LEASE_NAMESPACE && resource == "leases" =>
            {
                match name.as_deref() {
                    Some(name) if self.is_node(name) || self.leases.contains(name) => Ok(()),
                    // A lease that is there already is not replaced by this.
                    None if method == "POST" => Ok(()),
                    _ if self.exclusive => Ok(()),
                    Some(name) => refused(format!("the lease {name} is of no node of the trial")),
                    None => refused("it would change the leases of all nodes".to_owned()),
                }
            }
            Area::Node(Some(name)) if self.nodes.contains(&name) => Ok(()),
            Area::Node(Some(name)) if self.is_board(&name) && (method != "DELETE" || self.exclusive) => {
                Ok(())
            }
            Area::Node(Some(name)) if self.is_board(&name) => refused(format!(
                "the Node {name} of a board is not the trial's to delete (exclusive-cluster)"
            )),
            Area::Node(None) if method == "POST" => Ok(()),
            Area::Namespace(Some(name)) if name == self.namespace && method != "DELETE" => Ok(()),
            Area::Review => Ok(()),
            _ if self.exclusive => Ok(()),
            Area::Node(Some(name)) => {
                refused(format!("the Node {name} was there before the trial and is no board of the rig"))
            }
            Area::Node(None) => refused("it would change all nodes".to_owned()),
            Area::Inside { namespace, .. } => {
                refused(format!("the namespace {namespace} is not the trial's, which is {}", self.namespace))
            }
            Area::Namespace(_) | Area::Elsewhere => {
                refused(format!("{method} {} is outside the trial's namespace and nodes", request.path))
            }
        }
    }

    /// Labels what outlives the trial's namespace, and notes the names that are about to be there.
    pub(crate) fn stamp(&mut self, request: &mut ApiRequest) {
        if !matches!(request.method.as_str(), "POST" | "PUT") {
            return;
        }
        let place = area(&request.path);
        let outlives = match &place {
            Area::Node(_) | Area::Namespace(_) => !request.path.ends_with("/status"),
            Area::Inside { namespace, resource, .. } => namespace == LEASE_NAMESPACE && resource == "leases",
            Area::Review | Area::Elsewhere => false,
        };
        let body = request.body.as_deref().and_then(|body| serde_json::from_str::<Value>(body).ok());
        let (true, Some(mut body)) = (outlives, body) else { return };
        let board = match &place {
            Area::Node(Some(name)) => self.is_board(name),
            Area::Inside { name: Some(name), .. } => self.is_board(name),
            _ => false,
        };
        let Some(metadata) = body["metadata"].as_object_mut() else { return };
        if let (Area::Node(None), Some(name)) = (&place, metadata.get("name").and_then(Value::as_str)) {
            self.asked.insert(name.to_owned());
        }
        if board {
            return;
        }
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(TRIAL_LABEL.to_owned(), self.id.as_str().into());
            request.body = Some(body.to_string());
        }
    }

    /// The board whose Node a request is the first to write to.
    pub(crate) fn touches(&mut self, request: &ApiRequest) -> Option<String> {
        let Area::Node(Some(name)) = area(&request.path) else { return None };
        let first = !reads(&request.method, &request.path)
            && self.is_board(&name)
            && self.touched.insert(name.clone());
        first.then_some(name)
    }

    /// Notes what a request made, and turns "is there already" into no answer where it is somebody else's.
    pub(crate) fn note(&mut self, request: &ApiRequest, answer: ApiAnswer) -> ApiAnswer {
        let place = area(&request.path);
        if request.method != "POST" || request.path.contains("dryRun=") {
            return answer;
        }
        let of = |value: Option<&Value>| {
            value.and_then(|body| body["metadata"]["name"].as_str().map(str::to_owned))
        };
        let sent = request.body.as_deref().and_then(|body| serde_json::from_str::<Value>(body).ok());
        let Some(name) = of(answer.body.as_ref().filter(|_| answer.status == 201)).or(of(sent.as_ref()))
        else {
            return answer;
        };
        // An answer that never came may have been a success.
        let made = matches!(answer.status, 0 | 201);
        match place {
            Area::Node(None) if made => {
                self.nodes.insert(name);
            }
            Area::Node(None) if answer.status == 409 && !self.is_node(&name) => {
                self.asked.remove(&name);
                return ApiAnswer {
                    error: Some(format!(
                        "a Node {name} is there already and is not the trial's: rename it, or delete it if nobody needs it"
                    )),
                    ..ApiAnswer::default()
                };
            }
            Area::Inside { namespace, resource, name: None }
                if namespace == LEASE_NAMESPACE && resource == "leases" && made =>
            {
                self.leases.insert(name);
            }
            Area::Inside { namespace, name: None, .. } if made && namespace != self.namespace => {
                self.others.push(format!("{}/{name}", bare(&request.path)));
            }
            Area::Namespace(None) | Area::Elsewhere if made => {
                self.others.push(format!("{}/{name}", bare(&request.path)));
            }
            _ => {}
        }
        answer
    }

    /// Whether an object is recorded.
    pub(crate) fn keeps(&self, stream: &str, object: &Value) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
        let node = |name: &str| self.is_node(name) || self.asked.contains(name);
        if self.exclusive || namespace == self.namespace {
            return true;
        }
        match stream {
            "nodes" => node(&name),
            "namespaces" => name == self.namespace,
            "leases" => namespace == LEASE_NAMESPACE && (node(&name) || self.leases.contains(&name)),
            "events" => {
                let about = &object["involvedObject"];
                about["kind"] == "Node" && about["name"].as_str().is_some_and(node)
            }
            _ => false,
        }
    }
}

/// A path without its query.
fn bare(path: &str) -> &str {
    path.split('?').next().unwrap_or_default().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope {
            id: "t1".to_owned(),
            namespace: "rigor-t1".to_owned(),
            boards: [("a".to_owned(), "kitchen".to_owned())].into(),
            ..Scope::default()
        }
    }

    fn request(method: &str, path: &str, body: Option<Value>) -> ApiRequest {
        ApiRequest::new(method, path, body.as_ref())
    }

    fn answered(status: u16) -> ApiAnswer {
        ApiAnswer { status, ..ApiAnswer::default() }
    }

    #[test]
    fn writes_go_to_the_trials_own_and_nowhere_else() {
        let mut scope = scope();
        let node = json!({"metadata": {"name": "n1"}});
        scope.note(&request("POST", "/api/v1/nodes", Some(node)), answered(201));
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        for (method, path, allowed, exclusive) in [
            ("GET", "/api/v1/namespaces/default/secrets", true, true),
            ("GET", "/api/v1/namespaces/default/pods/p/exec", false, true),
            ("POST", "/api/v1/namespaces/rigor-t1/pods", true, true),
            ("DELETE", "/api/v1/namespaces/rigor-t1/pods", true, true),
            ("POST", "/api/v1/namespaces/default/pods", false, true),
            ("POST", "/api/v1/namespaces/rigor-t1/../default/pods", false, true),
            ("POST", "/api/v1/namespaces/rigor-t1%2F..%2Fdefault/pods", false, true),
            ("PATCH", "/api/v1/namespaces/rigor-t1", true, true),
            ("DELETE", "/api/v1/namespaces/rigor-t1", false, true),
            ("POST", "/api/v1/namespaces", false, true),
            ("POST", "/api/v1/nodes", true, true),
            ("DELETE", "/api/v1/nodes", false, true),
            ("DELETE", "/api/v1/nodes/n1", true, true),
            ("PATCH", "/api/v1/nodes/n2/status", false, true),
            ("PATCH", "/api/v1/nodes/kitchen", true, true),
            ("DELETE", "/api/v1/nodes/kitchen", false, true),
            ("POST", leases, true, true),
            ("DELETE", leases, false, true),
            ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", true, true),
            ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", false, true),
        ] {
            let request = request(method, path, None);
            scope.exclusive = false;
            assert_eq!(
                scope.allows(&request).is_ok(),
                allowed,
                "{method} {path}: {:?}",
                scope.allows(&request)
            );
            scope.exclusive = true;
            assert_eq!(scope.allows(&request).is_ok(), exclusive, "{method} {path} on a cluster of its own");
        }
        scope.exclusive = false;
        for (name, allowed) in [("n1", true), ("kitchen", true), ("n2", false)] {
            let request = request("PATCH", &format!("{leases}/{name}"), None);
            assert_eq!(scope.allows(&request).is_ok(), allowed, "the lease {name}");
        }
    }

    #[test]
    fn what_outlives_the_namespace_is_labelled() {
        let mut scope = scope();
        let labelled = |scope: &mut Scope, method: &str, path: &str| {
            let mut request =
                request(method, path, Some(json!({"metadata": {"name": "x", "labels": {"k": "v"}}})));
            scope.stamp(&mut request);
            let body: Value = serde_json::from_str(&request.body.unwrap()).unwrap();
            assert_eq!(body["metadata"]["labels"]["k"], "v");
            body["metadata"]["labels"][TRIAL_LABEL] == "t1"
        };
        for (method, path, expected) in [
            ("POST", "/api/v1/nodes", true),
            ("PUT", "/api/v1/nodes/n1", true),
            ("PUT", "/api/v1/nodes/n1/status", false),
            ("PUT", "/api/v1/nodes/kitchen", false),
            ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", true),
            ("POST", "/api/v1/namespaces/rigor-t1/pods", false),
            ("PATCH", "/api/v1/nodes/n1", false),
            ("POST", "/api/v1/namespaces", true),
        ] {
            assert_eq!(labelled(&mut scope, method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_node_of_somebody_else_does_not_become_the_trials_by_being_asked_for() {
        let mut scope = scope();
        let mut asks = request("POST", "/api/v1/nodes", Some(json!({"metadata": {"name": "n1"}})));
        scope.stamp(&mut asks);
        let seen = json!({"metadata": {"name": "n1"}});
        assert!(scope.keeps("nodes", &seen), "what may come of the request is recorded");
        let answer = scope.note(&asks, answered(409));
        assert_eq!(answer.status, 0);
        assert!(answer.error.unwrap().starts_with("a Node n1 is there already and is not the trial's"));
        assert!(!scope.keeps("nodes", &seen));
        assert!(scope.allows(&request("PATCH", "/api/v1/nodes/n1/status", None)).is_err());
        // One that the trial made is its own, and a second request for it is answered as it was.
        scope.note(&asks, answered(0));
        assert!(scope.allows(&request("PATCH", "/api/v1/nodes/n1/status", None)).is_ok());
        assert_eq!(scope.note(&asks, answered(409)).status, 409);
        scope.note(
            &request("POST", "/api/v1/nodes?dryRun=All", Some(json!({"metadata": {"name": "n3"}}))),
            answered(201),
        );
        assert!(!scope.nodes.contains("n3"));
    }

    #[test]
    fn only_the_trials_own_is_recorded() {
        let mut scope = scope();
        scope.nodes.insert("n1".to_owned());
        let object =
            |namespace: &str, name: &str| json!({"metadata": {"namespace": namespace, "name": name}});
        let event = |kind: &str, name: &str| json!({"metadata": {"namespace": "default", "name": "e"}, "involvedObject": {"kind": kind, "name": name}});
        for (stream, object, expected) in [
            ("pods", object("rigor-t1", "p"), true),
            ("pods", object("default", "p"), false),
            ("nodes", object("", "kitchen"), true),
            ("nodes", object("", "n1"), true),
            ("nodes", object("", "other"), false),
            ("leases", object("kube-node-lease", "kitchen"), true),
            ("leases", object("kube-node-lease", "other"), false),
            ("leases", object("default", "kitchen"), false),
            ("events", event("Node", "n1"), true),
            ("events", event("Node", "other"), false),
            ("events", event("Pod", "n1"), false),
            ("namespaces", object("", "rigor-t1"), true),
            ("namespaces", object("", "default"), false),
        ] {
            assert_eq!(scope.keeps(stream, &object), expected, "{stream} {object}");
        }
        scope.exclusive = true;
        assert!(scope.keeps("pods", &object("default", "p")));
    }
}
