//! Scenarios that keep faults away: what a search says of them, and what a schedule with such faults is told.
#![cfg(feature = "sim")]

mod bench;

use bench::Bench;

const CATALOGUE: &str = "  - {id: NODE-03, profile: kube32, must: \"be so\"}\n";

/// A board for a minute, with these lines about faults.
fn quiet(name: &str, faults: &str) -> String {
    format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: {name}, requirements: [NODE-03], profile: kube32}}\nspec:\n  rig: {{boards: 1}}\n{faults}  steps:\n  - wait: 1m\n"
    )
}

/// The number before `word` on the line that begins with `line`; 0 without one.
fn number(told: &str, line: &str, word: &str) -> u64 {
    let line = told.lines().find(|it| it.trim_start().starts_with(line)).unwrap_or_default();
    let before = line.split(word).next().filter(|before| *before != line).unwrap_or_default();
    before.trim_end().rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn a_search_tells_which_trials_keep_which_faults_away_and_how_many() {
    let bench = Bench::new(CATALOGUE);
    let search = ["run", "--rig", "sim", "--seeds", "20", "--faults", "harsh", "--jobs", "1"];
    bench.write("suites/node/quiet.yaml", &quiet("quiet", ""));
    let (exit, stdout, stderr) = bench.rigor(&search);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    assert!(number(&stdout, "Faults", "power cut") > 0 && !stdout.contains("Withheld"), "{stdout}");

    let faults = "  faults: {without: [power-cut, clock], because: Its clock is looked at.}\n";
    bench.write("suites/node/quiet.yaml", &quiet("quiet", faults));
    let (exit, stdout, stderr) = bench.rigor(&search);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    let (power, clocks) = (number(&stdout, "Withheld", "power cut"), number(&stdout, "Withheld", "clocks"));
    assert!(power > 0 && clocks == 20, "{power} power cuts\n{stdout}");
    assert_eq!(number(&stdout, "Faults", "power cut") + number(&stdout, "Faults", "clock"), 0, "{stdout}");
    assert!(number(&stdout, "Faults", "delay") > 0, "{stdout}");
    let line = format!(
        "node/quiet without clock, power-cut: 20 clocks, {power} power cuts; Its clock is looked at."
    );
    assert!(stdout.contains(&line), "{line} is not in\n{stdout}");
    let report = std::fs::read_to_string(bench.path("report/report.yaml")).unwrap();
    for part in [
        "    withheld: 20 clocks, ",
        "    - trial: node/quiet\n      without:\n      - clock\n      - power-cut\n      because: Its clock is looked at.\n",
    ] {
        let part = part.replace("\n    ", "\n  ");
        assert!(report.contains(part.trim_start()), "{part} is not in\n{report}");
    }

    // Mild delays go on all the time.
    let (_, stdout, _) = bench.rigor(&["run", "--rig", "sim", "--faults", "mild"]);
    assert!(stdout.contains("node/quiet (1 clock withheld)"), "{stdout}");
    assert!(number(&stdout, "Faults", "(mild): ") > 0, "one run tells what it injected, too\n{stdout}");
    let report = std::fs::read_to_string(bench.path("report/report.yaml")).unwrap();
    assert!(report.contains("  injected: ") && report.contains("  withheld: 1 clock"), "{report}");
    let (_, stdout, _) = bench.rigor(&["run", "--rig", "sim"]);
    assert!(!stdout.contains("Faults"), "{stdout}");
    let (_, stdout, _) = bench.rigor(&["run", "--rig", "sim", "--seeds", "2"]);
    assert!(!stdout.contains("Withheld"), "nothing is kept away where there are no faults\n{stdout}");
}

#[test]
fn a_schedule_with_a_fault_that_its_trial_keeps_away_is_refused() {
    let bench = Bench::new(CATALOGUE);
    let faults = "  faults: {without: [power-cut], because: Power is not its subject.}\n";
    bench.write("suites/node/quiet.yaml", &quiet("quiet", faults));
    bench.write("suites/node/other.yaml", &quiet("other", ""));
    let schedule = |kind: &str| {
        let delay = r#"{"site": "link:a", "nth": 3, "kind": {"delay": {"micros": 9}}}"#;
        format!(
            r#"{{"level": "harsh", "faults": [{delay}, {{"site": "board:a", "nth": 4, "kind": {kind}}}]}}"#
        )
    };
    bench.write("cut.json", &schedule(r#"{"power-cut": {"dark": 1000000}}"#));
    let (exit, stdout, stderr) = bench.rigor(&["run", "--rig", "sim", "--faults", "cut.json"]);
    let flat = stderr.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(exit, 2, "{stdout}\n{stderr}");
    for part in [
        "cut.json: faults[1] is a power-cut at board:a, and no power-cut strikes in node/quiet",
        "suites/node/quiet.yaml): Power is not its subject.",
        "leave such faults out of the schedule, run other trials, or take power-cut out of spec.faults.without",
    ] {
        assert!(flat.contains(part), "`{part}` is not in\n{stderr}");
    }
    let (exit, stdout, stderr) = bench.rigor(&["run", "node/other", "--rig", "sim", "--faults", "cut.json"]);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    bench.write("delay.json", &schedule(r#"{"clock": {"offset": 1, "ppm": 1}}"#).replace("4,", "0,"));
    let (exit, stdout, stderr) = bench.rigor(&["run", "--rig", "sim", "--faults", "delay.json"]);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
}

#[test]
fn a_schedule_that_cannot_strike_is_refused_before_a_trial_begins() {
    let bench = Bench::new(CATALOGUE);
    bench.write("suites/node/quiet.yaml", &quiet("quiet", ""));
    let refused = |fault: &str, part: &str| {
        bench.write("bad.json", &format!(r#"{{"level": "harsh", "faults": [{fault}]}}"#));
        let (exit, stdout, stderr) = bench.rigor(&["run", "--rig", "sim", "--faults", "bad.json"]);
        let flat = stderr.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(exit == 2 && flat.contains(part), "{exit} {stdout}\n{flat}");
    };
    refused(
        r#"{"site": "board:b", "nth": 4, "kind": {"power-cut": {"dark": 1000000}}}"#,
        "bad.json: faults[0] is at board:b, and node/quiet has no such board: it has a",
    );
    refused(
        r#"{"site": "board:a", "nth": 0, "kind": {"clock": {"offset": 0, "ppm": -1000000}}}"#,
        "bad.json is no schedule of faults: faults[0]: a clock of -1000000 ppm does not run",
    );
}
