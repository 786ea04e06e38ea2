//! What holds for any requests: nothing crashes the server, and a watch tells enough to keep a copy.

use std::collections::BTreeMap;

use axum::body::Body;
use futures_util::FutureExt;
use http::Request;
use http_body_util::BodyExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::rig::{ADMIN, PODS, Rig, board, foreign};

fn segment() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "api",
        "apis",
        "v1",
        "apps",
        "namespaces",
        "default",
        "pods",
        "nodes",
        "deployments",
        "web",
        "p",
        "a",
        "status",
        "binding",
        "scale",
        "events",
        "leases",
        "watch",
        "openapi",
        "v3",
        "%2F",
        "%FF",
        "..",
        "",
        "kube-node-lease",
    ];
    prop_oneof![8 => proptest::sample::select(KNOWN).prop_map(str::to_owned), 1 => "[ -~&&[^ ?#\"<>\\\\^`{|}]]{0,6}"]
}

fn place() -> impl Strategy<Value = String> {
    let path =
        proptest::collection::vec(segment(), 0..7).prop_map(|segments| format!("/{}", segments.join("/")));
    let known = prop_oneof![
        Just(PODS.to_owned()),
        Just(format!("{PODS}/p")),
        Just(format!("{PODS}/p/status")),
        Just(format!("{PODS}/p/binding")),
        Just("/api/v1/nodes/a".to_owned()),
        Just("/apis/apps/v1/namespaces/default/deployments/web/scale".to_owned()),
    ];
    let query = proptest::sample::select(
        &[
            "",
            "?watch=1",
            "?limit=1",
            "?limit=x",
            "?continue=e30",
            "?resourceVersion=99",
            "?dryRun=All",
            "?pretty=1",
            "?labelSelector=a%3Db",
            "?labelSelector=%2C%2C",
            "?fieldSelector=spec.nodeName%3Da",
            "?fieldValidation=Strict",
            "?gracePeriodSeconds=-1",
            "?propagationPolicy=Orphan",
            "?timeoutSeconds=0",
            "?resourceVersionMatch=Exact",
        ][..],
    );
    (prop_oneof![path, known], query).prop_map(|(path, query)| format!("{path}{query}"))
}

fn any_json() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] = &[
        "metadata",
        "spec",
        "status",
        "name",
        "labels",
        "containers",
        "nodeName",
        "p",
        "a",
        "replicas",
        "conditions",
        "type",
        "Ready",
        "target",
        "finalizers",
        "resourceVersion",
        "1",
        "image",
        "tolerations",
        "kind",
        "Pod",
        "$patch",
        "delete",
    ];
    let word = proptest::sample::select(WORDS).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(word.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn body() -> impl Strategy<Value = String> {
    prop_oneof![4 => any_json().prop_map(|value| value.to_string()), 1 => "\\PC{0,20}", 1 => Just(foreign("p").to_string())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_request_crashes_the_server(
        requests in proptest::collection::vec(
            (
                proptest::sample::select(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "BREW"][..]),
                place(),
                proptest::sample::select(&["", "application/json", "application/yaml", "application/merge-patch+json",
                    "application/json-patch+json", "application/strategic-merge-patch+json", "text/plain"][..]),
                proptest::sample::select(&["*/*", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io", ";;=,"][..]),
                body(),
                proptest::sample::select(&[ADMIN, ADMIN, ADMIN, "a-token", "nobody-token", "wrong"][..]),
            ),
            1..24,
        )
    ) {
        let rig = Rig::new();
        rig.join("a", &board());
        rig.create(PODS, &foreign("p"));
        for (method, path, media, accept, body, token) in requests {
            let request = Request::builder().method(method).uri(&path).header("accept", accept).header("content-type", media);
            if path.parse::<http::Uri>().is_err() {
                continue;
            }
            let response = rig.send(token, request, Body::from(body.clone()));
            let status = response.status().as_u16();
            prop_assert!((200..600).contains(&status));
            prop_assert!(status != 500 || method != "GET" || path.contains("resourceVersion"), "{method} {path} {body}");
            // Watches have no end; whatever else there is comes at once.
            let _ = response.into_body().frame().now_or_never();
        }
        // It is still there.
        prop_assert_eq!(rig.call("GET", "/readyz", &Value::Null).status, 200);
        prop_assert_eq!(rig.call("GET", "/api/v1/namespaces/default", &Value::Null).status, 200);
    }

    #[test]
    fn a_watch_keeps_a_copy_of_its_list(
        steps in proptest::collection::vec((0..4_usize, proptest::sample::select(&["x", "y"][..]), 0..4_u8), 1..40),
        selective in any::<bool>(),
    ) {
        let rig = Rig::new();
        let selector = if selective { "labelSelector=app%3Dx" } else { "" };
        let listed = |rig: &Rig| -> BTreeMap<String, Value> {
            let items = rig.list(&format!("{PODS}?{selector}"));
            items.into_iter().map(|pod| (pod["metadata"]["name"].to_string(), pod["metadata"]["resourceVersion"].clone())).collect()
        };
        let list = rig.get(&format!("{PODS}?{selector}"));
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let request = Request::get(format!("{PODS}?watch=1&{selector}&resourceVersion={version}"));
        let mut watch = rig.send(ADMIN, request, Body::empty()).into_body();
        let mut copy: BTreeMap<String, Value> = BTreeMap::new();
        for (index, app, act) in steps {
            let name = format!("p{index}");
            let mut pod = foreign(&name);
            pod["metadata"]["labels"] = json!({"app": app});
            match act {
                0 => drop(rig.call("POST", PODS, &pod)),
                1 | 2 => drop(rig.call("PATCH", &format!("{PODS}/{name}"), &json!({"metadata": {"labels": {"app": app}}}))),
                _ => drop(rig.call("DELETE", &format!("{PODS}/{name}"), &Value::Null)),
            }
        }
        while let Some(Some(frame)) = watch.frame().now_or_never() {
            let bytes = frame.unwrap().into_data().unwrap();
            for line in std::str::from_utf8(&bytes).unwrap().lines() {
                let event: Value = serde_json::from_str(line).unwrap();
                let (name, object) = (event["object"]["metadata"]["name"].to_string(), &event["object"]);
                let known = match event["type"].as_str().unwrap() {
                    "ADDED" => copy.insert(name, object["metadata"]["resourceVersion"].clone()).is_none(),
                    "MODIFIED" => copy.insert(name, object["metadata"]["resourceVersion"].clone()).is_some(),
                    "DELETED" => copy.remove(&name).is_some(),
                    other => panic!("{other}"),
                };
                prop_assert!(known, "{line}");
            }
        }
        prop_assert_eq!(copy, listed(&rig));
    }
}
