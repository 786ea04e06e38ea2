//! Questions about identities and permissions, answered and never stored: who am I, may I, may they (GHOST-05).

use control_plane_api::status::{Cause, CauseReason};
use control_plane_api::{ApiError, Kind};
use serde_json::{Value, json};

use super::path::Target;
use crate::auth::{Attributes, Decision, User};
use crate::service::Service;

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Answers a review.
///
/// # Errors
/// 400 and 422 for questions that make no sense.
pub fn answer(service: &Service, user: &User, target: &Target, mut review: Value) -> Result<Value, ApiError> {
    let kind = target.kind;
    review["apiVersion"] = json!(kind.api_version());
    review["kind"] = json!(kind.kind);
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    review["metadata"]["creationTimestamp"] = Value::Null;
    let status = match kind.plural {
        "selfsubjectreviews" => {
            let now = control_plane_core::time::stamp(service.clock.wall());
            review["metadata"]["creationTimestamp"] = json!(now);
            json!({"userInfo": user_info(user)})
        }
        "selfsubjectaccessreviews" => {
            check_question(kind, &review["spec"])?;
            decision(service, user, &review["spec"])
        }
        "subjectaccessreviews" | "localsubjectaccessreviews" => {
            let spec = &review["spec"];
            check_question(kind, spec)?;
            let about = subject(kind, spec)?;
            if kind.namespaced {
                let namespace = target.namespace.as_deref().unwrap_or_default();
                if text(spec, "/resourceAttributes/namespace") != namespace {
                    return Err(ApiError::bad_request(format!(
                        "spec.resourceAttributes.namespace must match namespace: {namespace}"
                    )));
                }
            }
            decision(service, &about, spec)
        }
        "selfsubjectrulesreviews" => {
            let namespace = text(&review, "/spec/namespace");
            if namespace.is_empty() {
                return Err(ApiError::bad_request("no namespace on request"));
            }
            rules(service, user, namespace)
        }
        "tokenreviews" => token(service, &review["spec"])?,
        _ => return Err(ApiError::method_not_allowed()),
    };
    review["status"] = status;
    Ok(review)
}

/// What a token is good for. The token itself is not repeated.
fn token(service: &Service, spec: &Value) -> Result<Value, ApiError> {
    let token = text(spec, "/token");
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let wanted: Vec<&str> =
        spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let own = service.issuer.as_ref().map_or(&[] as &[String], |issuer| issuer.audiences.as_slice());
    let (user, audiences) = match service.holder_of_token(token) {
        Ok(found) => found,
        Err(why) => return Ok(json!({"user": {}, "error": format!("[invalid bearer token, {why}]")})),
    };
    // Tokens that state no audience are for this API.
    let audiences = if audiences.is_empty() { own.to_vec() } else { audiences };
    let wanted = if wanted.is_empty() { own.iter().map(String::as_str).collect() } else { wanted };
    let both: Vec<&String> = audiences.iter().filter(|one| wanted.contains(&one.as_str())).collect();
    if both.is_empty() && !wanted.is_empty() {
        let why = format!(
            "[invalid bearer token, token audiences {audiences:?} is invalid for the target audiences {wanted:?}]"
        );
        return Ok(json!({"user": {}, "error": why}));
    }
    let mut status = json!({"authenticated": true, "user": user_info(&user)});
    if !both.is_empty() {
        status["audiences"] = json!(both);
    }
    Ok(status)
}

/// A user as reviews show it.
pub fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn invalid(kind: &Kind, field: &str, value: &str, why: &str) -> ApiError {
    let message = format!("Invalid value: {value}: {why}");
    ApiError::invalid(kind, "", vec![Cause::new(field, CauseReason::Invalid, message)])
}

/// A question is about a resource or about a path.
fn check_question(kind: &Kind, spec: &Value) -> Result<(), ApiError> {
    match (spec["resourceAttributes"].is_object(), spec["nonResourceAttributes"].is_object()) {
        (true, false) => Ok(()),
        (false, true) if kind.namespaced => Err(invalid(
            kind,
            "spec.nonResourceAttributes",
            &spec["nonResourceAttributes"].to_string(),
            "disallowed on this kind of request",
        )),
        (false, true) => Ok(()),
        (true, true) => Err(invalid(
            kind,
            "spec.nonResourceAttributes",
            &spec["nonResourceAttributes"].to_string(),
            "cannot be specified in combination with resourceAttributes",
        )),
        (false, false) => Err(invalid(
            kind,
            "spec.resourceAttributes",
            "null",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
    }
}

/// The user that a question is about.
fn subject(kind: &Kind, spec: &Value) -> Result<User, ApiError> {
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().map_or(&[] as &[Value], Vec::as_slice);
        all.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    };
    let user = User {
        name: text(spec, "/user").into(),
        uid: text(spec, "/uid").into(),
        groups: texts(&spec["groups"]),
        extra: spec["extra"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.to_ascii_lowercase(), texts(values)))
            .collect(),
    };
    if user.name.is_empty() && user.groups.is_empty() {
        return Err(invalid(kind, "spec.user", "\"\"", "at least one of user or group must be specified"));
    }
    Ok(user)
}

/// The node that a field selector on pods asks for.
fn node_selected(attributes: &Value) -> &str {
    let requirements = attributes.pointer("/fieldSelector/requirements").and_then(Value::as_array);
    let wanted = |one: &&Value| one["key"] == "spec.nodeName" && one["operator"] == "In";
    let found = requirements.into_iter().flatten().find(wanted);
    match found.and_then(|one| one["values"].as_array()).map(Vec::as_slice) {
        Some([Value::String(node)]) => node,
        _ => {
            text(attributes, "/fieldSelector/rawSelector").strip_prefix("spec.nodeName=").unwrap_or_default()
        }
    }
}

fn decision(service: &Service, user: &User, spec: &Value) -> Value {
    let attributes = &spec["resourceAttributes"];
    let decision = if attributes.is_object() {
        let field = |name: &str| attributes[name].as_str().unwrap_or_default();
        service.decide(
            user,
            &Attributes {
                verb: field("verb"),
                group: field("group"),
                resource: field("resource"),
                subresource: field("subresource"),
                namespace: field("namespace"),
                name: field("name"),
                node_selected: node_selected(attributes),
            },
        )
    } else {
        let path = &spec["nonResourceAttributes"];
        let field = |name: &str| path[name].as_str().unwrap_or_default();
        service.decide_path(user, &field("verb").to_ascii_lowercase(), field("path"))
    };
    let (allowed, reason) = match decision {
        Decision::Allowed(why) => (true, why),
        Decision::Refused(why) => (false, why),
    };
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    status
}

fn rules(service: &Service, user: &User, namespace: &str) -> Value {
    let policy = service.policy();
    let (held, mut problems) = policy.rules_for(user, namespace);
    let board = user.node().is_some();
    if board {
        problems.push("node authorizer does not support user rule resolution");
    }
    let list = |paths: bool| {
        let wanted = held.iter().filter(|rule| rule.urls.is_empty() != paths);
        wanted.map(|rule| rule.to_value()).collect::<Vec<_>>()
    };
    let mut status = json!({
        "resourceRules": list(false),
        "nonResourceRules": list(true),
        "incomplete": board || !problems.is_empty(),
    });
    if !problems.is_empty() {
        status["evaluationError"] = json!(problems.join(", "));
    }
    status
}
