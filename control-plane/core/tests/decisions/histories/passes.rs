//! What holds right after a controller has looked at a workload, or at owners.

use std::sync::Arc;

use serde_json::Value;

use super::acts::{BOARDS, Kind, MIN_READY};
use super::printed;
use super::rules::{Rules, Violation};
use super::views::{host, is_active, is_of, is_terminating, node_of, owner, text, uid};
use crate::world::World;

/// How a workload's pods stand.
#[derive(Debug)]
pub struct Standing {
    active: usize,
    /// Those that are available where they are wanted.
    available: usize,
    /// uids of those of a deployment that are, whatever the server knows.
    certain: Vec<String>,
    /// uids of those whose node is unreachable.
    lost: Vec<String>,
}

impl Rules {
    /// How a workload stands.
    pub fn standing(&self, kind: Kind, world: &World) -> Standing {
        let now = world.now.wall.as_millisecond();
        let active = || self.pods.values().filter(|pod| is_of(pod, kind) && is_active(pod));
        let labelled = |pod: &Value| self.nodes.get(node_of(pod)).filter(|known| known.labelled);
        // What a server that started anew knows of an instant may be a second late.
        let ready_for =
            |pod: &Arc<Value>, span: i64| self.ready.get(uid(pod)).is_some_and(|(at, _)| now >= at + span);
        let available = active().filter(|pod| match kind {
            Kind::Deployment => ready_for(pod, MIN_READY),
            Kind::DaemonSet | Kind::Job => labelled(pod).is_some() && ready_for(pod, 0),
        });
        let certain = active().filter(|pod| ready_for(pod, MIN_READY + 1_000)).map(|pod| uid(pod).to_owned());
        let is_lost = |pod: &&Arc<Value>| labelled(pod).is_some_and(|known| known.unknown.is_some());
        let lost = active().filter(is_lost).map(|pod| uid(pod).to_owned());
        Standing {
            active: active().count(),
            available: available.count(),
            certain: certain.collect(),
            lost: lost.collect(),
        }
    }

    /// A pass over a workload has ended.
    pub fn passed(&self, kind: Kind, before: &Standing, world: &World) -> Result<(), Violation> {
        let Some(object) = world.get(kind.resource(), "default", kind.name()) else { return Ok(()) };
        let mine = |pod: &&Arc<Value>| owner(pod) == uid(&object) && is_active(pod);
        let active = self.pods.values().filter(mine).count();
        match kind {
            Kind::Deployment => {
                let replicas = object["spec"]["replicas"].as_u64().map_or(1, |n| n as usize);
                if active != replicas {
                    let sentence = format!("a pass left {active} pods of {replicas}");
                    return Err(Violation::new("DEPL-01", sentence, printed::so_many(kind, replicas)));
                }
                let after = self.standing(kind, world).available;
                let is_active_still =
                    |it: &String| self.pods.values().any(|pod| uid(pod) == it && is_active(pod));
                let taken = before.certain.iter().filter(|it| !is_active_still(it)).count();
                // 25 % of at most four is one, and so is the least that may be away
                if before.active <= replicas && taken > 0 && after + 1 < replicas {
                    let sentence =
                        format!("a pass took {taken} available pods away and left {after} of {replicas}");
                    return Err(Violation::new("DEPL-04", sentence, printed::all_ready(kind, replicas - 1)));
                }
            }
            Kind::DaemonSet => {
                let labelled = |host: &str| self.nodes.get(host).is_some_and(|known| known.labelled);
                let of_it = || self.pods.values().filter(|pod| owner(pod) == uid(&object));
                if let Some(stray) = of_it().find(|pod| is_active(pod) && !labelled(host(pod))) {
                    let sentence = format!("a pass left a pod for {}, which is not asked for", host(stray));
                    return Err(Violation::new("DS-02", sentence, printed::never_on(stray, host(stray))));
                }
                let lacks = |name: &&String| labelled(name) && !of_it().any(|pod| host(pod) == *name);
                if let Some(name) = self.nodes.keys().find(lacks) {
                    let sentence = format!("a pass left {name} without a pod");
                    return Err(Violation::new("DS-01", sentence, printed::so_many(kind, BOARDS.len())));
                }
                let stands = |lost: &String| self.pods.values().any(|pod| uid(pod) == lost && is_active(pod));
                if let Some(lost) = before.lost.iter().find(|lost| !stands(lost)) {
                    let sentence = format!("a pass took the pod {lost} away, whose node is unreachable");
                    return Err(Violation::new("DS-03", sentence, printed::so_many(kind, BOARDS.len())));
                }
                let after = self.standing(kind, world).available;
                if before.available > after + 1 {
                    let sentence =
                        format!("a pass took {} ready pods away at once", before.available - after);
                    return Err(Violation::new(
                        "DS-04",
                        sentence,
                        printed::all_ready(kind, BOARDS.len() - 1),
                    ));
                }
            }
            Kind::Job => {
                let most = object["spec"]["parallelism"].as_u64().map_or(1, |n| n as usize);
                if active > most {
                    let sentence = format!("{active} pods are active, {most} may be");
                    return Err(Violation::new("JOB-01", sentence, printed::at_most(kind, most)));
                }
            }
        }
        Ok(())
    }

    /// The garbage collector has looked: it takes nobody's pods whose owner is there.
    pub fn collected(&mut self, world: &World) -> Result<(), Violation> {
        let before: Vec<Arc<Value>> =
            self.pods.values().filter(|pod| !is_terminating(pod)).cloned().collect();
        self.follow(world)?;
        for old in before {
            let gone = self
                .pods
                .get(text(&old, "/metadata/name"))
                .is_none_or(|pod| uid(pod) != uid(&old) || is_terminating(pod));
            if gone && !owner(&old).is_empty() && world.snapshot.find_uid(owner(&old)).is_some() {
                let sentence = format!("{} was collected though its owner is there", old["metadata"]["name"]);
                return Err(Violation::new("DEPL-03", sentence, printed::unmoved(&old)));
            }
        }
        Ok(())
    }
}
