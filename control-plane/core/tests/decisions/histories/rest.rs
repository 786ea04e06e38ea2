//! What holds when inputs have stopped and every board is well: everything has come to rest where it should be.

use control_plane_core::scheduler::{self, Assumed};
use control_plane_core::{Key, conditions};
use serde_json::Value;

use super::acts::{BOARDS, Kind, PLAYED};
use super::plant::Plant;
use super::printed;
use super::rules::Violation;
use super::views::{is_active, is_of, is_terminating, node_of};
use crate::world::World;

/// Half seconds in which nothing is written, so that nothing will be: longer than any delay, a silent lease's included.
const STILL: usize = 20;
/// Half seconds after which that must be so.
const SETTLING: usize = 160;

/// Lets the time pass, and looks at what has become of everything.
pub fn comes_to_rest(plant: &mut Plant) -> Result<(), Violation> {
    let (mut still, mut ticks) = (0, 0);
    while still < STILL {
        let before = plant.rules.written();
        plant.tick()?;
        still = if plant.rules.written() == before { still + 1 } else { 0 };
        ticks += 1;
        if ticks == SETTLING {
            break;
        }
    }
    let world = &plant.world;
    nodes(world)?;
    pods(plant)?;
    workloads(world)?;
    let (_, resource, key, object) =
        world.history.iter().rfind(|(_, it, ..)| *it != "leases").expect("a write");
    if still < STILL {
        let sentence = format!("nothing happens, and {resource} {} is written: {object:?}", key.name);
        return Err(Violation::new("DEPL-06", sentence, printed::at_rest(resource, &key.name)));
    }
    Ok(())
}

fn nodes(world: &World) -> Result<(), Violation> {
    for (key, node) in world.snapshot.list("nodes") {
        let taints = node["spec"]["taints"].as_array().map_or(0, Vec::len);
        if !conditions::is_true(node, "Ready") || taints > 0 {
            let sentence = format!("node {} renews its lease and is not well: {node}", key.name);
            return Err(Violation::new("NODE-09", sentence, printed::well(&key.name)));
        }
    }
    Ok(())
}

fn pods(plant: &Plant) -> Result<(), Violation> {
    let world = &plant.world;
    for name in plant.rules.wanted() {
        let Some(pod) = world.get("pods", "default", &name) else {
            let sentence = format!("pod {name} is lost: nobody deleted it");
            return Err(Violation::new("NODE-23", sentence, printed::exists(&name)));
        };
        if BOARDS.contains(&node_of(&pod)) && pod["status"]["phase"] != "Running" {
            let sentence = format!("pod {name} is bound to a board that is well and does not run");
            return Err(Violation::new("NODE-09", sentence, printed::runs(&name)));
        }
    }
    for (key, pod) in world.snapshot.list("pods") {
        let there = world.snapshot.get("nodes", "", node_of(pod)).is_some();
        if is_terminating(pod) && !(there && PLAYED.contains(&node_of(pod))) {
            let sentence = format!("pod {} is still going: {pod}", key.name);
            return Err(Violation::new("NODE-19", sentence, printed::gone(pod)));
        }
        if is_active(pod) && node_of(pod).is_empty() {
            let profile = world.scheduler.profile_for(pod).expect("a profile");
            let fits = |node: &Key| {
                scheduler::fits_on(profile, pod, &world.snapshot, &Assumed::default(), &node.name)
            };
            if let Some((node, _)) = world.snapshot.list("nodes").find(|(node, _)| fits(node)) {
                let sentence = format!("pod {} waits though it fits on {}", key.name, node.name);
                return Err(Violation::new("SCHED-02", sentence, printed::bound(pod)));
            }
        }
    }
    Ok(())
}

fn of_workload(world: &World, kind: Kind) -> Vec<&Value> {
    let pods = world.snapshot.list("pods").map(|(_, pod)| pod.as_ref());
    pods.filter(|pod| is_of(pod, kind)).collect()
}

fn workloads(world: &World) -> Result<(), Violation> {
    let stored = |kind: Kind| world.get(kind.resource(), "default", kind.name());
    for (kind, requirement) in
        [(Kind::Deployment, "DEPL-03"), (Kind::DaemonSet, "DS-08"), (Kind::Job, "JOB-05")]
    {
        let left = of_workload(world, kind);
        if stored(kind).is_none() && !left.is_empty() {
            let sentence = format!("{} pods outlive their {}", left.len(), kind.word());
            return Err(Violation::new(requirement, sentence, printed::so_many(kind, 0)));
        }
    }
    if let Some(deployment) = stored(Kind::Deployment) {
        let replicas = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
        all_run(world, Kind::Deployment, replicas, "DEPL-01", "DEPL-04")?;
        says(
            &deployment,
            Kind::Deployment,
            &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"],
            replicas,
            "DEPL-06",
        )?;
    }
    if let Some(daemon_set) = stored(Kind::DaemonSet) {
        let boards = BOARDS.len() as u64;
        all_run(world, Kind::DaemonSet, boards, "DS-01", "DS-04")?;
        let figures = [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "numberAvailable",
            "updatedNumberScheduled",
        ];
        says(&daemon_set, Kind::DaemonSet, &figures, boards, "DS-07")?;
    }
    stored(Kind::Job).map_or(Ok(()), |job| has_ended(world, &job))
}

/// So many pods, all of the template that is asked for, all running.
fn all_run(
    world: &World,
    kind: Kind,
    count: u64,
    many: &'static str,
    new: &'static str,
) -> Result<(), Violation> {
    let pods = of_workload(world, kind);
    if pods.len() as u64 != count {
        let sentence = format!("{} has {} pods of {count}", kind.word(), pods.len());
        return Err(Violation::new(many, sentence, printed::so_many(kind, count as usize)));
    }
    let owner = world.get(kind.resource(), "default", kind.name()).unwrap_or_default();
    let note = |of: &Value| of["metadata"]["annotations"]["note"].clone();
    let wanted = note(&owner["spec"]["template"]);
    let runs = |pod: &&Value| pod["status"]["phase"] == "Running" && conditions::is_true(pod, "Ready");
    if let Some(pod) = pods.iter().find(|pod| !runs(pod) || note(pod) != wanted) {
        let sentence = format!("a pod of {} is old or does not run: {pod}", kind.word());
        return Err(Violation::new(new, sentence, printed::all_ready(kind, count as usize)));
    }
    Ok(())
}

fn says(
    object: &Value,
    kind: Kind,
    figures: &[&str],
    count: u64,
    requirement: &'static str,
) -> Result<(), Violation> {
    let wrong = figures.iter().find(|figure| object["status"][**figure].as_u64().unwrap_or(0) != count);
    if let Some(figure) = wrong {
        let sentence = format!("{} says {figure} of {} where {count} are", kind.word(), object["status"]);
        return Err(Violation::new(requirement, sentence, printed::says(kind, figure, count)));
    }
    Ok(())
}

fn has_ended(world: &World, job: &Value) -> Result<(), Violation> {
    // Pods that someone deleted count as failed, and the second one is too many (JOB-02).
    let failed = job["status"]["failed"].as_u64().unwrap_or(0);
    let well = job["metadata"]["annotations"]["ends"] == "well" && failed <= 1;
    let ended = if well { "Complete" } else { "Failed" };
    let requirement = if well { "JOB-01" } else { "JOB-02" };
    if !conditions::is_true(job, ended) {
        let sentence = format!("the job is not {ended}: {}", job["status"]);
        return Err(Violation::new(requirement, sentence, printed::job(ended)));
    }
    let active = of_workload(world, Kind::Job).into_iter().filter(|pod| is_active(pod)).count();
    let tracked = of_workload(world, Kind::Job)
        .into_iter()
        .filter(|pod| pod["metadata"]["finalizers"].is_array())
        .count();
    if active > 0 || tracked > 0 {
        let sentence = format!("the job has ended, {active} pods are active and {tracked} not counted");
        return Err(Violation::new(requirement, sentence, printed::at_most(Kind::Job, 0)));
    }
    let completions = job["spec"]["completions"].as_u64().unwrap_or(1);
    if well && job["status"]["succeeded"].as_u64() != Some(completions) {
        let sentence = format!("{} of {completions} succeeded", job["status"]["succeeded"]);
        return Err(Violation::new("JOB-07", sentence, printed::succeeded(completions)));
    }
    Ok(())
}
