//! The crash loop: several clients write, one follows, and the process is killed; again and again over one data directory.
//!
//! After every start: each write that was answered is there, none that was refused is, a version always meant one content, and
//! the watch goes on from its last version or is told 410. `RIGOR_CRASH_ROUNDS` sets the number of kills, `RIGOR_CRASH_SEED`
//! what the clients do.

#[path = "../support/mod.rs"]
mod support;

mod client;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use serde_json::{Value, json};

use client::Client;
use support::{Process, command};

const ROUNDS: usize = 20;
const WRITERS: usize = 4;
/// Objects of each writer; no other writes them.
const OBJECTS: usize = 6;
const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// What one writer knows of one of its objects.
#[derive(Clone, Debug, Default)]
struct Known {
    /// As it was answered last; nothing when it is not there.
    answered: Option<Value>,
    /// What a write that was never answered would have made of it: `data.n`, or nothing for a deletion.
    pending: Option<Option<String>>,
}

/// An answered write: the version, and the object at it (nothing for a deletion, whose version its answer does not tell).
type Told = Option<(u64, Value)>;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn n(object: &Value) -> Option<String> {
    object["data"]["n"].as_str().map(Into::into)
}

fn body(name: &str, n: &str, filling: usize, version: Option<u64>) -> String {
    let mut metadata = json!({"name": name});
    if let Some(version) = version {
        metadata["resourceVersion"] = json!(version.to_string());
    }
    json!({"metadata": metadata, "data": {"n": n, "filling": "x".repeat(filling)}}).to_string()
}

/// Writes until the process is gone.
fn write(url: &str, known: &mut BTreeMap<String, Known>, mut random: fastrand::Rng, told: &Sender<Told>) {
    let Ok(mut client) = Client::connect(url) else { return };
    let names: Vec<String> = known.keys().cloned().collect();
    loop {
        let name = &names[random.usize(..names.len())];
        let own = known.get_mut(name).unwrap();
        let (path, number) = (format!("{PATH}/{name}"), random.u32(..).to_string());
        let filling = [0, 100, 3_000, 20_000][random.usize(..4)];
        let current = own.answered.as_ref().map(version);
        let fresh = body(name, &number, filling, None);
        let patch = json!({"data": {"n": number}}).to_string();
        let (method, path, body, makes, refusal) = match (current, random.u8(..8)) {
            (None, 0) => ("DELETE", path.as_str(), String::new(), None, Some(404)),
            (None, 1) => ("PATCH", path.as_str(), patch, None, Some(404)),
            (None, _) => ("POST", PATH, fresh, Some(number), None),
            (Some(_), 0) => ("POST", PATH, fresh, None, Some(409)),
            (Some(now), 1) => ("PUT", path.as_str(), body(name, &number, 0, Some(now - 1)), None, Some(409)),
            (Some(_), 2) => ("DELETE", path.as_str(), String::new(), None, None),
            (Some(_), 3 | 4) => ("PATCH", path.as_str(), patch, Some(number), None),
            (Some(now), _) => {
                ("PUT", path.as_str(), body(name, &number, filling, Some(now)), Some(number), None)
            }
        };
        if refusal.is_none() {
            own.pending = Some(makes.clone());
        }
        let Ok((status, answer)) = client.ask(method, path, &body) else { return };
        if let Some(refusal) = refusal {
            assert_eq!(status, refusal, "{method} {path}: {answer}");
            continue;
        }
        assert!(status == 200 || status == 201, "{method} {path}: {status} {answer}");
        own.pending = None;
        own.answered = makes.is_some().then(|| answer.clone());
        let written = makes.map(|makes| {
            assert_eq!(n(&answer), Some(makes), "{method} {path}");
            (version(&answer), answer)
        });
        if told.send(written).is_err() {
            return;
        }
    }
}

/// What is known of all objects, and of all versions ever seen.
struct World {
    known: Vec<BTreeMap<String, Known>>,
    versions: BTreeMap<u64, Value>,
    /// From where the watch goes on.
    followed: u64,
    resumed: usize,
    gone: usize,
}

impl World {
    /// A version means one content, wherever and whenever it is seen.
    fn saw(&mut self, object: &Value, round: usize) {
        let mut object = object.clone();
        // Lists leave out what watches and answers say.
        if let Some(fields) = object.as_object_mut() {
            fields.remove("kind");
            fields.remove("apiVersion");
        }
        let before = self.versions.entry(version(&object)).or_insert_with(|| object.clone());
        assert_eq!(*before, object, "round {round}: one version with two contents");
    }

    /// Compares what is there after a start with what was answered before.
    fn check(&mut self, client: &mut Client, round: usize) {
        let (status, list) = client.ask("GET", PATH, "").unwrap();
        assert_eq!(status, 200, "{list}");
        let newest = self.versions.last_key_value().map_or(0, |(version, _)| *version);
        assert!(version(&list) >= newest, "round {round}: it went back to {} from {newest}", version(&list));
        if self.followed == 0 {
            self.followed = version(&list);
        }
        let items = list["items"].as_array().unwrap();
        let mut found: BTreeMap<&str, &Value> =
            items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap(), item)).collect();
        items.iter().for_each(|item| self.saw(item, round));
        for (name, own) in self.known.iter_mut().flatten() {
            let found = found.remove(name.as_str());
            let is_answered = match (&own.answered, found) {
                (Some(answered), Some(found)) => version(answered) == version(found),
                (None, None) => true,
                (None, Some(_)) | (Some(_), None) => false,
            };
            let is_pending = own.pending.as_ref().is_some_and(|pending| *pending == found.and_then(n));
            assert!(is_answered || is_pending, "round {round}: {name} is {found:?}, but known was {own:?}");
            *own = Known { answered: found.cloned(), pending: None };
        }
        // The cluster's own are none of the writers'.
        found.retain(|name, _| name.starts_with('w'));
        assert_eq!(found, BTreeMap::new(), "round {round}: nobody wrote these");
    }

    /// Takes in what the follower saw, which must be all that was answered up to where it came.
    fn follow(&mut self, followed: Followed, answered: &BTreeSet<u64>, round: usize) {
        let mut seen = BTreeSet::new();
        for event in &followed.events {
            let object = &event["object"];
            assert!(version(object) > self.followed.max(followed.from), "round {round}: {event} comes late");
            seen.insert(version(object));
            self.followed = version(object);
            self.saw(object, round);
        }
        let missed = answered.iter().find(|version| {
            **version > followed.from && **version <= self.followed && !seen.contains(*version)
        });
        assert_eq!(missed, None, "round {round}: the watch missed a version");
        self.followed = self.followed.max(followed.from);
        *if followed.gone { &mut self.gone } else { &mut self.resumed } += 1;
    }
}

/// What a watch told until the process was gone.
#[derive(Default)]
struct Followed {
    /// The version after which it told everything.
    from: u64,
    /// Whether it had to list first.
    gone: bool,
    events: Vec<Value>,
}

/// Watches from a version on until the process is gone.
fn follow(url: &str, from: u64) -> Followed {
    let mut followed = Followed { from, ..Followed::default() };
    let Ok(mut watch) = Client::connect(url) else { return followed };
    let start =
        |client: &mut Client, from: u64| client.watch(&format!("{PATH}?watch=1&resourceVersion={from}"));
    if start(&mut watch, from).is_err() {
        return followed;
    }
    while let Ok(events) = watch.events() {
        if events.first().is_some_and(|event| event["type"] == "ERROR") {
            assert_eq!(events[0]["object"]["code"], 410, "{events:?}");
            assert!(!followed.gone && followed.events.is_empty(), "gone again");
            let Ok((_, list)) = Client::connect(url).and_then(|mut client| client.ask("GET", PATH, ""))
            else {
                return followed;
            };
            (followed.from, followed.gone) = (version(&list), true);
            let Ok(mut again) = Client::connect(url) else { return followed };
            if start(&mut again, followed.from).is_err() {
                return followed;
            }
            watch = again;
            continue;
        }
        followed.events.extend(events);
    }
    followed
}

fn start(data_dir: &Path) -> Process {
    let mut start = command(data_dir);
    start.arg("--no-auth");
    Process::start(start)
}

#[test]
fn killed_again_and_again_it_keeps_what_it_answered() {
    let rounds = setting("RIGOR_CRASH_ROUNDS", ROUNDS);
    let mut random = fastrand::Rng::with_seed(setting("RIGOR_CRASH_SEED", 1) as u64);
    let dir = tempfile::tempdir().unwrap();
    let known = |writer: usize| (0..OBJECTS).map(move |n| (format!("w{writer}-{n}"), Known::default()));
    let known = (0..WRITERS).map(|writer| known(writer).collect()).collect();
    let mut world = World { known, versions: BTreeMap::new(), followed: 0, resumed: 0, gone: 0 };
    let (mut total, mut pending) = (0, 0);
    for round in 0..rounds {
        let mut process = start(dir.path());
        let mut client = Client::connect(&process.url).unwrap();
        world.check(&mut client, round);
        drop(client);
        let (told, answers) = channel();
        let (url, from) = (process.url.clone(), world.followed);
        // A watch that was away for a round is told that its version is gone.
        let follower = (random.u8(..4) > 0).then(|| thread::spawn(move || follow(&url, from)));
        let writers: Vec<_> = std::mem::take(&mut world.known)
            .into_iter()
            .map(|mut known| {
                let (url, told, random) = (process.url.clone(), told.clone(), random.fork());
                thread::spawn(move || {
                    write(&url, &mut known, random, &told);
                    known
                })
            })
            .collect();
        drop(told);
        // The kill comes right after some answer, and in the middle of whatever the others wait for.
        let mut answered: Vec<Told> = answers.iter().take(random.usize(1..150)).collect();
        process.child.kill().unwrap();
        answered.extend(answers.iter());
        world.known = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        pending += world.known.iter().flatten().filter(|(_, own)| own.pending.is_some()).count();
        total += answered.len();
        let mut versions = BTreeSet::new();
        for (version, object) in answered.into_iter().flatten() {
            assert!(versions.insert(version), "round {round}: version {version} was given twice");
            world.saw(&object, round);
        }
        if let Some(follower) = follower {
            world.follow(follower.join().unwrap(), &versions, round);
        }
        drop(process);
    }
    let process = start(dir.path());
    world.check(&mut Client::connect(&process.url).unwrap(), rounds);
    println!(
        "{rounds} kills: {total} writes answered, {pending} cut off; the watch went on {} times and was gone {} times",
        world.resumed, world.gone
    );
    // Otherwise nothing was ever killed in the middle of a write.
    assert!(pending > rounds / 2 && total > rounds && world.resumed > 0 && world.gone > 0);
}
