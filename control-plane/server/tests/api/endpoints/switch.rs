//! Who writes them: nobody while they are computed, everybody who may otherwise; the API's own are stored either way.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ENDPOINTS, SERVICES, SLICES, addresses, member, run, service, slices};
use crate::rig::{PODS, Rig};

const OTHER: &str = "/api/v1/namespaces/other";

fn endpoints(name: &str) -> Value {
    json!({"metadata": {"name": name}, "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 1}]}]})
}

fn slice(name: &str) -> Value {
    json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": []})
}

fn off(rig: &mut Rig) {
    rig.config.controllers = "*,-endpoints".parse().unwrap();
    rig.restart();
}

#[test]
fn ep_01_writes_are_not_allowed_while_they_are_computed() {
    let rig = Rig::new();
    rig.create(SERVICES, &service("web"));
    let name = slices(&rig, "web")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let kinds = [(ENDPOINTS, "web", endpoints("web")), (SLICES, &name, slice(&name))];
    for (path, name, body) in kinds {
        let one = format!("{path}/{name}");
        let elsewhere = path.replace("default", "kube-system");
        let mut generated = body.clone();
        generated["metadata"] = json!({"generateName": "web-"});
        let writes = [
            ("POST", path, &body),
            ("POST", &format!("{path}?dryRun=All"), &body),
            ("POST", &elsewhere, &body),
            ("POST", path, &generated),
            ("PUT", &one, &body),
            ("PUT", &format!("{path}/absent"), &body),
            ("PATCH", &one, &json!({"metadata": {"labels": {"a": "b"}}})),
            ("DELETE", &one, &Value::Null),
            ("DELETE", path, &Value::Null),
            ("DELETE", &format!("{elsewhere}/kubernetes"), &Value::Null),
        ];
        for (method, path, body) in writes {
            let why = rig.call(method, path, body).refused(405);
            assert_eq!(
                why, "the server does not allow this method on the requested resource",
                "{method} {path}"
            );
        }
        assert_eq!(rig.call_as("nobody-token", "POST", path, &body).status, 403, "rights come first");
    }
    assert_eq!(addresses(&rig.get(&format!("{ENDPOINTS}/web"))), " | ");
}

#[test]
fn ep_01_where_the_api_is_stays_stored() {
    let rig = Rig::with(|config| config.listen = "192.0.2.10:6443".parse().unwrap());
    let own = format!("{ENDPOINTS}/kubernetes");
    assert_eq!(addresses(&rig.get(&own)), "192.0.2.10 | ");
    assert_eq!(rig.list(SLICES).len(), 1);
    let mut watch = crate::watches::Watch::of(&rig, &format!("{ENDPOINTS}?watch=1"));
    assert_eq!(watch.lines(), ["ADDED kubernetes"]);
    rig.patch(&own, &json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(watch.lines(), ["MODIFIED kubernetes"]);
    rig.delete(&own);
    assert_eq!(watch.lines(), ["DELETED kubernetes"]);
    assert_eq!(rig.call("GET", &own, &Value::Null).status, 404);
    rig.create(ENDPOINTS, &endpoints("kubernetes"));
    assert_eq!(addresses(&rig.get(&own)), "192.0.2.1 | ");
    assert_eq!(watch.lines(), ["ADDED kubernetes"]);
    // Also where its service were to select pods: it is never computed over.
    rig.patch(&format!("{SERVICES}/kubernetes"), &json!({"spec": {"selector": {"app": "web"}}}));
    assert_eq!(addresses(&rig.get(&own)), "192.0.2.1 | ");
}

#[test]
fn ep_01_switched_off_they_are_ordinary_objects() {
    let mut rig = Rig::new();
    off(&mut rig);
    rig.create(SERVICES, &service("web"));
    rig.create(PODS, &member("w0", "web"));
    run(&rig, "w0", "10.0.0.7", true);
    assert!(rig.list(ENDPOINTS).is_empty() && rig.list(SLICES).is_empty());
    rig.create(ENDPOINTS, &endpoints("web"));
    rig.create(SLICES, &slice("web-1"));
    let mut watch = crate::watches::Watch::of(&rig, &format!("{ENDPOINTS}?watch=1"));
    assert_eq!(watch.lines(), ["ADDED web"]);
    rig.patch(&format!("{ENDPOINTS}/web"), &json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(watch.lines(), ["MODIFIED web"]);
    assert_eq!(addresses(&rig.get(&format!("{ENDPOINTS}/web"))), "192.0.2.1 | ");
    rig.delete(&format!("{SLICES}/web-1"));
    assert!(rig.list(SLICES).is_empty());
}

#[test]
fn ep_01_what_someone_had_stored_is_not_seen_while_they_are_computed() {
    let mut rig = Rig::new();
    off(&mut rig);
    rig.create(SERVICES, &service("web"));
    rig.create(ENDPOINTS, &endpoints("web"));
    rig.create(ENDPOINTS, &endpoints("by-hand"));
    rig.config.controllers = "*".parse().unwrap();
    rig.restart();
    assert_eq!(rig.list(ENDPOINTS).len(), 1);
    assert_eq!(addresses(&rig.get(&format!("{ENDPOINTS}/web"))), " | ");
    assert_eq!(rig.call("GET", &format!("{ENDPOINTS}/by-hand"), &Value::Null).status, 404);
    off(&mut rig);
    assert_eq!(rig.list(ENDPOINTS).len(), 2);
}

#[test]
fn namespaces_and_services_go_without_waiting_for_what_is_computed() {
    let rig = Rig::new();
    rig.create("/api/v1/namespaces", &json!({"metadata": {"name": "other"}}));
    rig.create(&format!("{OTHER}/services"), &service("web"));
    assert_eq!(rig.list(&format!("{OTHER}/endpoints")).len(), 1);
    rig.delete(OTHER);
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.call("GET", OTHER, &Value::Null).status, 404);
    assert!(rig.list("/api/v1/endpoints").is_empty());
    rig.create(SERVICES, &service("web"));
    // Its slice says that it blocks the deletion, as in Kubernetes; but there is nothing to wait for.
    let foreground = json!({"propagationPolicy": "Foreground"});
    rig.call("DELETE", &format!("{SERVICES}/web"), &foreground).expect(200);
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.call("GET", &format!("{SERVICES}/web"), &Value::Null).status, 404);
    assert!(rig.list(ENDPOINTS).is_empty() && rig.list(SLICES).is_empty());
}
