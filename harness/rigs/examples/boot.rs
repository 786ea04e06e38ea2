//! Boots a rig and tells how long each board took from power-on to Ready, cuts one board's power and tells when its
//! node became Unknown. `boot RIG_FILE BOARDS`.

use rigor_model::Rig;
use rigor_rigs::{Bench, BoardSpec, PowerAct, processes};
use rigor_trace::{Fact, Micros};
use std::collections::BTreeMap;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: boot RIG_FILE BOARDS")?;
    let count: u8 = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let rig = Rig::parse(&file, &std::fs::read_to_string(&file)?)?;
    let bench = Bench::find(&rig)?;
    println!("{:?}", bench.describe(&rig)?);
    let specs: Vec<BoardSpec> = (b'a'..b'a' + count)
        .map(|letter| BoardSpec { name: char::from(letter).to_string(), profile: rig.board.clone() })
        .collect();
    let mut world = processes::open(&bench, &rig.constants, &specs, 0)?;
    println!("{} the control plane serves and all boards have power", world.now());
    let mut powered = BTreeMap::new();
    let mut ready = BTreeMap::new();
    let mut seen = 0;
    let deadline = world.now() + std::time::Duration::from_secs(30);
    while ready.len() < specs.len() && world.now() < deadline {
        world.wait(deadline);
        for record in &world.history().records()[seen..] {
            match &record.fact {
                Fact::Power { board, begun, .. } => {
                    powered.insert(board.clone(), *begun);
                }
                Fact::Console { board, line } => println!("{} {board}: {line}", record.at),
                fact => {
                    if let Some(node) = condition(fact, "True") {
                        ready.entry(node).or_insert(record.at);
                    }
                }
            }
        }
        seen = world.history().len();
    }
    for (board, at) in &ready {
        println!("{board}: Ready {:?} after power-on", at.since(powered[board]));
    }
    if ready.len() < specs.len() {
        world.save_evidence(std::path::Path::new("."))?;
        return Err("not every board became Ready; see control-plane.log".into());
    }
    world.power("a", PowerAct::Cut)?;
    let cut = world.now();
    while world.now() < cut + rig.constants.lease_duration * 2 {
        world.wait(Micros(u64::MAX));
        let found = world.history().records()[seen..]
            .iter()
            .find(|record| condition(&record.fact, "Unknown").is_some());
        if let Some(record) = found {
            println!("a: Unknown {:?} after the cut", record.at.since(cut));
            break;
        }
    }
    world.close();
    Ok(())
}

/// The node whose Ready condition has this status, if the fact shows one.
fn condition(fact: &Fact, status: &str) -> Option<String> {
    let Fact::Object { stream, object, .. } = fact else { return None };
    let ready =
        object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")?;
    let node = object["metadata"]["name"].as_str()?;
    (stream == "nodes" && ready["status"] == status).then(|| node.to_owned())
}
