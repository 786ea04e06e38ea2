//! Patches against what Kubernetes makes of them, and the laws that hold for any patch.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::tests::any_json;
use crate::kinds;

fn run(patch_type: PatchType, current: &Value, body: &str) -> Result<Value, ApiError> {
    let expected = Expected::from(kinds::by_resource("pods").unwrap());
    match patch_type {
        PatchType::Json => json::apply(current, body.as_bytes()),
        PatchType::Merge => merge::apply(current, body.as_bytes()),
        PatchType::Strategic => strategic::apply(expected, current, body.as_bytes()).map(|(value, _)| value),
    }
}

fn check(patch_type: PatchType, current: &Value, body: &Value, expected: &Value) {
    let patched = run(patch_type, current, &body.to_string()).unwrap();
    assert_eq!(patched, *expected, "{body}");
}

#[test]
fn content_types() {
    for (header, expected) in [
        ("application/merge-patch+json", Ok(PatchType::Merge)),
        ("application/json-patch+json; charset=utf-8", Ok(PatchType::Json)),
        ("application/strategic-merge-patch+json", Ok(PatchType::Strategic)),
        ("application/json", Err(ApiError::unsupported_patch_type())),
        ("application/apply-patch+yaml", Err(ApiError::unsupported_patch_type())),
    ] {
        assert_eq!(PatchType::from_content_type(header), expected, "{header}");
    }
}

#[test]
fn merge_patch() {
    let current = json!({"metadata": {"labels": {"x": "1", "y": "2"}}, "spec": {"containers": [{"name": "c"}, {"name": "d"}]}});
    let cases = [
        (
            json!({"metadata": {"labels": {"y": null, "z": "3"}}}),
            json!({"metadata": {"labels": {"x": "1", "z": "3"}}, "spec": current["spec"]}),
        ),
        (
            json!({"spec": {"containers": [{"name": "e"}]}}),
            json!({"metadata": current["metadata"], "spec": {"containers": [{"name": "e"}]}}),
        ),
        (json!({"metadata": null}), json!({"spec": current["spec"]})),
        (
            json!({"status": {"a": null, "b": {"c": null}}}),
            json!({"metadata": current["metadata"], "spec": current["spec"], "status": {"b": {}}}),
        ),
    ];
    for (patch, expected) in cases {
        check(PatchType::Merge, &current, &patch, &expected);
    }
}

#[test]
fn json_patch() {
    let current = json!({"metadata": {"labels": {"x": "1", "z": "3"}}});
    let body = json!([
        {"op": "test", "path": "/metadata/labels/x", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/x", "value": "9"},
        {"op": "add", "path": "/metadata/annotations", "value": {"k": "v"}},
    ]);
    let expected = json!({"metadata": {"labels": {"x": "9", "z": "3"}, "annotations": {"k": "v"}}});
    check(PatchType::Json, &current, &body, &expected);

    let rejected = [
        json!([{"op": "test", "path": "/metadata/labels/x", "value": "nope"}]),
        json!([{"op": "remove", "path": "/metadata/labels/none"}]),
        json!([{"op": "zap", "path": "/a"}]),
    ];
    for body in rejected {
        assert_eq!(run(PatchType::Json, &current, &body.to_string()), Err(ApiError::rejected()), "{body}");
    }
}

#[test]
fn a_json_patch_cannot_grow_without_limit() {
    let current = json!({"a": {"b": "c"}});
    let deeper: Vec<Value> = (0..200).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/d"})).collect();
    let wider: Vec<Value> =
        (0..60).map(|n| json!({"op": "copy", "from": "", "path": format!("/n{n}")})).collect();
    for operations in [deeper, wider] {
        let body = Value::from(operations).to_string();
        assert_eq!(run(PatchType::Json, &current, &body), Err(ApiError::rejected()));
    }
    let many = Value::from(vec![json!({"op": "test", "path": "/a/b", "value": "c"}); 10_001]).to_string();
    assert_eq!(run(PatchType::Json, &current, &many).unwrap_err().code, 413);
}

#[test]
fn bodies_of_the_wrong_form() {
    let current = json!({});
    let cases = [
        (
            PatchType::Merge,
            "[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            PatchType::Strategic,
            "1",
            "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}",
        ),
        (
            PatchType::Json,
            "{\"op\": \"test\"}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []interface {}",
        ),
        (PatchType::Json, "[1]", "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        (PatchType::Merge, "{", "error decoding patch: unexpected end of JSON input"),
    ];
    for (patch_type, body, message) in cases {
        let error = run(patch_type, &current, body).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (400, message), "{body}");
    }
}

fn pod() -> Value {
    json!({
        "metadata": {"finalizers": ["a", "b"], "labels": {"x": "1"}},
        "spec": {
            "containers": [
                {"name": "c", "image": "i1", "args": ["1"], "ports": [{"containerPort": 80}]},
                {"name": "d", "image": "i1"},
            ],
            "tolerations": [{"key": "k"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Applies a strategic patch to [`pod`] and looks at one place of the result.
fn check_strategic(body: &Value, pointer: &str, expected: &Value) {
    let patched = run(PatchType::Strategic, &pod(), &body.to_string()).unwrap();
    assert_eq!(patched.pointer(pointer).unwrap_or(&Value::Null), expected, "{body}");
}

#[test]
fn strategic_lists_merge_by_key() {
    let cases = [
        (
            json!({"spec": {"containers": [{"name": "c", "image": "i2"}]}}),
            "/spec/containers",
            json!([{"name": "c", "image": "i2", "args": ["1"], "ports": [{"containerPort": 80}]}, {"name": "d", "image": "i1"}]),
        ),
        (
            json!({"spec": {"containers": [{"name": "c", "args": ["2"], "ports": [{"containerPort": 81, "name": null}]}]}}),
            "/spec/containers/0",
            json!({"name": "c", "image": "i1", "args": ["2"], "ports": [{"containerPort": 81}, {"containerPort": 80}]}),
        ),
        (json!({"spec": {"tolerations": [{"key": "new"}]}}), "/spec/tolerations", json!([{"key": "new"}])),
        (
            json!({"status": {"conditions": [{"type": "Initialized", "status": "True"}]}}),
            "/status/conditions",
            json!([{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}]),
        ),
        (json!({"metadata": {"finalizers": ["b", "c"]}}), "/metadata/finalizers", json!(["a", "b", "c"])),
        (json!({"metadata": {"labels": null}}), "/metadata/labels", Value::Null),
        (
            json!({"metadata": {"annotations": {"a": "b", "c": null}}}),
            "/metadata/annotations",
            json!({"a": "b"}),
        ),
    ];
    for (body, pointer, expected) in cases {
        check_strategic(&body, pointer, &expected);
    }
}

#[test]
fn strategic_directives() {
    let cases = [
        (
            json!({"spec": {"containers": [{"name": "c", "$patch": "delete"}]}}),
            "/spec/containers",
            json!([{"name": "d", "image": "i1"}]),
        ),
        (
            json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "e"}]}}),
            "/spec/containers",
            json!([{"name": "e"}]),
        ),
        (json!({"metadata": {"$patch": "replace", "name": "x"}}), "/metadata", json!({"name": "x"})),
        (json!({"metadata": {"$patch": "delete"}}), "/metadata", json!({})),
        (
            json!({"metadata": {"labels": {"$patch": "merge", "y": "2"}}}),
            "/metadata/labels",
            json!({"x": "1", "y": "2"}),
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
            "/metadata/finalizers",
            json!(["b"]),
        ),
        (
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}),
            "/spec/volumes",
            json!([{"name": "v", "hostPath": {"path": "/"}}]),
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]}}),
            "/spec/containers/0/name",
            json!("d"),
        ),
        (
            json!({"spec": {
                "$setElementOrder/containers": [{"name": "e"}, {"name": "c"}],
                "containers": [{"name": "e", "image": "i"}, {"name": "d", "$patch": "delete"}],
            }}),
            "/spec/containers",
            json!([
                {"name": "e", "image": "i"},
                {"name": "c", "image": "i1", "args": ["1"], "ports": [{"containerPort": 80}]},
            ]),
        ),
        (
            json!({"metadata": {
                "$setElementOrder/finalizers": ["c", "b"], "$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"],
            }}),
            "/metadata/finalizers",
            json!(["c", "b"]),
        ),
    ];
    for (body, pointer, expected) in cases {
        check_strategic(&body, pointer, &expected);
    }
}

#[test]
fn strategic_directives_that_make_no_sense() {
    let cases = [
        (json!({"metadata": {"$patch": "zap"}}), "unknown patch type: zap in map: map[]"),
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name"], "hostPath": {}}]}}),
            "invalid patch format of retainKeys",
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": 1}}),
            "invalid patch format of primitive list",
        ),
    ];
    for (body, message) in cases {
        let error = run(PatchType::Strategic, &pod(), &body.to_string()).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (400, message), "{body}");
    }
}

proptest! {
    #[test]
    fn no_patch_panics(current in any_json(), patch in any_json()) {
        let objects = json!({"metadata": current, "spec": current, "status": current});
        let patches = json!({"metadata": patch, "spec": patch, "status": patch});
        for patch_type in [PatchType::Json, PatchType::Merge, PatchType::Strategic] {
            let _ = run(patch_type, &current, &patch.to_string());
            let _ = run(patch_type, &objects, &patches.to_string());
        }
    }

    #[test]
    fn merging_twice_is_merging_once(current in any_json(), patch in any_json()) {
        if let Ok(once) = run(PatchType::Merge, &current, &patch.to_string()) {
            prop_assert_eq!(run(PatchType::Merge, &once, &patch.to_string()), Ok(once));
        }
    }

    #[test]
    fn an_empty_patch_changes_nothing(fields in prop::collection::btree_map("[a-z]{1,4}", any_json(), 0..4)) {
        let current = Value::Object(fields.into_iter().collect());
        for patch_type in [PatchType::Merge, PatchType::Strategic] {
            prop_assert_eq!(run(patch_type, &current, "{}"), Ok(current.clone()));
        }
        prop_assert_eq!(run(PatchType::Json, &current, "[]"), Ok(current));
    }

    #[test]
    fn strategic_containers_keep_their_names_unique(names in prop::collection::vec("[a-f]", 0..6)) {
        let patch: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "new"})).collect();
        let patched = run(PatchType::Strategic, &pod(), &json!({"spec": {"containers": patch}}).to_string()).unwrap();
        let mut after: Vec<&str> =
            patched["spec"]["containers"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        let count = after.len();
        after.sort_unstable();
        after.dedup();
        prop_assert_eq!(after.len(), count);
        prop_assert!(names.iter().all(|name| after.contains(&name.as_str())));
    }
}
