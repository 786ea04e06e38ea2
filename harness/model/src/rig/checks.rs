//! What contradicts itself in a rig file: boards that such a rig starts would refuse it, or trials would fail as if what is
//! tested were wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::capability::Capability;
use crate::constants::Constant;
use crate::reader::Reader;
use crate::scenario::Scenario;
use crate::yaml::{Entry, Node};

use super::Rig;

/// The longest time between two status reports that a kubelet takes.
const LONGEST_REPORT: Duration = Duration::from_secs(3600);

/// Labels that each board gives its own Node, and where their values come from.
const OWN_LABELS: [(&str, &str); 4] = [
    ("kubernetes.io/hostname", "each board's is its own name; leave it out"),
    ("kubernetes.io/arch", "state board.arch"),
    ("kubernetes.io/os", "it says what the boards run; leave it out"),
    ("rigor.dev/board", "state board.name"),
];

/// Notes constants that do not go together.
pub(super) fn constants(reader: &mut Reader<'_>, node: &Node, stated: &BTreeMap<Constant, Duration>) {
    let stands = |constant: Constant| Some((*stated.get(&constant)?, node.get(constant.name())?));
    let Some((lease, _)) = stands(Constant::LeaseDuration) else { return };
    if let Some((renew, node)) = stands(Constant::RenewInterval)
        && renew >= lease
    {
        let message =
            "leases run out before they are renewed: renewInterval is not shorter than leaseDuration";
        reader.wrong(&node.span, message, "write a shorter one; usual is a third of leaseDuration");
    }
    if let Some((slack, node)) = stands(Constant::Slack)
        && slack >= lease
    {
        let message = "observations may arrive a whole lease late: slack is not shorter than leaseDuration";
        let remedy = "write what the delivery of an observation takes, usual is 500ms: whatever happens within it cannot be told apart";
        reader.wrong(&node.span, message, remedy);
    }
}

/// Notes a label that a board gives its Node itself.
pub(super) fn labels(reader: &mut Reader<'_>, entries: &[Entry]) {
    for entry in entries {
        if let Some((label, remedy)) = OWN_LABELS.iter().find(|(label, _)| *label == entry.key) {
            let message = format!("a board gives its Node the label {label} itself");
            reader.wrong(&entry.key_span, message, *remedy);
        }
    }
}

/// Notes a time between two status reports that no kubelet takes.
pub(super) fn report(reader: &mut Reader<'_>, node: &Node, period: Duration) {
    if period < Duration::from_millis(1) || period > LONGEST_REPORT {
        reader.wrong(
            &node.span,
            "no kubelet reports that often, or that rarely",
            "write 1ms to 1h; usual is 10s",
        );
    }
}

impl Rig {
    /// Takes away what this machine does not let it offer; `why` says what is missing and what to do about it.
    pub fn withdraw(&mut self, capability: Capability, why: &str) {
        if self.capabilities.remove(&capability) {
            self.absent.insert(capability, why.to_owned());
        }
    }

    /// Why the constants that a scenario wants otherwise do not go together with those of this rig.
    pub fn contradicts(&self, scenario: &Scenario) -> Option<String> {
        let constants = self.constants.overridden(&scenario.constants);
        let (renew, lease) = (constants.renew_interval, constants.lease_duration);
        let shown = crate::duration::format;
        // Nodes that are played may be meant so.
        (!scenario.boards.is_empty() && !scenario.constants.is_empty() && renew >= lease).then(|| {
            format!(
                "leases would run out before they are renewed: renewInterval is {} and leaseDuration {}",
                shown(renew),
                shown(lease)
            )
        })
    }
}
