//! Monitors over consoles: no panic, no reset that nobody asked for, no pod on two boards for longer
//! than allowed, no process that ends by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rigor_model::kinds::LEASE_NAMESPACE;

use super::{Ground, Violation};
use crate::faults::Injected;
use crate::history::{Fact, Fault, FaultKind, LinkAct, Micros, Phase, PowerAct, Record};
use crate::interval::Interval;

/// How long a board that is in contact again may go on running a pod that was moved (NODE-24).
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// The first word of the line by which a board says that it starts.
const BANNER: &str = "rigor kubelet ";

fn at(record: &Record, monitor: &'static str, message: String, infra: bool) -> Violation {
    let number = usize::try_from(record.seq).unwrap_or(usize::MAX);
    Violation { monitor, message, when: Interval::exactly(record.at), record: number, infra }
}

/// No panic, and a start of the board only where its power was switched.
pub(super) fn no_panic_or_reset(ground: &Ground<'_>, seen: &mut Vec<Violation>) {
    // A banner may be read before the act that brought it is recorded, so all acts are known first.
    let mut switched: BTreeMap<&str, Vec<Micros>> = BTreeMap::new();
    for record in ground.view.acts() {
        if let Fact::Power { board, act: PowerAct::Restore | PowerAct::Cycle, begun } = &record.fact {
            switched.entry(board).or_default().push(*begun);
        } else if let Fact::Flash { board, begun, .. } = &record.fact {
            switched.entry(board).or_default().push(*begun);
        }
    }
    // A fault that cut its power is an asked-for reset, too.
    for fault in ground.view.injected() {
        if let Some(board) = fault.unpowered() {
            switched.entry(board).or_default().push(fault.at);
        }
    }
    let mut starts: BTreeMap<&str, usize> = BTreeMap::new();
    for record in ground.history.records() {
        let Fact::Console { board, line } = &record.fact else { continue };
        if let Some(panic) = line.find("PANIC") {
            seen.push(at(record, "no panic", format!("board {board}: {}", &line[panic..]), false));
        }
        let Some(banner) = line.find(BANNER).map(|at| &line[at..]) else { continue };
        let started = starts.entry(board).or_default();
        *started += 1;
        let acts = switched.get(board.as_str()).map_or(&[][..], Vec::as_slice);
        let allowed = 1 + acts.iter().filter(|begun| **begun <= record.at).count();
        let fell = ["watchdog", "panic"].iter().any(|reason| banner.contains(&format!("reset={reason}")));
        if *started > allowed || fell {
            let message = format!("board {board} started anew: {banner}");
            seen.push(at(record, "no reset that nobody asked for", message, false));
        }
    }
}

/// A process that ends by itself is the control plane's failure or a scheduler's, or else the rig's.
pub(super) fn no_process_ends(ground: &Ground<'_>, seen: &mut Vec<Violation>) {
    for record in ground.history.records() {
        if let Fact::Process { who, status, .. } = &record.fact {
            let infra = who != "control-plane" && !who.starts_with("scheduler:");
            seen.push(at(record, "no process ends unasked", format!("{who} ended with {status}"), infra));
        }
    }
}

/// From when until when.
type Stretch = (Micros, Micros);

/// A stretch in which a board ran a container of a pod.
#[derive(Debug, Clone, Copy)]
struct Run<'a> {
    board: &'a str,
    from: Micros,
    until: Micros,
    record: usize,
}

/// No pod runs on two boards for longer than the one that lost it needs to stop it. Only time in which
/// both boards are in contact counts: what cannot hear cannot stop.
pub(super) fn no_pod_twice(ground: &Ground<'_>, seen: &mut Vec<Violation>) {
    let all = runs(ground);
    let boards: BTreeSet<&str> = all.values().flatten().map(|run| run.board).collect();
    let heard: BTreeMap<&str, Vec<Stretch>> =
        boards.into_iter().map(|board| (board, contacts(ground, board))).collect();
    for (pod, runs) in &all {
        for (index, first) in runs.iter().enumerate() {
            for second in runs[index + 1..].iter().filter(|second| second.board != first.board) {
                let both = (first.from.max(second.from), first.until.min(second.until));
                let (ours, theirs) = (&heard[first.board], &heard[second.board]);
                let stretches = ours
                    .iter()
                    .flat_map(|one| theirs.iter().map(|other| common(*one, *other)))
                    .map(|stretch| common(stretch, both));
                let longest = stretches.max_by_key(|(from, until)| until.since(*from));
                let Some((from, until)) = longest else { continue };
                if until.since(from) > STOPS_WITHIN + ground.constants.slack {
                    let message = format!(
                        "pod {pod} ran on {} and on {} from {} to {}, for {:?} of that while both were in contact",
                        first.board,
                        second.board,
                        both.0,
                        both.1,
                        until.since(from)
                    );
                    let when = Interval::new(from, until);
                    let record = second.record;
                    seen.push(Violation {
                        monitor: "no pod runs twice",
                        message,
                        when,
                        record,
                        infra: false,
                    });
                }
            }
        }
    }
}

/// What two stretches of time have in common; none is a stretch without length.
fn common(one: Stretch, other: Stretch) -> Stretch {
    let from = one.0.max(other.0);
    (from, one.1.min(other.1).max(from))
}

/// The stretches in which a board could hear the control plane; after a time away one begins with its
/// first renewal.
fn contacts(ground: &Ground<'_>, board: &str) -> Vec<Stretch> {
    let key = (LEASE_NAMESPACE.to_owned(), ground.history.node_of(board).to_owned());
    let renewed_after = |since: Micros| {
        let renewals = ground.view.versions("leases", &key).iter();
        renewals.filter(|version| !version.gone && version.at >= since).map(|version| version.at).next()
    };
    let (mut power, mut link, mut plane) = (true, true, true);
    // Faults that last, of this board and of its link.
    let mut harms = 0_u32;
    let sites = [format!("board:{board}"), format!("link:{board}")];
    let mut since = Some(Micros::ZERO);
    let mut all = Vec::new();
    for record in ground.history.records() {
        if let Fact::Power { board: of, act, .. } = &record.fact
            && of == board
        {
            // A cycle is an outage of no length: contact is anew afterwards.
            if *act == PowerAct::Cycle
                && let Some(from) = since.take()
            {
                all.push((from, record.at));
            }
            power = !matches!(act, PowerAct::Cut | PowerAct::Hang);
        } else if let Fact::Flash { board: of, .. } = &record.fact
            && of == board
        {
            all.extend(since.take().map(|from| (from, record.at)));
            power = true;
        } else if let Fact::Link { board: of, act, .. } = &record.fact
            && of == board
        {
            // What comes late or not at all does not count as heard.
            link = *act == LinkAct::Heal;
        } else if let Fact::ControlPlane { .. } = &record.fact {
            plane = false;
        } else if let Fact::Fault { fault, phase } = &record.fact {
            let injected = Injected::new(fault.clone(), 0, record.at);
            let here = sites.contains(&fault.site) && injected.is_harsh();
            match phase {
                Phase::Begin if injected.is_kill() => plane = false,
                Phase::Begin if here && injected.lasts => harms += 1,
                Phase::End if here && injected.lasts => harms = harms.saturating_sub(1),
                // A connection that was cut is an outage of no length, like a cycle.
                Phase::Begin if here => all.extend(since.take().map(|from| (from, record.at))),
                Phase::Begin | Phase::End => continue,
            }
        } else if let Fact::ControlPlaneReady {} = &record.fact {
            plane = true;
        } else {
            continue;
        }
        match since {
            Some(from) if !(power && link && plane && harms == 0) => {
                all.push((from, record.at));
                since = None;
            }
            None if power && link && plane && harms == 0 => since = renewed_after(record.at),
            Some(_) | None => {}
        }
    }
    all.extend(since.map(|from| (from, ground.history.last_at())));
    all
}

/// When which board ran which pod, from what consoles say.
fn runs<'a>(ground: &Ground<'a>) -> BTreeMap<&'a str, Vec<Run<'a>>> {
    let mut open: BTreeMap<(&str, &str), (Micros, usize)> = BTreeMap::new();
    let mut all: BTreeMap<&str, Vec<Run<'_>>> = BTreeMap::new();
    let mut close = |board: &'a str, pod: &'a str, opened: (Micros, usize), until: Micros| {
        all.entry(pod).or_default().push(Run { board, from: opened.0, until, record: opened.1 });
    };
    for (number, record) in ground.history.records().iter().enumerate() {
        if let Fact::Console { board, line } = &record.fact {
            let Some(rest) = line.find("pod ").map(|at| &line[at + 4..]) else { continue };
            let Some((pod, what)) = rest.split_once(' ') else { continue };
            if what.starts_with("container ") && what.ends_with(" started") {
                open.entry((board, pod)).or_insert((record.at, number));
            } else if ends(what)
                && let Some(opened) = open.remove(&(board.as_str(), pod))
            {
                close(board, pod, opened, record.at);
            }
        } else if let Some(dark) = dark(&record.fact) {
            let ended: Vec<(&str, &str)> = open.keys().filter(|(of, _)| *of == dark).copied().collect();
            for key in ended {
                if let Some(opened) = open.remove(&key) {
                    close(key.0, key.1, opened, record.at);
                }
            }
        }
    }
    let end = ground.history.last_at();
    open.into_iter().for_each(|((board, pod), opened)| close(board, pod, opened, end));
    all
}

/// The board that loses its power by a fact.
fn dark(fact: &Fact) -> Option<&str> {
    if let Fact::Power { board, act: PowerAct::Cut | PowerAct::Cycle, .. } | Fact::Flash { board, .. } = fact
    {
        return Some(board);
    }
    let Fact::Fault { fault: Fault { site, kind: FaultKind::PowerCut { .. }, .. }, phase: Phase::Begin } =
        fact
    else {
        return None;
    };
    site.strip_prefix("board:")
}

/// Whether a console's word about a pod means that it runs no more.
fn ends(what: &str) -> bool {
    what.starts_with("dropped")
        || what == "succeeded"
        || what == "failed"
        || what == "removed"
        || (what.starts_with("container ") && (what.ends_with(" stopped") || what.contains(" exited ")))
}
