//! How much virtual time passes in a second of real time: three boards under the true constants, one pod each,
//! for 400 s. Prints one line a run; the bar is 1,000 times real time in a release build. The digest is that of the
//! history: the same for a seed in every build of the same source.

use std::time::Instant;

use rigor_model::{Constants, Faults};
use rigor_rigs::{ApiRequest, BoardSpec, World};
use rigor_trace::history::Micros;
use serde_json::json;

const RUNS: u64 = 5;
const LENGTH: Micros = Micros(400_000_000);

fn trial(seed: u64) -> Box<dyn World> {
    let boards = ["a", "b", "c"].map(BoardSpec::named);
    let mut world = rigor_sim::open(&Constants::default(), &boards, seed, &Faults::None).expect("a trial");
    while world.now() < Micros(1_000_000) {
        world.wait(Micros(1_000_000));
    }
    for name in ["x", "y", "z"] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "rigor.dev/pause"}]},
        });
        let answer = world.request(ApiRequest::new("POST", "/api/v1/namespaces/default/pods", Some(&pod)));
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
    while world.now() < LENGTH {
        world.wait(LENGTH);
    }
    world
}

/// FNV-1a over the history as it is written to disk.
fn digest(world: &dyn World) -> u64 {
    let lines = world.history().records().iter().map(|record| serde_json::to_vec(record).expect("json"));
    lines
        .flatten()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[expect(clippy::disallowed_methods, reason = "measures real time; nothing of a trial sees it")]
fn main() {
    for seed in 1..=RUNS {
        let begun = Instant::now();
        let world = trial(seed);
        let real = begun.elapsed().as_secs_f64();
        let virtual_seconds = LENGTH.as_duration().as_secs_f64();
        println!(
            "seed {seed}: {virtual_seconds} s in {:.1} ms, {:.0} times real time, {} facts, digest {:016x}",
            real * 1e3,
            virtual_seconds / real,
            world.history().len(),
            digest(world.as_ref())
        );
    }
}
