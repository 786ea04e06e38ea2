//! What Kubernetes 1.32 answered to some 120 requests, asked of this crate: each exchange names the object before,
//! the request and the answer. Times, resourceVersions and addresses that differ from run to run are left out.
//!
//! Differences by choice are marked in the data: `code` where the catalogue asks for another code or the text holds
//! whole Go structs, `sentence` where a textual difference of structs follows the message.

use std::collections::BTreeMap;

use control_plane_api::delete::{self, DeleteOptions, Outcome};
use control_plane_api::options::{FieldValidation, WriteOptions, WriteVerb};
use control_plane_api::patch::{self, PatchType};
use control_plane_api::strategy::{self, Context, Identity};
use control_plane_api::{ApiError, Dialect, Expected, Kind, binding, decode, kinds, scale, status};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

const EXCHANGES: &str = include_str!("data/exchanges.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    name: String,
    verb: String,
    group: String,
    resource: String,
    namespace: Option<String>,
    object: Option<String>,
    subresource: Option<String>,
    #[serde(default)]
    query: Vec<(String, String)>,
    #[serde(rename = "type")]
    media: Option<String>,
    #[serde(default)]
    body: String,
    before: Option<Value>,
    code: u16,
    compare: Option<String>,
    answer: Option<Value>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// What this crate makes of a request: code, body, warnings.
type Answer = (u16, Value, Vec<String>);

fn context() -> Context {
    let now: Timestamp = "2026-11-29T12:00:49Z".parse().unwrap();
    Context { now, dialect: Dialect::Kubernetes, eviction_seconds: Some(300) }
}

impl Exchange {
    fn kind(&self) -> &'static Kind {
        kinds::find(&self.group, "v1", &self.resource).unwrap()
    }

    fn before(&self) -> &Value {
        self.before.as_ref().unwrap_or_else(|| panic!("{} needs an object before", self.name))
    }

    fn ask(&self) -> Answer {
        match self.answer_or_error() {
            Ok(answer) => answer,
            Err(error) => (error.code, error.to_status(), Vec::new()),
        }
    }

    fn answer_or_error(&self) -> Result<Answer, ApiError> {
        match (self.verb.as_str(), self.subresource.as_deref()) {
            ("create", None) => self.create(),
            ("create", Some("binding")) => self.bind(),
            ("get", Some("scale")) => Ok((200, scale::from_object(self.before()), Vec::new())),
            ("update" | "patch", subresource) => self.write(subresource),
            ("delete", None) => self.delete(),
            other => panic!("{}: {other:?}", self.name),
        }
    }

    fn options(&self, verb: WriteVerb) -> Result<WriteOptions, ApiError> {
        WriteOptions::parse(verb, &self.query)
    }

    fn decode(&self, expected: Expected, validation: FieldValidation) -> Result<decode::Decoded, ApiError> {
        decode::decode(expected, self.body.as_bytes(), validation, context().dialect)
    }

    fn create(&self) -> Result<Answer, ApiError> {
        let options = self.options(WriteVerb::Create)?;
        let decoded = self.decode(self.kind().into(), options.field_validation)?;
        let recorded = |pointer: &str| {
            self.answer
                .as_ref()
                .and_then(|answer| answer.pointer(pointer))
                .and_then(Value::as_str)
                .unwrap_or("x")
        };
        let name = recorded("/metadata/name");
        let identity = Identity {
            uid: recorded("/metadata/uid"),
            name_suffix: &name[name.len().saturating_sub(5)..],
            cluster_ip: Some(recorded("/spec/clusterIP")),
            classes: &[],
        };
        let namespace = self.namespace.as_deref();
        let created =
            strategy::prepare_create(self.kind(), namespace, decoded.object, &identity, &context())?;
        Ok((201, created, decoded.warnings))
    }

    fn bind(&self) -> Result<Answer, ApiError> {
        let expected = Expected { group: "", version: "v1", kind: "Binding" };
        let decoded = self.decode(expected, FieldValidation::Warn)?;
        let (name, namespace) = (self.object.as_deref().unwrap(), self.namespace.as_deref().unwrap());
        let bound = binding::bind(self.before(), name, namespace, &decoded.object, context().now)?;
        let target = decoded.object.pointer("/target/name").unwrap();
        assert_eq!(bound.pointer("/spec/nodeName"), Some(target), "{}", self.name);
        Ok((201, status::success(201), decoded.warnings))
    }

    fn write(&self, subresource: Option<&str>) -> Result<Answer, ApiError> {
        let kind = self.kind();
        let expected = match subresource.and_then(|name| kind.subresource(name)) {
            Some(sub) => Expected::from(sub),
            None => Expected::from(kind),
        };
        let scaled = subresource == Some("scale");
        let current = if scaled { scale::from_object(self.before()) } else { self.before().clone() };
        let replaces = self.verb == "update";
        let decoded = if replaces {
            let options = self.options(WriteVerb::Update)?;
            self.decode(expected, options.field_validation)?
        } else {
            let options = self.options(WriteVerb::Patch)?;
            let media = PatchType::from_content_type(self.media.as_deref().unwrap_or_default())?;
            let body = self.body.as_bytes();
            patch::apply(expected, media, &current, body, options.field_validation, context().dialect)?
        };
        let (old, new, context) = (self.before(), decoded.object, context());
        let written = match (subresource, replaces) {
            (None, true) => strategy::prepare_replacement(kind, old, new, &context)?,
            (None, false) => strategy::prepare_update(kind, old, new, &context)?,
            (Some("status"), true) => strategy::prepare_status_replacement(kind, old, new, &context)?,
            (Some("status"), false) => strategy::prepare_status_update(kind, old, new, &context)?,
            (Some("scale"), _) => {
                let wanted = scale::apply(kind, old, &new)?;
                scale::from_object(&strategy::prepare_update(kind, old, wanted, &context)?)
            }
            other => panic!("{}: {other:?}", self.name),
        };
        Ok((200, written, decoded.warnings))
    }

    fn delete(&self) -> Result<Answer, ApiError> {
        let options = DeleteOptions::parse(self.body.as_bytes(), &self.query)?;
        let answer = match delete::plan(self.kind(), self.before(), &options, context().now)? {
            Outcome::Remove { answer, .. } => answer,
            Outcome::Update { object } | Outcome::Pending { object } => object,
        };
        Ok((200, answer, Vec::new()))
    }
}

/// Leaves out what differs from run to run.
fn normalise(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("resourceVersion");
            for (key, value) in map.iter_mut() {
                let is_time = key.ends_with("Timestamp") || key.ends_with("Time");
                if is_time && value.is_string() {
                    *value = json!("TIME");
                } else {
                    normalise(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The first line of a message, which is the part for people.
fn cut_messages(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(message)) = map.get_mut("message") {
                let line = message.lines().next().unwrap_or_default().to_owned();
                *message = line;
            }
            map.values_mut().for_each(cut_messages);
        }
        Value::Array(items) => items.iter_mut().for_each(cut_messages),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn answers_are_those_of_kubernetes() {
    let exchanges: Vec<Exchange> = serde_json::from_str(EXCHANGES).unwrap();
    let mut compared: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for exchange in &exchanges {
        let (code, mut body, warnings) = exchange.ask();
        let compare = exchange.compare.as_deref().unwrap_or("all");
        *compared.entry(compare).or_default() += 1;
        if code != exchange.code || warnings != exchange.warnings {
            wrong.push(format!("{}: {code} {warnings:?}\n{body}", exchange.name));
            continue;
        }
        let mut expected = exchange.answer.clone().unwrap_or_default();
        match compare {
            "code" => continue,
            "sentence" => {
                cut_messages(&mut expected);
                cut_messages(&mut body);
            }
            _ => {}
        }
        normalise(&mut expected);
        normalise(&mut body);
        if body != expected {
            wrong.push(format!("{}:\n ours {body}\n real {expected}", exchange.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ\n{}", wrong.len(), exchanges.len(), wrong.join("\n"));
    assert!(compared["all"] > 100, "{compared:?}");
}
