//! How Deployments and DaemonSets replace their pods: the checks of their strategies.

use serde_json::{Value, json};

use super::go;
use super::pod_spec::NOT_NEGATIVE;
use crate::json;
use crate::status::{Cause, CauseReason, quote};

/// Checks a strategy: a known type, and amounts that are whole numbers or percentages and let pods be replaced.
pub(super) fn validate(spec: &Value, field: &str, known: &[&str], causes: &mut Vec<Cause>) {
    let path = format!("spec.{field}");
    let kind = json::text(spec, &[field, "type"]);
    let update = json::at(spec, &[field, "rollingUpdate"]).filter(|update| !update.is_null());
    match (kind, update) {
        (kind, _) if !known.contains(&kind) => causes.push(unknown(path, field, kind, known)),
        ("Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden(format!("{path}.rollingUpdate"), why));
        }
        ("RollingUpdate", Some(update)) => {
            let daemons = field == "updateStrategy";
            validate_amounts(update, &format!("{path}.rollingUpdate"), daemons, causes);
        }
        (_, _) => {}
    }
}

/// Kubernetes names the whole strategy of a DaemonSet where only its type is wrong.
fn unknown(path: String, field: &str, kind: &str, known: &[&str]) -> Cause {
    if field != "updateStrategy" {
        return Cause::not_supported(format!("{path}.type"), kind, known);
    }
    let known: Vec<String> = known.iter().map(|one| quote(one)).collect();
    let shown = format!(
        "apps.DaemonSetUpdateStrategy{{Type:{}, RollingUpdate:(*apps.RollingUpdateDaemonSet)(nil)}}",
        quote(kind)
    );
    let message = format!("Unsupported value: {shown}: supported values: {}", known.join(", "));
    Cause::new(path, CauseReason::NotSupported, message)
}

fn validate_amounts(update: &Value, path: &str, daemons: bool, causes: &mut Vec<Cause>) {
    let fields = ["maxUnavailable", "maxSurge"].map(|name| {
        let value = update.get(name).unwrap_or(&Value::Null);
        (format!("{path}.{name}"), value, amount(value))
    });
    for (field, value, _) in &fields {
        if let Some(number) = value.as_i64().filter(|number| *number < 0) {
            causes.push(Cause::invalid(field, &json!(number), NOT_NEGATIVE));
        }
        if value.is_string() && percent(value).is_none() {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                       '93%', regex used for validation is '[0-9]+%')";
            causes.push(Cause::invalid_text(field, &go::int_or_string(value), why));
        }
    }
    let [(unavailable_field, unavailable, out), (surge_field, surge, more)] = &fields;
    if !daemons && (*out, *more) == (0, 0) {
        let why = "may not be 0 when `maxSurge` is 0";
        causes.push(Cause::invalid_text(unavailable_field, &go::int_or_string(unavailable), why));
    }
    let limited = if daemons { &fields[..] } else { &fields[..1] };
    for (field, value, _) in limited {
        if percent(value).is_some_and(|percent| percent > 100) {
            let why = "must not be greater than 100%";
            causes.push(Cause::invalid_text(field, &go::int_or_string(value), why));
        }
    }
    match (daemons, *out != 0, *more != 0) {
        (true, true, true) => {
            let why = "may not be set when maxUnavailable is non-zero";
            causes.push(Cause::invalid_text(surge_field, &go::int_or_string(surge), why));
        }
        (true, false, false) => {
            causes.push(Cause::required(unavailable_field, "cannot be 0 when maxSurge is 0"));
        }
        (_, _, _) => {}
    }
}

/// The number of a percentage.
fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let fits = !digits.is_empty() && digits.len() <= 9 && digits.chars().all(|ch| ch.is_ascii_digit());
    if fits { digits.parse().ok() } else { None }
}

/// A count, or the number of a percentage; 0 where it is neither.
fn amount(value: &Value) -> i64 {
    value.as_i64().or_else(|| percent(value)).unwrap_or(0)
}
