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
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub enum FieldType {
    /// Any text.
    Text,
    /// One of several words.
    Word(&'static [&'static str]),
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
    /// A number, `all`, or comparisons of a number.
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
        Field { key, required: true, value, about }
    }

    /// A key that may be left out.
    pub const fn optional(key: &'static str, value: FieldType, about: &'static str) -> Field {
        Field { key, required: false, value, about }
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

    /// Its JSON schema.
    pub fn schema(&self) -> Value {
        let mut properties = Map::new();
        for field in self.fields {
            let mut schema = field.value.schema();
            schema["description"] = json!(field.about);
            properties.insert(field.key.to_owned(), schema);
        }
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
        let mut all: Vec<Value> = Vec::new();
        for group in self.exactly_one {
            all.push(
                json!({"oneOf": group.iter().map(|key| json!({"required": [key]})).collect::<Vec<_>>()}),
            );
        }
        for group in self.at_most_one {
            let mut ways: Vec<Value> = group.iter().map(|key| json!({"required": [key]})).collect();
            ways.push(json!({"not": {"anyOf": ways.clone()}}));
            all.push(json!({"oneOf": ways}));
        }
        if !all.is_empty() {
            schema["allOf"] = json!(all);
        }
        schema
    }
}

/// A text that holds a `${…}`, which may stand for a value of any type.
fn or_template(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "string", "pattern": "\\$\\{[A-Za-z0-9_-]+\\}"}]})
}

impl FieldType {
    /// Its JSON schema.
    pub fn schema(&self) -> Value {
        match self {
            FieldType::Text => json!({"type": "string"}),
            FieldType::Word(words) => or_template(json!({"enum": words})),
            FieldType::Flag => or_template(json!({"type": "boolean"})),
            FieldType::Whole { min, max } => {
                or_template(json!({"type": "integer", "minimum": min, "maximum": max}))
            }
            FieldType::Duration | FieldType::Instant => json!({"type": "string", "minLength": 1}),
            FieldType::DurationOr(words) => {
                json!({"anyOf": [{"enum": words}, {"type": "string", "minLength": 1}]})
            }
            FieldType::Any => json!({}),
            FieldType::Object => or_template(json!({"type": "object"})),
            FieldType::Pattern => json!({"not": {"type": "null"}}),
            FieldType::Count => json!({"anyOf": [
                {"type": "integer", "minimum": 0},
                {"const": "all"},
                {"type": "object", "minProperties": 1, "additionalProperties": false, "properties": {
                    "$gt": {"type": "integer"}, "$ge": {"type": "integer"}, "$lt": {"type": "integer"},
                    "$le": {"type": "integer"}, "$ne": {"type": "integer"},
                }},
                {"type": "string", "pattern": "^\\$\\{[A-Za-z0-9_-]+\\}$"},
            ]}),
            FieldType::Mapping(value) => {
                json!({"type": "object", "additionalProperties": value.schema()})
            }
            FieldType::List(item) => json!({"type": "array", "items": item.schema()}),
            FieldType::OneOrList(item) => {
                json!({"anyOf": [item.schema(), {"type": "array", "minItems": 1, "items": item.schema()}]})
            }
            FieldType::Shape(shape) => shape.schema(),
            FieldType::Steps => json!({"type": "array", "items": {"$ref": "#/definitions/step"}}),
            FieldType::CountOrNames { max } => json!({"anyOf": [
                {"type": "integer", "minimum": 0, "maximum": max},
                {"type": "object", "additionalProperties": {"type": "string"}},
            ]}),
            FieldType::TextOrPattern => json!({"anyOf": [{"type": "string"}, {"type": "object"}]}),
        }
    }
}
