//! The files that ship with the product are right: catalogue, documents, schema.

use std::collections::BTreeSet;

use rigor_model::Capability;
use rigor_model::catalogue::Catalogue;
use rigor_model::constants::Constant;
use rigor_model::limitations::Known;
use rigor_model::shape::FieldType;
use rigor_model::{Fragment, Limitations, Rig, RigKind, Scenario, Verb};

const CATALOGUE: &str = include_str!("../../../suites/requirements.yaml");
const REFERENCE: &str = include_str!("../../../docs/scenario-language.md");
const RIGS: &str = include_str!("../../../docs/rigs.md");
const LIMITATIONS: &str = include_str!("../../../docs/limitations.md");
/// What a test of random histories prints when it fails; it has every step that it knows.
const PRINTED: &str = include_str!("../../../control-plane/core/tests/decisions/histories/printed.yaml");

fn catalogue() -> Catalogue {
    Catalogue::parse("suites/requirements.yaml", CATALOGUE).unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
}

#[test]
fn the_catalogue_is_read_whole() {
    let catalogue = catalogue();
    assert_eq!(catalogue.iter().count(), CATALOGUE.matches("- id: ").count());
    let unknown = catalogue.get("NODE-07").expect("NODE-07");
    assert_eq!(unknown.area, "node-lifecycle");
    assert_eq!(unknown.bounds[0].not_before.as_deref(), Some("leaseDuration + noExecuteDelay"));
    assert_eq!(
        unknown.bounds[0].not_after.as_deref(),
        Some("leaseDuration + noExecuteDelay + checkPeriod + slack")
    );
}

#[test]
fn the_reference_names_everything() {
    for verb in Verb::ALL {
        assert!(REFERENCE.contains(&format!("`{}`", verb.name())), "the reference lacks `{}`", verb.name());
        if let FieldType::Shape(shape) = verb.value() {
            for key in shape.keys() {
                let named =
                    REFERENCE.contains(&format!("`{key}`")) || REFERENCE.contains(&format!("`{key}: "));
                assert!(named, "the reference lacks `{key}` of {}", verb.name());
            }
        }
    }
    for word in Constant::ALL.map(Constant::name).into_iter().chain(Capability::ALL.map(Capability::name)) {
        assert!(REFERENCE.contains(&format!("`{word}`")), "the reference lacks `{word}`");
    }
    for operator in rigor_model::pattern::OPERATORS {
        assert!(REFERENCE.contains(operator), "the reference lacks {operator}");
    }
}

#[test]
fn printed_histories_are_scenarios() {
    let scenarios =
        Scenario::parse("found-by-chance.yaml", PRINTED, &catalogue(), &|_| Err("no files".into()))
            .unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    assert_eq!(scenarios.len(), 1);
    assert!(scenarios[0].plan.len() > 50, "{} steps", scenarios[0].plan.len());
}

#[test]
fn the_whole_file_of_the_reference_is_right() {
    let begin = REFERENCE.find("```yaml\n").expect("an example") + "```yaml\n".len();
    let end = begin + REFERENCE[begin..].find("```").expect("its end");
    let scenarios =
        Scenario::parse("example.yaml", &REFERENCE[begin..end], &catalogue(), &|_| Err("no files".into()))
            .unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    assert_eq!(scenarios[0].plan.len(), 8);
    let needs: Vec<&str> = scenarios[0].needs.iter().map(|need| need.name()).collect();
    assert_eq!(needs, ["power"]);
}

/// Whoever looks at a console needs one, whatever the look is for.
#[test]
fn looking_at_a_console_needs_a_console() {
    for step in [
        "expect: {console: {board: a, matches: ready}}",
        "never: {console: {board: a, matches: panic}, for: 1s}",
        "capture: {console: {board: a, matches: 'address=(?<ip>[0-9.]+)'}}",
    ] {
        let source = format!(
            "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: look, requirements: [NODE-03], profile: kube32}}\nspec:\n  rig: {{boards: 1}}\n  steps:\n    - {step}\n"
        );
        let scenarios = Scenario::parse("look.yaml", &source, &catalogue(), &|_| Err("no files".into()))
            .unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
        let needs: Vec<&str> = scenarios[0].needs.iter().map(|need| need.name()).collect();
        assert_eq!(needs, ["console"], "{step}");
    }
}

/// What a second scheduler prints can be read where it is a process; where it was started does not matter.
#[test]
fn looking_at_what_a_scheduler_prints_needs_that_it_can_be_read() {
    for step in [
        "expect: {console: {scheduler: toy, matches: ready}}",
        "never: {console: {scheduler: toy, matches: bound}, for: 1s}",
        "capture: {console: {scheduler: toy, matches: 'bound to (?<node>.+)'}}",
    ] {
        let source = format!(
            "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: look, requirements: [NODE-03], profile: kube32}}\nspec:\n  setup:\n    - scheduler: {{name: toy, do: dry-run}}\n    - scheduler: {{name: toy, do: stop}}\n  steps:\n    - {step}\n"
        );
        let scenarios = Scenario::parse("look.yaml", &source, &catalogue(), &|_| Err("no files".into()))
            .unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
        let needs: Vec<&str> = scenarios[0].needs.iter().map(|need| need.name()).collect();
        assert_eq!(needs, ["second-scheduler", "scheduler-log"], "{step}");
        let offered = RigKind::ALL.map(|kind| kind.capabilities().contains(&Capability::SchedulerLog));
        assert_eq!(offered, [false, true, true, false], "sim, host, qemu, external");
    }
}

/// What stands in an expression and is filled in later changes nothing about its groups.
#[test]
fn a_capture_knows_its_groups_where_a_name_stands_in_the_expression() {
    for capture in [
        "console: {board: a, matches: 'pod ${namespace}/p at (?<found>.+)'}",
        "request: {path: {$regex: '/namespaces/${namespace}/pods/(?<found>.+)'}}",
    ] {
        let source = format!(
            "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: look, requirements: [NODE-03], profile: kube32}}\nspec:\n  rig: {{boards: 1}}\n  steps:\n    - request: {{method: GET, path: /version}}\n    - capture: {{{capture}}}\n    - expect: {{of: {{kind: Pod, name: '${{found}}'}}, within: 1s}}\n"
        );
        Scenario::parse("look.yaml", &source, &catalogue(), &|_| Err("no files".into()))
            .unwrap_or_else(|mistakes| panic!("{capture}: {mistakes:#}"));
    }
}

/// What does not strike stands in each row's scenario.
#[test]
fn faults_that_do_not_strike_are_read_with_their_reason() {
    let source = "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: kept, requirements: [NODE-03], profile: kube32, cases: [one, two]}\nspec:\n  cases: {one: {of: 1}, two: {of: 2}}\n  faults: {without: [kill, power-cut], because: ' It counts. '}\n  steps:\n    - wait: 1s\n";
    let scenarios = Scenario::parse("kept.yaml", source, &catalogue(), &|_| Err("no files".into()))
        .unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    assert_eq!(scenarios.len(), 2);
    for scenario in scenarios {
        let withheld = scenario.withheld.expect("what is withheld");
        let kinds: Vec<&str> = withheld.kinds.iter().map(|kind| kind.name()).collect();
        assert_eq!((kinds, withheld.because.as_str()), (vec!["power-cut", "kill"], "It counts."));
    }
}

/// Every key under `properties`, however deep.
fn keys(schema: &serde_json::Value, found: &mut BTreeSet<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        for (key, value) in properties {
            found.insert(key.clone());
            keys(value, found);
        }
    }
}

#[test]
fn the_page_of_rigs_names_every_key_and_its_example_is_a_rig() {
    let mut found = BTreeSet::new();
    keys(&Rig::schema(), &mut found);
    assert!(found.contains("leaseDuration") || found.contains("constants"), "{found:?}");
    let words = Constant::ALL.map(Constant::name).into_iter().chain(Capability::ALL.map(Capability::name));
    for word in words.map(str::to_owned).chain(found) {
        let named = RIGS.contains(&format!("`{word}`")) || RIGS.contains(&format!("{word}:"));
        assert!(named, "docs/rigs.md lacks `{word}`");
    }
    let example =
        RIGS.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let rig = Rig::parse("example.yaml", example).unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    assert_eq!((rig.boards, rig.board.gpio), (5, vec![0, 1, 3]));
}

#[test]
fn the_page_of_limitations_names_every_key_and_its_example_is_right() {
    let mut found = BTreeSet::new();
    keys(&Limitations::schema(), &mut found);
    for word in ["knownLimitations", "quarantine", "case", "requirement", "until", "reference", "reason"] {
        assert!(LIMITATIONS.contains(&format!("`{word}`")), "docs/limitations.md lacks `{word}`");
        found.insert(word.to_owned());
    }
    for word in found {
        let named = LIMITATIONS.contains(&format!("`{word}`")) || LIMITATIONS.contains(&format!("{word}:"));
        assert!(named, "docs/limitations.md lacks `{word}`");
    }
    let example = LIMITATIONS.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let known = Known {
        catalogue: &catalogue(),
        cases: &|name| (name == "deployment/rolling-update").then(|| vec!["two-at-a-time".to_owned()]),
        scenarios: &Vec::new,
    };
    let known = Limitations::parse("example.yaml", example.expect("an example"), &known)
        .unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    assert_eq!(known.entries.len(), 3);
}

#[test]
fn the_steps_of_the_reference_are_right() {
    let snippets = REFERENCE.split("```yaml\n").skip(2).filter_map(|rest| rest.split("```").next());
    let mut verbs = BTreeSet::new();
    for snippet in snippets.filter(|snippet| snippet.starts_with("- ")) {
        let indented: String = snippet.lines().map(|line| format!("    {line}\n")).collect();
        let source = format!(
            "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: x, requirements: [NODE-03], profile: kube32}}\nspec:\n  rig: {{boards: 2}}\n  steps:\n{indented}"
        );
        let scenarios = Scenario::parse("snippet.yaml", &source, &catalogue(), &|_| Err("no files".into()))
            .unwrap_or_else(|mistakes| panic!("{snippet}\n{mistakes:#}"));
        verbs.extend(scenarios[0].plan.iter().map(|step| step.action.verb()));
    }
    assert!(verbs.contains(&Verb::Bind) && verbs.contains(&Verb::Node));
}

#[test]
fn the_schemas_are_current() {
    for (name, schema) in [
        ("scenario", Scenario::schema()),
        ("fragment", Fragment::schema()),
        ("rig", Rig::schema()),
        ("limitations", Limitations::schema()),
    ] {
        let path = format!("{}/../../suites/schema/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let wanted = format!("{}\n", serde_json::to_string_pretty(&schema).expect("json"));
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, &wanted).expect("written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == wanted,
            "{path} is out of date: run UPDATE_SCHEMA=1 cargo test -p rigor-model the_schemas"
        );
    }
}
