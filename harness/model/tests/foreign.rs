//! Rig files of the kind `external`, and which scenarios such a rig does not take.

use rigor_model::catalogue::Catalogue;
use rigor_model::{Capability, Constant, Rig, Scenario};

const TIMES: &str =
    "noExecuteDelay: 15s, checkPeriod: 5s, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms";

fn rig(spec: &str) -> Result<Rig, String> {
    let source = format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {{name: ours}}\nspec:\n  kind: external\n{spec}"
    );
    Rig::parse("ours.yaml", &source).map_err(|mistakes| format!("{mistakes:#}"))
}

#[test]
fn a_rig_file_says_where_the_cluster_is_and_what_is_there() {
    let rig = rig(&format!(
        "  kubeconfig: ~/k\n  context: c\n  boards: {{a: kitchen, b: garden}}\n  boardTokens: {{b: garden.token}}\n  constants: {{renewInterval: 10s, tolerationSeconds: 300s, {TIMES}}}\n"
    ))
    .unwrap();
    let external = rig.external.clone().unwrap();
    assert_eq!(rig.boards, 2);
    assert_eq!(external.nodes["b"], "garden");
    assert_eq!(external.tokens["b"], "garden.token");
    assert_eq!(external.probed, [Constant::LeaseDuration].into());
    // Whether others use the cluster is said by its owner, never guessed.
    let offered: Vec<&str> = rig.capabilities.iter().map(|capability| capability.name()).collect();
    assert_eq!(offered, ["kubectl", "played-nodes", "board-identity"]);
    assert!(!rig.kind.virtual_time());
}

#[test]
fn mistakes_in_files_of_external_rigs() {
    let cases = [
        format!("  constants: {{{TIMES}}}\n"),
        "  boards: {a: kitchen}\n  constants: {noExecuteDelay: 15s, checkPeriod: 5s, controllerPeriod: 1s}\n"
            .to_owned(),
        "  boards: {a: kitchen}\n  constants: probe\n".to_owned(),
        format!("  boards: 2\n  constants: {{leaseDuration: 40s, renewInterval: 10s, {TIMES}}}\n"),
        format!(
            "  boards: {{a: kitchen, c: kitchen}}\n  boardTokens: {{d: x}}\n  constants: {{renewInterval: 10s, {TIMES}}}\n"
        ),
        format!(
            "  capabilities: [kubectl, power, control-plane]\n  emulator: [q]\n  constants: {{leaseDuration: 40s, renewInterval: 10s, {TIMES}}}\n"
        ),
    ];
    let told: String = cases
        .iter()
        .map(|case| format!("{case}    => {}\n\n", rig(case).unwrap_err().replace('\n', "\n    => ")))
        .collect();
    insta::assert_snapshot!(told);
    let other = "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {name: r}\nspec:\n  kind: sim\n  kubeconfig: x\n  constants: {leaseDuration: 40s, renewInterval: 10s, tolerationSeconds: 1s, noExecuteDelay: 15s, checkPeriod: 5s, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms}\n";
    let told = Rig::parse("r.yaml", other).map_err(|mistakes| format!("{mistakes:#}")).unwrap_err();
    assert!(
        told.contains("a rig of kind sim starts its control plane itself and has no kubeconfig"),
        "{told}"
    );
}

fn refused(rig: &Rig, spec: &str) -> String {
    let catalogue =
        Catalogue::parse("requirements.yaml", include_str!("../../../suites/requirements.yaml")).unwrap();
    let source = format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: tale, requirements: [NODE-03], profile: kube32}}\nspec:\n{spec}"
    );
    let scenarios = Scenario::parse("tale.yaml", &source, &catalogue, &|_| Err("no files".to_owned()))
        .unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    rig.refuses(&scenarios[0]).unwrap_or_else(|| "taken".to_owned())
}

#[test]
fn a_scenario_that_would_touch_what_is_not_its_own_is_not_taken() {
    let shared = rig(&format!(
        "  boards: {{a: kitchen}}\n  constants: {{renewInterval: 10s, tolerationSeconds: 300s, {TIMES}}}\n"
    ))
    .unwrap();
    let mut own = shared.clone();
    own.capabilities.insert(Capability::ExclusiveCluster);
    let board = "  rig: {boards: 1}\n  steps:\n";
    let none = "  steps:\n";
    for (spec, expected) in [
        (
            format!(
                "{board}    - expect: {{of: {{kind: Node, name: \"${{a}}\"}}}}\n    - wait: lastRenewal(a) + 1s\n"
            ),
            "taken",
        ),
        (
            format!(
                "{board}    - patch: {{user: \"board:a\", kind: Node, name: \"${{a}}\", type: merge, patch: {{}}}}\n"
            ),
            "taken",
        ),
        (
            format!("{board}    - wait: 1s\n    - expect: {{of: {{kind: Node, name: a}}}}\n"),
            "line 8 writes `a` for a Node's name, which is another one here: write ${a}",
        ),
        (
            format!(
                "{board}    - create: {{manifest: {{kind: Pod, apiVersion: v1, metadata: {{name: p}}, spec: {{nodeSelector: {{kubernetes.io/hostname: a}}}}}}}}\n"
            ),
            "line 7 writes `a` for a Node's name, which is another one here: write ${a}",
        ),
        (
            format!(
                "{board}    - delete: {{kind: Node, name: \"${{a}}\", user: \"board:a\", answer: {{status: 403}}}}\n"
            ),
            "line 7 writes a DELETE of the Node of board a, outside the trial's namespace and nodes: only with exclusive-cluster",
        ),
        (format!("  constants: {{leaseDuration: 4s}}\n{none}    - wait: 1s\n"), "taken"),
        (format!("  constants: {{tolerationSeconds: 300s}}\n{none}    - wait: 1s\n"), "taken"),
        (
            format!("  constants: {{tolerationSeconds: 20s}}\n{none}    - wait: 1s\n"),
            "it wants tolerationSeconds 20s, and the cluster's is 5m",
        ),
        (
            format!("  constants: {{leaseDuration: 4s}}\n{board}    - wait: 1s\n"),
            "it wants leaseDuration 4s, and the cluster's is not known before it is asked",
        ),
        (format!("{board}    - power: {{board: a, do: cut}}\n"), "the rig ours lacks power"),
        (format!("{none}    - controlPlane: {{do: kill}}\n"), "the rig ours lacks control-plane"),
        (
            format!("  rig: {{boards: 2}}\n{none}    - wait: 1s\n"),
            "it needs 2 boards, and the rig ours has 1",
        ),
        (
            format!("  rig: {{needs: [exclusive-cluster]}}\n{none}    - wait: 1s\n"),
            "the rig ours lacks exclusive-cluster",
        ),
    ] {
        assert_eq!(refused(&shared, &spec), expected, "{spec}");
    }
    for (act, what) in [
        (
            "create: {manifest: {kind: Namespace, apiVersion: v1, metadata: {name: other}}}",
            "the Namespace other",
        ),
        (
            "create: {manifest: {kind: Namespace, apiVersion: v1, metadata: {name: \"${namespace}-b\"}}}",
            "the Namespace ${namespace}-b",
        ),
        ("delete: {kind: Namespace, name: \"${namespace}\"}", "the Namespace ${namespace}"),
        (
            "apply: {manifest: {kind: Pod, apiVersion: v1, metadata: {name: p, namespace: kube-system}}}",
            "the Pod p",
        ),
        ("delete: {kind: Pod, name: p, namespace: default}", "the Pod p"),
        ("patch: {kind: Secret, name: s, namespace: default, type: merge, patch: {}}", "the Secret s"),
        (
            "request: {method: POST, path: /apis/rbac.authorization.k8s.io/v1/clusterroles, body: {}}",
            "by POST /apis/rbac.authorization.k8s.io/v1/clusterroles",
        ),
        (
            "request: {method: GET, path: /api/v1/namespaces/default/pods/p/exec}",
            "by GET /api/v1/namespaces/default/pods/p/exec",
        ),
        ("parallel: [{delete: {kind: Pod, name: p, namespace: default}}]", "the Pod p"),
    ] {
        let spec = format!("{none}    - {act}\n");
        let expected = format!(
            "line 6 writes {what}, outside the trial's namespace and nodes: only with exclusive-cluster"
        );
        assert_eq!(refused(&shared, &spec), expected, "{act}");
        assert_eq!(refused(&own, &spec), "taken", "{act}");
    }
    for act in [
        "request: {method: GET, path: /api/v1/namespaces/default/pods}",
        "request: {method: DELETE, path: \"/api/v1/namespaces/${namespace}/pods\"}",
        "request: {method: PUT, path: /api/v1/nodes/n1, body: {}}",
        "create: {manifest: {kind: Lease, apiVersion: coordination.k8s.io/v1, metadata: {name: n1, namespace: kube-node-lease}}}",
    ] {
        assert_eq!(refused(&shared, &format!("{none}    - {act}\n")), "taken", "{act}");
    }
}
