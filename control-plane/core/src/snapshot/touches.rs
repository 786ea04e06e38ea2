//! What was touched lately of that which DaemonSets look at, so that who kept what it made of the rest need not look at all of it
//! again.

use std::collections::VecDeque;

use serde_json::Value;

use super::{Key, Object};
use crate::controllers::daemonset;
use crate::{conditions, json};

/// So many touches are remembered; whoever looks more rarely has to look at everything.
const REMEMBERED: usize = 32_768;

/// A change that can matter to a DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Touch {
    /// A node came, went, or changed what decides which pods belong on it and which of them give way.
    Node {
        /// Its name.
        name: String,
        /// The hostnames that it had before and has now.
        hosts: [Option<String>; 2],
    },
    /// A pod that a DaemonSet controls, or did, came, went or changed.
    Pod {
        /// Uid of the DaemonSet.
        owner: String,
        /// The pod.
        key: Key,
    },
}

/// The last touches, numbered from 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Touches {
    last: VecDeque<Touch>,
    /// The number of the newest one.
    number: u64,
}

impl Touches {
    /// The number of the newest touch.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The touches after that number; nothing where some are forgotten, or it never was reached.
    pub(super) fn after(&self, number: u64) -> Option<impl Iterator<Item = &Touch> + use<'_>> {
        let missing = usize::try_from(self.number.checked_sub(number)?).ok()?;
        Some(self.last.range(self.last.len().checked_sub(missing)?..))
    }

    /// Takes in that `old` became `new`.
    pub(super) fn note(&mut self, resource: &str, key: &Key, old: Option<&Object>, new: Option<&Object>) {
        match resource {
            "pods" => {
                let owner =
                    |pod: Option<&Object>| pod.and_then(|pod| daemonset::owner(pod)).map(str::to_owned);
                let (before, after) = (owner(old), owner(new));
                let after = after.filter(|after| before.as_ref() != Some(after));
                for owner in [before, after].into_iter().flatten() {
                    self.push(Touch::Pod { owner, key: key.clone() });
                }
            }
            "nodes" => {
                let (old, new) = (old.map(AsRef::as_ref), new.map(AsRef::as_ref));
                if old.map(shape) != new.map(shape) {
                    let hosts = [old, new].map(|node| node.map(|node| daemonset::host(node).to_owned()));
                    self.push(Touch::Node { name: key.name.clone(), hosts });
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, touch: Touch) {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(touch);
        self.number += 1;
    }
}

/// What DaemonSets see of a node.
fn shape(node: &Value) -> (&str, Option<&Value>, bool, bool) {
    (
        json::name(node),
        json::get(node, &["metadata", "labels"]),
        conditions::status(node, "Ready") == Some("Unknown"),
        json::is_true(node, &["spec", "unschedulable"]),
    )
}
