//! Which trials to run, as an expression: `tag:power & !name:hang`, `req:NODE-03 | area:scheduling`.
//!
//! A bare word is a part of the trial's name. Pure; errors say where the expression stops making sense.

use rigor_model::catalogue::Catalogue;
use rigor_model::mistake::nearest;

/// What an expression can ask about a trial.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Trial name: `area/scenario` or `area/scenario/case`.
    pub name: &'a str,
    /// The scenario's tags.
    pub tags: &'a [String],
    /// Requirement ids it cites.
    pub requirements: &'a [String],
    /// The scenario's profile.
    pub profile: &'a str,
}

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Everything.
    All,
    /// The name contains this.
    Name(String),
    /// The name begins with this area.
    Area(String),
    /// A tag is this.
    Tag(String),
    /// A cited requirement is this, or begins with it and a hyphen: `NODE` is all of `NODE-…`.
    Requirement(String),
    /// The profile is this.
    Profile(String),
    /// Not so.
    Not(Box<Filter>),
    /// All of them.
    And(Vec<Filter>),
    /// One of them.
    Or(Vec<Filter>),
}

/// Deeper nesting than this is refused: an expression is read, and asked, by recursion.
const MAX_DEPTH: usize = 50;

/// No message shows more of an expression than so many characters.
const MAX_SHOWN: usize = 100;

/// Why an expression cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("filter `{}`, column {column}: {problem}", abridged(.expression))]
pub struct FilterError {
    /// The whole expression.
    pub expression: String,
    /// Where, from 1.
    pub column: usize,
    /// What is wrong and what would be right.
    pub problem: String,
}

fn abridged(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN {
        return text.to_owned();
    }
    text.chars().take(MAX_SHOWN).chain(['…']).collect()
}

impl Filter {
    /// Reads an expression.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { expression, rest: expression, depth: 0 };
        let filter = parser.either()?;
        parser.space();
        if parser.rest.is_empty() { Ok(filter) } else { Err(parser.error("expected `&`, `|` or the end")) }
    }

    /// [`Filter::parse`], and each requirement must be in the catalogue: a filter for one that is not would match nothing.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub fn known(expression: &str, catalogue: &Catalogue) -> Result<Self, FilterError> {
        let filter = Self::parse(expression)?;
        let is_known = |wanted: &str| {
            catalogue.iter().any(|row| {
                row.id.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            })
        };
        let unknown = filter.requirements().into_iter().find(|wanted| !is_known(wanted));
        let Some(unknown) = unknown else { return Ok(filter) };
        let remedy = match nearest(unknown, catalogue.iter().map(|row| row.id.as_str())) {
            Some(near) => format!("did you mean {near}?"),
            None => "ids, or their beginning as in req:NODE, stand in suites/requirements.yaml".to_owned(),
        };
        let before = expression.split(unknown).next().unwrap_or_default();
        Err(FilterError {
            expression: expression.to_owned(),
            column: before.chars().count() + 1,
            problem: format!("no requirement is called {unknown}; {remedy}"),
        })
    }

    /// The requirements that it speaks of, as they are written.
    #[must_use]
    pub fn requirements(&self) -> Vec<&str> {
        match self {
            Self::Requirement(id) => vec![id],
            Self::Not(inner) => inner.requirements(),
            Self::And(all) | Self::Or(all) => all.iter().flat_map(Self::requirements).collect(),
            Self::All | Self::Name(_) | Self::Area(_) | Self::Tag(_) | Self::Profile(_) => Vec::new(),
        }
    }

    /// Whether a trial is asked for.
    #[must_use]
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Name(part) => subject.name.contains(part.as_str()),
            Self::Area(area) => {
                subject.name.strip_prefix(area.as_str()).is_some_and(|rest| rest.starts_with('/'))
            }
            Self::Tag(tag) => subject.tags.contains(tag),
            Self::Requirement(wanted) => subject.requirements.iter().any(|id| {
                id.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            }),
            Self::Profile(profile) => subject.profile == profile,
            Self::Not(inner) => !inner.matches(subject),
            Self::And(all) => all.iter().all(|one| one.matches(subject)),
            Self::Or(all) => all.iter().any(|one| one.matches(subject)),
        }
    }
}

struct Parser<'a> {
    expression: &'a str,
    rest: &'a str,
    /// How many `(` and `!` are around.
    depth: usize,
}

impl Parser<'_> {
    fn error(&self, problem: impl Into<String>) -> FilterError {
        let consumed = self.expression.len() - self.rest.len();
        let column = self.expression[..consumed].chars().count() + 1;
        FilterError { expression: self.expression.to_owned(), column, problem: problem.into() }
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, sign: char) -> bool {
        self.space();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn either(&mut self) -> Result<Filter, FilterError> {
        let first = self.both()?;
        let mut all = vec![first];
        while self.eat('|') {
            all.push(self.both()?);
        }
        Ok(one_of(all, Filter::Or))
    }

    fn both(&mut self) -> Result<Filter, FilterError> {
        let first = self.one()?;
        let mut all = vec![first];
        while self.eat('&') {
            all.push(self.one()?);
        }
        Ok(one_of(all, Filter::And))
    }

    /// Goes a level down, if that is not too deep.
    fn inside(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Filter, FilterError>,
    ) -> Result<Filter, FilterError> {
        if self.depth == MAX_DEPTH {
            return Err(
                self.error(format!("more than {MAX_DEPTH} `(` and `!` in one another; leave some out"))
            );
        }
        self.depth += 1;
        let filter = read(self)?;
        self.depth -= 1;
        Ok(filter)
    }

    fn one(&mut self) -> Result<Filter, FilterError> {
        if self.eat('!') {
            return Ok(Filter::Not(Box::new(self.inside(Self::one)?)));
        }
        if self.eat('(') {
            let inner = self.inside(Self::either)?;
            return if self.eat(')') { Ok(inner) } else { Err(self.error("expected `)`")) };
        }
        self.space();
        let end = self
            .rest
            .find(|sign: char| sign.is_whitespace() || "&|!()".contains(sign))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(
                self.error("expected a word, `tag:`, `req:`, `area:`, `profile:`, `name:`, `!` or `(`")
            );
        }
        let (key, value) = word.split_once(':').unwrap_or(("name", word));
        if value.is_empty() {
            return Err(self.error(format!("`{key}:` needs a value")));
        }
        let value = value.to_owned();
        let filter = match key {
            "name" => Filter::Name(value),
            "area" => Filter::Area(value),
            "tag" => Filter::Tag(value),
            "req" => Filter::Requirement(value),
            "profile" => Filter::Profile(value),
            other => {
                return Err(self.error(format!(
                    "`{other}:` is unknown; there are name:, area:, tag:, req: and profile:"
                )));
            }
        };
        self.rest = rest;
        Ok(filter)
    }
}

/// The one of a list of one, else all of them together.
fn one_of(mut all: Vec<Filter>, together: fn(Vec<Filter>) -> Filter) -> Filter {
    match all.pop() {
        Some(one) if all.is_empty() => one,
        last => {
            all.extend(last);
            together(all)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_choose_trials() {
        let tags = ["power".to_owned(), "eviction".to_owned()];
        let requirements = ["NODE-03".to_owned(), "SCHED-1".to_owned()];
        let subject = Subject {
            name: "node/power-loss/short",
            tags: &tags,
            requirements: &requirements,
            profile: "kube32",
        };
        for (expression, expected) in [
            ("power-loss", true),
            ("name:loss/sh", true),
            ("hang", false),
            ("area:node", true),
            ("area:nod", false),
            ("tag:power", true),
            ("tag:pow", false),
            ("req:NODE-03", true),
            ("req:NODE", true),
            ("req:NOD", false),
            ("req:SCHED-10", false),
            ("profile:kube32 & !tag:hang", true),
            ("!(tag:power | tag:hang)", false),
            ("tag:hang | tag:power & area:node", true),
            ("(tag:hang | tag:power) & area:api", false),
            ("!!tag:power", true),
        ] {
            let filter = Filter::parse(expression).unwrap();
            assert_eq!(filter.matches(&subject), expected, "{expression}");
        }
        assert!(Filter::All.matches(&subject));
    }

    #[test]
    fn requirements_are_found_wherever_they_stand() {
        let filter = Filter::parse("!(req:NODE-03 | tag:x) & (power | !req:SCHED)").unwrap();
        assert_eq!(filter.requirements(), ["NODE-03", "SCHED"]);
    }

    #[test]
    fn expressions_of_any_length_and_depth_come_to_an_end() {
        for (sign, column) in [("(", 52), ("!", 52), ("!(", 52), ("( ", 102)] {
            let error = Filter::parse(&sign.repeat(50_000)).unwrap_err();
            assert!(error.problem.starts_with("more than 50 `(` and `!` in one another"), "{error}");
            assert_eq!(error.column, column, "{sign}");
            assert!(error.to_string().len() < 300, "{error}");
        }
        let deep = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(Filter::parse(&deep(50)).unwrap(), Filter::Name("a".to_owned()));
        assert!(Filter::parse(&deep(51)).is_err());
        let subject = Subject { name: "b", tags: &[], requirements: &[], profile: "kube32" };
        let wide = Filter::parse(&format!("{}b", "a & b | ".repeat(50_000))).unwrap();
        assert!(wide.matches(&subject) && wide.requirements().is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_pointed_at() {
        for (expression, column, problem) in [
            ("", 1, "expected a word"),
            ("a &", 4, "expected a word"),
            ("(a | b", 7, "expected `)`"),
            ("a b", 3, "expected `&`, `|` or the end"),
            ("ä | colour:red", 5, "`colour:` is unknown"),
            ("tag:", 1, "`tag:` needs a value"),
        ] {
            let error = Filter::parse(expression).unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.problem.starts_with(problem), "{error}");
        }
    }
}
