//! The one list of verbs. The types of a step's action, their reading, the names in messages, the JSON
//! schema and the check of the documents all come from it.

use serde_json::{Value, json};

use crate::act::{self, api, control_plane, flash, link, mark, played, power, scheduler, send, time, tool};
use crate::expect::{self, capture, read};
use crate::fragment;
use crate::shape::{Field, FieldType, Shape, refused_beside};
use crate::step::{Context, Step};
use crate::yaml::Node;

/// What sort of thing a verb is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It does something.
    Act,
    /// It is judged.
    Expectation,
    /// It holds other steps.
    Structure,
}

macro_rules! verbs {
    (
        actions { $($variant:ident($type:ty) $word:literal $class:ident $value:expr, $read:expr;)* }
        structures { $($structure:ident $structure_word:literal $structure_value:expr;)* }
    ) => {
        /// What a step does or expects.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Action {
            $(#[doc = concat!("`", $word, "`")] $variant($type),)*
        }

        /// The verb of a step.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Verb {
            $(#[doc = concat!("`", $word, "`")] $variant,)*
            $(#[doc = concat!("`", $structure_word, "`")] $structure,)*
        }

        impl Verb {
            /// Every verb, in the order of the documents.
            pub const ALL: &'static [Verb] = &[$(Verb::$variant,)* $(Verb::$structure,)*];

            /// The word in scenarios.
            pub fn name(self) -> &'static str {
                match self {
                    $(Verb::$variant => $word,)*
                    $(Verb::$structure => $structure_word,)*
                }
            }

            /// What sort of thing it is.
            pub fn class(self) -> Class {
                match self {
                    $(Verb::$variant => Class::$class,)*
                    $(Verb::$structure => Class::Structure,)*
                }
            }

            /// What stands after the word.
            pub fn value(self) -> FieldType {
                match self {
                    $(Verb::$variant => $value,)*
                    $(Verb::$structure => $structure_value,)*
                }
            }

            /// Reads what stands after the word; nothing for structures, which hold steps.
            pub(crate) fn read(self, context: &mut Context<'_, '_>, node: &Node) -> Option<Action> {
                match self {
                    $(Verb::$variant => $read(context, node).map(Action::$variant),)*
                    $(Verb::$structure => None,)*
                }
            }
        }

        impl Action {
            /// Its verb.
            pub fn verb(&self) -> Verb {
                match self {
                    $(Action::$variant(_) => Verb::$variant,)*
                }
            }
        }
    };
}

verbs! {
    actions {
        Apply(act::Apply) "apply" Act FieldType::Shape(&api::APPLY), api::apply;
        Create(act::Create) "create" Act FieldType::Shape(&api::CREATE), api::create;
        Replace(act::Replace) "replace" Act FieldType::Shape(&api::REPLACE), api::replace;
        Patch(act::Patch) "patch" Act FieldType::Shape(&api::PATCH), api::patch;
        Delete(act::Delete) "delete" Act FieldType::Shape(&api::DELETE), api::delete;
        Scale(act::Scale) "scale" Act FieldType::Shape(&api::SCALE), api::scale;
        Cordon(act::Cordon) "cordon" Act FieldType::Shape(&api::CORDON), api::cordon;
        Uncordon(act::Cordon) "uncordon" Act FieldType::Shape(&api::UNCORDON), api::uncordon;
        Bind(act::Bind) "bind" Act FieldType::Shape(&api::BIND), api::bind;
        Request(act::RequestAct) "request" Act FieldType::Shape(&api::REQUEST), api::request;
        Power(act::Power) "power" Act FieldType::Shape(&power::POWER), power::power;
        Link(act::Link) "link" Act FieldType::Shape(&link::LINK), link::link;
        ControlPlane(act::ControlPlaneAct) "controlPlane" Act FieldType::Shape(&control_plane::CONTROL_PLANE), control_plane::control_plane;
        Scheduler(act::Scheduler) "scheduler" Act FieldType::Shape(&scheduler::SCHEDULER), scheduler::scheduler;
        Flash(act::Flash) "flash" Act FieldType::Shape(&flash::FLASH), flash::flash;
        Send(act::Send) "send" Act FieldType::Shape(&send::SEND), send::send;
        Node(act::PlayedNode) "node" Act FieldType::Shape(&played::NODE), played::node;
        Mark(act::Mark) "mark" Act FieldType::Shape(&mark::MARK), mark::mark;
        Kubectl(act::ToolRun) "kubectl" Act FieldType::Shape(&tool::KUBECTL), tool::kubectl;
        Etcdctl(act::ToolRun) "etcdctl" Act FieldType::Shape(&tool::ETCDCTL), tool::etcdctl;
        Wait(act::Wait) "wait" Act FieldType::Instant, time::wait;
        Advance(act::Advance) "advance" Act FieldType::Duration, time::advance;
        Parallel(Vec<Step>) "parallel" Act FieldType::Steps, crate::step::parallel;
        Expect(expect::Expect) "expect" Expectation FieldType::Shape(&read::EXPECT), read::expect;
        Never(expect::Never) "never" Expectation FieldType::Shape(&read::NEVER), read::never;
        Always(expect::Always) "always" Expectation FieldType::Shape(&read::ALWAYS), read::always;
        Unchanged(expect::Unchanged) "unchanged" Expectation FieldType::Shape(&read::UNCHANGED), read::unchanged;
        Order(expect::Order) "order" Expectation FieldType::List(&FieldType::Text), read::order;
        Capture(expect::Capture) "capture" Expectation FieldType::Shape(&capture::CAPTURE), capture::capture;
    }
    structures {
        Repeat "repeat" FieldType::Shape(&REPEAT);
        ForEach "forEach" FieldType::Shape(&FOR_EACH);
        Include "include" FieldType::Shape(&fragment::INCLUDE);
    }
}

pub(crate) static REPEAT: Shape = Shape::new(
    "repeat",
    "Repeats steps; `${round}` is 1, 2, ….",
    &[
        Field::required("times", FieldType::Whole { min: 1, max: 1000 }, "How often."),
        Field::required("steps", FieldType::Steps, "The steps."),
    ],
);

pub(crate) static FOR_EACH: Shape = Shape::new(
    "forEach",
    "Takes steps for each of several values.",
    &[
        Field::required("name", FieldType::Text, "The value's name, for `${NAME}`."),
        Field::required("in", FieldType::List(&FieldType::Any), "The values."),
        Field::required("steps", FieldType::Steps, "The steps."),
    ],
);

impl Verb {
    /// The verb of that word.
    pub fn named(word: &str) -> Option<Verb> {
        Verb::ALL.iter().copied().find(|verb| verb.name() == word)
    }
}

/// The JSON schema of a step: exactly one verb, and `as` if one likes. All verbs are keys of one mapping,
/// so that an editor offers them and tells what is wrong inside the one that stands there.
pub(crate) fn step_schema() -> Value {
    let words: Vec<&str> = Verb::ALL.iter().map(|verb| verb.name()).collect();
    let mut properties = serde_json::Map::new();
    let mut rules = vec![json!({
        "if": {"propertyNames": {"const": "as"}},
        "then": {"required": ["expect"], "errorMessage": format!("a step needs a verb: {}", words.join(", "))},
    })];
    for (index, verb) in Verb::ALL.iter().enumerate() {
        let mut schema = verb.value().schema();
        schema["description"] = json!(verb.about());
        schema["markdownDescription"] =
            json!(format!("{}\n\n```yaml\n- {}\n```", verb.about(), verb.example()));
        schema["title"] = json!(verb.name());
        properties.insert(verb.name().to_owned(), schema);
        let later = &words[index + 1..];
        if !later.is_empty() {
            let message =
                format!("a step has one verb, and `{}` stands here already: make two steps", verb.name());
            rules.push(refused_beside(verb.name(), later, &message));
        }
        if verb.class() == Class::Structure {
            let message = format!("`{}` takes no `as`: name the steps inside", verb.name());
            rules.push(refused_beside(verb.name(), &["as"], &message));
        }
    }
    properties.insert(
        "as".to_owned(),
        json!({
            "type": "string",
            "pattern": "^[a-z][A-Za-z0-9]*$",
            "patternErrorMessage": "letters and digits, beginning with a small letter; a hyphen would be a minus",
            "description": "Names the step's instant, for later steps.",
        }),
    );
    json!({
        "type": "object",
        "description": "A step: one verb, and `as` if one likes.",
        "properties": properties,
        // A row of a table may choose the verb.
        "patternProperties": {"^\\$\\{[A-Za-z0-9_-]+\\}$": {}},
        "additionalProperties": false,
        "allOf": rules,
    })
}
