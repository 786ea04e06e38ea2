//! Compiling of conditions, and the check of every name in them: the evaluator knows neither which
//! variables there will be nor that a function is misspelt before it comes to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use cel::Env;
use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo};

use super::Cel;
use super::trail::trails;
use crate::borrowed::meant_variable;
use crate::mistake::nearest;
use crate::quantity::Quantity;
use crate::template;

/// Conditions longer than this are refused unread.
const MAX_BYTES: usize = 4096;
/// Deeper nesting than this is refused: the parser goes down by recursion.
const MAX_DEPTH: usize = 50;

/// What is wrong with a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CelMistake {
    /// Where, in bytes of the expression.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub remedy: String,
}

/// Names of types, which are values as well.
const TYPES: [&str; 11] =
    ["bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string", "timestamp", "uint"];

/// The functions that there are: CEL's standard ones, and Kubernetes' ones for quantities.
pub(super) const FUNCTIONS: [&str; 45] = [
    // Standard.
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "bytes",
    "type",
    "dyn",
    "duration",
    "timestamp",
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
    // Macros; those that are left are wrongly called.
    "has",
    "all",
    "exists",
    "exists_one",
    "map",
    "filter",
    // Optional values.
    "orValue",
    "or",
    "hasValue",
    "value",
    // Quantities.
    "quantity",
    "isQuantity",
    "isInteger",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "asInteger",
    "sign",
    "add",
    "sub",
];

/// Macros that the parser turns into something else where they are rightly called.
const MACROS: [(&str, &str); 6] = [
    ("has", "has(object.status.podIP)"),
    ("all", "object.spec.containers.all(c, c.name != '')"),
    ("exists", "object.spec.containers.exists(c, c.name == 'main')"),
    ("exists_one", "object.spec.containers.exists_one(c, c.name == 'main')"),
    ("map", "object.spec.containers.map(c, c.name)"),
    ("filter", "object.spec.containers.filter(c, c.name == 'main')"),
];

/// Operators and functions that never give a boolean.
const GIVE_VALUES: [&str; 30] = [
    "_+_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "size",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "type",
    "duration",
    "timestamp",
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
    "quantity",
    "compareTo",
    "asInteger",
    "add",
    "sub",
];

/// An expression, for remedies.
const EXAMPLE: &str = "write for example object.status.readyReplicas <= object.spec.replicas";

pub(super) fn parse(env: &Env, text: &str, roots: &[&str], names: &[&str]) -> Result<Cel, CelMistake> {
    let wrong = |span: Range<usize>, message: String, remedy: String| CelMistake { span, message, remedy };
    if let Some(name) = template::names(text).first() {
        let written = format!("${{{name}}}");
        let at = text.find(&written).unwrap_or(0);
        return Err(wrong(
            at..at + written.len(),
            format!("a value stands in CEL by its name alone, not as `{written}`"),
            format!("write {name}"),
        ));
    }
    if text.len() > MAX_BYTES || nesting(text) > MAX_DEPTH {
        return Err(wrong(
            0..text.len().min(MAX_DEPTH),
            format!(
                "a condition of more than {MAX_BYTES} bytes, or of brackets in more than {MAX_DEPTH} others"
            ),
            "make several expectations of it".to_owned(),
        ));
    }
    let program = env.compile(text).map_err(|errors| {
        let first = errors.errors.first();
        let told = first.map_or("", |error| error.msg.as_str());
        let told = told.split(" expecting ").next().unwrap_or_default();
        let told = match told.trim_start_matches("Syntax error: ") {
            ended if ended.contains("'<EOF>'") => "it ends too early",
            other => other,
        };
        let line = first.map_or(1, |error| error.pos.0);
        let column = first.map_or(1, |error| error.pos.1);
        let at = offset(text, line, column);
        let words = [" and ", " or ", " not "].iter().any(|word| text.contains(word));
        let remedy = if words {
            "CEL writes && for and, || for or, ! for not"
        } else if single_equals(text) {
            "CEL compares by =="
        } else {
            EXAMPLE
        };
        wrong(at..text.len(), format!("no CEL expression: {told}"), remedy.to_owned())
    })?;
    let mut walk = Walk {
        info: program.source_info(),
        text,
        roots,
        names,
        scope: Vec::new(),
        used: BTreeSet::new(),
        paths: BTreeSet::new(),
        reached: BTreeMap::new(),
    };
    walk.expr(program.expression())?;
    if let Some(what) = no_boolean(&program.expression().expr) {
        return Err(wrong(
            0..text.len(),
            format!("it gives {what}, not true or false"),
            "compare it with something by ==, !=, <, in, …; what is a boolean already with == true"
                .to_owned(),
        ));
    }
    if walk.reached.is_empty() {
        return Err(wrong(
            0..text.len(),
            format!("it says nothing about `{}`", roots.join("` or `")),
            EXAMPLE.to_owned(),
        ));
    }
    let Walk { used, paths, reached, .. } = walk;
    let reached = reached
        .into_iter()
        .map(|(root, fields)| (root, fields.map(|fields| fields.into_iter().collect())))
        .collect();
    Ok(Cel {
        source: text.to_owned(),
        names: used.into_iter().collect(),
        paths: maximal(paths),
        trails: Arc::new(trails(program.expression(), roots)),
        reached,
        program: Arc::new(program),
    })
}

/// How many brackets stand in one another at most, and signs that are put before one operand.
fn nesting(text: &str) -> usize {
    let (mut depth, mut signs, mut most) = (0_usize, 0_usize, 0_usize);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        signs = match c {
            '!' | '-' => signs + 1,
            ' ' => signs,
            _ => 0,
        };
        most = most.max(depth + signs);
    }
    most
}

/// Whether there is an `=` that is no comparison.
fn single_equals(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'='
            && bytes.get(at + 1) != Some(&b'=')
            && !(at > 0 && matches!(bytes[at - 1], b'=' | b'!' | b'<' | b'>'))
    })
}

/// Paths that are not the beginning of another one.
fn maximal(paths: BTreeSet<Vec<String>>) -> Vec<Vec<String>> {
    let all: Vec<Vec<String>> = paths.into_iter().collect();
    let within =
        |path: &Vec<String>, other: &Vec<String>| other.len() > path.len() && other.starts_with(path);
    all.iter().filter(|path| !all.iter().any(|other| within(path, other))).cloned().collect()
}

/// The byte at a line and column, both from 1.
fn offset(text: &str, line: isize, column: isize) -> usize {
    let line = usize::try_from(line - 1).unwrap_or(0);
    let column = usize::try_from(column - 1).unwrap_or(0);
    let begin: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = text.get(begin..).unwrap_or_default();
    let within = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
    (begin + within).min(text.len())
}

/// What an expression gives that is no condition: it is no boolean, or nobody can tell whether it is.
fn no_boolean(expr: &Expr) -> Option<&'static str> {
    match expr {
        Expr::Literal(LiteralValue::Boolean(_)) => None,
        Expr::Literal(LiteralValue::String(_)) => Some("a text"),
        Expr::Literal(_) => Some("a number"),
        Expr::List(_) => Some("a list"),
        Expr::Map(_) => Some("a mapping"),
        Expr::Ident(_) => Some("a value"),
        Expr::Select(select) => (!select.test).then_some("a value"),
        Expr::Call(call) => match call.func_name.as_str() {
            "_?_:_" => call.args.iter().skip(1).find_map(|branch| no_boolean(&branch.expr)),
            "_&&_" | "_||_" | "!_" => call.args.iter().find_map(|side| no_side(&side.expr)),
            "_[_]" => Some("a value"),
            name => GIVE_VALUES.contains(&name).then_some("a value"),
        },
        // `map` and `filter` gather a list.
        Expr::Comprehension(of) => matches!(of.accu_init.expr, Expr::List(_)).then_some("a list"),
        Expr::Unspecified | Expr::Struct(_) => None,
    }
}

/// The same for a side of `&&`, `||` and `!`, where a value that may be a boolean is meant as one.
fn no_side(expr: &Expr) -> Option<&'static str> {
    match expr {
        Expr::Ident(_) | Expr::Select(_) => None,
        Expr::Call(call) if call.func_name == "_[_]" => None,
        other => no_boolean(other),
    }
}

struct Walk<'a> {
    info: &'a SourceInfo,
    text: &'a str,
    roots: &'a [&'a str],
    names: &'a [&'a str],
    /// Variables of the comprehensions around.
    scope: Vec<String>,
    used: BTreeSet<String>,
    paths: BTreeSet<Vec<String>>,
    reached: BTreeMap<String, Option<BTreeSet<String>>>,
}

impl Walk<'_> {
    fn expr(&mut self, expr: &IdedExpr) -> Result<(), CelMistake> {
        match &expr.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => {
                self.ident(name, expr.id)?;
                // Not by a field: the whole of it.
                if let Some(fields) = self.reached.get_mut(name) {
                    *fields = None;
                }
                Ok(())
            }
            Expr::Select(select) => {
                if let Some(path) = self.path_of(expr) {
                    self.ident(&path[0], expr.id)?;
                    if let Some(Some(fields)) = self.reached.get_mut(&path[0]) {
                        fields.insert(path[1].clone());
                    }
                    if self.reached.contains_key(&path[0]) {
                        self.paths.insert(path);
                    }
                    return Ok(());
                }
                self.expr(&select.operand)
            }
            Expr::Call(call) => {
                self.function(&call.func_name, expr.id)?;
                self.literal(call)?;
                if let Some(target) = &call.target
                    && !matches!(&target.expr, Expr::Ident(name) if name == "optional")
                {
                    self.expr(target)?;
                }
                call.args.iter().try_for_each(|arg| self.expr(arg))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.expr(element)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(of) => of.entries.iter().try_for_each(|entry| self.entry(&entry.expr)),
            Expr::Comprehension(of) => {
                self.expr(&of.iter_range)?;
                self.expr(&of.accu_init)?;
                let depth = self.scope.len();
                self.scope.push(of.accu_var.clone());
                self.scope.push(of.iter_var.clone());
                self.scope.extend(of.iter_var2.clone());
                self.expr(&of.loop_cond)?;
                self.expr(&of.loop_step)?;
                self.expr(&of.result)?;
                self.scope.truncate(depth);
                Ok(())
            }
        }
    }

    fn entry(&mut self, entry: &EntryExpr) -> Result<(), CelMistake> {
        match entry {
            EntryExpr::StructField(field) => self.expr(&field.value),
            EntryExpr::MapEntry(entry) => {
                self.expr(&entry.key)?;
                self.expr(&entry.value)
            }
        }
    }

    /// `a.b.c` as its parts, if it begins with a name that no comprehension gives.
    fn path_of(&self, expr: &IdedExpr) -> Option<Vec<String>> {
        let mut path = Vec::new();
        let mut at = &expr.expr;
        loop {
            match at {
                Expr::Select(select) => {
                    path.push(select.field.clone());
                    at = &select.operand.expr;
                }
                Expr::Ident(name) if !self.scope.contains(name) => {
                    path.push(name.clone());
                    path.reverse();
                    return Some(path);
                }
                Expr::Ident(_)
                | Expr::Unspecified
                | Expr::Call(_)
                | Expr::Comprehension(_)
                | Expr::List(_)
                | Expr::Literal(_)
                | Expr::Map(_)
                | Expr::Struct(_) => return None,
            }
        }
    }

    fn ident(&mut self, name: &str, id: u64) -> Result<(), CelMistake> {
        if self.scope.iter().any(|known| known == name) || name.starts_with(['@', '_']) {
            return Ok(());
        }
        if self.roots.contains(&name) {
            self.reached.entry(name.to_owned()).or_insert_with(|| Some(BTreeSet::new()));
            return Ok(());
        }
        if self.names.contains(&name) {
            self.used.insert(name.to_owned());
            return Ok(());
        }
        if TYPES.contains(&name) {
            return Ok(());
        }
        let known: Vec<&str> = self.roots.iter().chain(self.names).copied().collect();
        let near = nearest(name, known.iter().copied());
        let remedy = match meant_variable(name, self.roots).or(near) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}; a text needs quotes: '{name}'", known.join(", ")),
        };
        Err(self.wrong(name, id, format!("`{name}` is no name here"), remedy))
    }

    fn function(&self, name: &str, id: u64) -> Result<(), CelMistake> {
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(());
        }
        if let Some((_, usage)) = MACROS.iter().find(|(macro_name, _)| *macro_name == name) {
            return Err(self.wrong(
                name,
                id,
                format!("`{name}` is wrongly called"),
                format!("write for example {usage}"),
            ));
        }
        if FUNCTIONS.contains(&name) || name.starts_with("optional.") || name == "of" || name == "none" {
            return Ok(());
        }
        let remedy = match nearest(name, FUNCTIONS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", FUNCTIONS.join(", ")),
        };
        Err(self.wrong(name, id, format!("there is no function `{name}`"), remedy))
    }

    /// Checks what is written out where an expression or a quantity belongs: no value would make it one.
    fn literal(&self, call: &CallExpr) -> Result<(), CelMistake> {
        let Some(IdedExpr { id, expr: Expr::Literal(LiteralValue::String(text)) }) = call.args.last() else {
            return Ok(());
        };
        let text = text.inner();
        match call.func_name.as_str() {
            "matches" => {
                let Err(error) = regex::Regex::new(text) else { return Ok(()) };
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                let remedy = "escape special characters with a backslash: r'a\\.b'";
                Err(self.wrong(text, *id, format!("no regular expression: {why}"), remedy.to_owned()))
            }
            "quantity" if Quantity::parse(text).is_none() => {
                let message = format!("`{text}` is no quantity");
                Err(self.wrong(text, *id, message, "write for example quantity('16Ki')".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// A mistake at a name: where it stands, nearest to what the parser says.
    fn wrong(&self, name: &str, id: u64, message: String, remedy: String) -> CelMistake {
        let hint = self.info.offset_for(id).map_or(0, |(start, _)| start as usize);
        let span = place_of(self.text, name, hint).unwrap_or(0..self.text.len());
        CelMistake { span, message, remedy }
    }
}

/// Where a word stands in a text, as near as can be to a place.
fn place_of(text: &str, word: &str, hint: usize) -> Option<Range<usize>> {
    let part_of_a_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .filter(|(at, _)| {
            !text[..*at].ends_with(part_of_a_word) && !text[at + word.len()..].starts_with(part_of_a_word)
        })
        .min_by_key(|(at, _)| at.abs_diff(hint))
        .map(|(at, _)| at..at + word.len())
}
