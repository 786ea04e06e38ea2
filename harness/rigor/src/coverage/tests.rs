//! The table over a small tree: two scenarios, a test, a ledger of four mutants.

use super::*;
use crate::suite::Suites;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).as_slice().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn scenario(name: &str, ids: &str, rig: &str) -> String {
    format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata:\n  name: {name}\n  requirements: [{ids}]\n  profile: kube32\n  description: \"What {name} says.\\nAnd more.\"\nspec:\n  rig: {rig}\n  steps: [{{wait: 1s}}]\n"
    )
}

const CATALOGUE: &str = "version: 2
areas:
  node:
    - {id: NODE-03, profile: kube32, must: \"be lost\", note: \"we chose\", bounds: [{notBefore: leaseDuration, notAfter: leaseDuration + slack, from: \"the last renewal\"}]}
    - {id: NODE-04, profile: both, feature: extended, must: \"be told\"}
    - {id: NODE-05, profile: kube32, must: \"be shown by a test\"}
    - {id: NODE-06, profile: kubelet, must: \"be shown by nothing\"}
    - {id: UP-01, profile: upstream, must: \"be elsewhere\"}
";

/// The files that trials are judged with, as the ledger's hash takes them: in the order of their paths.
fn suites_hash(files: &[(&str, &str)]) -> String {
    let mut bytes = Vec::new();
    for (name, text) in files {
        bytes.extend(format!("{name}\0{}\0{text}", text.len()).into_bytes());
    }
    sha256(&bytes)
}

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.write("suites/requirements.yaml", CATALOGUE);
        tree.write(
            "suites/node/loss.yaml",
            &scenario("loss", "NODE-03, NODE-04", "{boards: 1, needs: [power]}"),
        );
        tree.write("suites/node/told.yaml", &scenario("told", "NODE-04", "{needs: [virtual-time]}"));
        tree.write("suites/node/fragments/pod.yaml", "apiVersion: v1\nkind: Pod\n");
        tree.write("suites/schema/x.yaml", "apiVersion: v1\nkind: Pod\n");
        tree.write(
            "control-plane/server/tests/catalogue/node.rs",
            "/// NODE-05: so it is.\n#[test]\nfn it_is_so() {}\n",
        );
        tree.write("core.rs", "fn sound() {}\n");
        tree
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    fn suites(&self) -> Suites {
        Suites::new(self.0.path().join("suites"))
    }

    fn hash(&self) -> String {
        let files = ["suites/node/fragments/pod.yaml", "suites/node/loss.yaml", "suites/node/told.yaml"];
        let texts: Vec<String> = files.iter().map(|name| self.read(name)).collect();
        let files: Vec<(&str, &str)> = files.iter().copied().zip(texts.iter().map(String::as_str)).collect();
        suites_hash(&files)
    }

    /// A ledger's line about a mutant of `core.rs` as it is now.
    fn line(&self, id: &str, verdict: &str, more: &str) -> String {
        format!(
            "{{\"id\": \"{id}\", \"kind\": \"hand-made\", \"description\": \"what {id} does\", \"requirements\": [\"NODE-03\"], \"files\": [{{\"path\": \"core.rs\", \"sha256\": \"{}\"}}], \"mutant\": \"{}\", \"suites\": \"{}\", \"verdict\": \"{verdict}\"{more}}}",
            sha256(self.read("core.rs").as_bytes()),
            sha256(b"fault"),
            self.hash(),
        )
    }

    fn ledger(&self, date: &str, lines: &[String]) {
        self.write(
            &format!("ci/ledger/mutants-{date}.json"),
            &format!("{{\"version\": 1, \"date\": \"{date}\", \"lines\": [{}]}}", lines.join(",\n")),
        );
    }

    fn coverage(&self) -> Coverage {
        let ledger = Ledger::read(self.0.path(), &self.0.path().join("suites")).unwrap();
        Coverage::read(self.0.path(), &self.suites(), ledger).unwrap()
    }

    /// What is told without the place at which the tree lies.
    fn told(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.path().display()), "")
    }
}

const RED: &str = ", \"trials\": [\"node/loss/short [sim]\"]";

fn ids(gaps: &[Gap]) -> Vec<&str> {
    gaps.iter().map(|gap| gap.id.as_str()).collect()
}

#[test]
fn the_table_tells_scenarios_rigs_tests_and_mutants() {
    let tree = Tree::new();
    tree.ledger("2026-11-30", &[tree.line("late", "killed", RED), tree.line("mute", "survived", "")]);
    let coverage = tree.coverage();
    insta::assert_snapshot!("table_as_text", tree.told(&text(&coverage)));
    insta::assert_snapshot!("table_as_page", tree.told(&markdown(&coverage, true)));
    let object = object(&coverage);
    assert_eq!(
        object["requirements"][1]["levels"],
        serde_json::json!({"kube32": "extended", "upstream": "extended"})
    );
    assert_eq!(object["requirements"][0]["scenarios"][0]["mutants"], serde_json::json!(["late"]));
    assert_eq!(object["requirements"][1]["scenarios"][1]["rigs"], serde_json::json!(["sim"]));
    assert_eq!(object["mutants"][0]["standing"], "valid");
}

#[test]
fn what_is_missing_is_named() {
    let tree = Tree::new();
    let found = gaps(&tree.coverage(), false);
    assert_eq!(
        ids(&found),
        ["NODE-05", "NODE-06"],
        "what only a test shows has no scenario; UP-01 has a reason"
    );
    assert!(found[0].said.starts_with("no scenario cites it, only a test shows it; rigor new"), "{found:?}");
    assert!(found[1].said.starts_with("no scenario cites it, nothing shows it; "), "{found:?}");
    tree.write("suites/node/more.yaml", &scenario("more", "NODE-05, NODE-06", "{}"));
    assert_eq!(gaps(&tree.coverage(), false), []);
}

#[test]
fn a_requirement_without_a_mutant_that_counts_is_missing_one() {
    let tree = Tree::new();
    tree.ledger("2026-11-30", &[tree.line("late", "killed", RED)]);
    let with = |coverage: &Coverage| {
        let found = gaps(coverage, true);
        found
            .into_iter()
            .filter(|gap| ["NODE-03", "NODE-04"].contains(&gap.id.as_str()))
            .map(|gap| gap.said)
            .collect::<Vec<_>>()
    };
    assert!(with(&tree.coverage()).is_empty(), "loss shows both, and a mutant turns it red");
    for (verdict, more) in [
        ("survived", ""),
        ("killed", ", \"trials\": [\"node/lossy\", \"node/los\"]"),
        ("killed", ", \"how\": \"panic\", \"trials\": [\"node/loss\"]"),
    ] {
        tree.ledger("2026-11-30", &[tree.line("late", verdict, more)]);
        let found = with(&tree.coverage());
        assert!(
            found.len() == 2 && found[0].starts_with("no mutant turns node/loss red; add one"),
            "{found:?}"
        );
    }
    tree.ledger("2026-11-30", &[tree.line("late", "killed", RED)]);
    tree.write("core.rs", "fn sounder() {}\n");
    let found = with(&tree.coverage());
    assert!(
        found.len() == 2 && found[0].contains("(1 did before something changed); run ci/mutants again"),
        "{found:?}"
    );
}

#[test]
fn a_mutant_counts_while_file_suites_and_the_mutant_itself_are_the_same() {
    let standing = |change: &dyn Fn(&Tree)| {
        let tree = Tree::new();
        tree.write("control-plane/faulty/faults/node/late.yaml", "fault");
        tree.ledger("2026-11-30", &[tree.line("late", "killed", RED)]);
        change(&tree);
        tree.coverage().ledger.unwrap().mutants[0].standing.clone()
    };
    let stale = |because: &str| Standing::Stale(because.to_owned());
    assert_eq!(standing(&|_| {}), Standing::Valid);
    assert_eq!(standing(&|tree| tree.write("core.rs", "")), stale("core.rs has changed since"));
    let fragment = |tree: &Tree| tree.write("suites/node/fragments/pod.yaml", "apiVersion: v1\n");
    assert_eq!(standing(&fragment), stale("the suites have changed since"));
    let fault = |tree: &Tree| tree.write("control-plane/faulty/faults/node/late.yaml", "worse");
    assert_eq!(standing(&fault), stale("the mutant itself has changed since"));
    assert_eq!(standing(&|tree| tree.write("suites/schema/x.yaml", "apiVersion: v1\n")), Standing::Valid);
    assert_eq!(standing(&|tree| tree.write("suites/README", "other")), Standing::Valid);
}

#[test]
fn of_several_ledgers_the_newest_line_that_counts_is_taken() {
    let tree = Tree::new();
    let stale = tree.line("late", "killed", RED).replace(&sha256(tree.read("core.rs").as_bytes()), "00");
    tree.ledger("2026-11-28", &[tree.line("late", "survived", "")]);
    tree.ledger("2026-11-29", &[tree.line("late", "killed", RED)]);
    tree.ledger("2026-11-30", std::slice::from_ref(&stale));
    let coverage = tree.coverage();
    let mutant = &coverage.ledger.as_ref().unwrap().mutants[0];
    assert_eq!((mutant.verdict, mutant.date.as_str()), (VerdictOfMutant::Killed, "2026-11-29"));
    assert_eq!(coverage.mutants().count(), 1);
    let broken = |text: &str, problem: &str| {
        tree.write("ci/ledger/mutants-2026-12-01.json", text);
        let error = Ledger::read(tree.0.path(), Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("mutants-2026-12-01.json: ") && error.contains(problem), "{error}");
    };
    broken("{}", "this is no ledger of mutants: missing field `version`");
    broken("{\"version\": 2, \"date\": \"x\", \"lines\": []}", "it is of version 2, and version 1 is read");
    assert_eq!(Ledger::read(Path::new("/nowhere"), Path::new("/nowhere")).unwrap(), None);
}

#[test]
fn a_requirement_is_explained_with_all_that_is_known() {
    let tree = Tree::new();
    tree.ledger("2026-11-30", &[tree.line("late", "killed", RED)]);
    let coverage = tree.coverage();
    let report = "apiVersion: rigor.dev/v1alpha1\nkind: ConformanceReport\ndate: \"2026-11-30T00:00:00Z\"\nseed: 1\nrig: {name: qemu, kind: qemu, machine: qemu-virt}\nconstants: {leaseDuration: 15s, renewInterval: 5s, noExecuteDelay: 15s, tolerationSeconds: 300s, checkPeriod: 1s, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms}\nsummary: {}\nscenarios:\n- {name: node/loss/short, outcome: fail, requirements: [NODE-03], reason: \"too late\\nby far\", lengthMicros: 1}\n- {name: node/loss/long, outcome: pass, requirements: [NODE-03], lengthMicros: 1}\nrequirements: []\nnotShown: []\n";
    tree.write("report-1/report.yaml", report);
    let folder = crate::report::newest(tree.0.path()).unwrap();
    let last = LastRun { folder: "report-1".to_owned(), report: crate::report::read(&folder).unwrap() };
    let told = |id: &str, last| tree.told(&explain(coverage.row(id).unwrap(), &coverage, last));
    insta::assert_snapshot!("a_requirement_explained", told("NODE-03", Some(&last)));
    let other = told("NODE-04", Some(&last));
    assert!(other.contains("extended for kube32, extended for upstream"), "{other}");
    assert!(
        other.contains("suites/node/told.yaml (sim)\n    What told says.\n    last: not in the report"),
        "{other}"
    );
    let test = told("NODE-05", None);
    assert!(test.contains("no scenario cites it; rigor new NAME --requirements NODE-05"), "{test}");
    assert!(test.contains("it_is_so (control-plane/server/tests/catalogue/node.rs)"), "{test}");
    assert!(test.contains("no report was found"), "{test}");
    let catalogue = tree.suites().catalogue().unwrap();
    assert_eq!(near_ids("NODE-30", &catalogue)[0], "NODE-03");
    assert_eq!(near_ids("node-3", &catalogue)[0], "NODE-03");
    assert!(near_ids("completely-else", &catalogue).is_empty());
}
