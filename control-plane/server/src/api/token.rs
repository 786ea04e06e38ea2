//! Tokens that are asked for: those of service accounts (TokenRequest), and those of boards that join.

use control_plane_api::status::{Cause, CauseReason};
use control_plane_api::{ApiError, kinds};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::path::Target;
use crate::auth::accounts::{Bound, Claims, Subject};
use crate::auth::{NODE_PREFIX, User, joining};
use crate::service::{Service, store_failed};
use crate::store::Key;

/// How long a token holds unless more or less is asked for, in seconds.
const USUAL: i64 = 3600;
/// The least that can be asked for, in seconds.
const LEAST: i64 = 600;
/// The most that can be asked for, in seconds.
const MOST: i64 = 1 << 32;

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// POST to `serviceaccounts/NAME/token`.
///
/// # Errors
/// 404 for an account or a bound object that is absent, 409 for one that is another, 422 for a time that cannot be had.
pub fn for_account(
    service: &Service,
    user: &User,
    target: &Target,
    mut request: Value,
) -> Result<Value, ApiError> {
    let Some(issuer) = &service.issuer else {
        return Err(ApiError::plain(501, "this control plane has no key for the tokens of service accounts"));
    };
    let (namespace, name) =
        (target.namespace.as_deref().unwrap_or_default(), target.name.as_deref().unwrap_or_default());
    check_names(&request, namespace, name)?;
    let snapshot = service.fresh().snapshot().clone();
    let Some(account) = snapshot.get("serviceaccounts", namespace, name) else {
        return Err(ApiError::not_found(target.kind, name));
    };
    let seconds = match &request["spec"]["expirationSeconds"] {
        Value::Null => USUAL,
        given => given.as_i64().unwrap_or_default(),
    };
    check_seconds(seconds)?;
    let mut audiences: Vec<String> = request["spec"]["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect();
    if audiences.is_empty() {
        audiences.clone_from(&issuer.audiences);
    }
    let reference = request["spec"]["boundObjectRef"].clone();
    if let Some(node) = user.node() {
        check_board(node, namespace, name, &reference, &snapshot)?;
    }
    let bound = bound(&reference, namespace, name, &snapshot)?;
    let now = service.clock.wall();
    let until = now.as_second() + seconds;
    let claims = Claims {
        namespace: namespace.into(),
        account: Subject { name: name.into(), uid: text(account, "/metadata/uid").into() },
        bound,
        audiences: audiences.clone(),
        from: now.as_second(),
        until,
        id: service.audit.uid(),
    };
    let token = issuer.issue(&claims).map_err(|error| ApiError::internal(&error))?;
    let until = Timestamp::from_second(until).unwrap_or(now);
    request["metadata"] = json!({
        "name": name,
        "namespace": namespace,
        "creationTimestamp": control_plane_core::time::stamp(now),
    });
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = json!(seconds);
    request["status"] =
        json!({"token": token, "expirationTimestamp": control_plane_core::time::stamp(until)});
    Ok(answer(request))
}

fn answer(mut request: Value) -> Value {
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["kind"] = json!("TokenRequest");
    request
}

fn check_names(request: &Value, namespace: &str, name: &str) -> Result<(), ApiError> {
    let (own_name, own_namespace) = (text(request, "/metadata/name"), text(request, "/metadata/namespace"));
    if !own_name.is_empty() && own_name != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({own_name}) does not match the name on the URL ({name})"
        )));
    }
    if !own_namespace.is_empty() && own_namespace != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn check_seconds(seconds: i64) -> Result<(), ApiError> {
    let why = match seconds {
        seconds if seconds < LEAST => "may not specify a duration less than 10 minutes",
        seconds if seconds > MOST => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(()),
    };
    let cause = Cause::new(
        "spec.expirationSeconds",
        CauseReason::Invalid,
        format!("Invalid value: {seconds}: {why}"),
    );
    Err(ApiError::invalid_for("authentication.k8s.io", "TokenRequest", "", vec![cause]))
}

/// A board gets tokens that are bound to a pod of its own.
fn check_board(
    node: &str,
    namespace: &str,
    name: &str,
    reference: &Value,
    snapshot: &control_plane_core::Snapshot,
) -> Result<(), ApiError> {
    let refuse = |why: String| Err(ApiError::forbidden("", "serviceaccounts", name, &why));
    let pod = text(reference, "/name");
    if text(reference, "/apiVersion") != "v1" || text(reference, "/kind") != "Pod" || pod.is_empty() {
        return refuse("node requested token not bound to a pod".into());
    }
    let uid = text(reference, "/uid");
    if uid.is_empty() {
        return refuse("node requested token with a pod binding without a uid".into());
    }
    let Some(found) = snapshot.get("pods", namespace, pod) else {
        return Err(ApiError::not_found_in("", "pods", pod));
    };
    if text(found, "/metadata/uid") != uid {
        return refuse(another(uid));
    }
    if text(found, "/spec/nodeName") != node {
        return refuse("node requested token bound to a pod scheduled on a different node".into());
    }
    Ok(())
}

fn another(uid: &str) -> String {
    format!(
        "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
    )
}

/// The object that a reference names.
fn bound(
    reference: &Value,
    namespace: &str,
    account: &str,
    snapshot: &control_plane_core::Snapshot,
) -> Result<Bound, ApiError> {
    if !reference.is_object() {
        return Ok(Bound::Nothing);
    }
    let (version, kind) = (text(reference, "/apiVersion"), text(reference, "/kind"));
    let (name, uid) = (text(reference, "/name"), text(reference, "/uid"));
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let (resource, place) = match (group, kind) {
        ("", "Pod") => ("pods", namespace),
        ("", "Secret") => ("secrets", namespace),
        ("", "Node") => ("nodes", ""),
        _ => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{short}, Kind={kind}"
            )));
        }
    };
    let Some(found) = snapshot.get(resource, place, name) else {
        return Err(ApiError::not_found_in("", resource, name));
    };
    let subject = |object: &Value| Subject {
        name: text(object, "/metadata/name").into(),
        uid: text(object, "/metadata/uid").into(),
    };
    let bound = match kind {
        "Pod" => {
            if text(found, "/spec/serviceAccountName") != account {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token for serviceaccount \"{account}\" to pod running with different serviceaccount name."
                )));
            }
            let node = Some(text(found, "/spec/nodeName")).filter(|node| !node.is_empty());
            let node = node.map(|name| {
                let known = snapshot.get("nodes", "", name).map(|node| subject(node));
                known.unwrap_or_else(|| Subject { name: name.into(), uid: String::new() })
            });
            Bound::Pod(subject(found), node)
        }
        "Secret" => Bound::Secret(subject(found)),
        _ => Bound::Node(subject(found)),
    };
    if !uid.is_empty() && uid != text(found, "/metadata/uid") {
        return Err(ApiError::conflict("", kind, name, &another(uid)));
    }
    Ok(bound)
}

async fn exists(service: &Service, key: &Key) -> Result<bool, ApiError> {
    Ok(service.store.get(key).await.map_err(|error| store_failed(&error))?.is_some())
}

/// A newcomer takes no name that is another's: whoever holds its token would be that board.
async fn check_newcomer(service: &Service, node: &str) -> Result<(), ApiError> {
    let taken = |why: &str| {
        let why = format!(
            "{why}; a bootstrap token is for new boards: take another name, or let whoever administers the cluster ask for this board's token"
        );
        Err(ApiError::conflict("", "nodes", node, &why))
    };
    if service.certified.contains(node) {
        return taken("this board has a client certificate already");
    }
    // From the store itself: another control plane may have made it just now.
    if exists(service, &Key::new("nodes", "", node)).await? {
        return taken("this node exists already (it may be deleted to let the name join again)");
    }
    Ok(())
}

/// POST to `nodes/NAME/token`: a board that joins gets a token of its own. Only its hash is kept.
///
/// # Errors
/// 409 when the board has one already, or when a bootstrap token asks for the name of a board that has a certificate or a Node;
/// 422 for a name that no node can have.
pub async fn for_board(
    service: &Service,
    user: &User,
    target: &Target,
    request: Value,
    dry_run: bool,
) -> Result<Value, ApiError> {
    let node = target.name.as_deref().unwrap_or_default();
    check_names(&request, "", node)?;
    let taken = |how: &str| {
        Err(ApiError::conflict("", "nodes", node, &format!("this board has a token already: {how}")))
    };
    if !crate::config::is_node_name(node) {
        let cause = Cause::new(
            "metadata.name",
            CauseReason::Invalid,
            format!("Invalid value: {}: a node's name is a lower-case DNS subdomain", Value::from(node)),
        );
        return Err(ApiError::invalid_for("", "Node", node, vec![cause]));
    }
    let own_name = format!("{NODE_PREFIX}{node}");
    if service.tokens.iter().any(|(_, known)| known.name == own_name) {
        return taken("it stands in the token file; whoever administers the cluster takes it out there");
    }
    let secret = joining::board_secret_name(node);
    let revoke = format!(
        "whoever administers the cluster deletes the secret {}/{secret}, and the node, to let it join again",
        joining::NAMESPACE
    );
    if exists(service, &Key::new("secrets", joining::NAMESPACE, &secret)).await? {
        return taken(&revoke);
    }
    if joining::is_newcomer(user) {
        check_newcomer(service, node).await?;
    }
    let drawn = service.secrets.draw().map_err(|error| ApiError::internal(&error.to_string()))?;
    let token = joining::board_token(node, &drawn);
    let Some(secrets) = kinds::by_resource("secrets") else { return Err(ApiError::resource_not_found()) };
    let kept = joining::board_secret(node, &token);
    let as_server = User::master("system:control-plane");
    match service.create(&as_server, secrets, Some(joining::NAMESPACE), kept, dry_run).await {
        Ok(_) => {}
        Err(error) if error.code == 409 => return taken(&revoke),
        Err(error) => return Err(error),
    }
    tracing::info!(node, dry_run, "a board joined and was given a token");
    let now = control_plane_core::time::stamp(service.clock.wall());
    let shown = if dry_run { String::new() } else { token };
    Ok(answer(json!({
        "metadata": {"name": node, "creationTimestamp": now},
        "spec": {"audiences": []},
        "status": {"token": shown, "expirationTimestamp": null},
    })))
}
