//! Names that a scenario gives and never uses.

use rigor_model::mistake::Mistake;
use rigor_model::template::names;
use rigor_model::yaml::{Kind, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Names that are given and never used: instants, captured values, columns of a table, names of `forEach`.
pub(super) fn unused(source: &str, root: &Node) -> Vec<Mistake> {
    let mut given = Vec::new();
    let spec = root.get("spec");
    for section in ["setup", "steps", "cleanup"] {
        if let Some(list) = spec.and_then(|spec| spec.get(section)) {
            names_of_steps(list, &mut given);
        }
    }
    if let Some(Kind::Map(rows)) = spec.and_then(|spec| spec.get("cases")).map(|cases| &cases.kind)
        && let Some(Kind::Map(cells)) = rows.first().map(|row| &row.value.kind)
    {
        given
            .extend(cells.iter().map(|cell| Given::Value("column", cell.key.clone(), cell.key_span.clone())));
    }
    let words = words(source);
    let named: BTreeSet<&str> = names(source).into_iter().collect();
    let mut conditions = Vec::new();
    cel(root, &mut conditions);
    let in_cel: BTreeSet<&str> = conditions.iter().flat_map(|text| text.split(no_word)).collect();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &given {
        if let Given::Instant(name, _) = one {
            *times.entry(name).or_default() += 1;
        }
    }
    let mut list = Vec::new();
    for one in &given {
        match one {
            Given::Value(what, name, span) => {
                if !named.contains(name.as_str()) && !in_cel.contains(name.as_str()) {
                    list.push(
                        Mistake::new(span.clone(), format!("the {what} `{name}` is never used"))
                            .remedy(format!("write ${{{name}}} where it belongs, or leave it out")),
                    );
                }
            }
            Given::Instant(name, span) => {
                if words.get(name.as_str()) <= times.get(name.as_str()) {
                    list.push(
                        Mistake::new(span.clone(), format!("the instant `{name}` is never used"))
                            .remedy("leave `as` out, or refer to it in a window or an order"),
                    );
                }
            }
        }
    }
    list
}

/// A name that a scenario gives.
enum Given {
    /// By `as`.
    Instant(String, Range<usize>),
    /// A value for `${…}`, and what it is called.
    Value(&'static str, String, Range<usize>),
}

fn names_of_steps(list: &Node, given: &mut Vec<Given>) {
    let Kind::List(steps) = &list.kind else { return };
    for step in steps {
        if let Some(name) = step.get("as")
            && let Some(text) = name.as_text()
        {
            given.push(Given::Instant(text.to_owned(), name.span.clone()));
        }
        if let Some(Kind::Map(fields)) =
            step.get("capture").and_then(|capture| capture.get("fields")).map(|node| &node.kind)
        {
            let fields = fields.iter();
            given.extend(
                fields.map(|one| Given::Value("captured value", one.key.clone(), one.key_span.clone())),
            );
        }
        if let Some(name) = step.get("forEach").and_then(|each| each.get("name"))
            && let Some(text) = name.as_text()
        {
            given.push(Given::Value("value", text.to_owned(), name.span.clone()));
        }
        for holder in ["repeat", "forEach"] {
            if let Some(inner) = step.get(holder).and_then(|holder| holder.get("steps")) {
                names_of_steps(inner, given);
            }
        }
        if let Some(inner) = step.get("parallel") {
            names_of_steps(inner, given);
        }
    }
}

/// The texts of all conditions in CEL, where captured values stand by their names alone.
fn cel<'n>(node: &'n Node, found: &mut Vec<&'n str>) {
    match &node.kind {
        Kind::Map(entries) => {
            for entry in entries {
                found.extend(entry.value.as_text().filter(|_| entry.key == "cel"));
                cel(&entry.value, found);
            }
        }
        Kind::List(items) => items.iter().for_each(|item| cel(item, found)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
    }
}

fn no_word(sign: char) -> bool {
    !sign.is_ascii_alphanumeric()
}

/// How often each word stands in a source outside of its comments' lines.
fn words(source: &str) -> BTreeMap<&str, usize> {
    let lines = source.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut words = BTreeMap::new();
    for word in lines.flat_map(|line| line.split(no_word)) {
        *words.entry(word).or_default() += 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::yaml;

    fn check(steps: &str, expected: &[&str]) {
        let source = format!("spec:\n  steps:\n{steps}");
        let root = yaml::parse_one(&source, &mut Vec::new()).expect(steps);
        let told: Vec<String> = unused(&source, &root).into_iter().map(|mistake| mistake.message).collect();
        assert_eq!(told, expected, "{steps}");
    }

    #[test]
    fn what_is_given_is_used_somewhere() {
        let capture = "    - capture: {of: {kind: Pod, name: p}, fields: {ip: status.podIP}}\n";
        check(capture, &["the captured value `ip` is never used"]);
        check(&format!("{capture}    - delete: {{kind: Pod, name: \"p-${{ip}}\"}}\n"), &[]);
        check(
            &format!(
                "{capture}    - always: {{of: {{kind: Pod}}, cel: object.status.podIP == ip, for: 5s}}\n"
            ),
            &[],
        );
        check(&format!("{capture}    - wait: 5s # ip\n"), &["the captured value `ip` is never used"]);
        let act = "    - wait: 1s\n      as: gone\n";
        check(act, &["the instant `gone` is never used"]);
        check(&format!("{act}    - wait: gone + 1s\n"), &[]);
        check(&format!("{act}{act}"), &["the instant `gone` is never used"; 2]);
    }
}
