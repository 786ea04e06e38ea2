//! Reading of what stands beside the steps: table, rig, constants.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::{CONTROL_PLANE, FAULTS, Head, RIG};
use crate::capability::Capability;
use crate::constants::Constant;
use crate::faults::{FAULT_NAMES, FaultName, Withheld};
use crate::mistake::{place, suggestion};
use crate::quantity::Quantity;
use crate::reader::{Fields, Reader, word};
use crate::template;
use crate::yaml::{Entry, Kind, Node};

/// The rows of a table as static values; one row without values if there is no table.
pub(super) fn read_rows(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    head: Option<&Head>,
    boards: &[String],
    table: Option<&Node>,
) -> Vec<(Option<String>, BTreeMap<String, Value>)> {
    let names: &[String] = head.map_or(&[], |head| &head.cases);
    let Some(table) = table else {
        if !names.is_empty()
            && let Some(steps) = fields.get("steps")
        {
            reader.wrong(
                &steps.span,
                "metadata.cases names rows, and there is no table",
                "add spec.cases with a row for each",
            );
        }
        return vec![(None, BTreeMap::new())];
    };
    let entries = reader.map(table);
    for name in names {
        if !entries.iter().any(|entry| &entry.key == name) {
            reader.wrong(
                &table.span,
                format!("the table has no row `{name}`"),
                "metadata.cases and spec.cases have the same names",
            );
        }
    }
    if let (Kind::Map(_), []) = (&table.kind, entries) {
        let remedy = "write a row for each case, `first: {limit: 5s}`, and its name in metadata.cases; or leave both out";
        reader.wrong(&table.span, "the table has no rows, so there is nothing to run", remedy);
        return vec![(None, BTreeMap::new())];
    }
    let mut rows = Vec::new();
    let mut keys: Option<BTreeSet<&str>> = None;
    let mut first: BTreeMap<String, Value> = BTreeMap::new();
    for entry in entries {
        if head.is_some() && !names.contains(&entry.key) {
            reader.wrong(
                &entry.key_span,
                format!("metadata.cases does not name the row `{}`", entry.key),
                "metadata.cases and spec.cases have the same names",
            );
        }
        let cells = reader.map(&entry.value);
        if keys.is_none() {
            cells.iter().for_each(|cell| check_column(reader, cell, boards));
        }
        let found: BTreeSet<&str> = cells.iter().map(|cell| cell.key.as_str()).collect();
        match &keys {
            Some(keys) if *keys != found => {
                let keys: Vec<&str> = keys.iter().copied().collect();
                reader.wrong(
                    &entry.key_span,
                    format!("the row `{}` has other keys than the first", entry.key),
                    format!("each row has {}", keys.join(", ")),
                );
            }
            Some(_) => {}
            None => keys = Some(found),
        }
        let mut values: BTreeMap<String, Value> =
            cells.iter().map(|cell| (cell.key.clone(), cell.value.to_value())).collect();
        // What a row lacks was told; it is not told again wherever it is used.
        for (key, value) in &first {
            values.entry(key.clone()).or_insert_with(|| value.clone());
        }
        if first.is_empty() {
            first = values.clone();
        }
        values.insert("case".to_owned(), json!(entry.key));
        rows.push((Some(entry.key.clone()), values));
    }
    rows
}

/// Notes a column whose name means something already: `${NAME}` would be the cell, and no longer that.
fn check_column(reader: &mut Reader<'_>, cell: &Entry, boards: &[String]) {
    let name = cell.key.as_str();
    let what = match name {
        "namespace" => "the trial's namespace",
        "case" => "the row's name",
        "round" => "the round of a `repeat`",
        _ if boards.iter().any(|board| board == name) => "a board",
        _ if Constant::named(name).is_some() => "a constant",
        _ => return,
    };
    let message = format!("a column cannot be called `{name}`: that is {what}");
    reader.wrong(
        &cell.key_span,
        message,
        "use another name in all rows, and in the `${…}` that mean the column",
    );
}

/// Says of mistakes from `told` on, where nothing but a cell of the row stands, which cell that is.
pub(super) fn tell_cells(reader: &mut Reader<'_>, told: usize, case: &str, cells: &Node) {
    let source = reader.source();
    for mistake in reader.mistakes.iter_mut().skip(told) {
        let written = source.get(mistake.span.clone()).unwrap_or_default();
        let column = template::whole(written.trim_matches(['"', '\'']));
        if let Some((column, cell)) = column.and_then(|column| Some((column, cells.get(column)?))) {
            let (line, _) = place(source, cell.span.start);
            mistake.message += &format!(" (`{column}` of the row `{case}`, line {line})");
        }
    }
}

/// Flags of the control plane. What stands in a table's row is filled in.
pub(super) fn read_flags(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    values: &BTreeMap<String, Value>,
) -> Vec<String> {
    let Some(node) = node.map(|node| node.with_values(values)) else { return Vec::new() };
    let Some(fields) = reader.open(&node, &CONTROL_PLANE) else { return Vec::new() };
    let items = fields.get("flags").map_or(&[][..], |node| reader.list(node));
    let mut flags = Vec::new();
    for item in items {
        let Some(flag) = reader.text(item) else { continue };
        if !flag.starts_with("--") || flag.len() < 3 || flag.contains(char::is_whitespace) {
            let message = format!("`{flag}` is no flag with its value");
            reader.wrong(&item.span, message, "write --NAME=VALUE or --NAME, each an item of its own");
        }
        flags.push(flag);
    }
    flags
}

/// Faults that do not strike. None where a mistake leaves no kind over.
pub(super) fn read_withheld(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Withheld> {
    let fields = reader.open(node?, &FAULTS)?;
    let mut kinds = BTreeSet::new();
    if let Some(node) = fields.get("without") {
        let items = reader.list(node);
        if items.is_empty() && matches!(node.kind, Kind::List(_)) {
            let remedy = format!("name some of {}, or leave faults out", FAULT_NAMES.join(", "));
            reader.wrong(&node.span, "no kind of fault is named", remedy);
        }
        for item in items {
            let Some(kind) = word(reader, item, &FaultName::ALL, FaultName::name) else { continue };
            if !kinds.insert(kind) {
                reader.wrong(&item.span, format!("{} is named twice", kind.name()), "once is enough");
            }
        }
    }
    let node = fields.get("because")?;
    let because = reader.text(node)?;
    if because.trim().is_empty() {
        let remedy = "say in one sentence what the scenario says that does not hold with these faults";
        reader.wrong(&node.span, "the reason is empty", remedy);
    }
    (!kinds.is_empty()).then(|| Withheld { kinds, because: because.trim().to_owned() })
}

/// What a scenario says of the rig.
#[derive(Debug, Default)]
pub(super) struct RigPart {
    /// Names of its boards, in order.
    pub(super) boards: Vec<String>,
    /// Bytes of PSRAM, by board.
    pub(super) psram: BTreeMap<String, u32>,
    /// What the rig must offer for that, and what it must offer besides.
    pub(super) needs: BTreeSet<Capability>,
}

pub(super) fn read_rig(reader: &mut Reader<'_>, node: Option<&Node>) -> RigPart {
    let Some(fields) = node.and_then(|node| reader.open(node, &RIG)) else {
        return RigPart::default();
    };
    // Where the number is wrong, any board may be meant.
    let count = fields.get("boards").map_or(0, |node| read_boards(reader, node).unwrap_or(26));
    let boards: Vec<String> = ('a'..='z').take(count as usize).map(String::from).collect();
    let psram = fields.get("psram").map(|node| read_psram(reader, node, &boards)).unwrap_or_default();
    let mut needs = read_capabilities(reader, fields.get("needs"));
    needs.extend((!psram.is_empty()).then_some(Capability::Psram));
    RigPart { boards, psram, needs }
}

/// PSRAM by board. Zero is a figure, too: that of a board without any on a rig whose boards have some.
fn read_psram(reader: &mut Reader<'_>, node: &Node, boards: &[String]) -> BTreeMap<String, u32> {
    let mut psram = BTreeMap::new();
    for entry in reader.map(node) {
        if !boards.contains(&entry.key) {
            let remedy = match boards {
                [] => "say with `boards` how many boards there are".to_owned(),
                _ => format!("its boards are {}; `boards` says how many", boards.join(", ")),
            };
            reader.wrong(&entry.key_span, format!("the scenario has no board `{}`", entry.key), remedy);
        }
        let bytes = Quantity::read(&entry.value.to_value()).and_then(Quantity::whole);
        match bytes.and_then(|bytes| u32::try_from(bytes).ok()) {
            Some(bytes) => {
                psram.insert(entry.key.clone(), bytes);
            }
            None => reader.wrong(
                &entry.value.span,
                format!("{} is no whole number of bytes below 4Gi", entry.value.describe()),
                "write for example 2Mi",
            ),
        }
    }
    psram
}

/// How many boards; they are as many as there are letters.
fn read_boards(reader: &mut Reader<'_>, node: &Node) -> Option<u32> {
    let remedy = match &node.kind {
        Kind::Number(number) if number.as_u64().is_some_and(|number| number > 26) => {
            let message = format!("{number} boards are more than there are letters to call them by");
            reader.wrong(&node.span, message, "write a number from 0 to 26");
            return None;
        }
        Kind::List(items) => format!("write boards: {}; they are called a, b, c … in order", items.len()),
        Kind::Map(entries) => format!("write boards: {}; they are called a, b, c … in order", entries.len()),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => return reader.whole(node, 0..=26),
    };
    reader.wrong(&node.span, format!("the number of boards belongs here, not {}", node.describe()), remedy);
    None
}

pub(crate) fn read_capabilities(reader: &mut Reader<'_>, node: Option<&Node>) -> BTreeSet<Capability> {
    let Some(node) = node else { return BTreeSet::new() };
    reader
        .list(node)
        .iter()
        .filter_map(|item| word(reader, item, &Capability::ALL, Capability::name))
        .collect()
}

/// Constants by name. A scenario may not change the slack, which is the observer's.
pub(crate) fn read_constants(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    scenario: bool,
) -> BTreeMap<Constant, Duration> {
    let mut constants = BTreeMap::new();
    let Some(node) = node else { return constants };
    for entry in reader.map(node) {
        if reader.is_full() {
            break;
        }
        let Some(constant) = Constant::named(&entry.key) else {
            let known = Constant::ALL.map(Constant::name);
            reader.wrong(
                &entry.key_span,
                format!("there is no constant `{}`", entry.key),
                suggestion(&entry.key, &known),
            );
            continue;
        };
        if scenario && constant == Constant::Slack {
            reader.wrong(&entry.key_span, "the slack is the rig's, not the scenario's", "leave it out");
            continue;
        }
        let length = if matches!(constant, Constant::LeaseDuration | Constant::TolerationSeconds) {
            reader.whole_seconds(&entry.value)
        } else {
            reader.duration(&entry.value)
        };
        match length {
            Some(Duration::ZERO) if constant != Constant::TolerationSeconds => {
                reader.wrong(
                    &entry.value.span,
                    format!("{} cannot be zero", constant.name()),
                    "write for example 1s",
                );
            }
            Some(length) => {
                constants.insert(constant, length);
            }
            None => {}
        }
    }
    constants
}
