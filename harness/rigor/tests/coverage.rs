//! `rigor coverage`, `explain` and `gate` as a person and a job meet them.

mod bench;

use bench::Bench;
use serde_json::json;

const CATALOGUE: &str = "  - {id: NODE-03, profile: kube32, must: \"be so\"}\n  - {id: NODE-04, profile: both, must: \"be shown\"}\n  - {id: UP-01, profile: upstream, must: \"be elsewhere\"}\n";

fn scenario(name: &str, id: &str, answer: &str) -> String {
    format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: {name}, requirements: [{id}], profile: kube32, description: What {name} says.}}\nspec:\n  steps:\n  - request: {{method: GET, path: /api/v1/nodes, answer: {{status: {answer}}}}}\n"
    )
}

impl Bench {
    fn ends(&self, arguments: &[&str], code: i32, said: &[&str]) -> String {
        let (exit, stdout, stderr) = self.rigor(arguments);
        assert_eq!(exit, code, "{arguments:?}\n{stdout}\n{stderr}");
        let text = format!("{stdout}{stderr}");
        for part in said {
            assert!(text.contains(part), "{arguments:?} does not say `{part}`:\n{text}");
        }
        stdout
    }
}

#[test]
fn coverage_is_shown_and_checked() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "NODE-03", "200"));
    bench.ends(
        &["coverage"],
        0,
        &["NODE-03   node (kube32 core, upstream -)", "node/good (sim, host, qemu, external)"],
    );
    let object = bench.ends(&["coverage", "--format", "json"], 0, &[]);
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    assert_eq!(object["requirements"][0]["scenarios"][0]["path"], "suites/node/good.yaml");
    bench.ends(
        &["coverage", "--format", "markdown"],
        0,
        &["| NODE-03 | core | - | sim, host, qemu, external | [node/good]"],
    );
    bench.ends(
        &["coverage", "--check"],
        1,
        &["NODE-04: no scenario cites it, nothing shows it", "3 requirements: 1 without a scenario\n"],
    );
    let line = bench.ends(&["coverage", "--check", "--format", "json"], 1, &[]);
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["requirements"], &line["gaps"][0]["id"]), (&json!(3), &json!("NODE-04")));
    bench.write("suites/node/more.yaml", &scenario("more", "NODE-04", "200"));
    bench.ends(&["coverage", "--check"], 0, &["3 requirements: each has a scenario, or a reason for none"]);
    let none = bench.ends(&["coverage", "--check", "--format", "json"], 0, &[]);
    let none: serde_json::Value = serde_json::from_str(&none).unwrap();
    assert_eq!(none, json!({"requirements": 3, "gaps": []}));
    bench.ends(&["coverage", "--check", "--mutants"], 2, &["there is no ledger ci/ledger/mutants-DATE.json"]);
    bench.write(
        "ci/ledger/mutants-2026-11-30.json",
        "{\"version\": 1, \"date\": \"2026-11-30\", \"lines\": []}",
    );
    bench.ends(
        &["coverage", "--check", "--mutants"],
        1,
        &["NODE-03: no mutant turns node/good red", "2 without a scenario that a mutant turns red"],
    );
    bench.write("ci/ledger/mutants-2026-11-30.json", "{\"version\": 1}");
    bench.ends(&["coverage"], 2, &["ci/ledger/mutants-2026-11-30.json: this is no ledger of mutants"]);
}

#[test]
fn a_requirement_that_is_not_there_is_told_with_those_that_are_near() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "NODE-03", "200"));
    bench.ends(
        &["explain", "NODE-03"],
        0,
        &["NODE-03 in node, profile kube32: core for kube32", "What good says."],
    );
    bench.ends(
        &["explain", "NODE-30"],
        2,
        &["no requirement is called NODE-30", "near are NODE-03, NODE-04"],
    );
    bench.ends(&["explain", "whatever-else"], 2, &["rigor coverage lists them"]);
    bench.ends(&["explain", "NODE-03", "--report", "nowhere"], 2, &["nowhere: No such file"]);
    bench.ends(&["explain", "NODE-03", "--report", "rigs/sim.yaml"], 2, &["this is no conformance report"]);
}

#[cfg(feature = "sim")]
#[test]
fn a_report_is_explained_and_gated() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "NODE-03", "200"));
    bench.write("suites/node/more.yaml", &scenario("more", "NODE-04", "200"));
    let run = |folder: &str, code: i32| {
        bench.ends(&["run", "--rig", "sim", "--report-dir", folder], code, &[]);
    };
    run("report-before", 0);
    bench.ends(&["explain", "NODE-03"], 0, &["    last: pass\n", "last results: report-before on rig sim"]);
    bench.ends(&["gate", "--report", "report-before"], 0, &["accepted: 2 trials on rig sim (2 pass)\n"]);
    bench.ends(&["gate", "--report", "report-before", "--require", "kube32"], 0, &["for the profile kube32"]);
    bench.ends(
        &["gate", "--report", "report-before", "--require", "upstream"],
        1,
        &["UP-01, core for upstream: no trial of the report cites it", "refused for 1 reason: "],
    );
    bench.ends(
        &["gate", "--report", "report-before/report.yaml", "--release"],
        1,
        &["rig.kind is sim: sim has neither emulator nor board", ", for a release\n"],
    );
    bench.write("suites/node/good.yaml", &scenario("good", "NODE-03", "409"));
    run("report-after", 1);
    bench.ends(
        &["gate", "--report", "report-after", "--baseline", "report-before"],
        1,
        &[
            "node/good failed (",
            "regression: node/good passed in the baseline and is fail now (",
            "refused for 2 reasons",
        ],
    );
    bench.ends(
        &["gate", "--report", "report-before", "--baseline", "report-after"],
        0,
        &["against report-after"],
    );
    bench.ends(&["gate", "--report", "report"], 2, &["report: No such file", "rigor run --report-dir"]);
    let report = std::fs::read_to_string(bench.path("report-before/report.yaml")).unwrap();
    assert!(report.contains("profile: kube32"), "{report}");
    bench.write("report-host/report.yaml", &report.replace("kind: sim", "kind: host"));
    bench.ends(
        &["gate", "--report", "report-host", "--baseline", "report-before"],
        2,
        &["the baseline is of a rig of kind sim (sim)", "the same kind of rig"],
    );
}
