//! Opening mappings of known keys: each key that is wrong is told once, and read as if it were right where it can be.

use std::collections::BTreeSet;

use super::Reader;
use super::remedy::{as_mapping, lower_first, quoted};
use crate::borrowed::meant_key;
use crate::mistake::{nearest, suggestion};
use crate::shape::{FieldType, Shape};
use crate::yaml::{Entry, Kind, Node};

/// The parts of a file, whose keys are found at its margin where somebody forgot to indent them.
const PARTS: [&str; 2] = ["metadata", "spec"];

/// An opened mapping: its keys are known to be in its shape.
pub(crate) struct Fields<'a> {
    entries: &'a [Entry],
    shape: &'static Shape,
    /// Keys that are missing, each with the unknown one that was meant: told already, and read as if it were right.
    meant: Vec<(&'static str, &'a Entry)>,
    /// Keys whose values stand in the wrong place, which was told.
    hidden: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// The value of a key of the shape.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(
            self.shape.fields.iter().any(|field| field.key == key),
            "{} has no {key}",
            self.shape.name
        );
        if self.hidden.contains(&key) {
            return None;
        }
        let entry = self.entries.iter().find(|entry| entry.key == key);
        let meant = || self.meant.iter().find(|(meant, _)| *meant == key).map(|(_, entry)| *entry);
        entry.or_else(meant).map(|entry| &entry.value)
    }
}

impl Reader<'_> {
    /// Opens a mapping: notes unknown keys, missing keys and broken groups. What is there can be read even so.
    pub fn open<'n>(&mut self, node: &'n Node, shape: &'static Shape) -> Option<Fields<'n>> {
        let Kind::Map(entries) = &node.kind else {
            self.wrong(
                &node.span,
                format!("{} must be a mapping, not {}", shape.name, node.describe()),
                as_mapping(node, shape),
            );
            return None;
        };
        let keys = shape.keys();
        let there: BTreeSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let missing: Vec<&'static str> = keys.iter().copied().filter(|key| !there.contains(key)).collect();
        let mut unknown: Vec<&Entry> =
            entries.iter().filter(|entry| !keys.contains(&entry.key.as_str())).collect();
        let hidden = self.take_beside(entries, shape, &mut unknown);
        let mut meant: Vec<(&'static str, &'n Entry)> = Vec::new();
        let mut strange: Option<usize> = None;
        let mut told: Vec<&'static str> = Vec::new();
        for entry in unknown {
            if self.is_full() {
                break;
            }
            let borrowed = meant_key(shape.name, &keys, &entry.key);
            let free = missing.iter().copied().filter(|key| !meant.iter().any(|(meant, _)| meant == key));
            let near = match borrowed {
                Some((key, _)) => key.filter(|key| free.into_iter().any(|free| free == *key)),
                None => nearest(&entry.key, free),
            };
            if let Some((_, remedy)) = borrowed {
                // Several keys of one object that stands in the wrong place are one mistake.
                if told.contains(&remedy) {
                    continue;
                }
                told.push(remedy);
            }
            match near {
                Some(key) => meant.push((key, entry)),
                None => strange = strange.or(Some(self.mistakes.len())),
            }
            let remedy =
                borrowed.map_or_else(|| suggestion(&entry.key, &keys), |(_, remedy)| (*remedy).to_owned());
            self.wrong(&entry.key_span, format!("{} has no key `{}`", shape.name, entry.key), remedy);
        }
        let has = |key: &str| there.contains(key) || meant.iter().any(|(meant, _)| *meant == key);
        let mut lacks: Vec<String> = Vec::new();
        for field in shape.fields {
            if field.required && !has(field.key) {
                lacks.push(format!("`{}`", field.key));
                if strange.is_none() {
                    self.wrong(
                        &self.head_of(node),
                        format!("{} needs the key `{}`", shape.name, field.key),
                        format!("add `{}`: {}", field.key, lower_first(field.about)),
                    );
                }
            }
        }
        for group in shape.exactly_one {
            let present: Vec<&str> = group.iter().copied().filter(|key| has(key)).collect();
            if present.is_empty() {
                let one = quoted(group, ", ");
                let one = if group.len() == 1 { one } else { format!("one of {one}") };
                if strange.is_none() {
                    let remedy = if group.len() == 1 { "add it" } else { "add the one that is meant" };
                    self.wrong(&self.head_of(node), format!("{} needs {one}", shape.name), remedy);
                }
                lacks.push(one);
            } else if present.len() > 1 {
                self.exclusive(node, shape, &present);
            }
        }
        // A key that nobody knows was most likely meant for one that is missing: that is one mistake.
        if let Some(mistake) = strange.and_then(|index| self.mistakes.get_mut(index))
            && !lacks.is_empty()
            && let Some(remedy) = &mut mistake.remedy
        {
            remedy.push_str(&format!(
                "; missing {} {}",
                if lacks.len() == 1 { "is" } else { "are" },
                lacks.join(", ")
            ));
        }
        for group in shape.at_most_one {
            let present: Vec<&str> = group.iter().copied().filter(|key| has(key)).collect();
            if present.len() > 1 {
                self.exclusive(node, shape, &present);
            }
        }
        Some(Fields { entries, shape, meant, hidden })
    }

    /// Tells once of keys that stand beside the one that they belong to, and takes them out of `unknown`. That one is empty, or a
    /// part of the file (`spec`) that has none of them. Returns the keys of which nothing more is to be said.
    fn take_beside(
        &mut self,
        entries: &[Entry],
        shape: &'static Shape,
        unknown: &mut Vec<&Entry>,
    ) -> Vec<&'static str> {
        let mut hidden = Vec::new();
        for field in shape.fields {
            let FieldType::Shape(inner) = field.value else { continue };
            let Some(holder) = entries.iter().find(|entry| entry.key == field.key) else { continue };
            let keys = inner.keys();
            let (beside, rest): (Vec<&Entry>, Vec<&Entry>) =
                unknown.iter().partition(|entry| keys.contains(&entry.key.as_str()));
            let Some(first) = beside.first() else { continue };
            let outside = match &holder.value.kind {
                Kind::Null => true,
                Kind::Map(_) if PARTS.contains(&field.key) => {
                    beside.iter().all(|entry| holder.value.get(&entry.key).is_none())
                }
                Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => false,
            };
            if !outside {
                continue;
            }
            let names: Vec<&str> = beside.iter().map(|entry| entry.key.as_str()).collect();
            let stand = if names.len() == 1 { "stands" } else { "stand" };
            self.wrong(
                &first.key_span,
                format!("{} {stand} beside `{}` and not inside of it", quoted(&names, ", "), field.key),
                "indent what belongs to it by two blanks more",
            );
            *unknown = rest;
            hidden.push(field.key);
        }
        hidden
    }

    /// Notes keys that exclude each other.
    fn exclusive(&mut self, node: &Node, shape: &Shape, present: &[&str]) {
        self.wrong(
            &self.head_of(node),
            format!("{} has {}, which exclude each other", shape.name, quoted(present, " and ")),
            "keep one of them",
        );
    }
}
