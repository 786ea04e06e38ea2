//! A seeded shard of what cargo-mutants would try, woven into the shadow instead of built one by one.
//!
//! cargo-mutants only lists: it rebuilds the tree for each mutant, which for these crates takes longer than all scenarios
//! together. So the mutated body of a function stands beside the sound one, and is chosen like any other fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::digest;
use crate::weave::Placed;

/// What cargo-mutants is asked about: the sources that carry requirements of the kube32 profile.
pub const SCOPE: &[(&str, &[&str])] = &[
    (
        "control-plane-core",
        &[
            "control-plane/core/src/*.rs",
            "control-plane/core/src/controllers/**/*.rs",
            "control-plane/core/src/scheduler/*.rs",
            "control-plane/core/src/selectors/*.rs",
            "control-plane/core/src/snapshot/*.rs",
        ],
    ),
    (
        "control-plane",
        &[
            "control-plane/server/src/admission.rs",
            "control-plane/server/src/auth/node/*.rs",
            "control-plane/server/src/auth/rbac/policy.rs",
            "control-plane/server/src/auth/rbac/rule.rs",
            "control-plane/server/src/reconcile/*.rs",
            "control-plane/server/src/service/*.rs",
            "control-plane/server/src/store/computed.rs",
        ],
    ),
];

/// A mutant of cargo-mutants at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// cargo-mutants' name for it.
    pub name: String,
    /// The source it is of.
    pub file: String,
    /// SHA-256 of its name and replacement.
    pub digest: String,
    /// First byte of the function's body, and the byte after the last.
    pub body: (usize, usize),
    /// The body with the mutation.
    pub mutated: String,
}

impl Mutant {
    /// Its edit, as the fault of that number.
    #[must_use]
    pub fn placed(&self, number: usize) -> Placed {
        Placed {
            number,
            id: self.name.clone(),
            start: self.body.0,
            end: self.body.1,
            template: format!("if FAULT {{ {} }} else {{ SOUND }}", self.mutated),
            marked: true,
        }
    }
}

/// The name without the line and column, which stays when code moves.
#[must_use]
pub fn lasting_name(name: &str) -> String {
    let Some((file, rest)) = name.split_once(':') else { return name.to_owned() };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
    format!("{file}: {}", rest.trim_start())
}

#[derive(Debug, Clone, Deserialize)]
struct Listed {
    file: String,
    name: String,
    replacement: String,
    span: Span,
    function: Option<Function>,
}

#[derive(Debug, Clone, Deserialize)]
struct Function {
    function_name: String,
    return_type: String,
    span: Span,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Span {
    start: Place,
    end: Place,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

/// All mutants that cargo-mutants lists within [`SCOPE`] and that can be woven, in its order.
///
/// # Errors
/// cargo-mutants is missing or fails, or a source cannot be read.
pub fn list(root: &Path) -> Result<Vec<Mutant>> {
    let mut all = Vec::new();
    for (package, files) in SCOPE {
        let mut command = Command::new("cargo");
        command.args(["mutants", "--list", "--json", "--no-config", "--package", package, "--dir"]).arg(root);
        for file in *files {
            command.args(["--file", file]);
        }
        let output = command.output().context("cargo cannot be run")?;
        ensure!(
            output.status.success(),
            "cargo mutants failed; ci/mutants installs it where it is missing: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let listed: Vec<Listed> =
            serde_json::from_slice(&output.stdout).context("the list of cargo-mutants cannot be read")?;
        all.extend(listed);
    }
    let files: BTreeSet<&str> = all.iter().map(|listed| listed.file.as_str()).collect();
    let mut sources = BTreeMap::new();
    for file in files {
        let source = fs::read_to_string(root.join(file)).with_context(|| format!("{file} cannot be read"))?;
        sources.insert(file, source);
    }
    let mutants = all.iter().filter_map(|listed| place(listed, sources.get(listed.file.as_str())?));
    Ok(mutants.collect())
}

/// The mutant in its source; `None` where two bodies cannot stand side by side.
fn place(listed: &Listed, source: &str) -> Option<Mutant> {
    let function = listed.function.as_ref()?;
    let (start, end) = bytes(source, function.span)?;
    let text = source.get(start..end)?;
    let name = function.function_name.rsplit("::").next()?;
    let head = format!("fn {name}");
    let mut named = text.match_indices(&head).map(|(at, found)| (at, at + found.len()));
    let (keyword, after) = named.find(|(_, after)| text[*after..].starts_with(['(', '<']))?;
    // The choice is made when the program runs, and of two bodies the types that nobody can name differ.
    if text[..keyword].trim_end().ends_with("const") || function.return_type.contains("impl ") {
        return None;
    }
    let body = (start + after + text[after..].find('{')? + 1, end - 1);
    let (from, to) = bytes(source, listed.span)?;
    if from < body.0 || to > body.1 {
        return None;
    }
    let replacement = &listed.replacement;
    let mutated = format!("{}{replacement}{}", &source[body.0..from], &source[to..body.1]);
    let digest = digest::of(format!("{}\n{replacement}", listed.name).as_bytes());
    Some(Mutant { name: listed.name.clone(), file: listed.file.clone(), digest, body, mutated })
}

fn bytes(source: &str, span: Span) -> Option<(usize, usize)> {
    let at = |place: Place| {
        let line: usize = source.split_inclusive('\n').take(place.line.checked_sub(1)?).map(str::len).sum();
        let column = place.column.checked_sub(1)?;
        let rest = source.get(line..)?;
        let within = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
        Some(line + within)
    };
    Some((at(span.start)?, at(span.end)?))
}

/// `count` of `all`, drawn by `seed`, without those that `taken` names already; in the order in which they were drawn.
#[must_use]
pub fn drawn(all: &[Mutant], seed: u64, count: usize, taken: &BTreeSet<String>) -> Vec<Mutant> {
    let ticket = |mutant: &Mutant| digest::of(format!("{seed}\n{}", mutant.name).as_bytes());
    let mut drawn: Vec<(String, &Mutant)> = all
        .iter()
        .filter(|mutant| !taken.contains(&mutant.name))
        .map(|mutant| (ticket(mutant), mutant))
        .collect();
    drawn.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    drawn.into_iter().take(count).map(|(_, mutant)| mutant.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "/// Says { so.\nfn f(a: u8) -> bool {\n    a == 1 && true\n}\nconst fn g() -> u8 {\n    1 + 1\n}\n";

    fn listed(
        name: &str,
        returns: &str,
        function: [usize; 4],
        span: [usize; 4],
        replacement: &str,
    ) -> Listed {
        let span_of = |[line, column, to_line, to_column]: [usize; 4]| Span {
            start: Place { line, column },
            end: Place { line: to_line, column: to_column },
        };
        Listed {
            file: "x.rs".into(),
            name: format!("x.rs:3:5: {name}"),
            replacement: replacement.into(),
            span: span_of(span),
            function: Some(Function {
                function_name: name.into(),
                return_type: returns.into(),
                span: span_of(function),
            }),
        }
    }

    #[test]
    fn the_mutated_body_stands_beside_the_sound_one() {
        let f = |replacement| listed("T::f", "-> bool", [1, 1, 4, 2], [3, 7, 3, 9], replacement);
        let mutant = place(&f("!="), SOURCE).unwrap();
        assert_eq!(mutant.mutated.trim(), "a != 1 && true");
        let woven = crate::weave::weave(SOURCE, &[mutant.placed(7)]).unwrap();
        let words: Vec<&str> = woven.split_whitespace().collect();
        assert!(
            words.join(" ").contains(
                "-> bool {/*<7*/if ::fault::on(7) { a != 1 && true } else { a == 1 && true }/*7>*/}"
            ),
            "{woven}"
        );
        for unfit in [
            listed("g", "-> u8", [5, 1, 7, 2], [6, 7, 6, 8], "-"),
            listed("f", "-> impl Iterator", [1, 1, 4, 2], [3, 7, 3, 9], "!="),
            listed("f", "-> bool", [1, 1, 4, 2], [6, 7, 6, 8], "-"),
        ] {
            assert_eq!(place(&unfit, SOURCE), None, "{unfit:?}");
        }
    }

    #[test]
    fn a_seed_draws_the_same_ones_each_time_and_none_that_is_taken() {
        let mutant = |n: usize| Mutant {
            name: format!("m{n}"),
            file: String::new(),
            digest: String::new(),
            body: (0, 0),
            mutated: String::new(),
        };
        let all: Vec<Mutant> = (0..50).map(mutant).collect();
        let first = drawn(&all, 1, 5, &BTreeSet::new());
        assert_eq!(first, drawn(&all, 1, 5, &BTreeSet::new()));
        assert_ne!(first, drawn(&all, 2, 5, &BTreeSet::new()));
        let taken = first.iter().map(|mutant| mutant.name.clone()).collect();
        assert!(drawn(&all, 1, 45, &taken).iter().all(|mutant| !first.contains(mutant)));
        assert_eq!(drawn(&all, 1, 99, &taken).len(), 45);
    }

    #[test]
    fn a_name_lasts_when_its_line_moves() {
        let name = "control-plane/core/src/pod.rs:48:59: delete ! in node -> Option<&str>";
        assert_eq!(lasting_name(name), "control-plane/core/src/pod.rs: delete ! in node -> Option<&str>");
    }
}
