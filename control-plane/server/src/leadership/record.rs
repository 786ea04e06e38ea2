//! What a lease says of who leads, and what follows from it. Pure: no clock, no store.

use std::time::Duration;

use serde_json::{Value, json};

/// The lease as somebody saw it, and when by their own clock.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Seen {
    /// `spec`, absent where there is no lease.
    spec: Option<Value>,
    at: Duration,
}

/// What a candidate does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Take the lease: it is free, or has run out.
    Take,
    /// Look again at this instant, or when the lease changes.
    Wait(Duration),
}

impl Seen {
    /// Takes in what the lease says now. Only a change counts as a sign of life: clocks of other machines are not compared.
    pub fn look(&mut self, spec: Option<&Value>, now: Duration) {
        if self.spec.as_ref() != spec {
            *self = Self { spec: spec.cloned(), at: now };
        }
    }

    /// What one that does not lead does. Its own old lease is its to take.
    pub fn step(&self, me: &str, now: Duration, default: Duration) -> Step {
        let Some(spec) = &self.spec else { return Step::Take };
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        if holder.is_empty() || holder == me {
            return Step::Take;
        }
        let seconds = spec["leaseDurationSeconds"].as_u64().filter(|seconds| *seconds > 0);
        let until = self.at + seconds.map_or(default, Duration::from_secs);
        if until <= now { Step::Take } else { Step::Wait(until) }
    }
}

/// The lease's `spec` when `me` takes it or renews it.
pub fn taken(before: Option<&Value>, me: &str, duration: Duration, wall: jiff::Timestamp) -> Value {
    let stamp = wall.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let text = |name: &str| before.and_then(|spec| spec[name].as_str()).unwrap_or_default();
    let transitions = before.and_then(|spec| spec["leaseTransitions"].as_u64()).unwrap_or(0);
    let same = text("holderIdentity") == me;
    let acquired = if same { text("acquireTime").to_owned() } else { stamp.clone() };
    json!({
        "holderIdentity": me,
        "leaseDurationSeconds": duration.as_secs(),
        "acquireTime": acquired,
        "renewTime": stamp,
        "leaseTransitions": if same || before.is_none() { transitions } else { transitions + 1 },
    })
}

/// The lease's `spec` when its holder gives it up.
pub fn released(before: &Value, wall: jiff::Timestamp) -> Value {
    let stamp = wall.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let mut spec = before.clone();
    spec["holderIdentity"] = json!("");
    spec["leaseDurationSeconds"] = json!(1);
    spec["renewTime"] = json!(stamp);
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn second(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn held(holder: &str, renewed: u64) -> Value {
        let wall = jiff::Timestamp::UNIX_EPOCH + second(renewed);
        taken(None, holder, LEASE, wall)
    }

    #[test]
    fn a_lease_is_taken_when_nobody_renewed_it_for_its_duration_as_seen_here() {
        let mut seen = Seen::default();
        let check = |seen: &Seen, now: u64, expected: Step| {
            assert_eq!(seen.step("b", second(now), LEASE), expected, "{now}");
        };
        check(&seen, 0, Step::Take);
        // The date in it is long ago: only this clock counts, from when the change was seen.
        seen.look(Some(&held("a", 1)), second(100));
        check(&seen, 100, Step::Wait(second(115)));
        seen.look(Some(&held("a", 1)), second(110));
        check(&seen, 114, Step::Wait(second(115)));
        check(&seen, 115, Step::Take);
        seen.look(Some(&held("a", 2)), second(114));
        check(&seen, 128, Step::Wait(second(129)));
        seen.look(Some(&held("b", 3)), second(120));
        check(&seen, 120, Step::Take);
        seen.look(None, second(121));
        check(&seen, 121, Step::Take);
    }

    #[test]
    fn a_lease_that_was_given_up_is_free_at_once() {
        let mut seen = Seen::default();
        let released = released(&held("a", 1), jiff::Timestamp::UNIX_EPOCH);
        seen.look(Some(&released), second(5));
        assert_eq!(seen.step("b", second(5), LEASE), Step::Take);
    }

    #[test]
    fn transitions_count_the_holders() {
        let wall = jiff::Timestamp::UNIX_EPOCH + second(90);
        let first = taken(None, "a", LEASE, wall);
        assert_eq!((&first["leaseTransitions"], &first["leaseDurationSeconds"]), (&json!(0), &json!(15)));
        let renewed = taken(Some(&first), "a", LEASE, wall + second(2));
        assert_eq!(renewed["acquireTime"], first["acquireTime"]);
        assert_eq!(renewed["renewTime"], "1970-01-01T00:01:32.000000Z");
        let other = taken(Some(&renewed), "b", LEASE, wall + second(20));
        assert_eq!((&other["leaseTransitions"], &other["acquireTime"]), (&json!(1), &other["renewTime"]));
    }
}
