//! Acts: what the server answered must be what the step allows.

use rigor_trace::history::{Fact, Micros, Ran};
use serde_json::{Value, json};

use super::story::{Story, scenario};

fn request(method: &str, path: &str, status: u16, response: Value) -> Fact {
    Fact::Request {
        id: 1,
        sent: Micros(1_000_000),
        as_user: "admin".into(),
        method: method.into(),
        path: path.into(),
        body: None,
        status,
        response: Some(response),
        date: None,
        headers: [("etag".to_owned(), Some("v1".to_owned())), ("x-none".to_owned(), None)].into(),
        error: (status == 0).then(|| "connection refused".to_owned()),
    }
}

fn told(step: &str, facts: Vec<Fact>) -> String {
    let scenario = scenario(step);
    let mut story = Story::exact();
    story.begin(1_000, 0);
    for fact in facts {
        story.fact(1_100, fact);
    }
    story.end(1_100, 0);
    story.told(&scenario)
}

#[test]
fn answers_must_be_what_the_step_allows() {
    let conflict = || {
        request(
            "POST",
            "/api/v1/namespaces/default/pods/p/binding",
            409,
            json!({"reason": "Conflict", "message": "pod p is already assigned"}),
        )
    };
    let check =
        |step: &str, facts: Vec<Fact>, expected: &str| assert_eq!(told(step, facts), expected, "{step}");
    check("- bind: {pod: p, node: a, answer: {status: 409}}", vec![conflict()], "pass");
    check(
        "- bind: {pod: p, node: a, answer: {status: 409, headers: {ETag: v1, X-None: {$is: absent}}}}",
        vec![conflict()],
        "pass",
    );
    check(
        "- bind: {pod: p, node: a, answer: {status: 409, headers: {ETag: {$regex: ^v2}}}}",
        vec![conflict()],
        "fail: POST /api/v1/namespaces/default/pods/p/binding at 1.100 s was answered 409, but the header field etag: expected {$regex: \"^v2\"}, found \"v1\"",
    );
    check(
        "- bind: {pod: p, node: a, answer: {status: 409, headers: {Vary: {$is: absent}}}}",
        vec![conflict()],
        "undecided: POST /api/v1/namespaces/default/pods/p/binding at 1.100 s: the history does not hold the header field vary",
    );
    check(
        "- bind: {pod: p, node: a, answer: {status: [201, 409], match: {reason: Conflict}}}",
        vec![conflict()],
        "pass",
    );
    check(
        "- bind: {pod: p, node: a}",
        vec![conflict()],
        "fail: POST /api/v1/namespaces/default/pods/p/binding at 1.100 s was answered 409, not a success: pod p is already assigned",
    );
    check(
        "- bind: {pod: p, node: a, answer: {status: 409, match: {message: {$regex: has gone}}}}",
        vec![conflict()],
        "fail: POST /api/v1/namespaces/default/pods/p/binding at 1.100 s was answered 409, but message: expected {$regex: \"has gone\"}, found \"pod p is already assigned\"",
    );
    check("- bind: {pod: p, node: a}", vec![], "infra-error: the request was not made");
    check(
        "- delete: {kind: Pod, name: p}",
        vec![request("DELETE", "/api/v1/namespaces/default/pods/p", 0, Value::Null)],
        "infra-error: DELETE /api/v1/namespaces/default/pods/p at 1.100 s had no answer: connection refused",
    );
}

#[test]
fn reading_before_writing_is_no_answer_to_an_apply() {
    let step = "- apply: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}";
    let facts = vec![
        request("GET", "/api/v1/namespaces/default/configmaps/c", 404, json!({})),
        request("POST", "/api/v1/namespaces/default/configmaps", 201, json!({})),
    ];
    assert_eq!(told(step, facts), "pass");
}

#[test]
fn a_user_is_looked_for_with_its_values_put_in() {
    let mut bound = request("POST", "/api/v1/namespaces/default/pods/p/binding", 201, json!({}));
    if let Fact::Request { as_user, .. } = &mut bound {
        *as_user = "token:of-default".to_owned();
    }
    assert_eq!(told("- bind: {pod: p, node: a, user: \"token:of-${namespace}\"}", vec![bound]), "pass");
}

#[test]
fn traffic_of_played_nodes_is_not_an_acts_answer() {
    let steps = "- patch: {kind: Node, name: a, type: merge, patch: {metadata: {labels: {x: \"1\"}}}}\n- node: {name: n1}";
    let facts = vec![
        request("PATCH", "/api/v1/nodes/n1/status", 404, json!({})),
        request("PATCH", "/api/v1/nodes/a", 200, json!({})),
        request("PATCH", "/api/v1/nodes/a/status", 500, json!({})),
    ];
    assert_eq!(told(steps, facts), "pass");
}

#[test]
fn a_program_must_end_and_say_as_expected() {
    let run = |status, stdout: &str| Ran {
        begun: Micros(1_000_000),
        argv: vec!["--kubeconfig".into(), "x".into(), "get".into(), "pods".into()],
        status,
        stdout: stdout.into(),
        stderr: "warning: x\n".into(),
    };
    let check = |options: &str, status, stdout: &str, expected: &str| {
        let step = format!("- kubectl: {{args: [get, pods]{options}}}");
        let of_kubectl = told(&step, vec![Fact::Kubectl(run(status, stdout))]);
        assert_eq!(of_kubectl.split(" | ").next(), Some(expected), "{options}");
        let of_etcdctl = told(&step.replace("kubectl", "etcdctl"), vec![Fact::Etcdctl(run(status, stdout))]);
        let expected = expected.replace("kubectl", "etcdctl");
        assert_eq!(of_etcdctl.split(" | ").next(), Some(expected.as_str()), "{options}");
    };
    check("", 0, "", "pass");
    check("", 1, "", "fail: kubectl get pods ended with 1, not 0");
    check(", exitCode: 1", 1, "", "pass");
    check(", stdout: Running", 0, "lamp Running\n", "pass");
    check(
        ", stdout: Running",
        0,
        "lamp Pending\n",
        "fail: kubectl get pods ended with 0, but stdout lacks `Running`",
    );
    check(", stdout: {$regex: ^lamp +1/1}", 0, "NAME\nlamp 1/1\n", "pass");
    check(
        ", stderr: {$not: {$regex: warning}}",
        0,
        "",
        "fail: kubectl get pods ended with 0, but stderr expected {$not: {$regex: \"warning\"}}, found \"warning: x\\n\"",
    );
}

#[test]
fn an_act_on_a_played_node_is_told_from_the_nodes_own_traffic() {
    let steps = "- node: {name: n1}\n- patch: {kind: Node, name: n1, subresource: status, type: merge, patch: {status: {phase: x}}}\n- delete: {kind: Lease, name: n1, namespace: kube-node-lease}";
    let scenario = scenario(steps);
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";
    let mut story = Story::exact();
    story.begin(1_000, 0).fact(1_000, request("POST", "/api/v1/nodes", 201, json!({}))).end(1_000, 0);
    story.begin(2_000, 1).fact(2_000, request("PATCH", "/api/v1/nodes/n1/status", 200, json!({})));
    story.fact(2_000, request("PATCH", lease, 404, json!({}))).end(2_000, 1);
    story.begin(3_000, 2).fact(3_000, request("DELETE", lease, 200, json!({}))).end(3_000, 2);
    let judged = story.judged(&scenario);
    assert_eq!(judged.outcome.name(), "pass", "{:?}", judged.message);
}
