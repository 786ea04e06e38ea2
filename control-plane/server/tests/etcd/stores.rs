//! The store alone: two of them on one etcd.

use std::sync::Arc;
use std::time::Duration;

use control_plane::leadership::{Candidate, Leadership, Timing};
use control_plane::store::{Compaction, EtcdStore, Expect, Key, Scope, Store, StoreError, TlsFiles};
use control_plane::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::contract::{self, pod};
use crate::etcd::Etcd;

const HISTORY: usize = 1000;

async fn open(etcd: &Etcd) -> Arc<EtcdStore> {
    let opened = EtcdStore::open(&[etcd.url()], "/registry", &TlsFiles::default(), HISTORY).await;
    Arc::new(opened.unwrap())
}

fn object(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}})
}

async fn on_etcd<F, G>(check: F)
where
    F: Fn(Arc<dyn Store>) -> G,
    G: Future<Output = ()>,
{
    let Some(etcd) = Etcd::start() else { return };
    let opened = EtcdStore::open(&[etcd.url()], "/registry", &TlsFiles::default(), contract::HISTORY).await;
    check(Arc::new(opened.unwrap())).await;
}

contract::each_check!(on_etcd);

const PODS: Scope<'static> = Scope { resource: "pods", namespace: None };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_was_acknowledged_the_next_read_of_another_shows() {
    let Some(etcd) = Etcd::start() else { return };
    let stores = [open(&etcd).await, open(&etcd).await];
    for n in 0..200 {
        let (writer, reader) = (&stores[n % 2], &stores[(n + 1) % 2]);
        let name = n.to_string();
        let made = writer.put(pod(&name), object(&name), Expect::Absent).await.unwrap();
        assert_eq!(reader.get(&pod(&name)).await.unwrap(), Some(made.clone()));
        assert_eq!(reader.list(PODS, None).await.unwrap().entries.len(), 1, "{n}");
        assert!(reader.revision() >= made.revision);
        let gone = writer.delete(pod(&name), made.revision).await.unwrap();
        assert_eq!(reader.catch_up().await.unwrap(), gone.revision);
        assert!(reader.local(&pod(&name)).is_none());
    }
    let changes = stores.each_ref().map(|store| {
        let changes = store.changes(1).unwrap();
        changes.iter().map(|change| (change.revision, change.key.clone())).collect::<Vec<_>>()
    });
    assert_eq!((changes[0].len(), &changes[0]), (400, &changes[1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_others_under_no_name_of_ours_only_make_gaps() {
    let Some(etcd) = Etcd::start() else { return };
    let store = open(&etcd).await;
    let first = store.put(pod("a"), object("a"), Expect::Absent).await.unwrap();
    etcd.etcdctl(&["put", "/elsewhere", "x"]);
    etcd.etcdctl(&["put", "/registry/masterleases/10.0.0.1", "x"]);
    assert_eq!(store.catch_up().await.unwrap(), first.revision + 2);
    let second = store.put(pod("b"), object("b"), Expect::Absent).await.unwrap();
    assert_eq!(second.revision, first.revision + 3);
    let after: Vec<u64> =
        store.changes(first.revision).unwrap().iter().map(|change| change.revision).collect();
    assert_eq!(after, [second.revision]);
    let earlier = store.list(PODS, Some(first.revision + 1)).await.unwrap();
    assert_eq!(earlier.entries.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_store_knows_what_happened_before_as_far_as_etcd_does() {
    let Some(etcd) = Etcd::start() else { return };
    let store = open(&etcd).await;
    let mut revisions = Vec::new();
    for name in ["a", "b", "c"] {
        revisions.push(store.put(pod(name), object(name), Expect::Absent).await.unwrap().revision);
    }
    let changes = open(&etcd).await.changes(revisions[0]).unwrap();
    assert_eq!(changes.iter().map(|change| change.revision).collect::<Vec<_>>(), revisions[1..]);

    etcd.etcdctl(&["compact", &revisions[1].to_string()]);
    let later = open(&etcd).await;
    let newest = later.revision();
    assert_eq!(
        later.changes(revisions[0]).map(drop),
        Err(StoreError::Compacted { asked: revisions[0], oldest: newest })
    );
    let listed = later.list(PODS, Some(revisions[1])).await.unwrap();
    assert_eq!(listed.entries.len(), 2, "etcd itself still knows this one");
    let compacted = later.list(PODS, Some(revisions[0])).await.map(drop);
    assert_eq!(compacted, Err(StoreError::Compacted { asked: revisions[0], oldest: newest }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_values_in_the_place_of_objects_are_refused_by_key() {
    let Some(etcd) = Etcd::start() else { return };
    etcd.etcdctl(&["put", "/registry/pods/default/protobuf", "k8s"]);
    let opened = EtcdStore::open(&[etcd.url()], "/registry", &TlsFiles::default(), HISTORY).await;
    let message = opened.unwrap_err().to_string();
    assert!(
        message.contains("/registry/pods/default/protobuf") && message.contains("--etcd-prefix"),
        "{message}"
    );
    let beside = EtcdStore::open(&[etcd.url()], "/other", &TlsFiles::default(), HISTORY).await;
    assert!(beside.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_etcd_is_down_writes_fail_clearly_and_afterwards_all_goes_on() {
    let Some(mut etcd) = Etcd::start() else { return };
    let store = open(&etcd).await;
    let made = store.put(pod("a"), object("a"), Expect::Absent).await.unwrap();
    etcd.kill();
    let refused = store.put(pod("b"), object("b"), Expect::Absent).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_) | StoreError::Uncertain(_)), "{refused:?}");
    let unread = store.get(&pod("a")).await.unwrap_err();
    let words = unread.to_string();
    assert!(words.contains("the store failed: ") && words.contains("etcd"), "{words}");
    assert!(store.local(&pod("a")).is_some());
    etcd.restart();
    let kept = store.get(&pod("a")).await;
    assert_eq!(kept, Ok(Some(made.clone())));
    let unsure = store.get(&pod("b")).await.unwrap().is_some();
    assert!(!unsure || matches!(refused, StoreError::Uncertain(_)), "{refused:?}");
    let next = store.put(pod("c"), object("c"), Expect::Absent).await.unwrap();
    let changes = store.changes(made.revision).unwrap();
    assert_eq!(changes.last().map(|change| change.revision), Some(next.revision));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_an_address_in_turn_makes_others_look_again() {
    let Some(etcd) = Etcd::start() else { return };
    let (a, b) = (open(&etcd).await, open(&etcd).await);
    let service = |name: &str| Key::new("services", "default", name);
    let turn = (a.turn("addresses"), b.turn("addresses"));
    a.put_in_turn(service("a"), json!({}), Expect::Absent, turn.0).await.unwrap();
    let late = b.put_in_turn(service("b"), json!({}), Expect::Absent, turn.1).await;
    assert_eq!(late, Err(StoreError::Conflict { found: None }));
    assert!(b.local(&service("a")).is_some(), "it knows why when it is told");
    let again = b.put_in_turn(service("b"), json!({}), Expect::Absent, b.turn("addresses")).await;
    assert!(again.is_ok());
}

fn candidate(store: &Arc<EtcdStore>, clock: &Arc<SystemClock>, me: &str) -> Candidate {
    Candidate::new(Arc::clone(store), Arc::clone(clock), Timing::default(), me.into(), format!("uid-{me}"))
}

/// One that stood still (SIGSTOP) for longer than its lease finds out only when it goes on; whatever it had decided before
/// must not be written then. Its own clock is not even asked here: it says that it leads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_slept_through_its_end_can_write_no_decision() {
    let Some(etcd) = Etcd::start() else { return };
    let (store, clock) = (open(&etcd).await, Arc::new(SystemClock::start()));
    let mut old = candidate(&store, &clock, "old");
    old.turn().await;
    let leadership: Arc<Leadership> = Arc::clone(old.leadership());
    let decisions = store.fenced(Arc::clone(&leadership));
    let made = decisions.put(pod("a"), object("a"), Expect::Absent).await.unwrap();

    let other = open(&etcd).await;
    let key = Key::new("leases", "kube-system", "control-plane");
    let lease = other.get(&key).await.unwrap().unwrap();
    let mut taken = (*lease.object).clone();
    taken["spec"]["holderIdentity"] = json!("new");
    other.begin_term(key, taken, Expect::Revision(lease.revision)).await.unwrap();

    assert!(leadership.term().is_some(), "by its own clock it leads still");
    let late = decisions.put(pod("b"), object("b"), Expect::Absent).await;
    assert_eq!(late, Err(StoreError::Deposed));
    assert_eq!(leadership.term(), None);
    assert_eq!(decisions.delete(pod("a"), made.revision).await, Err(StoreError::Deposed));
    assert_eq!(store.get(&pod("b")).await, Ok(None));
    assert_eq!(store.get(&pod("a")).await, Ok(Some(made)));
    // What clients ask for is written by whoever they ask.
    store.put(pod("b"), object("b"), Expect::Absent).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_candidates_one_leads_and_the_other_follows_at_once_when_it_is_let() {
    let Some(etcd) = Etcd::start() else { return };
    let clock = Arc::new(SystemClock::start());
    let (a, b) = (open(&etcd).await, open(&etcd).await);
    let (mut first, mut second) = (candidate(&a, &clock, "a"), candidate(&b, &clock, "b"));
    first.turn().await;
    b.catch_up().await.unwrap();
    let asked = clock.mono();
    let again = second.turn().await;
    let told = clock.mono();
    assert!(first.leadership().term().is_some() && second.leadership().term().is_none());
    let lease = Duration::from_secs(15);
    assert!((asked + lease..=told + lease).contains(&again), "{again:?}, asked at {asked:?}");
    let term = first.leadership().term();
    let renewal = first.turn().await;
    assert!(renewal <= clock.mono() + Timing::default().retry_period);
    assert_eq!(first.leadership().term(), term, "a renewal begins no new term");
    first.release().await;
    b.catch_up().await.unwrap();
    second.turn().await;
    assert!(first.leadership().term().is_none() && second.leadership().term() > term);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_period_one_of_all_forgets_what_was_before_the_last() {
    let Some(etcd) = Etcd::start() else { return };
    let (a, b) = (open(&etcd).await, open(&etcd).await);
    let made = a.put(pod("a"), object("a"), Expect::Absent).await.unwrap();
    let first =
        (a.compact(Compaction::default()).await.unwrap(), b.compact(Compaction::default()).await.unwrap());
    let kept = a.put(pod("b"), object("b"), Expect::Absent).await.unwrap();
    let at = |revision: u64| format!("--rev={revision}");
    etcd.etcdctl(&["get", "/registry/pods/default/a", &at(made.revision)]);
    let second = (a.compact(first.0).await.unwrap(), b.compact(first.1).await.unwrap());
    let refused = etcd.refused(&["get", "/registry/pods/default/a", &at(made.revision)]);
    assert!(refused.contains("compacted"), "{refused}");
    etcd.etcdctl(&["get", "/registry/pods/default/b", &at(kept.revision)]);
    // One of both won each time.
    assert_eq!(etcd.etcdctl(&["get", "compact_rev_key", "-w", "json"]).matches("\"version\":2").count(), 1);
    b.compact(second.1).await.unwrap();
    assert_eq!(etcd.etcdctl(&["get", "compact_rev_key", "-w", "json"]).matches("\"version\":3").count(), 1);
}
