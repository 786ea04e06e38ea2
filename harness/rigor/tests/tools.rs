//! The tools for people who write scenarios, as they meet them: lint, new, fmt, watch, trace, judge, list.
#![cfg(feature = "sim")]

mod bench;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bench::Bench;

/// Only bounds what never comes.
const PATIENCE: Duration = Duration::from_secs(60);

const CATALOGUE: &str = "  - {id: NODE-03, profile: kube32, must: \"be so\"}\n  - {id: UP-01, profile: upstream, must: \"be so\"}\n";

impl Bench {
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn passes(&self, arguments: &[&str]) -> String {
        let (exit, stdout, stderr) = self.rigor(arguments);
        assert_eq!(exit, 0, "{arguments:?}\n{stdout}\n{stderr}");
        stdout
    }

    fn refused(&self, arguments: &[&str], said: &str) {
        let (exit, stdout, stderr) = self.rigor(arguments);
        assert_eq!(exit, 2, "{arguments:?}\n{stdout}\n{stderr}");
        let flat = stderr.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(said), "{arguments:?} does not say `{said}`:\n{stderr}");
    }
}

fn scenario(name: &str, steps: &str) -> String {
    format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata:\n  name: {name}\n  requirements: [NODE-03]\n  profile: kube32\nspec:\n  rig: {{boards: 1}}\n  steps:\n{steps}"
    )
}

const GOOD: &str = "    - wait: 1s\n";
const JUDGED: &str = "    - request: {method: GET, path: /readyz, answer: {status: 200}}\n";

#[test]
fn a_new_scenario_is_right_and_runs() {
    let bench = Bench::new(CATALOGUE);
    for (name, boards) in [("first-light", "1"), ("on-paper", "0"), ("two-lamps", "2")] {
        let path = format!("suites/node/{name}.yaml");
        let made =
            bench.passes(&["new", name, "--area", "node", "--requirements", "NODE-03", "--boards", boards]);
        assert!(made.contains(&path) && made.contains("rigor run --watch"), "{made}");
        let (_, stdout, _) = bench.rigor(&["lint", "--deny-warnings", "--format", "short", &path]);
        assert_eq!(stdout, "1 scenario file and 0 rigs: no mistakes, no warnings\n");
        bench.passes(&["fmt", "--check", &path]);
        let ran = bench.passes(&["run", &path, "--rig", "sim"]);
        assert!(ran.contains("1 pass"), "{ran}");
    }
    let before = bench.read("suites/node/first-light.yaml");
    bench
        .refused(&["new", "first-light", "--area", "other", "--requirements", "NODE-03"], "is there already");
    bench.refused(
        &["new", "First", "--requirements", "NODE-03"],
        "nothing is written: `First` cannot be a name",
    );
    let (_, _, stderr) = bench.rigor(&["new", "First", "--requirements", "NODE-03"]);
    assert!(!stderr.contains("First.yaml"), "no file is named that is not there: {stderr}");
    bench.refused(&["new", "x", "--requirements", "NODE-30"], "did you mean NODE-03?");
    bench.write("suites/schema/scenario.json", "{}");
    for area in ["../x", "schema", "Node", "requirements.yaml", ""] {
        bench.refused(&["new", "x", "--area", area, "--requirements", "NODE-03"], "is no area");
    }
    bench.refused(&["new", "x", "--area", "schema", "--requirements", "NODE-03"], "areas are node;");
    assert_eq!(bench.read("suites/node/first-light.yaml"), before);
    assert!(!bench.path("suites/node-lifecycle").exists(), "nothing is made where something is wrong");
}

#[test]
fn lint_looks_between_files() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/a/twin.yaml", &scenario("twin", GOOD));
    bench.write("suites/b/twin.yaml", &scenario("twin", GOOD));
    bench.write("suites/a/other.yaml", &scenario("another", "    - wait: 5\n"));
    bench.write(
        "suites/a/idle.yaml",
        &scenario(
            "idle",
            "    - capture: {of: {kind: Node, name: a}, fields: {uid: metadata.uid}}\n    - wait: 1s\n      as: later\n",
        ),
    );
    bench.write(
        "suites/a/rare.yaml",
        &scenario("rare", GOOD).replace("{boards: 1}", "{boards: 26, needs: [kubectl, power]}"),
    );
    bench.write("suites/a/up.yaml", &scenario("up", GOOD).replace("NODE-03", "UP-01"));
    let (exit, stdout, _) = bench.rigor(&["lint", "--format", "short"]);
    assert_eq!(exit, 2, "{stdout}");
    insta::assert_snapshot!(stdout);
    // Warnings alone are not wrong, unless it is said.
    assert_eq!(bench.rigor(&["lint", "a/idle"]).0, 0);
    assert_eq!(bench.rigor(&["lint", "a/idle", "--deny-warnings"]).0, 2);
}

#[test]
fn leases_that_would_run_out_on_every_rig_are_told() {
    let bench = Bench::new(CATALOGUE);
    let with = |renew: &str| {
        scenario("late", JUDGED)
            .replace("  steps:", &format!("  constants: {{renewInterval: {renew}}}\n  steps:"))
    };
    bench.write("suites/a/late.yaml", &with("20s"));
    let (exit, stdout, _) = bench.rigor(&["lint", "--format", "short", "a/late"]);
    let said = "suites/a/late.yaml:9:14: warning: no rig here can run it: on host, leases would run out before they are renewed: renewInterval is 20s and leaseDuration 15s; state a renewInterval that is shorter";
    assert!(exit == 0 && stdout.contains(said), "{stdout}");
    let (exit, stdout, _) = bench.rigor(&["run", "--rig", "sim", "a/late"]);
    assert!(exit == 3 && stdout.contains("SKIP") && stdout.contains("leases would run out"), "{stdout}");
    // On one of them it is right.
    bench.write("suites/a/late.yaml", &with("12s"));
    let (_, stdout, _) = bench.rigor(&["lint", "--format", "short", "a/late"]);
    assert!(stdout.ends_with("no mistakes, no warnings\n"), "{stdout}");
}

#[test]
fn lint_speaks_to_programs() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/a/bad.yaml", &scenario("bad", "    - power: {board: a, do: offf}\n    - wait: 5\n"));
    let (exit, stdout, stderr) = bench.rigor(&["lint", "--format", "json", "a/bad"]);
    assert_eq!((exit, stderr.as_str()), (2, ""));
    let findings: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        findings[1],
        serde_json::json!({
            "file": "suites/a/bad.yaml", "severity": "error", "line": 11, "column": 13, "endLine": 11, "endColumn": 14,
            "message": "a duration needs a unit; 5 is a bare number", "remedy": "write 5s or 5ms",
        })
    );
    assert_eq!(findings.len(), 2, "{stdout}");
}

#[test]
fn lint_tells_of_files_that_it_cannot_read() {
    let bench = Bench::new(CATALOGUE);
    let latin = scenario("latin", GOOD).into_bytes().into_iter().chain(*b"    # \xe4\n").collect::<Vec<u8>>();
    bench.write("suites/a/good.yaml", &scenario("good", GOOD));
    std::fs::write(bench.path("suites/a/latin.yaml"), latin).unwrap();
    let (exit, stdout, stderr) = bench.rigor(&["lint", "--format", "json", "suites/a/latin.yaml"]);
    assert_eq!((exit, stderr.as_str()), (2, ""), "{stdout}");
    let finding: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&finding["line"], &finding["column"]), (&serde_json::json!(11), &serde_json::json!(7)));
    assert_eq!(finding["message"], "the file is not UTF-8: the byte 0xE4 stands here");
    let (exit, stdout, _) = bench.rigor(&["lint", "--format", "json", "suites/a/none.yaml"]);
    let finding: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((exit, &finding["file"]), (2, &serde_json::json!("suites/a/none.yaml")));
    bench.refused(&["lint", "suites/a/none.yaml"], "suites/a/none.yaml: No such file");
}

#[test]
fn a_scenario_names_files_of_the_suites_only() {
    let bench = Bench::new(CATALOGUE);
    bench.write("secret.yaml", "hidden: words\n");
    bench.write("suites/a/notes.yaml", "apiVersion: v1\n---\njust a text\n");
    for (name, file, said) in [
        ("climbs", "../../secret.yaml", "outside of the folder of all suites"),
        ("absolute", "/etc/passwd", "named by a path that is relative"),
        ("text", "notes.yaml", "holds something else than objects"),
    ] {
        let path = format!("suites/a/{name}.yaml");
        bench.write(&path, &scenario(name, &format!("    - apply: {{file: {file}}}\n")));
        let (exit, stdout, _) = bench.rigor(&["lint", "--format", "short", &path]);
        assert_eq!(exit, 2, "{stdout}");
        assert!(stdout.contains(&format!("{path}:10:21: error: ")) && stdout.contains(said), "{stdout}");
        assert!(!stdout.contains("hidden") && !stdout.contains("root:") && !stdout.contains("just a text"));
    }
}

#[test]
fn a_warning_is_called_one_and_counts_when_it_is_asked_to() {
    let bench = Bench::new(CATALOGUE);
    bench.write(
        "suites/a/idle.yaml",
        &scenario("idle", &format!("    - wait: 1s\n      as: later\n{JUDGED}")),
    );
    let (exit, stdout, stderr) = bench.rigor(&["lint", "a/idle"]);
    assert_eq!((exit, stdout.as_str()), (0, "1 scenario file and 0 rigs: no mistakes, 1 warning\n"));
    assert!(stderr.contains("has a warning") && stderr.contains("Warning:"), "{stderr}");
    assert!(!stderr.contains("Error") && !stderr.contains("mistake"), "{stderr}");
    assert_eq!(bench.rigor(&["lint", "a/idle", "--deny-warnings"]).0, 2);
}

#[test]
fn a_scenario_that_expects_nothing_is_told() {
    let bench = Bench::new(CATALOGUE);
    let create = "{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}";
    let idle = [
        "    - wait: 1s\n".to_owned(),
        format!("    - create: {create}}}\n"),
        format!("    - parallel:\n        - create: {create}}}\n        - cordon: {{node: a}}\n"),
        "    - wait: 1s\n  cleanup:\n    - expect: {of: {kind: Pod, name: p}, absent: true, within: 1s}\n"
            .to_owned(),
    ];
    for steps in idle {
        bench.write("suites/a/idle.yaml", &scenario("idle", &steps));
        let (exit, stdout, _) = bench.rigor(&["lint", "a/idle", "--format", "short"]);
        let first = "suites/a/idle.yaml:10:5: warning: the scenario expects nothing, so it passes whatever happens; say with";
        assert!(exit == 0 && stdout.starts_with(first), "{stdout}");
    }
    let judged = [
        format!(
            "    - parallel:\n        - create: {create}, answer: {{status: 201}}}}\n        - cordon: {{node: a}}\n"
        ),
        "    - never: {of: {kind: Pod}, from: start, for: 1s}\n".to_owned(),
        "    - kubectl: {args: [version]}\n".to_owned(),
    ];
    for steps in judged {
        bench.write("suites/a/judged.yaml", &scenario("judged", &steps));
        let (exit, stdout, _) = bench.rigor(&["lint", "a/judged", "--format", "short"]);
        assert_eq!((exit, stdout.as_str()), (0, "1 scenario file and 0 rigs: no mistakes, no warnings\n"));
    }
}

#[test]
fn what_a_rig_names_is_told_at_the_rig() {
    let bench = Bench::new(CATALOGUE);
    let rig = bench.read("rigs/sim.yaml");
    let kept: String =
        rig.lines().filter(|line| !line.contains("limitations:")).map(|line| format!("{line}\n")).collect();
    let line = kept.lines().position(|line| line == "spec:").unwrap() + 2;
    bench.write("rigs/sim.yaml", &kept.replace("spec:\n", "spec:\n  limitations: nowhere.yaml\n"));
    let (exit, stdout, _) = bench.rigor(&["lint", "--format", "short", "rigs/sim.yaml"]);
    assert_eq!(exit, 2);
    assert!(
        stdout
            .starts_with(&format!("rigs/sim.yaml:{line}:16: error: the file of limitations `nowhere.yaml`")),
        "{stdout}"
    );
}

#[test]
fn a_manifest_or_a_page_is_one_mistake_even_between_files() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/a/twin.yaml", &scenario("twin", GOOD));
    for (name, text) in [
        ("web", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: twin}\nspec: {replicas: 2}\n"),
        ("readme", "# Read me\n\nThis is a page.\n"),
        ("under_score", &scenario("under_score", GOOD)),
    ] {
        bench.write(&format!("own/{name}.yaml"), text);
        let (exit, stdout, _) = bench.rigor(&["lint", "--format", "short", &format!("own/{name}.yaml")]);
        assert_eq!((exit, stdout.lines().count()), (2, 2), "{stdout}");
    }
}

#[test]
fn a_file_alone_is_compared_with_those_that_may_be_its_twins() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/a/twin.yaml", &scenario("twin", GOOD));
    bench.write("suites/b/twin.yaml", &scenario("twin", GOOD));
    // Another one is not even read: what is wrong with it is no concern of this one's.
    std::fs::write(bench.path("suites/b/latin.yaml"), b"\xff").unwrap();
    let (exit, stdout, _) = bench.rigor(&["lint", "--format", "short", "a/twin"]);
    assert_eq!(exit, 2);
    assert!(
        stdout.contains("a/twin.yaml:4:9: error: the name twin is given twice, also by suites/b/twin.yaml"),
        "{stdout}"
    );
}

#[test]
fn fmt_lays_out_and_leaves_what_is_broken() {
    let bench = Bench::new(CATALOGUE);
    let odd = scenario("odd", "    - as: x\n      power: { board: a,do: cut }  # now\n");
    bench.write("suites/a/odd.yaml", &odd);
    bench.write("suites/a/broken.yaml", "a: [\n");
    let (exit, stdout, stderr) = bench.rigor(&["fmt", "--check"]);
    assert_eq!((exit, bench.read("suites/a/odd.yaml")), (2, odd.clone()), "{stdout}{stderr}");
    assert!(
        stdout.contains("suites/a/odd.yaml is not laid out") && stderr.contains("this is no YAML"),
        "{stdout}{stderr}"
    );
    bench.passes(&["fmt", "a/odd"]);
    let laid = scenario("odd", "    - power: {board: a, do: cut}  # now\n      as: x\n");
    assert_eq!(bench.read("suites/a/odd.yaml"), laid);
    bench.passes(&["fmt", "--check", "a/odd", "rigs"]);
    assert_eq!(bench.read("suites/a/broken.yaml"), "a: [\n");
    let left: Vec<_> =
        std::fs::read_dir(bench.path("suites/a")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

/// A scenario with an outage, whose timeline has some of everything.
const STORY: &str = "    - create: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: lamp}, spec: {containers: [{name: main, image: rigor.dev/pause}]}}}\n    - expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, within: 10s}\n    - request: {method: GET, path: /api/v1/nodes/none, answer: {status: 404}}\n    - power: {board: a, do: cut}\n      as: outage\n    - expect: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: Unknown}]}}, within: 20s}\n      as: unknown\n    - order: [outage, unknown]\n";

#[test]
fn a_history_reads_as_a_timeline() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/story.yaml", &scenario("story", STORY));
    bench.passes(&["run", "node/story", "--rig", "sim", "--seed", "3"]);
    // What is drawn says nothing here, and lines are cut.
    let told = |arguments: &[&str]| {
        let text = bench.passes(arguments);
        text.lines()
            .filter(|line| !line.contains("bootID"))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let node = told(&["trace", "report", "--object", "node/a", "--width", "110"]);
    assert!(node.lines().all(|line| line.chars().count() <= 110), "{node}");
    insta::assert_snapshot!("timeline_of_a_node", node);
    insta::assert_snapshot!(
        "timeline_of_a_step",
        told(&["trace", "report/events.jsonl", "--step", "4", "--width", "110"])
    );
    let whole = bench.passes(&["trace", "report"]);
    for part in [
        "story on rig sim, seed 3",
        "step 1 ",
        "console a",
        "event lamp",
        "request 1",
        "404",
        "power a",
        "instant",
        "outage",
    ] {
        assert!(whole.contains(part), "no `{part}` in\n{whole}");
    }
    assert!(
        !whole.contains('\u{1b}') && !whole.contains("pulse") && !whole.contains("spec.renewTime"),
        "{whole}"
    );
    assert!(bench.passes(&["trace", "report", "--all"]).contains("synced"));
    let board = bench.passes(&["trace", "report", "--board", "a"]);
    assert!(board.contains("power a") && !board.contains("pod lamp"), "{board}");
    let late = bench.passes(&["trace", "report", "--from", "10s", "--to", "20s"]);
    let within =
        |line: &str| (10.0..=20.0).contains(&line.trim_start().split(' ').next().unwrap().parse().unwrap());
    assert!(late.contains("node a") && late.lines().all(within), "{late}");
    bench.refused(
        &["trace", "report", "--from", "10s", "--to", "12s"],
        "nothing was recorded that all of these",
    );
    assert!(
        bench
            .passes(&["trace", "report", "--width", "60"])
            .lines()
            .all(|line| line.chars().count() <= 60 + 14)
    );
    bench.refused(&["trace", "report", "--trial", "other"], "it holds story");
    bench.refused(&["trace", "report", "--trial", "node/other"], "it holds story");
    let step = |trial: &str| bench.passes(&["trace", "report", "--trial", trial, "--step", "3"]);
    assert_eq!(step("node/story"), step("story"), "as rigor list names it, and as the history does");
    for (arguments, said) in [
        (&["--step", "99"][..], "no step 99 was begun help: those that were begun are 1, 2, 3, 4, 5, 6"),
        (
            &["--object", "node/b"],
            "no object node/b was seen or asked for help: those that were seen are Lease/a,",
        ),
        (&["--object", "pod/none"], "no object pod/none was seen"),
        (&["--board", "b"], "there is no board b help: the boards are a"),
        (&["--from", "10h"], "nothing was recorded from 36000.000 s on help: the last record is at "),
        (&["--from", "3s", "--to", "1s"], "nothing lies between 3.000 s and 1.000 s"),
    ] {
        bench.refused(&[&["trace", "report"], arguments].concat(), said);
    }
    // What was only asked for, and never there, has a line.
    assert!(bench.passes(&["trace", "report", "--object", "node/none"]).contains("404"));
    // Without the suites nothing tells which seed gives this one again.
    let alone = bench.passes(&["trace", "report", "--suites", "nowhere"]);
    assert!(alone.lines().next().unwrap().ends_with(" of its own"), "{alone}");
    bench.refused(&["trace", "nowhere"], "nowhere: No such file");
}

#[test]
fn a_verdict_is_the_same_afterwards() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", STORY));
    let wrong =
        "    - request: {method: GET, path: /api/v1/nodes/none, answer: {status: 200}}\n    - wait: 1s\n";
    bench.write("suites/node/wrong.yaml", &scenario("wrong", wrong));
    let (exit, ran, _) = bench.rigor(&["run", "--rig", "sim"]);
    assert_eq!(exit, 1, "{ran}");
    // Over the report, and over the evidence of the one that failed.
    assert!(bench.passes(&["judge", "--history", "report", "node/good"]).starts_with("pass node/good\n"));
    for history in ["report", "report/evidence/node/wrong", "report/evidence/node/wrong/events.jsonl"] {
        let (exit, stdout, stderr) = bench.rigor(&["judge", "--history", history, "node/wrong"]);
        assert_eq!(exit, 1, "{history}\n{stdout}\n{stderr}");
        assert!(stdout.starts_with("fail node/wrong\n"), "{stdout}");
    }
    let (exit, stdout, _) = bench.rigor(&["judge", "--history", "report", "--format", "json"]);
    assert_eq!(exit, 1);
    let verdicts: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = verdicts
        .iter()
        .map(|one| (one["trial"].as_str().unwrap(), one["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("node/good", "pass"), ("node/wrong", "fail")]);
    for scenarios in [&[][..], &["node"], &["suites/node"]] {
        let (exit, stdout, _) = bench.rigor(&[&["judge", "--history", "report"], scenarios].concat());
        assert!(exit == 1 && stdout.ends_with("\n2 trials: 1 pass, 1 fail\n"), "{stdout}");
    }
    bench.refused(&["judge", "--history", "report", "node/*"], "patterns are the shell's to expand");
    assert_eq!(verdicts[1]["steps"][0]["outcome"], "fail");
    assert!(ran.contains(verdicts[1]["message"].as_str().unwrap().lines().next().unwrap()), "{ran}");
    // A history of something else, and of another version.
    bench.write("suites/node/fresh.yaml", &scenario("fresh", GOOD));
    bench.refused(&["judge", "--history", "report", "node/fresh"], "it holds good, wrong");
    bench.write("suites/node/good.yaml", &scenario("good", GOOD));
    bench.refused(&["judge", "--history", "report", "node/good"], "recorded with another version");
}

/// A `rigor run --watch` that is read line by line, and ended with the test.
struct Watch(Child, Receiver<String>);

impl Watch {
    fn start(bench: &Bench, file: &str) -> Watch {
        let mut child = bench
            .command(&["run", "--watch", file])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Watch(child, lines)
    }

    /// Everything up to the line that says it waits for the next change.
    fn round(&self) -> String {
        let mut text = String::new();
        loop {
            let line = self.1.recv_timeout(PATIENCE).expect("another round");
            if line.starts_with("watching ") {
                return text;
            }
            text.push_str(&format!("{line}\n"));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_watched_scenario_runs_again_on_each_change() {
    let bench = Bench::new(CATALOGUE);
    let file = "suites/node/seen.yaml";
    let with = |what: &str| {
        scenario(
            "seen",
            &format!("    - create: {{file: pod.yaml}}\n    - request: {{method: GET, path: {what}}}\n"),
        )
    };
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: m, image: rigor.dev/pause}]}\n";
    bench.write("suites/node/pod.yaml", pod);
    bench.write(file, &with("/api/v1/nodes"));
    let watch = Watch::start(&bench, file);
    let round = watch.round();
    assert!(round.contains("1 pass"), "{round}");
    assert!(!round.contains('\u{1b}'), "no screen is cleared where there is none: {round}");
    // As editors do: a new file in the place of the old one.
    bench.write("suites/node/seen.yaml~", &with("/api/v1/nodes/none-such"));
    std::fs::rename(bench.path("suites/node/seen.yaml~"), bench.path(file)).unwrap();
    let round = watch.round();
    assert!(round.contains("1 fail"), "{round}");
    bench.write(file, &with("/api/v1/nodes").replace("create:", "creat:"));
    let round = watch.round();
    assert!(round.contains("did you mean `create`?") && !round.contains("Summary"), "{round}");
    // As others do: the file is gone for a while.
    std::fs::remove_file(bench.path(file)).unwrap();
    bench.write(file, &with("/api/v1/nodes"));
    let mut round = watch.round();
    if !round.contains("1 pass") {
        round = watch.round();
    }
    assert!(round.contains("1 pass"), "{round}");
    // What it names is watched as well.
    bench.write("suites/node/pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {}\n");
    let round = watch.round();
    assert!(round.contains("the object has no name"), "{round}");
    bench.refused(&["run", "--watch"], "name the scenario you are writing");
}

#[test]
fn a_list_says_what_is_missing_and_a_filter_what_it_does_not_know() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", GOOD));
    let program = bench.path("rigs/sim.yaml").display().to_string();
    let output = bench
        .command(&["list", "--rig", "qemu-short"])
        .env("RIGOR_CONTROL_PLANE", &program)
        .env("RIGOR_FIRMWARE", &program)
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("1 trial on rig qemu-short: 0 skipped"), "{stderr}");
    assert!(
        stderr.contains("none of them can run here: the emulator qemu-system-riscv32 is not installed"),
        "{stderr}"
    );
    let (exit, _, stderr) = bench.rigor(&["list", "--rig", "sim"]);
    assert!(exit == 0 && !stderr.contains("none of them"), "{stderr}");
    for command in ["run", "list"] {
        bench.refused(
            &[command, "--rig", "sim", "--filter", "req:NODE-30"],
            "no requirement is called NODE-30",
        );
    }
    assert_eq!(bench.rigor(&["list", "--rig", "sim", "--filter", "req:NODE & req:UP-01"]).0, 0);
}
