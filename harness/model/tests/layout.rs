//! `rigor fmt`: what it makes of files, and that it changes neither their meaning nor their comments.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rigor_model::format::format;
use rigor_model::yaml;

fn formatted(source: &str) -> String {
    format("tale.yaml", source).unwrap_or_else(|mistakes| panic!("{source}\n{mistakes:#}"))
}

/// The scenario and rig files that ship.
fn shipped() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    let mut folders = vec![root.join("suites"), root.join("rigs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml")
                && let Ok(source) = std::fs::read_to_string(&path)
                && source.contains("apiVersion: rigor.dev/")
            {
                files.push((path, source));
            }
        }
    }
    files.sort();
    assert!(files.len() > 150, "{} files", files.len());
    files
}

#[test]
fn shipped_files_are_laid_out() {
    let odd: Vec<String> = shipped()
        .iter()
        .filter(|(_, source)| formatted(source) != *source)
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(odd.is_empty(), "rigor fmt would change {odd:#?}");
}

#[test]
fn a_file_gets_one_layout() {
    let source = "# Whose file this is.\n# yaml-language-server: $schema=../schema/scenario.json\n\n\nkind:   Scenario # a kind\napiVersion: rigor.dev/v1alpha1\nspec:\n    # what it does\n    steps:\n    - as: outage\n      # the power goes\n      power: {do: cut,   board: 'a'}   # at once\n\n\n    # wait for it\n    - wait:\n        1s   # long enough\n    -   expect:\n          within: 5s\n          match: { status: {phase: Running} , spec: {b: '\"', a: [1,2 , {x: 3}]}}\n          of:\n             name: p\n             kind: Pod\n          # the end of the expectation\n    - kubectl:\n        stdin: |\n            first\n              second\n        args: [get, pods]\n    # the last step\n    rig: {boards: 1}\nmetadata: {profile: kube32, requirements: [NODE-03], name: tale}\n# the end\n\n\n";
    insta::assert_snapshot!(formatted(source));
    assert_eq!(formatted(&formatted(source)), formatted(source));
    let fragment = "kind: Fragment\napiVersion: rigor.dev/v1alpha1\nspec: {steps: [{as: x, wait: 1s}]}\n";
    assert!(formatted(fragment).ends_with("kind: Fragment\nspec: {steps: [{wait: 1s, as: x}]}\n"));
    assert_eq!(formatted(&source.replace('\n', "\r\n")), formatted(source));
}

#[test]
fn broken_files_are_left_alone() {
    for (source, said) in [
        ("a: [", "this is no YAML"),
        ("a: yes\n", "a bare `yes`"),
        ("a: &x 1\n", "anchors, aliases and merges"),
        ("a: 1\na: 2\n", "stands here twice"),
        ("a: 1\n---\nb: 2\n", "a second document"),
        ("", "the file is empty"),
        ("%YAML 1.2\n---\na: 1\n", "a directive"),
    ] {
        let mistakes = format("tale.yaml", source).expect_err(source);
        let told = format!("{mistakes:#}");
        assert!(told.contains(said), "{source}: {told}");
    }
}

fn value(source: &str) -> Option<serde_json::Value> {
    let mut mistakes = Vec::new();
    let root = yaml::parse_one(source, &mut mistakes)?;
    mistakes.is_empty().then(|| root.to_value())
}

/// A line more or less to the right, blanks where none are needed, comments, other quotes: what people leave behind.
fn disturbed(source: &str, seed: &[(usize, u8)]) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    for (place, what) in seed {
        let at = place % lines.len().max(1);
        let line = lines[at].clone();
        match what % 9 {
            0 => lines.insert(at, format!("{}# {place}", &line[..line.len() - line.trim_start().len()])),
            1 => lines[at] = format!("{line}  # why {place}"),
            2 => lines.insert(at, String::new()),
            3 => lines[at] = line.replace(", ", " ,"),
            4 => lines[at] = line.replace('{', "{  ").replace('}', " }"),
            5 => lines[at] = line.replace('"', "'"),
            6 => lines[at] = format!("{line}   "),
            7 => lines.insert(at, format!("# at the left {place}")),
            _ => {
                for line in &mut lines {
                    let indent = line.len() - line.trim_start().len();
                    line.insert_str(0, &" ".repeat(indent));
                }
            }
        }
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn meaning_and_comments_stay(
        which in 0_usize..10_000,
        seed in proptest::collection::vec((0_usize..400, 0_u8..9), 0..6),
    ) {
        let files = shipped_once();
        let source = disturbed(&files[which % files.len()], &seed);
        let Some(before) = value(&source) else { return Ok(()) };
        let text = match format("tale.yaml", &source) {
            Ok(text) => text,
            Err(mistakes) => return Err(TestCaseError::fail(format!("{source}\n{mistakes:#}"))),
        };
        prop_assert_eq!(value(&text), Some(before));
        prop_assert_eq!(&formatted(&text), &text);
        let comments = |text: &str| text.matches("# why").count() + text.matches("# at the left").count();
        prop_assert_eq!(comments(&text), comments(&source));
    }
}

fn shipped_once() -> &'static [String] {
    static FILES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    FILES.get_or_init(|| shipped().into_iter().map(|(_, source)| source).collect())
}
