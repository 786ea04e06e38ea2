//! Durability as a client sees it: what was acknowledged is there after a SIGKILL, versions go on, watches resume.

use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, binding, node, pod_for_nobody};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A kind of write, and what was acknowledged.
type Write<'a> = (&'a str, &'a dyn Fn(&Client) -> Value);

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": name}})
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Each kind of write, killed right after its answer.
#[test]
fn every_acknowledged_write_outlives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut plane = Plane::plain(dir.path(), &["--store", "redb"]);
    node(&plane.admin, "n");
    plane.admin.post(PODS, &pod_for_nobody("p")).is(201);
    let writes: [Write<'_>; 6] = [
        ("create", &|admin| admin.post(MAPS, &map("m")).is(201)),
        ("patch", &|admin| admin.merge(&format!("{MAPS}/m"), &json!({"data": {"k": "patched"}})).is(200)),
        ("update", &|admin| admin.put(&format!("{MAPS}/m"), &map("m")).is(200)),
        ("status", &|admin| {
            admin.merge(&format!("{PODS}/p/status"), &json!({"status": {"phase": "Running"}})).is(200)
        }),
        ("binding", &|admin| {
            admin.post(PODS, &pod_for_nobody("q")).is(201);
            admin.post(&format!("{PODS}/q/binding"), &binding("q", "n")).is(201);
            admin.get(&format!("{PODS}/q")).is(200)
        }),
        ("label", &|admin| {
            admin.merge("/api/v1/nodes/n", &json!({"metadata": {"labels": {"a": "b"}}})).is(200)
        }),
    ];
    let mut newest = 0;
    for (what, write) in writes {
        let written = write(&plane.admin);
        assert!(version(&written) > newest, "{what}: {written}");
        newest = version(&written);
        plane = plane.kill_and_start();
        let path = match written["kind"].as_str().unwrap() {
            "ConfigMap" => format!("{MAPS}/m"),
            "Node" => "/api/v1/nodes/n".to_owned(),
            _ => format!("{PODS}/{}", written["metadata"]["name"].as_str().unwrap()),
        };
        assert_eq!(plane.admin.get(&path).is(200), written, "{what}");
    }
    plane.admin.delete(&format!("{MAPS}/m")).is(200);
    plane = plane.kill_and_start();
    plane.admin.get(&format!("{MAPS}/m")).refused(404, "NotFound", &[]);
    let made = plane.admin.post(MAPS, &map("m")).is(201);
    assert!(version(&made) > newest + 1, "the deletion's version was used again: {made}");
}

/// Killed in the middle of many writers' work: all that was acknowledged is there, no version is used twice, and a watch
/// from before goes on or is told that it is too late.
#[test]
fn a_kill_under_load_loses_nothing_and_uses_no_version_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut plane = Plane::plain(dir.path(), &["--store", "redb"]);
    let mut acknowledged: Vec<Value> = Vec::new();
    for round in 0..5 {
        let start = plane.admin.get(MAPS).is(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let (told, answers) = std::sync::mpsc::channel();
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (admin, told) = (plane.admin.clone(), told.clone());
                std::thread::spawn(move || {
                    for n in 0.. {
                        let body = map(&format!("m-{round}-{writer}-{n}")).to_string();
                        let sent = admin.try_send("POST", MAPS, "application/json", body);
                        match sent {
                            Ok(answer) => told.send(answer.is(201)).unwrap(),
                            Err(_) => return,
                        }
                    }
                })
            })
            .collect();
        drop(told);
        let mut fresh: Vec<Value> = answers.iter().take(60).collect();
        plane = plane.kill_and_start();
        fresh.extend(answers);
        writers.into_iter().for_each(|writer| writer.join().unwrap());

        let list = plane.admin.get(MAPS).is(200);
        let listed: std::collections::BTreeMap<&str, &Value> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["metadata"]["name"].as_str().unwrap(), item))
            .collect();
        acknowledged.extend(fresh.iter().cloned());
        for written in &acknowledged {
            let name = written["metadata"]["name"].as_str().unwrap();
            let kept = listed.get(name).unwrap_or_else(|| panic!("{name} was acknowledged and is gone"));
            assert_eq!(kept["metadata"], written["metadata"]);
            assert_eq!(kept["data"], written["data"]);
        }
        let versions: std::collections::BTreeSet<u64> = listed.values().map(|item| version(item)).collect();
        assert_eq!(versions.len(), listed.len(), "a version was used twice");
        let newest = versions.last().copied().unwrap();
        assert!(version(&plane.admin.post(MAPS, &map(&format!("after-{round}"))).is(201)) > newest);

        let path = format!("{MAPS}?resourceVersion={start}");
        let answer = plane.admin.get(&format!("{path}&watch=true&timeoutSeconds=1"));
        let text = answer.text();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        if answer.code == 410 || events.first().is_some_and(|event| event["object"]["code"] == 410) {
            continue;
        }
        let seen: std::collections::BTreeSet<&str> =
            events.iter().filter_map(|event| event["object"]["metadata"]["name"].as_str()).collect();
        for written in &fresh {
            let name = written["metadata"]["name"].as_str().unwrap();
            assert!(seen.contains(name), "the resumed watch left {name} out");
        }
    }
    assert!(acknowledged.len() >= 300);
}

/// No room for another write: a clear 5xx, reads go on, and what was acknowledged is there when there is room again.
#[test]
fn a_full_disk_is_told_and_reads_go_on() {
    let dir = tempfile::tempdir().unwrap();
    // A file size limit stands for the disk: writes beyond it fail.
    let plane = Plane::limited(dir.path(), &["--store", "redb"], 8 * 1024);
    let value = "x".repeat(100_000);
    let mut acknowledged = Vec::new();
    let refused = (0..500).find_map(|n| {
        let mut body = map(&format!("m{n}"));
        body["data"]["k"] = json!(value);
        let answer = plane.admin.post(MAPS, &body);
        if answer.code != 201 {
            return Some(answer);
        }
        acknowledged.push(answer.is(201));
        None
    });
    let refused = refused.expect("50 MB fit where 8 MiB do");
    assert!((500..600).contains(&refused.code), "{} {}", refused.code, refused.text());
    let status = refused.is(refused.code);
    assert_eq!(status["kind"], "Status", "{}", refused.text());
    assert!(status["message"].as_str().is_some_and(|message| message.len() > 10), "{status}");
    assert!(!acknowledged.is_empty());
    for n in 0..3 {
        // A small one may still fit.
        let answer = plane.admin.post(MAPS, &map(&format!("more-{n}")));
        match answer.code {
            201 => acknowledged.push(answer.is(201)),
            code => assert!((500..600).contains(&code), "{code} {}", answer.text()),
        }
        assert_eq!(plane.admin.get(MAPS).is(200)["items"].as_array().unwrap().len(), acknowledged.len());
    }
    assert_eq!(plane.admin.get("/livez").code, 200);
    drop(plane);
    let plane = Plane::plain(dir.path(), &["--store", "redb"]);
    for written in &acknowledged {
        let name = written["metadata"]["name"].as_str().unwrap();
        assert_eq!(&plane.admin.get(&format!("{MAPS}/{name}")).is(200), written);
    }
    plane.admin.post(MAPS, &map("room-again")).is(201);
}
