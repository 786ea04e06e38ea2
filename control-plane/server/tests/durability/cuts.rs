//! Cut points: a history of writes is recorded with all that it asked of the disk, and the power goes at any of its moments.

use std::collections::BTreeMap;

use control_plane::store::{Effect, Expect, Key, RedbStore, Scope, Store};

use super::disk::{Disk, Image, Op, cut};
use super::{object, open, pod};

const POINTS: usize = 150;
/// So many cuts are tried of each history.
const POINTS_A_HISTORY: usize = 50;
/// Batches of writes in a history.
const BATCHES: usize = 40;

type Objects = BTreeMap<Key, String>;

/// What was asked of the disk, which writes were answered by when, and what each revision holds.
struct History {
    log: Vec<Op>,
    /// After so many operations, this revision was answered.
    answered: Vec<(usize, u64)>,
    states: BTreeMap<u64, Objects>,
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
}

fn text_of(entry: &control_plane::store::Entry) -> String {
    String::from_utf8(entry.text().to_vec()).unwrap()
}

async fn objects(store: &RedbStore) -> Objects {
    let listing = store.list(Scope { resource: "pods", namespace: None }, None).await.unwrap();
    listing.entries.into_iter().map(|(key, entry)| (key, text_of(&entry))).collect()
}

/// Makes and records a history: one to four writes at a time, small and large, that create, change and delete.
async fn record(random: &mut fastrand::Rng) -> History {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let start = store.revision();
    let mut answered = vec![(disk.ops(), start)];
    for _ in 0..BATCHES {
        let mut writes = Vec::new();
        for _ in 0..random.usize(1..5) {
            let name = format!("p{}", random.u8(..12));
            let filling =
                "x".repeat([10, 300, 5_000, 40_000][random.usize(..4)].min(random.usize(1..40_001)));
            match store.get(&pod(&name)).await.unwrap() {
                None => writes.push(store.put(pod(&name), object(&name, &filling), Expect::Absent)),
                Some(entry) if random.u8(..3) == 0 => writes.push(store.delete(pod(&name), entry.revision)),
                Some(entry) => {
                    let expect = Expect::Revision(entry.revision);
                    writes.push(store.put(pod(&name), object(&name, &filling), expect));
                }
            }
        }
        // Some lose a race against one of the same batch, which is as it should be.
        drop(futures_util::future::join_all(writes).await);
        answered.push((disk.ops(), store.revision()));
    }
    let mut states = BTreeMap::from([(start, Objects::new())]);
    let mut state = Objects::new();
    for change in store.changes(start).unwrap() {
        match &change.effect {
            Effect::Put(entry) => state.insert(change.key.clone(), text_of(entry)),
            Effect::Deleted(_) => state.remove(&change.key),
        };
        states.insert(change.revision, state.clone());
    }
    drop(store);
    History { log: disk.log(), answered, states }
}

/// Opens what a cut left and compares it with the history. Answers whether anything beyond what was answered is there.
async fn check(history: &History, image: Image, at: usize, what: &str) -> bool {
    let answered = history.answered.iter().rev().find(|(ops, _)| *ops <= at).map(|(_, revision)| *revision);
    let disk = Disk::of(image);
    // Also where nobody was told yet that there is a store: a start that was cut short starts again.
    let store = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}; {answered:?} was answered"));
    let (found, answered) = (store.revision(), answered.unwrap_or(1));
    assert!(found >= answered, "{what}: it went back to {found} from {answered}");
    assert_eq!(Some(&objects(&store).await), history.states.get(&found), "{what}: revision {found} differs");
    let next = store.put(pod("next"), object("next", ""), Expect::Absent).await.unwrap();
    assert_eq!(next.revision, found + 1, "{what}");
    found > answered
}

#[tokio::test]
async fn after_a_power_cut_at_any_moment_everything_answered_is_there() {
    let points = setting("RIGOR_CUT_POINTS", POINTS);
    let seed = setting("RIGOR_CUT_SEED", 1) as u64;
    let (mut tried, mut further, mut twice) = (0, 0, 0);
    for number in 0.. {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003) + number);
        let history = record(&mut random).await;
        let syncs: Vec<usize> = (0..history.log.len()).filter(|at| history.log[*at].is_sync()).collect();
        for _ in 0..POINTS_A_HISTORY {
            // Right before a sync most is at stake; but any moment will do.
            let anywhere = random.usize(..=history.log.len());
            let at = if random.bool() { syncs[random.usize(..syncs.len())] } else { anywhere };
            let what = format!("seed {seed}, history {number}, operation {at}");
            let image = cut(&Image::default(), &history.log, at, &mut random);
            if random.u8(..4) == 0 {
                // And once more, while what the first cut left is put in order.
                let repairing = Disk::of(image.clone());
                drop(open(&repairing).unwrap_or_else(|error| panic!("{what}: {error}")));
                let log = repairing.log();
                let second = random.usize(..=log.len());
                let image = cut(&image, &log, second, &mut random);
                check(&history, image, at, &format!("{what}, then {second} of the repair")).await;
                twice += 1;
            }
            further += usize::from(check(&history, image, at, &what).await);
            tried += 1;
            if tried == points {
                println!(
                    "{tried} cuts, {twice} of them twice; {further} kept a write that was not answered yet"
                );
                // Otherwise nothing was ever cut in the middle.
                assert!(further > 0 && further < tried);
                return;
            }
        }
    }
}

/// The process is killed: the system still has what was not synced, and a new process reads it. From then on it must stay.
#[tokio::test]
async fn what_a_process_shows_after_a_kill_outlives_a_power_cut_right_then() {
    let seed = setting("RIGOR_CUT_SEED", 1) as u64;
    let points = setting("RIGOR_CUT_POINTS", POINTS).div_ceil(3);
    let mut further = 0;
    for number in 0..points.div_ceil(POINTS_A_HISTORY) as u64 {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(1_000_033) + number);
        let history = record(&mut random).await;
        for _ in 0..POINTS_A_HISTORY.min(points) {
            let at = random.usize(..=history.log.len());
            let what = format!("seed {seed}, history {number}, operation {at}");
            let disk = Disk::after(&history.log[..at]);
            let store = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = store.revision();
            let left = open(&Disk::of(disk.after_power_cut())).unwrap();
            assert_eq!(left.revision(), found, "{what}: it showed more than it kept");
            assert_eq!(Some(&objects(&left).await), history.states.get(&found), "{what}");
            let answered = history.answered.iter().rev().find(|(ops, _)| *ops <= at);
            further += usize::from(answered.is_some_and(|(_, revision)| *revision < found));
        }
    }
    // Otherwise no write was ever shown that only memory held.
    assert!(further > 0);
}
