//! Which recorded facts an act brought about: by what it does and where, so that the traffic of played
//! nodes and of the harness itself is not taken for it.

use rigor_model::Action;
use rigor_model::act::Api;
use rigor_model::kinds::ObjectKind;
use rigor_model::template;
use serde_json::Value;

use super::Bench;
use crate::history::{Fact, Record};
use crate::timeline::Values;

/// The requests that an act makes.
struct Requests {
    methods: &'static [&'static str],
    /// Without queries, unless the act states one.
    paths: Vec<String>,
    user: String,
}

impl Bench<'_, '_> {
    /// The facts between two records that an act brought about.
    pub(super) fn facts_of(&self, action: &Action, begin: usize, end: usize) -> Vec<&Record> {
        let records = &self.history.records()[begin..=end];
        if let Action::Parallel(acts) = action {
            let mut all: Vec<&Record> =
                acts.iter().flat_map(|act| self.facts_of(&act.action, begin, end)).collect();
            all.sort_by_key(|record| record.seq);
            all.dedup_by_key(|record| record.seq);
            return all;
        }
        let values = self.judge.values(self.index, self.history);
        let requests = requests(action, &values, self.view.namespace());
        records.iter().filter(|record| concerns(action, requests.as_ref(), &record.fact)).collect()
    }
}

fn concerns(action: &Action, requests: Option<&Requests>, fact: &Fact) -> bool {
    match (action, fact) {
        (Action::Power(power), Fact::Power { board, act, .. }) => *board == power.board && *act == power.act,
        (Action::Link(link), Fact::Link { board, act, .. }) => {
            *board == link.board && *act == link.change.act()
        }
        (Action::ControlPlane(wanted), Fact::ControlPlane { act, .. }) => act == wanted,
        (Action::Scheduler(wanted), Fact::Scheduler { name, act, .. }) => {
            *name == wanted.name && *act == wanted.act
        }
        (Action::Flash(flash), Fact::Flash { board, image, .. }) => {
            *board == flash.board && *image == flash.image
        }
        (Action::Send(send), Fact::Sent { board, .. }) => *board == send.board,
        (Action::Mark(_), Fact::Mark { .. })
        | (Action::Kubectl(_), Fact::Kubectl(_))
        | (Action::Etcdctl(_), Fact::Etcdctl(_)) => true,
        (Action::Node(node), Fact::Request { method, path, .. }) => {
            method != "GET" && is_of_node(path, &node.name)
        }
        (_, Fact::Request { as_user, method, path, .. }) => requests.is_some_and(|requests| {
            let plain = path.split('?').next().unwrap_or_default();
            requests.methods.contains(&method.as_str())
                && requests.user == *as_user
                && requests.paths.iter().any(|wanted| wanted == path || wanted == plain)
        }),
        (_, _) => false,
    }
}

/// Whether a path is that of a node, its status or its lease, or one by which they are created.
fn is_of_node(path: &str, node: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let own = |part: &str| {
        path.split(part).nth(1).is_some_and(|rest| rest == node || rest.starts_with(&format!("{node}/")))
    };
    own("/nodes/") || own("/leases/") || path.ends_with("/nodes") || path.ends_with("/leases")
}

/// The requests of an act on the API.
fn requests(action: &Action, values: &Values, namespace: &str) -> Option<Requests> {
    let fill = |text: &str| template::fill_text(text, values).unwrap_or_default();
    let place = |api: &Api| api.namespace.as_deref().map_or_else(|| namespace.to_owned(), fill);
    let object = |kind: &ObjectKind, name: &str, api: &Api, part: Option<&str>| {
        let path = kind.object_path(&place(api), &fill(name));
        part.map_or_else(|| path.clone(), |part| format!("{path}/{part}"))
    };
    let of = |methods, paths, api: &Api| Some(Requests { methods, paths, user: fill(&api.user.to_string()) });
    match action {
        Action::Apply(act) => {
            let written = act.objects.iter().filter_map(|object| manifest(object, values, &place(&act.api)));
            of(
                &["POST", "PATCH", "PUT"],
                written.flat_map(|(collection, object)| [collection, object]).collect(),
                &act.api,
            )
        }
        Action::Create(act) => {
            let (collection, _) = manifest(&act.object, values, &place(&act.api))?;
            of(&["POST"], vec![collection], &act.api)
        }
        Action::Replace(act) => {
            let (_, path) = manifest(&act.object, values, &place(&act.api))?;
            let path = act.subresource.as_deref().map_or(path.clone(), |part| format!("{path}/{part}"));
            of(&["PUT"], vec![path], &act.api)
        }
        Action::Patch(act) => {
            let path = object(act.target.kind, &act.target.name, &act.api, act.subresource.as_deref());
            of(&["PATCH"], vec![path], &act.api)
        }
        Action::Delete(act) => {
            of(&["DELETE"], vec![object(act.target.kind, &act.target.name, &act.api, None)], &act.api)
        }
        Action::Scale(act) => of(
            &["PATCH", "PUT"],
            vec![object(act.target.kind, &act.target.name, &act.api, Some("scale"))],
            &act.api,
        ),
        Action::Cordon(act) | Action::Uncordon(act) => {
            of(&["PATCH", "PUT"], vec![format!("/api/v1/nodes/{}", fill(&act.node))], &act.api)
        }
        Action::Bind(act) => {
            let path = format!("/api/v1/namespaces/{}/pods/{}/binding", place(&act.api), fill(&act.pod));
            of(&["POST"], vec![path], &act.api)
        }
        Action::Request(act) => {
            let methods = METHODS.iter().find(|methods| methods.contains(&act.method.as_str()))?;
            of(methods, vec![fill(&act.path)], &act.api)
        }
        Action::Power(_)
        | Action::Link(_)
        | Action::ControlPlane(_)
        | Action::Scheduler(_)
        | Action::Flash(_)
        | Action::Send(_)
        | Action::Mark(_)
        | Action::Node(_)
        | Action::Kubectl(_)
        | Action::Etcdctl(_)
        | Action::Wait(_)
        | Action::Advance(_)
        | Action::Parallel(_)
        | Action::Expect(_)
        | Action::Never(_)
        | Action::Always(_)
        | Action::Unchanged(_)
        | Action::Order(_)
        | Action::Capture(_) => None,
    }
}

/// Each method by itself.
const METHODS: [&[&str]; 7] =
    [&["GET"], &["POST"], &["PUT"], &["PATCH"], &["DELETE"], &["HEAD"], &["OPTIONS"]];

/// The paths of a manifest's collection and of the object itself.
fn manifest(object: &Value, values: &Values, namespace: &str) -> Option<(String, String)> {
    let object = template::fill(object, values).ok()?;
    let kind = ObjectKind::named(object["kind"].as_str()?)?;
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or(namespace);
    let name = metadata["name"].as_str().unwrap_or_default();
    Some((kind.collection_path(Some(namespace)), kind.object_path(namespace, name)))
}
