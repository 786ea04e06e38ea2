//! POST, PUT and PATCH: generated names, dry runs, field validation, encodings, and methods that are none.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use super::{MAPS, get, map, names};
use crate::rig::{ADMIN, Answer, PODS, Rig, foreign};

fn send(rig: &Rig, method: &str, url: &str, media: &str, body: &str) -> Answer {
    let request = Request::builder().method(method).uri(url).header("content-type", media);
    rig.ask(ADMIN, request, Body::from(body.to_owned()))
}

#[test]
fn names_are_generated_within_the_limit() {
    let rig = Rig::new();
    let check = |prefix: &str, starts: &str| {
        let made = rig.create(MAPS, &json!({"metadata": {"generateName": prefix}}));
        let name = made["metadata"]["name"].as_str().unwrap();
        assert_eq!(name.len(), starts.len() + 5, "{name}");
        assert!(name.starts_with(starts), "{name}");
        assert_eq!(made["metadata"]["generateName"], prefix);
    };
    check("m-", "m-");
    check(&"x".repeat(58), &"x".repeat(58));
    check(&"x".repeat(70), &"x".repeat(58));
    let named = rig.create(MAPS, &json!({"metadata": {"name": "own", "generateName": "m-"}}));
    assert_eq!(named["metadata"]["name"], "own", "a name goes before");
    let dry = rig.call("POST", &format!("{MAPS}?dryRun=All"), &json!({"metadata": {"generateName": "d-"}}));
    assert!(dry.expect(201)["metadata"]["name"].as_str().unwrap().starts_with("d-"));
    let message = rig.call("POST", MAPS, &json!({"metadata": {"generateName": "Bad_"}})).refused(422);
    assert!(message.contains("metadata.generateName: Invalid value: \"Bad_\""), "{message}");
}

#[test]
fn a_dry_run_of_every_verb_answers_and_writes_nothing() {
    let rig = Rig::new();
    rig.create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}));
    rig.create(MAPS, &map("m"));
    rig.create(PODS, &foreign("p"));
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    rig.create(deployments, &json!({"metadata": {"name": "d"}, "spec": spec}));
    let scale = json!({"metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 3}});
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]});
    let dry = "dryRun=All";
    let before = rig.store.clone();
    let before = control_plane::store::Store::revision(before.as_ref());
    let check = |method: &str, url: &str, body: &Value, code: u16| {
        let answer = rig.call(method, url, body);
        assert_eq!(answer.status, code, "{method} {url}: {}", answer.text);
        let now = control_plane::store::Store::revision(rig.store.as_ref());
        assert_eq!(now, before, "{method} {url} wrote");
    };
    check("POST", &format!("{MAPS}?{dry}"), &map("new"), 201);
    check("POST", &format!("{MAPS}?{dry}"), &map("m"), 409);
    check("PUT", &format!("{MAPS}/m?{dry}"), &json!({"metadata": {"name": "m"}, "data": {"k": "w"}}), 200);
    check("PATCH", &format!("{MAPS}/m?{dry}"), &json!({"data": {"k": "w"}}), 200);
    check("PATCH", &format!("{PODS}/p/status?{dry}"), &json!({"status": {"phase": "Running"}}), 200);
    check("PUT", &format!("{deployments}/d/scale?{dry}"), &scale, 200);
    check("PATCH", &format!("{deployments}/d/scale?{dry}"), &json!({"spec": {"replicas": 2}}), 200);
    check("POST", &format!("{PODS}/p/binding?{dry}"), &binding, 201);
    check("POST", &format!("{PODS}/p/eviction?{dry}"), &eviction, 201);
    check("DELETE", &format!("{MAPS}/m?{dry}"), &Value::Null, 200);
    check("DELETE", &format!("{MAPS}/m"), &options, 200);
    check("DELETE", &format!("{MAPS}?{dry}"), &Value::Null, 200);
    check("DELETE", MAPS, &options, 200);
    check("DELETE", &format!("/api/v1/namespaces/n?{dry}"), &Value::Null, 200);
    check("POST", "/api/v1/namespaces?dryRun=All", &json!({"metadata": {"name": "new"}}), 201);
    check("POST", &format!("{MAPS}?dryRun=Some"), &map("new"), 422);
    check("PUT", &format!("{MAPS}/m?dryRun=Some"), &map("m"), 422);
    check("PATCH", &format!("{MAPS}/m?dryRun=Some"), &json!({}), 422);
    check("DELETE", &format!("{MAPS}/m?dryRun=Some"), &Value::Null, 422);
}

#[test]
fn unknown_fields_are_warned_of_refused_or_ignored_by_every_verb() {
    let rig = Rig::new();
    let made = rig.create(MAPS, &map("m"));
    let mut odd = made.clone();
    odd["bogus"] = json!(1);
    let unknown = "unknown field \"bogus\"";
    let check = |method: &str, url: &str, query: &str, body: &Value, code: u16, warned: bool| {
        let answer = rig.call(method, &format!("{url}?dryRun=All&{query}"), body);
        assert_eq!(answer.status, code, "{method} {query}: {}", answer.text);
        let warnings: Vec<_> = answer.headers.get_all("warning").iter().collect();
        let expected = warned.then_some("299 - \"unknown field \\\"bogus\\\"\"");
        assert_eq!(warnings, expected.into_iter().collect::<Vec<_>>(), "{method} {query}");
        if code >= 400 {
            assert!(answer.text.contains("strict decoding error"), "{method} {query}: {}", answer.text);
            assert!(
                answer.body["message"].as_str().unwrap().contains(unknown),
                "{method} {query}: {}",
                answer.text
            );
        }
    };
    let one = format!("{MAPS}/m");
    let new = json!({"metadata": {"name": "new"}, "bogus": 1});
    let patch = json!({"bogus": 1});
    for (query, codes, warned) in [
        ("", [201, 200, 200], true),
        ("fieldValidation=Warn", [201, 200, 200], true),
        ("fieldValidation=Ignore", [201, 200, 200], false),
        ("fieldValidation=Strict", [400, 400, 422], false),
    ] {
        check("POST", MAPS, query, &new, codes[0], warned);
        check("PUT", &one, query, &odd, codes[1], warned);
        check("PATCH", &one, query, &patch, codes[2], warned);
    }
    for (method, url, kind) in [
        ("POST", MAPS, "CreateOptions"),
        ("PUT", one.as_str(), "UpdateOptions"),
        ("PATCH", one.as_str(), "PatchOptions"),
    ] {
        let message = rig.call(method, &format!("{url}?fieldValidation=Nope"), &map("m")).refused(422);
        let words = format!(
            "{kind}.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Nope\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
        );
        assert_eq!(message, words, "{method}");
    }
}

#[test]
fn fields_that_occur_twice_are_told_of_in_json_and_yaml() {
    let rig = Rig::new();
    let json = r#"{"metadata":{"name":"a","name":"b"},"data":{"k":"1","k":"2"}}"#;
    let yaml = "metadata: {name: a, name: b}\n";
    let check = |media: &str, body: &str, query: &str, code: u16, words: &[&str]| {
        let answer = send(&rig, "POST", &format!("{MAPS}?dryRun=All&{query}"), media, body);
        assert_eq!(answer.status, code, "{media} {query}: {}", answer.text);
        let warnings: Vec<&str> =
            answer.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect();
        let told = if code == 201 {
            warnings.join("\n")
        } else {
            answer.body["message"].as_str().unwrap().to_owned()
        };
        assert!(words.iter().all(|word| told.contains(word)), "{media} {query}: {told}");
        if code == 201 {
            assert_eq!(answer.body["metadata"]["name"], "b", "the last one counts");
        }
    };
    let twice = r#"duplicate field \"metadata.name\""#;
    check("application/json", json, "", 201, &[twice]);
    check("application/json", json, "fieldValidation=Ignore", 201, &[]);
    check("application/json", json, "fieldValidation=Strict", 400, &["duplicate field \"metadata.name\""]);
    check("application/yaml", yaml, "", 201, &[]);
    let line = "strict decoding error: yaml: unmarshal errors:\n  line 1: key \"name\" already set in map";
    check("application/yaml", yaml, "fieldValidation=Strict", 400, &[line]);
}

#[test]
fn the_three_patches_do_what_their_media_types_say() {
    let rig = Rig::new();
    let mut pod = foreign("p");
    pod["metadata"]["labels"] = json!({"a": "1", "b": "2"});
    pod["metadata"]["finalizers"] = json!(["example.com/x"]);
    pod["spec"]["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
    rig.create(PODS, &pod);
    let check = |media: &str, body: Value, code: u16, pointer: &str, expected: Value| {
        let url = format!("{PODS}/p?dryRun=All");
        let answer = send(&rig, "PATCH", &url, &format!("application/{media}"), &body.to_string());
        assert_eq!(answer.status, code, "{media} {body}: {}", answer.text);
        assert_eq!(answer.body.pointer(pointer).cloned().unwrap_or_default(), expected, "{media} {body}");
    };
    let (merge, strategic, steps) = ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json");
    let labels = "/metadata/labels";
    check(
        merge,
        json!({"metadata": {"labels": {"a": null, "c": "3"}}}),
        200,
        labels,
        json!({"b": "2", "c": "3"}),
    );
    check(strategic, json!({"metadata": {"labels": {"a": null}}}), 200, labels, json!({"b": "2"}));
    check(
        strategic,
        json!({"metadata": {"labels": {"$patch": "replace", "z": "9"}}}),
        200,
        labels,
        json!({"z": "9"}),
    );
    let finalizers = "/metadata/finalizers";
    check(
        merge,
        json!({"metadata": {"finalizers": ["example.com/y"]}}),
        200,
        finalizers,
        json!(["example.com/y"]),
    );
    let added = json!({"metadata": {"finalizers": ["example.com/y"]}});
    check(strategic, added, 200, finalizers, json!(["example.com/y", "example.com/x"]));
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/x"]}});
    check(strategic, gone, 200, finalizers, Value::Null);
    let image = "/spec/containers/0/image";
    check(
        strategic,
        json!({"spec": {"containers": [{"name": "c", "image": "new"}]}}),
        200,
        image,
        json!("new"),
    );
    check(
        steps,
        json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "new"}]),
        200,
        image,
        json!("new"),
    );
    check(steps, json!([{"op": "test", "path": "/metadata/name", "value": "q"}]), 422, "/code", json!(422));
    check(steps, json!([{"op": "remove", "path": "/metadata/labels/a"}]), 200, labels, json!({"b": "2"}));
    check(
        steps,
        json!([{"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/d"}]),
        200,
        "/metadata/labels/d",
        json!("1"),
    );
    check(
        steps,
        json!([{"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/d"}]),
        200,
        labels,
        json!({"b": "2", "d": "1"}),
    );
    check(merge, json!({"metadata": {"name": "other"}}), 400, "/reason", json!("BadRequest"));
    check(merge, json!({"metadata": {"resourceVersion": "1"}}), 409, "/reason", json!("Conflict"));
    check("json", json!({}), 415, "/reason", json!("UnsupportedMediaType"));
    let force = send(&rig, "PATCH", &format!("{PODS}/p?force=true"), "application/merge-patch+json", "{}");
    assert!(force.refused(422).ends_with("force: Forbidden: may not be specified for non-apply patch"));
}

#[test]
fn answers_are_indented_or_yaml_where_asked() {
    let rig = Rig::new();
    rig.create(MAPS, &map("m"));
    let check = |query: &str, indented: bool| {
        let text = get(&rig, &format!("{MAPS}/m{query}")).text;
        assert_eq!(text.starts_with("{\n"), indented, "{query}: {text}");
        assert_eq!(text.lines().count() > 1, indented, "{query}: {text}");
    };
    check("", false);
    check("?pretty=true", true);
    check("?pretty=1", true);
    check("?pretty=T", true);
    check("?pretty", false);
    check("?pretty=yes", false);
    check("?pretty=false", false);
    check("?pretty=0", false);
    let read_by = |agent: &str, query: &str| {
        let request = Request::get(format!("{MAPS}/m{query}")).header("user-agent", agent);
        rig.ask(ADMIN, request, Body::empty()).text.starts_with("{\n")
    };
    assert!(read_by("curl/8.5", "") && read_by("Mozilla/5.0 (X11)", "") && read_by("Wget/1.2", ""));
    assert!(!read_by("kubectl/v1.32.0", "") && !read_by("curl/8.5", "?pretty=false"));
    let request = Request::get(format!("{MAPS}/absent?pretty=true")).header("accept", "application/yaml");
    let refused = rig.ask(ADMIN, request, Body::empty());
    assert_eq!(refused.status, 404);
    assert_eq!(refused.headers["content-type"], "application/yaml", "refusals too: {}", refused.text);
    assert!(refused.text.contains("reason: NotFound"), "{}", refused.text);
    let list = rig.ask(ADMIN, Request::get(MAPS).header("accept", "application/yaml"), Body::empty());
    let list: Value = serde_saphyr::from_str(&list.text).unwrap();
    assert_eq!(names(&list), names(&rig.get(MAPS)));
}

#[test]
fn other_methods_are_not_allowed() {
    let rig = Rig::new();
    rig.create(MAPS, &map("m"));
    let check = |method: &str, url: &str, code: u16| {
        let answer = rig.ask(ADMIN, Request::builder().method(method).uri(url), Body::empty());
        assert_eq!(answer.status, code, "{method} {url}: {}", answer.text);
        if method != "HEAD" && code == 405 {
            assert_eq!(answer.body["reason"], "MethodNotAllowed", "{method} {url}");
        }
    };
    for url in [MAPS, "/api/v1/pods", "/api/v1/namespaces/default/configmaps/m"] {
        check("HEAD", url, 405);
        check("OPTIONS", url, 405);
        check("TRACE", url, 405);
    }
    for url in ["/version", "/api", "/apis", "/apis/apps/v1"] {
        check("HEAD", url, 405);
        check("POST", url, 405);
    }
    check("POST", "/api/v1/configmaps", 405);
    check("DELETE", "/api/v1/configmaps", 405);
    check("PUT", MAPS, 405);
    check("PATCH", MAPS, 405);
    check("POST", &format!("{MAPS}/m"), 405);
    check("DELETE", "/api/v1/namespaces/default/status", 405);
    check("GET", "/api/v1/namespaces/default/bindings", 405);
    check("GET", "/apis/authentication.k8s.io/v1/selfsubjectreviews", 405);
    check("OPTIONS", "/nope", 404);
}
