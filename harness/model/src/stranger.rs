//! Files that are something else altogether: a manifest, a list of steps, a text. What is wrong with each of their keys
//! would say nothing, so one mistake says what they are.

use crate::borrowed::meant_key;
use crate::kinds::ObjectKind;
use crate::mistake::{Mistake, nearest};
use crate::verbs::Verb;
use crate::yaml::{Kind, Node};

/// The kinds of files that people write for us.
const OURS: [&str; 4] = ["Scenario", "Rig", "Fragment", "Limitations"];

const KEYS: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

/// What a file is, where it is certainly no `wanted`.
pub(crate) fn stranger(root: &Node, wanted: &'static str) -> Option<Mistake> {
    let begin = root.span.start..root.span.start;
    let begins = format!("one begins with apiVersion: rigor.dev/v1alpha1 and kind: {wanted}");
    let Kind::Map(entries) = &root.kind else {
        let steps = matches!(&root.kind, Kind::List(items) if items.iter().any(is_step));
        return Some(if steps && matches!(wanted, "Scenario" | "Fragment") {
            Mistake::new(begin, format!("these are steps without the rest of a {wanted}"))
                .remedy("put them under spec.steps; `rigor new` writes what belongs around them")
        } else {
            Mistake::new(begin, format!("this is {}, not a {wanted}", root.describe())).remedy(begins)
        });
    };
    let version = root.get("apiVersion").and_then(Node::as_text);
    let kind_node = root.get("kind");
    let is_ours = version.is_none_or(|version| version.starts_with("rigor.dev/"));
    if let Some((node, kind)) = kind_node.and_then(|node| Some((node, node.as_text()?))) {
        if nearest(kind, [wanted]).is_some() {
            return None;
        }
        if is_ours && OURS.contains(&kind) {
            return Some(
                Mistake::new(node.span.clone(), format!("this is a {kind}, not a {wanted}"))
                    .remedy(place_of(kind)),
            );
        }
        let known = ObjectKind::named(kind).is_some();
        if !is_ours || version.is_none() && known {
            let what = if known || kind == "List" {
                format!("a {kind} manifest")
            } else {
                format!("a {kind} of {}", version.unwrap_or("another program"))
            };
            let remedy = if kind == "List" {
                format!("write its items as documents of a file, for a step `apply: {{file: …}}`; {begins}")
            } else if wanted == "Scenario" {
                format!("a step sends objects, `apply: {{file: …}}` or `apply: {{manifest: …}}`; {begins}")
            } else {
                begins
            };
            return Some(
                Mistake::new(node.span.clone(), format!("this is {what}, not a {wanted}")).remedy(remedy),
            );
        }
    }
    let is_meant = |key: &str| nearest(key, KEYS).is_some() || meant_key(wanted, &KEYS, key).is_some();
    let meant = entries.iter().filter(|entry| is_meant(&entry.key)).count();
    let whole = entries.iter().all(|entry| is_meant(&entry.key));
    if meant >= 2 || (whole && meant > 0) {
        return None;
    }
    let span = entries.first().map_or(begin, |entry| entry.key_span.clone());
    Some(
        Mistake::new(span, format!("this is no {wanted}: it has none of {}", KEYS.join(", "))).remedy(begins),
    )
}

/// Whether an item could be a step.
fn is_step(item: &Node) -> bool {
    matches!(&item.kind, Kind::Map(entries) if entries.iter().any(|entry| Verb::named(&entry.key).is_some()))
}

/// Where one of our files is used.
fn place_of(kind: &str) -> &'static str {
    match kind {
        "Rig" => "a rig is chosen with --rig, and linted by the name of its file",
        "Fragment" => "a step puts it in: `include: {file: …}`",
        "Limitations" => "a rig names it under spec.limitations, a run with --limitations",
        _ => "a scenario is run by the name of its file: rigor run FILE",
    }
}
