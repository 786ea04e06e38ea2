//! Both schedulers on the same clusters: every filter's verdict, every share, the choice, and what is said.
//!
//! `PROPTEST_CASES` sets the number of clusters, `PROPTEST_RNG_SEED` draws others.

use std::time::Duration;

use control_plane_core::scheduler::{
    Assumed, KUBE32, Profile, SchedulerConfig, Score, Share, Verdict, bound, decide, explain, fits_on, place,
    schedule,
};
use control_plane_core::{Key, Now, Snapshot, Write};
use proptest::prelude::*;
use serde_json::Value;

use crate::clusters::cluster;
use crate::digits::Digits;
use crate::kube32::{Cluster, Judged, choose, judge, message, thousandths};

/// So many cases, or as many as `PROPTEST_CASES` says.
fn cases(default: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return config;
    }
    ProptestConfig { cases: default, max_shrink_iters: 2_000, ..config }
}

fn now() -> Now {
    Now { mono: Duration::from_secs(60), wall: "2026-11-29T12:01:00Z".parse().expect("a timestamp") }
}

fn config() -> SchedulerConfig {
    SchedulerConfig::new(&KUBE32, Duration::from_secs(1))
}

/// The cluster as the product keeps it; `kept` lets it keep its books from the beginning.
fn snapshot(cluster: &Cluster, kept: bool, nodes_first: bool) -> Snapshot {
    let mut snapshot = Snapshot::default();
    if kept {
        snapshot.keep_ledger(&KUBE32);
    }
    let put = |snapshot: &mut Snapshot, resource, objects: &[Value]| {
        for object in objects {
            snapshot.apply(resource, Key::of(object), Some(object.clone().into()));
        }
    };
    if nodes_first {
        put(&mut snapshot, "nodes", &cluster.nodes);
    }
    put(&mut snapshot, "pods", &cluster.pods);
    for (node, version) in &cluster.reported {
        snapshot.status_reported(node, *version);
    }
    if !nodes_first {
        put(&mut snapshot, "nodes", &cluster.nodes);
    }
    snapshot
}

fn share((part, of): &(Digits, Digits)) -> Share {
    let number = |digits: &Digits| digits.to_string().parse().expect("within a machine's number");
    Share::new(number(part), number(of))
}

fn compare_nodes(
    snapshot: &Snapshot,
    assumed: &Assumed,
    wanted: &Value,
    judged: &[Judged],
) -> Result<(), TestCaseError> {
    let profile: &'static Profile = &KUBE32;
    let explained = explain(profile, wanted, snapshot, assumed);
    prop_assert_eq!(explained.len(), judged.len());
    for (theirs, ours) in explained.iter().zip(judged) {
        prop_assert_eq!(&theirs.node, &ours.node);
        let filters: Vec<(&str, Vec<String>)> = theirs
            .filters
            .iter()
            .map(|(name, reasons)| {
                let mut reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                reasons.sort();
                (*name, reasons)
            })
            .collect();
        prop_assert_eq!(&filters, &ours.filters, "the filters of {}", &ours.node);
        let alone = |share: Share| Score::mean_of(vec![(1, share)]);
        let shares: Option<Vec<Score>> =
            theirs.ratings.as_ref().map(|of| of.iter().map(|(_, _, share)| alone(*share)).collect());
        let expected: Option<Vec<Score>> =
            ours.shares.as_ref().map(|of| of.iter().map(|it| alone(share(it))).collect());
        prop_assert!(shares == expected, "{:?} are the shares of {:?}", &theirs.ratings, ours);
        let fits = fits_on(profile, wanted, snapshot, assumed, &ours.node);
        prop_assert_eq!(fits, ours.shares.is_some(), "{} alone", &ours.node);
    }
    Ok(())
}

fn compare_choice(
    snapshot: &Snapshot,
    assumed: &Assumed,
    wanted: &Value,
    judged: &[Judged],
) -> Result<(), TestCaseError> {
    let verdict = schedule(&KUBE32, wanted, snapshot, assumed);
    match (choose(judged), verdict) {
        (Some(ours), Verdict::Bind { node, score, feasible }) => {
            prop_assert_eq!(&node, &ours.node);
            let shares = ours.shares.as_ref().expect("shares of a node that passes");
            prop_assert_eq!(score.per_mille(), u128::from(thousandths(shares)));
            prop_assert_eq!(feasible, judged.iter().filter(|node| node.shares.is_some()).count());
        }
        (None, Verdict::Unschedulable { message: theirs }) => prop_assert_eq!(theirs, message(judged)),
        (ours, theirs) => prop_assert!(false, "we say {:?}, they say {:?}", ours, theirs),
    }
    Ok(())
}

/// What the create request stores and what the loop writes later are the same choice.
fn compare_writes(
    snapshot: &mut Snapshot,
    assumed: &Assumed,
    wanted: &Value,
    judged: &[Judged],
) -> Result<(), TestCaseError> {
    let config = config();
    let placed = place(&config, wanted.clone(), snapshot, assumed, &now());
    snapshot.apply("pods", Key::of(wanted), Some(wanted.clone().into()));
    let decision = decide(snapshot, &config, assumed, &Key::of(wanted), &now());
    let Some(node) = choose(judged) else {
        prop_assert!(placed.pod["spec"]["nodeName"].is_null());
        for events in [&placed.events, &decision.events] {
            prop_assert_eq!(events.len(), 1);
            prop_assert_eq!((events[0].reason, &events[0].message), ("FailedScheduling", &message(judged)));
        }
        return Ok(());
    };
    prop_assert_eq!(&placed.pod, &bound(wanted, &node.node, &now()));
    let bindings: Vec<&str> = decision
        .writes
        .iter()
        .filter_map(|write| if let Write::Bind { node, .. } = write { Some(node.as_str()) } else { None })
        .collect();
    prop_assert_eq!(bindings, vec![node.node.as_str()]);
    for event in placed.events.iter().chain(&decision.events) {
        prop_assert_eq!(event.reason, "Scheduled");
        prop_assert_eq!(&event.message, &format!("Successfully assigned default/wanted to {}", node.node));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn two_schedulers_agree_on_any_cluster(cluster in cluster(), kept: bool, nodes_first: bool) {
        let (judged, wanted) = (judge(&cluster), &cluster.wanted);
        let mut snapshot = snapshot(&cluster, kept, nodes_first);
        let mut assumed = Assumed::default();
        for pod in &cluster.coming {
            assumed.assume(&config(), pod, pod["spec"]["nodeName"].as_str().expect("a node"));
        }
        compare_nodes(&snapshot, &assumed, wanted, &judged)?;
        compare_choice(&snapshot, &assumed, wanted, &judged)?;
        if wanted["spec"]["nodeName"].is_null() {
            compare_writes(&mut snapshot, &assumed, wanted, &judged)?;
        }
    }
}
