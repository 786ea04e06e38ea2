//! Owners and namespaces: what goes with them, what is let go of, and the service account that each namespace has; and cluster
//! roles that belong to others by their labels.

use control_plane_core::{Decision, Key, Write, controllers};
use serde_json::{Value, json};

use crate::world::{World, condition, pod};

fn owner(world: &mut World, name: &str) -> String {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
    });
    world.put("deployments", deployment);
    let stored = world.get("deployments", "default", name).expect("it");
    stored["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

fn reference(name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn owned(name: &str, owners: &[Value]) -> Value {
    let mut pod = pod(name, json!({}));
    pod["metadata"]["ownerReferences"] = owners.into();
    pod
}

fn owners(world: &World, name: &str) -> usize {
    world.pod(name)["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len)
}

#[test]
fn depl_03_pods_go_with_their_deployment() {
    let mut world = World::new();
    let (one, two) = (owner(&mut world, "one"), owner(&mut world, "two"));
    world.put("pods", owned("p", &[reference("one", &one)]));
    world.put("pods", owned("q", &[reference("one", &one), reference("two", &two)]));
    world.put("pods", pod("free", json!({})));
    world.collect_garbage();
    assert_eq!((owners(&world, "p"), owners(&world, "q")), (1, 2), "owners that exist are left alone");
    world.remove("deployments", &Key::new("default", "one"));
    world.collect_garbage();
    assert_eq!(world.get("pods", "default", "p"), None);
    assert_eq!(owners(&world, "q"), 1, "another owner is left");
    world.remove("deployments", &Key::new("default", "two"));
    world.collect_garbage();
    assert_eq!(world.get("pods", "default", "q"), None);
    world.pod("free");
}

/// No reference names a namespace, so nobody can say whether such an owner is there.
#[test]
fn what_is_in_no_namespace_has_no_owner_in_one() {
    let mut world = World::new();
    let uid = owner(&mut world, "one");
    let node = |name: &str, owner: Value| json!({"metadata": {"name": name, "uid": name, "ownerReferences": [owner]}});
    world.put("nodes", node("there", reference("one", &uid)));
    world.put("nodes", node("absent", reference("one", "an earlier uid")));
    let gone = json!({"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "gone"});
    world.put("nodes", node("of-a-node", gone));
    world.collect_garbage();
    assert!(world.get("nodes", "", "there").is_some());
    assert!(world.get("nodes", "", "absent").is_some());
    assert!(world.get("nodes", "", "of-a-node").is_none());
}

#[test]
fn depl_03_an_owner_is_known_by_its_uid_and_where_it_is() {
    let mut world = World::new();
    let uid = owner(&mut world, "one");
    world.put("pods", owned("of-an-earlier-one", &[reference("one", "an earlier uid")]));
    let mut elsewhere = owned("elsewhere", &[reference("one", &uid)]);
    elsewhere["metadata"]["namespace"] = "other".into();
    world.put("pods", elsewhere);
    let mut of_unknown_kind = reference("one", "unknown");
    of_unknown_kind["kind"] = "CronTab".into();
    world.put("pods", owned("of-an-unknown-kind", &[of_unknown_kind]));
    world.collect_garbage();
    assert_eq!(world.get("pods", "default", "of-an-earlier-one"), None);
    assert_eq!(world.get("pods", "other", "elsewhere"), None);
    world.pod("of-an-unknown-kind");
}

#[test]
fn depl_03_orphans_are_let_go_of() {
    let mut world = World::new();
    let uid = owner(&mut world, "one");
    world.put("pods", owned("p", &[reference("one", &uid)]));
    world.change("deployments", "default", "one", |it| {
        it["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
        it["metadata"]["finalizers"] = json!(["orphan"]);
    });
    world.collect_garbage();
    assert_eq!(world.get("deployments", "default", "one"), None);
    assert_eq!(owners(&world, "p"), 0);
    world.collect_garbage();
    world.pod("p");
}

#[test]
fn depl_03_foreground_deletion_waits_for_the_pods() {
    let mut world = World::new();
    let uid = owner(&mut world, "one");
    let mut running = owned("p", &[reference("one", &uid)]);
    running["spec"]["nodeName"] = "a".into();
    world.put("pods", running);
    world.change("deployments", "default", "one", |it| {
        it["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
        it["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    });
    for _ in 0..3 {
        world.collect_garbage();
        assert!(world.pod("p")["metadata"]["deletionTimestamp"].is_string());
        assert!(world.get("deployments", "default", "one").is_some(), "a dependant is still going");
    }
    world.remove("pods", &Key::new("default", "p"));
    world.collect_garbage();
    assert_eq!(world.get("deployments", "default", "one"), None);
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}

#[test]
fn ghost_04_every_namespace_has_a_default_service_account() {
    let mut world = World::new();
    world.put("namespaces", namespace("n"));
    let mut going = namespace("going");
    going["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
    going["spec"]["finalizers"] = json!(["someone's"]);
    world.put("namespaces", going);
    world.tend_namespaces();
    let account = world.get("serviceaccounts", "n", "default").expect("it is made");
    assert_eq!((&account["kind"], &account["apiVersion"]), (&json!("ServiceAccount"), &json!("v1")));
    assert_eq!(world.get("serviceaccounts", "going", "default"), None);
    world.remove("serviceaccounts", &Key::new("n", "default"));
    world.tend_namespaces();
    assert!(world.get("serviceaccounts", "n", "default").is_some(), "and made again");
    let decision = controllers::service_account::decide(&world.snapshot, &Key::new("", "n"));
    assert!(decision.is_idle());
}

#[test]
fn a_namespace_goes_after_its_contents() {
    let mut world = World::new();
    let mut going = namespace("n");
    going["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
    world.put("namespaces", going);
    for (name, bound) in [("waiting", false), ("running", true)] {
        let mut pod = pod(name, json!({}));
        pod["metadata"]["namespace"] = "n".into();
        if bound {
            pod["metadata"]["finalizers"] = json!(["example.com/f"]);
            pod["spec"]["nodeName"] = "a".into();
        }
        world.put("pods", pod);
    }
    world.put("pods", pod("elsewhere", json!({})));
    world.tend_namespaces();
    assert_eq!(world.get("pods", "n", "waiting"), None);
    assert!(world.get("pods", "n", "running").expect("it")["metadata"]["deletionTimestamp"].is_string());
    let stored = world.get("namespaces", "", "n").expect("it");
    assert_eq!(stored["status"]["phase"], "Terminating");
    for (kind, status, message) in [
        ("NamespaceContentRemaining", "True", "Some resources are remaining: pods. has 2 resource instances"),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "Some content in the namespace has finalizers remaining: example.com/f in 1 resource instances",
        ),
        ("NamespaceDeletionDiscoveryFailure", "False", "All resources successfully discovered"),
    ] {
        assert_eq!(condition(&stored, kind).as_deref(), Some(status), "{kind}");
        let condition = control_plane_core::conditions::get(&stored, kind).expect(kind);
        assert_eq!(condition["message"], message);
    }
    world.remove("pods", &Key::new("n", "running"));
    let decision = controllers::namespace::decide(&world.snapshot, &Key::new("", "n"), &world.now);
    let Write::Update { resource: "namespaces", subresource: Some("finalize"), object } = &decision.writes[0]
    else {
        panic!("{decision:?}");
    };
    assert_eq!(object["spec"]["finalizers"], json!([]));
    world.pod("elsewhere");
    let alive = controllers::namespace::decide(&world.snapshot, &Key::new("", "absent"), &world.now);
    assert_eq!(alive, Decision::nothing("the namespace is gone"));
}

fn cluster_role(name: &str, labels: Value, rules: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels}, "rules": rules,
    })
}

fn rule(verb: &str) -> Value {
    json!({"verbs": [verb], "apiGroups": [""], "resources": ["pods"]})
}

#[test]
fn a_cluster_role_has_the_rules_of_those_that_it_selects() {
    let mut world = World::new();
    let mut sum = cluster_role("sum", json!({"to": "sum"}), json!([rule("own")]));
    sum["aggregationRule"] = json!({"clusterRoleSelectors": [
        {"matchLabels": {"to": "sum"}}, {"matchExpressions": [{"key": "also", "operator": "Exists"}]},
    ]});
    world.put("clusterroles", sum);
    world.put("clusterroles", cluster_role("b", json!({"to": "sum"}), json!([rule("get"), rule("list")])));
    world.put("clusterroles", cluster_role("c", json!({"to": "sum"}), json!([rule("list")])));
    world.put("clusterroles", cluster_role("a", json!({"also": ""}), json!([rule("watch")])));
    world.put("clusterroles", cluster_role("other", json!({"to": "other"}), json!([rule("delete")])));
    let key = Key::new("", "sum");
    let settle = |world: &mut World| {
        let decision = controllers::cluster_role::decide(&world.snapshot, &key);
        let writes = decision.writes.len();
        world.apply(decision);
        (writes, world.get("clusterroles", "", "sum").expect("it")["rules"].clone())
    };
    assert_eq!(settle(&mut world), (1, json!([rule("get"), rule("list"), rule("watch")])));
    assert_eq!(settle(&mut world).0, 0, "nothing more follows");
    for gone in ["a", "b", "c"] {
        world.remove("clusterroles", &Key::new("", gone));
    }
    assert_eq!(settle(&mut world), (1, Value::Null));
    assert_eq!(settle(&mut world).0, 0);
    for (role, why) in [("other", "its own rules"), ("absent", "nothing")] {
        let decision = controllers::cluster_role::decide(&world.snapshot, &Key::new("", role));
        assert!(decision.is_idle(), "{role} has {why}");
    }
}

proptest::proptest! {
    /// The collector looks only at what names an owner that is missing or waits itself: nothing that it would act on is left out.
    #[test]
    fn depl_03_whatever_there_is_to_collect_is_looked_at(
        acts in proptest::collection::vec((0..4usize, 0..5usize, 0..6usize, 0..5usize), 1..40)
    ) {
        const FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "example.com/other"];
        let mut world = World::new();
        let key = |number: usize| Key::new(["default", "other"][number % 2], format!("o{number}"));
        for (what, number, owner, how) in acts {
            let (resource, kind) = [("deployments", "Deployment"), ("pods", "Pod")][number / 2 % 2];
            let key = key(number);
            if what == 0 {
                world.remove(resource, &key);
                continue;
            }
            let owner_kind = ["Deployment", "Pod", "CronTab"][(owner / 2 + usize::from(how == 4)) % 3];
            let api_version = if owner_kind == "Pod" { "v1" } else { "apps/v1" };
            let owners = [
                json!({"apiVersion": api_version, "kind": owner_kind, "name": "it", "uid": format!("u{owner}")}),
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "it", "uid": format!("u{how}")}),
            ];
            let mut object = json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": {
                    "name": key.name, "namespace": key.namespace, "uid": format!("u{number}"),
                    "ownerReferences": owners[..what - 1],
                },
            });
            if how < FINALIZERS.len() && what == 3 {
                object["metadata"]["finalizers"] = json!([FINALIZERS[how]]);
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            world.put(resource, object);
            let looked = controllers::garbage::candidates(&world.snapshot, &world.garbage);
            for resource in ["deployments", "pods"] {
                for (key, _) in world.snapshot.list(resource) {
                    let decision = controllers::garbage::decide(&world.snapshot, &world.garbage, resource, key);
                    let place = (resource, key.clone());
                    proptest::prop_assert!(decision.is_idle() || looked.contains(&place), "{place:?}");
                }
            }
        }
    }
}
