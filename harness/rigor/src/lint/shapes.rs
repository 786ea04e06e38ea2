//! Patterns of another shape than what they are held against: a text for a mapping, a mapping for a list. Nothing is ever
//! so.

use super::fields::Sort;
use rigor_model::mistake::Mistake;
use rigor_model::yaml::{Entry, Kind, Node};

/// Why a value is never as a pattern says.
pub(super) struct Clash {
    /// The end of a sentence whose begin says what the value is.
    pub(super) never: String,
    /// What was probably meant.
    pub(super) remedy: String,
}

/// The operators, without their sign.
const OPERATORS: [&str; 16] = [
    "is", "regex", "eq", "ne", "gt", "ge", "lt", "le", "quantity", "any", "all", "none", "byKey", "count",
    "oneOf", "not",
];

/// What something of that sort is, where that is known.
pub(super) fn is(sort: &Sort) -> Option<&'static str> {
    match sort {
        Sort::Plain => None,
        Sort::Text => Some("a text"),
        Sort::Number => Some("a number"),
        Sort::Boolean => Some("a boolean"),
        Sort::Of(_) | Sort::Map(_) => Some("a mapping"),
        Sort::List(_) => Some("a list"),
    }
}

/// Why nothing of that sort ever looks like the pattern, operators aside.
pub(super) fn clash(pattern: &Node, sort: &Sort) -> Option<Clash> {
    let is = is(sort)?;
    let what = match &pattern.kind {
        // What stands for a value may be of any shape.
        Kind::Text(text) if text.contains("${") => return None,
        Kind::Null => return None,
        Kind::Map(entries) if entries.iter().any(|entry| entry.key.starts_with('$')) => return None,
        Kind::Text(_) => "a text",
        Kind::Number(_) => "a number",
        Kind::Bool(_) => "a boolean",
        Kind::List(_) => "a list",
        Kind::Map(_) => "a mapping",
    };
    (what != is).then(|| Clash { never: format!("and never {what}"), remedy: remedy(pattern, sort) })
}

fn remedy(pattern: &Node, sort: &Sort) -> String {
    if let Kind::Map(entries) = &pattern.kind
        && let Some(operator) = unsigned(entries)
    {
        return format!("did you mean `${operator}`?");
    }
    match (&pattern.kind, sort) {
        (Kind::Map(_), Sort::List(_)) => "put brackets around it for an element that is so, [{…: …}]",
        (Kind::Map(_), _) => "write the value itself, or an operator, such as {$regex: …}",
        (Kind::List(_), Sort::Of(_) | Sort::Map(_)) => "leave the brackets out",
        (Kind::List(_), _) => "leave the brackets out; for one of several values write {$oneOf: […]}",
        (_, Sort::List(inner)) if matches!(**inner, Sort::Of(_)) => "write elements in brackets, [{…: …}]",
        (_, Sort::List(_)) => "put brackets around it",
        (_, Sort::Of(_) | Sort::Map(_)) => "write what is to stand in it, {…: …}, or {$is: present}",
        (_, Sort::Text) => "put it into quotes",
        (Kind::Text(text), Sort::Number) if text.parse::<f64>().is_ok() => "leave the quotes out",
        (_, Sort::Number) => "write a number",
        (Kind::Text(text), Sort::Boolean) if text == "true" || text == "false" => "leave the quotes out",
        (_, Sort::Boolean) => "write true or false, without quotes",
        (_, Sort::Plain) => "leave it out",
    }
    .to_owned()
}

/// The first key that is an operator but for its sign.
fn unsigned(entries: &[Entry]) -> Option<&str> {
    entries.iter().map(|entry| entry.key.as_str()).find(|key| OPERATORS.contains(key))
}

/// Why an operator never says anything of something of that sort.
pub(super) fn operator_clash(operator: &str, value: &Node, sort: &Sort) -> Option<Clash> {
    let no = |never: &str, remedy: &str| {
        Some(Clash { never: format!("and `{operator}` {never}"), remedy: remedy.to_owned() })
    };
    let scalar = matches!(sort, Sort::Text | Sort::Number | Sort::Boolean);
    let tree = matches!(sort, Sort::Of(_) | Sort::Map(_) | Sort::List(_));
    match operator {
        "$any" | "$all" | "$none" | "$byKey" if scalar || matches!(sort, Sort::Of(_) | Sort::Map(_)) => {
            no("is for lists", "leave the operator out; not at all is {$not: …}")
        }
        "$regex" if scalar && *sort != Sort::Text || tree => no(
            "is for texts",
            if matches!(sort, Sort::List(_)) {
                "for an element of the list write {$any: …}"
            } else {
                "compare it with a value of its own sort"
            },
        ),
        "$gt" | "$ge" | "$lt" | "$le" if *sort == Sort::Boolean || tree => no(
            "is for numbers and texts",
            if matches!(sort, Sort::List(_)) {
                "for the number of elements write {$count: {…}}"
            } else {
                "compare it with a value of its own sort"
            },
        ),
        "$quantity" if *sort == Sort::Boolean || tree => {
            no("is for quantities", "compare it with a value of its own sort")
        }
        "$count" if scalar => no("is for lists and mappings", "compare the value itself"),
        "$ne" | "$gt" | "$ge" | "$lt" | "$le" => clash(value, sort),
        _ => None,
    }
}

/// That no number is as the bounds of a pattern say.
pub(super) fn contradiction(pattern: &Node) -> Option<Mistake> {
    let bound = |operator: &str| match &pattern.get(operator)?.kind {
        Kind::Number(number) => number.as_f64(),
        Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => None,
    };
    let lower = [("$gt", true), ("$ge", false)];
    let upper = [("$lt", true), ("$le", false)];
    for (low, is_strict) in lower {
        for (high, is_strict_too) in upper {
            let (Some(least), Some(most)) = (bound(low), bound(high)) else { continue };
            if least > most || least == most && (is_strict || is_strict_too) {
                let message = format!("no number is `{low}: {least}` and `{high}: {most}` at once");
                let remedy = "exchange the numbers; for one or the other write {$oneOf: [{…}, {…}]}";
                return Some(Mistake::new(pattern.span.clone(), message).remedy(remedy));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::misspelt::misspelt;
    use rigor_model::yaml;

    /// What is said of a pattern of objects of a kind.
    fn said(kind: &str, pattern: &str) -> Vec<String> {
        let source =
            format!("spec:\n  steps:\n    - never: {{of: {{kind: {kind}}}, match: {pattern}, for: 5s}}\n");
        let root = yaml::parse_one(&source, &mut Vec::new()).expect(pattern);
        let told = misspelt(&root).into_iter().map(|mistake| {
            let place = source.get(mistake.span.clone()).unwrap_or_default();
            format!("{place}: {}; {}", mistake.message, mistake.remedy.unwrap_or_default())
        });
        told.collect()
    }

    #[test]
    fn patterns_that_nothing_is_ever_like_are_told() {
        let mut gallery = String::new();
        for (kind, pattern) in [
            ("Pod", "Running"),
            ("Pod", "{status: Running}"),
            ("Pod", "{status: {conditions: {type: Ready, status: \"True\"}}}"),
            ("Pod", "{spec: {containers: {name: main}}}"),
            ("Pod", "{spec: {containers: [main]}}"),
            ("Pod", "{spec: {containers: main}}"),
            ("Pod", "{metadata: {finalizers: x}}"),
            ("Pod", "{metadata: {labels: [app]}}"),
            ("Pod", "{metadata: {labels: {app: 1}}}"),
            ("Pod", "{status: {phase: [Running]}}"),
            ("Pod", "{status: {phase: {regex: Run.*}}}"),
            ("Pod", "{status: {phase: {is: x}, conditions: {any: {type: x}}}}"),
            ("Pod", "{status: {phase: {name: x}}}"),
            ("Deployment", "{status: {replicas: \"3\"}}"),
            ("Deployment", "{status: {replicas: three}}"),
            ("Node", "{spec: {unschedulable: \"true\"}}"),
            ("Node", "{spec: {unschedulable: 1}}"),
            ("Node", "{metadata: {name: 7}}"),
            ("Pod", "{status: {containerStatuses: [{restartCount: \"1\"}]}}"),
            ("Pod", "{status: {containerStatuses: {$any: {restartCount: {$gt: \"1\"}}}}}"),
            ("Pod", "{status: {containerStatuses: [{restartCount: {$gt: 3, $lt: 2}}]}}"),
            ("Pod", "{status: {containerStatuses: [{restartCount: {$ge: 3, $lt: 3}}]}}"),
            ("Pod", "{status: {phase: {$any: Running}}}"),
            ("Pod", "{status: {phase: {$count: 1}}}"),
            ("Pod", "{status: {phase: {$oneOf: [Running, [Failed]]}}}"),
            ("Pod", "{status: {conditions: {$regex: x}}}"),
            ("Pod", "{status: {conditions: {$gt: 2}}}"),
            ("Pod", "{status: {conditions: {$not: {type: Ready}}}}"),
            ("Deployment", "{status: {replicas: {$regex: \"3\"}}}"),
            ("Deployment", "{status: {replicas: {$ne: \"3\"}}}"),
        ] {
            let said = said(kind, pattern);
            gallery += &format!("{kind} {pattern}\n    {}\n", said.join("\n    "));
        }
        insta::assert_snapshot!(gallery);
    }

    #[test]
    fn patterns_that_something_can_be_like_are_not_told() {
        for (kind, pattern) in [
            ("Pod", "{status: \"${all}\"}"),
            ("Pod", "{status: {phase: \"${phase}\", conditions: \"${list}\"}}"),
            ("Pod", "{status: {phase: {$oneOf: [Running, Failed]}, startTime: {$is: present}}}"),
            ("Pod", "{status: {phase: {$regex: \"^R\"}, conditions: {$count: {$ge: 2}}}}"),
            ("Pod", "{status: {conditions: {$all: {status: {$ne: \"True\"}}}}}"),
            ("Pod", "{status: {containerStatuses: [{restartCount: {$ge: 3, $le: 3}, ready: true}]}}"),
            ("Pod", "{status: {startTime: {$gt: \"2026-01-01T00:00:00Z\"}}}"),
            ("Pod", "{metadata: {labels: {$count: 2}, annotations: {a.b/c: {$regex: x}}}}"),
            ("Pod", "{spec: {containers: [{resources: {limits: {memory: {$quantity: 16Ki}}}}]}}"),
            ("Pod", "{spec: {containers: [{livenessProbe: {httpGet: {port: 80}}}]}}"),
            ("Pod", "{spec: {containers: [{livenessProbe: {httpGet: {port: http}}}]}}"),
            ("Deployment", "{spec: {strategy: {rollingUpdate: {maxSurge: \"25%\"}}}}"),
            ("Node", "{status: {capacity: {cpu: 1, memory: \"1Gi\"}}}"),
            ("Pod", "{metadata: {labels: {\"${key}\": x}}}"),
        ] {
            assert_eq!(said(kind, pattern), [""; 0], "{kind} {pattern}");
        }
    }
}
