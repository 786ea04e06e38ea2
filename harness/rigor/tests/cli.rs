//! The program as a person meets it: bad input of every kind, exit codes, and what is said.

mod bench;

use std::path::Path;

use bench::{Bench, told};

const CATALOGUE: &str = "  - {id: NODE-03, profile: kube32, must: \"be so\"}\n";

const HEAD: &str = "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\n";

/// A request that the API answers with 200, or is said to be answered otherwise.
fn scenario(name: &str, answer: &str) -> String {
    format!(
        "{HEAD}metadata: {{name: {name}, requirements: [NODE-03], profile: kube32, tags: [quick]}}\nspec:\n  steps:\n  - request: {{method: GET, path: /api/v1/nodes, answer: {{status: {answer}}}}}\n"
    )
}

impl Bench {
    fn rigor_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
        told(self.command(arguments).envs(environment.iter().copied()))
    }

    fn refused(&self, arguments: &[&str], code: i32, said: &[&str]) {
        let (exit, stdout, stderr) = self.rigor(arguments);
        assert_eq!(exit, code, "{arguments:?}\n{stdout}\n{stderr}");
        // Messages are wrapped to the terminal's width.
        let flat = stderr.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        for part in said {
            assert!(flat.contains(part), "{arguments:?} does not say `{part}`:\n{stderr}");
        }
    }
}

#[test]
fn bad_input_is_told_with_a_remedy() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    bench.write("bad/key.yaml", &scenario("key", "200").replace("method:", "methd:"));
    bench.write("bad/id.yaml", &scenario("id", "200").replace("NODE-03", "NODE-30"));
    bench.write("bad/bare.yaml", &scenario("bare", "200").replace("  steps:\n", "  steps:\n  - wait: 5\n"));
    bench.write("bad/name.yaml", &scenario("other", "200"));
    bench.write(
        "bad/rig.yaml",
        "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {name: rig}\nspec: {kind: simm}\n",
    );
    for (arguments, said) in [
        (vec!["run"], vec!["--rig <FILE|NAME>"]),
        (vec!["run", "--rig", "qemo"], vec!["there is no rig `qemo`", "known are host, qemu-short, sim"]),
        (vec!["run", "--rig", "no/such.yaml"], vec!["there is no rig `no/such.yaml`"]),
        (vec!["run", "--rig", "bad/rig.yaml"], vec!["bad/rig.yaml:4:", "simm"]),
        (vec!["run", "--rig", "sim", "nowhere"], vec!["nowhere: No such file", "name an area below suites/"]),
        (
            vec!["run", "--rig", "sim", "suites/no*"],
            vec!["suites/no*: no file is called that, and patterns are the shell's to expand"],
        ),
        (
            vec!["run", "--rig", "sim", "bad/key.yaml"],
            vec!["bad/key.yaml:6:", "methd", "did you mean `method`?"],
        ),
        (
            vec!["run", "--rig", "sim", "bad/id.yaml"],
            vec!["no requirement is called NODE-30", "did you mean NODE-03?"],
        ),
        (vec!["run", "--rig", "sim", "bad/bare.yaml"], vec!["is a bare number"]),
        (
            vec!["run", "--rig", "sim", "bad/name.yaml"],
            vec!["the scenario in it is called other", "rename one of them"],
        ),
        (vec!["run", "--rig", "sim", "--filter", "colour:red"], vec!["`colour:` is unknown"]),
        (
            vec!["run", "--rig", "sim", "--faults", "mildd"],
            vec!["--faults mildd is no level, and no file", "write none, mild or harsh"],
        ),
        (
            vec!["run", "--rig", "sim", "--faults", "bad/rig.yaml"],
            vec!["bad/rig.yaml is no schedule of faults", "\"level\": \"harsh\""],
        ),
        (vec!["run", "--rig", "sim", "--no-fail-fast"], vec!["--seeds <N>"]),
        (vec!["run", "--rig", "sim", "--seeds", "0"], vec!["0 is not in 1..=10000000"]),
        (
            vec!["run", "--rig", "host", "--faults", "mild"],
            vec!["the rig host is of kind host", "so --faults means nothing there", "leave --faults out"],
        ),
        (vec!["run", "--rig", "host", "--seeds", "2"], vec!["so --seeds means nothing there"]),
        (
            vec!["run", "--rig", "sim", "--seed", "18446744073709551614", "--seeds", "3"],
            vec!["there are no 3 seeds from 18446744073709551614 on", "begin earlier, or with fewer --seeds"],
        ),
        (
            vec!["run", "--rig", "sim", ""],
            vec!["'': the name is empty; a variable of the shell may not be set"],
        ),
        (vec!["lint", ""], vec!["'': the name is empty"]),
        (vec!["run", "--rig", "sim", "--seed", "x"], vec!["invalid value 'x' for '--seed <N>'"]),
        (
            vec!["run", "--rig", "sim", "--report-dir", "rigs/sim.yaml/x"],
            vec!["name another one with --report-dir"],
        ),
        (vec!["lint", "bad"], vec!["did you mean `method`?", "did you mean NODE-03?"]),
        (vec!["lint", "bad/rig.yaml"], vec!["simm"]),
        (
            vec!["judge", "--history", "none.jsonl", "node/good"],
            vec!["none.jsonl: No such file", "rigor import"],
        ),
        (
            vec!["judge", "--history", "rigs/sim.yaml", "node/good"],
            vec!["line 1: this is no record of a history"],
        ),
        (
            vec!["import", "rigs/sim.yaml", "--out", "out.jsonl"],
            vec!["rigs/sim.yaml, line 1:", "RecordingStarted"],
        ),
        (vec!["import", "x", "--out", "y", "--constant", "lease=5s"], vec!["there is no constant `lease`"]),
        (vec!["run", "--rig", "sim", "--suites", "nowhere"], vec!["nowhere/requirements.yaml", "--suites"]),
    ] {
        bench.refused(&arguments, 2, &said);
    }
    bench.write("empty/README.md", "nothing");
    bench.refused(&["lint", "empty"], 2, &["empty: there is nothing to look at"]);
    bench.refused(&["lint", "suites/node/good.yaml", "empty"], 2, &["empty: there is nothing to look at"]);
    let (exit, stdout, _) = bench.rigor(&["lint", "--format", "short", "empty"]);
    assert!(
        exit == 2 && stdout.starts_with("empty:1:1: error: ") && stdout.contains("nothing to look at"),
        "{stdout}"
    );
    bench.refused(&["run", "--rig", "sim", "bad"], 2, &["5 files cannot be read, so nothing was run"]);
    let (_, _, stderr) = bench.rigor(&["lint", "bad/key.yaml"]);
    insta::assert_snapshot!(stderr);
}

#[test]
fn the_schemas_are_those_that_ship() {
    let bench = Bench::new(CATALOGUE);
    let shipped = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/schema").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    for (arguments, file) in [
        (vec!["schema"], "scenario.json"),
        (vec!["schema", "scenario"], "scenario.json"),
        (vec!["schema", "rig"], "rig.json"),
        (vec!["schema", "limitations"], "limitations.json"),
    ] {
        let (exit, stdout, _) = bench.rigor(&arguments);
        assert_eq!((exit, stdout), (0, shipped(file)), "{arguments:?}");
    }
    bench.refused(&["schema", "pod"], 2, &["possible values: scenario, rig, fragment, limitations"]);
}

#[test]
fn what_the_rig_lacks_is_the_rigs_failure() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    let check = |rig: &str, environment: &[(&str, &str)], said: &[&str]| {
        let (exit, stdout, stderr) = bench.rigor_with(&["run", "--rig", rig], environment);
        assert_eq!(exit, 3, "{stdout}\n{stderr}");
        for part in said {
            assert!(stderr.contains(part), "{stderr}");
        }
    };
    let program = bench.path("rigs/sim.yaml").display().to_string();
    let control_plane = ("RIGOR_CONTROL_PLANE", program.as_str());
    check(
        "host",
        &[("RIGOR_KUBELET_HOST", "/nowhere/kubelet-host")],
        &["RIGOR_KUBELET_HOST says", "cargo build -p boards-host"],
    );
    check(
        "qemu-short",
        &[control_plane, ("RIGOR_FIRMWARE", program.as_str()), ("PATH", "/nowhere")],
        &["the emulator qemu-system-riscv32 is not installed", "remedy: install it"],
    );
    // A program that is none: the trial fails, and not as a matter of conformance.
    let (exit, stdout, stderr) = bench
        .rigor_with(&["run", "--rig", "host"], &[control_plane, ("RIGOR_KUBELET_HOST", program.as_str())]);
    assert_eq!(exit, 3, "{stdout}\n{stderr}");
    assert!(
        stdout.contains("INFRA") && stdout.contains("could not be started: Permission denied"),
        "{stdout}"
    );
}

#[cfg(feature = "sim")]
#[test]
fn a_run_leaves_a_report_and_the_right_exit_code() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    bench.write("suites/node/wrong.yaml", &scenario("wrong", "404"));
    bench.write(
        "suites/node/elsewhere.yaml",
        &scenario("elsewhere", "200").replace("spec:\n", "spec:\n  rig: {needs: [kubectl]}\n"),
    );
    let (exit, stdout, _) = bench.rigor(&["run", "--rig", "sim", "--filter", "good | elsewhere"]);
    assert_eq!(exit, 0, "{stdout}");
    assert!(stdout.contains("SKIP [         ] node/elsewhere: the rig sim lacks kubectl"), "{stdout}");
    for name in ["events.jsonl", "report.yaml", "junit.xml"] {
        assert!(bench.path("report").join(name).is_file(), "{name}");
    }
    assert_eq!(bench.rigor(&["run", "--rig", "sim", "--filter", "elsewhere"]).0, 3, "nothing passed");
    assert_eq!(bench.rigor(&["run", "--rig", "sim", "--filter", "nothing"]).0, 3, "nothing ran");
    let (exit, stdout, _) = bench.rigor(&["run", "--rig", "sim"]);
    assert_eq!(exit, 1, "{stdout}");
    assert!(stdout.contains("FAIL") && stdout.contains("evidence: report/evidence/node/wrong"), "{stdout}");
    let evidence = bench.path("report/evidence/node/wrong/events.jsonl");
    assert!(evidence.is_file() && !bench.path("report/evidence/node/good").exists());
    // The same verdicts again, over what was recorded.
    for (name, code) in [("node/good", 0), ("node/wrong", 1), ("suites/node/wrong.yaml", 1)] {
        let (exit, stdout, stderr) = bench.rigor(&["judge", "--history", "report/events.jsonl", name]);
        assert_eq!(exit, code, "{name}\n{stdout}\n{stderr}");
    }
    bench.refused(
        &["judge", "--history", "report/events.jsonl", "node/elsewhere"],
        2,
        &["holds no history of node/elsewhere"],
    );
}

#[cfg(feature = "sim")]
#[test]
fn a_simulated_run_is_the_same_bytes_for_any_number_of_workers() {
    let bench = Bench::new(CATALOGUE);
    for name in ["one", "two", "three", "four"] {
        let text = scenario(name, "200").replace("spec:\n", "spec:\n  rig: {boards: 1}\n");
        bench.write(&format!("suites/node/{name}.yaml"), &text);
    }
    let events = |jobs: &str, dir: &str| {
        let (exit, stdout, _) =
            bench.rigor(&["run", "--rig", "sim", "--seed", "7", "--jobs", jobs, "--report-dir", dir]);
        assert_eq!(exit, 0, "{stdout}");
        std::fs::read_to_string(bench.path(dir).join("events.jsonl")).unwrap()
    };
    let alone = events("1", "alone");
    assert!(alone.lines().count() > 40);
    assert_eq!(alone, events("4", "together"));
}

#[test]
fn a_listing_tells_what_cannot_run_and_why() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    bench.write(
        "suites/node/many.yaml",
        &scenario("many", "200").replace("spec:\n", "spec:\n  rig: {boards: 20}\n"),
    );
    let (exit, stdout, stderr) = bench.rigor(&["list"]);
    assert_eq!(exit, 0);
    assert_eq!(
        stdout,
        "node/good [NODE-03]\nnode/many (skipped: it needs 20 boards, and the rig sim has 10)\n"
    );
    assert_eq!(stderr, "2 trials on rig sim: 1 skipped, 0 cannot be read\n");
    bench.write("suites/node/broken.yaml", "kind: Scenari\n");
    let (exit, stdout, _) = bench.rigor(&["list", "--filter", "nothing"]);
    assert_eq!((exit, stdout.as_str()), (2, "node/broken (cannot be read: rigor lint)\n"));
}

#[test]
fn lint_looks_at_everything_and_at_names_across_suites() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    let (exit, stdout, stderr) = bench.rigor(&["lint"]);
    assert_eq!(
        (exit, stdout.as_str()),
        (0, "1 scenario file and 3 rigs: no mistakes, no warnings\n"),
        "{stderr}"
    );
    bench.write("suites/sched/good.yaml", &scenario("good", "200"));
    bench.refused(&["lint"], 2, &["the name good is given twice", "suites/sched/good.yaml"]);
}

#[test]
fn lint_counts_what_it_read() {
    let bench = Bench::new(CATALOGUE);
    bench.write("known.yaml", &limitations("  quarantine: []\n"));
    bench.write(
        "suites/node/fragments/shared.yaml",
        "apiVersion: rigor.dev/v1alpha1\nkind: Fragment\nmetadata: {name: shared}\nspec:\n  steps:\n    - wait: 1s\n",
    );
    for (what, said) in [
        (
            "known.yaml",
            "0 scenario files, 0 rigs and 1 file of known limitations: no mistakes, no warnings\n",
        ),
        ("suites/node/fragments", "0 scenario files, 0 rigs and 1 fragment: no mistakes, no warnings\n"),
        ("rigs", "0 scenario files and 3 rigs: no mistakes, no warnings\n"),
    ] {
        let (exit, stdout, stderr) = bench.rigor(&["lint", what]);
        assert_eq!((exit, stdout.as_str()), (0, said), "{stderr}");
    }
}

#[test]
fn nothing_of_a_file_drives_the_terminal() {
    let bench = Bench::new(CATALOGUE);
    let odd = scenario("odd", "200")
        .replace("method:", "\"\\e[31mmethd\": x # \u{1b}[2J\u{9b}31m\u{7}\n     , method:");
    bench.write("suites/node/odd.yaml", &odd);
    for format in ["full", "short", "json"] {
        let (exit, stdout, stderr) = bench.rigor(&["lint", "--format", format, "suites/node/odd.yaml"]);
        assert_eq!(exit, 2, "{stdout}{stderr}");
        let all = format!("{stdout}{stderr}");
        assert!(!all.chars().any(|sign| sign.is_control() && sign != '\n'), "{all:?}");
    }
}

#[test]
fn a_recording_can_be_imported() {
    let bench = Bench::new(CATALOGUE);
    bench.write(
        "recording.jsonl",
        "{\"kind\":\"RecordingStarted\",\"wall\":\"2026-11-29T12:58:51Z\"}\n{\"kind\":\"Mark\",\"at\":1.5,\"name\":\"off\",\"node\":\"n1\"}\n",
    );
    let (exit, stdout, stderr) = bench.rigor(&[
        "import",
        "--from",
        "watch-jsonl",
        "recording.jsonl",
        "--constant",
        "leaseDuration=50s",
        "--out",
        "events.jsonl",
    ]);
    assert_eq!((exit, stdout.as_str()), (0, "4 facts\n"), "{stderr}");
    let events = std::fs::read_to_string(bench.path("events.jsonl")).unwrap();
    assert!(
        events.contains("\"at\":1500000,\"kind\":\"Mark\",\"name\":\"off\",\"subject\":\"n1\""),
        "{events}"
    );
    let recording = std::fs::read(bench.path("recording.jsonl")).unwrap();
    let over = ["import", "recording.jsonl", "--out", "./recording.jsonl"];
    bench.refused(
        &over,
        2,
        &["is the recording itself, which would be lost", "name another file with --out"],
    );
    assert_eq!(std::fs::read(bench.path("recording.jsonl")).unwrap(), recording);
}

/// `rigor list | head -1`: whoever reads may leave.
#[test]
fn a_closed_output_ends_nothing() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = bench.command(&["run", "--rig", "sim"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_trial_is_run_by_the_name_that_the_list_shows() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    bench.write("suites/node/bad.yaml", &scenario("bad", "404"));
    let (code, out, _) = bench.rigor(&["run", "node/good", "--rig", "sim"]);
    assert!(code == 0 && out.contains("1 trial: 1 pass"), "{out}");
}

#[test]
fn a_rig_cannot_claim_a_machine_that_it_does_not_boot() {
    let bench = Bench::new(CATALOGUE);
    let rig = std::fs::read_to_string(bench.path("rigs/qemu-short.yaml")).unwrap();
    bench.write("rigs/odd.yaml", &rig.replace("machine: qemu-virt", "machine: qemu-nope"));
    let (code, _, said) = bench.rigor(&["lint", "rigs/odd.yaml"]);
    assert!(code == 2 && said.contains("qemu-nope") && said.contains("`emulator`"), "{said}");
}

/// A file of limitations with these lists under `spec`.
fn limitations(lists: &str) -> String {
    format!("apiVersion: rigor.dev/v1alpha1\nkind: Limitations\nmetadata: {{name: mine}}\nspec:\n{lists}")
}

#[test]
fn what_is_known_of_the_implementation_decides_what_a_failure_comes_to() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    bench.write("suites/node/bad.yaml", &scenario("bad", "409"));
    let entry = |scenario: &str, more: &str| {
        format!("  - {{scenario: {scenario}, reference: tickets/7, reason: it is slow{more}}}\n")
    };
    let known = |entry: String| limitations(&format!("  knownLimitations:\n{entry}"));
    let quarantine = |entry: String| limitations(&format!("  quarantine:\n{entry}"));
    let check = |text: String, code: i32, said: &[&str]| {
        bench.write("mine.yaml", &text);
        let (exit, stdout, stderr) =
            bench.rigor(&["run", "suites", "--rig", "sim", "--limitations", "mine.yaml"]);
        assert_eq!(exit, code, "{text}\n{stdout}\n{stderr}");
        let report = std::fs::read_to_string(bench.path("report/report.yaml")).unwrap_or_default();
        for part in said {
            assert!(
                format!("{stdout}{report}").contains(part),
                "{text} does not say `{part}`:\n{stdout}{report}"
            );
        }
    };
    check(limitations("  knownLimitations: []\n"), 1, &["1 fail"]);
    let reason = "KNOWN [   0.000s] node/bad: it is slow (tickets/7)";
    check(
        known(entry("node/bad", "")),
        0,
        &["1 known-limitation", reason, "known limitation node/bad (line 6, tickets/7): in force"],
    );
    check(
        known(entry("node/bad", "") + &entry("node/good", "")),
        5,
        &["STALE", "node/good (line 7, tickets/7): passed unexpectedly", "state: passed-unexpectedly"],
    );
    check(
        quarantine(entry("node/bad", ", until: 9999-12-31")),
        0,
        &["node/bad (quarantined)", "outcome: fail", "quarantined: \"quarantined until"],
    );
    check(quarantine(entry("node/bad", ", until: 2020-12-31")), 1, &["expired after 2020-12-31"]);
    check(quarantine(entry("node/good", ", until: 2020-12-31")), 1, &["1 fail"]);
    let xml = std::fs::read_to_string(bench.path("report/junit.xml")).unwrap();
    assert!(xml.contains("failures=\"1\""), "{xml}");

    // A rig file names them by a path of its own folder; lint reads them with it.
    let rig = std::fs::read_to_string(bench.path("rigs/sim.yaml")).unwrap();
    bench.write(
        "rigs/mine.yaml",
        &rig.replace("name: sim", "name: mine").replace("spec:\n", "spec:\n  limitations: ../mine.yaml\n"),
    );
    bench.write("mine.yaml", &known(entry("node/bad", "")));
    let (exit, stdout, stderr) = bench.rigor(&["run", "suites", "--rig", "mine"]);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    bench.write("mine.yaml", &known(entry("node/bed", "")));
    for arguments in [&["lint"][..], &["lint", "mine.yaml"], &["run", "suites", "--rig", "mine"]] {
        bench.refused(
            arguments,
            2,
            &["no scenario is called node/bed", "did you mean node/bad?", "mine.yaml:6:"],
        );
    }
    bench.refused(
        &["run", "--rig", "sim", "--limitations", "none.yaml"],
        2,
        &["none.yaml: No such file", "--limitations"],
    );
}

#[test]
fn many_seeds_are_searched_and_a_failure_is_told_with_the_command_that_shows_it_again() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    let (exit, stdout, stderr) = bench.rigor(&["run", "--rig", "sim", "--seeds", "5", "--seed", "3"]);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    assert!(stdout.contains("1 trial x 5 seeds (3 to 7): 5 runs, 0 failing"), "{stdout}");
    assert!(stdout.contains("times real time") && !stdout.contains("Faults"), "{stdout}");
    assert_eq!(
        std::fs::read(bench.path("report/events.jsonl")).unwrap(),
        b"",
        "nothing of what passes is kept"
    );

    let (exit, stdout, _) = bench.rigor(&["run", "--rig", "sim", "--shrink"]);
    assert!(exit == 0 && stdout.contains("1 trial x 1 seed (1): 1 run, 0 failing"), "{stdout}");
    assert!(stdout.contains("Shrunk nothing: no faults were injected"), "{stdout}");
    let (_, stdout, _) = bench.rigor(&["run", "--rig", "sim", "--shrink", "--faults", "mild"]);
    assert!(stdout.contains("Shrunk nothing: no trial failed"), "{stdout}");
    bench.write("suites/node/bad.yaml", &scenario("bad", "409"));
    let run = ["run", "--rig", "sim", "--seeds", "5", "--seed", "3", "--jobs", "1", "--shrink"];
    let (exit, stdout, stderr) = bench.rigor(&run);
    assert_eq!(exit, 1, "{stdout}\n{stderr}");
    assert!(stdout.contains("2 trials x 5 seeds (3 to 7): 6 runs, 1 failing"), "{stdout}");
    assert!(stdout.contains("Shrunk it fails in the same way without any fault"), "{stdout}");
    let replay = "replay: rigor run node/bad --rig sim --seed 3\n";
    assert!(stdout.contains(replay), "{stdout}");
    assert!(bench.path("report/evidence/node/bad/events.jsonl").is_file());
    let report = std::fs::read_to_string(bench.path("report/report.yaml")).unwrap();
    assert!(report.contains("runs: 6\n") && report.contains("- node/bad seed 3\n"), "{report}");
    let words: Vec<&str> = replay.trim().split(' ').skip(2).collect();
    assert_eq!(bench.rigor(&words).0, 1);

    let (_, stdout, _) = bench.rigor(&[&run[..], &["--no-fail-fast"]].concat());
    assert!(stdout.contains("10 runs, 5 failing"), "{stdout}");

    // What stands outside of the suites is not found by its name.
    bench.write("own/far.yaml", &scenario("far", "409"));
    let (_, stdout, _) = bench.rigor(&["run", "own/far.yaml", "--rig", "sim", "--shrink"]);
    let replay = "replay: rigor run own/far.yaml --rig sim --seed 1";
    assert!(stdout.contains(replay), "{stdout}");
    let words: Vec<&str> = replay.split(' ').skip(2).collect();
    assert_eq!(bench.rigor(&words).0, 1);
}

#[cfg(feature = "sim")]
#[test]
fn flags_that_the_control_plane_does_not_take_are_input_with_their_line() {
    let bench = Bench::new(CATALOGUE);
    let flagged = |name: &str, flag: &str| {
        scenario(name, "200").replace("spec:\n", &format!("spec:\n  controlPlane: {{flags: [{flag}]}}\n"))
    };
    bench.write("suites/node/unknown.yaml", &flagged("unknown", "--no-such=1"));
    bench.write("suites/node/own.yaml", &flagged("own", "\"--listen=127.0.0.1:1\""));
    bench.write("suites/node/right.yaml", &flagged("right", "--default-scheduler-profile=upstream"));
    bench.refused(
        &["run", "--rig", "sim", "node/unknown"],
        2,
        &["unknown.yaml:5:26", "--no-such", "correct spec.controlPlane.flags; control-plane --help lists"],
    );
    bench.refused(
        &["run", "--rig", "sim", "node/own"],
        2,
        &["own.yaml:5:26", "the flag --listen is the rig's", "each trial has an address of its own"],
    );
    assert_eq!(bench.rigor(&["run", "--rig", "sim", "node/right"]).0, 0);
    let lint = |name: &str| bench.rigor(&["lint", "--format", "short", name]);
    let (code, said, _) = lint("node/unknown");
    assert!(
        code == 0 && said.contains("unknown.yaml:5:26: warning: the control plane does not take"),
        "{said}"
    );
    let (code, said, _) = lint("node/own");
    assert!(code == 2 && said.contains("own.yaml:5:26: error: the flag --listen is the rig's"), "{said}");
    let (code, said, _) = lint("node/right");
    assert!(code == 0 && said.contains("no warnings"), "{said}");
}

/// Runs until a line that `enough` wants, and interrupts it then: its exit code and what it said.
#[cfg(feature = "sim")]
fn interrupted(bench: &Bench, arguments: &[&str], enough: impl Fn(&str) -> bool) -> (Option<i32>, String) {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    let mut command = bench.command(arguments);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("rigor");
    let mut told = BufReader::new(run.stdout.take().expect("its output")).lines().map_while(Result::ok);
    assert!(told.any(|line| enough(&line)));
    let pid = run.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let rest: Vec<String> = told.collect();
    let mut said = String::new();
    run.stderr.take().expect("its messages").read_to_string(&mut said).expect("text");
    (run.wait().expect("its end").code(), format!("{}\n{said}", rest.join("\n")))
}

#[cfg(feature = "sim")]
#[test]
fn an_interrupted_run_leaves_a_report_of_what_had_ended() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    // Centuries of a board's heartbeats: whoever waits for its end waits for the interruption.
    let steps = "  rig: {boards: 1}\n  steps:\n  - repeat: {times: 1000, steps: [{advance: 1000h}]}\n";
    let long = scenario("long", "200").replace("  steps:\n", steps);
    bench.write("suites/node/long.yaml", &long);
    let arguments = ["run", "--rig", "sim", "--jobs", "1", "node/good", "node/long"];
    let (code, said) =
        interrupted(&bench, &arguments, |line| line.contains("PASS") && line.contains("node/good"));
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("rigor: interrupted; the report tells of what had ended"), "{said}");
    let report = std::fs::read_to_string(bench.path("report/report.yaml")).expect("the report");
    assert!(report.contains("pass: 1") && report.contains("infra-error: 1"), "{report}");
    assert!(report.contains("the run was interrupted before it had ended"), "{report}");
}

#[cfg(feature = "sim")]
#[test]
fn an_interrupted_search_leaves_a_report_of_what_was_tried() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/bad.yaml", &scenario("bad", "404"));
    bench.write("suites/node/good.yaml", &scenario("good", "200"));
    let arguments = ["run", "--rig", "sim", "--seeds", "1000000", "node/bad", "node/good"];
    let (code, said) = interrupted(&bench, &arguments, |line| line.contains("FAIL"));
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("rigor: interrupted; the report tells of what had ended"), "{said}");
    assert!(said.contains("replay: rigor run node/bad"), "{said}");
    let report = std::fs::read_to_string(bench.path("report/report.yaml")).expect("the report");
    assert!(report.contains("fail: 1") && report.contains("infra-error: 1"), "{report}");
    assert!(report.contains("of 1000000 seeds"), "{report}");
    assert!(report.contains("- node/bad seed "), "{report}");
}
