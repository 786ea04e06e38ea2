//! What rigs offer and scenarios need.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::act::{Api, LinkChange, PowerAct, User};
use crate::expect::{Speaker, Subject};
use crate::verbs::Action;

macro_rules! capabilities {
    ($($variant:ident $word:literal $about:literal;)*) => {
        /// Something that a rig offers and a scenario may need.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Capability {
            $(#[doc = $about] $variant,)*
        }

        impl Capability {
            /// Every capability.
            pub const ALL: [Capability; CAPABILITY_NAMES.len()] = [$(Capability::$variant,)*];

            /// The word for it in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Capability::$variant => $word,)*
                }
            }
        }

        /// The words of [`Capability`], for shapes.
        pub(crate) const CAPABILITY_NAMES: &[&str] = &[$($word,)*];
    };
}

capabilities! {
    Power "power" "Power of boards can be cut and restored.";
    Hang "hang" "Processors of boards can be stopped.";
    Link "link" "Links of boards can be cut and healed.";
    LinkQuality "link-quality" "Links of boards can be delayed and can lose packets.";
    LinkGarbage "link-garbage" "What boards are sent can be made garbage, or larger than they can hold.";
    Console "console" "Consoles of boards can be read.";
    ControlPlane "control-plane" "The control plane can be stopped, killed and started.";
    Kubectl "kubectl" "kubectl can reach the control plane.";
    Etcd "etcd" "The control plane can keep its state in an etcd of the trial's own.";
    ExclusiveCluster "exclusive-cluster" "Nothing else is on the cluster.";
    PlayedNodes "played-nodes" "Nodes can be made that the harness plays.";
    BoardIdentity "board-identity" "Requests can be made under a board's own identity.";
    ControlPlaneFlags "control-plane-flags" "The control plane can be started with flags of the scenario's own.";
    SecondScheduler "second-scheduler" "A second scheduler can be started and stopped.";
    SchedulerLog "scheduler-log" "What a second scheduler prints can be read.";
    Psram "psram" "Boards can be given PSRAM.";
    Flash "flash" "Boards can be given another image.";
    ConsoleInput "console-input" "Boards read lines that are sent to their consoles.";
    ControllerManager "controller-manager" "The controllers are those of Kubernetes itself.";
    VirtualTime "virtual-time" "Time is virtual: any length of it passes in no time.";
}

/// What an action needs of the rig.
pub(crate) fn imply(action: &Action, needs: &mut BTreeSet<Capability>) {
    let subject = |subject: &Subject| match subject {
        Subject::Console { of: Speaker::Board(_), .. } => Some(Capability::Console),
        Subject::Console { of: Speaker::Scheduler(_), .. } => Some(Capability::SchedulerLog),
        Subject::Objects(_) | Subject::Requests(_) | Subject::Log(_) => None,
    };
    let user = |api: &Api| matches!(api.user, User::Board(_)).then_some(Capability::BoardIdentity);
    let need = match action {
        Action::Power(power) => match power.act {
            PowerAct::Hang | PowerAct::Resume => Some(Capability::Hang),
            PowerAct::Cut | PowerAct::Restore | PowerAct::Cycle => Some(Capability::Power),
        },
        Action::Link(link) => match link.change {
            LinkChange::Cut | LinkChange::Heal => Some(Capability::Link),
            LinkChange::Delay(_) | LinkChange::Loss(_) => Some(Capability::LinkQuality),
            LinkChange::Garbage(_) => Some(Capability::LinkGarbage),
        },
        Action::ControlPlane(_) => Some(Capability::ControlPlane),
        Action::Scheduler(_) => Some(Capability::SecondScheduler),
        Action::Flash(_) => Some(Capability::Flash),
        Action::Send(_) => Some(Capability::ConsoleInput),
        Action::Kubectl(_) => Some(Capability::Kubectl),
        Action::Etcdctl(_) => Some(Capability::Etcd),
        Action::Advance(_) => Some(Capability::VirtualTime),
        Action::Parallel(steps) => {
            steps.iter().for_each(|step| imply(&step.action, needs));
            None
        }
        Action::Expect(_) | Action::Never(_) | Action::Always(_) | Action::Capture(_) => {
            action.subject().and_then(subject)
        }
        Action::Node(_) => Some(Capability::PlayedNodes),
        Action::Mark(mark) => mark.heartbeats().map(|_| Capability::PlayedNodes),
        Action::Apply(act) => user(&act.api),
        Action::Create(act) => user(&act.api),
        Action::Replace(act) => user(&act.api),
        Action::Patch(act) => user(&act.api),
        Action::Delete(act) => user(&act.api),
        Action::Scale(act) => user(&act.api),
        Action::Cordon(act) | Action::Uncordon(act) => user(&act.api),
        Action::Bind(act) => user(&act.api),
        Action::Request(act) => user(&act.api),
        Action::Wait(_) | Action::Unchanged(_) | Action::Order(_) => None,
    };
    needs.extend(need);
}
