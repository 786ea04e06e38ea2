//! What reading a step's values needs: instants and durations, conditions, names, boards, the files that it names.

use std::ops::Range;

use super::names::{Shows, is_instant_name};
use super::{Context, RELATIVE};
use crate::cel::Cel;
use crate::expr::{Expr, Instant, Length};
use crate::fragment::beside;
use crate::mistake::{MAX_TOLD, Mistake, place, suggestion};
use crate::reader::Reader;
use crate::strings;
use crate::template;
use crate::yaml::{self, Entry, Kind, Node};

impl Context<'_, '_> {
    /// An instant; a duration counts from the step's begin.
    pub fn instant(&mut self, node: &Node) -> Option<Instant> {
        let instant = match self.expr(node)? {
            Expr::Instant(instant) => instant,
            Expr::Length(length) => Instant::Plus(Box::new(Instant::Begin), length),
        };
        for name in instant.nodes().into_iter().filter(|name| template::names(name).is_empty()) {
            self.check_node(&node.span, name);
        }
        self.check_names(&node.span, &instant.value_names());
        Some(instant)
    }

    /// A duration.
    pub fn length(&mut self, node: &Node) -> Option<Length> {
        match self.expr(node)? {
            Expr::Length(length) => Some(length),
            Expr::Instant(instant) => {
                self.reader.wrong(
                    &node.span,
                    format!("a duration belongs here; `{instant}` is an instant"),
                    "write a duration such as 5s or checkPeriod + slack",
                );
                None
            }
        }
    }

    /// A duration that is more than nothing.
    pub fn some_length(&mut self, node: &Node) -> Option<Length> {
        let length = self.length(node)?;
        self.reader.refuse_none(node, &length, "a duration of nothing: there is no time in it");
        Some(length)
    }

    fn expr(&mut self, node: &Node) -> Option<Expr> {
        let told = self.reader.mistakes.len();
        let Some(expr) = self.reader.expr(node, Some(&self.scope.all_names)) else {
            // That a name cannot be one was told where it is given.
            let text = node.as_text().unwrap_or_default();
            let broken = |name: &&String| !is_instant_name(name) && text.contains(name.as_str());
            if self.scope.all_names.iter().find(broken).is_some_and(|name| template::names(name).is_empty()) {
                self.reader.mistakes.truncate(told);
            }
            return None;
        };
        let Expr::Instant(instant) = &expr else { return Some(expr) };
        for (name, stamped) in instant.references() {
            if !self.scope.names.contains(name) {
                self.reader.wrong(
                    &node.span,
                    format!("`{name}` names this step or a later one"),
                    "refer to steps further up only",
                );
                return None;
            }
            match self.scope.shows.get(name) {
                Some(Shows::Nothing) => {
                    self.reader.wrong(
                        &node.span,
                        format!(
                            "`{name}` names what holds all the time or not at all, and that has no instant"
                        ),
                        "name an act, an expect or a capture",
                    );
                    return None;
                }
                Some(Shows::Instant) if stamped => {
                    self.reader.wrong(
                        &node.span,
                        format!("`{name}` found no object and no answer, so there is no stamp to read"),
                        format!(
                            "for the instant itself write {name}; a stamp stands in what an `expect` or `capture` about `of` found"
                        ),
                    );
                    return None;
                }
                Some(Shows::Instant | Shows::Body) | None => {}
            }
        }
        Some(expr)
    }

    /// How long after another instant one is at most, in nanoseconds, where that can be told.
    pub fn at_most_after(&self, one: &Instant, other: &Instant) -> Option<i128> {
        one.at_most_after(other, &self.scope.constants, |base, other| self.is_not_after(base, other))
    }

    /// Whether an instant is certainly not after another one: its step was over when the act began that is the other. What an
    /// expectation finds may have been so before, so it must be an act.
    fn is_not_after(&self, one: &Instant, other: &Instant) -> bool {
        let place = |instant: &Instant| match instant {
            Instant::Start => Some((0, true)),
            Instant::Begin => Some((self.scope.turn, true)),
            Instant::Named(name) => self.scope.places.get(name).copied(),
            _ => None,
        };
        match (place(one), place(other)) {
            (Some((one, _)), Some((other, true))) => one < other,
            (_, _) => false,
        }
    }

    /// A condition in CEL about `roots`.
    pub fn cel(&mut self, node: &Node, roots: &[&str]) -> Option<Cel> {
        let text = self.reader.text(node)?;
        match Cel::parse(&text, roots, self.scope.values.iter().map(String::as_str)) {
            Ok(cel) => Some(cel),
            Err(mistake) => {
                let span = self.reader.inside(node, &text, &mistake.span);
                self.reader.wrong(&span, mistake.message, mistake.remedy);
                None
            }
        }
    }

    /// Notes names in `${…}` that nothing fills in.
    pub fn check_names(&mut self, span: &Range<usize>, used: &[&str]) {
        self.reader.check_names(span, used, &self.scope.values);
    }

    /// Notes a name that is written as other languages have it: `$uid`, `{{uid}}`. Where a text can be a script of its
    /// own, only a name that has a value is taken for one.
    pub fn check_plain(&mut self, span: &Range<usize>, text: &str, certain: bool) {
        let Some((written, name)) = template::foreign(text) else { return };
        if certain || self.scope.values.contains(name) {
            let message = format!("`{written}` stays as it is written: nothing is put in for it");
            self.reader.wrong(span, message, format!("write ${{{name}}}"));
        }
    }

    /// Notes a `${` that begins no name, though it looks like one. Where a text can be a script of its own, only one around a name
    /// that has a value is taken for one.
    pub fn check_broken(&mut self, span: &Range<usize>, text: &str, certain: bool) {
        let Some(broken) = template::broken(text) else { return };
        if certain || broken.name.is_some_and(|name| self.scope.values.contains(name)) {
            let message = format!("`{}` stays as it is written: {}", broken.written, broken.why);
            let right = broken.name.unwrap_or("namespace");
            self.reader.wrong(span, message, format!("write ${{{right}}}; a plain ${{ is written $${{"));
        }
    }

    /// The same in all texts and keys of a value. What is in a regular expression is told with that.
    pub fn check_broken_in(&mut self, node: &Node, certain: bool) {
        match &node.kind {
            Kind::Text(text) => self.check_broken(&node.span, text, certain),
            Kind::List(items) => items.iter().for_each(|item| self.check_broken_in(item, certain)),
            Kind::Map(entries) => {
                for entry in entries.iter().filter(|entry| entry.key != "$regex") {
                    self.check_broken(&entry.key_span, &entry.key, certain);
                    self.check_broken_in(&entry.value, certain);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
        }
    }

    /// The same in all texts of a value.
    pub fn check_plain_in(&mut self, node: &Node) {
        match &node.kind {
            Kind::Text(text) => self.check_plain(&node.span, text, false),
            Kind::List(items) => items.iter().for_each(|item| self.check_plain_in(item)),
            Kind::Map(entries) => entries.iter().for_each(|entry| self.check_plain_in(&entry.value)),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
        }
    }

    /// Whether the trial has a board of that name.
    pub fn is_board(&self, name: &str) -> bool {
        self.scope.boards.iter().any(|board| board == name)
    }

    /// Notes a board that the trial does not have.
    pub fn check_board(&mut self, span: &Range<usize>, board: &str) {
        if !self.is_board(board) && !self.scope.observe {
            // A name that nothing fills in is what is wrong, not a board.
            let unknown: Vec<&str> = template::names(board)
                .into_iter()
                .filter(|name| !self.scope.values.contains(*name))
                .collect();
            if !unknown.is_empty() {
                return self.check_names(span, &unknown);
            }
            let remedy = match self.scope.boards.as_slice() {
                [] => "it asks for none: write spec.rig.boards: 1, or more".to_owned(),
                boards if boards.iter().any(|known| *known == board.to_lowercase()) => {
                    format!("write {}: boards are called by small letters", board.to_lowercase())
                }
                boards => format!("its boards are {}; ask for more with spec.rig.boards", boards.join(", ")),
            };
            self.reader.wrong(span, format!("the scenario has no board `{board}`"), remedy);
        }
    }

    /// Notes a node that is neither a board nor played.
    fn check_node(&mut self, span: &Range<usize>, node: &str) {
        if !self.is_board(node) && !self.scope.played.contains(node) && !self.scope.observe {
            let known: Vec<&str> =
                self.scope.boards.iter().chain(&self.scope.played).map(String::as_str).collect();
            self.reader.wrong(
                span,
                format!("`{node}` is neither a board nor a played node"),
                suggestion(node, &known),
            );
        }
    }

    /// Tells of mistakes in another file, at the step that names it.
    fn told_in(&mut self, node: &Node, name: &str, source: &str, mistakes: Vec<Mistake>) {
        for mistake in mistakes.into_iter().take(MAX_TOLD) {
            let (line, column) = place(source, mistake.span.start);
            let message = format!("in {name}, line {line}, column {column}: {}", mistake.message);
            self.reader.mistakes.push(Mistake { span: node.span.clone(), message, remedy: mistake.remedy });
        }
    }

    /// The documents of a file that a step names. Mistakes in it are reported at the step.
    pub fn documents(&mut self, node: &Node, name: &str) -> Option<Vec<Node>> {
        if !self.reader.is_beside(node, name) {
            return None;
        }
        let name = beside(self.base.as_deref(), name);
        let source = match (self.files)(&name) {
            Ok(source) => source,
            Err(error) => {
                self.reader.wrong(&node.span, format!("the file `{name}` cannot be read: {error}"), RELATIVE);
                return None;
            }
        };
        let mut mistakes = Vec::new();
        let documents = yaml::parse_documents(&source, &mut mistakes);
        if !mistakes.is_empty() {
            self.told_in(node, &name, &source, mistakes);
            return None;
        }
        if documents.is_empty() || documents.iter().any(|document| !matches!(document.kind, Kind::Map(_))) {
            self.reader.wrong(
                &node.span,
                format!("the file `{name}` holds something else than objects"),
                "each of its documents is one object with apiVersion, kind and metadata",
            );
            return None;
        }
        let mut inner = Reader::new(&source);
        for document in &documents {
            strings::check_object(&mut inner, document, None);
            strings::check_dotted(&mut inner, document);
        }
        if !inner.mistakes.is_empty() {
            self.told_in(node, &name, &source, inner.mistakes);
            return None;
        }
        // Places in another file mean nothing here: what is wrong with its objects is told at the step.
        Some(documents.into_iter().map(|document| moved(document, &node.span)).collect())
    }
}

/// The node with all of it at one place.
fn moved(node: Node, span: &Range<usize>) -> Node {
    let kind = match node.kind {
        Kind::List(items) => Kind::List(items.into_iter().map(|item| moved(item, span)).collect()),
        Kind::Map(entries) => Kind::Map(
            entries
                .into_iter()
                .map(|entry| Entry {
                    key: entry.key,
                    key_span: span.clone(),
                    value: moved(entry.value, span),
                })
                .collect(),
        ),
        plain @ (Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_)) => plain,
    };
    Node { span: span.clone(), kind }
}
