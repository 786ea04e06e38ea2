//! The OpenAPI documents that kubectl reads: for client-side apply (merge keys), validation on the server
//! (`fieldValidation`), dry run and explain. Made at first use from the schema and the table of kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::discovery::GIT_VERSION;
use crate::kinds::{self, Kind, Subresource};
use crate::schema::{self, Field, Shape, Type};

/// The two generations of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    V2,
    V3,
}

static V3: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let pairs = kinds::group_versions();
    pairs.iter().map(|(group, version)| (document_path(group, version), document(group, version))).collect()
});
static V2: LazyLock<String> = LazyLock::new(|| {
    let mut definitions = Map::new();
    for entry in schema::types().values() {
        definitions.insert(long_name(entry.name), type_schema(entry, Form::V2));
    }
    for (name, scalar) in scalars(Form::V2) {
        definitions.insert(name.to_owned(), scalar);
    }
    let mut paths = Map::new();
    for kind in kinds::all() {
        add_paths(&mut paths, kind, Form::V2);
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": paths,
        "definitions": definitions,
    })
    .to_string()
});

/// `/openapi/v3`: where the document of each group and version is, with a hash by which clients cache it.
pub fn v3_index() -> Value {
    let paths: Map<String, Value> = V3
        .iter()
        .map(|(path, text)| {
            let url = format!("/openapi/v3/{path}?hash={:016X}", hash(text));
            (path.clone(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// `/openapi/v3/PATH`, with a path such as `api/v1` or `apis/apps/v1`; `None` for what is not served.
pub fn v3_document(path: &str) -> Option<&'static str> {
    V3.get(path).map(String::as_str)
}

/// `/openapi/v2`.
pub fn v2() -> &'static str {
    &V2
}

/// FNV-1a: the same in every process.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn document(group: &str, version: &str) -> String {
    let mut paths = Map::new();
    let mut reached = BTreeSet::new();
    for kind in kinds::all().iter().filter(|kind| kind.group == group && kind.version == version) {
        add_paths(&mut paths, kind, Form::V3);
        let list = schema::find_kind(group, version, kind.list_kind);
        let subs =
            kind.subresources.iter().filter_map(|sub| schema::find_kind(sub.group, sub.version, sub.kind));
        for entry in schema::find(kind.schema).into_iter().chain(list).chain(subs) {
            reach(entry, &mut reached);
        }
    }
    for name in ["meta.v1.DeleteOptions", "meta.v1.Patch", "meta.v1.Status"] {
        if let Some(entry) = schema::find(name) {
            reach(entry, &mut reached);
        }
    }
    let mut schemas: Map<String, Value> = reached
        .iter()
        .filter_map(|name| schema::find(name))
        .map(|entry| (long_name(entry.name), type_schema(entry, Form::V3)))
        .collect();
    for (name, scalar) in scalars(Form::V3) {
        schemas.insert(name.to_owned(), scalar);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    })
    .to_string()
}

/// Collects the types that an entry is made of.
fn reach(entry: &'static Type, reached: &mut BTreeSet<&'static str>) {
    if !reached.insert(entry.name) {
        return;
    }
    for field in entry.fields.values() {
        let mut shape = &field.shape;
        while let Shape::List(of) | Shape::Map(of) = shape {
            shape = of;
        }
        if let Shape::Object(name) = shape
            && let Some(entry) = schema::find(name)
        {
            reach(entry, reached);
        }
    }
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const FIELDS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// The types that have a name but no fields.
fn scalars(form: Form) -> [(&'static str, Value); 6] {
    let instant = json!({"type": "string", "format": "date-time"});
    let (quantity, int_or_string) = match form {
        Form::V2 => (json!({"type": "string"}), json!({"type": "string", "format": "int-or-string"})),
        Form::V3 => (
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
    };
    [
        (QUANTITY, quantity),
        (TIME, instant.clone()),
        (MICRO_TIME, instant),
        (FIELDS, json!({"type": "object"})),
        (RAW, json!({"type": "object"})),
        (INT_OR_STRING, int_or_string),
    ]
}

/// The name of a type in OpenAPI.
fn long_name(name: &str) -> String {
    let home = match name.split('.').next() {
        Some("meta") => "io.k8s.apimachinery.pkg.apis",
        Some("apiextensions") => "io.k8s.apiextensions-apiserver.pkg.apis",
        Some("apiregistration") => "io.k8s.kube-aggregator.pkg.apis",
        _ => "io.k8s.api",
    };
    format!("{home}.{name}")
}

fn type_schema(entry: &Type, form: Form) -> Value {
    let mut shown = json!({"type": "object"});
    let properties: Map<String, Value> =
        entry.fields.values().map(|field| (field.name.to_owned(), field_schema(field, form))).collect();
    if !properties.is_empty() {
        shown["properties"] = Value::Object(properties);
    }
    if !entry.required.is_empty() {
        shown["required"] = json!(entry.required);
    }
    if let Some(map_type) = entry.map_type {
        shown["x-kubernetes-map-type"] = json!(map_type);
    }
    if !entry.gvks.is_empty() {
        let gvks: Vec<Value> =
            entry.gvks.iter().map(|(group, version, kind)| gvk(group, version, kind)).collect();
        shown["x-kubernetes-group-version-kind"] = Value::Array(gvks);
    }
    shown
}

fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn field_schema(field: &Field, form: Form) -> Value {
    let mut shown = shape_schema(&field.shape, form);
    if let (Form::V3, Some(default)) = (form, &field.default) {
        shown["default"] = default.clone();
    }
    let flags = [
        ("x-kubernetes-list-type", field.list_type),
        ("x-kubernetes-map-type", field.map_type),
        ("x-kubernetes-patch-merge-key", field.merge_key),
        ("x-kubernetes-patch-strategy", field.strategy),
    ];
    for (key, value) in flags {
        if let Some(value) = value {
            shown[key] = json!(value);
        }
    }
    if !field.list_keys.is_empty() {
        shown["x-kubernetes-list-map-keys"] = json!(field.list_keys);
    }
    if !field.allowed.is_empty() {
        shown["enum"] = json!(field.allowed);
    }
    shown
}

fn shape_schema(shape: &Shape, form: Form) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 => json!({"type": "integer", "format": "int64"}),
        Shape::Double => json!({"type": "number", "format": "double"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::Time => reference(TIME, form),
        Shape::MicroTime => reference(MICRO_TIME, form),
        Shape::Quantity => reference(QUANTITY, form),
        Shape::IntOrString => reference(INT_OR_STRING, form),
        Shape::Raw => reference(RAW, form),
        Shape::Fields => reference(FIELDS, form),
        Shape::List(of) => json!({"type": "array", "items": element(of, form)}),
        Shape::Map(of) => json!({"type": "object", "additionalProperties": element(of, form)}),
        Shape::Object(name) => reference(&long_name(name), form),
    }
}

/// The schema of what lists and maps hold; in v3 with the zero value as its default.
fn element(of: &Shape, form: Form) -> Value {
    let mut shown = shape_schema(of, form);
    if form == Form::V2 {
        return shown;
    }
    match of {
        Shape::Text => shown["default"] = json!(""),
        Shape::Int32 | Shape::Int64 => shown["default"] = json!(0),
        Shape::Object(_) => shown["default"] = json!({}),
        // Without a default beside it the reference stands alone.
        Shape::Time
        | Shape::MicroTime
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Raw
        | Shape::Fields => shown = shown["allOf"][0].take(),
        Shape::Bool | Shape::Double | Shape::Bytes | Shape::List(_) | Shape::Map(_) => {}
    }
    shown
}

fn reference(name: &str, form: Form) -> Value {
    match form {
        Form::V2 => json!({"$ref": format!("#/definitions/{name}")}),
        Form::V3 => json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}]}),
    }
}

/// Adds the paths of a kind: its collections, its objects, their subresources.
fn add_paths(paths: &mut Map<String, Value>, kind: &Kind, form: Form) {
    let root = format!("/{}", document_path(kind.group, kind.version));
    let own = gvk(kind.group, kind.version, kind.kind);
    let body = schema::find(kind.schema).map(|entry| long_name(entry.name)).unwrap_or_default();
    let list = schema::find_kind(kind.group, kind.version, kind.list_kind).map(|entry| long_name(entry.name));
    let scoped = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{scoped}/{}", kind.plural);
    let place = Place { gvk: &own, body: &body, form };

    let mut item = Map::new();
    for (verb, method) in [("list", "get"), ("create", "post"), ("deletecollection", "delete")] {
        if kind.verbs.contains(&verb) {
            let answer = if verb == "list" { list.as_deref().unwrap_or(&body) } else { &body };
            item.insert(method.to_owned(), place.operation(verb, answer));
        }
    }
    item.insert("parameters".to_owned(), path_parameters(kind.namespaced, false, form));
    paths.insert(collection.clone(), Value::Object(item));
    if kind.namespaced && kind.verbs.contains(&"list") {
        let everywhere = json!({"get": place.operation("list", list.as_deref().unwrap_or(&body))});
        paths.insert(format!("{root}/{}", kind.plural), everywhere);
    }
    if !kind.is_stored() {
        return;
    }
    let mut item = Map::new();
    for (verb, method) in [("get", "get"), ("update", "put"), ("patch", "patch"), ("delete", "delete")] {
        if kind.verbs.contains(&verb) {
            item.insert(method.to_owned(), place.operation(verb, &body));
        }
    }
    item.insert("parameters".to_owned(), path_parameters(kind.namespaced, true, form));
    paths.insert(format!("{collection}/{{name}}"), Value::Object(item));
    for sub in kind.subresources {
        paths.insert(format!("{collection}/{{name}}/{}", sub.name), sub_path(kind, sub, form));
    }
}

fn sub_path(kind: &Kind, sub: &Subresource, form: Form) -> Value {
    let own = gvk(sub.group, sub.version, sub.kind);
    let body = schema::find_kind(sub.group, sub.version, sub.kind).map(|entry| long_name(entry.name));
    let body = body.unwrap_or_default();
    let place = Place { gvk: &own, body: &body, form };
    let mut item = Map::new();
    for (verb, method) in [("get", "get"), ("update", "put"), ("patch", "patch"), ("create", "post")] {
        if sub.verbs.contains(&verb) {
            item.insert(method.to_owned(), place.operation(verb, &body));
        }
    }
    item.insert("parameters".to_owned(), path_parameters(kind.namespaced, true, form));
    Value::Object(item)
}

/// What the operations of one path have in common.
struct Place<'a> {
    gvk: &'a Value,
    body: &'a str,
    form: Form,
}

impl Place<'_> {
    fn operation(&self, verb: &str, answer: &str) -> Value {
        let action = match verb {
            "create" => "post",
            "update" => "put",
            other => other,
        };
        let mut operation = json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.gvk,
            "responses": {"200": self.content(answer), "401": {"description": "Unauthorized"}},
        });
        let names: &[(&str, &str)] = match verb {
            "create" | "update" => {
                &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")]
            }
            "patch" => &[
                ("dryRun", "string"),
                ("fieldManager", "string"),
                ("fieldValidation", "string"),
                ("force", "boolean"),
            ],
            "delete" | "deletecollection" => &[
                ("dryRun", "string"),
                ("gracePeriodSeconds", "integer"),
                ("orphanDependents", "boolean"),
                ("propagationPolicy", "string"),
            ],
            _ => &[],
        };
        let mut parameters: Vec<Value> =
            names.iter().map(|(name, kind)| parameter(name, "query", kind, self.form)).collect();
        let options = long_name("meta.v1.DeleteOptions");
        let patch = long_name("meta.v1.Patch");
        let (media, body): (&[&str], &str) = match verb {
            "create" | "update" => (&["*/*"], self.body),
            "patch" => (
                &[
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/strategic-merge-patch+json",
                ],
                &patch,
            ),
            "delete" | "deletecollection" => (&["*/*"], &options),
            _ => (&[], ""),
        };
        if !media.is_empty() {
            match self.form {
                Form::V3 => {
                    let content: Map<String, Value> = media
                        .iter()
                        .map(|media| {
                            ((*media).to_owned(), json!({"schema": plain_reference(body, self.form)}))
                        })
                        .collect();
                    operation["requestBody"] = json!({"content": content});
                }
                Form::V2 => {
                    operation["consumes"] = json!(media);
                    parameters.push(
                        json!({"name": "body", "in": "body", "schema": plain_reference(body, self.form)}),
                    );
                }
            }
        }
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        operation
    }

    fn content(&self, answer: &str) -> Value {
        let schema = plain_reference(answer, self.form);
        match self.form {
            Form::V2 => json!({"description": "OK", "schema": schema}),
            Form::V3 => json!({"description": "OK", "content": {"application/json": {"schema": schema}}}),
        }
    }
}

fn plain_reference(name: &str, form: Form) -> Value {
    match form {
        Form::V2 => json!({"$ref": format!("#/definitions/{name}")}),
        Form::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
    }
}

fn parameter(name: &str, place: &str, kind: &str, form: Form) -> Value {
    let mut shown = json!({"name": name, "in": place});
    match form {
        Form::V2 => {
            shown["type"] = json!(kind);
            shown["uniqueItems"] = json!(true);
        }
        Form::V3 => shown["schema"] = json!({"type": kind, "uniqueItems": true}),
    }
    if place == "path" {
        shown["required"] = json!(true);
    }
    shown
}

fn path_parameters(namespaced: bool, named: bool, form: Form) -> Value {
    let mut parameters = Vec::new();
    if named {
        parameters.push(parameter("name", "path", "string", form));
    }
    if namespaced {
        parameters.push(parameter("namespace", "path", "string", form));
    }
    parameters.push(parameter("pretty", "query", "string", form));
    Value::Array(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Definitions of a Kubernetes 1.32 that use every flag of the schema.
    const FACTS: &str = include_str!("../tests/data/openapi.json");

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn types_are_those_of_kubernetes() {
        let facts = parsed(FACTS);
        let ours = parsed(v2());
        let mut seen = 0;
        for (name, definition) in facts["v2"].as_object().unwrap() {
            assert_eq!(&ours["definitions"][name], definition, "{name}");
            seen += 1;
        }
        let documents = ["api/v1", "apis/apps/v1"].map(|path| parsed(v3_document(path).unwrap()));
        for (name, definition) in facts["v3"].as_object().unwrap() {
            let found = documents.iter().find_map(|document| document["components"]["schemas"].get(name));
            assert_eq!(found, Some(definition), "{name}");
            seen += 1;
        }
        assert!(seen > 10);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
            match value {
                Value::Object(map) => {
                    for (key, value) in map {
                        match value.as_str() {
                            Some(text) if key == "$ref" => {
                                found.insert(text);
                            }
                            Some(_) | None => references(value, found),
                        }
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let index = v3_index();
        let documents = index["paths"].as_object().unwrap();
        assert!(documents.contains_key("api/v1") && documents.contains_key("apis/apps/v1"));
        let texts = documents.keys().map(|path| v3_document(path).unwrap()).chain([v2()]);
        for text in texts {
            let document = parsed(text);
            let mut found = BTreeSet::new();
            references(&document, &mut found);
            assert!(!found.is_empty());
            for reference in found {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
        }
    }

    #[test]
    fn kubectl_finds_what_it_looks_for() {
        let apps = parsed(v3_document("apis/apps/v1").unwrap());
        let item = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
        let own = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
        assert_eq!(item["patch"]["x-kubernetes-group-version-kind"], own);
        let names: Vec<&str> = item["patch"]["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
        let content = item["patch"]["requestBody"]["content"].as_object().unwrap();
        assert!(content.contains_key("application/strategic-merge-patch+json"));
        assert!(!content.contains_key("application/apply-patch+yaml"));
        let list = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["get"];
        assert_eq!(list["x-kubernetes-group-version-kind"], own);
    }
}
