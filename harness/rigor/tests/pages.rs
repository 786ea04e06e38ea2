//! The pages for people who write scenarios: each command in them works as it stands, one after another.
#![cfg(feature = "sim")]

mod bench;

use bench::Bench;
use std::path::Path;

/// The commands of a page's console blocks, each with the output that the page shows.
fn commands(page: &str) -> Vec<(Vec<String>, String)> {
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            let command = command.split(" #").next().unwrap_or_default();
            found.push((command.split_whitespace().map(str::to_owned).collect(), String::new()));
        } else if let (true, Some((_, output))) = (inside, found.last_mut()) {
            output.push_str(&format!("{line}\n"));
        }
    }
    found
}

#[test]
fn the_page_for_writers_works_as_it_stands() {
    let bench = Bench::new("  - {id: KLET-01, profile: kubelet, must: \"run\"}\n");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/writing-scenarios.md");
    let commands = commands(&std::fs::read_to_string(page).unwrap());
    assert!(commands.len() > 10, "{commands:?}");
    for (words, shown) in commands {
        // What runs until it is ended is run once.
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--watch").collect();
        assert_eq!(words[0], "rigor", "{words:?}");
        let once: &[&str] =
            if words[1] == "run" && !words.contains(&"--rig") { &["--rig", "sim"] } else { &[] };
        let (exit, stdout, stderr) = bench.rigor(&[&words[1..], once].concat());
        assert_eq!(exit, 0, "{words:?}\n{stdout}\n{stderr}");
        assert!(shown.is_empty() || shown == stdout, "{words:?} says\n{stdout}\nand the page\n{shown}");
    }
}
