//! Reading of acts on the API.

use std::collections::BTreeMap;

use serde_json::Value;

use super::manifest::{check_operations, manifest, object, objects};
use super::path::wrong_path;
use super::{
    Answer, Api, Apply, Bind, Cordon, Create, Delete, Patch, PatchType, Propagation, Replace, RequestAct,
    Scale, Target, User,
};
use crate::cel;
use crate::kinds::{KIND_NAMES, ObjectKind};
use crate::mistake::suggestion;
use crate::pattern;
use crate::reader::{Fields, word};
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::strings;
use crate::template;
use crate::yaml::{Kind, Node};

const USER: Field =
    Field::optional("user", FieldType::Text, "Identity: admin, board:NAME, anonymous or token:TEXT.")
        .usually("admin")
        .such_as("anonymous");
const NAMESPACE: Field = Field::optional("namespace", FieldType::Text, "Namespace; the trial's if left out.");
const ANSWER: Field = Field::optional(
    "answer",
    FieldType::Shape(&ANSWER_SHAPE),
    "What the answer has to be; any 2xx if left out.",
);
const MANIFEST: Field = Field::optional("manifest", FieldType::Object, "The object.");
const FILE: Field =
    Field::optional("file", FieldType::Text, "A YAML file beside the scenario.").such_as("web.yaml");
const KIND: Field = Field::required("kind", FieldType::Word(KIND_NAMES), "The object's kind.");
const NAME: Field = Field::required("name", FieldType::Text, "The object's name.");
const SUBRESOURCE: Field =
    Field::optional("subresource", FieldType::Word(SUBRESOURCES), "A part that is written by itself.");
const SUBRESOURCES: &[&str] = &["status", "scale"];

static ANSWER_SHAPE: Shape = Shape::new(
    "answer",
    "What an answer has to be.",
    &[
        Field::optional(
            "status",
            FieldType::OneOrList(&FieldType::Whole { min: 100, max: 599 }),
            "The status code, or a list of them.",
        ),
        Field::optional("match", FieldType::Pattern, "What the body has to look like."),
        Field::optional("cel", FieldType::Text, "What has to hold of `answer` and `status`, in CEL."),
        Field::optional(
            "headers",
            FieldType::Mapping(&FieldType::TextOrPattern),
            "What header fields have to look like; case does not matter in their names.",
        ),
    ],
);

pub(crate) static APPLY: Shape = Shape::new(
    "apply",
    "Creates objects that are missing and merge-patches those that are there.",
    &[
        MANIFEST,
        Field::optional("manifests", FieldType::List(&FieldType::Object), "Several objects."),
        FILE,
        USER,
        NAMESPACE,
        ANSWER,
    ],
)
.exactly_one(&[&["manifest", "manifests", "file"]]);

pub(crate) static CREATE: Shape =
    Shape::new("create", "Creates an object (POST).", &[MANIFEST, FILE, USER, NAMESPACE, ANSWER])
        .exactly_one(&[&["manifest", "file"]]);

pub(crate) static REPLACE: Shape = Shape::new(
    "replace",
    "Replaces an object (PUT).",
    &[MANIFEST, FILE, SUBRESOURCE, USER, NAMESPACE, ANSWER],
)
.exactly_one(&[&["manifest", "file"]]);

pub(crate) static PATCH: Shape = Shape::new(
    "patch",
    "Changes a part of an object (PATCH).",
    &[
        KIND,
        NAME,
        Field::required(
            "type",
            FieldType::Word(&["merge", "json", "strategic", "apply"]),
            "How the patch is to be read.",
        ),
        Field::required("patch", FieldType::Any, "The patch."),
        Field::optional(
            "fieldManager",
            FieldType::Text,
            "Who is said to change the fields; with apply, rigor if left out.",
        ),
        Field::optional("force", FieldType::Flag, "With apply: takes fields from other managers.")
            .usually("false"),
        SUBRESOURCE,
        USER,
        NAMESPACE,
        ANSWER,
    ],
);

pub(crate) static DELETE: Shape = Shape::new(
    "delete",
    "Deletes an object.",
    &[
        KIND,
        NAME,
        Field::optional(
            "propagation",
            FieldType::Word(&["background", "foreground", "orphan"]),
            "What becomes of its dependents.",
        ),
        Field::optional("grace", FieldType::Duration, "Grace period in whole seconds.").such_as("0s"),
        USER,
        NAMESPACE,
        ANSWER,
    ],
);

pub(crate) static SCALE: Shape = Shape::new(
    "scale",
    "Changes the number of replicas through the scale subresource.",
    &[
        Field::optional("kind", FieldType::Word(KIND_NAMES), "The object's kind.").usually("Deployment"),
        NAME,
        Field::required("replicas", FieldType::Whole { min: 0, max: 10_000 }, "How many."),
        USER,
        NAMESPACE,
        ANSWER,
    ],
);

const NODE: Field = Field::required("node", FieldType::Text, "The node's name.");

pub(crate) static CORDON: Shape =
    Shape::new("cordon", "Takes a node out of scheduling.", &[NODE, USER, ANSWER]);
pub(crate) static UNCORDON: Shape =
    Shape::new("uncordon", "Gives a node back to scheduling.", &[NODE, USER, ANSWER]);

pub(crate) static BIND: Shape = Shape::new(
    "bind",
    "Assigns a pod to a node by a Binding.",
    &[
        Field::required("pod", FieldType::Text, "The pod's name."),
        NODE,
        Field::optional("uid", FieldType::Text, "The pod's uid as a precondition."),
        USER,
        NAMESPACE,
        ANSWER,
    ],
);

pub(crate) static REQUEST: Shape = Shape::new(
    "request",
    "Makes any request.",
    &[
        Field::required("method", FieldType::Word(METHODS), "The method in capitals."),
        Field::required("path", FieldType::Text, "The path with its query.").such_as("/api/v1/nodes"),
        Field::optional("body", FieldType::Any, "A JSON body."),
        Field::optional("contentType", FieldType::Text, "The body's media type.").usually("application/json"),
        Field::optional("headers", FieldType::Mapping(&FieldType::Text), "Header fields to send."),
        USER,
        ANSWER,
    ],
);

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

pub(crate) fn apply(context: &mut Context<'_, '_>, node: &Node) -> Option<Apply> {
    let fields = context.reader.open(node, &APPLY)?;
    let api = api(context, &fields, true);
    let objects = match fields.get("manifests") {
        Some(list) => {
            let items = context.reader.some_list(list, "no manifest", "write at least one object")?;
            let objects: Vec<Option<Value>> = items.iter().map(|item| manifest(context, item)).collect();
            objects.into_iter().collect::<Option<_>>()?
        }
        None => objects(context, &fields)?,
    };
    Some(Apply { objects, api: api? })
}

pub(crate) fn create(context: &mut Context<'_, '_>, node: &Node) -> Option<Create> {
    let fields = context.reader.open(node, &CREATE)?;
    let (object, api) = (object(context, &fields, node), api(context, &fields, true));
    Some(Create { object: object?, api: api? })
}

pub(crate) fn replace(context: &mut Context<'_, '_>, node: &Node) -> Option<Replace> {
    let fields = context.reader.open(node, &REPLACE)?;
    let (object, api) = (object(context, &fields, node), api(context, &fields, true));
    Some(Replace { subresource: subresource(context, &fields), object: object?, api: api? })
}

pub(crate) fn patch(context: &mut Context<'_, '_>, node: &Node) -> Option<Patch> {
    let fields = context.reader.open(node, &PATCH)?;
    let (target, api) = (target(context, &fields, None), api(context, &fields, true));
    let subresource = subresource(context, &fields);
    let patch_type = word(context.reader, fields.get("type")?, &PatchType::ALL, PatchType::name)?;
    let patch = fields.get("patch")?;
    match (patch_type, &patch.kind) {
        (PatchType::Json, Kind::List(_)) | (PatchType::Merge | PatchType::Strategic, Kind::Map(_)) => {}
        (PatchType::Apply, Kind::Map(_)) => {
            for key in ["apiVersion", "kind"] {
                if patch.get(key).is_none() {
                    let message = format!("what is applied has no `{key}`");
                    context.reader.wrong(&patch.span, message, "add it: the server wants the object's own");
                }
            }
        }
        (PatchType::Json, _) => {
            context.reader.wrong(
                &patch.span,
                "a JSON patch is a list of operations",
                "write [{op: replace, path: /spec/x, value: 1}]",
            );
        }
        (PatchType::Merge | PatchType::Strategic | PatchType::Apply, _) => {
            context.reader.wrong(
                &patch.span,
                "this type of patch is a mapping",
                "write {spec: {…}}, or type: json for a list of operations",
            );
        }
    }
    if patch_type == PatchType::Json {
        check_operations(context, patch);
    } else {
        strings::check_object(context.reader, patch, None);
        strings::check_dotted(context.reader, patch);
    }
    let manager = fields.get("fieldManager").and_then(|node| text(context, node));
    let force = fields.get("force").and_then(|node| context.reader.flag(node)).unwrap_or(false);
    if let (Some(node), true) = (fields.get("force"), patch_type != PatchType::Apply) {
        let message = format!("force says nothing about a patch of type {}", patch_type.name());
        context.reader.wrong(&node.span, message, "leave it out, or write type: apply");
    }
    Some(Patch {
        target: target?,
        patch_type,
        patch: templated(context, patch),
        field_manager: manager.or_else(|| (patch_type == PatchType::Apply).then(|| "rigor".to_owned())),
        force,
        subresource,
        api: api?,
    })
}

pub(crate) fn delete(context: &mut Context<'_, '_>, node: &Node) -> Option<Delete> {
    let fields = context.reader.open(node, &DELETE)?;
    let (target, api) = (target(context, &fields, None), api(context, &fields, true));
    Some(Delete {
        propagation: fields
            .get("propagation")
            .and_then(|node| word(context.reader, node, &Propagation::ALL, Propagation::name)),
        grace: fields.get("grace").and_then(|node| context.reader.whole_seconds(node)),
        target: target?,
        api: api?,
    })
}

pub(crate) fn scale(context: &mut Context<'_, '_>, node: &Node) -> Option<Scale> {
    let fields = context.reader.open(node, &SCALE)?;
    let target = target(context, &fields, ObjectKind::named("Deployment"));
    let api = api(context, &fields, true);
    let replicas = context.reader.whole(fields.get("replicas")?, 0..=10_000);
    Some(Scale { target: target?, replicas: replicas?, api: api? })
}

pub(crate) fn cordon(context: &mut Context<'_, '_>, node: &Node) -> Option<Cordon> {
    let fields = context.reader.open(node, &CORDON)?;
    let api = api(context, &fields, false);
    Some(Cordon { node: text(context, fields.get("node")?)?, on: true, api: api? })
}

pub(crate) fn uncordon(context: &mut Context<'_, '_>, node: &Node) -> Option<Cordon> {
    let fields = context.reader.open(node, &UNCORDON)?;
    let api = api(context, &fields, false);
    Some(Cordon { node: text(context, fields.get("node")?)?, on: false, api: api? })
}

pub(crate) fn bind(context: &mut Context<'_, '_>, node: &Node) -> Option<Bind> {
    let fields = context.reader.open(node, &BIND)?;
    let mut named = |key| fields.get(key).and_then(|node| text(context, node));
    let (pod, node, uid) = (named("pod"), named("node"), named("uid"));
    let api = api(context, &fields, true);
    Some(Bind { pod: pod?, node: node?, uid, api: api? })
}

pub(crate) fn request(context: &mut Context<'_, '_>, node: &Node) -> Option<RequestAct> {
    let fields = context.reader.open(node, &REQUEST)?;
    let api = api(context, &fields, false);
    let method = fields.get("method").and_then(|node| word(context.reader, node, METHODS, |word| word));
    let path_node = fields.get("path")?;
    let path = text(context, path_node)?;
    check_path(context, path_node, &path);
    Some(RequestAct {
        method: method?.to_owned(),
        path,
        body: fields.get("body").map(|node| templated(context, node)),
        content_type: fields.get("contentType").and_then(|node| text(context, node)),
        headers: headers(context, fields.get("headers"), text),
        api: api?,
    })
}

/// Notes what no request can have as its path.
pub(crate) fn check_path(context: &mut Context<'_, '_>, node: &Node, path: &str) {
    if let Some((message, remedy)) = wrong_path(path) {
        context.reader.wrong(&node.span, message, remedy);
    }
}

/// A text that may hold names.
pub(crate) fn text(context: &mut Context<'_, '_>, node: &Node) -> Option<String> {
    let text = context.reader.text(node)?;
    context.check_plain(&node.span, &text, true);
    context.check_broken(&node.span, &text, true);
    context.check_names(&node.span, &template::names(&text));
    Some(text)
}

/// Any value that may hold names.
pub(crate) fn templated(context: &mut Context<'_, '_>, node: &Node) -> Value {
    let value = node.to_value();
    context.check_names(&node.span, &template::names_in(&value));
    context.check_plain_in(node);
    context.check_broken_in(node, false);
    value
}

/// A kind that is known by name.
pub(crate) fn kind(context: &mut Context<'_, '_>, node: &Node) -> Option<&'static ObjectKind> {
    let name = context.reader.text(node)?;
    let found = ObjectKind::named(&name);
    if found.is_none() {
        let known: Vec<&str> = crate::kinds::KINDS.iter().map(|row| row.kind).collect();
        let remedy = if name == "List" {
            "write its items as documents of their own, with `---` between them".to_owned()
        } else {
            suggestion(&name, &known)
        };
        context.reader.wrong(&node.span, format!("the kind `{name}` is not known here"), remedy);
    }
    found
}

fn target(
    context: &mut Context<'_, '_>,
    fields: &Fields<'_>,
    default: Option<&'static ObjectKind>,
) -> Option<Target> {
    let kind = match fields.get("kind") {
        Some(node) => kind(context, node),
        None => default,
    };
    if let (Some(kind), Some(namespace)) = (kind, fields.get("namespace"))
        && !kind.namespaced
    {
        context.reader.wrong(&namespace.span, format!("a {} has no namespace", kind.kind), "leave it out");
    }
    let name = text(context, fields.get("name")?);
    Some(Target { kind: kind?, name: name? })
}

fn subresource(context: &mut Context<'_, '_>, fields: &Fields<'_>) -> Option<String> {
    let node = fields.get("subresource")?;
    word(context.reader, node, SUBRESOURCES, |word| word).map(str::to_owned)
}

fn api(context: &mut Context<'_, '_>, fields: &Fields<'_>, namespaced: bool) -> Option<Api> {
    let user = match fields.get("user") {
        Some(node) => user(context, node),
        None => Some(User::Admin),
    };
    let namespace =
        if namespaced { fields.get("namespace").and_then(|node| text(context, node)) } else { None };
    let answer = match fields.get("answer") {
        Some(node) => answer(context, node),
        None => Some(Answer::default()),
    };
    Some(Api { user: user?, namespace, answer: answer? })
}

/// Reads an identity.
pub(crate) fn user(context: &mut Context<'_, '_>, node: &Node) -> Option<User> {
    let written = text(context, node)?;
    match written.split_once(':') {
        None if written == "admin" => Some(User::Admin),
        None if written == "anonymous" => Some(User::Anonymous),
        Some(("board", board)) => {
            context.check_board(&node.span, board);
            Some(User::Board(board.to_owned()))
        }
        Some(("token", token)) => Some(User::Token(token.to_owned())),
        Some(_) | None => {
            context.reader.wrong(
                &node.span,
                format!("`{written}` is no identity"),
                "write admin, anonymous, board:a or token:TEXT",
            );
            None
        }
    }
}

fn answer(context: &mut Context<'_, '_>, node: &Node) -> Option<Answer> {
    let fields = context.reader.open(node, &ANSWER_SHAPE)?;
    let status = match fields.get("status") {
        None => Vec::new(),
        Some(node) => {
            let nodes = match &node.kind {
                Kind::List(items) => items.as_slice(),
                Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) => {
                    std::slice::from_ref(node)
                }
            };
            nodes
                .iter()
                .filter_map(|node| context.reader.whole(node, 100..=599))
                .filter_map(|code| u16::try_from(code).ok())
                .collect()
        }
    };
    let body = match fields.get("match") {
        Some(node) => Some(pattern(context, node)?),
        None => None,
    };
    let cel = match fields.get("cel") {
        Some(node) => Some(context.cel(node, &[cel::ANSWER, cel::STATUS])?),
        None => None,
    };
    Some(Answer { status, body, cel, headers: answer_headers(context, fields.get("headers")) })
}

/// What header fields of an answer have to look like.
pub(crate) fn answer_headers(
    context: &mut Context<'_, '_>,
    node: Option<&Node>,
) -> BTreeMap<String, pattern::Pattern> {
    headers(context, node, |context, node| match &node.kind {
        Kind::Map(_) => pattern(context, node),
        // A field's value is a text; a number would never be equal to it.
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => {
            context.reader.text(node).and_then(|_| pattern(context, node))
        }
    })
}

/// Header fields by their names in lower case.
fn headers<'r, 's, T>(
    context: &mut Context<'r, 's>,
    node: Option<&Node>,
    read: impl Fn(&mut Context<'r, 's>, &Node) -> Option<T>,
) -> BTreeMap<String, T> {
    let Some(node) = node else { return BTreeMap::new() };
    let mut headers = BTreeMap::new();
    for entry in context.reader.map(node) {
        let name = entry.key.to_ascii_lowercase();
        if !is_header_name(&name) {
            let message = format!("`{}` names no header field", entry.key);
            context.reader.wrong(&entry.key_span, message, "write for example Accept or If-Match");
        } else if let Some(value) = read(context, &entry.value)
            && headers.insert(name, value).is_some()
        {
            let message = format!("the header field {} stands twice", entry.key);
            context.reader.wrong(&entry.key_span, message, "case does not matter; write it once");
        }
    }
    headers
}

/// What HTTP calls a token.
fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

/// A pattern that may hold names.
pub(crate) fn pattern(context: &mut Context<'_, '_>, node: &Node) -> Option<pattern::Pattern> {
    let pattern = pattern::read(context.reader, node, None);
    context.check_broken_in(node, true);
    match &pattern {
        Some(pattern) => {
            context.check_names(&node.span, &pattern.names());
            context.check_plain_in(node);
        }
        None => context.check_names(&node.span, &template::names_in(&node.to_value())),
    }
    pattern
}
