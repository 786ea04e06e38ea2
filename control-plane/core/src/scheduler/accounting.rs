//! What of each node is taken: bound pods that no report covers yet, and bindings that are on their way.

use std::collections::BTreeMap;

use serde_json::Value;

use super::amounts::Amounts;
use super::profile::Profile;
use crate::snapshot::{Key, Snapshot};
use crate::{json, pod};

/// Bindings that were decided and are not in the snapshot yet. They count in full, so that no number of concurrent
/// creates can over-commit a node (SCHED-56).
///
/// A binding is assumed before its write begins and forgotten when the write was refused or is in the snapshot.
#[derive(Debug, Clone, Default)]
pub struct Assumed {
    pods: BTreeMap<(Key, String), (String, Value)>,
}

impl Assumed {
    /// Counts `pod` on `node` from now on.
    pub fn assume(&mut self, pod: &Value, node: &str) {
        let place = (Key::of(pod), json::uid(pod).to_owned());
        self.pods.insert(place, (node.to_owned(), pod.clone()));
    }

    /// Counts the pod with this uid no longer.
    pub fn forget(&mut self, key: &Key, uid: &str) {
        self.pods.remove(&(key.clone(), uid.to_owned()));
    }

    /// Whether nothing is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}

/// What is taken of each node, the pod under `except` aside.
pub(super) fn taken(
    profile: &Profile,
    snapshot: &Snapshot,
    assumed: &Assumed,
    except: &Key,
) -> BTreeMap<String, Amounts> {
    let mut taken: BTreeMap<String, Amounts> = BTreeMap::new();
    let mut take = |node: &str, pod: &Value| {
        taken.entry(node.to_owned()).or_default().add_all(&(profile.request)(pod));
    };
    for (_, pod) in snapshot.list("pods").filter(|(key, _)| *key != except) {
        if let Some(node) = pod::node(pod)
            && (profile.outstanding)(pod, snapshot.status_covered(node))
        {
            take(node, pod);
        }
    }
    for ((key, _), (node, pod)) in assumed.pods.iter().filter(|((key, _), _)| key != except) {
        let arrived = snapshot
            .at("pods", key)
            .is_some_and(|it| json::uid(it) == json::uid(pod) && pod::node(it).is_some());
        if !arrived {
            take(node, pod);
        }
    }
    taken
}
