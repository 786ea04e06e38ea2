//! What recordings took for granted: pods, nodes and namespaces that small calls made in between.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use control_plane::store::{Expect, Key, Store};
use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::exchange::{self, Exchange};
use crate::rig::{Answer, Asked, HISTORY, Rig};

/// The set-up of a folder, or of a part of it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct SetUp {
    #[serde(default)]
    pub control_plane: Setting,
    /// Before the first request.
    #[serde(default)]
    pub start: Vec<Step>,
    /// Before the request of this name.
    #[serde(default)]
    before: BTreeMap<String, Vec<Step>>,
    /// While the watch of this name is open.
    #[serde(default)]
    during: BTreeMap<String, Vec<Step>>,
    #[serde(skip)]
    used: RefCell<BTreeSet<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// As the flag `--controllers`.
    pub controllers: String,
    /// When the first request comes.
    #[serde(default = "recorded")]
    pub time: String,
}

fn recorded() -> String {
    "2026-11-29T12:00:45Z".into()
}

impl Default for Setting {
    fn default() -> Self {
        Self { controllers: "*".into(), time: recorded() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Step {
    /// A request that must succeed.
    Send {
        method: String,
        url: String,
        #[serde(default)]
        body: Value,
    },
    /// A pod of one container that no scheduler looks at; `node` binds it.
    Pod {
        namespace: String,
        name: String,
        #[serde(default)]
        labels: Value,
        #[serde(default)]
        spec: Value,
        #[serde(default)]
        finalizers: Vec<String>,
        node: Option<String>,
    },
    /// An object straight into the store, as earlier controllers left it.
    Store {
        resource: String,
        object: Value,
        /// So many of them, where `#` in the name is the number.
        #[serde(default = "one")]
        times: usize,
    },
    /// The recorded version that stands for the newest one here.
    Mark(String),
    /// The recorded uid and version of an object whose answers were kept back.
    Learn { url: String, uid: Option<String>, version: Option<String> },
    /// So many seconds pass.
    Pass(u64),
    /// History is forgotten up to now.
    Compact,
}

fn one() -> usize {
    1
}

/// The set-up of a folder; an absent file is an empty one.
pub fn load(folder: &str, part: &str) -> SetUp {
    let dash = if part.is_empty() { "" } else { "-" };
    let name = format!("{folder}{dash}{part}.set-up.yaml");
    if !exchange::file(&name).exists() {
        return SetUp::default();
    }
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&exchange::read(&name), options)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

impl SetUp {
    fn steps<'s>(&self, of: &'s BTreeMap<String, Vec<Step>>, name: &str) -> &'s [Step] {
        self.used.borrow_mut().insert(name.to_owned());
        of.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn before(&self, name: &str) -> &[Step] {
        self.steps(&self.before, name)
    }

    pub fn during(&self, name: &str) -> &[Step] {
        self.steps(&self.during, name)
    }

    /// Every name in the set-up is one of an exchange.
    pub fn assert_used(&self, exchanges: &[Exchange]) {
        let known: BTreeSet<&str> = exchanges.iter().map(|exchange| exchange.name.as_str()).collect();
        for name in self.before.keys().chain(self.during.keys()) {
            assert!(known.contains(name.as_str()), "there is no exchange {name}");
        }
    }
}

fn send(rig: &mut Rig, method: &str, url: &str, body: &Value) -> Answer {
    let media = if method == "PATCH" { "application/strategic-merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers = vec![("content-type".to_owned(), media.to_owned())];
    let asked =
        Asked { who: "admin".into(), method: method.into(), url: url.into(), headers, body, watch: false };
    let answer = rig.ask(&asked, &[]);
    assert!((200..300).contains(&answer.status), "{method} {url}: {} {}", answer.status, answer.text);
    answer
}

impl Step {
    pub fn run(&self, rig: &mut Rig) {
        match self {
            Self::Send { method, url, body } => drop(send(rig, method, url, body)),
            Self::Pod { namespace, name, labels, spec, finalizers, node } => {
                let mut pod = json!({
                    "metadata": {"name": name},
                    "spec": {"containers": [{"name": "c", "image": "busybox"}], "schedulerName": "nobody-at-all"},
                });
                if !labels.is_null() {
                    pod["metadata"]["labels"] = labels.clone();
                }
                if !finalizers.is_empty() {
                    pod["metadata"]["finalizers"] = json!(finalizers);
                }
                for (field, value) in spec.as_object().into_iter().flatten() {
                    pod["spec"][field] = value.clone();
                }
                let url = format!("/api/v1/namespaces/{namespace}/pods");
                send(rig, "POST", &url, &pod);
                if let Some(node) = node {
                    let binding =
                        json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
                    send(rig, "POST", &format!("{url}/{name}/binding"), &binding);
                }
            }
            Self::Store { resource, object, times } => {
                for number in 1..=*times {
                    let text = object.to_string().replace('#', &number.to_string());
                    let object: Value = serde_json::from_str(&text).unwrap();
                    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
                    let key = Key::new(resource, &field("namespace"), &field("name"));
                    let stored = rig.store.put(key, object, Expect::Absent).now_or_never();
                    stored
                        .expect("the store must not wait")
                        .unwrap_or_else(|error| panic!("{text}: {error}"));
                }
                rig.pass(Duration::ZERO);
            }
            Self::Mark(version) => {
                let ours = rig.store.revision().to_string();
                rig.translation.version(version, &ours);
            }
            Self::Learn { url, uid, version } => {
                let object = send(rig, "GET", url, &Value::Null).json();
                let field = |name: &str| object["metadata"][name].as_str().unwrap().to_owned();
                if let Some(uid) = uid {
                    rig.translation.uid(uid, &field("uid"));
                }
                if let Some(version) = version {
                    rig.translation.version(version, &field("resourceVersion"));
                }
            }
            Self::Pass(seconds) => rig.pass(Duration::from_secs(*seconds)),
            Self::Compact => {
                let url = "/api/v1/namespaces/default/configmaps";
                send(rig, "POST", url, &json!({"metadata": {"name": "compact"}}));
                for number in 0..HISTORY {
                    let data = json!({"data": {"n": number.to_string()}});
                    send(rig, "PATCH", &format!("{url}/compact"), &data);
                }
                send(rig, "DELETE", &format!("{url}/compact"), &Value::Null);
            }
        }
    }
}
