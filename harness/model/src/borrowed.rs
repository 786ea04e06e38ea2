//! Words that people bring along from other tools and languages, with what is written here instead.
//!
//! Only for remedies: nothing is read differently because a word stands here. What is merely misspelt is found by
//! its likeness to a right word; here stand words that are like nothing.

/// A key of another tool: the shapes it is met in (none: any), the key of ours that has the same value if there is one,
/// and what to do.
struct Key {
    shapes: &'static [&'static str],
    word: &'static str,
    meant: Option<&'static str>,
    remedy: &'static str,
}

const fn key(
    shapes: &'static [&'static str],
    word: &'static str,
    meant: Option<&'static str>,
    remedy: &'static str,
) -> Key {
    Key { shapes, word, meant, remedy }
}

const SPANS: &[&str] = &["never", "always", "unchanged"];
const WAITS: &[&str] = &["expect", "capture"];
const LOOKS: &[&str] = &["expect", "never", "always", "unchanged", "capture"];
const OF: &str = "which objects are looked at stands in `of: {kind: Pod, name: lamp}`";
const UNDER_SPEC: &str = "it belongs under `spec`: indent it by two blanks more";
const UNDER_METADATA: &str = "it belongs under `metadata`: indent it by two blanks more";
const CAPTURED: &str =
    "values get their names by `fields: {uid: metadata.uid}`; `as`, beside the verb, names the instant";
const OFFERED: &str = "what a node offers stands under `allocatable: {memory: 64Ki}`";
const NAMED: &str = "an object is meant by `kind: Pod, name: lamp`";
const LASTS: &str =
    "an act begins and ends nothing by itself: write steps for that, cut, `wait: 5s`, and restore or heal";
const STEP_NAME: &str =
    "`as` names a step: it stands beside the verb, at the verb's column, not inside of it";

/// The keys; the first that fits counts.
static KEYS: &[Key] = &[
    key(&["repeat", "forEach", "include"], "as", None, "name the steps inside"),
    key(&["capture"], "as", None, CAPTURED),
    key(&["capture"], "path", None, CAPTURED),
    key(&["capture"], "field", None, CAPTURED),
    key(&["unchanged"], "fields", None, "it is about one path: field: spec.nodeName"),
    key(&["node"], "memory", None, OFFERED),
    key(&["node"], "cpu", None, OFFERED),
    key(&["node"], "pods", None, OFFERED),
    key(&["node"], "resources", Some("allocatable"), OFFERED),
    key(&["delete", "patch", "scale"], "pod", None, NAMED),
    key(&["delete", "patch", "scale"], "deployment", None, NAMED),
    key(&["delete", "patch", "scale"], "resource", None, NAMED),
    key(&["power", "link"], "for", None, LASTS),
    key(&["power", "link"], "duration", None, LASTS),
    key(&[], "as", None, STEP_NAME),
    key(
        SPANS,
        "within",
        Some("for"),
        "a window in which it is watched all the time is `for: 5s`, or `until` an instant",
    ),
    key(SPANS, "timeout", Some("for"), "how long it is watched is `for: 5s`, or `until` an instant"),
    key(
        SPANS,
        "between",
        None,
        "a window in which it is watched all the time is `from` an instant and `until` another one",
    ),
    key(WAITS, "timeout", Some("within"), "how long it may take is `within: 5s`"),
    key(WAITS, "for", Some("within"), "how long it may take is `within: 5s`; that it stays so is `always`"),
    key(WAITS, "until", None, "how long it may take is `within: 5s`, or `between: [not before, not after]`"),
    key(&["expect"], "retries", None, "it is tried again until its window ends: say `within: 5s`"),
    key(&["expect"], "interval", None, "what happens is recorded as it comes: say `within: 5s`"),
    key(LOOKS, "kind", None, OF),
    key(LOOKS, "name", None, OF),
    key(LOOKS, "pod", None, OF),
    key(LOOKS, "node", None, OF),
    key(LOOKS, "resource", Some("of"), OF),
    key(LOOKS, "object", Some("of"), OF),
    key(
        LOOKS,
        "matches",
        Some("match"),
        "what an object must look like is `match`; `matches` belongs into `console` and `log`",
    ),
    key(LOOKS, "status", None, "it belongs into `match: {status: …}`"),
    key(LOOKS, "spec", None, "it belongs into `match: {spec: …}`"),
    key(LOOKS, "metadata", None, "it belongs into `match: {metadata: …}`"),
    key(
        LOOKS,
        "condition",
        None,
        "write match: {status: {conditions: [{type: Ready, status: \"True\"}]}}, or `cel`",
    ),
    key(LOOKS, "jsonpath", None, "write `match`, `cel`, or in a capture `fields: {NAME: status.podIP}`"),
    key(&["request", "answer"], "code", Some("status"), "write status: 200"),
    key(&["request", "answer"], "statusCode", Some("status"), "write status: 200"),
    key(&["answer"], "body", Some("match"), "what the body has to look like is `match`"),
    key(&["request"], "code", None, "what the answer has to be is `answer: {status: 200}`"),
    key(&["request"], "statusCode", None, "what the answer has to be is `answer: {status: 200}`"),
    key(&["request"], "status", None, "what the answer has to be is `answer: {status: 200}`"),
    key(&["request"], "match", None, "what the answer has to look like is `answer: {match: …}`"),
    key(&["request"], "cel", None, "what has to hold of the answer is `answer: {cel: …}`"),
    key(&["request"], "expect", Some("answer"), "what the answer has to be is `answer: {status: 200}`"),
    key(&["request"], "response", Some("answer"), "what the answer has to be is `answer: {status: 200}`"),
    key(
        &["request"],
        "answer",
        None,
        "what the answer has to be stands here itself: status, match, cel, headers",
    ),
    key(&["request"], "url", Some("path"), "write the path alone: path: /api/v1/nodes"),
    key(&["request"], "uri", Some("path"), "write the path alone: path: /api/v1/nodes"),
    key(&["request"], "verb", Some("method"), "write method: GET"),
    key(&["request"], "data", Some("body"), "write `body`"),
    key(&["request"], "json", Some("body"), "write `body`"),
    key(&["request"], "query", None, "the query is a part of the path: /api/v1/pods?limit=5"),
    key(&["request"], "params", None, "the query is a part of the path: /api/v1/pods?limit=5"),
    key(&["request"], "token", None, "who asks is `user: \"token:TEXT\"`"),
    key(&["request"], "auth", None, "who asks is `user`: admin, board:a, anonymous or token:TEXT"),
    key(&["kubectl"], "command", Some("args"), "write args: [get, pods]"),
    key(&["kubectl"], "cmd", Some("args"), "write args: [get, pods]"),
    key(&["etcdctl"], "command", Some("args"), "write args: [get, /registry/pods/default/lamp]"),
    key(&["etcdctl"], "cmd", Some("args"), "write args: [get, /registry/pods/default/lamp]"),
    key(&["etcdctl"], "get", None, "write args: [get, KEY]"),
    key(&["etcdctl"], "key", None, "write args: [get, KEY]"),
    key(&["etcdctl"], "endpoints", None, "leave it out: the trial's etcd is meant"),
    key(&["kubectl", "etcdctl"], "code", Some("exitCode"), "write exitCode: 1"),
    key(
        &["kubectl", "etcdctl"],
        "output",
        Some("stdout"),
        "write `stdout`, a text that is contained in it or a pattern",
    ),
    key(&["power", "link"], "action", Some("do"), "what is done is `do`"),
    key(&["power", "link", "console"], "node", Some("board"), "a board is meant by its letter: board: a"),
    key(&["power", "link"], "state", Some("do"), "what is done is `do`"),
    key(&["link"], "delay", None, "write do: delay, by: 200ms"),
    key(&["link"], "loss", None, "write do: loss, percent: 20"),
    key(&["console"], "name", Some("scheduler"), "a second scheduler is meant by its name: scheduler: NAME"),
    key(&["console", "log"], "regex", Some("matches"), "write `matches`"),
    key(&["console", "log"], "match", Some("matches"), "write `matches`"),
    key(&["console", "log"], "contains", Some("matches"), "write `matches`"),
    key(&["of"], "selector", Some("labels"), "write labels: {app: web}"),
    key(&["of"], "matchLabels", Some("labels"), "write labels: {app: web}"),
    key(&["of"], "ns", Some("namespace"), "write `namespace`"),
    key(&["of"], "match", None, "`match` stands beside `of`, not inside of it"),
    key(&["of"], "status", None, "what an object must look like is `match`, beside `of`"),
    key(&["repeat"], "count", Some("times"), "write times: 3"),
    key(&["repeat"], "n", Some("times"), "write times: 3"),
    key(&["forEach"], "items", Some("in"), "write in: [first, second]"),
    key(&["forEach"], "values", Some("in"), "write in: [first, second]"),
    key(&["forEach"], "var", Some("name"), "write name: value, for `${value}`"),
    key(&["repeat", "forEach"], "do", Some("steps"), "write `steps`"),
    key(&["spec"], "params", Some("parameters"), "write `parameters`"),
    key(&["spec"], "inputs", Some("parameters"), "write `parameters`"),
    key(&["include"], "params", Some("with"), "write `with`"),
    key(&["include"], "parameters", Some("with"), "write `with`"),
    key(&["include"], "path", Some("file"), "write `file`"),
    key(&["apply", "create", "replace"], "object", Some("manifest"), "write `manifest`"),
    key(&["apply", "create", "replace"], "path", Some("file"), "write `file`"),
    key(&["apply", "create", "replace"], "kind", None, "the object itself stands under `manifest`"),
    key(&["apply", "create", "replace"], "apiVersion", None, "the object itself stands under `manifest`"),
    key(&["apply", "create", "replace"], "metadata", None, "the object itself stands under `manifest`"),
    key(&["apply", "create", "replace"], "spec", None, "the object itself stands under `manifest`"),
    key(&["delete"], "gracePeriodSeconds", None, "write grace: 5s"),
    key(&["delete"], "propagationPolicy", None, "write propagation: background, foreground or orphan"),
    key(&["Scenario", "Fragment"], "steps", None, UNDER_SPEC),
    key(&["Scenario"], "rig", None, UNDER_SPEC),
    key(&["Scenario"], "setup", None, UNDER_SPEC),
    key(&["Scenario"], "cleanup", None, UNDER_SPEC),
    key(&["Scenario"], "constants", None, UNDER_SPEC),
    key(&["Scenario"], "name", None, UNDER_METADATA),
    key(&["Scenario"], "requirements", None, UNDER_METADATA),
    key(&["Scenario"], "profile", None, UNDER_METADATA),
    key(&["Scenario"], "tags", None, UNDER_METADATA),
    key(&["Scenario"], "description", None, UNDER_METADATA),
    key(&["metadata"], "labels", None, "words to filter by are `tags`, a list"),
    key(&["metadata"], "annotations", None, "a sentence for readers is `description`"),
    key(&["spec"], "boards", None, "write rig: {boards: 2}"),
    key(&["spec"], "needs", None, "write rig: {needs: [power]}"),
    key(&["spec"], "requirements", None, "requirements belong under `metadata`"),
    key(&["spec"], "timeout", None, "each expectation has its own window: `within: 5s`"),
    key(&["spec"], "teardown", Some("cleanup"), "write `cleanup`"),
    key(&["spec"], "before", Some("setup"), "write `setup`"),
    key(&["spec"], "after", Some("cleanup"), "write `cleanup`"),
    key(&["rig"], "capabilities", Some("needs"), "what the rig must offer is `needs`"),
    key(&["rig"], "name", None, "a scenario names no rig, only what it needs of one; --rig chooses it"),
];

/// What a key of another tool means here: the key of ours that has its value, if one of `keys` does, and a remedy.
pub(crate) fn meant_key(
    shape: &str,
    keys: &[&'static str],
    word: &str,
) -> Option<(Option<&'static str>, &'static str)> {
    KEYS.iter()
        .find(|row| {
            row.word == word
                && (row.shapes.is_empty() || row.shapes.contains(&shape))
                && row.meant.is_none_or(|meant| keys.contains(&meant))
        })
        .map(|row| (row.meant, row.remedy))
}

/// Verbs and keys of steps, each in small letters without hyphens and underscores.
static STEPS: &[(&str, &str)] = &[
    ("sleep", "to let time pass write `wait: 5s`"),
    ("pause", "to let time pass write `wait: 5s`; to stop a board's processor `power: {board: a, do: hang}`"),
    (
        "delay",
        "to let time pass write `wait: 5s`; to slow down a link `link: {board: a, do: delay, by: 200ms}`",
    ),
    ("waitfor", "to wait for something to become so write `expect` with `within`"),
    (
        "waituntil",
        "to wait for something to become so write `expect` with `within`; for an instant `wait: outage + 5s`",
    ),
    ("poll", "to wait for something to become so write `expect` with `within`"),
    ("eventually", "to wait for something to become so write `expect` with `within`"),
    ("consistently", "that something stays so is `always` with `for`"),
    ("timeout", "each expectation has its own window: `within: 5s` inside of it"),
    ("within", "it belongs inside an `expect`"),
    ("retry", "an expectation is looked at until its window ends: `within: 5s`"),
    ("assert", "what must be seen is `expect`, `never`, `always` or `unchanged`"),
    ("check", "what must be seen is `expect`, `never`, `always` or `unchanged`"),
    ("verify", "what must be seen is `expect`, `never`, `always` or `unchanged`"),
    ("should", "what must be seen is `expect`, `never`, `always` or `unchanged`"),
    ("then", "what must be seen is `expect`, `never`, `always` or `unchanged`"),
    ("error", "what must not be is `never`; that an act is refused is its `answer: {status: 409}`"),
    ("expectnot", "what must not be is `never`, or `expect` with `absent: true`"),
    ("not", "what must not be is `never`, or `expect` with `absent: true`"),
    (
        "get",
        "what an object looks like is `expect: {of: …, match: …}`, its values are `capture`, a GET of any path is `request`",
    ),
    ("describe", "what an object looks like is `expect: {of: …, match: …}`"),
    ("log", "lines of a container's log are `expect: {log: {pod: lamp, matches: REGEX}}`"),
    ("logs", "lines of a container's log are `expect: {log: {pod: lamp, matches: REGEX}}`"),
    ("console", "lines of a console are `expect: {console: {board: a, matches: REGEX}}`"),
    ("print", "the report tells what happens; to say something to readers write a comment"),
    ("echo", "the report tells what happens; to say something to readers write a comment"),
    ("script", "there is no shell here: write `kubectl: {args: [get, pods]}`, or the acts themselves"),
    ("shell", "there is no shell here: write `kubectl: {args: [get, pods]}`, or the acts themselves"),
    ("bash", "there is no shell here: write `kubectl: {args: [get, pods]}`, or the acts themselves"),
    ("run", "there is no shell here: write `kubectl: {args: [get, pods]}`; to start a pod `apply`"),
    ("exec", "there is no shell here: write `kubectl: {args: [exec, lamp, --, ls]}`"),
    ("command", "there is no shell here: write `kubectl: {args: [get, pods]}`, or the acts themselves"),
    ("cmd", "there is no shell here: write `kubectl: {args: [get, pods]}`, or the acts themselves"),
    ("etcd", "what etcd holds is looked at by `etcdctl: {args: [get, KEY]}`"),
    ("deploy", "objects are sent by `apply`"),
    ("pod", "objects are sent by `apply`; what one looks like is `expect: {of: {kind: Pod, …}}`"),
    ("manifest", "objects are sent by `apply: {manifest: …}`"),
    ("file", "objects are sent by `apply: {file: …}`, steps put in by `include: {file: …}`"),
    ("update", "write `patch` or `replace`"),
    ("edit", "write `patch` or `replace`"),
    ("label", "write `patch: {kind: Node, name: a, type: merge, patch: {metadata: {labels: {…}}}}`"),
    ("annotate", "write `patch: {kind: Pod, name: p, type: merge, patch: {metadata: {annotations: {…}}}}`"),
    ("taint", "write `patch: {kind: Node, …}`; a played node has `taints`"),
    ("drain", "write `cordon: {node: …}` and delete the pods"),
    ("rollout", "write `patch`, and `expect` for what must come of it"),
    ("http", "write `request: {method: GET, path: /api/v1/nodes}`"),
    ("post", "write `request: {method: POST, path: …, body: …}`, or `create`"),
    ("put", "write `request: {method: PUT, path: …, body: …}`, or `replace`"),
    ("loop", "write `repeat: {times: 3, steps: […]}`"),
    ("for", "write `forEach: {name: x, in: […], steps: […]}`"),
    ("withitems", "write `forEach: {name: x, in: […], steps: […]}`"),
    ("import", "write `include: {file: …}`"),
    ("call", "write `include: {file: …}`"),
    ("use", "write `include: {file: …}`"),
    ("set", "values become names by `capture`"),
    ("let", "values become names by `capture`"),
    ("var", "values become names by `capture`"),
    ("save", "values become names by `capture`"),
    ("register", "values become names by `capture`"),
    ("outputs", "values become names by `capture`"),
    ("name", "a step has no title: write a comment; `as` names its instant"),
    ("id", "`as` names a step's instant"),
    ("description", "a step has no description: write a comment"),
    ("comment", "write it behind a `#`"),
    ("if", "a step is always taken; rows of a table make trials that differ"),
    ("when", "a step is always taken; to wait for an instant write `wait`"),
    ("try", "steps stand in `spec.steps` one after another, without a `try`"),
    ("catch", "evidence is saved by itself when a step fails"),
    ("finally", "what is always done stands in `spec.cleanup`"),
    ("steps", "a step is one item of the list: it begins with `- ` and its verb"),
    ("cut", "write `power: {board: a, do: cut}` or `link: {board: a, do: cut}`"),
    ("restore", "write `power: {board: a, do: restore}`"),
    ("reboot", "write `power: {board: a, do: cycle}`"),
    ("reset", "write `power: {board: a, do: cycle}`"),
    ("kill", "write `controlPlane: {do: kill}` or `power: {board: a, do: cut}`"),
    ("restart", "write `controlPlane: {do: restart}` or `power: {board: a, do: cycle}`"),
    (
        "stop",
        "write `controlPlane: {do: stop}`, `node: {name: n1, renew: stop}` or `power: {board: a, do: cut}`",
    ),
    ("start", "write `controlPlane: {do: start}` or `power: {board: a, do: restore}`"),
    ("network", "write `link: {board: a, do: cut}`"),
    ("partition", "write `link: {board: a, do: cut}`"),
];

/// What a word that another tool's steps begin with, or have, is here.
pub(crate) fn meant_step(word: &str) -> Option<&'static str> {
    let plain: String =
        word.chars().filter(|c| !matches!(c, '-' | '_')).collect::<String>().to_ascii_lowercase();
    STEPS.iter().find(|(known, _)| *known == plain).map(|(_, remedy)| *remedy)
}

/// Operators of other matchers.
static OPERATORS: &[(&str, &str)] = &[
    ("exists", "write {$is: present} or {$is: absent}"),
    ("present", "write {$is: present}"),
    ("absent", "write {$is: absent}"),
    ("null", "write {$is: absent}"),
    ("empty", "write {$count: 0}"),
    ("in", "write {$oneOf: [first, second]}"),
    ("nin", "write {$not: {$oneOf: [first, second]}}"),
    ("or", "write {$oneOf: [first, second]}"),
    ("and", "operators side by side in one mapping must all hold: {$ge: 1, $lt: 5}"),
    ("nor", "write {$not: {$oneOf: [first, second]}}"),
    ("size", "write {$count: 2}"),
    ("length", "write {$count: 2}"),
    ("len", "write {$count: 2}"),
    ("elemMatch", "write {$any: …}"),
    ("some", "write {$any: …}"),
    ("every", "write {$all: …}"),
    ("contains", "a text is searched by {$regex: …}; a list has an element by listing it, or by {$any: …}"),
    ("match", "write {$regex: …}"),
    ("matches", "write {$regex: …}"),
    ("like", "write {$regex: …}"),
    ("startsWith", "write {$regex: ^…}"),
    ("endsWith", "write {$regex: …$}"),
    ("equals", "write {$eq: …}, or the value itself"),
    ("min", "write {$ge: …}"),
    ("max", "write {$le: …}"),
    ("type", "there is no operator for types; write `cel`"),
    ("cel", "`cel` stands beside `match`, not in it"),
];

/// What an operator of another matcher is here.
pub(crate) fn meant_operator(word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches('$');
    OPERATORS.iter().find(|(known, _)| *known == word).map(|(_, remedy)| *remedy)
}

/// Words for what is done or is so, each with ours; the first that is possible counts.
static WORDS: &[(&str, &[&str])] = &[
    ("off", &["cut", "stop", "never"]),
    ("on", &["restore", "heal", "start", "now"]),
    ("down", &["cut", "stop"]),
    ("up", &["restore", "heal", "start"]),
    ("no", &["stop", "never"]),
    ("none", &["stop", "never"]),
    ("false", &["stop", "never"]),
    ("yes", &["now"]),
    ("true", &["now"]),
    ("disconnect", &["cut"]),
    ("connect", &["heal", "restore"]),
    ("reset", &["cycle", "restart"]),
    ("reboot", &["cycle", "restart"]),
    ("restart", &["cycle"]),
    ("freeze", &["hang"]),
    ("pause", &["hang", "stop"]),
    ("unfreeze", &["resume"]),
    ("continue", &["resume"]),
    ("latency", &["delay"]),
    ("slow", &["delay"]),
    ("drop", &["loss", "cut"]),
    ("crash", &["kill"]),
    ("kill9", &["kill"]),
    ("sigkill", &["kill"]),
    ("notready", &["unready"]),
];

/// Ours for a word of another tool, if it is one of `possible`.
pub(crate) fn meant_word<'a>(word: &str, possible: &[&'a str]) -> Option<&'a str> {
    let plain: String =
        word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let (_, ours) = WORDS.iter().find(|(known, _)| *known == plain)?;
    ours.iter().find_map(|ours| possible.iter().find(|word| *word == ours).copied())
}

/// Ours for a variable of other dialects of CEL, if it is one of `roots`.
pub(crate) fn meant_variable(word: &str, roots: &[&str]) -> Option<&'static str> {
    let ours: &[&'static str] = match word {
        "status" => return roots.contains(&"object").then_some("object.status"),
        "spec" => return roots.contains(&"object").then_some("object.spec"),
        "metadata" => return roots.contains(&"object").then_some("object.metadata"),
        "self" | "this" | "it" | "obj" | "resource" | "oldSelf" | "oldObject" => &["object", "answer"],
        "response" | "body" | "resp" | "json" => &["answer"],
        "code" | "statusCode" => &["status"],
        _ => return None,
    };
    ours.iter().find(|ours| roots.contains(ours)).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::verbs::Verb;

    #[test]
    fn no_row_stands_twice_or_is_a_word_of_ours() {
        let words: BTreeSet<&str> = STEPS.iter().map(|(word, _)| *word).collect();
        assert_eq!(words.len(), STEPS.len());
        for verb in Verb::ALL {
            assert_eq!(meant_step(verb.name()), None, "{verb:?}");
        }
        let operators: BTreeSet<&str> = OPERATORS.iter().map(|(word, _)| *word).collect();
        assert_eq!(operators.len(), OPERATORS.len());
        for operator in crate::pattern::OPERATORS {
            assert_eq!(meant_operator(operator), None, "{operator}");
        }
    }

    #[test]
    fn a_word_is_told_only_where_ours_is_possible() {
        assert_eq!(meant_step("wait_for"), meant_step("waitFor"));
        assert_eq!(meant_word("off", &["cut", "restore"]), Some("cut"));
        assert_eq!(meant_word("off", &["ready"]), None);
        assert_eq!(meant_variable("self", &["answer", "status"]), Some("answer"));
        assert_eq!(meant_key("request", &["path"], "url").and_then(|(meant, _)| meant), Some("path"));
        assert_eq!(meant_key("expect", &["of"], "within"), None);
        assert!(meant_key("power", &["board", "do"], "as").is_some());
    }
}
