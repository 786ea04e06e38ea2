//! What readers see: at once after any write, in every form, and as far as it is theirs to see.

use std::time::Duration;

use axum::body::Body;
use control_plane_api::{Dialect, decode, kinds};
use http::Request;
use serde_json::{Value, json};

use super::{ENDPOINTS, SERVICES, SLICES, addresses, member, ready, run, service, slices, version};
use crate::rig::{ADMIN, PODS, Rig, board, condition};

#[test]
fn ep_01_every_read_shows_the_last_write() {
    let rig = Rig::new();
    let of_service = rig.create(SERVICES, &service("web"));
    let web = || rig.get(&format!("{ENDPOINTS}/web"));
    assert_eq!(addresses(&web()), " | ");
    assert_eq!(version(&web()), version(&of_service));
    rig.create(PODS, &member("w0", "web"));
    assert_eq!(version(&web()), version(&of_service), "a pod without an address changes nothing");
    let first = run(&rig, "w0", "10.0.0.7", false);
    assert_eq!(addresses(&web()), " | 10.0.0.7");
    assert_eq!(version(&web()), version(&first), "the version is that of the cause");
    run(&rig, "w0", "10.0.0.7", true);
    assert_eq!(addresses(&web()), "10.0.0.7 | ");
    assert_eq!(ready(&slices(&rig, "web")[0]), ["10.0.0.7"]);
    let before = web();
    rig.patch(&format!("{PODS}/w0"), &json!({"metadata": {"labels": {"other": "label"}}}));
    assert_eq!(web(), before);
    rig.patch(&format!("{PODS}/w0"), &json!({"metadata": {"labels": {"app": "none"}}}));
    assert_eq!(addresses(&web()), " | ");
    rig.patch(&format!("{SERVICES}/web"), &json!({"spec": {"selector": {"app": "none"}}}));
    assert_eq!(addresses(&web()), "10.0.0.7 | ");
    rig.delete(&format!("{PODS}/w0"));
    assert_eq!(addresses(&web()), " | ");
    rig.delete(&format!("{SERVICES}/web"));
    assert_eq!(rig.call("GET", &format!("{ENDPOINTS}/web"), &Value::Null).status, 404);
    assert!(slices(&rig, "web").is_empty());
}

#[test]
fn ep_01_a_computed_object_stays_the_same_object() {
    let mut rig = Rig::new();
    let of_service = rig.create(SERVICES, &service("web"));
    let identity = |rig: &Rig| {
        let objects = [rig.get(&format!("{ENDPOINTS}/web")), slices(rig, "web").remove(0)];
        objects
            .map(|object| ["name", "uid", "creationTimestamp"].map(|field| object["metadata"][field].clone()))
    };
    let first = identity(&rig);
    assert_eq!(first[0][2], of_service["metadata"]["creationTimestamp"]);
    assert_ne!(first[0][1], first[1][1]);
    rig.create(PODS, &member("w0", "web"));
    run(&rig, "w0", "10.0.0.7", true);
    assert_eq!(identity(&rig), first);
    let before = (rig.get(&format!("{ENDPOINTS}/web")), slices(&rig, "web"));
    rig.restart();
    assert_eq!((rig.get(&format!("{ENDPOINTS}/web")), slices(&rig, "web")), before, "with its version");
    rig.delete(&format!("{SERVICES}/web"));
    rig.create(SERVICES, &service("web"));
    assert!(identity(&rig).iter().zip(&first).all(|(new, old)| new[1] != old[1]), "of another service");
}

#[test]
fn ep_01_a_slice_has_a_generation_that_only_its_contents_move() {
    let rig = Rig::new();
    rig.create(SERVICES, &service("web"));
    let generation = || slices(&rig, "web")[0]["metadata"]["generation"].as_u64().unwrap();
    let first = generation();
    rig.patch(&format!("{SERVICES}/web"), &json!({"metadata": {"labels": {"tier": "front"}}}));
    assert_eq!(slices(&rig, "web")[0]["metadata"]["labels"]["tier"], "front");
    assert_eq!(generation(), first);
    rig.create(PODS, &member("w0", "web"));
    run(&rig, "w0", "10.0.0.7", true);
    assert!(generation() > first);
    assert_eq!(rig.get(&format!("{ENDPOINTS}/web"))["metadata"].get("generation"), None);
}

/// What is computed has the very form in which objects are stored and printed.
#[test]
fn ep_01_computed_objects_have_the_form_of_stored_ones() {
    let rig = Rig::new();
    let headless = json!({"metadata": {"name": "bare", "labels": {"a": "b"}}, "spec": {"clusterIP": "None", "selector": {"app": "web"}}});
    rig.create(SERVICES, &headless);
    rig.create(SERVICES, &service("web"));
    rig.create(SERVICES, &service("empty"));
    for (n, ready) in [(0, true), (1, false)] {
        rig.create(PODS, &member(&format!("w{n}"), "web"));
        run(&rig, &format!("w{n}"), &format!("10.0.0.{n}"), ready);
    }
    for (resource, path, count) in [("endpoints", ENDPOINTS, 3), ("endpointslices", SLICES, 3)] {
        let kind = kinds::by_resource(resource).unwrap();
        let names: Vec<String> = rig
            .list(path)
            .iter()
            .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(names.len(), count);
        for name in names {
            let object = rig.get(&format!("{path}/{name}"));
            let canonical = decode::canonical(kind.into(), object.clone(), Dialect::Kubernetes).unwrap();
            assert_eq!(object, canonical, "{name}");
        }
    }
}

#[test]
fn ep_02_the_kubernetes_dialect_keeps_terminating_pods_in_slices() {
    for (dialect, kept) in [(Dialect::Kube32, 0), (Dialect::Kubernetes, 1)] {
        let rig = Rig::with(|config| config.dialect = dialect);
        rig.create(SERVICES, &service("web"));
        let mut pod = member("w0", "web");
        pod["metadata"]["finalizers"] = json!(["rigor.dev/hold"]);
        rig.create(PODS, &pod);
        run(&rig, "w0", "10.0.0.7", true);
        rig.call("DELETE", &format!("{PODS}/w0"), &Value::Null).expect(200);
        assert!(rig.pod("w0")["metadata"]["deletionTimestamp"].is_string());
        assert_eq!(addresses(&rig.get(&format!("{ENDPOINTS}/web"))), " | ");
        let slice = slices(&rig, "web").remove(0);
        assert_eq!(slice["endpoints"].as_array().map_or(0, Vec::len), kept, "{dialect:?}");
        if kept > 0 {
            let expected = json!({"ready": false, "serving": true, "terminating": true});
            assert_eq!(slice["endpoints"][0]["conditions"], expected);
        }
    }
}

#[test]
fn lists_are_chosen_paged_and_kept_as_they_were() {
    let rig = Rig::new();
    for name in ["a", "b", "c"] {
        let mut service = service(name);
        service["metadata"]["labels"] = json!({"odd": (name != "b").to_string()});
        rig.create(SERVICES, &service);
    }
    rig.create("/api/v1/namespaces", &json!({"metadata": {"name": "other"}}));
    rig.create("/api/v1/namespaces/other/services", &service("d"));
    let names = |path: &str| -> Vec<String> {
        rig.list(path).iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(ENDPOINTS), ["a", "b", "c"]);
    assert_eq!(names("/api/v1/endpoints"), ["a", "b", "c", "d"]);
    assert_eq!(names(&format!("{ENDPOINTS}?labelSelector=odd%3Dtrue")), ["a", "c"]);
    assert_eq!(names(&format!("{ENDPOINTS}?fieldSelector=metadata.name%3Db")), ["b"]);
    assert_eq!(names("/api/v1/endpoints?fieldSelector=metadata.namespace%3Dother"), ["d"]);
    let page = rig.get(&format!("{ENDPOINTS}?limit=2"));
    let token = page["metadata"]["continue"].as_str().unwrap();
    rig.delete(&format!("{SERVICES}/c"));
    assert_eq!(names(&format!("{ENDPOINTS}?limit=2&continue={token}")), ["c"], "as it was");
    assert_eq!(names(ENDPOINTS), ["a", "b"]);
    let exact = format!("{ENDPOINTS}?resourceVersion={}&resourceVersionMatch=Exact", version(&page));
    assert_eq!(names(&exact), ["a", "b", "c"]);
    let future = format!("{ENDPOINTS}?resourceVersion=999999");
    assert_eq!(rig.call("GET", &future, &Value::Null).status, 504);
}

#[test]
fn tables_metadata_and_yaml_are_made_of_computed_objects_too() {
    let rig = Rig::new();
    rig.create(SERVICES, &service("web"));
    rig.create(PODS, &member("w0", "web"));
    run(&rig, "w0", "10.0.0.7", true);
    let as_form =
        |path: &str, accept: &str| rig.ask(ADMIN, Request::get(path).header("accept", accept), Body::empty());
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(as_form(ENDPOINTS, table).body["rows"][0]["cells"][1], "10.0.0.7:8080");
    let row = as_form(SLICES, table).body["rows"][0]["cells"].clone();
    assert_eq!((&row[1], &row[2], &row[3]), (&json!("IPv4"), &json!("8080"), &json!("10.0.0.7")));
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let shown = as_form(&format!("{ENDPOINTS}/web"), partial).body;
    assert_eq!((&shown["kind"], shown.get("subsets")), (&json!("PartialObjectMetadata"), None));
    assert!(as_form(&format!("{ENDPOINTS}/web"), "application/yaml").text.contains("10.0.0.7"));
}

#[test]
fn reading_them_needs_the_right_to_read_them() {
    let rig = Rig::new();
    rig.create(SERVICES, &service("web"));
    for path in [ENDPOINTS.to_owned(), format!("{ENDPOINTS}/web"), SLICES.to_owned()] {
        assert_eq!(rig.call_as("nobody-token", "GET", &path, &Value::Null).status, 403, "{path}");
    }
}

#[test]
fn node_27_pods_of_an_unknown_node_leave_the_ready_addresses_and_come_back() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(SERVICES, &service("web"));
    let mut pod = crate::rig::pod("p", &json!({"memory": "10Ki"}));
    pod["metadata"]["labels"] = json!({"app": "web"});
    rig.create(PODS, &pod);
    rig.run("a", "p");
    let web = || rig.get(&format!("{ENDPOINTS}/web"));
    assert_eq!(addresses(&web()), "10.0.0.7 | ");
    rig.until(Duration::from_secs(20), |rig| condition(&rig.node("a"), "Ready") == "Unknown");
    rig.pass(Duration::from_secs(1));
    assert_eq!(condition(&rig.pod("p"), "Ready"), "False");
    assert_eq!(addresses(&web()), " | 10.0.0.7");
    rig.renew("a");
    rig.report("a", &board());
    rig.run("a", "p");
    rig.pass(Duration::from_secs(1));
    assert_eq!(addresses(&web()), "10.0.0.7 | ");
}
