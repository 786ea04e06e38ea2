//! What a Kubernetes 1.32 answered, request by request, asked of this control plane through its router.
//!
//! `../recordings/FOLDER.jsonl` holds the exchanges (`../recordings/import` wrote them), `../recordings/FOLDER.set-up.yaml` what
//! they took for granted. Every folder gets a control plane of its own and its requests in their order. What is known to be
//! answered differently is in `../recordings/differences.yaml` with a reason; anything else that differs fails the test, and so
//! does a difference that is none any more. `docs/wire-fidelity.md` states the outcome.

mod compare;
mod exchange;
mod normalise;
mod report;
mod rig;
mod set_up;
mod translate;

use std::collections::BTreeMap;

use compare::Outcome;
use exchange::Exchange;
use report::Report;

/// The folders, in the order of the report; the part of 04-watch that shows tables has objects of its own.
const FOLDERS: &[&str] =
    &["01-discovery", "02-binding", "03-validation", "04-watch", "05-patch", "13-delete"];

/// Server-side apply is not served yet; its requests are counted apart.
const APPLY: &str = "application/apply-patch+yaml";

fn is_aside(exchange: &Exchange) -> bool {
    exchange.headers.iter().any(|(name, value)| name == "content-type" && value == APPLY)
}

fn replay(folder: &str, report: &mut Report, known: &BTreeMap<String, String>) {
    let exchanges = exchange::load(folder);
    for part in parts(&exchanges) {
        let set_up = set_up::load(folder, part);
        let mut rig = rig::Rig::new(&set_up.control_plane);
        rig.run(&set_up.start);
        for exchange in exchanges.iter().filter(|exchange| part_of(exchange) == part) {
            let name = format!("{folder}/{}", exchange.name);
            rig.run(set_up.before(&exchange.name));
            let request = rig.translated(exchange);
            let answer = rig.ask(&request, set_up.during(&exchange.name));
            let outcome = if is_aside(exchange) {
                Outcome::Aside
            } else {
                match &exchange.answer {
                    None => Outcome::Judged(compare::well_formed(&request, &answer)),
                    Some(recorded) => {
                        rig.learn(recorded, &answer);
                        compare::compare(exchange, recorded, &answer)
                    }
                }
            };
            report.add(folder, &name, exchange, &answer, outcome, known.get(&name).map(String::as_str));
        }
        set_up.assert_used(&exchanges);
    }
}

/// The part of a folder that an exchange belongs to: `table` has objects that the rest does not.
fn part_of(exchange: &Exchange) -> &str {
    if exchange.name.starts_with("table/") { "table" } else { "" }
}

fn parts(exchanges: &[Exchange]) -> Vec<&str> {
    let mut parts: Vec<&str> = exchanges.iter().map(part_of).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

#[test]
fn answers_are_those_of_kubernetes() {
    let known = exchange::differences();
    let mut report = Report::default();
    for folder in FOLDERS {
        replay(folder, &mut report, &known);
    }
    print!("{}", report.table());
    report.assert_as_known(&known);
    report.assert_documented();
}
