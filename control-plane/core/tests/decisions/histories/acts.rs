//! What may happen in a history, each thing in the words of a scenario, and how histories are drawn.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;

/// Boards, in the order of a scenario's; played nodes, whose figures are exact.
pub const BOARDS: [&str; 3] = ["a", "b", "c"];
pub const PLAYED: [&str; 2] = ["n1", "n2"];

/// Times of the histories, in milliseconds: short, so that much happens in little time.
pub const LEASE: i64 = 4_000;
pub const NOT_READY: i64 = 2_000;
pub const TOLERATION: i64 = 3_000;
pub const CHECK: i64 = 500;
pub const PERIOD: i64 = 1_000;
/// A deployment's `minReadySeconds`: what is new is missed for more than one pass.
pub const MIN_READY: i64 = 2_000;

/// Where a pod may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Anywhere,
    OnBoards,
    OnPlayed,
}

/// How long a pod stays on an unreachable node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// As admission has it.
    Default,
    Seconds(i64),
    Forever,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Deployment,
    DaemonSet,
    Job,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
        }
    }

    pub fn resource(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::DaemonSet => "daemonsets",
            Self::Job => "jobs",
        }
    }

    /// The workload's name, and the value of its pods' label `app`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deployment => "web",
            Self::DaemonSet => "agent",
            Self::Job => "work",
        }
    }
}

pub const KINDS: [Kind; 3] = [Kind::Deployment, Kind::DaemonSet, Kind::Job];

/// One thing that happens. Boards and nodes are given by their names.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    Power {
        board: &'static str,
        on: bool,
    },
    Link {
        board: &'static str,
        up: bool,
    },
    /// A played node comes, or has other figures from now on: KiB of memory, pins.
    Play {
        node: &'static str,
        memory: u32,
        gpio: u32,
    },
    Renewals {
        node: &'static str,
        on: bool,
    },
    Report {
        node: &'static str,
    },
    Cordon {
        node: &'static str,
        on: bool,
    },
    /// The label that workloads look for.
    Label {
        node: &'static str,
        on: bool,
    },
    DeleteNode {
        node: &'static str,
    },
    Create {
        pod: usize,
        memory: u32,
        gpio: u32,
        place: Place,
        stay: Stay,
    },
    Delete {
        pod: usize,
    },
    /// Makes the deployment, or scales it.
    Deploy {
        replicas: u32,
    },
    /// Makes the daemon set.
    Spread,
    Work {
        completions: u32,
        parallelism: u32,
        ends_well: bool,
    },
    /// Another template.
    Note {
        kind: Kind,
        text: u32,
    },
    Drop {
        kind: Kind,
    },
    /// Someone deletes all pods of a workload.
    Cull {
        kind: Kind,
    },
    Restart {
        down: i64,
    },
    /// The server ends after so many writes of its own, wherever it is then.
    Crash {
        writes: usize,
    },
    Wait {
        millis: i64,
    },
}

/// A history to be, which shows itself as its acts.
#[derive(Clone)]
pub struct Course(pub Vec<Act>);

impl fmt::Debug for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|act| writeln!(f, "{act:?}"))
    }
}

pub fn course(most: usize) -> impl Strategy<Value = Course> {
    prop::collection::vec(act(), 1..most).prop_map(|acts| Course(sensible(acts)))
}

fn act() -> impl Strategy<Value = Act> {
    let board = || select(&BOARDS[..]);
    let played = || select(&PLAYED[..]);
    let node = || select(&["a", "b", "c", "n1", "n2"][..]);
    let kind = || select(&KINDS[..]);
    let place = select(vec![Place::Anywhere, Place::OnBoards, Place::OnPlayed]);
    let stay = prop_oneof![
        3 => Just(Stay::Default),
        1 => select(vec![0_i64, 1, 7]).prop_map(Stay::Seconds),
        1 => Just(Stay::Forever),
    ];
    let rare = prop_oneof![
        node().prop_map(|node| Act::DeleteNode { node }),
        kind().prop_map(|kind| Act::Drop { kind }),
        kind().prop_map(|kind| Act::Cull { kind }),
        (0..6_i64).prop_map(|halves| Act::Restart { down: halves * CHECK }),
        (0..8_usize).prop_map(|writes| Act::Crash { writes }),
    ];
    let of_nodes = prop_oneof![
        4 => (board(), any::<bool>()).prop_map(|(board, on)| Act::Power { board, on }),
        3 => (board(), any::<bool>()).prop_map(|(board, up)| Act::Link { board, up }),
        4 => (played(), select(vec![16_u32, 48, 64, 100]), 0..5_u32)
            .prop_map(|(node, memory, gpio)| Act::Play { node, memory, gpio }),
        3 => (played(), any::<bool>()).prop_map(|(node, on)| Act::Renewals { node, on }),
        1 => played().prop_map(|node| Act::Report { node }),
        2 => (node(), any::<bool>()).prop_map(|(node, on)| Act::Cordon { node, on }),
        1 => (board(), any::<bool>()).prop_map(|(node, on)| Act::Label { node, on }),
    ];
    let of_pods = prop_oneof![
        6 => (select(vec![0_u32, 1, 16, 17, 32, 48]), 0..3_u32, place, stay)
            .prop_map(|(memory, gpio, place, stay)| Act::Create { pod: 0, memory, gpio, place, stay }),
        2 => (0..8_usize).prop_map(|pod| Act::Delete { pod }),
        3 => (0..5_u32).prop_map(|replicas| Act::Deploy { replicas }),
        2 => Just(Act::Spread),
        2 => (1..4_u32, 1..3_u32, prop::bool::weighted(0.8))
            .prop_map(|(completions, parallelism, ends_well)| Act::Work { completions, parallelism, ends_well }),
        2 => (select(vec![Kind::Deployment, Kind::DaemonSet]), 0..3_u32).prop_map(|(kind, text)| Act::Note { kind, text }),
    ];
    let wait = (1..12_i64).prop_map(|halves| Act::Wait { millis: halves * CHECK });
    prop_oneof![3 => of_nodes, 3 => of_pods, 1 => rare, 4 => wait]
}

/// Leaves out what would change nothing or cannot be done, and gives each pod a number of its own, so that what is run and
/// what is printed are the same.
fn sensible(acts: Vec<Act>) -> Vec<Act> {
    let mut off: Vec<&str> = Vec::new();
    let mut cut: Vec<&str> = Vec::new();
    let mut played: Vec<&str> = Vec::new();
    let mut silent: Vec<&str> = Vec::new();
    let mut pods: Vec<usize> = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    let mut made = 0;
    let mut kept = Vec::new();
    for act in acts {
        let there = |node: &str, played: &[&str]| BOARDS.contains(&node) || played.contains(&node);
        let act = match act {
            Act::Power { board, on } if on == off.contains(&board) => {
                toggle(&mut off, board, !on);
                Act::Power { board, on }
            }
            Act::Link { board, up } if up == cut.contains(&board) => {
                toggle(&mut cut, board, !up);
                Act::Link { board, up }
            }
            Act::Play { node, memory, gpio } => {
                toggle(&mut played, node, true);
                toggle(&mut silent, node, false);
                Act::Play { node, memory, gpio }
            }
            Act::Renewals { node, on } if played.contains(&node) && on == silent.contains(&node) => {
                toggle(&mut silent, node, !on);
                Act::Renewals { node, on }
            }
            Act::Report { node } if played.contains(&node) => Act::Report { node },
            // A board that is there registers anew before anything else could be said of it.
            Act::DeleteNode { node } if played.contains(&node) => {
                toggle(&mut played, node, false);
                Act::DeleteNode { node }
            }
            Act::DeleteNode { node }
                if BOARDS.contains(&node) && !off.contains(&node) && !cut.contains(&node) =>
            {
                Act::DeleteNode { node }
            }
            Act::Cordon { node, on } if there(node, &played) => Act::Cordon { node, on },
            Act::Create { memory, gpio, place, stay, .. } => {
                let pod = made;
                made += 1;
                pods.push(pod);
                Act::Create { pod, memory, gpio, place, stay }
            }
            Act::Delete { pod } if !pods.is_empty() => Act::Delete { pod: pods.remove(pod % pods.len()) },
            Act::Deploy { replicas } => {
                toggle(&mut kinds, Kind::Deployment, true);
                Act::Deploy { replicas }
            }
            Act::Spread if !kinds.contains(&Kind::DaemonSet) => {
                toggle(&mut kinds, Kind::DaemonSet, true);
                Act::Spread
            }
            Act::Work { completions, parallelism, ends_well } if !kinds.contains(&Kind::Job) => {
                toggle(&mut kinds, Kind::Job, true);
                Act::Work { completions, parallelism, ends_well }
            }
            Act::Note { kind, text } if kinds.contains(&kind) => Act::Note { kind, text },
            Act::Drop { kind } if kinds.contains(&kind) => {
                toggle(&mut kinds, kind, false);
                Act::Drop { kind }
            }
            Act::Cull { kind } if kinds.contains(&kind) => Act::Cull { kind },
            Act::Label { node, on } => Act::Label { node, on },
            Act::Restart { down } => Act::Restart { down },
            Act::Crash { writes } => Act::Crash { writes },
            Act::Wait { millis } => Act::Wait { millis },
            Act::Power { .. }
            | Act::Link { .. }
            | Act::Renewals { .. }
            | Act::Report { .. }
            | Act::DeleteNode { .. }
            | Act::Cordon { .. }
            | Act::Delete { .. }
            | Act::Spread
            | Act::Work { .. }
            | Act::Note { .. }
            | Act::Drop { .. }
            | Act::Cull { .. } => continue,
        };
        kept.push(act);
    }
    kept
}

fn toggle<T: PartialEq>(list: &mut Vec<T>, item: T, present: bool) {
    list.retain(|other| *other != item);
    if present {
        list.push(item);
    }
}
