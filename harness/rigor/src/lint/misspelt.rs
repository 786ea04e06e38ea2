//! Fields that no object of their kind has, and values that they never have. What is never there never fails `never`, and is
//! always `unchanged`: such a scenario passes whatever happens.
//!
//! Only what is looked at is checked. What is sent to the API may be wrong on purpose.

use super::fields::{self, Sort};
use super::shapes::{Clash, clash, contradiction, is, operator_clash};
use rigor_model::cel::{Cel, Down, OBJECT};
use rigor_model::kinds::ObjectKind;
use rigor_model::mistake::{Mistake, nearest, suggestion};
use rigor_model::path::{Path, Segment};
use rigor_model::yaml::{Kind, Node};
use std::ops::Range;

/// The operations that look at objects.
pub(super) const LOOKS: [&str; 5] = ["expect", "never", "always", "unchanged", "capture"];

/// The fields in a scenario's or a fragment's steps that there are not.
pub(super) fn misspelt(root: &Node) -> Vec<Mistake> {
    let mut found = Vec::new();
    each_step(root, &mut |step| {
        LOOKS.iter().filter_map(|verb| step.get(verb)).for_each(|look| of_look(look, &mut found));
    });
    found
}

/// Does something for each step of a scenario or a fragment, those inside of others too.
pub(super) fn each_step<'n>(root: &'n Node, visit: &mut dyn FnMut(&'n Node)) {
    for section in ["setup", "steps", "cleanup"] {
        if let Some(list) = root.get("spec").and_then(|spec| spec.get(section)) {
            of_steps(list, visit);
        }
    }
}

fn of_steps<'n>(list: &'n Node, visit: &mut dyn FnMut(&'n Node)) {
    let Kind::List(steps) = &list.kind else { return };
    for step in steps {
        visit(step);
        for holder in ["repeat", "forEach"] {
            if let Some(inner) = step.get(holder).and_then(|holder| holder.get("steps")) {
                of_steps(inner, visit);
            }
        }
        if let Some(inner) = step.get("parallel") {
            of_steps(inner, visit);
        }
    }
}

/// The kind of objects that is looked at, where their fields are known.
pub(super) fn kind_of(look: &Node) -> Option<&str> {
    let of = look.get("of")?;
    // A kind that a row of a table puts in is not known here, and one of the scenario's own may be called the same.
    let kind = of.get("kind").and_then(Node::as_text)?;
    let known = ObjectKind::named(kind)?.api_version;
    of.get("apiVersion").is_none_or(|version| version.as_text() == Some(known)).then_some(kind)
}

/// What is wrong with a path into objects of a kind, which stands at `span`.
pub(super) fn of_path(kind: &str, path: &Path, span: &Range<usize>, found: &mut Vec<Mistake>) {
    if let Some(sort) = fields::of_kind(kind) {
        Search { kind, found }.path(path, span, &sort);
    }
}

fn of_look(look: &Node, found: &mut Vec<Mistake>) {
    let Some(kind) = kind_of(look) else { return };
    let Some(sort) = fields::of_kind(kind) else { return };
    let mut search = Search { kind, found };
    if let Some(pattern) = look.get("match") {
        search.pattern(pattern, &sort, "");
    }
    if let Some(condition) = look.get("cel") {
        search.cel(condition, &sort);
    }
    if let Some(field) = look.get("field") {
        search.text(field.as_text(), &field.span, &sort);
    }
    if let Some(Kind::Map(captured)) = look.get("fields").map(|node| &node.kind) {
        captured.iter().for_each(|entry| search.text(entry.value.as_text(), &entry.value.span, &sort));
    }
    if let Some(Kind::Map(wanted)) = look.get("of").and_then(|of| of.get("fields")).map(|node| &node.kind) {
        wanted.iter().for_each(|entry| search.text(Some(&entry.key), &entry.key_span, &sort));
    }
}

/// A search through what is said of objects of one kind. A trail is where something stands, `status.conditions`; elements of
/// a list stand at `status.conditions[]`.
struct Search<'s> {
    kind: &'s str,
    found: &'s mut Vec<Mistake>,
}

impl Search<'_> {
    /// A pattern of something of that sort, which stands at `trail`.
    fn pattern(&mut self, node: &Node, sort: &Sort, trail: &str) {
        if let Some(clash) = clash(node, sort) {
            return self.never(&node.span, sort, trail, clash);
        }
        match &node.kind {
            Kind::Map(entries) => {
                if let Some(mistake) = contradiction(node) {
                    self.found.push(mistake);
                }
                for entry in entries {
                    if entry.key.starts_with('$') && !entry.key.starts_with("${") {
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
                    items.iter().for_each(|item| self.pattern(item, inner, &format!("{trail}[]")));
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
        }
    }

    fn operator(&mut self, operator: &str, value: &Node, sort: &Sort, trail: &str) {
        if let Some(clash) = operator_clash(operator, value, sort) {
            return self.never(&value.span, sort, trail, clash);
        }
        match (operator, sort, &value.kind) {
            ("$not" | "$eq", _, _) => self.pattern(value, sort, trail),
            ("$oneOf", _, Kind::List(ways)) => ways.iter().for_each(|way| self.pattern(way, sort, trail)),
            ("$any" | "$all" | "$none", Sort::List(inner), _) => {
                self.pattern(value, inner, &format!("{trail}[]"));
            }
            ("$byKey", Sort::List(inner), Kind::Map(keys)) => {
                for key in keys {
                    self.step(&key.key, &key.key_span, inner, trail, false);
                    if let Kind::Map(elements) = &key.value.kind {
                        let trail = format!("{trail}[]");
                        elements.iter().for_each(|element| self.pattern(&element.value, inner, &trail));
                    }
                }
            }
            _ => {}
        }
    }

    /// Notes that what stands at `trail` is never so.
    fn never(&mut self, span: &Range<usize>, sort: &Sort, trail: &str, clash: Clash) {
        let message = format!("{}, {}", self.told(sort, trail), clash.never);
        self.found.push(Mistake::new(span.clone(), message).remedy(clash.remedy));
    }

    /// What stands at `trail`: `status.phase` is a text in objects of kind Pod.
    fn told(&self, sort: &Sort, trail: &str) -> String {
        let (is, kind) = (is(sort).unwrap_or("anything"), self.kind);
        match trail.strip_suffix("[]") {
            _ if trail.is_empty() => format!("an object of kind {kind} is {is}"),
            Some(list) => {
                format!("an element of `{}` is {is} in objects of kind {kind}", list.replace("[]", ""))
            }
            None => format!("`{}` is {is} in objects of kind {kind}", trail.replace("[]", "")),
        }
    }

    fn text(&mut self, text: Option<&str>, span: &Range<usize>, sort: &Sort) {
        if let Some(path) = text.and_then(|text| Path::parse(text).ok()) {
            self.path(&path, span, sort);
        }
    }

    fn path(&mut self, path: &Path, span: &Range<usize>, sort: &Sort) {
        let (mut sort, mut trail) = (sort.clone(), String::new());
        for segment in path.segments() {
            let next = match segment {
                Segment::Key(key) => self.step(key, span, &sort, &trail, false),
                Segment::Index(_) => self.elements(span, &sort, &trail),
                Segment::Where(pairs) => self.elements(span, &sort, &trail).map(|(inner, trail)| {
                    for (key, _) in pairs {
                        self.step(key, span, &inner, &trail, false);
                    }
                    (inner, trail)
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
        let already = self.found.len();
        for way in condition.trails() {
            let (mut sort, mut trail) = (sort.clone(), String::new());
            for step in &way.steps {
                let next = match (step, &sort) {
                    (Down::Field(key), _) => self.step(key, &node.span, &sort, &trail, false),
                    (Down::Element, Sort::List(inner)) => Some(((**inner).clone(), format!("{trail}[]"))),
                    // Keys that are known only when it is evaluated.
                    (Down::Element | Down::Gathered, _) => None,
                };
                let Some(next) = next else { break };
                (sort, trail) = next;
            }
        }
        // Two ways may come by the same wrong field.
        let mut told = self.found.split_off(already);
        told.dedup();
        self.found.append(&mut told);
    }

    /// What the elements of something of that sort are. Notes what is no list.
    fn elements(&mut self, span: &Range<usize>, sort: &Sort, trail: &str) -> Option<(Sort, String)> {
        if let Sort::List(inner) = sort {
            return Some(((**inner).clone(), format!("{trail}[]")));
        }
        is(sort)?;
        let message = format!("{}, and has no elements", self.told(sort, trail));
        let remedy = "leave the brackets out; a name in brackets stands in quotes: [\"…\"]";
        self.found.push(Mistake::new(span.clone(), message).remedy(remedy));
        None
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
        let known = match sort {
            Sort::Of(name) => fields::fields(name)?,
            Sort::Map(inner) => return Some(((**inner).clone(), below(trail, key))),
            Sort::Plain => return None,
            Sort::Text | Sort::Number | Sort::Boolean | Sort::List(_) => {
                if !key.contains("${") {
                    let message = format!("{}, and has no field `{key}`", self.told(sort, trail));
                    let remedy = if matches!(sort, Sort::List(_)) {
                        "choose elements first: [0] or [type=Ready] in a path; [0] or exists(c, …) in CEL"
                    } else {
                        "end with that field"
                    };
                    self.found.push(Mistake::new(span.clone(), message).remedy(remedy));
                }
                return None;
            }
        };
        let trail = below(trail, key);
        if let Some(sort) = known.get(key) {
            return Some((sort.clone(), trail));
        }
        let names: Vec<&str> = known.keys().copied().collect();
        let meant_so = key.contains("${") || absent && nearest(key, names.iter().copied()).is_none();
        if !meant_so {
            let shown = trail.replace("[]", "");
            let message = format!("no {} has a field `{shown}`, so nothing is ever seen of it", self.kind);
            self.found.push(Mistake::new(span.clone(), message).remedy(suggestion(key, &names)));
        }
        None
    }
}

/// Where a key of what stands at `trail` is.
fn below(trail: &str, key: &str) -> String {
    if trail.is_empty() { key.to_owned() } else { format!("{trail}.{key}") }
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
            "parallel: [{never: {of: {kind: Pod}, match: {status: {phasee: Failed}}, for: 5s}}]",
            &[&format!("phasee: {phase}")],
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
    fn fields_are_found_behind_indices_and_in_macros_of_cel() {
        for (condition, field, near) in [
            (
                "object.status.containerStatuses[0].statee.running != null",
                "status.containerStatuses.statee",
                "state",
            ),
            ("object.status.conditions.exists(c, c.typ == 'Ready')", "status.conditions.typ", "type"),
            ("object.status.conditions.all(c, c.typ != 'Ready')", "status.conditions.typ", "type"),
            ("object.status.conditions.exists_one(c, c.typ == 'Ready')", "status.conditions.typ", "type"),
            (
                "size(object.status.conditions.filter(c, c.typ == 'Ready')) > 0",
                "status.conditions.typ",
                "type",
            ),
            (
                "object.status.conditions.filter(c, c.type == 'x')[0].statuss == 'x'",
                "status.conditions.statuss",
                "status",
            ),
            ("size(object.status.conditions.map(c, c.typ)) > 0", "status.conditions.typ", "type"),
            ("object['status']['phasee'] == 'x'", "status.phasee", "phase"),
            ("object.?status.?phasee.orValue('x') == 'x'", "status.phasee", "phase"),
            (
                "object.spec.containers.exists(c, c.ports.exists(p, p.hostPrt == 1 && c.name != ''))",
                "spec.containers.ports.hostPrt",
                "hostPort",
            ),
        ] {
            check(
                &format!("never: {{of: {{kind: Pod}}, cel: \"{condition}\", for: 5s}}"),
                &[&format!(
                    "\"{condition}\": no Pod has a field `{field}`, so nothing is ever seen of it; did you mean `{near}`?"
                )],
            );
        }
        let list = "`status.conditions` is a list in objects of kind Pod, and has no field `type`; choose elements first: [0] or [type=Ready] in a path; [0] or exists(c, …) in CEL";
        check(
            "never: {of: {kind: Pod}, cel: object.status.conditions.type == 'Ready', for: 5s}",
            &[&format!("object.status.conditions.type == 'Ready': {list}")],
        );
        check(
            "unchanged: {of: {kind: Pod, name: p}, field: status.conditions.type, for: 5s}",
            &[&format!("status.conditions.type: {list}")],
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
            "expect: {of: {kind: Pod}, cel: \"object.spec.containers.exists(c, c.resources.limits['memory'] == '1Mi')\"}",
            "expect: {of: {kind: Pod}, cel: \"object.metadata.labels.exists(k, k.startsWith('x')) && object.metadata.labels[key] == x\"}",
            "expect: {of: {kind: Pod}, cel: \"timestamp(object.status.startTime).getFullYear() > 2000\"}",
            "expect: {of: {kind: Service, apiVersion: example.com/v1, plural: services}, match: {spec: {own: 1}}}",
            "expect: {of: {kind: Lease}, match: {spec: {renewTime: {$is: present}}}}",
            "expect: {of: {kind: Secret}, match: {data: {key: dmFsdWU=}}}",
            "expect: {request: {match: {phasee: x}}}",
            "create: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}, spce: {}}}",
        ] {
            check(step, &[]);
        }
    }
}
