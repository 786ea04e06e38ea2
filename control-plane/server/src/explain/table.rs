//! An explanation as text: one line a node, and below those that fail the reasons.

use serde_json::Value;

/// The explanation, for people.
pub fn text(explanation: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = vec![
        format!("Pod:       {}/{}", word(&explanation["namespace"]), word(&explanation["pod"])),
        format!("Scheduler: {} ({})", word(&explanation["schedulerName"]), profile(&explanation["profile"])),
    ];
    if let Some(node) = explanation["nodeName"].as_str() {
        lines.push(format!("Bound to:  {node} (below: as if it looked for a node again)"));
    }
    lines.push(format!("Outcome:   {}", word(&explanation["outcome"])));
    let nodes = explanation["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let width = nodes.iter().filter_map(|node| node["name"].as_str()).map(str::len).max().unwrap_or(0).max(4);
    if !nodes.is_empty() {
        lines.push(String::new());
        lines.push(format!("{:width$}  SCORE  VERDICT", "NODE"));
    }
    for node in nodes {
        let name = word(&node["name"]);
        match node["scorePerMille"].as_u64() {
            Some(score) => lines.push(format!("{name:width$}  {score:>5}  {}", ratings(&node["ratings"]))),
            None => lines.push(format!("{name:width$}  {:>5}  {}", "-", failures(&node["filters"]))),
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn profile(profile: &Value) -> String {
    profile
        .as_str()
        .map_or_else(|| "not the built-in scheduler's".to_owned(), |name| format!("profile {name}"))
}

fn ratings(ratings: &Value) -> String {
    let rating = |it: &Value| {
        let (name, weight) = (it["name"].as_str().unwrap_or_default(), it["weight"].as_u64().unwrap_or(1));
        let times = if weight == 1 { String::new() } else { format!(" x{weight}") };
        format!("{name} {}{times}", it["perMille"].as_u64().unwrap_or(0))
    };
    ratings.as_array().into_iter().flatten().map(rating).collect::<Vec<_>>().join(", ")
}

/// Only the first filter that fails counts; the others that would fail too stand in brackets.
fn failures(filters: &Value) -> String {
    let failed = filters.as_array().into_iter().flatten().filter(|filter| filter["passed"] == false);
    let told = failed.enumerate().map(|(number, filter)| {
        let reasons = filter["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let told = format!(
            "{}: {}",
            filter["name"].as_str().unwrap_or_default(),
            reasons.collect::<Vec<_>>().join(", ")
        );
        if number == 0 { told } else { format!("[{told}]") }
    });
    told.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_why_or_how_well() {
        let explanation = json!({
            "namespace": "default", "pod": "p", "schedulerName": "default-scheduler", "profile": "kube32",
            "nodeName": null, "outcome": "long-name is the best node",
            "nodes": [
                {"name": "a", "filters": [
                    {"name": "NodeReady", "passed": false, "reasons": ["node(s) were not ready"]},
                    {"name": "NodeName", "passed": true, "reasons": []},
                    {"name": "Memory", "passed": false, "reasons": ["Insufficient memory"]},
                ]},
                {"name": "long-name", "scorePerMille": 750, "ratings": [
                    {"name": "MemoryLeft", "weight": 1, "perMille": 500},
                    {"name": "GpioLeft", "weight": 3, "perMille": 1000},
                ]},
            ],
        });
        let expected = "\
Pod:       default/p
Scheduler: default-scheduler (profile kube32)
Outcome:   long-name is the best node

NODE       SCORE  VERDICT
a              -  NodeReady: node(s) were not ready [Memory: Insufficient memory]
long-name    750  MemoryLeft 500, GpioLeft 1000 x3
";
        assert_eq!(text(&explanation), expected);
    }
}
