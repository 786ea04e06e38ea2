//! Fields that no object of their kind has. What is never there never fails `never`, and is always `unchanged`: such a
//! scenario passes whatever happens.
//!
//! Only what is looked at is checked. What is sent to the API may be wrong on purpose.

use super::fields::{self, Sort};
use rigor_model::cel::{Cel, OBJECT};
use rigor_model::mistake::{Mistake, nearest, suggestion};
use rigor_model::path::{Path, Segment};
use rigor_model::yaml::{Kind, Node};
use std::ops::Range;

/// The operations that look at objects.
const LOOKS: [&str; 5] = ["expect", "never", "always", "unchanged", "capture"];

/// The fields in a scenario's or a fragment's steps that there are not.
pub(super) fn misspelt(root: &Node) -> Vec<Mistake> {
    let mut found = Vec::new();
    for section in ["setup", "steps", "cleanup"] {
        if let Some(list) = root.get("spec").and_then(|spec| spec.get(section)) {
            of_steps(list, &mut found);
        }
    }
    found
}

fn of_steps(list: &Node, found: &mut Vec<Mistake>) {
    let Kind::List(steps) = &list.kind else { return };
    for step in steps {
        LOOKS.iter().filter_map(|verb| step.get(verb)).for_each(|look| of_look(look, found));
        for holder in ["repeat", "forEach"] {
            if let Some(inner) = step.get(holder).and_then(|holder| holder.get("steps")) {
                of_steps(inner, found);
            }
        }
    }
}

fn of_look(look: &Node, found: &mut Vec<Mistake>) {
    let Some(of) = look.get("of") else { return };
    // A kind that a row of a table puts in is not known here.
    let Some(kind) = of.get("kind").and_then(Node::as_text) else { return };
    let Some(sort) = fields::of_kind(kind) else { return };
    let mut search = Search { kind, found };
    if let Some(pattern) = look.get("match") {
        search.pattern(pattern, &sort, "");
    }
    if let Some(condition) = look.get("cel") {
        search.cel(condition, &sort);
    }
    if let Some(field) = look.get("field") {
        search.path(field.as_text(), &field.span, &sort);
    }
    if let Some(Kind::Map(captured)) = look.get("fields").map(|node| &node.kind) {
        captured.iter().for_each(|entry| search.path(entry.value.as_text(), &entry.value.span, &sort));
    }
    if let Some(Kind::Map(wanted)) = of.get("fields").map(|node| &node.kind) {
        wanted.iter().for_each(|entry| search.path(Some(&entry.key), &entry.key_span, &sort));
    }
}

/// A search through what is said of objects of one kind.
struct Search<'s> {
    kind: &'s str,
    found: &'s mut Vec<Mistake>,
}

impl Search<'_> {
    /// A pattern of something of that sort, which stands at `trail`.
    fn pattern(&mut self, node: &Node, sort: &Sort, trail: &str) {
        match &node.kind {
            Kind::Map(entries) => {
                for entry in entries {
                    if entry.key.starts_with('$') {
                        self.operator(&entry.key, &entry.value, sort, trail);
                        continue;
                    }
                    let absent = entry.value.get("$is").and_then(Node::as_text) == Some("absent");
                    if let Some((sort, trail)) = self.step(&entry.key, &entry.key_span, sort, trail, absent) {
                        self.pattern(&entry.value, &sort, &trail);
                    }
                }
            }
            Kind::List(items) => {
                if let Sort::List(inner) = sort {
                    items.iter().for_each(|item| self.pattern(item, inner, trail));
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
        }
    }

    fn operator(&mut self, operator: &str, value: &Node, sort: &Sort, trail: &str) {
        match (operator, sort, &value.kind) {
            ("$not" | "$eq", _, _) => self.pattern(value, sort, trail),
            ("$oneOf", _, Kind::List(ways)) => ways.iter().for_each(|way| self.pattern(way, sort, trail)),
            ("$any" | "$all" | "$none", Sort::List(inner), _) => self.pattern(value, inner, trail),
            ("$byKey", Sort::List(inner), Kind::Map(keys)) => {
                for key in keys {
                    self.step(&key.key, &key.key_span, inner, trail, false);
                    if let Kind::Map(elements) = &key.value.kind {
                        elements.iter().for_each(|element| self.pattern(&element.value, inner, trail));
                    }
                }
            }
            _ => {}
        }
    }

    fn path(&mut self, text: Option<&str>, span: &Range<usize>, sort: &Sort) {
        let Some(path) = text.and_then(|text| Path::parse(text).ok()) else { return };
        let (mut sort, mut trail) = (sort.clone(), String::new());
        for segment in path.segments() {
            let next = match segment {
                Segment::Key(key) => self.step(key, span, &sort, &trail, false),
                Segment::Index(_) => of_list(&sort).map(|inner| (inner, trail.clone())),
                Segment::Where(pairs) => of_list(&sort).map(|inner| {
                    for (key, _) in pairs {
                        self.step(key, span, &inner, &trail, false);
                    }
                    (inner, trail.clone())
                }),
            };
            let Some(next) = next else { return };
            (sort, trail) = next;
        }
    }

    fn cel(&mut self, node: &Node, sort: &Sort) {
        let Some(text) = node.as_text() else { return };
        // Names were checked when the file was read: here any word may be one.
        let words = text.split(|sign: char| !sign.is_ascii_alphanumeric()).filter(|word| *word != OBJECT);
        let Ok(condition) = Cel::parse(text, &[OBJECT], words) else { return };
        for path in condition.paths().iter().filter(|path| path.first().is_some_and(|root| root == OBJECT)) {
            let (mut sort, mut trail) = (sort.clone(), String::new());
            for key in &path[1..] {
                let Some(next) = self.step(key, &node.span, &sort, &trail, false) else { break };
                (sort, trail) = next;
            }
        }
    }

    /// What stands under a key of something of that sort, and where that is. Notes a key that is no field; one that is only
    /// said not to be there, and is like none, is meant so: nothing but the writer's own can be there.
    fn step(
        &mut self,
        key: &str,
        span: &Range<usize>,
        sort: &Sort,
        trail: &str,
        absent: bool,
    ) -> Option<(Sort, String)> {
        let trail = if trail.is_empty() { key.to_owned() } else { format!("{trail}.{key}") };
        let known = match sort {
            Sort::Of(name) => fields::fields(name)?,
            Sort::Map(inner) => return Some(((**inner).clone(), trail)),
            Sort::Plain | Sort::List(_) => return None,
        };
        if let Some(sort) = known.get(key) {
            return Some((sort.clone(), trail));
        }
        let names: Vec<&str> = known.keys().copied().collect();
        let meant_so = key.contains("${") || absent && nearest(key, names.iter().copied()).is_none();
        if !meant_so {
            let message = format!("no {} has a field `{trail}`, so nothing is ever seen of it", self.kind);
            self.found.push(Mistake::new(span.clone(), message).remedy(suggestion(key, &names)));
        }
        None
    }
}

fn of_list(sort: &Sort) -> Option<Sort> {
    if let Sort::List(inner) = sort { Some((**inner).clone()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::yaml;

    /// What is said of a step: where, and what.
    fn said(step: &str) -> Vec<String> {
        let source = format!("spec:\n  steps:\n    - {step}\n");
        let root = yaml::parse_one(&source, &mut Vec::new()).expect(step);
        let told = misspelt(&root).into_iter().map(|mistake| {
            let place = source.get(mistake.span.clone()).unwrap_or_default();
            format!("{place}: {}; {}", mistake.message, mistake.remedy.unwrap_or_default())
        });
        told.collect()
    }

    fn check(step: &str, expected: &[&str]) {
        assert_eq!(said(step), expected, "{step}");
    }

    #[test]
    fn a_misspelt_field_is_told_with_the_nearest() {
        let phase =
            "no Pod has a field `status.phasee`, so nothing is ever seen of it; did you mean `phase`?";
        check(
            "never: {of: {kind: Pod}, match: {status: {phasee: Failed}}, for: 5s}",
            &[&format!("phasee: {phase}")],
        );
        check(
            "unchanged: {of: {kind: Pod, name: p}, field: status.phasee, for: 5s}",
            &[&format!("status.phasee: {phase}")],
        );
        check(
            "capture: {of: {kind: Pod, name: p}, fields: {x: status.phasee}}",
            &[&format!("status.phasee: {phase}")],
        );
        check(
            "never: {of: {kind: Pod, fields: {status.phasee: x}}, for: 5s}",
            &[&format!("status.phasee: {phase}")],
        );
        check(
            "never: {of: {kind: Pod}, cel: has(object.status.phasee), for: 5s}",
            &[&format!("has(object.status.phasee): {phase}")],
        );
        check(
            "forEach: {name: x, in: [a], steps: [{never: {of: {kind: Pod}, match: {status: {phasee: Failed}}, for: 5s}}]}",
            &[&format!("phasee: {phase}")],
        );
        check(
            "never: {of: {kind: Pod}, match: {status: {phasee: {$is: absent}}}, for: 5s}",
            &[&format!("phasee: {phase}")],
        );
    }

    #[test]
    fn fields_are_found_inside_of_operators_and_lists() {
        let ready =
            "no Pod has a field `status.conditions.typ`, so nothing is ever seen of it; did you mean `type`?";
        for pattern in [
            "[{typ: Ready}]",
            "{$any: {typ: Ready}}",
            "{$not: [{typ: Ready}]}",
            "{$oneOf: [[{typ: Ready}], {$count: 0}]}",
            "{$byKey: {typ: {Ready: {status: \"True\"}}}}",
            "{$byKey: {type: {Ready: {typ: x}}}}",
        ] {
            check(
                &format!(
                    "never: {{of: {{kind: Pod}}, match: {{status: {{conditions: {pattern}}}}}, for: 5s}}"
                ),
                &[&format!("typ: {ready}")],
            );
        }
        check(
            "capture: {of: {kind: Pod, name: p}, fields: {x: \"status.conditions[typ=Ready].status\"}}",
            &[&format!("\"status.conditions[typ=Ready].status\": {ready}")],
        );
    }

    #[test]
    fn what_may_be_right_is_not_told() {
        for step in [
            "never: {of: {kind: Widget}, match: {status: {phasee: Failed}}, for: 5s}",
            "never: {of: {kind: \"${kind}\"}, match: {status: {phasee: Failed}}, for: 5s}",
            "never: {of: {kind: Pod}, match: {status: {\"${field}\": Failed}}, for: 5s}",
            "never: {of: {kind: Pod}, match: {metadata: {labels: {anything: x}, annotations: {a.b/c: x}}}, for: 5s}",
            "expect: {of: {kind: Pod}, match: {spec: {nobodyWroteThat: {$is: absent}}}}",
            "expect: {of: {kind: Node}, match: {status: {allocatable: {esp32.io/gpio: \"4\"}}}}",
            "expect: {of: {kind: Deployment}, match: {spec: {strategy: {rollingUpdate: {maxSurge: 1}}}}}",
            "expect: {of: {kind: Pod}, cel: \"object.spec.containers.all(c, c.name == main) && object.metadata.labels.x == y\"}",
            "expect: {of: {kind: Lease}, match: {spec: {renewTime: {$is: present}}}}",
            "expect: {of: {kind: Secret}, match: {data: {key: dmFsdWU=}}}",
            "expect: {request: {match: {phasee: x}}}",
            "create: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}, spce: {}}}",
        ] {
            check(step, &[]);
        }
    }
}
