//! Reading of `metadata`: the name, and the requirements it cites.

use super::{Head, METADATA};
use crate::catalogue::{Catalogue, Profile};
use crate::letters::hyphened;
use crate::reader::{Reader, word};
use crate::yaml::{Kind, Node};

pub(super) fn read_head(reader: &mut Reader<'_>, node: &Node, catalogue: Option<&Catalogue>) -> Option<Head> {
    let fields = reader.open(node, &METADATA)?;
    let name = fields.get("name").and_then(|node| read_name(reader, node));
    let profile = fields.get("profile").and_then(|node| word(reader, node, &Profile::ALL, Profile::name));
    let ids = fields.get("requirements");
    let items = ids.map_or(&[][..], |ids| reader.list(ids));
    if let Some(ids) = ids
        && matches!(ids.kind, Kind::List(_))
        && !(1..=5).contains(&items.len())
    {
        let remedy = if items.is_empty() {
            "cite at least one requirement of the catalogue"
        } else {
            "cite at most five; more is two scenarios"
        };
        reader.wrong(&ids.span, format!("{} requirements are cited", items.len()), remedy);
    }
    let mut requirements: Vec<String> = Vec::new();
    for item in items {
        if reader.is_full() {
            break;
        }
        let Some(id) = reader.text(item) else { continue };
        if requirements.contains(&id) {
            reader.wrong(&item.span, format!("{id} is cited twice"), "once is enough");
        }
        if let Some(catalogue) = catalogue {
            check_requirement(reader, item, &id, profile, catalogue);
        }
        requirements.push(id);
    }
    let mut texts = |key| match fields.get(key) {
        Some(node) => reader.list(node).iter().filter_map(|item| reader.text(item)).collect(),
        None => Vec::new(),
    };
    let (tags, cases): (Vec<String>, Vec<String>) = (texts("tags"), texts("cases"));
    if let Some(node) = fields.get("cases") {
        for item in reader.list(node) {
            let _ = read_name(reader, item);
        }
    }
    let description = fields.get("description").and_then(|node| reader.text(node));
    Some(Head { name: name?, cases, requirements, profile: profile?, tags, description })
}

pub(crate) fn read_name(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let name = reader.text(node)?;
    if !is_name(&name) {
        let right = hyphened(&name);
        let rule = "names are lower-case letters (a to z), digits and hyphens, at most 63";
        let remedy = if is_name(&right) { format!("write {right}: {rule}") } else { rule.to_owned() };
        reader.wrong(&node.span, format!("`{name}` cannot be a name"), remedy);
        return None;
    }
    Some(name)
}

fn check_requirement(
    reader: &mut Reader<'_>,
    node: &Node,
    id: &str,
    profile: Option<Profile>,
    catalogue: &Catalogue,
) {
    let Some(requirement) = catalogue.get(id) else {
        let mut near: Vec<&str> = catalogue.iter().map(|row| row.id.as_str()).collect();
        let remedy = match crate::mistake::nearest(id, near.iter().copied()) {
            Some(candidate) => format!("did you mean {candidate}?"),
            None => {
                let area = id.split('-').next().unwrap_or_default();
                near.retain(|candidate| candidate.starts_with(area) && !area.is_empty());
                if near.is_empty() {
                    "ids stand in suites/requirements.yaml".to_owned()
                } else {
                    format!("known are {}", near.join(", "))
                }
            }
        };
        reader.wrong(&node.span, format!("no requirement is called {id}"), remedy);
        return;
    };
    if let Some(profile) = profile
        && !profile.suits(requirement.profile)
    {
        reader.wrong(
            &node.span,
            format!(
                "{id} is a requirement of the profile {}, and the scenario's is {}",
                requirement.profile.name(),
                profile.name()
            ),
            format!("write profile: {}, or cite another requirement", requirement.profile.name()),
        );
    }
}

/// Whether a text is lower-case letters, digits and hyphens, at most 63.
fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && !text.ends_with('-')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
