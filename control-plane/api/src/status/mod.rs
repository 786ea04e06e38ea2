//! Errors as clients see them: an HTTP code and a `Status` object, with Kubernetes' reasons and messages.
//!
//! Every refusal of the API is built here, so a message is written once. Validation collects [`Cause`]s and turns
//! them into one 422 through [`ApiError::invalid`].

mod cause;

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

pub(crate) use cause::quote;
pub use cause::{Cause, CauseReason};

/// The machine-readable reason of a failed request (`Status.reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No reason: the field is absent.
    Unknown,
    /// 400
    BadRequest,
    /// 401
    Unauthorized,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 406
    NotAcceptable,
    /// 409, the name is taken
    AlreadyExists,
    /// 409, a precondition failed
    Conflict,
    /// 410, the resourceVersion is too old
    Expired,
    /// 410
    Gone,
    /// 413
    RequestEntityTooLarge,
    /// 415
    UnsupportedMediaType,
    /// 422
    Invalid,
    /// 429
    TooManyRequests,
    /// 500
    InternalError,
    /// 503
    ServiceUnavailable,
    /// 504
    Timeout,
}

impl Reason {
    /// The text in `Status.reason`; empty when the field is absent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::Gone => "Gone",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
        }
    }
}

/// `Status.details`: what the failed request was about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// Object name; empty when absent.
    pub name: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource or kind, as Kubernetes fills it for the reason.
    pub kind: String,
    /// uid of the object; empty when absent.
    pub uid: String,
    /// Refused fields.
    pub causes: Vec<Cause>,
    /// Seconds after which a retry makes sense; 0 when absent.
    pub retry_after_seconds: u32,
}

/// A request that is answered with a failure `Status`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason.
    pub reason: Reason,
    /// Text for people.
    pub message: String,
    /// What it was about; `None` leaves the field out.
    pub details: Option<Box<Details>>,
    /// Where a list can go on all the same; empty where it cannot.
    pub continue_token: String,
}

impl ApiError {
    fn new(code: u16, reason: Reason, message: impl Into<String>, details: Option<Details>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: details.map(Box::new),
            continue_token: String::new(),
        }
    }

    /// 404 for an absent object.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::not_found_in(kind.group, kind.plural, name)
    }

    /// 404 for an absent object of a resource named by group and plural.
    pub fn not_found_in(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {} not found", qualified(plural, group), quote(name));
        Self::new(404, Reason::NotFound, message, Some(details(name, group, plural)))
    }

    /// 404 for a path under a known group and version that names no resource.
    pub fn resource_not_found() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, Reason::NotFound, message, Some(Details::default()))
    }

    /// 409 for a create whose name is taken.
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {} already exists", kind.qualified_resource(), quote(name));
        Self::new(409, Reason::AlreadyExists, message, Some(details(name, kind.group, kind.plural)))
    }

    /// 409 for a create whose generated name is taken.
    pub fn generated_name_taken(kind: &Kind, name: &str) -> Self {
        let message = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            kind.qualified_resource(),
            quote(name)
        );
        let mut about = details(name, kind.group, kind.plural);
        about.retry_after_seconds = 1;
        Self::new(409, Reason::AlreadyExists, message, Some(about))
    }

    /// 409 with an explanation; `resource` may name a subresource (`pods/binding`).
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {}: {why}", qualified(resource, group), quote(name));
        Self::new(409, Reason::Conflict, message, Some(details(name, group, resource)))
    }

    /// 409 for an update from an old resourceVersion.
    pub fn stale(kind: &Kind, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind.group, kind.plural, name, why)
    }

    /// 409 for a failed uid or resourceVersion precondition, in the words of Kubernetes' storage.
    ///
    /// `what` is `UID` or `ResourceVersion`.
    pub fn precondition_failed(
        kind: &Kind,
        namespace: &str,
        name: &str,
        what: &str,
        wanted: &str,
        found: &str,
    ) -> Self {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}",
            storage_key(kind, namespace, name)
        );
        Self::conflict(kind.group, kind.plural, name, &why)
    }

    /// 422 with one cause per refused field.
    pub fn invalid(kind: &Kind, name: &str, causes: Vec<Cause>) -> Self {
        Self::invalid_for(kind.group, kind.kind, name, causes)
    }

    /// 422 for an object named by group and kind.
    pub fn invalid_for(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for cause in &causes {
            let text = format!("{}: {}", cause.field, cause.message);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {} is invalid: {list}", qualified(kind, group), quote(name));
        let mut about = details(name, group, kind);
        about.causes = causes;
        Self::new(422, Reason::Invalid, message, Some(about))
    }

    /// 400 with the message as given.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, Reason::BadRequest, message, None)
    }

    /// 422 for a JSON patch that cannot be carried out, in Kubernetes' words, which name no cause.
    pub fn rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, Reason::Invalid, message, Some(Details::default()))
    }

    /// 401 for a request whose credentials are unknown.
    pub fn unauthorized() -> Self {
        Self::new(401, Reason::Unauthorized, "Unauthorized", None)
    }

    /// 403 for a verb that the user's role lacks. `namespace` is `None` for the cluster scope.
    pub fn forbidden_verb(
        user: &str,
        verb: &str,
        kind: &Kind,
        subresource: Option<&str>,
        namespace: Option<&str>,
        name: &str,
    ) -> Self {
        let resource = match subresource {
            Some(sub) => format!("{}/{sub}", kind.plural),
            None => kind.plural.to_owned(),
        };
        let scope = match namespace {
            Some(namespace) => format!("in the namespace {}", quote(namespace)),
            None => "at the cluster scope".to_owned(),
        };
        let why = format!(
            "User {} cannot {verb} resource {} in API group {} {scope}",
            quote(user),
            quote(&resource),
            quote(kind.group)
        );
        Self::forbidden(kind.group, kind.plural, name, &why)
    }

    /// 403 for a path outside the resources, such as `/metrics`.
    pub fn forbidden_path(user: &str, verb: &str, path: &str) -> Self {
        let message = format!("forbidden: User {} cannot {verb} path {}", quote(user), quote(path));
        Self::new(403, Reason::Forbidden, message, Some(Details::default()))
    }

    /// 403 with an explanation; `name` may be empty.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let subject = qualified(resource, group);
        let message = if name.is_empty() {
            format!("{subject} is forbidden: {why}")
        } else {
            format!("{subject} {} is forbidden: {why}", quote(name))
        };
        Self::new(403, Reason::Forbidden, message, Some(details(name, group, resource)))
    }

    /// 403 for a create in a namespace that is being deleted.
    pub fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = Self::forbidden(kind.group, kind.plural, name, &why);
        if let Some(about) = &mut error.details {
            let message = format!("namespace {namespace} is being terminated");
            about.causes = vec![Cause::new("metadata.namespace", CauseReason::NamespaceTerminating, message)];
        }
        error
    }

    /// 405 for a method that the path does not take.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, Reason::MethodNotAllowed, message, Some(Details::default()))
    }

    /// 405 for a verb that the kind does not take, in the words of the storage layer.
    pub fn verb_not_supported(kind: &Kind, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {}", quote(&kind.qualified_resource()));
        Self::new(405, Reason::MethodNotAllowed, message, Some(details("", kind.group, kind.plural)))
    }

    /// 406 for an Accept header that nothing satisfies.
    pub fn not_acceptable(available: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Self::new(406, Reason::NotAcceptable, message, Some(Details::default()))
    }

    /// 406 for a form that the answer has not, in an encoding that there is.
    pub fn no_such_form(available: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", available.join(", "));
        Self::new(406, Reason::NotAcceptable, message, None)
    }

    /// 415 for a body in a media type that is not read.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, Reason::UnsupportedMediaType, message, None)
    }

    /// 415 for a patch in a media type that is not a patch.
    pub fn unsupported_patch_type() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(415, Reason::UnsupportedMediaType, message, Some(Details::default()))
    }

    /// 410 for a watch from a resourceVersion that history no longer covers.
    pub fn too_old(wanted: u64, oldest: u64) -> Self {
        Self::new(410, Reason::Expired, format!("too old resource version: {wanted} ({oldest})"), None)
    }

    /// 410 with the message as given, such as for an expired continue token.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, Reason::Expired, message, None)
    }

    /// 410 for a continue token whose revision is forgotten; `token` goes on with the newest objects instead.
    pub fn expired_page(token: &str) -> Self {
        const MESSAGE: &str = "The provided continue parameter is too old to display a consistent list result. You can start a \
            new list without the continue parameter, or use the continue token in this response to retrieve the remainder of \
            the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
            modified, or deleted between the time the first chunk was returned and now may show up in the list.";
        Self { continue_token: token.to_owned(), ..Self::expired(MESSAGE) }
    }

    /// 504 for a request whose outcome is not known.
    pub fn timed_out(message: &str) -> Self {
        Self::new(504, Reason::Timeout, format!("Timeout: {message}"), Some(Details::default()))
    }

    /// 504 for a list at a resourceVersion that is not reached yet.
    pub fn future_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let about = Details {
            causes: vec![Cause::new("", CauseReason::VersionTooLarge, "Too large resource version")],
            retry_after_seconds: 1,
            ..Details::default()
        };
        Self::new(504, Reason::Timeout, message, Some(about))
    }

    /// 413 for a body over the limit.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, Reason::RequestEntityTooLarge, message, None)
    }

    /// 429 with a time after which to try again.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let about = Details { retry_after_seconds, ..Details::default() };
        Self::new(429, Reason::TooManyRequests, message, Some(about))
    }

    /// 500 for a fault of the server.
    pub fn internal(message: &str) -> Self {
        let about =
            Details { causes: vec![Cause::new("", CauseReason::Fault, message)], ..Details::default() };
        Self::new(500, Reason::InternalError, format!("Internal error occurred: {message}"), Some(about))
    }

    /// A failure that Kubernetes answers without a reason, such as 500 for delete options that are no JSON.
    pub fn plain(code: u16, message: impl Into<String>) -> Self {
        Self::new(code, Reason::Unknown, message, None)
    }

    /// 503 while the server is not ready.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, Reason::ServiceUnavailable, message, None)
    }

    /// The `Status` object of this failure.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if self.reason != Reason::Unknown {
            status["reason"] = json!(self.reason.as_str());
        }
        if !self.continue_token.is_empty() {
            status["metadata"]["continue"] = json!(self.continue_token);
        }
        if let Some(about) = &self.details {
            status["details"] = about.to_value();
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                map.insert(key.to_owned(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes".to_owned(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".to_owned(), json!(self.retry_after_seconds));
        }
        Value::Object(map)
    }
}

/// The `Status` of a success that has no object to show, such as a binding (`code` 201).
pub fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}

/// The `Status` of a delete that removed the object at once.
pub fn deleted(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut about = details(name, kind.group, kind.plural);
    about.uid = uid.to_owned();
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": about.to_value()})
}

/// The key under which Kubernetes keeps an object, as it appears in messages.
fn storage_key(kind: &Kind, namespace: &str, name: &str) -> String {
    let resource = match kind.resource {
        "nodes" => "minions",
        "services" => "services/specs",
        other => other,
    };
    if namespace.is_empty() {
        format!("/registry/{resource}/{name}")
    } else {
        format!("/registry/{resource}/{namespace}/{name}")
    }
}

fn details(name: &str, group: &str, kind: &str) -> Details {
    Details { name: name.to_owned(), group: group.to_owned(), kind: kind.to_owned(), ..Details::default() }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn pods() -> &'static Kind {
        kinds::by_resource("pods").unwrap()
    }

    #[test]
    fn messages_are_those_of_kubernetes() {
        let leases = kinds::by_resource("leases").unwrap();
        let cases = [
            (ApiError::not_found(pods(), "absent"), 404, "pods \"absent\" not found"),
            (ApiError::not_found(leases, "x"), 404, "leases.coordination.k8s.io \"x\" not found"),
            (ApiError::already_exists(pods(), "ok"), 409, "pods \"ok\" already exists"),
            (
                ApiError::stale(pods(), "ok"),
                409,
                "Operation cannot be fulfilled on pods \"ok\": the object has been modified; please apply your \
                 changes to the latest version and try again",
            ),
            (
                ApiError::forbidden_verb("nobody", "list", pods(), None, Some("default"), ""),
                403,
                "pods is forbidden: User \"nobody\" cannot list resource \"pods\" in API group \"\" in the namespace \
                 \"default\"",
            ),
            (
                ApiError::precondition_failed(pods(), "ns", "p9", "UID", "0", "1"),
                409,
                "Operation cannot be fulfilled on pods \"p9\": StorageError: invalid object, Code: 4, Key: \
                 /registry/pods/ns/p9, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
                 precondition: 0, UID in object meta: 1",
            ),
            (ApiError::too_old(1, 3080), 410, "too old resource version: 1 (3080)"),
        ];
        for (error, code, message) in cases {
            assert_eq!((error.code, error.message.as_str()), (code, message));
        }
    }

    #[test]
    fn causes_are_listed_and_equal_ones_are_named_once() {
        let twice = Cause::invalid("metadata.uid", &json!("1"), "field is immutable");
        let error = ApiError::invalid(pods(), "a", vec![twice.clone(), twice]);
        assert_eq!(
            error.message,
            "Pod \"a\" is invalid: metadata.uid: Invalid value: \"1\": field is immutable"
        );
        assert_eq!(error.to_status()["details"]["causes"].as_array().map(Vec::len), Some(2));

        let error =
            ApiError::invalid(pods(), "b", vec![Cause::required("x", ""), Cause::required("y", "why")]);
        assert_eq!(error.message, "Pod \"b\" is invalid: [x: Required value, y: Required value: why]");
    }

    #[test]
    fn status_leaves_out_what_is_empty() {
        let status = ApiError::not_found(pods(), "absent").to_status();
        let expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
            "message": "pods \"absent\" not found", "reason": "NotFound",
            "details": {"name": "absent", "kind": "pods"},
        });
        assert_eq!(status, expected);
        assert_eq!(ApiError::bad_request("no").to_status().get("details"), None);
        assert_eq!(ApiError::method_not_allowed().to_status()["details"], json!({}));
        assert_eq!(ApiError::plain(500, "x").to_status().get("reason"), None);
    }

    #[test]
    fn values_are_quoted_as_go_quotes_them() {
        for (text, quoted) in
            [("a", "\"a\""), ("a\"b", "\"a\\\"b\""), ("a\nb", "\"a\\nb\""), ("\u{1}", "\"\\x01\"")]
        {
            assert_eq!(quote(text), quoted);
        }
    }
}
