//! What came of all exchanges: a table, the differences, and the page that states them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use crate::compare::Outcome;
use crate::exchange::Exchange;
use crate::normalise;
use crate::rig::Answer;

#[derive(Default)]
struct Counts {
    same: usize,
    different: usize,
    judged: usize,
    aside: usize,
    managed: usize,
}

#[derive(Default)]
pub struct Report {
    folders: Vec<(String, Counts)>,
    /// `FOLDER/NAME`, the request, and what we answer, where nothing was recorded.
    judged: Vec<[String; 3]>,
    /// `FOLDER/NAME` and why.
    different: Vec<(String, String)>,
    wrong: Vec<String>,
}

const UPDATE: &str = "UPDATE_WIRE_FIDELITY";
const BEGIN: &str = "<!-- begin of what `cargo test -p control-plane --test replay` writes -->\n";
const END: &str = "<!-- end -->\n";

impl Report {
    pub fn add(
        &mut self,
        folder: &str,
        name: &str,
        exchange: &Exchange,
        answer: &Answer,
        outcome: Outcome,
        known: Option<&str>,
    ) {
        if self.folders.last().is_none_or(|(last, _)| last != folder) {
            self.folders.push((folder.to_owned(), Counts::default()));
        }
        let Some((_, counts)) = self.folders.last_mut() else { return };
        counts.managed += usize::from(exchange.answer.as_ref().is_some_and(|recorded| recorded.managed));
        match (outcome, known) {
            (Outcome::Same, None) => counts.same += 1,
            (Outcome::Same, Some(_)) => {
                self.wrong.push(format!("{name} is the same now: take it out of differences.yaml"));
            }
            (Outcome::Different(_), Some(reason)) => {
                counts.different += 1;
                self.different.push((name.to_owned(), reason.to_owned()));
            }
            (Outcome::Different(what), None) => {
                counts.different += 1;
                self.wrong.push(format!("{name} {} {}\n    {what}", exchange.method, exchange.url));
            }
            (Outcome::Judged(judged), known) => {
                counts.judged += 1;
                if let Err(why) = judged {
                    self.wrong.push(format!(
                        "{name} {} {}: no answer of Kubernetes: {why}",
                        exchange.method, exchange.url
                    ));
                }
                if known.is_some() {
                    self.wrong.push(format!("{name} has no recorded answer to differ from"));
                }
                let request = format!("{} {}", exchange.method, exchange.url);
                self.judged.push([name.to_owned(), request, summary(answer)]);
            }
            (Outcome::Aside, _) => counts.aside += 1,
        }
    }

    /// The shares, a folder a line.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| folder | same | different | answer not recorded | server-side apply |\n| --- | ---: | ---: | ---: | ---: |\n",
        );
        let mut sum = Counts::default();
        for (folder, counts) in &self.folders {
            row(&mut text, folder, counts);
            sum.same += counts.same;
            sum.different += counts.different;
            sum.judged += counts.judged;
            sum.aside += counts.aside;
            sum.managed += counts.managed;
        }
        row(&mut text, "all", &sum);
        let compared = sum.same + sum.different;
        let _ = writeln!(
            text,
            "\nThe same: {} of {compared} that can be compared ({:.1} %).",
            sum.same,
            percent(sum.same, compared)
        );
        let _ = writeln!(
            text,
            "{} of the recordings hold managedFields, which were left out of the comparison.",
            sum.managed
        );
        text
    }

    /// What the page says between its marks.
    fn page(&self) -> String {
        let mut text = format!("\n{}\n### Differences\n\n", self.table());
        for (name, reason) in &self.different {
            let _ = writeln!(text, "- `{name}`: {reason}");
        }
        text.push_str("\n### What is answered where no answer was recorded\n\n| exchange | request | answer |\n| --- | --- | --- |\n");
        for [name, request, answer] in &self.judged {
            let _ = writeln!(text, "| {name} | `{request}` | {answer} |");
        }
        text.push('\n');
        text
    }

    /// Everything that differs is known, and everything known differs.
    pub fn assert_as_known(&self, known: &BTreeMap<String, String>) {
        let mut wrong = self.wrong.clone();
        for name in known.keys() {
            if !self.different.iter().any(|(different, _)| different == name)
                && !wrong.iter().any(|line| line.starts_with(name.as_str()))
            {
                wrong.push(format!("{name} in differences.yaml is no exchange"));
            }
        }
        assert!(wrong.is_empty(), "{} of the exchanges are not as known:\n{}", wrong.len(), wrong.join("\n"));
    }

    /// The page says what came out.
    pub fn assert_documented(&self) {
        let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire-fidelity.md"));
        let page = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = page.split_once(BEGIN).expect("the page has its first mark");
        let (stated, tail) = rest.split_once(END).expect("the page has its second mark");
        let found = self.page();
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, format!("{head}{BEGIN}{found}{END}{tail}")).unwrap();
        } else {
            assert!(
                stated == found,
                "docs/wire-fidelity.md is out of date: run {UPDATE}=1 cargo test -p control-plane --test replay"
            );
        }
    }
}

fn row(text: &mut String, folder: &str, counts: &Counts) {
    let Counts { same, different, judged, aside, .. } = counts;
    let _ = writeln!(text, "| {folder} | {same} | {different} | {judged} | {aside} |");
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few hundred")]
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// An answer in a few words.
fn summary(answer: &Answer) -> String {
    let json = answer.json();
    let text = |pointer: &str| json.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
    let first = answer.text.lines().next().unwrap_or_default();
    let words = match text("/kind") {
        "Status" if text("/status") == "Success" => "Success".to_owned(),
        "Status" => format!("{} {}", text("/reason"), normalise::text(text("/message"))),
        "" if first.starts_with("{\"type\"") => {
            let lines = answer.lines().unwrap_or_default();
            let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
            types.join(" ")
        }
        "" => first.to_owned(),
        kind => match json["items"].as_array() {
            Some(items) => format!("{kind} of {}", items.len()),
            None => kind.to_owned(),
        },
    };
    let words =
        words.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;");
    let short: String = words.chars().take(160).collect();
    let dots = if short.len() < words.len() { "…" } else { "" };
    format!("{} {short}{dots}", answer.status)
}
