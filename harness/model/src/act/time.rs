//! `wait` and `advance`: acts that only let time pass.

use crate::expr::{Instant, Length};
use crate::step::Context;
use crate::yaml::{Kind, Node};

/// Waits, and does nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Until then.
    pub until: Instant,
}

/// Lets virtual time pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// So much of it.
    pub by: Length,
}

pub(crate) fn wait(context: &mut Context<'_, '_>, node: &Node) -> Option<Wait> {
    if let Kind::Map(_) = &node.kind {
        context.reader.wrong(
            &node.span,
            "wait takes an instant or a duration, not a mapping",
            "write wait: 3s, or wait: outage + 3s",
        );
        return None;
    }
    Some(Wait { until: context.instant(node)? })
}

pub(crate) fn advance(context: &mut Context<'_, '_>, node: &Node) -> Option<Advance> {
    if let Kind::Map(_) = &node.kind {
        let remedy = "write advance: 1h, or advance: 2 * leaseDuration";
        context.reader.wrong(&node.span, "advance takes a duration, not a mapping", remedy);
        return None;
    }
    Some(Advance { by: context.length(node)? })
}
