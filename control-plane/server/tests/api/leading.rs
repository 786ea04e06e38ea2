//! Where several control planes share a store: what one does when it begins and ceases to lead.

use std::sync::Arc;
use std::time::Duration;

use control_plane::auth::Credentials;
use control_plane::leadership::Leadership;
use control_plane::store::Store;
use control_plane::{Clock, ControlPlane, Elected};
use futures_util::FutureExt;
use serde_json::json;

use crate::rig::{LEASE, PODS, Rig, board, condition, pod};

/// Long enough that only what a test says ends a term.
const DEADLINE: Duration = Duration::from_secs(3600);

fn elected() -> (Rig, Arc<Leadership>) {
    let mut rig = Rig::new();
    let clock = rig.clock.clone() as Arc<dyn Clock>;
    let store = rig.store.clone() as Arc<dyn Store>;
    let leadership = Arc::new(Leadership::new(Arc::clone(&clock), DEADLINE));
    let elected = Elected { leadership: Arc::clone(&leadership), decisions: Arc::clone(&store) };
    let config = rig.config.clone();
    let opened =
        ControlPlane::open_elected(config, store, clock, 7, Credentials::repeatable(7), Some(elected));
    rig.plane = opened.now_or_never().expect("open must not wait over the memory store").unwrap();
    (rig, leadership)
}

#[test]
fn node_11_whoever_begins_to_lead_gives_each_node_one_full_lease() {
    let (rig, leadership) = elected();
    leadership.begin(1, rig.now());
    rig.pass(Duration::from_secs(1));
    rig.join("a", &board());
    let bound = rig.create(PODS, &pod("p", &json!({"memory": "10Ki"})));
    assert_eq!(bound["spec"]["nodeName"], "a", "a leader binds in the request");

    leadership.end();
    let waiting = rig.create(PODS, &pod("q", &json!({"memory": "10Ki"})));
    assert_eq!(waiting["spec"].get("nodeName"), None, "who does not lead leaves it to who does");
    rig.pass(4 * LEASE);
    assert_eq!(condition(&rig.node("a"), "Ready"), "True", "nobody judges who does not lead");
    assert_eq!(rig.pod("q")["spec"].get("nodeName"), None);

    leadership.begin(2, rig.now());
    let begun = rig.now();
    rig.pass(LEASE - Duration::from_secs(1));
    assert_eq!(condition(&rig.node("a"), "Ready"), "True");
    assert_eq!(rig.pod("q")["spec"]["nodeName"], "a");
    rig.until(Duration::from_secs(3), |rig| condition(&rig.node("a"), "Ready") == "Unknown");
    assert!(rig.now() - begun >= LEASE);
}

#[test]
fn a_leader_that_cannot_renew_in_time_decides_nothing_more() {
    let (rig, leadership) = elected();
    leadership.begin(1, rig.now());
    rig.pass(Duration::from_secs(1));
    rig.join("a", &board());
    rig.pass_alive(DEADLINE - Duration::from_secs(2), &["a"]);
    assert_eq!(leadership.term(), Some(1));
    assert_eq!(rig.create(PODS, &pod("p", &json!({})))["spec"]["nodeName"], "a");
    rig.pass_alive(Duration::from_secs(2), &["a"]);
    assert_eq!(leadership.term(), None);
    assert_eq!(rig.create(PODS, &pod("q", &json!({})))["spec"].get("nodeName"), None);
}
