//! What mappings in our files look like: one description, from which reading and JSON schema both follow.
//!
//! The reader refuses every key that a shape does not name and asks for every key that it requires, so
//! that schema and reader cannot drift apart.

use serde_json::{Map, Value, json};

/// A mapping with known keys.
#[derive(Debug)]
pub struct Shape {
    /// Its name in messages and in the schema.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// Its keys.
    pub fields: &'static [Field],
    /// Groups of keys of which exactly one must stand.
    pub exactly_one: &'static [&'static [&'static str]],
    /// Groups of keys of which at most one may stand.
    pub at_most_one: &'static [&'static [&'static str]],
}

/// A key of a mapping.
#[derive(Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// Whether it must stand.
    pub required: bool,
    /// What its value is.
    pub value: FieldType,
    /// What it means, in one sentence.
    pub about: &'static str,
    /// What it is taken to be where it is left out, as it would be written.
    pub usual: Option<&'static str>,
    /// A value as people write it, for editors and documents.
    pub example: Option<&'static str>,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub enum FieldType {
    /// Any text.
    Text,
    /// One of several words.
    Word(&'static [&'static str]),
    /// One of several words, or a text of one's own where other keys say what it means.
    WordOrText(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole {
        /// The least.
        min: u32,
        /// The greatest.
        max: u32,
    },
    /// A duration expression.
    Duration,
    /// An instant expression; a duration counts from the step's begin.
    Instant,
    /// A duration or one of several words.
    DurationOr(&'static [&'static str]),
    /// Any value.
    Any,
    /// An API object or a part of one.
    Object,
    /// What a value is to look like.
    Pattern,
    /// A number, `all`, `any`, `none`, or comparisons of a number.
    Count,
    /// Keys of the writer's choice.
    Mapping(&'static FieldType),
    /// A list.
    List(&'static FieldType),
    /// One or a list.
    OneOrList(&'static FieldType),
    /// A mapping of known keys.
    Shape(&'static Shape),
    /// A list of steps.
    Steps,
    /// A text, or a pattern that a text is to match.
    TextOrPattern,
    /// A whole number from 0, or names of the writer's choice with a text each.
    CountOrNames {
        /// The greatest number.
        max: u32,
    },
}

impl Field {
    /// A key that must stand.
    pub const fn required(key: &'static str, value: FieldType, about: &'static str) -> Field {
        Field { key, required: true, value, about, usual: None, example: None }
    }

    /// A key that may be left out.
    pub const fn optional(key: &'static str, value: FieldType, about: &'static str) -> Field {
        Field { key, required: false, value, about, usual: None, example: None }
    }

    /// With what it is taken to be where it is left out.
    #[must_use]
    pub const fn usually(mut self, usual: &'static str) -> Field {
        self.usual = Some(usual);
        self
    }

    /// With a value as people write it.
    #[must_use]
    pub const fn such_as(mut self, example: &'static str) -> Field {
        self.example = Some(example);
        self
    }

    /// Its JSON schema: what its type says, and what a person would like to read while typing.
    fn schema(&self) -> Value {
        let mut schema = self.value.schema();
        let mut about = self.about.to_owned();
        if let Some(usual) = self.usual {
            about.push_str(&format!(" Left out: `{usual}`."));
        }
        schema["description"] = json!(about);
        let shown: Vec<Value> = self.example.iter().chain(&self.usual).map(|text| written(text)).collect();
        if !shown.is_empty() {
            schema["examples"] = json!(shown);
        }
        schema
    }
}

impl Shape {
    /// A mapping without groups.
    pub const fn new(name: &'static str, about: &'static str, fields: &'static [Field]) -> Shape {
        Shape { name, about, fields, exactly_one: &[], at_most_one: &[] }
    }

    /// With groups of which exactly one key must stand.
    #[must_use]
    pub const fn exactly_one(mut self, groups: &'static [&'static [&'static str]]) -> Shape {
        self.exactly_one = groups;
        self
    }

    /// With groups of which at most one key may stand.
    #[must_use]
    pub const fn at_most_one(mut self, groups: &'static [&'static [&'static str]]) -> Shape {
        self.at_most_one = groups;
        self
    }

    /// Its keys, in order.
    pub fn keys(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.key).collect()
    }

    /// Its JSON schema. Each rule stands where an editor can name the key that breaks it: groups are told by
    /// the keys that are missing or too many, not by a list of whole mappings of which none fits.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> =
            self.fields.iter().map(|field| (field.key.to_owned(), field.schema())).collect();
        let required: Vec<&str> =
            self.fields.iter().filter(|field| field.required).map(|field| field.key).collect();
        let mut schema = json!({
            "type": "object",
            "description": self.about,
            "properties": properties,
            "additionalProperties": false,
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        let mut rules: Vec<Value> = Vec::new();
        for group in self.exactly_one {
            rules.push(one_of(group, &format!("{} needs one of {}", self.name, group.join(", "))));
            rules.extend(no_two(group));
        }
        for group in self.at_most_one {
            rules.extend(no_two(group));
        }
        if !rules.is_empty() {
            schema["allOf"] = json!(rules);
        }
        schema
    }
}

/// A rule that asks for one of some keys.
fn one_of(group: &[&str], message: &str) -> Value {
    let any: Vec<Value> = group.iter().map(|key| json!({"required": [key]})).collect();
    json!({"if": {"not": {"anyOf": any}}, "then": {"required": [group[0]], "errorMessage": message}})
}

/// Rules that refuse every two of some keys side by side.
fn no_two(group: &[&str]) -> Vec<Value> {
    let mut rules = Vec::new();
    for (index, first) in group.iter().enumerate() {
        let others = &group[index + 1..];
        if !others.is_empty() {
            let message = format!("`{first}` stands here already: no {} beside it", others.join(", no "));
            rules.push(refused_beside(first, others, &message));
        }
    }
    rules
}

/// A rule that refuses `others` where `first` stands.
pub(crate) fn refused_beside(first: &str, others: &[&str], message: &str) -> Value {
    let refused: Map<String, Value> = others.iter().map(|key| ((*key).to_owned(), json!(false))).collect();
    json!({"if": {"required": [first]}, "then": {"properties": refused, "errorMessage": message}})
}

/// A value as it stands in a file, for editors to offer: numbers and flags as such, all else as text.
fn written(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        Ok(_) | Err(_) => json!(text),
    }
}

/// A text that holds a `${…}`, which may stand for a value of any type. The message is an editor's.
fn or_template(mut schema: Value, message: &str) -> Value {
    schema["errorMessage"] = json!(message);
    json!({"anyOf": [
        schema,
        {"type": "string", "pattern": "\\$\\{[A-Za-z0-9_-]+\\}", "errorMessage": message, "doNotSuggest": true},
    ]})
}

/// The message about a text that is not one of some words.
fn one_of_words(words: &[&str]) -> String {
    format!("one of {} belongs here", words.join(", "))
}

const A_DURATION: &str = "a duration with its unit belongs here, such as 5s, 500ms or checkPeriod + slack";
const AN_INSTANT: &str = "an instant belongs here, such as outage + 5s, or a duration with its unit";

impl FieldType {
    /// Its JSON schema.
    pub fn schema(&self) -> Value {
        match self {
            FieldType::Text => json!({"type": "string"}),
            FieldType::Word(words) => or_template(json!({"enum": words}), &one_of_words(words)),
            FieldType::WordOrText(words) => {
                json!({"anyOf": [{"enum": words}, {"type": "string", "doNotSuggest": true}]})
            }
            FieldType::Flag => {
                or_template(json!({"type": "boolean"}), "true or false belongs here, without quotes")
            }
            FieldType::Whole { min, max } => or_template(
                json!({"type": "integer", "minimum": min, "maximum": max}),
                &format!("a whole number from {min} to {max} belongs here"),
            ),
            FieldType::Duration => json!({"type": "string", "minLength": 1, "errorMessage": A_DURATION}),
            FieldType::Instant => json!({"type": "string", "minLength": 1, "errorMessage": AN_INSTANT}),
            FieldType::DurationOr(words) => {
                let message = format!("{A_DURATION}; or {}", words.join(", "));
                json!({"anyOf": [
                    {"enum": words, "errorMessage": message},
                    {"type": "string", "minLength": 1, "errorMessage": message},
                ]})
            }
            FieldType::Any => json!({}),
            FieldType::Object => or_template(json!({"type": "object"}), "an object belongs here"),
            FieldType::Pattern => json!({"$ref": "#/definitions/pattern"}),
            FieldType::Count => count_schema(true),
            FieldType::Mapping(value) => or_template(
                json!({"type": "object", "additionalProperties": value.schema()}),
                "keys and their values belong here",
            ),
            FieldType::List(item) => {
                or_template(json!({"type": "array", "items": item.schema()}), "a list belongs here")
            }
            FieldType::OneOrList(item) => {
                json!({"anyOf": [item.schema(), {"type": "array", "minItems": 1, "items": item.schema()}]})
            }
            FieldType::Shape(shape) => shape.schema(),
            FieldType::Steps => json!({"type": "array", "items": {"$ref": "#/definitions/step"}}),
            FieldType::CountOrNames { max } => json!({"anyOf": [
                {"type": "integer", "minimum": 0, "maximum": max},
                {"type": "object", "additionalProperties": {"type": "string"}},
            ]}),
            FieldType::TextOrPattern => {
                json!({"anyOf": [{"type": "string"}, {"$ref": "#/definitions/pattern"}]})
            }
        }
    }

    /// What it is, in words for documents.
    pub fn words(&self) -> String {
        let choice =
            |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        match self {
            FieldType::Text => "text".to_owned(),
            FieldType::Word(words) => choice(words),
            FieldType::WordOrText(words) => format!("{}, or one of your own", choice(words)),
            FieldType::Flag => "`true` or `false`".to_owned(),
            FieldType::Whole { min, max } => format!("whole number, {min} to {max}"),
            FieldType::Duration => "duration".to_owned(),
            FieldType::Instant => "instant, or a duration from the step's begin".to_owned(),
            FieldType::DurationOr(words) => format!("duration, {}", choice(words)),
            FieldType::Any => "any value".to_owned(),
            FieldType::Object => "API object".to_owned(),
            FieldType::Pattern => "pattern".to_owned(),
            FieldType::Count => "number, comparisons such as `{$ge: 2}`, or `all`, `any`, `none`".to_owned(),
            FieldType::Mapping(value) => format!("mapping of names to: {}", value.words()),
            FieldType::List(item) => format!("list of: {}", item.words()),
            FieldType::OneOrList(item) => format!("{}, or a list of them", item.words()),
            FieldType::Shape(shape) => format!("mapping: {}", choice(&shape.keys())),
            FieldType::Steps => "list of steps".to_owned(),
            FieldType::TextOrPattern => "text or pattern".to_owned(),
            FieldType::CountOrNames { max } => {
                format!("whole number, 0 to {max}, or a mapping of names to: text")
            }
        }
    }

    /// The mapping of known keys that it is or holds, if any.
    pub fn shape(&self) -> Option<&'static Shape> {
        match self {
            FieldType::Shape(shape) => Some(shape),
            FieldType::Mapping(inner) | FieldType::List(inner) | FieldType::OneOrList(inner) => inner.shape(),
            FieldType::Text
            | FieldType::Word(_)
            | FieldType::WordOrText(_)
            | FieldType::Flag
            | FieldType::Whole { .. }
            | FieldType::Duration
            | FieldType::Instant
            | FieldType::DurationOr(_)
            | FieldType::Any
            | FieldType::Object
            | FieldType::Pattern
            | FieldType::Count
            | FieldType::Steps
            | FieldType::CountOrNames { .. }
            | FieldType::TextOrPattern => None,
        }
    }
}

/// The schema of a count: a number or comparisons, and where they may stand the words.
pub(crate) fn count_schema(words: bool) -> Value {
    let message = match words {
        true => "a number, comparisons such as {$ge: 2}, or one of all, any, none belongs here",
        false => "a number or comparisons such as {$ge: 2} belong here",
    };
    let number = or_template(json!({"type": "integer", "minimum": 0}), message);
    let compared: Map<String, Value> = ["$gt", "$ge", "$lt", "$le", "$eq", "$ne"]
        .into_iter()
        .map(|operator| (operator.to_owned(), number.clone()))
        .collect();
    let mut ways = vec![
        json!({"type": "object", "minProperties": 1, "additionalProperties": false, "properties": compared}),
        number,
    ];
    if words {
        ways.push(json!({"enum": ["all", "any", "none"], "errorMessage": message}));
    }
    json!({"anyOf": ways})
}
