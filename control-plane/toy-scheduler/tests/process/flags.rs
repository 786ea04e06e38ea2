//! The help and what is refused at the start.

use std::process::Command;

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_toy-scheduler")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// EXT-04.
#[test]
fn the_help_states_the_rule_in_one_sentence_and_the_default_name() {
    let (code, said) = run(&["--help"]);
    assert_eq!(code, Some(0));
    let rules: Vec<_> = said.lines().filter(|line| line.starts_with("Rule: ")).collect();
    let [rule] = rules[..] else { panic!("{said}") };
    assert_eq!(rule.matches('.').count(), 1, "{rule}");
    for words in ["[default: toy-scheduler]", "--dry-run", "--kubeconfig", "After a restart"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_told_with_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.yaml");
    std::fs::write(&bad, "clusters: 5\n").unwrap();
    for path in ["/nonexistent", bad.to_str().unwrap()] {
        let (code, said) = run(&["--kubeconfig", path]);
        assert!(code == Some(2) && said.contains(path) && said.contains("--kubeconfig"), "{code:?} {said}");
    }
    assert_eq!(run(&["--no-such-flag"]).0, Some(2));
}
