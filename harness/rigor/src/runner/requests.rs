//! What an act on the API is as a request. Pure: names are filled in already, nothing is sent here.

use rigor_model::act::{
    Api, Bind, Cordon, Create, Delete, Patch, PatchType, Replace, RequestAct, Scale, User,
};
use rigor_model::kinds::ObjectKind;
use rigor_rigs::{ApiRequest, Identity};
use serde_json::{Map, Value, json};

/// The credentials of a scenario's user.
pub(super) fn identity(user: &User) -> Identity {
    match user {
        User::Admin => Identity::Admin,
        User::Board(board) => Identity::Board(board.clone()),
        User::Anonymous => Identity::Anonymous,
        User::Token(token) => Identity::Token(token.clone()),
    }
}

/// A collection and the name of one object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) collection: String,
    /// Absent where the server is to make up the name.
    pub(super) name: Option<String>,
}

impl Place {
    /// Where a manifest's object lives; namespaced ones without a namespace in the act's or the trial's.
    pub(super) fn of(object: &Value, api: &Api, namespace: &str) -> Option<Self> {
        let kind = ObjectKind::named(object["kind"].as_str()?)?;
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().or(api.namespace.as_deref()).unwrap_or(namespace);
        Some(Self {
            collection: kind.collection_path(Some(namespace)),
            name: metadata["name"].as_str().map(str::to_owned),
        })
    }

    /// Path of the object, with a subresource.
    fn object(&self, subresource: Option<&str>) -> String {
        let mut path = format!("{}/{}", self.collection, self.name.as_deref().unwrap_or_default());
        if let Some(subresource) = subresource {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }
}

fn by(api: &Api, method: &str, path: String, body: Option<&Value>) -> ApiRequest {
    let mut request = ApiRequest::new(method, path, body).as_user(identity(&api.user));
    request.heed = api.answer.headers.keys().cloned().collect();
    request
}

fn patching(api: &Api, path: String, patch_type: PatchType, patch: &Value) -> ApiRequest {
    by(api, "PATCH", path, Some(patch)).header("content-type", patch_type.content_type())
}

fn object_path(
    kind: &ObjectKind,
    name: &str,
    api: &Api,
    namespace: &str,
    subresource: Option<&str>,
) -> String {
    let namespace = api.namespace.as_deref().unwrap_or(namespace);
    Place { collection: kind.collection_path(Some(namespace)), name: Some(name.to_owned()) }
        .object(subresource)
}

/// Looks whether an object of `apply` is there.
pub(super) fn look(place: &Place, api: &Api) -> ApiRequest {
    by(api, "GET", place.object(None), None)
}

/// Creates an object of `apply` that is missing.
pub(super) fn add(place: &Place, object: &Value, api: &Api) -> ApiRequest {
    by(api, "POST", place.collection.clone(), Some(object))
}

/// Lays an object of `apply` over the one that is there.
pub(super) fn lay_over(place: &Place, object: &Value, api: &Api) -> ApiRequest {
    patching(api, place.object(None), PatchType::Merge, object)
}

pub(super) fn create(act: &Create, namespace: &str) -> Option<ApiRequest> {
    Some(add(&Place::of(&act.object, &act.api, namespace)?, &act.object, &act.api))
}

pub(super) fn replace(act: &Replace, namespace: &str) -> Option<ApiRequest> {
    let place = Place::of(&act.object, &act.api, namespace)?;
    Some(by(&act.api, "PUT", place.object(act.subresource.as_deref()), Some(&act.object)))
}

pub(super) fn patch(act: &Patch, namespace: &str) -> ApiRequest {
    let path =
        object_path(act.target.kind, &act.target.name, &act.api, namespace, act.subresource.as_deref());
    let manager = act.field_manager.as_ref().map(|manager| format!("fieldManager={}", in_query(manager)));
    let force = act.force.then(|| "force=true".to_owned());
    let query: Vec<String> = manager.into_iter().chain(force).collect();
    let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    patching(&act.api, path, act.patch_type, &act.patch)
}

/// A text as a query holds it.
fn in_query(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

pub(super) fn delete(act: &Delete, namespace: &str) -> ApiRequest {
    let path = object_path(act.target.kind, &act.target.name, &act.api, namespace, None);
    let mut options = Map::new();
    if let Some(propagation) = act.propagation {
        options.insert("propagationPolicy".to_owned(), propagation.api_name().into());
    }
    if let Some(grace) = act.grace {
        options.insert("gracePeriodSeconds".to_owned(), grace.as_secs().into());
    }
    if options.is_empty() {
        return by(&act.api, "DELETE", path, None);
    }
    options.insert("apiVersion".to_owned(), "v1".into());
    options.insert("kind".to_owned(), "DeleteOptions".into());
    by(&act.api, "DELETE", path, Some(&Value::Object(options)))
}

pub(super) fn scale(act: &Scale, namespace: &str) -> ApiRequest {
    let path = object_path(act.target.kind, &act.target.name, &act.api, namespace, Some("scale"));
    patching(&act.api, path, PatchType::Merge, &json!({"spec": {"replicas": act.replicas}}))
}

pub(super) fn cordon(act: &Cordon) -> ApiRequest {
    let unschedulable = if act.on { Value::Bool(true) } else { Value::Null };
    let patch = json!({"spec": {"unschedulable": unschedulable}});
    patching(&act.api, format!("/api/v1/nodes/{}", act.node), PatchType::Merge, &patch)
}

pub(super) fn bind(act: &Bind, namespace: &str) -> ApiRequest {
    let namespace = act.api.namespace.as_deref().unwrap_or(namespace);
    let mut metadata = json!({"name": act.pod, "namespace": namespace});
    if let Some(uid) = &act.uid {
        metadata["uid"] = uid.as_str().into();
    }
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": act.node},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{}/binding", act.pod);
    by(&act.api, "POST", path, Some(&binding))
}

pub(super) fn request(act: &RequestAct) -> ApiRequest {
    let mut request = by(&act.api, &act.method, act.path.clone(), act.body.as_ref());
    if let Some(content_type) = &act.content_type {
        request = request.header("content-type", content_type);
    }
    act.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::act::{Propagation, Target};
    use std::time::Duration;

    fn line(request: &ApiRequest) -> String {
        let content =
            request.headers.get("content-type").map(|value| format!(" [{value}]")).unwrap_or_default();
        let body = request.body.as_deref().map(|body| format!(" {body}")).unwrap_or_default();
        format!("{}: {} {}{content}{body}", request.identity.label(), request.method, request.path)
    }

    fn target(kind: &str, name: &str) -> Target {
        Target { kind: ObjectKind::named(kind).unwrap(), name: name.to_owned() }
    }

    #[test]
    fn acts_become_requests() {
        let api = Api::default;
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        let elsewhere = Api { namespace: Some("ns".to_owned()), user: User::Board("a".to_owned()), ..api() };
        let delete_act =
            |propagation, grace| Delete { target: target("Pod", "p"), propagation, grace, api: api() };
        let lines = [
            create(&Create { object: pod.clone(), api: api() }, "default").unwrap(),
            create(&Create { object: pod.clone(), api: elsewhere.clone() }, "default").unwrap(),
            create(
                &Create {
                    object: json!({"kind": "Node", "metadata": {"generateName": "n-"}}),
                    api: elsewhere.clone(),
                },
                "default",
            )
            .unwrap(),
            replace(
                &Replace { object: pod.clone(), subresource: Some("status".to_owned()), api: api() },
                "default",
            )
            .unwrap(),
            patch(
                &Patch {
                    target: target("Deployment", "d"),
                    patch_type: PatchType::Json,
                    patch: json!([]),
                    field_manager: None,
                    force: false,
                    subresource: Some("scale".to_owned()),
                    api: api(),
                },
                "default",
            ),
            patch(
                &Patch {
                    target: target("Pod", "p"),
                    patch_type: PatchType::Apply,
                    patch: json!({"apiVersion": "v1", "kind": "Pod"}),
                    field_manager: Some("two words/ä".to_owned()),
                    force: true,
                    subresource: None,
                    api: api(),
                },
                "default",
            ),
            delete(&delete_act(None, None), "default"),
            delete(&delete_act(Some(Propagation::Foreground), Some(Duration::from_secs(3))), "default"),
            scale(&Scale { target: target("Deployment", "d"), replicas: 3, api: api() }, "default"),
            cordon(&Cordon { node: "a".to_owned(), on: true, api: api() }),
            cordon(&Cordon { node: "a".to_owned(), on: false, api: api() }),
            bind(
                &Bind {
                    pod: "p".to_owned(),
                    node: "a".to_owned(),
                    uid: Some("u".to_owned()),
                    api: elsewhere,
                },
                "default",
            ),
            request(&RequestAct {
                method: "POST".to_owned(),
                path: "/x?y=z".to_owned(),
                body: Some(json!({})),
                content_type: Some("text/plain".to_owned()),
                headers: [("if-match".to_owned(), "*".to_owned())].into(),
                api: Api { user: User::Anonymous, ..api() },
            }),
        ];
        let lines: Vec<String> = lines.iter().map(line).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn apply_looks_first() {
        let object =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "own"}});
        let place = Place::of(&object, &Api::default(), "default").unwrap();
        assert_eq!(line(&look(&place, &Api::default())), "admin: GET /api/v1/namespaces/own/pods/p");
        assert!(
            line(&add(&place, &object, &Api::default()))
                .starts_with("admin: POST /api/v1/namespaces/own/pods {")
        );
        assert!(
            line(&lay_over(&place, &object, &Api::default()))
                .starts_with("admin: PATCH /api/v1/namespaces/own/pods/p [application/merge-patch+json] {")
        );
        assert_eq!(Place::of(&json!({"kind": "Unheard"}), &Api::default(), "default"), None);
    }
}
