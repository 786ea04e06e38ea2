//! Conditions in CEL, the language that Kubernetes itself uses, for what a subset match cannot say:
//! `object.status.readyReplicas <= object.spec.replicas`.
//!
//! An expression is compiled once, when its file is read, and every name in it is checked then: the
//! evaluator would only fail over an unknown one when it comes to it. Evaluation is pure; whole numbers of
//! JSON are CEL's `int`, so that they can be calculated with.

mod check;
mod quantity;
mod trail;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, Program};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

pub use check::CelMistake;
pub use trail::{Down, Trail};

/// The variable for the object that is looked at.
pub const OBJECT: &str = "object";
/// The variable for the body of an answer.
pub const ANSWER: &str = "answer";
/// The variable for the status code of an answer.
pub const STATUS: &str = "status";

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    quantity::declare(&mut env);
    Arc::new(env)
});

/// A condition, compiled.
#[derive(Clone)]
pub struct Cel {
    source: String,
    program: Arc<Program>,
    /// Captured values and the like that it refers to.
    names: Vec<String>,
    /// Fields of the object that it refers to, as paths; what a message tells.
    paths: Vec<Vec<String>>,
    /// The ways to all fields that it names; apart, since conditions stand among smaller things.
    trails: Arc<Vec<Trail>>,
    /// The first fields of the roots that it can reach; `None` for a root that it takes as a whole.
    reached: BTreeMap<String, Option<Vec<String>>>,
}

/// What came of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// Something that it speaks of is not there (yet).
    NotYet(String),
    /// It cannot be evaluated over these values, whatever comes: types do not fit.
    Broken(String),
}

impl Cel {
    /// Compiles and checks an expression. `roots` are its own variables (`object`; `answer`, `status`),
    /// `names` those that have values by name.
    ///
    /// # Errors
    /// [`CelMistake`] with the place of the first mistake.
    pub fn parse<'n>(
        text: &str,
        roots: &[&str],
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Cel, CelMistake> {
        check::parse(&ENV, text, roots, &names.into_iter().collect::<Vec<_>>())
    }

    /// As it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names of values that it refers to.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The fields of its roots that it speaks of, as paths: `object`, `status`, `phase`.
    pub fn paths(&self) -> &[Vec<String>] {
        &self.paths
    }

    /// The ways to all fields that it names, through elements of lists and the variables of macros too.
    pub fn trails(&self) -> &[Trail] {
        &self.trails
    }

    /// Whether it holds of these values.
    pub fn holds(&self, roots: &[(&str, &Value)], values: &BTreeMap<String, Value>) -> Truth {
        let mut context = Context::with_env(Arc::clone(&ENV));
        for (name, value) in roots {
            let bound = match (self.reached.get(*name), value) {
                (None, _) => continue,
                (Some(Some(fields)), Value::Object(_)) => {
                    let part = fields.iter().filter_map(|field| Some((field.as_str(), value.get(field)?)));
                    cel::to_value(Part(part.collect()))
                }
                (Some(_), value) => cel::to_value(Whole(value)),
            };
            match bound {
                Ok(bound) => context.add_variable_from_value(*name, bound),
                Err(error) => return Truth::Broken(error.to_string()),
            }
        }
        for name in &self.names {
            let Some(value) = values.get(name) else {
                return Truth::NotYet(format!("`{name}` has no value here"));
            };
            match cel::to_value(Whole(value)) {
                Ok(value) => context.add_variable_from_value(name, value),
                Err(error) => return Truth::Broken(error.to_string()),
            }
        }
        match self.program.execute(&context) {
            Ok(cel::Value::Bool(true)) => Truth::Yes,
            Ok(cel::Value::Bool(false)) => Truth::No,
            Ok(other) => Truth::Broken(format!("it gives {}, not true or false", shown(&other))),
            Err(ExecutionError::NoSuchKey(key)) => Truth::NotYet(format!("there is no `{key}` yet")),
            Err(error @ ExecutionError::IndexOutOfBounds(_)) => Truth::NotYet(error.to_string()),
            Err(error) => Truth::Broken(error.to_string()),
        }
    }

    /// The values in `root` that it speaks of, for messages: `object.spec.replicas is 2`.
    pub fn told(&self, root: &str, value: &Value) -> Vec<String> {
        let paths = self.paths.iter().filter(|path| path.first().is_some_and(|first| first == root));
        paths
            .map(|path| {
                let mut at = Some(value);
                for key in &path[1..] {
                    at = at.and_then(|at| at.get(key));
                }
                match at {
                    Some(value) => format!("{} is {}", path.join("."), abridged(value)),
                    None => format!("{} is not there", path.join(".")),
                }
            })
            .collect()
    }
}

impl fmt::Debug for Cel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cel").field(&self.source).finish()
    }
}

impl PartialEq for Cel {
    fn eq(&self, other: &Cel) -> bool {
        self.source == other.source && self.names == other.names
    }
}

impl fmt::Display for Cel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

fn abridged(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 60 { text.chars().take(59).chain(['…']).collect() } else { text }
}

/// A result that is no boolean, in few words.
fn shown(value: &cel::Value) -> String {
    match value {
        cel::Value::Int(number) => number.to_string(),
        cel::Value::UInt(number) => number.to_string(),
        cel::Value::Float(number) => number.to_string(),
        cel::Value::String(text) => format!("\"{text}\""),
        other => format!("a {:?}", other.type_of()).to_lowercase(),
    }
}

/// JSON for CEL: whole numbers are signed ones.
struct Whole<'a>(&'a Value);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => serializer.serialize_i64(number),
                (None, Some(number)) => serializer.serialize_u64(number),
                (None, None) => serializer.serialize_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Whole(item))?;
                }
                list.end()
            }
            Value::Object(object) => {
                let mut map = serializer.serialize_map(Some(object.len()))?;
                for (key, value) in object {
                    map.serialize_entry(key, &Whole(value))?;
                }
                map.end()
            }
        }
    }
}

/// Some fields of an object.
struct Part<'a>(Vec<(&'a str, &'a Value)>);

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, &Whole(value))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn truth(text: &str, object: &Value) -> Truth {
        let values = [("ip".to_owned(), json!("10.0.0.7")), ("most".to_owned(), json!(3))].into();
        Cel::parse(text, &[OBJECT], ["ip", "most"])
            .unwrap_or_else(|mistake| panic!("{text}: {mistake}"))
            .holds(&[(OBJECT, object)], &values)
    }

    #[test]
    fn conditions_hold_or_not() {
        let object = json!({
            "metadata": {"name": "web", "labels": {"app": "web"}, "creationTimestamp": "2026-01-01T00:00:05Z"},
            "spec": {"replicas": 3, "none": null, "containers": [{"name": "m", "resources": {"requests": {"memory": "16Ki"}}}]},
            "status": {"readyReplicas": 2, "podIP": "10.0.0.7", "free": 20480, "load": 0.5},
        });
        let check = |text: &str, expected: bool| {
            assert_eq!(truth(text, &object), if expected { Truth::Yes } else { Truth::No }, "{text}");
        };
        check("object.status.readyReplicas <= object.spec.replicas", true);
        check("object.status.readyReplicas + 1 == object.spec.replicas", true);
        check("object.status.readyReplicas * 2 > object.spec.replicas", true);
        check("object.spec.replicas == most && object.status.podIP == ip", true);
        check("object.status.load < 0.25", false);
        check("has(object.status.podIP) && !has(object.status.hostIP)", true);
        check("object.spec.containers.all(c, c.name.matches('^[a-z]$'))", true);
        check("object.spec.containers.exists(c, c.name == 'x')", false);
        check("size(object.spec.containers) == 1 && object.metadata.labels['app'] == 'web'", true);
        check("object.metadata.labels == {'app': 'web'}", true);
        check("{'app': 'web'} == object.metadata.labels", true);
        check("object.spec.none == null", true);
        check("'status' in object", true);
        check("timestamp(object.metadata.creationTimestamp) < timestamp('2026-01-01T00:00:06Z')", true);
        check(
            "timestamp(object.metadata.creationTimestamp) + duration('1s') == timestamp('2026-01-01T00:00:06Z')",
            true,
        );
        check("object.?status.?hostIP.orValue('none') == 'none'", true);
    }

    #[test]
    fn quantities_are_compared_by_value() {
        let object = json!({"a": "16Ki", "b": 16384, "c": "1500m", "free": 20480});
        let check = |text: &str, expected: Truth| assert_eq!(truth(text, &object), expected, "{text}");
        check("quantity(object.a) == quantity(object.b)", Truth::Yes);
        check("quantity(object.a) < quantity(object.free)", Truth::Yes);
        check("quantity(object.a) >= quantity('1Mi')", Truth::No);
        check("quantity(object.a) != quantity('16k')", Truth::Yes);
        check("quantity(object.a).isLessThan(quantity(object.free))", Truth::Yes);
        check("quantity(object.free).isGreaterThan(quantity(object.a))", Truth::Yes);
        check("quantity(object.a).compareTo(quantity(object.free)) == -1", Truth::Yes);
        check("quantity(object.a).add(quantity('4Ki')) == quantity(object.free)", Truth::Yes);
        check("quantity(object.a) + quantity('4Ki') == quantity(object.free)", Truth::Yes);
        check("quantity(object.free).sub(quantity('4Ki')).asInteger() == 16384", Truth::Yes);
        check("quantity(object.free) - quantity('4Ki') == quantity('16Ki')", Truth::Yes);
        check("quantity(object.c).isInteger()", Truth::No);
        check("quantity(object.a).sign() == 1 && quantity('-1').sign() == -1", Truth::Yes);
        check("isQuantity(object.a) && !isQuantity('sixteen')", Truth::Yes);
        let wrong = json!({"a": "sixteen"});
        assert!(matches!(truth("quantity(object.a) > quantity('16Ki')", &wrong), Truth::Broken(_)));
        assert!(matches!(truth("quantity(object.c).asInteger() == 1", &object), Truth::Broken(_)));
        assert!(matches!(truth("quantity(object.c) < 2", &object), Truth::Broken(_)));
    }

    #[test]
    fn what_is_not_there_is_not_yet_and_what_does_not_fit_is_told() {
        let object = json!({"spec": {"replicas": 3, "items": [], "odd": null}});
        let check = |text: &str, expected: Truth| assert_eq!(truth(text, &object), expected, "{text}");
        let missing = |key: &str| Truth::NotYet(format!("there is no `{key}` yet"));
        check("object.status.readyReplicas == 3", missing("status"));
        check("object.spec.paused == true", missing("paused"));
        assert!(matches!(truth("object.spec.items[0] == 1", &object), Truth::NotYet(_)));
        check("dyn(object.spec.replicas)", Truth::Broken("it gives 3, not true or false".into()));
        assert!(matches!(truth("object.spec.replicas < 'x'", &object), Truth::Broken(_)));
        assert!(matches!(truth("object.spec.odd.x == 1", &object), Truth::Broken(_)));
    }

    #[test]
    fn messages_tell_the_values_that_it_speaks_of() {
        let cel =
            Cel::parse("object.status.readyReplicas <= object.spec.replicas", &[OBJECT], []).expect("right");
        assert_eq!(
            cel.told(OBJECT, &json!({"spec": {"replicas": 2}})),
            ["object.spec.replicas is 2", "object.status.readyReplicas is not there"]
        );
    }

    #[test]
    fn mistakes_say_where_and_what_would_be_right() {
        let mut gallery = String::new();
        for text in [
            "",
            "object.spec.replicas <=",
            "object.spec.replicas = 3",
            "objekt.spec.replicas == 3",
            "object.spec.nodeName == ipp",
            "object.spec.nodeName == ${ip}",
            "sise(object.spec.containers) == 1",
            "object.spec.containers.exist(c, c.name == 'm')",
            "object.spec.containers.all(c, d.name == 'm')",
            "3 > 2",
            "object.spec.replicas + 1",
            "'web'",
            "[object.spec]",
            "object.status.phase",
            "object.status.phase == 'Running' || 'Pending'",
            "object.spec.paused ? object.spec.replicas == 0 : 5",
            "object.spec.containers.filter(c, c.name == 'm')",
            "self.spec.replicas == 3",
            "object.spec.replicas == 3 and ip == 'x'",
            "object.metadata.name.startWith('x')",
            "status == 3",
            "object.status.phase.matches('(')",
            "matches(object.status.phase, '[z-a]')",
            "quantity(object.spec.free) > quantity('12Kib')",
        ] {
            let mistake = Cel::parse(text, &[OBJECT], ["ip", "most"]).expect_err(text);
            gallery += &format!(
                "{text:48} {:>2}..{:<2} {mistake}; {}\n",
                mistake.span.start, mistake.span.end, mistake.remedy
            );
        }
        insta::assert_snapshot!(gallery);
    }

    proptest! {
        #[test]
        fn any_text_is_a_condition_or_a_mistake(text in ".{0,40}") {
            if let Ok(cel) = Cel::parse(&text, &[OBJECT], ["ip"]) {
                let _ = cel.holds(&[(OBJECT, &json!({}))], &BTreeMap::new());
            }
        }

        #[test]
        fn texts_of_the_right_words_too(words in proptest::collection::vec(
            proptest::sample::select(vec!["object", ".spec", ".x", "[0]", "==", "<", "+", "1", "'a'", "ip", "&&", "!", "(", ")", "size(", "quantity(", ".all(x, ", "has(", "?", ":"]),
            0..10,
        )) {
            if let Ok(cel) = Cel::parse(&words.join(" "), &[OBJECT], ["ip"]) {
                let values = [("ip".to_owned(), json!("x"))].into();
                let _ = cel.holds(&[(OBJECT, &json!({"spec": {"x": [1, "a", null]}}))], &values);
            }
        }

        #[test]
        fn quantities_keep_their_order(a in 0_i64..1_000_000, b in 0_i64..1_000_000) {
            let object = json!({"a": format!("{a}m"), "b": format!("{b}m")});
            let cel = Cel::parse("quantity(object.a) < quantity(object.b)", &[OBJECT], []).expect("right");
            let expected = if a < b { Truth::Yes } else { Truth::No };
            prop_assert_eq!(cel.holds(&[(OBJECT, &object)], &BTreeMap::new()), expected);
        }
    }
}
