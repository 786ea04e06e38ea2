//! What can be looked at besides plain states: conditions in CEL, elements by key, logs, answers, captured
//! names, kinds of the scenario's own.

use rigor_trace::Judge;
use rigor_trace::history::{Fact, Micros, Verb};
use serde_json::{Value, json};

use super::story::{Story, scenario};

fn deployment(ready: Value, replicas: u64) -> Value {
    let mut object = json!({"kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas}, "status": {}});
    if !ready.is_null() {
        object["status"]["readyReplicas"] = ready;
    }
    object
}

/// The verdict on one step, asked from 1 s to 5 s, over Deployments at these times.
fn deployments(step: &str, seen: &[(u64, Value)]) -> String {
    let scenario = scenario(step);
    let mut story = Story::exact();
    let mut begun = false;
    for (at, object) in seen {
        if !begun && *at >= 1_000 {
            story.begin(1_000, 0);
            begun = true;
        }
        story.see(*at, Verb::Modified, "deployments", object.clone());
    }
    if !begun {
        story.begin(1_000, 0);
    }
    story.end(5_000, 0);
    story.told(&scenario)
}

#[test]
fn a_condition_stands_beside_a_match_or_instead() {
    let of = "of: {kind: Deployment, name: web}";
    let check = |step: &str, seen: &[(u64, Value)], expected: &str| {
        assert_eq!(deployments(step, seen), expected, "{step} {seen:?}");
    };
    let alone =
        format!("- expect: {{{of}, cel: object.status.readyReplicas == object.spec.replicas, within: 2s}}");
    check(&alone, &[(500, deployment(json!(3), 3))], "pass");
    check(&alone, &[(500, deployment(json!(2), 3)), (2_000, deployment(json!(3), 3))], "pass");
    check(
        &alone,
        &[(500, deployment(json!(2), 3)), (3_500, deployment(json!(3), 3))],
        "fail: it came at 3.500 s, 0.500 s too late: Deployment default/web (resourceVersion 101, Modified)",
    );
    check(
        &alone,
        &[(500, deployment(json!(2), 3))],
        "fail: it never came; closest was Deployment default/web (resourceVersion 100, Modified), at 0.500 s, which differs: | the object: expected object.status.readyReplicas == object.spec.replicas, found object.spec.replicas is 3, object.status.readyReplicas is 2",
    );
    // A field that is not there is not there yet.
    check(
        &alone,
        &[(500, deployment(Value::Null, 3))],
        "fail: it never came; closest was Deployment default/web (resourceVersion 100, Modified), at 0.500 s, which differs: | the object: expected object.status.readyReplicas == object.spec.replicas, found there is no `readyReplicas` yet",
    );
    let both = format!(
        "- expect: {{{of}, match: {{spec: {{replicas: 3}}}}, cel: object.status.readyReplicas < object.spec.replicas, within: 2s}}"
    );
    check(&both, &[(500, deployment(json!(2), 3))], "pass");
    check(
        &both,
        &[(500, deployment(json!(2), 4))].clone(),
        "fail: it never came; closest was Deployment default/web (resourceVersion 100, Modified), at 0.500 s, which differs: | spec.replicas: expected 3, found 4",
    );
    let always =
        format!("- always: {{{of}, cel: object.status.readyReplicas <= object.spec.replicas, for: 2s}}");
    check(&always, &[(500, deployment(json!(3), 3))], "pass");
    check(
        &always,
        &[(500, deployment(json!(3), 3)), (1_500, deployment(json!(4), 3))],
        "fail: it was not so at 1.500 s: Deployment default/web (resourceVersion 101, Modified) | the object: expected object.status.readyReplicas <= object.spec.replicas, found object.spec.replicas is 3, object.status.readyReplicas is 4",
    );
}

#[test]
fn an_absence_that_could_not_be_told_is_none() {
    let check = |step: &str, ready: Value, expected: &str| {
        assert_eq!(deployments(step, &[(500, deployment(ready.clone(), 3))]), expected, "{step} {ready}");
    };
    let never = "- never: {of: {kind: Deployment}, cel: object.status.readyReplicas > 3, for: 2s}";
    check(never, json!(2), "pass");
    check(never, Value::Null, "pass");
    let broken = "fail: the condition cannot be evaluated, so nothing can be said: ";
    let told = deployments(never, &[(500, deployment(json!("two"), 3))]);
    assert!(told.starts_with(broken), "{told}");
    let absent =
        "- expect: {of: {kind: Deployment}, cel: object.status.readyReplicas > 3, absent: true, within: 2s}";
    check(absent, json!(2), "pass");
    let told = deployments(absent, &[(500, deployment(json!("two"), 3))]);
    assert!(told.starts_with(broken), "{told}");
}

#[test]
fn conditions_know_captured_values() {
    let steps = "- capture: {of: {kind: Pod, name: web-1}, fields: {host: spec.nodeName}}\n- expect: {of: {kind: Pod, name: web-2}, cel: \"object.spec.nodeName != host && object.spec.nodeName in [a, b]\", within: 1s}";
    let scenario = scenario(steps);
    let check = |node: &str, expected: &str| {
        let mut story = Story::exact();
        story.pod(100, Verb::Added, "web-1", "a", "Running").begin(1_000, 0).end(1_000, 0);
        story.begin(1_000, 1).pod(1_500, Verb::Added, "web-2", node, "Running").end(3_000, 1);
        assert_eq!(story.outcome(&scenario).name(), expected, "{node}");
    };
    check("b", "pass");
    check("a", "fail");
}

#[test]
fn elements_are_found_by_key_and_the_one_that_differs_is_told() {
    let node = json!({"kind": "Node", "metadata": {"name": "a"}, "status": {"conditions": [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"},
        {"type": "DiskPressure", "status": "False"}],
        "ports": [{"port": 80, "name": "web"}, {"port": 81, "name": "web"}]}});
    let check = |wanted: &str, expected: &str| {
        let scenario = scenario(&format!(
            "- expect: {{of: {{kind: Node, name: a}}, match: {{status: {wanted}}}, within: 1s}}"
        ));
        let mut story = Story::exact();
        story.see(500, Verb::Added, "nodes", node.clone()).begin(1_000, 0).end(3_000, 0);
        let told = story.told(&scenario);
        assert_eq!(told.split("which differs: | ").last(), Some(expected), "{wanted}");
    };
    check(
        "{conditions: {$byKey: {type: {Ready: {status: Unknown}, DiskPressure: {status: \"False\"}}}}}",
        "pass",
    );
    check("{conditions: {$byKey: {type: {MemoryPressure: {$is: absent}}}}}", "pass");
    check(
        "{conditions: {$byKey: {type: {Ready: {status: \"True\"}, DiskPressure: {status: \"False\"}}}}}",
        "status.conditions[type=Ready].status: expected \"True\", found \"Unknown\"",
    );
    check(
        "{conditions: {$byKey: {type: {DiskPressure: {$is: absent}}}}}",
        "status.conditions[type=DiskPressure]: expected {$is: absent}, found {\"status\":\"False\",\"type\":\"DiskPressure\"}",
    );
    check(
        "{conditions: {$byKey: {type: {MemoryPressure: {status: \"False\"}}}}}",
        "status.conditions[type=MemoryPressure]: expected {status: \"False\"}, found no such element",
    );
    check("{ports: {$byKey: {port: {\"80\": {name: web}, \"81\": {name: web}}}}}", "pass");
    // Without a key the nearest element is told.
    check("{ports: [{port: 82, name: web}]}", "status.ports[name=web].port: expected 82, found 80");
    check(
        "{ports: [{port: 81, protocol: TCP}]}",
        "status.ports[1].protocol: expected \"TCP\", found nothing (the nearest of 2)",
    );
    check("{ports: {$all: {port: {$lt: 81}}}}", "status.ports[1].port: expected {$lt: 81}, found 81");
    check(
        "{ports: {$none: {port: 81}}}",
        "status.ports[1]: expected nothing like {port: 81}, found {\"name\":\"web\",\"port\":81}",
    );
    check("{ports: {$any: {port: 90}}}", "status.ports[0].port: expected 90, found 80 (the nearest of 2)");
}

#[test]
fn counts_may_be_words() {
    let check = |how: &str, phase: &str, expected: &str| {
        let scenario = scenario(&format!(
            "- expect: {{of: {{kind: Pod, labels: {{app: web}}}}, match: {{status: {{phase: Running}}}}, {how}, within: 1s}}"
        ));
        let mut story = Story::exact();
        story.pod(100, Verb::Added, "web-1", "a", phase).pod(100, Verb::Added, "web-2", "a", "Pending");
        story.begin(1_000, 0).end(3_000, 0);
        assert_eq!(story.outcome(&scenario).name(), expected, "{how} {phase}");
    };
    check("count: any", "Running", "pass");
    check("count: any", "Pending", "fail");
    check("count: none", "Pending", "pass");
    check("count: none", "Running", "fail");
    check("count: all", "Running", "fail");
}

/// An answer to a request for a log.
fn log(sent: u64, path: &str, status: u16, response: Value) -> Fact {
    Fact::Request {
        id: 1,
        sent: Micros(sent * 1000),
        as_user: "admin".into(),
        method: "GET".into(),
        path: path.into(),
        body: None,
        status,
        response: Some(response),
        date: None,
        headers: std::collections::BTreeMap::new(),
        error: None,
    }
}

const LOG: &str = "/api/v1/namespaces/default/pods/lamp/log?container=main";

#[test]
fn lines_of_a_log_came_between_two_answers() {
    let check = |how: &str, answers: &[(u64, &str)], expected: &str| {
        let scenario =
            scenario(&format!("- expect: {{log: {{pod: lamp, container: main, matches: ^ready}}, {how}}}"));
        let mut story = Story::exact();
        story.pod(1_000, Verb::Added, "lamp", "a", "Running").begin(1_000, 0);
        for (at, text) in answers {
            story.fact(*at, log(*at, LOG, 200, json!(text)));
        }
        story.end(9_000, 0);
        assert_eq!(story.told(&scenario), expected, "{how} {answers:?}");
    };
    let two = [(2_000, "boot\n"), (2_010, "boot\nready now\n")];
    check("within: 2s", &two, "pass");
    check("between: [990ms, 1010ms]", &two, "pass");
    check(
        "between: [1500ms, 2s]",
        &two,
        "fail: it came at 2.000..2.010 s, 0.490 s too early: GET /api/v1/namespaces/default/pods/lamp/log?container=main as admin: 200",
    );
    check("count: 2, between: [500ms, 2s]", &[(2_000, "boot\n"), (2_010, "ready\nboot\nready\n")], "pass");
    check(
        "count: 2, between: [500ms, 2s]",
        &[(1_600, ""), (2_000, "ready\n"), (2_010, "ready\nready\n")],
        "pass",
    );
    check(
        "count: 2, between: [500ms, 2s]",
        &[(1_600, ""), (2_010, "ready\n"), (2_900, "ready\n")],
        "fail: 1 in the window, where the count is 2 | 1.600..2.010 s in the window: GET /api/v1/namespaces/default/pods/lamp/log?container=main as admin: 200 (seq 9)",
    );
    check(
        "within: 2s",
        &[(2_000, "boot\nset\n"), (3_100, "boot\nset\n")],
        "fail: it never came; the log's last lines at 3.100 s: | boot | set",
    );
    // What came while nobody asked is too uncertain.
    let uncertain = "undecided: the observer was too slow: it came at 2.000..2.500 s, and that is uncertain by 0.500 s where the slack is 0.050 s";
    check("between: [1200ms, 2s]", &[(2_000, "boot\n"), (2_500, "boot\nready\n")], uncertain);
}

#[test]
fn a_log_that_happens_to_be_json_is_a_line_too() {
    let scenario = scenario("- expect: {log: {pod: lamp, container: main, matches: ready}, within: 2s}");
    let mut story = Story::exact();
    story.begin(1_000, 0).fact(1_010, log(1_010, LOG, 200, json!({"state": "ready"}))).end(9_000, 0);
    assert_eq!(story.told(&scenario), "pass");
}

#[test]
fn a_log_that_cannot_be_read_is_told() {
    let check = |step: &str, status: u16, expected: &str| {
        let scenario = scenario(step);
        let mut story = Story::exact();
        story.begin(1_000, 0);
        let answer = json!({"message": "the server could not find the requested resource"});
        story.fact(2_000, log(2_000, LOG, status, answer)).fact(4_000, Fact::TrialEnded {}).end(9_000, 0);
        assert_eq!(story.told(&scenario), expected, "{step}");
    };
    let unread = "the log could not be read: GET /api/v1/namespaces/default/pods/lamp/log?container=main was answered 404: the server could not find the requested resource";
    check(
        "- expect: {log: {pod: lamp, container: main, matches: x}, within: 2s}",
        404,
        &format!("fail: {unread}"),
    );
    check(
        "- never: {log: {pod: lamp, container: main, matches: x}, for: 2s}",
        404,
        &format!("undecided: {unread}"),
    );
}

#[test]
fn a_log_is_asked_for_while_its_step_is_pending_and_after_its_window() {
    let scenario = scenario("- never: {log: {pod: lamp, container: main, matches: panic}, for: 100ms}");
    let judge = Judge::new(&scenario);
    let mut story = Story::exact();
    story.begin(1_000, 0);
    let mut asked = Vec::new();
    let mut now = Micros(1_000_000);
    for _ in 0..100 {
        if judge.log_to_ask(0, &story.history, now).as_deref() == Some(LOG) {
            asked.push(now.0 / 1000);
            story.fact(now.0 / 1000, log(now.0 / 1000, LOG, 200, json!("calm\n")));
        }
        match judge.step(0, &story.history, now) {
            rigor_trace::StepState::Pending { until } => {
                now = judge
                    .log_again(0, &story.history, now)
                    .expect("a log")
                    .min(until)
                    .max(now + std::time::Duration::from_millis(1));
            }
            rigor_trace::StepState::Settled(verdict) => {
                assert_eq!(verdict.outcome.name(), "pass", "{:?}", verdict.message);
                break;
            }
        }
    }
    assert_eq!(asked.first(), Some(&1_000));
    assert!(asked.last() >= Some(&1_100), "{asked:?}");
    assert!(asked.windows(2).all(|two| two[1] - two[0] <= 25), "{asked:?}");
}

fn answered(method: &str, path: &str, status: u16, response: Value) -> Fact {
    let Fact::Request { id, sent, as_user, body, date, headers, error, .. } =
        log(1_900, path, status, Value::Null)
    else {
        unreachable!()
    };
    let (method, path, response) = (method.into(), path.into(), Some(response));
    Fact::Request { id, sent, as_user, method, path, body, status, response, date, headers, error }
}

#[test]
fn requests_are_looked_at_with_their_answers() {
    let check = |look: &str, expected: &str| {
        let scenario = scenario(&format!("- expect: {{request: {look}, from: start, within: 5s}}"));
        let mut story = Story::exact();
        story.begin(1_000, 0);
        story.fact(
            2_000,
            answered(
                "POST",
                "/api/v1/namespaces/default/pods",
                409,
                json!({"reason": "AlreadyExists", "code": 409}),
            ),
        );
        story.end(9_000, 0);
        assert_eq!(story.told(&scenario), expected, "{look}");
    };
    check("{method: POST, cel: status == 409 && answer.reason == 'AlreadyExists'}", "pass");
    check("{method: POST, status: 409, match: {code: {$ge: 400}}}", "pass");
    check(
        "{method: POST, status: 201}",
        "fail: it never came; closest was POST /api/v1/namespaces/default/pods as admin: 409, at 2.000 s, which differs: | status: expected 201, found 409",
    );
    check(
        "{method: POST, cel: answer.code == status + 1}",
        "fail: it never came; closest was POST /api/v1/namespaces/default/pods as admin: 409, at 2.000 s, which differs: | the object: expected answer.code == status + 1, found answer.code is 409",
    );
    check(
        "{method: GET}",
        "fail: it never came; the last requests in that time: | 2.000 s POST /api/v1/namespaces/default/pods as admin: 409",
    );
}

#[test]
fn header_fields_of_answers_are_looked_at() {
    let check = |wanted: &str, expected: &str| {
        let scenario = scenario(&format!(
            "- expect: {{request: {{method: GET, headers: {wanted}}}, from: start, within: 5s}}"
        ));
        let mut story = Story::exact();
        let mut fact = answered("GET", "/version", 200, json!({}));
        if let Fact::Request { headers, .. } = &mut fact {
            headers.insert("content-type".into(), Some("application/json".into()));
            headers.insert("warning".into(), None);
        }
        story.begin(1_000, 0).fact(2_000, fact).end(9_000, 0);
        assert_eq!(story.told(&scenario).split("which differs: | ").last(), Some(expected), "{wanted}");
    };
    check("{Content-Type: application/json}", "pass");
    check("{content-type: {$regex: json}, Warning: {$is: absent}}", "pass");
    check(
        "{Content-Type: text/plain}",
        "header field content-type: expected \"text/plain\", found \"application/json\"",
    );
    check("{Warning: {$is: present}}", "header field warning: expected {$is: present}, found nothing");
    check(
        "{Retry-After: \"1\"}",
        "header field retry-after: expected one that was recorded, found nothing: the history does not hold it",
    );
}

#[test]
fn an_answer_must_fulfil_its_condition() {
    let check = |cel: &str, expected: &str| {
        let scenario =
            scenario(&format!("- request: {{method: GET, path: /version, answer: {{cel: {cel}}}}}"));
        let mut story = Story::exact();
        story
            .begin(1_000, 0)
            .fact(2_000, answered("GET", "/version", 200, json!({"minor": "32"})))
            .end(2_000, 0);
        assert_eq!(story.told(&scenario), expected, "{cel}");
    };
    check("int(answer.minor) >= 32 && status == 200", "pass");
    check(
        "int(answer.minor) >= 33",
        "fail: GET /version at 2.000 s was answered 200, but expected int(answer.minor) >= 33, found answer.minor is \"32\"",
    );
}

#[test]
fn values_are_captured_from_answers_and_lines() {
    let captured = |step: &str| {
        let scenario = scenario(step);
        let mut story = Story::exact();
        story.console(500, "a", "kubelet ready ip=10.0.0.1").begin(1_000, 0);
        story.console(1_500, "a", "kubelet ready ip=10.0.0.7");
        story.fact(2_000, answered("GET", "/version", 200, json!({"minor": "32"})));
        story.fact(2_000, log(2_000, LOG, 200, json!("boot\nport=8080 ok\n"))).end(9_000, 0);
        let verdict = story.first(&scenario);
        match verdict.outcome.name() {
            "pass" => json!(verdict.captured).to_string(),
            _ => story.told(&scenario),
        }
    };
    let check = |step: &str, expected: &str| assert_eq!(captured(step), expected, "{step}");
    check("- capture: {request: {method: GET, path: /version}, fields: {minor: minor}}", r#"{"minor":"32"}"#);
    check(
        "- capture: {request: {method: GET, path: /version}, fields: {minor: major}}",
        "fail: the answer has nothing at major",
    );
    check(
        "- capture: {request: {method: GET, path: /version, status: 500}, fields: {minor: minor}}",
        "fail: no such answer; the last to such a request was GET /version as admin: 200 at 2.000 s, which differs: | status: expected 500, found 200",
    );
    check("- capture: {request: {method: PUT}, fields: {minor: minor}}", "fail: no such request was made");
    check("- capture: {console: {board: a, matches: 'ip=(?<ip>[0-9.]+)'}}", r#"{"ip":"10.0.0.1"}"#);
    check(
        "- capture: {console: {board: a, matches: 'mac=(?<mac>[0-9.]+)'}}",
        "fail: no such line came; the console's last lines in that time: | 0.500 s kubelet ready ip=10.0.0.1 | 1.500 s kubelet ready ip=10.0.0.7",
    );
    check(
        "- capture: {log: {pod: lamp, container: main, matches: 'port=(?<port>[0-9]+)'}}",
        r#"{"port":"8080"}"#,
    );
}

#[test]
fn a_capture_that_a_gap_or_a_stall_hid_is_undecided() {
    let check = |fact: Fact, expected: &str| {
        let scenario =
            scenario("- capture: {of: {kind: Pod, name: lamp}, fields: {uid: metadata.uid}, within: 2s}");
        let mut story = Story::exact();
        story.begin(1_000, 0).fact(1_500, fact.clone()).fact(5_000, Fact::TrialEnded {}).end(9_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{fact:?}");
    };
    check(Fact::Gap { stream: "pods".into(), reason: "cut".into() }, "undecided");
    check(Fact::Stall { length: Micros(400_000) }, "undecided");
    check(Fact::Stall { length: Micros(40_000) }, "fail");
    check(Fact::Gap { stream: "nodes".into(), reason: "cut".into() }, "fail");
}

#[test]
fn a_count_that_a_stall_may_have_lowered_is_undecided() {
    let check = |stall: u64, count: &str, expected: &str| {
        let scenario = scenario(&format!(
            "- expect: {{of: {{kind: Event}}, match: {{reason: Evicted}}, count: {count}, between: [1s, 3s]}}"
        ));
        let mut story = Story::exact();
        story.begin(10_000, 0).event(11_500, "one", "Evicted", 1).event(12_000, "two", "Evicted", 1);
        story.fact(12_500, Fact::Stall { length: Micros(stall * 1000) }).end(20_000, 0);
        assert_eq!(story.told(&scenario).split(':').next(), Some(expected), "{stall} {count}");
    };
    check(400, "3", "undecided");
    check(40, "3", "fail");
    check(400, "{$ge: 3}", "undecided");
    // More than wanted is not for want of time.
    check(400, "1", "fail");
    check(400, "{$lt: 2}", "fail");
    check(400, "2", "pass");
}

#[test]
fn instants_of_requests_and_names_of_captures_in_expressions() {
    let steps = "- capture: {of: {kind: Pod, name: lamp}, fields: {host: spec.nodeName}}\n- wait: INSTANT";
    let told = |instant: &str| {
        let scenario = scenario(&steps.replace("INSTANT", instant));
        let mut story = Story::exact();
        story.pod(500, Verb::Added, "lamp", "b", "Running").renew(600, "a").renew(700, "b");
        story.fact(800, Fact::Mark { name: "stopped".into(), subject: Some("b".into()) });
        story.fact(900, Fact::Mark { name: "stopped".into(), subject: Some("a".into()) });
        story.begin(1_000, 0).end(1_000, 0);
        story.fact(
            2_000,
            answered("POST", "/api/v1/namespaces/default/pods/lamp/binding?dryRun=All", 201, json!({})),
        );
        story.fact(2_500, answered("GET", "/api/v1/nodes", 200, json!({}))).begin(3_000, 1);
        let judge = Judge::new(&scenario);
        let rigor_model::Action::Wait(wait) = &scenario.plan[1].action else { panic!("a wait") };
        match judge.instant(1, &story.history, story.history.last_at(), &wait.until) {
            Ok(interval) => interval.to_string(),
            Err(why) => why.to_string(),
        }
    };
    assert_eq!(told("lastRenewal(${host})"), "0.700 s");
    assert_eq!(told("mark(stopped, ${host})"), "0.800 s");
    assert_eq!(told("request(POST, /api/v1/namespaces/*/pods/lamp/binding)"), "1.900..2.000 s");
    assert_eq!(told("request(POST, /api/v1/namespaces/*/pods/lamp/binding) + 1s"), "2.900..3.000 s");
    assert_eq!(
        told("request(PUT, /api/v1/namespaces/*/pods/lamp/binding)"),
        "request(PUT, /api/v1/namespaces/*/pods/lamp/binding) was not made"
    );
    assert_eq!(told("request(GET, /api/v1/*)"), "1.900..2.500 s");
}

#[test]
fn stamps_are_read_from_captured_objects_and_answers() {
    let told = |capture: &str| {
        let scenario =
            scenario(&format!("{capture}\n  as: it\n- wait: stamp(it, metadata.creationTimestamp)"));
        let object = json!({"kind": "Pod", "metadata": {"name": "lamp", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:01Z"}});
        let mut story = Story::exact();
        story.see(1_500, Verb::Added, "pods", object.clone());
        story.fact(2_000, answered("POST", "/api/v1/namespaces/default/pods", 201, object));
        story.begin(3_000, 0).end(3_000, 0).begin(3_000, 1);
        let judge = Judge::new(&scenario);
        let rigor_model::Action::Wait(wait) = &scenario.plan[1].action else { panic!("a wait") };
        match judge.instant(1, &story.history, story.history.last_at(), &wait.until) {
            Ok(interval) => interval.to_string(),
            Err(why) => why.to_string(),
        }
    };
    let name = "fields: {name: metadata.name}}";
    assert_eq!(told(&format!("- capture: {{of: {{kind: Pod, name: lamp}}, {name}")), "1.500 s");
    assert_eq!(told(&format!("- capture: {{request: {{method: POST}}, {name}")), "1.000..1.999 s");
}

#[test]
fn observed_scenarios_bind_names_of_what_ever_was() {
    let steps = "- capture: {of: {kind: Pod, labels: {app: web}}, match: {status: {phase: Failed}}, fields: {pod: metadata.name, host: spec.nodeName}}\n- expect: {of: {kind: Event}, match: {reason: Evicted, message: {$regex: Evicted}}, between: [lastRenewal(a) + 1s, lastRenewal(a) + 3s]}\n- expect: {of: {kind: Pod, name: \"${pod}\"}, absent: true, from: start, within: 10s}";
    let scenario = scenario(steps);
    let mut story = Story::exact();
    story.pod(500, Verb::Added, "web-x7", "a", "Running").renew(600, "a").event(2_000, "e", "Evicted", 1);
    story.pod(2_500, Verb::Modified, "web-x7", "a", "Failed").pod(
        3_000,
        Verb::Deleted,
        "web-x7",
        "a",
        "Failed",
    );
    story.fact(20_000, Fact::TrialEnded {});
    let judged = story.judged(&scenario);
    assert_eq!(judged.outcome.name(), "pass", "{:?}", judged.message);
    assert_eq!(judged.steps[0].1.captured["pod"], json!("web-x7"));
}

#[test]
fn kinds_of_the_scenarios_own_are_looked_at_in_their_own_stream() {
    let scenario = scenario(
        "- expect: {of: {kind: Widget, apiVersion: example.com/v1, plural: widgets, name: w}, match: {spec: {size: 3}}, within: 1s}",
    );
    let widget = |size: u64| json!({"kind": "Widget", "metadata": {"name": "w", "namespace": "default"}, "spec": {"size": size}});
    let mut story = Story::exact();
    story.fact(0, Fact::Synced { stream: "widgets.example.com".into() }).begin(1_000, 0);
    story.see(1_500, Verb::Added, "widgets.example.com", widget(3)).end(3_000, 0);
    assert_eq!(story.told(&scenario), "pass");
    let mut story = Story::exact();
    story.begin(1_000, 0).end(3_000, 0);
    assert_eq!(story.told(&scenario), "undecided: nobody watched widgets.example.com");
}

#[test]
fn asking_step_by_step_gives_the_verdict_of_asking_once() {
    let steps = [
        "- expect: {of: {kind: Pod, labels: {app: web}}, match: {status: {phase: Running}}, count: 3, within: 9s}",
        "- expect: {of: {kind: Event}, match: {reason: Evicted}, count: {$ge: 5}, within: 9s}",
        "- never: {of: {kind: Pod}, match: {status: {phase: Failed}}, for: 6s}",
        "- always: {of: {kind: Pod, name: web-1}, match: {status: {phase: Running}}, from: begin + 3s, for: 4s}",
        "- unchanged: {of: {kind: Pod, name: web-1}, field: spec.nodeName, from: begin + 2s, for: 4s}",
        "- expect: {console: {board: a, matches: ready 4}, within: 8s}",
        "- expect: {of: {kind: Pod, name: web-1}, absent: true, between: [7s, 9s]}",
    ];
    for step in steps {
        for exact in [true, false] {
            let scenario = scenario(step);
            let mut story = if exact { Story::exact() } else { Story::real() };
            story.begin(1_000, 0);
            let judge = Judge::new(&scenario);
            let mut live = None;
            for round in 1..=90_u64 {
                let at = 1_000 + round * 100;
                let name = format!("web-{}", round % 4);
                match round % 5 {
                    0 => story.pulse(at - 20, at),
                    1 => story.event(at, &format!("e{}", round % 3), "Evicted", round / 9 + 1),
                    2 if round > 70 => story.pod(at, Verb::Deleted, &name, "a", "Running"),
                    2 | 3 => story.pod(
                        at,
                        Verb::Modified,
                        &name,
                        "a",
                        if round % 7 == 0 { "Pending" } else { "Running" },
                    ),
                    _ => story.console(at, "a", &format!("ready {}", round / 10)),
                };
                if let rigor_trace::StepState::Settled(verdict) =
                    judge.step(0, &story.history, Micros(at * 1000))
                {
                    live = Some((at, verdict));
                    break;
                }
            }
            let Some((at, verdict)) = live else { panic!("{step} is not settled in time") };
            story.end(at, 0);
            assert_eq!(story.first(&scenario), verdict, "{step} exact {exact}");
            let rigor_trace::StepState::Settled(again) = judge.step(0, &story.history, Micros(at * 1000))
            else {
                panic!("settled before")
            };
            assert_eq!(again, verdict, "{step} exact {exact}");
        }
    }
}
