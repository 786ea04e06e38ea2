//! Texts that many columns share: ages, selectors, container lists.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Column;
use crate::json;

/// What a cell shows where there is nothing.
pub(super) const NONE: &str = "<none>";
/// What a cell shows where something is not known.
pub(super) const UNKNOWN: &str = "<unknown>";

/// A column without a format.
pub(super) fn column(
    name: &'static str,
    kind: &'static str,
    priority: u8,
    description: &'static str,
) -> Column {
    Column { name, kind, format: "", description, priority }
}

/// The column of names, by which kubectl finds them.
pub(super) fn name_column() -> Column {
    Column {
        format: "name",
        ..column("Name", "string", 0, "Name of the object, unique within its namespace")
    }
}

/// The wide columns of a workload's template.
pub(super) fn template_columns() -> [Column; 3] {
    [
        column("Containers", "string", 1, "Names of the containers in the template"),
        column("Images", "string", 1, "Images of the containers in the template"),
        column("Selector", "string", 1, "Labels by which pods are selected"),
    ]
}

/// The wide cells of a workload's template.
pub(super) fn template_cells(object: &Value) -> [Value; 3] {
    let containers = json::list(object, &["spec", "template", "spec", "containers"]);
    let join =
        |field: &str| containers.iter().map(|one| json::text(one, &[field])).collect::<Vec<_>>().join(",");
    let selector = crate::scale::selector_text(object.pointer("/spec/selector").unwrap_or(&Value::Null));
    let selector = if selector.is_empty() { NONE.to_owned() } else { selector };
    [json!(join("name")), json!(join("image")), json!(selector)]
}

/// Labels as `a=b,c=d`.
pub(super) fn labels(map: Option<&Value>) -> String {
    let pairs: Vec<String> = map
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// A text, or a placeholder where it is empty.
pub(super) fn or<'a>(text: &'a str, placeholder: &'a str) -> &'a str {
    if text.is_empty() { placeholder } else { text }
}

/// The cell for the time since an object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    json!(since(json::text(object, &["metadata", "creationTimestamp"]), now))
}

/// The time since an instant in RFC 3339, as kubectl prints durations.
pub(super) fn since(instant: &str, now: Timestamp) -> String {
    match instant.parse::<Timestamp>() {
        Ok(instant) => duration(now.duration_since(instant).as_millis()),
        Err(_) => UNKNOWN.to_owned(),
    }
}

/// A duration in milliseconds with as much precision as a person wants.
pub(super) fn duration(millis: i128) -> String {
    let seconds = millis / 1000;
    let pair = |large: i128, unit: char, small: i128, below: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{below}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, 'd', hours % 24, 'h'),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_for_people() {
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (261, "4m21s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (8 * 86_400, "8d"),
            (729 * 86_400, "729d"),
            (730 * 86_400, "2y"),
            (800 * 86_400, "2y70d"),
            (8 * 365 * 86_400, "8y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds * 1000), text, "{seconds}");
        }
        assert_eq!(since("", Timestamp::UNIX_EPOCH), UNKNOWN);
    }
}
