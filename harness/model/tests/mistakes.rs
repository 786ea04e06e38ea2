//! What people get wrong in scenario and rig files, and what they are told.

use std::sync::OnceLock;

use proptest::prelude::*;
use rigor_model::catalogue::Catalogue;
use rigor_model::limitations::Known;
use rigor_model::{Fragment, Head, Limitations, Rig, Scenario};

const HEAD: &str = "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: tale, requirements: [NODE-03], profile: kube32}\n";

fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        Catalogue::parse("requirements.yaml", include_str!("../../../suites/requirements.yaml"))
            .unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
    })
}

fn files(name: &str) -> Result<String, String> {
    match name {
        "pod.yaml" => Ok("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n".to_owned()),
        "broken.yaml" => Ok("kind: Pod\nmetadata: {name: [\n".to_owned()),
        "two.yaml" => Ok("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: q}\n".to_owned()),
        "cut.yaml" => Ok(fragment(
            "{board: {}, gap: {default: 1s}}",
            "[{power: {board: \"${board}\", do: cut}, as: gone}, {wait: \"gone + ${gap}\"}]",
        )),
        "f/bad.yaml" => Ok(fragment("{x: {defalt: 1}, A: {}}", "[{wait: 5}, {wiat: 5s}]")),
        "f/outer.yaml" => Ok(fragment("{}", "[{include: {file: bad.yaml, with: {x: 1}}}]")),
        "round.yaml" => Ok(fragment("{}", "[{include: {file: trip.yaml}}]")),
        "trip.yaml" => Ok(fragment("{}", "[{include: {file: ./round.yaml}}]")),
        "nosy.yaml" => Ok(fragment("{}", "[{wait: \"${round} * 1s\"}]")),
        _ => Err("no such file".to_owned()),
    }
}

fn fragment(parameters: &str, steps: &str) -> String {
    format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Fragment\nmetadata: {{name: f}}\nspec:\n  parameters: {parameters}\n  steps: {steps}\n"
    )
}

/// Everything that is said about a source.
fn said(source: &str) -> String {
    match Scenario::parse("tale.yaml", source, catalogue(), &files) {
        Ok(_) => "nothing".to_owned(),
        Err(mistakes) => format!("{mistakes:#}"),
    }
}

/// What is said about a scenario with this head.
fn of_head(head: &str) -> String {
    said(&format!("{head}\nspec:\n  steps: [wait: 1s]\n"))
}

/// What is said about a scenario of two boards with these steps.
fn of_steps(steps: &str) -> String {
    let indented: String = steps.lines().map(|line| format!("    {line}\n")).collect();
    said(&format!("{HEAD}spec:\n  rig: {{boards: 2}}\n  steps:\n{indented}"))
}

fn gallery(cases: &[&str], told: impl Fn(&str) -> String) -> String {
    cases.iter().map(|case| format!("{case}\n    => {}\n\n", told(case).replace('\n', "\n    => "))).collect()
}

#[test]
fn mistakes_in_the_head() {
    let cases = [
        "apiVersion: rigor.dev/v1\nkind: Scenario\nmetadata: {name: tale, requirements: [NODE-03], profile: kube32}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenaro\nmetadata: {name: tale, requirements: [NODE-03], profile: kube32}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadat: {name: tale}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: Power Loss, requirements: [NODE-3, NODE-300, XYZ-1], profile: kube}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: tale, requirements: [], profile: kube32}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: tale, requirements: [NODE-01, NODE-03, NODE-04, NODE-05, NODE-06, NODE-07], profile: kube32}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: tale, requirements: [UP-01], profile: kube32}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: tale, requirements: [NODE-03], profile: kube32, tags: [on, 7]}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: tale, requirements: [NODE-03], profile: kube32, cases: [one, two]}",
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: tale, name: tale, requirements: [NODE-03], profile: kube32}",
    ];
    insta::assert_snapshot!(gallery(&cases, of_head));
}

#[test]
fn mistakes_in_limitations() {
    let head = "apiVersion: rigor.dev/v1alpha1\nkind: Limitations\nmetadata: {name: mine}\nspec:\n";
    let said = |lists: &str| {
        let cases = |name: &str| match name {
            "node/loss" => Some(vec!["short".to_owned(), "long".to_owned()]),
            "node/hang" => Some(Vec::new()),
            _ => None,
        };
        let known = Known {
            catalogue: catalogue(),
            cases: &cases,
            scenarios: &|| vec!["node/loss".to_owned(), "node/hang".to_owned()],
        };
        match Limitations::parse("mine.yaml", &format!("{head}{lists}"), &known) {
            Ok(_) => "nothing".to_owned(),
            Err(mistakes) => format!("{mistakes:#}"),
        }
    };
    let cases = [
        "  knownLimitations:\n  - {scenario: node/loss, case: long, reference: 'https://tickets.example/7', reason: it is slow}",
        "  quarantine:\n  - {scenario: node/hang, reference: docs/x.md, reason: now and then, until: 2027-03-31}",
        "  knownLimitations:\n  - {scenario: node/los, reference: x, reason: why}",
        "  knownLimitations:\n  - {scenario: power-loss, reference: x, reason: why}",
        "  knownLimitations:\n  - {scenario: node/loss/long, reference: x, reason: why}",
        "  knownLimitations:\n  - {scenario: hang, reference: x, reason: why}",
        "  knownLimitations:\n  - {scenario: node/loss, case: shrt, reference: x, reason: why}",
        "  knownLimitations:\n  - {scenario: node/hang, case: short, reference: x, reason: why}",
        "  knownLimitations:\n  - {requirement: NODE-300, reference: x, reason: why}",
        "  knownLimitations:\n  - {scenario: node/hang, requirement: NODE-03, reference: x, reason: why}",
        "  knownLimitations:\n  - {reference: x, reason: why}",
        "  knownLimitations:\n  - {requirement: NODE-03, case: short, reference: x, reason: why}",
        "  knownLimitations:\n  - {scenario: node/hang, reason: why}",
        "  knownLimitations:\n  - {scenario: node/hang, reference: '', reason: why, until: 2027-01-01}",
        "  quarantine:\n  - {scenario: node/hang, reference: x, reason: why}",
        "  quarantine:\n  - {scenario: node/hang, reference: x, reason: why, until: 31.12.2027}",
        "  quarantine:\n  - {scenario: node/hang, reference: x, reason: why, until: 2027-02-29}",
        "  quarantine:\n  - {requirement: NODE-03, reference: x, reason: why, until: 2027-01-01}",
        "  knownLimitations:\n  - {scenario: node/hang, reference: x, reason: why}\n  quarantine:\n  - {scenario: node/hang, reference: x, reason: why, until: 2027-01-01}",
    ];
    insta::assert_snapshot!(gallery(&cases, said));
}

#[test]
fn mistakes_in_the_spec() {
    let cases = [
        "spec: {steps: []}",
        "spec: {step: [wait: 1s]}",
        "spec: {rig: {boards: many}, steps: [wait: 1s]}",
        "spec: {rig: {boards: 2, needs: [power, linc]}, steps: [wait: 1s]}",
        "spec: {constants: {leaseDuration: 4, checkperiod: 1s, slack: 1s, tolerationSeconds: 1500ms, retryPeriod: 0s}, steps: [wait: 1s]}",
        "spec: {cases: {one: {x: 1}}, steps: [wait: 1s]}",
        "spec:\n  steps:\n    - wait: 1s\n   - wait: 2s",
        "spec: &anchor\n  steps: !!seq [wait: 1s]",
        "spec: {steps: [wait: 1s]}\n---\nspec: {}",
        "spec: [steps]",
    ];
    insta::assert_snapshot!(gallery(&cases, |case| said(&format!("{HEAD}{case}\n"))));
}

#[test]
fn mistakes_in_steps() {
    let cases = [
        "- exepct: {of: {kind: Pod}}",
        "- power: {board: a, do: cut}\n  link: {board: a, do: cut}",
        "- power: {board: a, do: cut}\n  within: 5s",
        "- expect: {of: {kind: Pod}}\n  within: 5s",
        "- as: outage",
        "- power",
        "- power: {board: c, do: cut}",
        "- power: {board: a, do: of}",
        "- power: {board: a, do: off}",
        "- power: {board: a, do: cut}\n  as: power-cut",
        "- power: {board: a, do: cut}\n  as: slack",
        "- link: {board: a, do: delay}",
        "- link: {board: a, do: delay, by: 200}",
        "- link: {board: a, do: loss, percent: 120}",
        "- link: {board: a, do: cut, by: 1s, percent: 5}",
        "- wait: 5",
        "- wait: {for: 5s}",
        "- wait: outage + 5s\n- power: {board: a, do: cut}\n  as: outage",
        "- expect: {of: {kind: Pod}, within: 10}",
        "- expect: {of: {kind: Pod}, within: start + 5s}",
        "- expect: {of: {kind: Pod}, within: 5s, between: [1s, 2s]}",
        "- expect: {of: {kind: Pod}, between: 5s}",
        "- expect: {of: {kind: Pod}, between: [stamp(x, a), 5s]}",
        "- expect: {of: {kind: Node, name: a}, between: [lastRenewal(c) + leaseDuration, lastRenewal(a) + leasDuration]}",
        "- expect: {within: 5s}",
        "- expect: {of: {kind: Pods}, within: 5s}",
        "- expect: {of: {kind: Node, namespace: x}, within: 5s}",
        "- expect: {of: {kind: Pod, name: a, names: [b]}, within: 5s}",
        "- expect: {console: {board: a, matches: \"(\"}, within: 5s}",
        "- expect: {console: {board: a, matches: ready}, match: {x: y}, within: 5s}",
        "- expect: {of: {kind: Pod}, count: few, within: 5s}",
        "- expect: {of: {kind: Event}, count: all, within: 5s}",
        "- never: {of: {kind: Pod}}",
        "- never: {of: {kind: Pod}, for: 5s, until: start + 9s}",
        "- always: {of: {kind: Event}, for: 5s}",
        "- unchanged: {of: {kind: Pod, name: p}, field: spec..nodeName, for: 5s}",
        "- order: [start]",
        "- order: [start, begin]",
        "- capture: {of: {kind: Pod}, fields: {}}",
        "- capture: {of: {kind: Pod}, fields: {a: metadata.name, Pod-Name: metadata.name}}",
        "- delete: {kind: Pod, name: \"${pod}\"}",
        "- delete: {kind: Pod, name: p, grace: 500ms}",
        "- delete: {kind: Pod, name: p, propagation: Background}",
        "- scale: {name: web, replicas: -1}",
        "- patch: {kind: Pod, name: p, type: json, patch: {spec: {}}}",
        "- patch: {kind: Pod, name: p, type: mergepatch, patch: {}}",
        "- patch: {kind: Pod, name: p, type: apply, patch: {spec: {}}}",
        "- patch: {kind: Pod, name: p, type: merge, patch: {spec: {}}, force: true, fieldManager: 7}",
        "- request: {method: GET, path: /api, headers: {\"a b\": x, Accept: a, accept: b, X-Count: 5}}",
        "- request: {method: GET, path: /api, answer: {headers: {Retry-After: 1, ETag: {$is: there}}}}",
        "- bind: {pod: p}",
        "- bind: {pod: p, node: a, user: bord:a}",
        "- bind: {pod: p, node: a, user: \"board:z\"}",
        "- bind: {pod: p, node: a, answer: {status: conflict}}",
        "- request: {method: get, path: api/v1/pods}",
        "- create: {file: nothing.yaml}",
        "- create: {file: two.yaml}",
        "- create: {file: broken.yaml}",
        "- create: {manifest: {kind: Pod, metadata: {name: p}}}",
        "- create: {manifest: {apiVersion: apps/v1, kind: Pod, metadata: {}}}",
        "- create: {manifest: {apiVersion: v1, kind: Gizmo, metadata: {name: p}}}",
        "- create: {}",
        "- node: {name: a}",
        "- node: {name: n1, state: redy, renew: often, allocatable: {memory: true}}",
        "- node: {name: n1, report: at outage, taints: [{key: k}, {key: k, effect: Never, value: 1}], unschedulable: maybe}",
        "- node: {name: n1, report: at, annotations: {a: 1}}",
        "- advance: 5",
        "- advance: {by: 5s}",
        "- advance: start + 5s",
        "- parallel: [advance: 1s]",
        "- kubectl: {args: []}",
        "- kubectl: {args: [get, pods, -o, \"go-template={{.kind}}\"]}",
        "- kubectl: {args: [get, pods, -o, \"name={{board}}\", $HOME]}",
        "- kubectl: get pods",
        "- parallel: [wait: 1s]",
        "- parallel: [expect: {of: {kind: Pod}}]",
        "- repeat: {times: 0, steps: [wait: 1s]}",
        "- repeat: {times: 2, steps: [wait: \"${roud}\"]}",
        "- forEach: {name: x, in: [1s, 2s], step: [wait: \"${x}\"]}",
    ];
    insta::assert_snapshot!(gallery(&cases, of_steps));
}

#[test]
fn mistakes_in_includes_and_flags() {
    let cases = [
        "- include: {file: cut.yaml}",
        "- include: {file: cut.yaml, with: {board: c, gap: 1}}",
        "- include: {file: cut.yaml, with: {board: a, gaps: 1s}}\n- wait: gone + 1s",
        "- include: {file: pod.yaml}",
        "- include: {file: none.yaml, as: x}",
        "- include: {file: broken.yaml}",
        "- include: cut.yaml",
        "- include: {file: cut.yaml, with: {board: a}}\n  as: x",
        "- include: {file: f/bad.yaml}",
        "- repeat: {times: 2, steps: [{include: {file: f/outer.yaml}}]}",
        "- include: {file: round.yaml}",
        "- repeat: {times: 1, steps: [{include: {file: nosy.yaml}}]}",
        "- parallel: [include: {file: cut.yaml, with: {board: a}}]",
    ];
    let flags = ["--default-scheduler-profile upstream", "default-scheduler-profile=upstream", "--"];
    let spec = |flag: &&str| {
        said(&format!("{HEAD}spec:\n  controlPlane: {{flags: [\"{flag}\", 5]}}\n  steps: [wait: 1s]\n"))
    };
    let told: String = flags
        .iter()
        .map(|flag| format!("{flag}\n    => {}\n\n", spec(flag).replace('\n', "\n    => ")))
        .collect();
    insta::assert_snapshot!(format!("{}{told}", gallery(&cases, of_steps)));
}

#[test]
fn a_fragment_is_checked_by_itself() {
    let told =
        |parameters: &str, steps: &str| match Fragment::check("f.yaml", &fragment(parameters, steps), &files)
        {
            Ok(()) => "nothing".to_owned(),
            Err(mistakes) => format!("{mistakes:#}"),
        };
    // What a parameter without a default will be is not known.
    let open = "[{power: {board: \"${board}\", do: \"${what}\"}, as: \"${name}\"}, {wait: \"${name} + 1s\"}, {include: {file: cut.yaml, with: {board: \"${board}\"}}}, {wait: gone + 1s}, {expect: {console: {scheduler: \"${name}\", matches: ready}}}]";
    assert_eq!(told("{board: {}, what: {}, name: {}}", open), "nothing");
    let cases = [
        (
            "{board: {default: c}, gap: {default: 5}}",
            "[{power: {board: \"${board}\", do: cut}}, {wait: \"${gap}\"}]",
        ),
        (
            "{board: {}}",
            "[{power: {board: \"${board}\", do: cutt}}, {wait: outage + 1s}, {delete: {kind: Pod, name: \"${pod}\"}}]",
        ),
        ("[board]", "[{power: {board: \"${board}\", do: cut}}]"),
        ("{board: a}", "[{power: {board: \"${board}\", do: cut}}]"),
        ("{}", "[{include: {file: cut.yaml}}]"),
        ("{}", "[]"),
    ];
    let told: String = cases
        .iter()
        .map(|(parameters, steps)| {
            format!("{parameters} {steps}\n    => {}\n\n", told(parameters, steps).replace('\n', "\n    => "))
        })
        .collect();
    insta::assert_snapshot!(told);
}

#[test]
fn included_steps_stand_in_their_place() {
    let source = format!(
        "{HEAD}spec:\n  rig: {{boards: 2}}\n  steps:\n    - forEach: {{name: b, in: [a, b], steps: [{{include: {{file: cut.yaml, with: {{board: \"${{b}}\", gap: 2s}}}}}}]}}\n    - wait: gone + 3s\n"
    );
    let scenario = Scenario::parse("tale.yaml", &source, catalogue(), &files)
        .unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
        .remove(0);
    let told: Vec<String> = scenario
        .plan
        .iter()
        .map(|step| {
            let from = step.fragment.as_deref().unwrap_or("tale.yaml");
            format!("{} {} {from}:{} {:?}", step.number, step.action.verb().name(), step.line, step.name)
        })
        .collect();
    assert_eq!(
        told,
        [
            "1.1.1.1 power cut.yaml:6 Some(\"gone\")",
            "1.1.1.2 wait cut.yaml:6 None",
            "1.2.1.1 power cut.yaml:6 Some(\"gone\")",
            "1.2.1.2 wait cut.yaml:6 None",
            "2 wait tale.yaml:8 None",
        ]
    );
}

#[test]
fn traps_of_yaml() {
    let cases = [
        "- expect: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: True}]}}}",
        "- expect: {of: {kind: Node, name: a}, match: {status: {conditions: [{type: Ready, status: yes}]}}}",
        "- expect: {of: {kind: Pod}, match: {metadata: {labels: {version: 1.10, on: off}}}}",
        "- expect: {of: {kind: Pod}, match: {metadata: null, spec: {}, status: {conditions: []}}}",
        "- expect: {of: {kind: Pod}, match: {spec: {replicas: {$ge: 1, other: 2}}}}",
        "- expect: {of: {kind: Pod}, match: {spec: {replicas: {$gte: 1}}}}",
        "- expect: {of: {kind: Pod}, match: {spec: {name: {$regex: \"[\"}}}}",
        "- expect: {of: {kind: Pod}, match: {spec: {x: {$is: there}}}}",
        "- create: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: 1}}, data: {enabled: true, port: 010}}}",
        "- create: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: m, image: x, args: [5], env: [{name: A, value: 1}]}]}}}",
        "- expect: {of: {kind: Pod}, within: 1_0s, count: 0x10}",
        "- create: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: ${name}}}}",
    ];
    insta::assert_snapshot!(gallery(&cases, of_steps));
}

#[test]
fn mistakes_in_rig_files() {
    let cases = [
        "kind: qemu",
        "kind: bare-metal\n  constants: {}",
        "kind: sim\n  constants: {leaseDuration: 15, renewInterval: 5s, noExecuteDelay: 15s, tolerationSeconds: 300s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slak: 50ms}",
        "kind: sim\n  constants: {leaseDuration: 15s, renewInterval: 5s, noExecuteDelay: 15s, tolerationSeconds: 300s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slack: 50ms}\n  capabilities: [power, teleport]\n  board: {heapBytes: 5, gpio: [1, 99], chip: x}",
    ];
    let told = |case: &str| {
        let source =
            format!("apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {{name: r}}\nspec:\n  {case}\n");
        Rig::parse("rig.yaml", &source)
            .map_or_else(|mistakes| format!("{mistakes:#}"), |_| "nothing".to_owned())
    };
    insta::assert_snapshot!(gallery(&cases, told));
}

#[test]
fn a_mistake_is_shown_with_the_source_around_it() {
    let source = format!(
        "{HEAD}spec:\n  rig: {{boards: 1}}\n  steps:\n    - power: {{board: b, do: cut}}\n    - wait: 5\n"
    );
    let mistakes =
        Scenario::parse("suites/tale.yaml", &source, catalogue(), &files).expect_err("two mistakes");
    let handler =
        miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor()).with_width(100);
    let mut shown = String::new();
    handler.render_report(&mut shown, &mistakes).expect("rendered");
    insta::assert_snapshot!(shown);
}

#[test]
fn tables_repeats_and_values_make_trials_and_steps() {
    let source = "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: pins, requirements: [SCHED-17], profile: kube32, cases: [gpio, i2c]}\nspec:\n  cases:\n    gpio: {resource: esp32.io/gpio, free: 4}\n    i2c: {resource: esp32.io/i2c, free: 1}\n  steps:\n    - node: {name: n1, allocatable: {\"${resource}\": \"${free}\"}}\n    - repeat:\n        times: 2\n        steps:\n          - forEach: {name: gap, in: [1s, 2s], steps: [wait: \"${gap} + ${round} * 1s\"]}\n";
    let scenarios = Scenario::parse("pins.yaml", source, catalogue(), &files)
        .unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    let told: Vec<String> = scenarios
        .iter()
        .flat_map(|scenario| {
            scenario.plan.iter().map(|step| match &step.action {
                rigor_model::Action::Node(node) => {
                    format!("{} {}: {}", scenario.title(), step.number, serde_json::json!(node.allocatable))
                }
                rigor_model::Action::Wait(wait) => {
                    format!("{} {}: {}", scenario.title(), step.number, wait.until)
                }
                other => panic!("{other:?}"),
            })
        })
        .collect();
    assert_eq!(
        told,
        [
            "pins/gpio 1: {\"esp32.io/gpio\":4}",
            "pins/gpio 2.1.1.1.1: begin + (1s + 1 * 1s)",
            "pins/gpio 2.1.1.2.1: begin + (2s + 1 * 1s)",
            "pins/gpio 2.2.1.1.1: begin + (1s + 2 * 1s)",
            "pins/gpio 2.2.1.2.1: begin + (2s + 2 * 1s)",
            "pins/i2c 1: {\"esp32.io/i2c\":1}",
            "pins/i2c 2.1.1.1.1: begin + (1s + 1 * 1s)",
            "pins/i2c 2.1.1.2.1: begin + (2s + 1 * 1s)",
            "pins/i2c 2.2.1.1.1: begin + (1s + 2 * 1s)",
            "pins/i2c 2.2.1.2.1: begin + (2s + 2 * 1s)",
        ]
    );
    let head = Head::read("pins.yaml", source).unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    let names: Vec<String> = head.trials().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["pins/gpio", "pins/i2c"]);
}

proptest! {
    #[test]
    fn no_source_makes_the_reader_panic(source in "[ -~\n]{0,200}") {
        let _ = said(&source);
    }

    #[test]
    fn nor_does_a_broken_scenario(
        at in 0_usize..900,
        length in 0_usize..30,
        patch in proptest::sample::select(vec!["", "\n", "{", "]", ":", "- ", "'", "\"", "&a ", "${", "é", "null", "5", "(", "<<: "]),
    ) {
        let reference = include_str!("../../../docs/scenario-language.md");
        let begin = reference.find("```yaml\n").map_or(0, |at| at + 8);
        let end = begin + reference[begin..].find("```").unwrap_or(0);
        let mut source = reference[begin..end].to_owned();
        let from = at.min(source.len());
        let to = (from + length).min(source.len());
        if source.is_char_boundary(from) && source.is_char_boundary(to) {
            source.replace_range(from..to, patch);
        }
        let _ = said(&source);
    }
}
