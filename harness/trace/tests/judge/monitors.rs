//! Monitors: each seen at work, and each silent where nothing is wrong.

use std::time::Duration;

use rigor_model::Constants;
use rigor_trace::history::{Fact, LinkChange, Micros, PowerAct, ProcessEvent, SchedulerAct, Verb};
use serde_json::{Value, json};

use super::story::{Story, scenario};

fn seen(story: &Story) -> Vec<String> {
    let scenario = scenario("- wait: 1s");
    rigor_trace::monitors::all(&scenario, &story.history)
        .into_iter()
        .map(|violation| format!("{}: {}", violation.monitor, violation.message))
        .collect()
}

fn silent(story: &Story) {
    assert_eq!(seen(story), Vec::<String>::new());
}

fn one(story: &Story, expected: &str) {
    assert_eq!(seen(story), [expected]);
}

#[test]
fn versions_never_go_back() {
    let mut story = Story::exact();
    story.ready(100, "a", "True").ready(200, "a", "Unknown");
    silent(&story);
    story.see_version(300, Verb::Modified, "nodes", super::story::node_object("b", "True"), 50);
    one(&story, "resourceVersion never goes back: nodes \"b\" has resourceVersion 50 after 101");
}

#[test]
fn what_one_write_changed_may_share_its_version_where_objects_are_computed() {
    let of = |name: &str, ip: &str| {
        let metadata = json!({"name": name, "namespace": "default"});
        json!({"kind": "Endpoints", "metadata": metadata, "subsets": [{"addresses": [{"ip": ip}]}]})
    };
    let mut story = Story::exact();
    for stream in ["endpoints", "endpointslices"] {
        for (name, ip, version) in
            [("front", "1", 50), ("inner", "1", 50), ("front", "2", 51), ("inner", "2", 51)]
        {
            story.see_version(100, Verb::Modified, stream, of(name, ip), version);
        }
        // A watch that goes on from 51 is told of both again.
        story.see_version(200, Verb::Modified, stream, of("front", "2"), 51);
        story.see_version(200, Verb::Modified, stream, of("inner", "2"), 51);
    }
    silent(&story);
    let mut falls = story.clone();
    falls.see_version(300, Verb::Modified, "endpoints", of("third", "2"), 50);
    one(&falls, "resourceVersion never goes back: endpoints \"third\" has resourceVersion 50 after 51");
    let mut other = story;
    other.see_version(300, Verb::Modified, "endpointslices", of("front", "3"), 51);
    one(&other, "resourceVersion never goes back: endpointslices \"front\" has resourceVersion 51 after 51");

    let mut stored = Story::exact();
    stored.see_version(100, Verb::Added, "configmaps", of("front", "1"), 50);
    silent(&stored);
    stored.see_version(100, Verb::Added, "configmaps", of("inner", "1"), 50);
    one(&stored, "resourceVersion never goes back: configmaps \"inner\" has resourceVersion 50 after 50");
}

#[test]
fn transitions_move_only_with_status() {
    let node = |status: &str, since: &str| json!({"kind": "Node", "metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": since}]}});
    let mut story = Story::exact();
    story.see(100, Verb::Added, "nodes", node("True", "1")).see(
        200,
        Verb::Modified,
        "nodes",
        node("Unknown", "2"),
    );
    silent(&story);
    story.see(300, Verb::Modified, "nodes", node("Unknown", "3"));
    one(
        &story,
        "lastTransitionTime moves only with status: nodes a: lastTransitionTime of \"Ready\" moved from \"2\" to \"3\" while its status stayed \"Unknown\"",
    );
}

#[test]
fn a_pod_changes_nodes_by_eviction_only() {
    let pod = |node: &str, reason: &str| json!({"kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {"nodeName": node}, "status": {"phase": "Pending", "reason": reason}});
    let mut story = Story::exact();
    story.see(100, Verb::Added, "pods", pod("", "")).see(200, Verb::Modified, "pods", pod("a", ""));
    story.see(300, Verb::Modified, "pods", pod("", "Evicted")).see(
        400,
        Verb::Modified,
        "pods",
        pod("b", "Evicted"),
    );
    silent(&story);
    story.see(500, Verb::Modified, "pods", pod("a", ""));
    one(&story, "a bound pod's node changes only through eviction: pod default/p went from node b to a");
    let mut story = Story::exact();
    story.see(200, Verb::Added, "pods", pod("a", "")).see(300, Verb::Modified, "pods", pod("", ""));
    one(
        &story,
        "a bound pod's node changes only through eviction: pod default/p went from node a to none, and it was not evicted",
    );
}

#[test]
fn taints_follow_leases() {
    let check = |at: u64, expected: usize| {
        let mut story = Story::exact();
        story.ready(500, "a", "True").renew(1_000, "a");
        let tainted = json!({"kind": "Node", "metadata": {"name": "a"}, "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}});
        story.see(at, Verb::Modified, "nodes", tainted);
        assert_eq!(seen(&story).len(), expected, "{at}: {:?}", seen(&story));
    };
    check(16_000, 0);
    check(15_999, 1);
    // Renewed a moment before: the check that decided may not have seen it.
    check(1_040, 0);
}

#[test]
fn a_lease_without_a_duration_lasts_the_not_ready_timeout() {
    let check = |at: u64, expected: usize| {
        let mut story =
            Story::with(Constants { no_execute_delay: Duration::from_secs(3), ..Constants::default() });
        let lease = json!({"kind": "Lease", "metadata": {"name": "a", "namespace": "kube-node-lease"}, "spec": {"renewTime": "2026-01-01T00:00:01.000000Z"}});
        let tainted = json!({"kind": "Node", "metadata": {"name": "a"}, "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}});
        story.ready(500, "a", "True").see(1_000, Verb::Added, "leases", lease);
        story.see(at, Verb::Modified, "nodes", tainted);
        assert_eq!(seen(&story).len(), expected, "{at}: {:?}", seen(&story));
    };
    check(3_999, 1);
    check(4_000, 0);
}

#[test]
fn a_lease_that_is_shortened_may_run_out_by_either_duration() {
    let check = |at: u64, expected: usize| {
        let mut story = Story::exact();
        let lease = |seconds: u64| json!({"kind": "Lease", "metadata": {"name": "a", "namespace": "kube-node-lease"}, "spec": {"renewTime": "2026-01-01T00:00:01.000000Z", "leaseDurationSeconds": seconds}});
        let tainted = json!({"kind": "Node", "metadata": {"name": "a"}, "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}});
        story.ready(500, "a", "True").see(1_000, Verb::Added, "leases", lease(30));
        story.see(1_500, Verb::Modified, "leases", lease(4)).see(2_000, Verb::Modified, "leases", lease(15));
        story.see(at, Verb::Modified, "nodes", tainted);
        assert_eq!(seen(&story).len(), expected, "{at}: {:?}", seen(&story));
    };
    check(4_999, 1);
    check(5_000, 0);
}

#[test]
fn no_binding_over_commits() {
    let node = json!({"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"memory": "64Ki", "esp32.io/gpio": "2"}}});
    let pod = |name: &str, node: &str, phase: &str, memory: &str, pins: u32| {
        json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"memory": memory, "esp32.io/gpio": pins}}}]}, "status": {"phase": phase}})
    };
    let check = |second: Value, covered: bool, expected: &[&str]| {
        let mut story = Story::exact();
        story.see(100, Verb::Added, "nodes", node.clone());
        story.see(200, Verb::Added, "pods", pod("one", "a", "Pending", "40Ki", 1));
        story.see(300, Verb::Modified, "pods", pod("one", "a", "Running", "40Ki", 1));
        if covered {
            let mut reported = node.clone();
            reported["status"]["allocatable"]["memory"] = json!("30Ki");
            story.see(400, Verb::Modified, "nodes", reported);
        }
        story.see(500, Verb::Added, "pods", second);
        assert_eq!(seen(&story), expected);
    };
    check(pod("two", "a", "Pending", "24Ki", 1), false, &[]);
    check(
        pod("two", "a", "Pending", "25Ki", 1),
        false,
        &[
            "no binding over-commits (SCHED-56): pod default/two was bound to a, where pods that its last status write does not cover now ask for 66560 of memory, and it offered 65536",
        ],
    );
    check(
        pod("two", "a", "Pending", "1Ki", 2),
        false,
        &[
            "no binding over-commits (SCHED-56): pod default/two was bound to a, where pods that its last status write does not cover now ask for 3 of esp32.io/gpio, and it offered 2",
        ],
    );
    check(pod("two", "a", "Pending", "30Ki", 2), true, &[]);
    check(pod("two", "", "Pending", "99Ki", 1), false, &[]);
}

#[test]
fn a_report_that_repeats_the_last_one_covers_what_runs_by_then() {
    let node = |metadata: Value| json!({"kind": "Node", "metadata": metadata, "status": {"allocatable": {"memory": "64Ki"}}});
    let pod = |name: &str, phase: &str| {
        json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"memory": "40Ki"}}}]}, "status": {"phase": phase}})
    };
    let check = |metadata: Value, expected: usize| {
        let mut story = Story::exact();
        story.see(100, Verb::Added, "nodes", node(json!({"name": "a"})));
        story.see(200, Verb::Added, "pods", pod("one", "Pending"));
        story.see(300, Verb::Modified, "pods", pod("one", "Running"));
        story.see(400, Verb::Modified, "nodes", node(metadata.clone()));
        story.see(500, Verb::Added, "pods", pod("two", "Pending"));
        assert_eq!(seen(&story).len(), expected, "{metadata}: {:?}", seen(&story));
    };
    check(json!({"name": "a"}), 0);
    check(json!({"name": "a", "annotations": {"control-plane.rigor.dev/reported": "7"}}), 0);
    check(json!({"name": "a", "managedFields": [{"manager": "kubelet", "time": "2026-01-01T00:00:00Z"}]}), 0);
    check(json!({"name": "a", "labels": {"x": "y"}}), 1);
    check(json!({"name": "a", "annotations": {"x": "y"}}), 1);
}

#[test]
fn a_report_that_was_under_way_when_the_trial_ended_may_have_made_room() {
    let node = |memory: &str| json!({"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"memory": memory}}});
    let pod = json!({"kind": "Pod", "metadata": {"name": "one", "namespace": "default", "uid": "one"},
        "spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"memory": "40Ki"}}}]}, "status": {"phase": "Pending"}});
    let check = |reported: Option<(u64, u64)>, ended: u64, expected: usize| {
        let mut story = Story::real();
        story.see_version(100, Verb::Added, "nodes", node("39Ki"), 101);
        story.see_version(300, Verb::Modified, "pods", pod.clone(), 103);
        if let Some((at, version)) = reported {
            story.see_version(at, Verb::Modified, "nodes", node("40Ki"), version);
        }
        story.fact(ended, Fact::TrialEnded {});
        assert_eq!(seen(&story).len(), expected, "{reported:?} {ended}: {:?}", seen(&story));
    };
    check(None, 799, 0);
    check(None, 800, 1);
    check(Some((310, 102)), 320, 0);
    check(Some((310, 104)), 320, 1);
}

#[test]
fn only_bindings_of_the_own_scheduler_over_commit() {
    let node =
        json!({"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"memory": "64Ki"}}});
    let pod = |name: &str, scheduler: Value| {
        json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": "a", "schedulerName": scheduler, "containers": [{"resources": {"requests": {"memory": "40Ki"}}}]}, "status": {"phase": "Pending"}})
    };
    let check = |flags: &[&str], schedulers: [Value; 2], started: &[&str], expected: usize| {
        let mut scenario = scenario("- wait: 1s");
        scenario.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut story = Story::exact();
        story.see(100, Verb::Added, "nodes", node.clone());
        for name in started {
            let (name, begun) = ((*name).to_owned(), Micros(150_000));
            story.fact(150, Fact::Scheduler { name, act: SchedulerAct::Start, begun });
        }
        let [first, second] = schedulers;
        story.see(200, Verb::Added, "pods", pod("one", first.clone()));
        story.see(300, Verb::Added, "pods", pod("two", second.clone()));
        let found = rigor_trace::monitors::all(&scenario, &story.history);
        assert_eq!(found.len(), expected, "{flags:?} {first} {second} {started:?}: {found:?}");
    };
    let (own, other, none) = (json!("default-scheduler"), json!("second-scheduler"), Value::Null);
    check(&[], [own.clone(), own.clone()], &[], 1);
    check(&[], [none.clone(), own.clone()], &[], 1);
    check(&[], [own.clone(), own.clone()], &["second-scheduler"], 1);
    // Another's binding is not judged, and not counted against the own scheduler's.
    check(&[], [own.clone(), other.clone()], &["second-scheduler"], 0);
    check(&[], [other.clone(), own.clone()], &["second-scheduler"], 0);
    check(&[], [other.clone(), other.clone()], &["second-scheduler"], 0);
    check(&[], [other.clone(), other.clone()], &[], 0);
    // In the place of the own one.
    check(&[], [own.clone(), none], &["default-scheduler"], 0);
    // Names that the control plane's own scheduler goes by, and the rule that it follows for each.
    check(&["--scheduler-profile=second-scheduler=kube32"], [other.clone(), own.clone()], &[], 1);
    check(&["--scheduler-profile=second-scheduler=upstream"], [other.clone(), other], &[], 0);
    check(&["--default-scheduler-profile=upstream"], [own.clone(), own], &[], 0);
}

/// Board a is given an image, from that microsecond on.
fn flash(begun: u64) -> Fact {
    let (board, sha256) = ("a".into(), "0f".into());
    Fact::Flash { board, image: None, sha256, erased: false, begun: Micros(begun) }
}

#[test]
fn no_panic_and_no_reset_that_nobody_asked_for() {
    let banner = "rigor kubelet 0.1.0 board=qemu-virt reset=power-on";
    let power = |act| Fact::Power { board: "a".into(), act, begun: Micros(190_000) };
    let mut story = Story::exact();
    story
        .console(100, "a", banner)
        .fact(180, power(PowerAct::Cut))
        .console(195, "a", banner)
        .fact(200, power(PowerAct::Restore));
    silent(&story);
    story.console(300, "a", banner);
    one(
        &story,
        "no reset that nobody asked for: board a started anew: rigor kubelet 0.1.0 board=qemu-virt reset=power-on",
    );
    let mut story = Story::exact();
    story.console(100, "a", banner).console(195, "a", banner).fact(200, flash(190_000));
    silent(&story);
    story.console(300, "a", banner);
    one(
        &story,
        "no reset that nobody asked for: board a started anew: rigor kubelet 0.1.0 board=qemu-virt reset=power-on",
    );
    let mut story = Story::exact();
    story.console(100, "a", "12 PANIC index out of bounds at pods.rs:3");
    one(&story, "no panic: board a: PANIC index out of bounds at pods.rs:3");
    let mut story = Story::exact();
    story.console(100, "a", "rigor kubelet 0.1.0 board=qemu-virt reset=watchdog");
    one(
        &story,
        "no reset that nobody asked for: board a started anew: rigor kubelet 0.1.0 board=qemu-virt reset=watchdog",
    );
}

#[test]
fn no_process_ends_unasked() {
    let mut story = Story::exact();
    story.fact(100, Fact::Process { who: "board:a".into(), event: ProcessEvent::Exited, status: 1 });
    one(&story, "no process ends unasked: board:a ended with 1");
    assert_eq!(
        rigor_trace::monitors::all(&scenario("- wait: 1s"), &story.history)[0].outcome().name(),
        "infra-error"
    );
    // A scheduler is what is judged, as the control plane is.
    let mut story = Story::exact();
    story.fact(100, Fact::Process { who: "scheduler:toy".into(), event: ProcessEvent::Exited, status: 1 });
    assert_eq!(
        rigor_trace::monitors::all(&scenario("- wait: 1s"), &story.history)[0].outcome().name(),
        "fail"
    );
}

#[test]
fn no_pod_runs_twice_for_long() {
    let started = "pod default/lamp container main started";
    let check = |stopped: u64, expected: usize| {
        let mut story = Story::exact();
        let link = |change, at: u64| Fact::link("a", change, Micros(at * 1000));
        story.renew(900, "a").console(1_000, "a", started).fact(5_000, link(LinkChange::Cut, 5_000));
        story
            .console(340_000, "b", started)
            .fact(400_000, link(LinkChange::Heal, 400_000))
            .renew(401_000, "a");
        story
            .console(stopped, "a", "pod default/lamp dropped: it was moved")
            .fact(500_000, Fact::TrialEnded {});
        assert_eq!(seen(&story).len(), expected, "{stopped}: {:?}", seen(&story));
    };
    check(403_000, 0);
    check(411_000, 0);
    check(411_051, 1);
}
