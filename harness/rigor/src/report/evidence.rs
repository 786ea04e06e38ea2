//! The evidence of a trial, written before its cleanup: objects, events, the console of each board, the history, and
//! what the rig adds (the control plane's log).

use rigor_rigs::{Infra, World};
use rigor_trace::history::{flash_words, link_words};
use rigor_trace::{Fact, History, Micros, Verb};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Writes a trial's evidence into `dir`, which is made.
///
/// # Errors
/// A file cannot be written.
pub fn save(world: &mut dyn World, dir: &Path) -> Result<(), Infra> {
    let cannot = |path: &Path, error: &dyn std::fmt::Display| {
        Infra::lasting(
            format!("evidence: {} could not be written: {error}", path.display()),
            "make the report's folder writable",
        )
    };
    fs::create_dir_all(dir).map_err(|error| cannot(dir, &error))?;
    world.save_evidence(dir)?;
    let history = world.history();
    let mut files = vec![
        ("objects.yaml".to_owned(), objects(history).map_err(|error| cannot(dir, &error))?),
        ("events.txt".to_owned(), events(history)),
    ];
    for (board, text) in consoles(history, &world.boards()) {
        files.push((format!("console-{board}.log"), text));
    }
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|error| cannot(&path, &error))?;
    }
    Ok(())
}

/// The last version of each object that still exists, by stream and by `namespace/name`.
#[must_use]
pub fn current_objects(history: &History) -> BTreeMap<(&str, String), &Value> {
    let mut objects = BTreeMap::new();
    for record in history.records() {
        let Fact::Object { stream, verb, object } = &record.fact else { continue };
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let key = (stream.as_str(), format!("{}/{}", text("namespace"), text("name")));
        match verb {
            Verb::Added | Verb::Modified | Verb::Listed => objects.insert(key, object),
            Verb::Deleted => objects.remove(&key),
        };
    }
    objects
}

fn objects(history: &History) -> Result<String, serde_saphyr::ser_error::Error> {
    let mut text = String::new();
    for ((stream, _), object) in current_objects(history) {
        // Events have a file of their own, in the order they came.
        if stream != "events" {
            text.push_str("---\n");
            text.push_str(&serde_saphyr::to_string(object)?);
        }
    }
    Ok(text)
}

fn events(history: &History) -> String {
    let mut text = String::new();
    for record in history.records() {
        let Fact::Object { stream, object, .. } = &record.fact else { continue };
        if stream != "events" {
            continue;
        }
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let regarding = &object["involvedObject"];
        let _ = writeln!(
            text,
            "{:>12} {} {} {}/{} x{}: {}",
            record.at.to_string(),
            word(&object["type"]),
            word(&object["reason"]),
            word(&regarding["kind"]),
            word(&regarding["name"]),
            object["count"].as_u64().unwrap_or(1),
            word(&object["message"]),
        );
    }
    text
}

/// Console lines by board, with what was done to its power and link between them.
fn consoles(history: &History, boards: &[String]) -> BTreeMap<String, String> {
    let mut consoles: BTreeMap<String, String> =
        boards.iter().map(|board| (board.clone(), String::new())).collect();
    let mut note = |board: &str, at: Micros, line: &str| {
        let _ = writeln!(consoles.entry(board.to_owned()).or_default(), "{:>12} {line}", at.to_string());
    };
    for record in history.records() {
        if let Fact::Console { board, line } = &record.fact {
            note(board, record.at, line);
        } else if let Fact::Power { board, act, .. } = &record.fact {
            note(board, record.at, &format!("-- power: {act:?}").to_lowercase());
        } else if let Fact::Link { board, act, micros, percent, .. } = &record.fact {
            note(board, record.at, &format!("-- link: {}", link_words(*act, *micros, *percent)));
        } else if let Fact::Flash { board, image, sha256, erased, .. } = &record.fact {
            note(board, record.at, &format!("-- flash: {}", flash_words(image.as_deref(), sha256, *erased)));
        } else if let Fact::Sent { board, line } = &record.fact {
            note(board, record.at, &format!("-- sent: {line}"));
        }
    }
    consoles
}
