//! Deletion: its options, and what becomes of one object.
//!
//! The plan for an object is data: remove it, write it with a deletion timestamp, or leave it because it is going
//! already. Only pods have grace periods; a bound one keeps its grace, an unbound or finished one goes at once.
//! Propagation shows as the finalizers `orphan` and `foregroundDeletion`, which the garbage controller takes away.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::json::{self, Node};
use crate::kinds::Kind;
use crate::options::dry_run_cause;
use crate::schema;
use crate::status::{ApiError, Cause};
use crate::strconv;
use crate::typed::{self, stamp};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// The grace of a pod that states none, in seconds.
const DEFAULT_GRACE: i64 = 30;

/// What becomes of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay, without their owner reference.
    Orphan,
}

/// The parsed `DeleteOptions` of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Go through everything but the store.
    pub dry_run: bool,
    /// Seconds until a pod is killed; negative means 1.
    pub grace_seconds: Option<i64>,
    /// What becomes of dependents; `None` leaves it to the kind.
    pub propagation: Option<Propagation>,
    /// The uid that the object must have.
    pub uid: Option<String>,
    /// The resourceVersion that the object must have.
    pub resource_version: Option<String>,
}

/// What a delete does to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Take it out of the store and answer `answer`.
    Remove {
        /// The object as it was last, a pod with its deletion timestamp: what watchers see deleted.
        object: Value,
        /// The body of the answer: the object, or a `Status`.
        answer: Value,
    },
    /// Write `object`, which has a deletion timestamp now, and answer it.
    Update {
        /// The object to write.
        object: Value,
    },
    /// It is being deleted already, and nothing changes: answer it.
    Pending {
        /// The object as it is.
        object: Value,
    },
}

impl DeleteOptions {
    /// Reads the options from the body, or where that is empty from decoded query pairs.
    ///
    /// Errors: 422 with Kubernetes' causes; for a body that cannot be read as DeleteOptions 500 without a reason, as
    /// Kubernetes answers; 400 for a query value that is no number.
    pub fn parse(body: &[u8], query: &[(String, String)]) -> Result<Self, ApiError> {
        let raw = if body.is_empty() { from_query(query)? } else { from_body(body)? };
        let mut causes = Vec::new();
        let values: Vec<&str> = json::list(&raw, &["dryRun"]).iter().filter_map(Value::as_str).collect();
        let policy = json::at(&raw, &["propagationPolicy"]).and_then(Value::as_str);
        let orphan = json::at(&raw, &["orphanDependents"]).and_then(Value::as_bool);
        if let (Some(policy), Some(_)) = (policy, orphan) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::invalid("propagationPolicy", &Value::from(policy), why));
        }
        let propagation = match (policy, orphan) {
            (None, None) => None,
            (None, Some(true)) | (Some("Orphan"), _) => Some(Propagation::Orphan),
            (None, Some(false)) | (Some("Background"), _) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some(other), _) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                causes.push(Cause::not_supported("propagationPolicy", other, &known));
                None
            }
        };
        causes.extend(dry_run_cause(&values));
        if !causes.is_empty() {
            return Err(ApiError::invalid_for("meta.k8s.io", "DeleteOptions", "", causes));
        }
        let precondition = |field: &str| {
            Some(json::text(&raw, &["preconditions", field])).filter(|v| !v.is_empty()).map(str::to_owned)
        };
        Ok(Self {
            dry_run: !values.is_empty(),
            grace_seconds: json::int(&raw, &["gracePeriodSeconds"]),
            propagation,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
        })
    }
}

fn from_body(body: &[u8]) -> Result<Value, ApiError> {
    let node = json::parse(body)
        .map_err(|why| ApiError::plain(500, format!("couldn't get version/kind; json parse error: {why}")))?;
    if let Some(Node::Text(kind)) = node.get("kind")
        && kind != "DeleteOptions"
        && !kind.is_empty()
    {
        let version = match node.get("apiVersion") {
            Some(Node::Text(version)) => version.as_str(),
            Some(_) | None => "",
        };
        return Err(ApiError::plain(
            500,
            format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \
                 \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:28\""
            ),
        ));
    }
    let entry = schema::find("meta.v1.DeleteOptions").expect("DeleteOptions are in the schema");
    typed::read(entry, node, false).map(|typed| typed.value).map_err(|why| ApiError::plain(500, why))
}

fn from_query(query: &[(String, String)]) -> Result<Value, ApiError> {
    let mut raw = Map::new();
    for (key, text) in query {
        let value = match key.as_str() {
            "dryRun" if !text.is_empty() => {
                let mut values = raw.remove("dryRun").unwrap_or_else(|| json!([]));
                if let Value::Array(values) = &mut values {
                    values.push(json!(text));
                }
                values
            }
            "propagationPolicy" if !text.is_empty() => json!(text),
            "gracePeriodSeconds" => json!(strconv::parse_int(text).map_err(ApiError::bad_request)?),
            "orphanDependents" => json!(!matches!(text.to_lowercase().as_str(), "false" | "0")),
            _ => continue,
        };
        raw.insert(key.clone(), value);
    }
    Ok(Value::Object(raw))
}

/// What a delete with these options does to `object`.
///
/// Errors: 409 for a precondition that does not hold; 403 for a namespace that may not be deleted.
pub fn plan(
    kind: &Kind,
    object: &Value,
    options: &DeleteOptions,
    now: Timestamp,
) -> Result<Outcome, ApiError> {
    check_preconditions(kind, object, options)?;
    match kind.resource {
        "namespaces" => plan_namespace(kind, object, now),
        "pods" => Ok(plan_pod(object, options, now)),
        _ => Ok(plan_plain(kind, object, options, now)),
    }
}

/// Pods have a grace period; once it runs it can only be shortened.
fn plan_pod(object: &Value, options: &DeleteOptions, now: Timestamp) -> Outcome {
    let mut next = object.clone();
    if is_deleting(object) {
        let running = json::int(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        let wanted = options.grace_seconds.map(at_least_one).unwrap_or(running);
        if wanted >= running {
            return Outcome::Pending { object: next };
        }
        let began = deletion_instant(object)
            .and_then(|at| at.saturating_sub(SignedDuration::from_secs(running)).ok());
        set_deletion(&mut next, began.unwrap_or(now), wanted);
    } else {
        set_propagation(&mut next, options.propagation);
        set_deletion(&mut next, now, pod_grace(object, options));
        raise_generation(&mut next);
    }
    let grace = json::int(&next, &["metadata", "deletionGracePeriodSeconds"]);
    if grace == Some(0) && !has_finalizers(&next) {
        Outcome::Remove { answer: next.clone(), object: next }
    } else {
        Outcome::Update { object: next }
    }
}

/// Everything else goes at once, or waits for its finalizers.
fn plan_plain(kind: &Kind, object: &Value, options: &DeleteOptions, now: Timestamp) -> Outcome {
    let mut next = object.clone();
    if is_deleting(object) && has_finalizers(object) {
        return Outcome::Pending { object: next };
    }
    set_propagation(&mut next, options.propagation);
    if has_finalizers(&next) {
        set_deletion(&mut next, now, 0);
        raise_generation(&mut next);
        return Outcome::Update { object: next };
    }
    let answer = if kind.resource == "serviceaccounts" {
        next.clone()
    } else {
        let meta = |field: &str| json::text(object, &["metadata", field]);
        crate::status::deleted(kind, meta("name"), meta("uid"))
    };
    Outcome::Remove { object: next, answer }
}

/// A namespace waits in phase Terminating until the finalizers in its spec are gone.
fn plan_namespace(kind: &Kind, object: &Value, now: Timestamp) -> Result<Outcome, ApiError> {
    let name = json::text(object, &["metadata", "name"]);
    if matches!(name, "default" | "kube-system" | "kube-public") {
        return Err(ApiError::forbidden("", kind.plural, name, "this namespace may not be deleted"));
    }
    let mut next = object.clone();
    let waits = !json::list(object, &["spec", "finalizers"]).is_empty() || has_finalizers(object);
    if is_deleting(object) {
        return Ok(if waits {
            Outcome::Pending { object: next }
        } else {
            Outcome::Remove { answer: next.clone(), object: next }
        });
    }
    let meta = json::object_mut(&mut next, &["metadata"]);
    meta.insert("deletionTimestamp".to_owned(), Value::from(stamp(now, 0)));
    json::object_mut(&mut next, &["status"]).insert("phase".to_owned(), Value::from("Terminating"));
    Ok(if waits {
        Outcome::Update { object: next }
    } else {
        Outcome::Remove { answer: next.clone(), object: next }
    })
}

/// A pod that is about to be deleted because someone asked for its eviction.
pub fn evicted(pod: &Value, now: Timestamp) -> Value {
    let mut pod = pod.clone();
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": stamp(now, 0),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    let conditions = json::object_mut(&mut pod, &["status"]).entry("conditions").or_insert_with(|| json!([]));
    if let Value::Array(conditions) = conditions {
        match conditions.iter_mut().find(|one| one["type"] == condition["type"]) {
            Some(one) if one["status"] == condition["status"] && one["reason"] == condition["reason"] => {}
            Some(one) => *one = condition,
            None => conditions.push(condition),
        }
    }
    pod
}

/// Whether an object that was just written has nothing left to wait for and is to be removed: its deletion has
/// begun, its grace is 0 and no finalizer is left.
pub fn finished(kind: &Kind, object: &Value) -> bool {
    let waits = if kind.resource == "namespaces" {
        !json::list(object, &["spec", "finalizers"]).is_empty()
    } else {
        json::int(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) != 0
    };
    is_deleting(object) && !has_finalizers(object) && !waits
}

fn check_preconditions(kind: &Kind, object: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let meta = |field: &str| json::text(object, &["metadata", field]);
    let checks = [
        ("UID", &options.uid, meta("uid"), "deleted and then recreated"),
        ("ResourceVersion", &options.resource_version, meta("resourceVersion"), "modified"),
    ];
    for (what, wanted, found, fate) in checks {
        if let Some(wanted) = wanted
            && wanted != found
        {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object \
                 might have been {fate}"
            );
            // Kubernetes names the kind here, not the resource.
            return Err(ApiError::conflict(kind.group, kind.kind, meta("name"), &why));
        }
    }
    Ok(())
}

fn is_deleting(object: &Value) -> bool {
    !json::text(object, &["metadata", "deletionTimestamp"]).is_empty()
}

fn deletion_instant(object: &Value) -> Option<Timestamp> {
    json::text(object, &["metadata", "deletionTimestamp"]).parse().ok()
}

fn has_finalizers(object: &Value) -> bool {
    !json::list(object, &["metadata", "finalizers"]).is_empty()
}

/// Seconds that a pod is given; one that runs nowhere needs none.
fn pod_grace(pod: &Value, options: &DeleteOptions) -> i64 {
    let unbound = json::text(pod, &["spec", "nodeName"]).is_empty();
    if unbound || matches!(json::text(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return 0;
    }
    let own = json::int(pod, &["spec", "terminationGracePeriodSeconds"]).unwrap_or(DEFAULT_GRACE);
    at_least_one(options.grace_seconds.unwrap_or(own))
}

/// A negative grace counts as one second.
fn at_least_one(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// Sets the deletion timestamp `grace` seconds after `began`; beyond the end of time it is the end of time.
fn set_deletion(object: &mut Value, began: Timestamp, grace: i64) {
    let at = began.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    let meta = json::object_mut(object, &["metadata"]);
    meta.insert("deletionTimestamp".to_owned(), Value::from(stamp(at, 0)));
    meta.insert("deletionGracePeriodSeconds".to_owned(), Value::from(grace));
}

fn raise_generation(object: &mut Value) {
    let generation = json::int(object, &["metadata", "generation"]).unwrap_or(0);
    if generation > 0 {
        json::object_mut(object, &["metadata"]).insert("generation".to_owned(), Value::from(generation + 1));
    }
}

/// Puts or takes away the finalizers that stand for a propagation policy.
fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let mut finalizers = json::list(object, &["metadata", "finalizers"]).to_vec();
    finalizers.retain(|one| one != ORPHAN && one != FOREGROUND);
    finalizers.extend(wanted.map(Value::from));
    let meta = json::object_mut(object, &["metadata"]);
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".to_owned(), Value::Array(finalizers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    const NOW: &str = "2026-11-29T12:08:34.6Z";

    fn run(resource: &str, object: &Value, options: &DeleteOptions) -> Result<Outcome, ApiError> {
        plan(kinds::by_resource(resource).unwrap(), object, options, NOW.parse().unwrap())
    }

    fn grace(seconds: i64) -> DeleteOptions {
        DeleteOptions { grace_seconds: Some(seconds), ..DeleteOptions::default() }
    }

    fn pod(change: Value) -> Value {
        let mut pod = json!({
            "metadata": {"name": "c", "namespace": "del", "uid": "u", "resourceVersion": "9"},
            "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30},
            "status": {"phase": "Running"},
        });
        json_patch::merge(&mut pod, &change);
        pod
    }

    /// Expects an update, or with `removed` a removal, with that deletion timestamp and grace.
    fn check(object: &Value, options: &DeleteOptions, removed: bool, at: &str, seconds: i64) {
        let outcome = run("pods", object, options).unwrap();
        let next = match (&outcome, removed) {
            (Outcome::Remove { object, answer }, true) => {
                assert_eq!(object, answer);
                object
            }
            (Outcome::Update { object }, false) => object,
            (_, _) => panic!("{outcome:?}"),
        };
        assert_eq!(next["metadata"]["deletionTimestamp"], at);
        assert_eq!(next["metadata"]["deletionGracePeriodSeconds"], seconds);
    }

    #[test]
    fn pods_have_grace_where_they_run() {
        let none = DeleteOptions::default();
        check(&pod(json!({"spec": {"nodeName": null}})), &none, true, "2026-11-29T12:08:34Z", 0);
        check(&pod(json!({"status": {"phase": "Failed"}})), &none, true, "2026-11-29T12:08:34Z", 0);
        check(&pod(json!({})), &none, false, "2026-11-29T12:09:04Z", 30);
        check(&pod(json!({})), &grace(5), false, "2026-11-29T12:08:39Z", 5);
        check(&pod(json!({})), &grace(-1), false, "2026-11-29T12:08:35Z", 1);
        check(&pod(json!({})), &grace(0), true, "2026-11-29T12:08:34Z", 0);
        let no_grace = pod(json!({"spec": {"terminationGracePeriodSeconds": 0}}));
        check(&no_grace, &none, true, "2026-11-29T12:08:34Z", 0);
        let held = pod(json!({"spec": {"nodeName": null}, "metadata": {"finalizers": ["example.com/hold"]}}));
        check(&held, &none, false, "2026-11-29T12:08:34Z", 0);
        check(&pod(json!({})), &grace(i64::MAX), false, "9999-12-30T22:00:00Z", i64::MAX);
    }

    #[test]
    fn a_running_grace_can_only_be_shortened() {
        let going = pod(json!({"metadata": {
            "deletionTimestamp": "2026-11-29T12:08:38Z", "deletionGracePeriodSeconds": 5,
        }}));
        for options in [DeleteOptions::default(), grace(5), grace(60)] {
            assert_eq!(run("pods", &going, &options), Ok(Outcome::Pending { object: going.clone() }));
        }
        check(&going, &grace(2), false, "2026-11-29T12:08:35Z", 2);
        check(&going, &grace(0), true, "2026-11-29T12:08:33Z", 0);
    }

    #[test]
    fn other_objects_go_at_once_or_wait_for_finalizers() {
        let deployment = json!({"metadata": {"name": "d", "uid": "u", "generation": 1}});
        let outcome = run("deployments", &deployment, &DeleteOptions::default()).unwrap();
        let details = json!({"name": "d", "group": "apps", "kind": "deployments", "uid": "u"});
        let Outcome::Remove { object, answer } = outcome else { panic!("{outcome:?}") };
        assert_eq!(
            (&object, &answer["details"], &answer["status"]),
            (&deployment, &details, &json!("Success"))
        );

        for (propagation, finalizer) in [(Propagation::Orphan, ORPHAN), (Propagation::Foreground, FOREGROUND)]
        {
            let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
            let outcome = run("deployments", &deployment, &options).unwrap();
            let Outcome::Update { object } = outcome else { panic!("{outcome:?}") };
            assert_eq!(object["metadata"]["finalizers"], json!([finalizer]));
            assert_eq!(object["metadata"]["generation"], 2);
            assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 0);
            assert_eq!(run("deployments", &object, &options), Ok(Outcome::Pending { object }));
        }
    }

    #[test]
    fn namespaces_wait_in_phase_terminating() {
        let namespace = json!({
            "metadata": {"name": "del"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        let outcome = run("namespaces", &namespace, &DeleteOptions::default()).unwrap();
        let Outcome::Update { object } = outcome else { panic!("{outcome:?}") };
        assert_eq!(object["status"]["phase"], "Terminating");
        assert_eq!(object["metadata"], json!({"name": "del", "deletionTimestamp": "2026-11-29T12:08:34Z"}));
        let kind = kinds::by_resource("namespaces").unwrap();
        assert!(!finished(kind, &object));
        let mut emptied = object;
        emptied["spec"]["finalizers"] = json!([]);
        assert!(finished(kind, &emptied));

        let default = json!({"metadata": {"name": "default"}});
        let error = run("namespaces", &default, &DeleteOptions::default()).unwrap_err();
        assert_eq!(error.message, "namespaces \"default\" is forbidden: this namespace may not be deleted");
        assert_eq!(error.code, 403);
    }

    #[test]
    fn finished_means_nothing_is_waited_for() {
        let pods = kinds::by_resource("pods").unwrap();
        for (meta, expected) in [
            (json!({}), false),
            (json!({"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}), true),
            (json!({"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 5}), false),
            (json!({"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0, "finalizers": ["x"]}), false),
        ] {
            assert_eq!(finished(pods, &json!({"metadata": meta})), expected, "{meta}");
        }
    }

    #[test]
    fn preconditions_are_conflicts() {
        let options = DeleteOptions { uid: Some("nope".to_owned()), ..DeleteOptions::default() };
        let error = run("pods", &pod(json!({})), &options).unwrap_err();
        assert_eq!(
            error.message,
            "Operation cannot be fulfilled on Pod \"c\": the UID in the precondition (nope) does not match the UID in \
             record (u). The object might have been deleted and then recreated"
        );
        let options = DeleteOptions { resource_version: Some("9".to_owned()), ..DeleteOptions::default() };
        assert!(run("pods", &pod(json!({})), &options).is_ok());
    }

    fn parse(body: &str, query: &[(&str, &str)]) -> Result<DeleteOptions, ApiError> {
        let query: Vec<_> = query.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        DeleteOptions::parse(body.as_bytes(), &query)
    }

    #[test]
    fn options_come_from_the_body_or_the_query() {
        let body = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5, "propagationPolicy": "Foreground",
            "dryRun": ["All"], "preconditions": {"uid": "u"},
        });
        let expected = DeleteOptions {
            dry_run: true,
            grace_seconds: Some(5),
            propagation: Some(Propagation::Foreground),
            uid: Some("u".to_owned()),
            resource_version: None,
        };
        assert_eq!(parse(&body.to_string(), &[("gracePeriodSeconds", "9")]), Ok(expected));
        let query = [("gracePeriodSeconds", "2"), ("propagationPolicy", "Background"), ("dryRun", "All")];
        let expected = DeleteOptions {
            dry_run: true,
            grace_seconds: Some(2),
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        assert_eq!(parse("", &query), Ok(expected));
        assert_eq!(parse("", &[]), Ok(DeleteOptions::default()));
        let orphan = parse(r#"{"orphanDependents":true}"#, &[]).unwrap();
        assert_eq!(orphan.propagation, Some(Propagation::Orphan));
    }

    #[test]
    fn bad_options_are_refused() {
        let cases = [
            (
                "",
                &[("propagationPolicy", "Nope")][..],
                422,
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Nope\": supported \
                 values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
            ),
            (
                r#"{"propagationPolicy":"Orphan","orphanDependents":true}"#,
                &[],
                422,
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": \
                 orphanDependents and deletionPropagation cannot be both set",
            ),
            ("{", &[], 500, "couldn't get version/kind; json parse error: unexpected end of JSON input"),
            ("", &[("gracePeriodSeconds", "x")], 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        ];
        for (body, query, code, message) in cases {
            let error = parse(body, query).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (code, message), "{body} {query:?}");
        }
        assert_eq!(parse(r#"{"kind":"Pod","apiVersion":"v1"}"#, &[]).unwrap_err().code, 500);
    }
}
