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
    /// Both.
    And(Box<Filter>, Box<Filter>),
    /// Either.
    Or(Box<Filter>, Box<Filter>),
}

/// Why an expression cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("filter `{expression}`, column {column}: {problem}")]
pub struct FilterError {
    /// The whole expression.
    pub expression: String,
    /// Where, from 1.
    pub column: usize,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl Filter {
    /// Reads an expression.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { expression, rest: expression };
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
            Self::And(one, other) | Self::Or(one, other) => {
                one.requirements().into_iter().chain(other.requirements()).collect()
            }
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
            Self::And(one, other) => one.matches(subject) && other.matches(subject),
            Self::Or(one, other) => one.matches(subject) || other.matches(subject),
        }
    }
}

struct Parser<'a> {
    expression: &'a str,
    rest: &'a str,
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
        let mut filter = self.both()?;
        while self.eat('|') {
            filter = Filter::Or(Box::new(filter), Box::new(self.both()?));
        }
        Ok(filter)
    }

    fn both(&mut self) -> Result<Filter, FilterError> {
        let mut filter = self.one()?;
        while self.eat('&') {
            filter = Filter::And(Box::new(filter), Box::new(self.one()?));
        }
        Ok(filter)
    }

    fn one(&mut self) -> Result<Filter, FilterError> {
        if self.eat('!') {
            return Ok(Filter::Not(Box::new(self.one()?)));
        }
        if self.eat('(') {
            let inner = self.either()?;
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
