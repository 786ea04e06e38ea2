//! Performs acts on a world. What came of them is in the history, where the judge finds it; only what the rig could
//! not do is told here.

use super::fill::{Fill, Values};
use super::played::PlayedNodes;
use super::requests::{self, Place};
use jiff::Timestamp;
use rigor_model::act::{Apply, Mark, PlayedNode, Tool, ToolRun};
use rigor_model::template::MissingName;
use rigor_model::{Action, Constants, Step};
use rigor_rigs::{ApiAnswer, ApiRequest, Infra, World};
use rigor_trace::{Fact, Micros};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A trial's world with what the harness plays in it.
pub(super) struct Stage<'a> {
    pub(super) world: &'a mut dyn World,
    played: PlayedNodes,
    constants: Constants,
    namespace: String,
    /// Wall time of the trial's microsecond 0.
    zero: Timestamp,
    /// Header fields of every answer that are to be recorded, for expectations.
    pub(super) heed: BTreeSet<String>,
    /// How often in a row a wait brought neither time nor facts.
    standing: u32,
}

/// A rig that lets neither time pass nor anything happen this often in a row will not do so any more.
const MOST_STANDSTILL: u32 = 1000;

/// When a node that the step plays writes its status, by the node's name as the scenario has it.
pub(super) type Moments = BTreeMap<String, Micros>;

fn missing(error: &MissingName) -> Infra {
    Infra::lasting(format!("`${{{}}}` has no value yet", error.0), "capture it in an earlier step")
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        world: &'a mut dyn World,
        constants: Constants,
        namespace: &str,
        zero: Timestamp,
    ) -> Self {
        Self {
            world,
            played: PlayedNodes::default(),
            constants,
            namespace: namespace.to_owned(),
            zero,
            heed: BTreeSet::new(),
            standing: 0,
        }
    }

    fn wall(&self) -> Timestamp {
        self.zero.checked_add(self.world.now().as_duration()).unwrap_or(Timestamp::MAX)
    }

    /// Lets time pass until `until`, or until something new is known; played nodes go on meanwhile.
    pub(super) fn wait(&mut self, until: Micros) -> Result<(), Infra> {
        let until = self.played.next_due().map_or(until, |due| due.min(until));
        let before = (self.world.now(), self.world.history().len());
        self.world.wait(until);
        self.play();
        let moved = before != (self.world.now(), self.world.history().len());
        self.standing = if moved { 0 } else { self.standing + 1 };
        if self.standing > MOST_STANDSTILL {
            return Err(Infra::transient(format!("the rig stands still at {}", self.world.now())));
        }
        Ok(())
    }

    /// Renews and reports what is due.
    pub(super) fn play(&mut self) {
        let due = self.played.due(self.world.now(), self.wall());
        for request in due {
            self.world.request(request);
        }
    }

    /// Makes a request of the scenario's.
    fn send(&mut self, mut request: ApiRequest) -> ApiAnswer {
        request.heed.extend(self.heed.iter().cloned());
        self.world.request(request)
    }

    /// Performs one act; an expectation does nothing. `moments` are the instants at which played nodes report.
    pub(super) fn perform(
        &mut self,
        action: &Action,
        values: &Values,
        moments: &Moments,
    ) -> Result<(), Infra> {
        match action {
            Action::Apply(act) => self.apply(&act.filled(values).map_err(|error| missing(&error))?),
            Action::Power(act) => self.world.power(&act.board, act.act),
            Action::Link(act) => self.world.link(&act.board, act.change.resolve(&self.constants)),
            Action::ControlPlane(act) => self.world.control_plane(*act),
            Action::Scheduler(act) => self.world.scheduler(&act.name, act.act),
            Action::Flash(act) => self.world.flash(&act.board, act.image.as_deref(), act.erase),
            Action::Send(act) => {
                let act = act.filled(values).map_err(|error| missing(&error))?;
                self.world.send(&act.board, &act.line)
            }
            Action::Node(act) => {
                let moment = moments.get(&act.name).copied();
                self.play_node(&act.filled(values).map_err(|error| missing(&error))?, moment);
                Ok(())
            }
            Action::Mark(act) => self.mark(&act.filled(values).map_err(|error| missing(&error))?),
            Action::Kubectl(act) => {
                self.run(Tool::Kubectl, &act.filled(values).map_err(|error| missing(&error))?)
            }
            Action::Etcdctl(act) => {
                self.run(Tool::Etcdctl, &act.filled(values).map_err(|error| missing(&error))?)
            }
            Action::Parallel(steps) => self.parallel(steps, values, moments),
            Action::Create(_)
            | Action::Replace(_)
            | Action::Patch(_)
            | Action::Delete(_)
            | Action::Scale(_)
            | Action::Cordon(_)
            | Action::Uncordon(_)
            | Action::Bind(_)
            | Action::Request(_) => {
                if let Some(request) = self.single(action, values)? {
                    self.send(request);
                }
                Ok(())
            }
            Action::Wait(_)
            | Action::Advance(_)
            | Action::Expect(_)
            | Action::Never(_)
            | Action::Always(_)
            | Action::Unchanged(_)
            | Action::Order(_)
            | Action::Capture(_) => Ok(()),
        }
    }

    /// The request that an act is, where it is exactly one.
    fn single(&self, action: &Action, values: &Values) -> Result<Option<ApiRequest>, Infra> {
        let namespace = self.namespace.as_str();
        let unknown =
            || Infra::lasting("the object's kind is not known", "use `request` for kinds of your own");
        let filled = match action {
            Action::Create(act) => {
                act.filled(values).map(|act| requests::create(&act, namespace).ok_or_else(unknown))
            }
            Action::Replace(act) => {
                act.filled(values).map(|act| requests::replace(&act, namespace).ok_or_else(unknown))
            }
            Action::Patch(act) => act.filled(values).map(|act| Ok(requests::patch(&act, namespace))),
            Action::Delete(act) => act.filled(values).map(|act| Ok(requests::delete(&act, namespace))),
            Action::Scale(act) => act.filled(values).map(|act| Ok(requests::scale(&act, namespace))),
            Action::Cordon(act) | Action::Uncordon(act) => {
                act.filled(values).map(|act| Ok(requests::cordon(&act)))
            }
            Action::Bind(act) => act.filled(values).map(|act| Ok(requests::bind(&act, namespace))),
            Action::Request(act) => act.filled(values).map(|act| Ok(requests::request(&act))),
            Action::Apply(_)
            | Action::Power(_)
            | Action::Link(_)
            | Action::ControlPlane(_)
            | Action::Scheduler(_)
            | Action::Flash(_)
            | Action::Send(_)
            | Action::Node(_)
            | Action::Mark(_)
            | Action::Kubectl(_)
            | Action::Etcdctl(_)
            | Action::Wait(_)
            | Action::Advance(_)
            | Action::Parallel(_)
            | Action::Expect(_)
            | Action::Never(_)
            | Action::Always(_)
            | Action::Unchanged(_)
            | Action::Order(_)
            | Action::Capture(_) => return Ok(None),
        };
        filled.map_err(|error| missing(&error))?.map(Some)
    }

    fn apply(&mut self, act: &Apply) -> Result<(), Infra> {
        for object in &act.objects {
            let Some(place) = Place::of(object, &act.api, &self.namespace) else {
                return Err(Infra::lasting(
                    "the object's kind is not known",
                    "use `request` for kinds of your own",
                ));
            };
            let there = place.name.is_some() && self.send(requests::look(&place, &act.api)).status == 200;
            let request = if there {
                requests::lay_over(&place, object, &act.api)
            } else {
                requests::add(&place, object, &act.api)
            };
            self.send(request);
        }
        Ok(())
    }

    fn play_node(&mut self, act: &PlayedNode, moment: Option<Micros>) {
        let (now, wall) = (self.world.now(), self.wall());
        for request in self.played.act(act, moment, &self.constants, now, wall) {
            self.send(request);
        }
    }

    /// Does what a mark says, where it is about heartbeats, and notes it.
    fn mark(&mut self, act: &Mark) -> Result<(), Infra> {
        if let (Some(beats), Some(node)) = (act.heartbeats(), &act.node) {
            let (now, wall) = (self.world.now(), self.wall());
            let requests = self.played.heartbeats(node, beats, now, wall).ok_or_else(|| {
                Infra::lasting(
                    format!("{}: no node `{node}` is played", act.name),
                    "play it with `node` first; a board is stopped by `power`",
                )
            })?;
            for request in requests {
                self.send(request);
            }
        }
        self.world.record(Fact::Mark { name: act.name.clone(), subject: act.node.clone() });
        Ok(())
    }

    fn run(&mut self, tool: Tool, act: &ToolRun) -> Result<(), Infra> {
        let stdin = act.stdin.as_ref().map(|stdin| match stdin {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        self.world.run(tool, &act.args, stdin.as_deref()).map(drop)
    }

    /// Single requests begin together; other acts follow in the order they are written.
    fn parallel(&mut self, steps: &[Step], values: &Values, moments: &Moments) -> Result<(), Infra> {
        let mut together = Vec::new();
        let mut others = Vec::new();
        for step in steps {
            match self.single(&step.action, values)? {
                Some(request) => together.push((step, request)),
                None => others.push(step),
            }
        }
        let (named, requests): (Vec<_>, Vec<_>) = together.into_iter().unzip();
        let mut requests = requests;
        for request in &mut requests {
            request.heed.extend(self.heed.iter().cloned());
        }
        self.world.requests(requests);
        for step in named {
            self.name(step);
        }
        for step in others {
            self.perform(&step.action, values, moments)?;
            self.name(step);
        }
        Ok(())
    }

    /// Notes that a step's instant has its name.
    pub(super) fn name(&mut self, step: &Step) {
        if let Some(name) = &step.name {
            self.world.record(Fact::Instant { name: name.clone() });
        }
    }
}
