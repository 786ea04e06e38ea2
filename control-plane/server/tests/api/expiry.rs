//! Events go so long after their last write (`--event-ttl`).

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{PODS, Rig, board, pod};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const LIFETIME: Duration = Duration::from_secs(600);
/// An Event goes within a sixtieth of its lifetime.
const SWEEP: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

fn rig() -> Rig {
    Rig::with(|config| config.event_ttl = LIFETIME)
}

fn event(name: &str, last: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Told", "message": "m", "type": "Normal", "lastTimestamp": last,
    })
}

fn names(rig: &Rig) -> Vec<String> {
    let name = |event: &Value| event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let told = rig.list(&format!("{EVENTS}?fieldSelector=reason%3DTold"));
    told.iter().map(name).collect()
}

#[test]
fn an_event_lives_from_its_last_write_whatever_it_says_of_itself() {
    let rig = rig();
    rig.create(EVENTS, &event("ancient", "2020-01-01T00:00:00Z"));
    rig.create(EVENTS, &event("to-come", "2036-01-01T00:00:00Z"));
    rig.create(EVENTS, &event("raised", "2020-01-01T00:00:00Z"));
    rig.pass(LIFETIME / 2);
    rig.patch(&format!("{EVENTS}/raised"), &json!({"count": 2}));
    rig.pass(LIFETIME / 2 - SECOND);
    assert_eq!(names(&rig), ["ancient", "raised", "to-come"]);
    rig.pass(SECOND + SWEEP);
    assert_eq!(names(&rig), ["raised"]);
    rig.pass(LIFETIME / 2 - SWEEP - SECOND);
    assert_eq!(names(&rig), ["raised"]);
    rig.pass(SECOND + SWEEP);
    assert_eq!(names(&rig), [""; 0]);
}

#[test]
fn sched_53_an_event_that_repeats_stays_and_goes_with_its_cause() {
    let rig = rig();
    rig.join("a", &board());
    rig.create(PODS, &pod("p", &json!({"memory": "1Gi"})));
    rig.pass(LIFETIME * 2);
    let failed = rig.events("p", "FailedScheduling");
    assert!(failed.iter().any(|event| event["count"].as_u64() > Some(500)), "{failed:?}");
    rig.call("DELETE", &format!("{PODS}/p"), &Value::Null).expect(200);
    rig.pass(LIFETIME - SECOND);
    assert!(!rig.events("p", "FailedScheduling").is_empty());
    rig.pass(SECOND + SWEEP);
    assert!(rig.events("p", "FailedScheduling").is_empty());
}

#[test]
fn after_a_restart_the_newest_stamp_of_an_event_counts() {
    let mut rig = rig();
    rig.create(EVENTS, &event("ancient", "2020-01-01T00:00:00Z"));
    rig.create(EVENTS, &event("to-come", "2036-01-01T00:00:00Z"));
    rig.restart_after(LIFETIME - SECOND * 2);
    // The creation's stamp is of the second before the write.
    assert_eq!(names(&rig), ["ancient", "to-come"]);
    rig.pass(SECOND * 2 + SWEEP);
    assert_eq!(names(&rig), ["to-come"]);
    rig.pass(LIFETIME);
    assert_eq!(names(&rig), [""; 0]);
}
