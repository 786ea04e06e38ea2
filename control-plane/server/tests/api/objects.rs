//! The generic verbs: making, reading, changing, deleting, lists and their pages, negotiation and errors.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::rig::{ADMIN, PASS, PODS, Rig, foreign, pod};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

#[test]
fn an_object_is_made_read_changed_and_deleted() {
    let rig = Rig::new();
    let made = rig.create(MAPS, &map("m"));
    assert_eq!((&made["kind"], &made["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    let metadata = &made["metadata"];
    assert!(metadata["uid"].is_string() && metadata["resourceVersion"].is_string());
    assert_eq!(metadata["creationTimestamp"], rig.stamp());
    assert_eq!(metadata["managedFields"], Value::Null);
    assert_eq!(rig.get(&format!("{MAPS}/m")), made);
    let mut changed = made.clone();
    changed["data"]["k"] = json!("w");
    let changed = rig.call("PUT", &format!("{MAPS}/m"), &changed).expect(200);
    assert_eq!(changed["data"]["k"], "w");
    assert_ne!(changed["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let message = rig.call("PUT", &format!("{MAPS}/m"), &made).refused(409);
    let words = "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply your changes to the latest version and try again";
    assert_eq!(message, words);
    let gone = rig.delete(&format!("{MAPS}/m"));
    assert_eq!((&gone["kind"], &gone["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(gone["details"]["uid"], made["metadata"]["uid"]);
    assert_eq!(
        rig.call("GET", &format!("{MAPS}/m"), &Value::Null).refused(404),
        "configmaps \"m\" not found"
    );
}

#[test]
fn a_write_that_changes_nothing_takes_no_version() {
    let rig = Rig::new();
    let made = rig.create(MAPS, &map("m"));
    assert_eq!(rig.patch(&format!("{MAPS}/m"), &json!({"data": {"k": "v"}})), made);
    assert_eq!(rig.call("PUT", &format!("{MAPS}/m"), &map("m")).expect(200), made);
}

#[test]
fn names_are_generated_and_taken_names_refused() {
    let rig = Rig::new();
    let names: Vec<String> = (0..3)
        .map(|_| {
            let made = rig.create(MAPS, &json!({"metadata": {"generateName": "m-"}}));
            made["metadata"]["name"].as_str().unwrap().to_owned()
        })
        .collect();
    assert!(names.iter().all(|name| name.starts_with("m-") && name.len() == 7), "{names:?}");
    let answer = rig.call("POST", MAPS, &map(&names[0]));
    assert_eq!(answer.body["reason"], "AlreadyExists");
    assert_eq!(answer.refused(409), format!("configmaps \"{}\" already exists", names[0]));
}

#[test]
fn places_are_checked() {
    let rig = Rig::new();
    let absent = rig.call("POST", "/api/v1/namespaces/absent/configmaps", &map("m")).refused(404);
    assert_eq!(absent, "namespaces \"absent\" not found");
    let mut other = map("m");
    other["metadata"]["namespace"] = json!("other");
    let message = rig.call("POST", MAPS, &other).refused(400);
    assert_eq!(
        message,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    rig.create(MAPS, &map("m"));
    let message = rig.call("PUT", &format!("{MAPS}/m"), &map("n")).refused(400);
    assert!(
        message.contains("the name of the object (n) does not match the name on the URL (m)"),
        "{message}"
    );
}

#[test]
fn a_dry_run_answers_and_changes_nothing() {
    let rig = Rig::new();
    rig.call("POST", &format!("{MAPS}?dryRun=All"), &map("m")).expect(201);
    assert_eq!(rig.list(MAPS).len(), 0);
    let made = rig.create(MAPS, &map("m"));
    assert_eq!(rig.call("POST", &format!("{MAPS}?dryRun=All"), &map("m")).status, 409);
    let path = format!("{MAPS}/m?dryRun=All");
    assert_eq!(rig.patch(&path, &json!({"data": {"k": "w"}}))["data"]["k"], "w");
    rig.delete(&path);
    rig.call("DELETE", &format!("{MAPS}?dryRun=All"), &Value::Null).expect(200);
    assert_eq!(rig.get(&format!("{MAPS}/m")), made);
}

#[test]
fn pages_show_one_version_and_say_what_is_left() {
    let rig = Rig::new();
    for n in 0..5 {
        rig.create(MAPS, &map(&format!("m{n}")));
    }
    let first = rig.get(&format!("{MAPS}?limit=2"));
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    rig.create(MAPS, &map("m25"));
    rig.delete(&format!("{MAPS}/m4"));
    let mut names: Vec<Value> =
        first["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()).collect();
    let mut next = first["metadata"]["continue"].clone();
    while let Some(token) = next.as_str() {
        let page = rig.get(&format!("{MAPS}?limit=2&continue={token}"));
        assert_eq!(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        names.extend(page["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()));
        next = page["metadata"]["continue"].clone();
    }
    assert_eq!(json!(names), json!(["m0", "m1", "m2", "m3", "m4"]));
    assert_eq!(first["kind"], "ConfigMapList");
    assert_eq!(first["items"][0]["kind"], Value::Null);
    let selective = rig.get(&format!("{MAPS}?limit=1&fieldSelector=metadata.name%21%3Dm0"));
    assert_eq!(selective["items"][0]["metadata"]["name"], "m1");
    assert_eq!(selective["metadata"]["remainingItemCount"], Value::Null);
    assert!(selective["metadata"]["continue"].is_string());
}

#[test]
fn pages_over_all_namespaces_miss_nothing() {
    let rig = Rig::new();
    for namespace in ["a", "a-b", "a.b"] {
        if !namespace.contains('.') {
            rig.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
            for n in 0..3 {
                rig.create(&format!("/api/v1/namespaces/{namespace}/configmaps"), &map(&format!("m{n}")));
            }
        }
    }
    let mut seen = Vec::new();
    let mut query = "limit=1".to_owned();
    loop {
        let page = rig.get(&format!("/api/v1/configmaps?{query}"));
        for item in page["items"].as_array().unwrap() {
            seen.push(format!(
                "{}/{}",
                item["metadata"]["namespace"].as_str().unwrap(),
                item["metadata"]["name"].as_str().unwrap()
            ));
        }
        match page["metadata"]["continue"].as_str() {
            Some(token) => query = format!("limit=1&continue={token}"),
            None => break,
        }
    }
    let mut expected = seen.clone();
    expected.sort();
    expected.dedup();
    assert_eq!(seen, expected);
    assert_eq!(seen.len(), 6);
}

#[test]
fn earlier_versions_are_listed_and_forgotten_ones_refused() {
    let rig = Rig::with(|config| config.watch_history = 4);
    let made = rig.create(MAPS, &map("m"));
    let version = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    rig.delete(&format!("{MAPS}/m"));
    let exact = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(rig.get(&exact)["items"].as_array().unwrap().len(), 1);
    for n in 0..6 {
        rig.create(MAPS, &map(&format!("m{n}")));
    }
    let answer = rig.call("GET", &exact, &Value::Null);
    assert_eq!(answer.body["reason"], "Expired");
    assert_eq!(answer.refused(410), "The resourceVersion for the provided list is too old.");
    let future = rig.call("GET", &format!("{MAPS}?resourceVersion=99999999"), &Value::Null);
    assert_eq!(future.headers["retry-after"], "1");
    assert!(future.refused(504).starts_with("Timeout: Too large resource version: 99999999, current: "));
}

#[test]
fn a_bound_pod_is_deleted_gracefully_and_an_unbound_one_at_once() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("unbound"));
    let answer = rig.delete(&format!("{PODS}/unbound"));
    assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(rig.call("GET", &format!("{PODS}/unbound"), &Value::Null).status, 404);

    let mut bound = foreign("bound");
    bound["spec"]["nodeName"] = json!("n");
    rig.create(PODS, &bound);
    let answer = rig.delete(&format!("{PODS}/bound"));
    assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(rig.delete(&format!("{PODS}/bound")), answer, "again, and nothing changes");
    let shorter = rig.call("DELETE", &format!("{PODS}/bound?gracePeriodSeconds=2"), &Value::Null).expect(200);
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 2);
    rig.call("DELETE", &format!("{PODS}/bound?gracePeriodSeconds=0"), &Value::Null).expect(200);
    assert_eq!(rig.call("GET", &format!("{PODS}/bound"), &Value::Null).status, 404);
}

#[test]
fn finalizers_hold_an_object_until_they_are_gone() {
    let rig = Rig::new();
    let mut held = map("m");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    rig.create(MAPS, &held);
    rig.delete(&format!("{MAPS}/m"));
    assert!(rig.get(&format!("{MAPS}/m"))["metadata"]["deletionTimestamp"].is_string());
    rig.patch(&format!("{MAPS}/m"), &json!({"metadata": {"finalizers": []}}));
    assert_eq!(rig.call("GET", &format!("{MAPS}/m"), &Value::Null).status, 404);
}

#[test]
fn preconditions_of_a_deletion_hold() {
    let rig = Rig::new();
    rig.create(MAPS, &map("m"));
    let with = |field: &str| {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {field: "1"}});
        rig.call("DELETE", &format!("{MAPS}/m"), &options).refused(409)
    };
    assert!(with("uid").contains("the UID in the precondition (1) does not match the UID in record"));
    assert!(with("resourceVersion").contains("the ResourceVersion in the precondition (1) does not match"));
}

#[test]
fn a_collection_is_deleted_by_selector() {
    let rig = Rig::new();
    for (name, group) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut own = map(name);
        own["metadata"]["labels"] = json!({"group": group});
        rig.create(MAPS, &own);
    }
    let answer = rig.call("DELETE", &format!("{MAPS}?labelSelector=group%3Dx"), &Value::Null).expect(200);
    assert_eq!(answer["kind"], "ConfigMapList");
    assert_eq!(answer["items"].as_array().unwrap().len(), 2);
    assert_eq!(rig.list(MAPS).len(), 1);
}

#[test]
fn a_deleted_namespace_takes_everything_in_it_along() {
    let rig = Rig::new();
    rig.create("/api/v1/namespaces", &json!({"metadata": {"name": "gone"}}));
    rig.create("/api/v1/namespaces/gone/configmaps", &map("m"));
    rig.create("/api/v1/namespaces/gone/pods", &pod("p", &json!({})));
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    rig.create("/api/v1/namespaces/gone/configmaps", &held);
    rig.delete("/api/v1/namespaces/gone");
    let namespace = rig.get("/api/v1/namespaces/gone");
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let message = rig.call("POST", "/api/v1/namespaces/gone/configmaps", &map("late")).refused(403);
    assert!(
        message.contains("unable to create new content in namespace gone because it is being terminated"),
        "{message}"
    );
    rig.patch("/api/v1/namespaces/gone/configmaps/held", &json!({"metadata": {"finalizers": null}}));
    rig.pass(PASS * 3);
    assert_eq!(rig.call("GET", "/api/v1/namespaces/gone", &Value::Null).status, 404);
    assert_eq!(rig.list("/api/v1/configmaps").len(), 0);
    let message = rig.call("DELETE", "/api/v1/namespaces/default", &Value::Null).refused(403);
    assert_eq!(message, "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

#[test]
fn the_status_is_written_only_through_its_subresource() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("p"));
    rig.patch(&format!("{PODS}/p"), &json!({"status": {"phase": "Failed"}}));
    assert_eq!(rig.pod("p")["status"]["phase"], "Pending");
    let both = json!({"spec": {"nodeName": "zz"}, "status": {"phase": "Running"}});
    rig.patch(&format!("{PODS}/p/status"), &both);
    assert_eq!(rig.pod("p")["status"]["phase"], "Running");
    assert_eq!(rig.pod("p")["spec"]["nodeName"], Value::Null);
}

#[test]
fn strategic_and_json_patches_are_applied() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("p"));
    let patch = |media: &str, body: &Value| {
        let request = Request::patch(format!("{PODS}/p")).header("content-type", media);
        rig.ask(ADMIN, request, Body::from(body.to_string()))
    };
    let strategic = json!({"spec": {"containers": [{"name": "c", "image": "other"}]}});
    let changed = patch("application/strategic-merge-patch+json", &strategic).expect(200);
    assert_eq!(changed["spec"]["containers"][0]["image"], "other");
    let steps = json!([{"op": "add", "path": "/metadata/labels", "value": {"x": "1"}}]);
    let changed = patch("application/json-patch+json", &steps).expect(200);
    assert_eq!(changed["metadata"]["labels"], json!({"x": "1"}));
    let message = patch("application/json", &json!({})).refused(415);
    assert_eq!(message, "415: Unsupported Media Type");
}

#[test]
fn events_are_one_storage_in_two_groups() {
    let rig = Rig::new();
    rig.create(PODS, &pod("p", &json!({})));
    let core = rig.list("/api/v1/namespaces/default/events");
    let newer = rig.list("/apis/events.k8s.io/v1/namespaces/default/events");
    assert_eq!((core.len(), newer.len()), (1, 1));
    assert_eq!(core[0]["involvedObject"]["name"], "p");
    assert_eq!(newer[0]["regarding"]["name"], "p");
    assert_eq!(newer[0]["note"], core[0]["message"]);
}

#[test]
fn lists_are_shown_as_tables_and_metadata() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("p"));
    let show = |accept: &str| rig.ask(ADMIN, Request::get(PODS).header("accept", accept), Body::empty());
    let table = show("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").expect(200);
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["rows"][0]["cells"][0], "p");
    let partial = show("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").expect(200);
    assert_eq!(partial["kind"], "PartialObjectMetadataList");
    assert_eq!(partial["items"][0]["spec"], Value::Null);
    let yaml = show("application/yaml");
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    assert!(yaml.text.contains("kind: PodList"), "{}", yaml.text);
    assert_eq!(show("text/plain").status, 406);
}

#[test]
fn bodies_are_yaml_too_and_have_a_limit() {
    let rig = Rig::new();
    let send =
        |media: &str, body: Body| rig.ask(ADMIN, Request::post(MAPS).header("content-type", media), body);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {on: \"yes\"}\n";
    assert_eq!(send("application/yaml", Body::from(yaml)).expect(201)["data"], json!({"on": "yes"}));
    assert_eq!(send("text/plain", Body::from("{}")).status, 415);
    let answer = send("application/json", Body::from(vec![b' '; 3 * 1024 * 1024 + 1]));
    assert_eq!(answer.body["reason"], "RequestEntityTooLarge");
    assert_eq!(answer.status, 413);
    for nonsense in ["", "{", "hello", "[]", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", "{\"metadata\":5}"] {
        assert_eq!(send("application/json", Body::from(nonsense)).status, 400, "{nonsense}");
    }
}

#[test]
fn unknown_places_and_methods_are_refused_as_kubernetes_refuses_them() {
    let rig = Rig::new();
    let check = |method: &str, path: &str, status: u16, words: &str| {
        let answer = rig.call(method, path, &Value::Null);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
        assert!(answer.text.contains(words), "{method} {path}: {}", answer.text);
    };
    check("GET", "/nope", 404, "404 page not found");
    check("GET", "/apis/nope.example.com/v1", 404, "404 page not found");
    check("GET", "/api/v1/namespaces/default/podz", 404, "the server could not find the requested resource");
    check("PUT", PODS, 405, "the server does not allow this method on the requested resource");
    check("POST", "/api/v1/pods", 405, "the server does not allow this method");
    check("POST", &format!("{PODS}/absent"), 405, "the server does not allow this method");
    check("OPTIONS", "/api/v1/pods", 405, "the server does not allow this method");
    check("DELETE", "/api/v1/namespaces", 405, "the server does not allow this method");
    check("GET", &format!("{PODS}?fieldSelector=spec.foo%3Dbar"), 400, "field label not supported: spec.foo");
    check("GET", &format!("{PODS}?labelSelector=app%20in%20a"), 400, "unable to parse requirement");
}

#[test]
fn every_answer_has_a_date_an_audit_id_and_no_cache() {
    let rig = Rig::new();
    let answer = rig.call("GET", "/healthz", &Value::Null);
    assert_eq!(answer.text, "ok");
    assert_eq!(answer.headers["date"], "Thu, 01 Jan 2026 00:00:00 GMT");
    assert_eq!(answer.headers["audit-id"].len(), 36);
    assert_eq!(answer.headers["cache-control"], "no-cache, private");
    let request = Request::get("/livez?verbose").header("audit-id", "mine");
    let answer = rig.ask(ADMIN, request, Body::empty());
    assert_eq!(answer.headers["audit-id"], "mine");
    assert!(
        answer.text.contains("[+]ping ok") && answer.text.ends_with("livez check passed\n"),
        "{}",
        answer.text
    );
}

#[test]
fn discovery_tells_what_is_served() {
    let rig = Rig::new();
    assert_eq!(rig.get("/api")["versions"], json!(["v1"]));
    assert_eq!(rig.get("/apis")["kind"], "APIGroupList");
    assert_eq!(rig.get("/apis/apps")["name"], "apps");
    let resources = rig.get("/api/v1")["resources"].as_array().unwrap().clone();
    assert!(resources.iter().any(|resource| resource["name"] == "pods/binding"));
    assert_eq!(rig.get("/version")["minor"], "32");
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let ask = |tag: &str| {
        let request = Request::get("/apis").header("accept", accept).header("if-none-match", tag);
        rig.ask(ADMIN, request, Body::empty())
    };
    let first = ask("");
    assert_eq!(first.body["kind"], "APIGroupDiscoveryList");
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(ask(&tag).status, 304);
    assert!(rig.get("/openapi/v3")["paths"]["api/v1"].is_object());
}

#[test]
fn the_same_seed_and_requests_give_the_same_objects() {
    let play = || {
        let rig = Rig::new();
        rig.join("a", &crate::rig::board());
        rig.create(PODS, &pod("p", &json!({})));
        rig.create(PODS, &json!({"metadata": {"generateName": "g-"}, "spec": pod("", &json!({}))["spec"]}));
        rig.pass(PASS * 40);
        let all = ["/api/v1/pods", "/api/v1/nodes", "/api/v1/events", "/api/v1/serviceaccounts"];
        all.map(|path| rig.get(path).to_string()).concat()
    };
    assert_eq!(play(), play());
}
