//! The gallery of mistakes: a folder of broken files, each with everything that is said about it.
//!
//! To add one: put a file into `tests/gallery` and run `INSTA_UPDATE=always cargo test -p rigor-model --test gallery`. A
//! file that says `kind: Rig` is read as a rig, all others as scenarios; a comment at its top may say what it is about.
//! No file may pass without a mistake, and each mistake names its line and a remedy. A file holds one mistake, and one is
//! told of it; one that holds several says so on its first line: `# mistakes: 3`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use rigor_model::{Catalogue, Mistakes, Rig, Scenario};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gallery")
}

fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        Catalogue::parse("requirements.yaml", include_str!("../../../suites/requirements.yaml"))
            .unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
    })
}

fn read(file: &str, source: &str) -> Result<(), Mistakes> {
    if source.lines().any(|line| line.trim_end() == "kind: Rig") {
        return Rig::parse(file, source).map(|_| ());
    }
    let beside = |name: &str| fs::read_to_string(folder().join(name)).map_err(|error| error.to_string());
    Scenario::parse(file, source, catalogue(), &beside).map(|_| ())
}

/// The files of the gallery by name, sorted.
fn gallery() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = fs::read_dir(folder())
        .expect("the gallery")
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let stem = name.strip_suffix(".yaml")?.to_owned();
            Some((stem, fs::read_to_string(entry.path()).expect("a readable file")))
        })
        .collect();
    files.sort();
    assert!(files.len() >= 30, "{} files", files.len());
    files
}

#[test]
fn each_mistake_is_told_once_with_its_line_and_a_remedy() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("gallery");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut failures = Vec::new();
    for (stem, source) in gallery() {
        let file = format!("{stem}.yaml");
        let Err(mistakes) = read(&file, &source) else {
            failures.push(format!("{file}: nothing is said about it"));
            continue;
        };
        let first = source.lines().next().unwrap_or_default();
        let meant = first.strip_prefix("# mistakes: ").map_or(Ok(1), str::parse::<usize>);
        let told = mistakes.iter().count();
        if meant != Ok(told) {
            failures.push(format!("{file}: {told} mistakes are told:\n{mistakes:#}"));
        }
        let mut places = BTreeSet::new();
        for mistake in mistakes.iter() {
            let (line, column) = mistakes.place(mistake.span.start);
            if mistake.remedy.as_deref().unwrap_or_default().is_empty() {
                failures.push(format!("{file}:{line}:{column}: no remedy: {}", mistake.message));
            }
            if line > source.lines().count().max(1) {
                failures.push(format!("{file}:{line}: there is no such line"));
            }
            if mistake.message.len() > 1_010 || mistake.message.contains('\n') {
                failures.push(format!("{file}:{line}: no line of a reasonable length"));
            }
            if !places.insert((mistake.span.start, mistake.span.end, mistake.message.clone())) {
                failures.push(format!("{file}:{line}: told twice: {}", mistake.message));
            }
        }
        if mistakes.iter().next().is_none() {
            failures.push(format!("{file}: refused without a reason"));
        }
        let told = format!("{mistakes:#}");
        settings.bind(|| insta::assert_snapshot!(stem.as_str(), told));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn no_snapshot_is_left_of_a_file_that_is_gone() {
    let stems: BTreeSet<String> = gallery().into_iter().map(|(stem, _)| stem).collect();
    for entry in fs::read_dir(folder()).expect("the gallery").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".snap") {
            assert!(stems.contains(stem), "{name} has no {stem}.yaml: remove it");
        }
    }
}

/// The scenarios that ship.
fn shipped() -> &'static [String] {
    static FILES: OnceLock<Vec<String>> = OnceLock::new();
    FILES.get_or_init(|| {
        let suites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites");
        let mut sources = Vec::new();
        let mut areas: Vec<PathBuf> =
            fs::read_dir(suites).expect("suites").flatten().map(|e| e.path()).collect();
        areas.sort();
        for area in areas.iter().filter(|area| area.is_dir()) {
            let mut files: Vec<PathBuf> =
                fs::read_dir(area).expect("area").flatten().map(|e| e.path()).collect();
            files.sort();
            sources.extend(files.iter().filter_map(|file| fs::read_to_string(file).ok()));
        }
        sources.retain(|source| source.contains("\nkind: Scenario"));
        assert!(sources.len() > 100, "{}", sources.len());
        sources
    })
}

/// What people do to a file: lines lost, doubled, swapped, moved in, cut off, values of another type.
fn mutated(source: &str, at: usize, other: usize, what: u8) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    let (at, other) = (at % lines.len(), other % lines.len());
    let value = |line: &str, value: &str| match line.split_once(": ") {
        Some((key, _)) => format!("{key}: {value}"),
        None => value.to_owned(),
    };
    match what % 12 {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => lines.swap(at, other),
        3 => lines.truncate(at),
        4 => lines[at] = value(&lines[at], "5"),
        5 => lines[at] = value(&lines[at], "[]"),
        6 => lines[at] = value(&lines[at], "{a: b}"),
        7 => lines[at] = value(&lines[at], "yes"),
        8 => lines[at].insert_str(0, "  "),
        9 => lines[at] = lines[at].replacen(':', "", 1),
        10 => {
            let half = lines[at].chars().count() / 2;
            lines[at] = lines[at].chars().take(half).collect();
        }
        _ => lines[at] = value(&lines[at], ""),
    }
    lines.join("\n")
}

/// What slips of the hand do to a file: signs lost, doubled, swapped, put in; lines moved in or out.
fn slipped(source: &str, at: usize, what: u8) -> String {
    let signs: Vec<char> = source.chars().collect();
    if signs.is_empty() {
        return String::new();
    }
    let at = at % signs.len();
    let line = signs[..at].iter().rposition(|sign| *sign == '\n').map_or(0, |newline| newline + 1);
    let mut changed = signs;
    match what % 12 {
        0 => drop(changed.remove(at)),
        1 => changed.insert(at, changed[at]),
        2 => changed.swap(at, (at + 1) % source.chars().count()),
        3 => changed[at] = changed[at].to_ascii_uppercase(),
        4 => drop(changed.splice(line..line, "  ".chars())),
        5 => drop(changed.splice(line..(line + 2).min(at), [])),
        6 => drop(changed.drain(at..(at + 7).min(source.chars().count()))),
        other => {
            let put = ["\"", "{", "]", ": ", "- ", "\t", "&a ", "*a ", "${", "é", "\u{feff}", "#", "'"];
            let put = put[(usize::from(other) + at) % put.len()];
            drop(changed.splice(at..at, put.chars()));
        }
    }
    changed.into_iter().collect()
}

/// The same files in the same order, whoever runs it: what is found wrong stays findable.
fn seeded(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_algorithm: proptest::test_runner::RngAlgorithm::ChaCha,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Reads a broken file: it passes, or each mistake names its line and a remedy. That it comes to an end at all is bounded by
/// the test runner.
fn is_told(source: &str) -> Result<(), TestCaseError> {
    if let Err(mistakes) = read("mutated.yaml", source) {
        prop_assert!(mistakes.iter().next().is_some(), "refused without a reason\n{source}");
        for mistake in mistakes.iter() {
            let (line, _) = mistakes.place(mistake.span.start);
            let remedy = mistake.remedy.as_deref().unwrap_or_default();
            prop_assert!(line <= source.lines().count().max(1), "no such line: {line}\n{source}");
            prop_assert!(source.is_char_boundary(mistake.span.start), "{}\n{source}", mistake.message);
            prop_assert!(mistake.span.end <= source.len(), "{}\n{source}", mistake.message);
            prop_assert!(!remedy.is_empty(), "no remedy: {}\n{source}", mistake.message);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(seeded(512))]

    #[test]
    fn no_mutation_of_a_shipped_scenario_is_refused_without_line_and_remedy(
        which in 0_usize..10_000, at in 0_usize..1_000, other in 0_usize..1_000, what in 0_u8..12, more in 0_u8..12,
    ) {
        let sources = shipped();
        let source = mutated(&sources[which % sources.len()], at, other, what);
        let source = if source.is_empty() { source } else { mutated(&source, other, at, more) };
        is_told(&source)?;
    }

    #[test]
    fn nor_is_a_slip_of_the_hand(
        which in 0_usize..10_000,
        slips in proptest::collection::vec((0_usize..5_000, 0_u8..12), 1..4),
    ) {
        let sources = shipped();
        let mut source = sources[which % sources.len()].clone();
        for (at, what) in slips {
            source = slipped(&source, at, what);
        }
        is_told(&source)?;
    }
}
