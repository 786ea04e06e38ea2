//! Instants that never come: marks that nobody makes, stamps in fields that there are not, requests of kinds that there are not.
//! Such a scenario ends undecided.

use super::misspelt::{LOOKS, each_step, kind_of, of_path};
use rigor_model::expr::{self, Expr, Instant};
use rigor_model::kinds::KINDS;
use rigor_model::mistake::Mistake;
use rigor_model::yaml::{Kind, Node};
use std::collections::BTreeMap;
use std::ops::Range;

/// The marks that do something.
const MARKS: [&str; 2] = ["heartbeats-stopped", "heartbeats-resumed"];

/// Keys under which nothing is an instant.
const NO_INSTANTS: [&str; 9] =
    ["manifest", "manifests", "patch", "body", "match", "cel", "answer", "headers", "path"];

/// The instants in a scenario's or a fragment's steps that never come, and marks that do nothing.
pub(super) fn never_come(root: &Node) -> Vec<Mistake> {
    // The kinds of what named steps find; nothing where two of a name find different ones.
    let mut kinds: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let mut steps = Vec::new();
    each_step(root, &mut |step| {
        steps.push(step);
        if let Some(name) = step.get("as").and_then(Node::as_text) {
            let kind = LOOKS.iter().find_map(|verb| step.get(verb)).and_then(kind_of);
            let known = kinds.entry(name).or_insert(kind);
            *known = known.filter(|known| Some(*known) == kind);
        }
    });
    let mut found = Vec::new();
    for step in steps {
        let marks = [step.get("mark"), step.get("capture").and_then(|capture| capture.get("mark"))];
        for name in marks.into_iter().flatten().filter_map(|mark| mark.get("name")) {
            found.extend(name.as_text().and_then(|text| mark(text, &name.span)));
        }
        if let Kind::Map(entries) = &step.kind {
            // What is in steps of steps comes by itself.
            let own = entries
                .iter()
                .filter(|entry| !["repeat", "forEach", "parallel"].contains(&entry.key.as_str()));
            own.for_each(|entry| {
                texts(&entry.key, &entry.value, &mut |text, span| {
                    if let Ok(Expr::Instant(instant)) = expr::parse(text, None) {
                        of_instant(&instant, span, &kinds, &mut found);
                    }
                })
            });
        }
    }
    found
}

/// All texts that may be instants.
fn texts(key: &str, node: &Node, visit: &mut dyn FnMut(&str, &Range<usize>)) {
    if NO_INSTANTS.contains(&key) {
        return;
    }
    match &node.kind {
        Kind::Text(text) if text.contains('(') => visit(text, &node.span),
        Kind::List(items) => items.iter().for_each(|item| texts(key, item, visit)),
        Kind::Map(entries) => entries.iter().for_each(|entry| texts(&entry.key, &entry.value, visit)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
    }
}

fn of_instant(
    instant: &Instant,
    span: &Range<usize>,
    kinds: &BTreeMap<&str, Option<&str>>,
    found: &mut Vec<Mistake>,
) {
    for base in instant.bases() {
        match base {
            Instant::Mark { name, .. } => found.extend(mark(name, span)),
            Instant::Request { path, .. } => found.extend(request(path, span)),
            Instant::LastRenewal { before: Some(before), .. } => of_instant(before, span, kinds, found),
            Instant::Stamp { name, path } => {
                if let Some(Some(kind)) = kinds.get(name.as_str()) {
                    of_path(kind, path, span, found);
                }
            }
            Instant::Named(_)
            | Instant::Start
            | Instant::Begin
            | Instant::Serving
            | Instant::LastRenewal { before: None, .. }
            | Instant::Plus(..)
            | Instant::Minus(..)
            | Instant::Latest(_)
            | Instant::Earliest(_) => {}
        }
    }
}

/// A mark that is called nearly as one that does something.
fn mark(name: &str, span: &Range<usize>) -> Option<Mistake> {
    let near = MARKS.into_iter().find(|known| (1..=3).contains(&slips(name, known)))?;
    (!MARKS.contains(&name)).then(|| {
        let message = format!("no mark is called `{name}` that stops or resumes heartbeats");
        Mistake::new(span.clone(), message).remedy(format!("did you mean `{near}`?"))
    })
}

/// A request for a kind that is called nearly as one that there is.
fn request(path: &str, span: &Range<usize>) -> Option<Mistake> {
    let parts: Vec<&str> = path.split('?').next()?.split('/').collect();
    let (version, rest) = match parts.as_slice() {
        ["", "api", version, rest @ ..] => ((*version).to_owned(), rest),
        ["", "apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return None,
    };
    let plural = match rest {
        ["namespaces", _, plural, ..] | [plural, ..] => *plural,
        [] => return None,
    };
    let mut known = KINDS.iter().filter(|kind| kind.api_version == version).map(|kind| kind.plural);
    if plural.contains(['*', '$']) || known.clone().any(|known| known == plural) {
        return None;
    }
    let near = known.find(|known| slips(plural, known) <= 2)?;
    let message = format!("no kind is called `{plural}` in paths, so no such request is ever seen");
    Some(Mistake::new(span.clone(), message).remedy(format!("did you mean `{near}`?")))
}

/// How many letters stand between what two words begin and end with alike, in the one that has more of them.
fn slips(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let shorter = one.len().min(other.len());
    let begin = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    one.len().max(other.len()) - (begin + end).min(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::yaml;

    fn check(steps: &str, expected: &[&str]) {
        let source = format!("spec:\n  steps:\n{steps}");
        let root = yaml::parse_one(&source, &mut Vec::new()).expect(steps);
        let told: Vec<String> = never_come(&root)
            .into_iter()
            .map(|mistake| format!("{}; {}", mistake.message, mistake.remedy.unwrap_or_default()))
            .collect();
        assert_eq!(told, expected, "{steps}");
    }

    const STOPPED: &str = "no mark is called `heartbeats-stoped` that stops or resumes heartbeats; did you mean `heartbeats-stopped`?";

    #[test]
    fn marks_that_do_nothing_are_told() {
        check("    - mark: {name: heartbeats-stoped, node: n1}\n", &[STOPPED]);
        check("    - capture: {mark: {name: heartbeats-stoped}, fields: {lost: node}}\n", &[STOPPED]);
        check("    - expect: {of: {kind: Node}, after: \"mark(heartbeats-stoped, n1) + 5s\"}\n", &[STOPPED]);
        check(
            "    - expect: {of: {kind: Node}, between: [start, \"lastRenewal(a, mark(heartbeats-stoped))\"]}\n",
            &[STOPPED],
        );
        check(
            "    - forEach: {name: x, in: [a], steps: [{mark: {name: heartbeats-stoped, node: n1}}]}\n",
            &[STOPPED],
        );
        let other = "no mark is called `heartbeat-resumed` that stops or resumes heartbeats; did you mean `heartbeats-resumed`?";
        check("    - wait: mark(heartbeat-resumed, n1)\n", &[other]);
        for name in
            ["heartbeats-stopped", "heartbeats-resumed", "label", "unlabel", "heartbeats-lost", "${mark}"]
        {
            check(
                &format!("    - mark: {{name: \"{name}\", node: n1}}\n    - wait: mark({name}, n1)\n"),
                &[],
            );
        }
    }

    #[test]
    fn stamps_in_fields_that_there_are_not_are_told() {
        let up =
            "    - expect: {of: {kind: Pod, name: p}, match: {status: {phase: Running}}}\n      as: up\n";
        let wait = |path: &str| format!("{up}    - wait: stamp(up, {path}) + 5s\n");
        check(
            &wait("status.startTimes"),
            &[
                "no Pod has a field `status.startTimes`, so nothing is ever seen of it; did you mean `startTime`?",
            ],
        );
        check(&wait("status.startTime"), &[]);
        check(&wait("status.conditions[type=Ready].lastTransitionTime"), &[]);
        check(&format!("{}    - expect: {{of: {{kind: Node}}}}\n      as: up\n", wait("spec.x")), &[]);
        check("    - power: {board: a, do: cut}\n      as: up\n    - wait: stamp(up, spec.x)\n", &[]);
    }

    #[test]
    fn requests_for_kinds_that_there_are_not_are_told() {
        let wait = |path: &str| format!("    - wait: request(POST, {path})\n");
        check(
            &wait("/api/v1/namespaces/*/podz"),
            &["no kind is called `podz` in paths, so no such request is ever seen; did you mean `pods`?"],
        );
        check(
            &wait("/apis/apps/v1/namespaces/*/deployment/x"),
            &[
                "no kind is called `deployment` in paths, so no such request is ever seen; did you mean `deployments`?",
            ],
        );
        for path in [
            "/api/v1/namespaces/*/pods",
            "/api/v1/namespaces/*",
            "/api/v1/nodes/*/status",
            "/api/v1/namespaces/*/pods/*/binding",
            "/api/v1/persistentvolumes",
            "/api/v1/namespaces/x/status",
            "/api/v1/namespaces/*/podtemplates",
            "/apis/batch/v1/namespaces/*/cronjobs",
            "/apis/example.com/v1/pod",
            "/api/v1/namespaces/*/*",
            "/healthz",
        ] {
            check(&wait(path), &[]);
        }
    }
}
