//! What changed between two versions of an object, leaf by leaf.

use serde_json::Value;

/// Keys by which the elements of Kubernetes' lists are told apart.
const KEYS: [&str; 5] = ["type", "name", "key", "ip", "uid"];
/// What changes with every write, or beats.
const NOISE: [&str; 7] = [
    "metadata.resourceVersion",
    "metadata.managedFields",
    "metadata.generation",
    "spec.renewTime",
    "lastHeartbeatTime",
    "lastTransitionTime",
    "lastProbeTime",
];

/// The changes as `path: old → new`, in the order of the paths. Without `all`, what only says that time passes is left out.
pub(super) fn changes(before: &Value, after: &Value, all: bool) -> Vec<String> {
    let mut list = Vec::new();
    compare("", Some(before), Some(after), &mut list);
    list.into_iter()
        .filter(|(path, _)| all || !NOISE.iter().any(|noise| path == noise || path.ends_with(noise)))
        .map(|(_, change)| change)
        .collect()
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, list: &mut Vec<(String, String)>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (key, value) in new {
                compare(&below(path, key), old.get(key), Some(value), list);
            }
            for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
                compare(&below(path, key), Some(value), None, list);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => lists(path, old, new, list),
        (Some(old), Some(new)) => {
            list.push((path.to_owned(), format!("{path}: {} → {}", short(old), short(new))));
        }
        (None, Some(new)) => list.push((path.to_owned(), format!("+{path}: {}", short(new)))),
        (Some(old), None) => list.push((path.to_owned(), format!("-{path}: {}", short(old)))),
        (None, None) => {}
    }
}

/// Elements with a key of their own are compared by it, others by their place.
fn lists(path: &str, old: &[Value], new: &[Value], list: &mut Vec<(String, String)>) {
    let key = KEYS.into_iter().find(|key| {
        let named = |items: &[Value]| items.iter().all(|item| item[*key].is_string());
        !(old.is_empty() && new.is_empty()) && named(old) && named(new)
    });
    match key {
        Some(key) => {
            let find = |items: &'_ [Value], name: &Value| items.iter().position(|item| item[key] == *name);
            for item in new {
                let path = format!("{path}[{}]", item[key].as_str().unwrap_or_default());
                compare(&path, find(old, &item[key]).map(|at| &old[at]), Some(item), list);
            }
            for item in old.iter().filter(|item| find(new, &item[key]).is_none()) {
                compare(
                    &format!("{path}[{}]", item[key].as_str().unwrap_or_default()),
                    Some(item),
                    None,
                    list,
                );
            }
        }
        None => {
            for index in 0..old.len().max(new.len()) {
                compare(&format!("{path}[{index}]"), old.get(index), new.get(index), list);
            }
        }
    }
}

fn below(path: &str, key: &str) -> String {
    let key = if key.contains(['.', '/']) { format!("[\"{key}\"]") } else { key.to_owned() };
    match path {
        "" => key,
        path if key.starts_with('[') => format!("{path}{key}"),
        path => format!("{path}.{key}"),
    }
}

/// A value on one line, cut where it is long.
fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 120 {
        return text;
    }
    text.chars().take(119).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_changed_is_told() {
        let before = json!({
            "metadata": {"name": "a", "resourceVersion": "7", "labels": {"x.io/y": "1"}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "t1"}], "n": [1, 2]},
        });
        let after = json!({
            "metadata": {"name": "a", "resourceVersion": "8", "labels": {}},
            "spec": {"taints": [{"key": "k"}]},
            "status": {"conditions": [{"type": "Memory"}, {"type": "Ready", "status": "Unknown", "lastHeartbeatTime": "t2"}], "n": [1]},
        });
        assert_eq!(
            changes(&before, &after, false),
            [
                "-metadata.labels[\"x.io/y\"]: \"1\"",
                "+spec: {\"taints\":[{\"key\":\"k\"}]}",
                "+status.conditions[Memory]: {\"type\":\"Memory\"}",
                "status.conditions[Ready].status: \"True\" → \"Unknown\"",
                "-status.n[1]: 2",
            ]
        );
        assert!(changes(&before, &after, true).iter().any(|change| change.contains("lastHeartbeatTime")));
        assert!(changes(&before, &before, true).is_empty());
    }
}
