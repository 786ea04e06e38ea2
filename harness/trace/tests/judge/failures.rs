//! A gallery of what the judge says: every kind of failure, of doubt and of a monitor's alarm, whole.

use rigor_trace::PowerAct;
use rigor_trace::history::{Fact, LinkChange, Micros, ProcessEvent, Ran, SchedulerAct, Verb};
use serde_json::{Value, json};

use super::story::{Story, node_object, scenario};

/// One thing that went wrong: what it is, the steps, and what was recorded.
struct Case {
    name: &'static str,
    steps: &'static str,
    story: Story,
}

fn case(name: &'static str, steps: &'static str, tell: impl FnOnce(&mut Story)) -> Case {
    let mut story = Story::exact();
    tell(&mut story);
    Case { name, steps, story }
}

fn real(name: &'static str, steps: &'static str, tell: impl FnOnce(&mut Story)) -> Case {
    let mut story = Story::real();
    tell(&mut story);
    Case { name, steps, story }
}

/// A case of one step from 1 s to 12 s; what is told comes before it by 1 s or inside.
fn step(name: &'static str, steps: &'static str, tell: impl Fn(&mut Story, bool)) -> Case {
    case(name, steps, |story| {
        tell(story, false);
        story.begin(1_000, 0);
        tell(story, true);
        story.end(12_000, 0);
    })
}

fn request(method: &str, path: &str, status: u16, response: Value) -> Fact {
    Fact::Request {
        id: 1,
        sent: Micros(1_400_000),
        as_user: "admin".into(),
        method: method.into(),
        path: path.into(),
        body: None,
        status,
        response: (status != 0).then_some(response),
        date: None,
        headers: std::collections::BTreeMap::new(),
        error: (status == 0).then(|| "connection refused".to_owned()),
    }
}

fn pod(phase: &str, containers: Value) -> Value {
    json!({"kind": "Pod", "metadata": {"name": "lamp", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": "a", "containers": containers}, "status": {"phase": phase}})
}

fn two_containers() -> Value {
    json!([{"image": "rigor.dev/pause", "args": ["x"]}, {"image": "rigor.dev/crash", "args": ["y"]}])
}

fn states() -> Vec<Case> {
    vec![
        step(
            "too early",
            "- expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, between: [2s, 3s]}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Added, "lamp", "a", "Running");
                }
            },
        ),
        step(
            "too late",
            "- expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, within: 2s}",
            |story, inside| {
                if inside {
                    story.pod(9_000, Verb::Added, "lamp", "a", "Running");
                }
            },
        ),
        step(
            "never seen",
            "- expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, within: 2s}",
            |_, _| {},
        ),
        step(
            "wrong field",
            "- expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}, spec: {nodeName: b}}, within: 2s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Added, "lamp", "a", "Running").pod(
                        2_000,
                        Verb::Modified,
                        "lamp",
                        "a",
                        "Failed",
                    );
                }
            },
        ),
        step(
            "wrong element, by its key",
            "- expect: {of: {kind: Node, name: a}, match: {status: {conditions: {$byKey: {type: {Ready: {status: \"True\"}, DiskPressure: {status: \"False\"}}}}}}, within: 2s}",
            |story, inside| {
                if !inside {
                    story.see(500, Verb::Added, "nodes", node_object("a", "Unknown"));
                }
            },
        ),
        step(
            "wrong element, the nearest",
            "- expect: {of: {kind: Pod, name: lamp}, match: {spec: {containers: [{image: rigor.dev/crash, args: [x]}]}}, within: 2s}",
            |story, inside| {
                if !inside {
                    story.see(500, Verb::Added, "pods", pod("Running", two_containers()));
                }
            },
        ),
        step(
            "extra element",
            "- expect: {of: {kind: Pod, name: lamp}, match: {spec: {containers: {$count: 1}}}, within: 2s}",
            |story, inside| {
                if !inside {
                    story.see(500, Verb::Added, "pods", pod("Running", two_containers()));
                }
            },
        ),
        step(
            "element that must not be there",
            "- expect: {of: {kind: Pod, name: lamp}, match: {spec: {containers: {$none: {image: {$regex: crash}}}}}, within: 2s}",
            |story, inside| {
                if !inside {
                    story.see(500, Verb::Added, "pods", pod("Running", two_containers()));
                }
            },
        ),
        step(
            "condition that does not hold",
            "- expect: {of: {kind: Pod, name: lamp}, cel: size(object.spec.containers) == 1 && object.status.phase == 'Running', within: 2s}",
            |story, inside| {
                if !inside {
                    story.see(500, Verb::Added, "pods", pod("Running", json!([{}, {}])));
                }
            },
        ),
        step(
            "condition about what is not there yet",
            "- expect: {of: {kind: Pod, name: lamp}, cel: object.status.podIP != '', within: 2s}",
            |story, inside| {
                if !inside {
                    story.see(500, Verb::Added, "pods", pod("Running", json!([])));
                }
            },
        ),
        step(
            "condition that cannot be evaluated",
            "- never: {of: {kind: Pod}, cel: object.status.phase > 3, for: 2s}",
            |story, inside| {
                if !inside {
                    story.see(500, Verb::Added, "pods", pod("Running", json!([])));
                }
            },
        ),
        step(
            "wrong number of objects",
            "- expect: {of: {kind: Pod, labels: {app: web}}, match: {status: {phase: Running}}, count: 3, within: 2s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Added, "web-1", "a", "Running").pod(
                        1_600,
                        Verb::Added,
                        "web-2",
                        "a",
                        "Pending",
                    );
                }
            },
        ),
        step(
            "not so for all names",
            "- expect: {of: {kind: Pod, names: [web-1, web-2, web-3]}, match: {status: {phase: Running}}, within: 2s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Added, "web-1", "a", "Running").pod(
                        1_600,
                        Verb::Added,
                        "web-2",
                        "a",
                        "Pending",
                    );
                }
            },
        ),
        step(
            "still there",
            "- expect: {of: {kind: Pod, name: lamp}, absent: true, within: 2s}",
            |story, inside| {
                if !inside {
                    story.pod(500, Verb::Added, "lamp", "a", "Running");
                }
            },
        ),
    ]
}

fn spans() -> Vec<Case> {
    vec![
        step(
            "never broken",
            "- never: {of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}, for: 5s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Added, "lamp", "a", "Running").pod(
                        2_000,
                        Verb::Modified,
                        "lamp",
                        "a",
                        "Failed",
                    );
                }
            },
        ),
        step(
            "never broken by an Event",
            "- never: {of: {kind: Event}, match: {reason: Evicted}, for: 5s}",
            |story, inside| {
                if inside {
                    story.event(1_500, "e", "Evicted", 1);
                }
            },
        ),
        step(
            "never so often",
            "- never: {of: {kind: Event}, match: {reason: Evicted}, count: {$ge: 2}, for: 5s}",
            |story, inside| {
                if inside {
                    story.event(1_500, "e", "Evicted", 1).event(2_500, "e", "Evicted", 3);
                }
            },
        ),
        step(
            "always broken",
            "- always: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, for: 5s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Modified, "lamp", "a", "Failed");
                } else {
                    story.pod(500, Verb::Added, "lamp", "a", "Running");
                }
            },
        ),
        step(
            "always broken from the start",
            "- always: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, for: 5s}",
            |_, _| {},
        ),
        step(
            "changed",
            "- unchanged: {of: {kind: Pod, name: lamp}, field: spec.nodeName, for: 5s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Modified, "lamp", "b", "Running");
                } else {
                    story.pod(500, Verb::Added, "lamp", "a", "Running");
                }
            },
        ),
        step(
            "unchanged, but gone",
            "- unchanged: {of: {kind: Pod, name: lamp}, field: spec.nodeName, for: 5s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Deleted, "lamp", "a", "Running");
                } else {
                    story.pod(500, Verb::Added, "lamp", "a", "Running");
                }
            },
        ),
        step(
            "unchanged, but never there",
            "- unchanged: {of: {kind: Pod, name: lamp}, field: spec.nodeName, for: 5s}",
            |_, _| {},
        ),
        case(
            "wrong order",
            "- expect: {of: {kind: Pod, name: lamp}, within: 2s}\n  as: there\n- expect: {of: {kind: Event}, match: {reason: Scheduled}, from: start, within: 5s}\n  as: scheduled\n- order: [there, scheduled]",
            |story| {
                story.event(400, "e", "Scheduled", 1).begin(1_000, 0).pod(
                    1_500,
                    Verb::Added,
                    "lamp",
                    "a",
                    "Running",
                );
                story.end(1_500, 0).begin(1_500, 1).end(1_500, 1).begin(1_500, 2).end(1_500, 2);
            },
        ),
    ]
}

fn occurrences() -> Vec<Case> {
    vec![
        step(
            "Event that never came",
            "- expect: {of: {kind: Event}, match: {reason: Evicted, involvedObject: {name: lamp}}, within: 2s}",
            |story, inside| {
                if inside {
                    story.event(1_500, "e", "Scheduled", 1);
                }
            },
        ),
        step(
            "no Event at all",
            "- expect: {of: {kind: Event}, match: {reason: Evicted}, within: 2s}",
            |_, _| {},
        ),
        step(
            "wrong number of Events",
            "- expect: {of: {kind: Event}, match: {reason: Evicted}, count: 1, between: [500ms, 5s]}",
            |story, inside| {
                if inside {
                    story
                        .event(1_200, "d", "Evicted", 1)
                        .event(1_500, "e", "Evicted", 1)
                        .event(2_500, "e", "Evicted", 3);
                    story.event(7_000, "f", "Evicted", 1);
                }
            },
        ),
        step(
            "console",
            "- expect: {console: {board: a, matches: kubelet ready}, within: 5s}",
            |story, inside| {
                if inside {
                    story.console(1_500, "a", "network up").console(1_600, "a", "api server lost");
                }
            },
        ),
        step(
            "silent console",
            "- expect: {console: {board: a, matches: kubelet ready}, within: 5s}",
            |_, _| {},
        ),
        case(
            "output of a second scheduler",
            "- scheduler: {name: toy, do: dry-run}\n- expect: {console: {scheduler: toy, matches: lamp would be bound}, within: 2s}",
            |story| {
                story.begin(1_000, 0);
                let act = SchedulerAct::DryRun;
                story.fact(1_200, Fact::Scheduler { name: "toy".into(), act, begun: Micros(1_000_000) });
                story.end(1_200, 0).begin(1_200, 1);
                story.printed(1_500, "toy", "ready: schedules for toy, dry run");
                story.printed(1_600, "toy", "default/lamp does not fit: 0/1 nodes").end(9_000, 1);
            },
        ),
        step("log", "- expect: {log: {pod: lamp, matches: ready}, within: 1s}", |story, inside| {
            if inside {
                story.fact(
                    2_100,
                    request("GET", "/api/v1/namespaces/default/pods/lamp/log", 200, json!("boot\nset up\n")),
                );
            }
        }),
        step(
            "log that cannot be read",
            "- expect: {log: {pod: lamp, matches: ready}, within: 1s}",
            |story, inside| {
                if inside {
                    story.fact(
                        2_100,
                        request(
                            "GET",
                            "/api/v1/namespaces/default/pods/lamp/log",
                            501,
                            json!({"message": "no logs here"}),
                        ),
                    );
                }
            },
        ),
        step(
            "request with another answer",
            "- expect: {request: {method: POST, path: {$regex: /pods$}, status: 201}, within: 5s}",
            |story, inside| {
                if inside {
                    story.fact(
                        1_500,
                        request(
                            "POST",
                            "/api/v1/namespaces/default/pods",
                            409,
                            json!({"reason": "AlreadyExists"}),
                        ),
                    );
                }
            },
        ),
        step("no such request", "- expect: {request: {method: DELETE}, within: 5s}", |story, inside| {
            if inside {
                story.fact(1_500, request("GET", "/version", 200, json!({})));
            }
        }),
    ]
}

fn acts() -> Vec<Case> {
    let binding = "/api/v1/namespaces/default/pods/p/binding";
    let conflict = json!({"reason": "Conflict", "message": "pod p is already assigned"});
    let ran = |status, stdout: &str| Ran {
        begun: Micros(1_000_000),
        argv: vec!["get".into(), "pods".into()],
        status,
        stdout: stdout.into(),
        stderr: "warning: x\n".into(),
    };
    let kubectl = |status, stdout: &str| Fact::Kubectl(ran(status, stdout));
    let one = |name, steps, fact: Option<Fact>| {
        case(name, steps, |story| {
            story.begin(1_000, 0);
            if let Some(fact) = fact {
                story.fact(1_500, fact);
            }
            story.end(2_000, 0);
        })
    };
    vec![
        one(
            "wrong status of an answer",
            "- bind: {pod: p, node: a}",
            Some(request("POST", binding, 409, conflict.clone())),
        ),
        one(
            "wrong body of an answer",
            "- bind: {pod: p, node: a, answer: {status: 409, match: {message: {$regex: has gone}}}}",
            Some(request("POST", binding, 409, conflict.clone())),
        ),
        one(
            "condition about an answer",
            "- bind: {pod: p, node: a, answer: {status: 409, cel: answer.reason == 'AlreadyExists'}}",
            Some(request("POST", binding, 409, conflict)),
        ),
        one("no answer", "- bind: {pod: p, node: a}", Some(request("POST", binding, 0, Value::Null))),
        one("request that was not made", "- bind: {pod: p, node: a}", None),
        one("kubectl's exit code", "- kubectl: {args: [get, pods]}", Some(kubectl(1, ""))),
        one(
            "kubectl's output",
            "- kubectl: {args: [get, pods], stdout: Running}",
            Some(kubectl(0, "lamp Pending\n")),
        ),
        one("etcdctl's exit code", "- etcdctl: {args: [get, pods]}", Some(Fact::Etcdctl(ran(1, "")))),
        one("etcdctl that was not run", "- etcdctl: {args: [get, pods]}", Some(kubectl(0, ""))),
        one("act that the rig did not do", "- power: {board: a, do: cut}", None),
    ]
}

fn captures() -> Vec<Case> {
    vec![
        step(
            "capture of nothing",
            "- capture: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, fields: {ip: status.podIP}, within: 2s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Added, "lamp", "a", "Pending");
                }
            },
        ),
        step(
            "capture of several",
            "- capture: {of: {kind: Pod}, fields: {ip: status.podIP}, within: 2s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Added, "web-1", "a", "Pending").pod(
                        1_500,
                        Verb::Added,
                        "web-2",
                        "a",
                        "Pending",
                    );
                }
            },
        ),
        step(
            "capture of a field that is not there",
            "- capture: {of: {kind: Pod, name: lamp}, fields: {ip: status.podIP}, within: 2s}",
            |story, inside| {
                if inside {
                    story.pod(1_500, Verb::Added, "lamp", "a", "Running");
                }
            },
        ),
        step(
            "capture of an answer that was not given",
            "- capture: {request: {method: GET, path: /version, status: 200}, fields: {minor: minor}, within: 2s}",
            |story, inside| {
                if inside {
                    story.fact(1_500, request("GET", "/version", 403, json!({"reason": "Forbidden"})));
                }
            },
        ),
        step(
            "capture of a line that did not come",
            "- capture: {console: {board: a, matches: 'ip=(?<ip>.+)'}, within: 2s}",
            |story, inside| {
                if inside {
                    story.console(1_500, "a", "network up");
                }
            },
        ),
        case(
            "name that no capture gave a value",
            "- capture: {of: {kind: Pod, name: lamp}, fields: {host: spec.nodeName}, within: 2s}\n- expect: {of: {kind: Node, name: \"${host}\"}, within: 1s}",
            |story| {
                story.begin(1_000, 0).end(4_000, 0).begin(4_000, 1).end(40_000, 1);
            },
        ),
    ]
}

fn doubts() -> Vec<Case> {
    let running =
        "- expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, between: [2s, 3s]}";
    vec![
        case(
            "watch that was lost",
            "- never: {of: {kind: Pod, name: lamp}, match: {status: {phase: Failed}}, for: 5s}",
            |story| {
                story.pod(500, Verb::Added, "lamp", "a", "Running").begin(1_000, 0);
                story
                    .fact(2_000, Fact::Gap { stream: "pods".into(), reason: "connection reset".into() })
                    .end(12_000, 0);
            },
        ),
        case("what nobody watched", "- never: {of: {kind: ConfigMap}, for: 1s}", |story| {
            story.begin(1_000, 0).end(12_000, 0);
        }),
        real("harness that was held up", running, |story| {
            story.begin(1_000, 0).fact(3_500, Fact::Stall { length: Micros(2_000_000) }).end(12_000, 0);
        }),
        real(
            "harness that was held up while it counted",
            "- expect: {of: {kind: Event}, match: {reason: Evicted}, count: 2, between: [1s, 3s]}",
            |story| {
                story.begin(1_000, 0).pulse(2_400, 2_410).event(2_500, "e", "Evicted", 1);
                story.fact(3_500, Fact::Stall { length: Micros(2_000_000) }).end(12_000, 0);
            },
        ),
        real("observer that was too slow", running, |story| {
            story
                .begin(1_000, 0)
                .pulse(1_200, 1_210)
                .pod(3_100, Verb::Added, "lamp", "a", "Running")
                .end(12_000, 0);
        }),
        real(
            "number that an edge leaves open",
            "- expect: {of: {kind: Event}, match: {reason: Evicted}, count: 1, between: [2s, 3s]}",
            |story| {
                story.begin(1_000, 0).pulse(1_700, 1_710).event(3_300, "e", "Evicted", 1).end(12_000, 0);
            },
        ),
        case(
            "renewal that nobody saw",
            "- never: {of: {kind: Event}, match: {reason: Evicted}, until: lastRenewal(a) + 1s}",
            |story| {
                story.begin(1_000, 0).end(40_000, 0);
            },
        ),
        case(
            "stamp that is not there",
            "- expect: {of: {kind: Pod, name: lamp}, within: 2s}\n  as: there\n- never: {of: {kind: Event}, until: \"stamp(there, status.startTime) + 1s\"}",
            |story| {
                story.begin(1_000, 0).pod(1_500, Verb::Added, "lamp", "a", "Running").end(1_500, 0);
                story.begin(1_500, 1).end(40_000, 1);
            },
        ),
        case(
            "request that was not made yet",
            "- never: {of: {kind: Event}, until: \"request(POST, /api/v1/nodes) + 1s\"}",
            |story| {
                story.begin(1_000, 0).end(40_000, 0);
            },
        ),
        case(
            "recording that ends too early",
            "- never: {of: {kind: Event}, match: {reason: Evicted}, for: 30s}",
            |story| {
                story.begin(1_000, 0).end(2_000, 0);
            },
        ),
    ]
}

fn alarms() -> Vec<Case> {
    let wait = "- wait: 1s";
    let started = "pod default/lamp container main started";
    let alarm = |name, tell: &dyn Fn(&mut Story)| {
        case(name, wait, |story| {
            story.begin(10, 0).end(20, 0);
            tell(story);
        })
    };
    let assigned = |node: &str| json!({"kind": "Pod", "metadata": {"name": "lamp", "namespace": "default", "uid": "u"}, "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"memory": "80Ki"}}}]}, "status": {"phase": "Pending"}});
    vec![
        alarm("monitor: a version went back", &|story| {
            story.ready(100, "a", "True").see_version(
                300,
                Verb::Modified,
                "nodes",
                node_object("b", "True"),
                50,
            );
        }),
        alarm("monitor: a transition without a change", &|story| {
            let mut node = node_object("a", "True");
            story.see(100, Verb::Added, "nodes", node.clone());
            node["status"]["conditions"][0]["lastTransitionTime"] = json!("later");
            story.see(200, Verb::Modified, "nodes", node);
        }),
        alarm("monitor: a pod changed its node", &|story| {
            story.see(100, Verb::Added, "pods", assigned("a")).see(
                200,
                Verb::Modified,
                "pods",
                assigned("b"),
            );
        }),
        alarm("monitor: a taint before a lease ran out", &|story| {
            story.ready(500, "a", "True").renew(1_000, "a");
            let tainted = json!({"kind": "Node", "metadata": {"name": "a"}, "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}});
            story.see(2_000, Verb::Modified, "nodes", tainted);
        }),
        alarm("monitor: too much for a node", &|story| {
            story.see(100, Verb::Added, "nodes", json!({"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"memory": "64Ki"}}}));
            story.see(200, Verb::Added, "pods", assigned("a"));
        }),
        alarm("monitor: a panic", &|story| {
            story.console(100, "a", "12 PANIC index out of bounds at pods.rs:3");
        }),
        alarm("monitor: a reset", &|story| {
            story.console(100, "a", "rigor kubelet 0.1.0 board=qemu-virt reset=watchdog");
        }),
        alarm("monitor: a process ended", &|story| {
            story.fact(100, Fact::Process { who: "board:a".into(), event: ProcessEvent::Exited, status: 1 });
        }),
        alarm("monitor: a pod ran twice", &|story| {
            let link = |change, at: u64| Fact::link("a", change, Micros(at * 1000));
            story.renew(900, "a").console(1_000, "a", started).fact(5_000, link(LinkChange::Cut, 5_000));
            story
                .console(340_000, "b", started)
                .fact(400_000, link(LinkChange::Heal, 400_000))
                .renew(401_000, "a");
            story
                .console(420_000, "a", "pod default/lamp dropped: it was moved")
                .fact(500_000, Fact::TrialEnded {});
        }),
        case(
            "failure after a power cut",
            "- power: {board: a, do: cut}\n  as: outage\n- expect:\n    of: {kind: Node, name: a}\n    match: {status: {conditions: [{type: Ready, status: Unknown}]}}\n    between:\n      - outage + leaseDuration\n      - outage + leaseDuration + checkPeriod + slack",
            |story| {
                story.ready(0, "a", "True").begin(7_000, 0);
                story.fact(
                    7_010,
                    Fact::Power { board: "a".into(), act: PowerAct::Cut, begun: Micros(7_000_000) },
                );
                story.end(7_010, 0).begin(7_010, 1).ready(19_690, "a", "Unknown").end(30_000, 1);
            },
        ),
    ]
}

fn shown(cases: Vec<Case>) -> String {
    let mut gallery = String::new();
    for Case { name, steps, story } in cases {
        let judged = story.judged(&scenario(steps));
        let message = judged.message.unwrap_or_else(|| panic!("{name}: it passes"));
        gallery += &format!("## {name}\n{}: {message}\n\n", judged.outcome.name());
    }
    gallery
}

#[test]
fn failures_of_states() {
    insta::assert_snapshot!(shown(states()));
}

#[test]
fn failures_of_spans() {
    insta::assert_snapshot!(shown(spans()));
}

#[test]
fn failures_of_occurrences() {
    insta::assert_snapshot!(shown(occurrences()));
}

#[test]
fn failures_of_acts() {
    insta::assert_snapshot!(shown(acts()));
}

#[test]
fn failures_of_captures() {
    insta::assert_snapshot!(shown(captures()));
}

#[test]
fn what_cannot_be_decided() {
    insta::assert_snapshot!(shown(doubts()));
}

#[test]
fn alarms_of_monitors() {
    insta::assert_snapshot!(shown(alarms()));
}

#[test]
fn the_gallery_has_every_kind_once() {
    let all = [states(), spans(), occurrences(), acts(), captures(), doubts(), alarms()];
    let mut names: Vec<&str> = all.iter().flatten().map(|case| case.name).collect();
    let number = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), number);
    assert!(number >= 40, "{number} kinds");
}

#[test]
fn every_failure_says_its_sentence_and_where_the_evidence_lies() {
    // What was never there has no record to show.
    let silent = [
        "never seen",
        "still there",
        "always broken from the start",
        "unchanged, but never there",
        "no Event at all",
        "silent console",
        "condition that cannot be evaluated",
        "log that cannot be read",
        "capture of several",
        "name that no capture gave a value",
    ];
    let all = [states(), spans(), occurrences(), acts(), captures()];
    for Case { name, steps, story } in all.into_iter().flatten() {
        let judged = story.judged(&scenario(steps));
        let message = judged.message.unwrap_or_default();
        assert!(message.starts_with("steps "), "{name}: {message}");
        if judged.outcome.name() == "fail" {
            let shown = message.contains("evidence: events.jsonl, seq ") || message.contains(" (seq ");
            assert_eq!(shown, !silent.contains(&name), "{name}: {message}");
        }
    }
}
