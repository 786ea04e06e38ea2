//! Observed scenarios and premises: what is judged over histories from elsewhere, and what is undecided rather than failed.

use rigor_model::Outcome;
use rigor_model::Scenario;
use rigor_model::catalogue::Catalogue;
use rigor_trace::history::{Fact, Micros, Verb};
use serde_json::{Value, json};

use super::story::{CATALOGUE, Story, scenario};

/// A request and what was sent with it.
fn sent(path: &str, body: Value) -> Fact {
    Fact::Request {
        id: 0,
        sent: Micros(900_000),
        as_user: "admin".into(),
        method: "PATCH".into(),
        path: path.into(),
        body: Some(body),
        status: 200,
        response: None,
        date: None,
        headers: std::collections::BTreeMap::new(),
        error: None,
    }
}

#[test]
fn a_premise_that_is_not_so_leaves_the_trial_undecided() {
    let told = |given: &str| {
        let scenario =
            scenario(&format!("- expect: {{of: {{kind: Pod, name: lamp}}, from: start, within: 1s{given}}}"));
        let mut story = Story::exact();
        story.begin(500, 0).pod(1_500, Verb::Added, "lamp", "a", "Running").end(2_000, 0);
        story.told(&scenario).split(':').next().unwrap_or_default().to_owned()
    };
    assert_eq!(told(""), "fail");
    assert_eq!(told(", given: false"), "fail");
    assert_eq!(told(", given: true"), "undecided");
}

#[test]
fn a_premise_of_a_capture_leaves_the_trial_undecided() {
    let told = |given: &str| {
        let scenario = scenario(&format!(
            "- capture: {{mark: {{name: stopped, node: b}}, fields: {{lost: node}}, within: 1s{given}}}"
        ));
        let mut story = Story::exact();
        story.begin(500, 0).fact(700, Fact::Mark { name: "stopped".into(), subject: Some("a".into()) });
        story.end(2_000, 0);
        story.told(&scenario)
    };
    assert_eq!(told(""), "fail: the history has no mark `stopped`");
    assert!(told(", given: true").starts_with("undecided: the history has no mark `stopped`"));
}

#[test]
fn captures_of_marks_and_of_what_was_sent() {
    let scenario = scenario(
        "- capture: {mark: {name: stopped}, fields: {lost: node}}\n- capture: {request: {path: {$regex: \"/nodes/(?<other>[^/]+)$\"}, body: {spec: {lit: true}}}, body: {size: spec.size}}",
    );
    let mut story = Story::exact();
    story.fact(800, Fact::Mark { name: "stopped".into(), subject: Some("a".into()) });
    story.fact(900, Fact::Mark { name: "stopped".into(), subject: Some("b".into()) });
    story.fact(1_000, sent("/nodes/c", json!({"spec": {"lit": true, "size": 3}})));
    story.fact(1_000, sent("/nodes/d", json!({"spec": {"lit": false, "size": 4}})));
    story.begin(1_100, 0).end(1_100, 0).begin(1_100, 1).end(1_100, 1);
    let verdict = story.judged(&scenario);
    assert_eq!(verdict.outcome, Outcome::Pass, "{:?}", verdict.message);
    let captured: Vec<Value> = verdict.steps.iter().map(|(_, step)| json!(step.captured)).collect();
    assert_eq!(captured, [json!({"lost": "b"}), json!({"other": "c", "size": 3})]);
}

#[test]
fn a_group_of_the_path_that_found_nothing_is_no_capture() {
    let told = |path: &str, asked: &str| {
        let scenario = scenario(&format!("- capture: {{request: {{path: {path}}}, within: 1s}}"));
        let mut story = Story::exact();
        story.begin(500, 0).fact(1_000, sent(asked, json!({}))).end(2_000, 0);
        story.told(&scenario)
    };
    let either = r#"{$regex: "/nodes(/(?<name>[^/]+))?$"}"#;
    assert_eq!(told(either, "/nodes/c"), "pass");
    let nothing = told(either, "/nodes");
    assert!(
        nothing.starts_with("fail: the path `/nodes` has nothing for one of the groups name"),
        "{nothing}"
    );
    // Beside another operator the expression gives its names as well.
    assert_eq!(told(r#"{$regex: "/nodes/(?<name>[^/]+)$", $ne: /nodes/d}"#, "/nodes/c"), "pass");
}

/// An observed scenario with something to do before.
fn observed() -> Scenario {
    let source = "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {name: tale, requirements: [NODE-03], profile: kube32}\nspec:\n  observe: true\n  setup:\n    - create: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}\n  steps:\n    - capture: {of: {kind: Pod, namespace: \"*\"}, match: {status: {phase: Running}}, fields: {pod: metadata.name, ns: metadata.namespace}}\n      as: ran\n    - expect: {of: {kind: Pod, name: \"${pod}\", namespace: \"${ns}\"}, match: {status: {phase: Failed}}, from: ran, within: 5s}\n";
    let catalogue =
        Catalogue::parse("catalogue.yaml", CATALOGUE).unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    Scenario::parse("tale.yaml", source, &catalogue, &|_| Err("there are no files".to_owned()))
        .unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
        .remove(0)
}

#[test]
fn an_observed_scenario_is_judged_with_its_setup_where_it_ran_and_without_elsewhere() {
    let scenario = observed();
    let tell = |story: &mut Story| {
        story.pod(600, Verb::Added, "lamp", "a", "Running");
        story.pod(900, Verb::Modified, "lamp", "a", "Failed");
    };
    // A history from elsewhere: it looks back to what ever was, and nothing was to be created.
    let mut elsewhere = Story::exact();
    tell(&mut elsewhere);
    let verdict = elsewhere.judged(&scenario);
    assert_eq!((verdict.outcome, verdict.steps.len()), (Outcome::Pass, 2), "{:?}", verdict.message);
    // A trial of it: the setup's act is judged, too, and the steps look back.
    let mut trial = Story::exact();
    trial.begin(500, 0).end(550, 0);
    tell(&mut trial);
    for step in [1, 2] {
        trial.begin(1_000, step).end(1_000, step);
    }
    let verdict = trial.judged(&scenario);
    assert_eq!(verdict.outcome, Outcome::InfraError, "{:?}", verdict.message);
    assert!(verdict.message.unwrap_or_default().contains("the request was not made"));
    assert!(verdict.steps[1..].iter().all(|(_, step)| step.outcome == Outcome::Pass));
}
