//! The schema as an editor uses it: yaml-language-server, driven over its protocol, completes, explains and
//! complains while one types.
//!
//! It wants node and the package that `ci/editor` installs (a pinned version, below the target folder). Where they are
//! missing the test says so and ends; `RIGOR_EDITOR=required`, which `ci/test` sets where there is npm, makes that a failure.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Only bounds what never comes: the server answers in milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Line 10 (from 1) is the first after this.
const HEAD: &str = "# yaml-language-server: $schema=../schema/scenario.json\napiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata:\n  name: tale\n  requirements: [NODE-03]\n  profile: kube32\nspec:\n  steps:\n";

struct Server {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    asked: u64,
    opened: u64,
    diagnostics: BTreeMap<String, Value>,
}

/// The language server's script, or why there is none.
fn script() -> Result<PathBuf, String> {
    if Command::new("node").arg("--version").output().is_err() {
        return Err("node is not installed".to_owned());
    }
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = test.ancestors().nth(3).ok_or("the test is not below a target folder")?;
    let script = target.join("editor/node_modules/yaml-language-server/bin/yaml-language-server");
    if script.is_file() { Ok(script) } else { Err(format!("no {}: ci/editor installs it", script.display())) }
}

impl Server {
    /// Starts the server; `None`, with the reason printed, where it is not there.
    fn start() -> Option<Server> {
        let script = match script() {
            Ok(script) => script,
            Err(reason) => {
                let required = std::env::var("RIGOR_EDITOR").is_ok_and(|value| value == "required");
                assert!(!required, "RIGOR_EDITOR=required, and {reason}");
                eprintln!("skipped: the schema is not tried in yaml-language-server: {reason}");
                return None;
            }
        };
        let mut child = Command::new("node")
            .arg(script)
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let input = child.stdin.take().expect("piped");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut server = Server { child, input, messages, asked: 0, opened: 0, diagnostics: BTreeMap::new() };
        server.ask(
            "initialize",
            &json!({"processId": std::process::id(), "rootUri": null, "capabilities": {"textDocument": {
                "completion": {"completionItem": {"snippetSupport": true, "documentationFormat": ["markdown"]}},
                "hover": {"contentFormat": ["markdown"]},
            }}}),
        );
        server.tell("initialized", &json!({}));
        let settings = json!({"settings": {"yaml": settings()}});
        server.tell("workspace/didChangeConfiguration", &settings);
        Some(server)
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Takes the next message: answers what the server asks, keeps its diagnostics, returns its answers.
    fn next(&mut self) -> Option<Value> {
        let message = self.messages.recv_timeout(PATIENCE).expect("the server answers");
        match (message["method"].as_str(), &message["id"]) {
            (Some("textDocument/publishDiagnostics"), _) => {
                let uri = message["params"]["uri"].as_str().unwrap_or_default().to_owned();
                self.diagnostics.insert(uri, message["params"]["diagnostics"].clone());
                None
            }
            (Some("workspace/configuration"), id) => {
                let items = message["params"]["items"].as_array().cloned().unwrap_or_default();
                let sections: Vec<Value> = items
                    .iter()
                    .map(|item| if item["section"] == "yaml" { settings() } else { json!({}) })
                    .collect();
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": sections}));
                None
            }
            (Some(_), Value::Null) => None,
            (Some(_), id) => {
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": null}));
                None
            }
            (None, _) => Some(message),
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            if let Some(answer) = self.next().filter(|answer| answer["id"] == id) {
                return answer["result"].clone();
            }
        }
    }

    /// Opens a document beside the suites and waits for what the server says of it.
    fn open(&mut self, text: &str) -> (String, Vec<(u64, String)>) {
        self.opened += 1;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/binding");
        let folder = folder.canonicalize().expect("the suites");
        let uri = format!("file://{}/typed-{}.yaml", folder.display(), self.opened);
        self.tell(
            "textDocument/didOpen",
            &json!({"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": text}}),
        );
        while !self.diagnostics.contains_key(&uri) {
            self.next();
        }
        let told = self.diagnostics[&uri].as_array().cloned().unwrap_or_default();
        let line = |told: &Value| told["range"]["start"]["line"].as_u64().unwrap_or_default() + 1;
        let told = told
            .iter()
            .map(|told| (line(told), told["message"].as_str().unwrap_or_default().to_owned()))
            .collect();
        (uri, told)
    }

    /// What the server offers at the end of a text, by label.
    fn offers(&mut self, text: &str) -> BTreeMap<String, Value> {
        let (uri, _) = self.open(text);
        let line = text.matches('\n').count();
        let character = text.rsplit('\n').next().map_or(0, |last| last.chars().count());
        let answer = self.ask(
            "textDocument/completion",
            &json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}),
        );
        let items = answer["items"].as_array().or(answer.as_array()).cloned().unwrap_or_default();
        items.into_iter().map(|item| (item["label"].as_str().unwrap_or_default().to_owned(), item)).collect()
    }

    /// What the server says about the word at a place, line from 1 and column from 1.
    fn hover(&mut self, text: &str, line: usize, column: usize) -> String {
        let (uri, _) = self.open(text);
        let answer = self.ask(
            "textDocument/hover",
            &json!({"textDocument": {"uri": uri}, "position": {"line": line - 1, "character": column - 1}}),
        );
        answer["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn settings() -> Value {
    json!({"validate": true, "completion": true, "hover": true, "schemaStore": {"enable": false}})
}

fn read_message(output: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(':') {
            Some(("Content-Length", value)) => length = value.trim().parse().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

#[test]
fn an_editor_completes_verbs_keys_and_words() {
    let Some(mut server) = Server::start() else { return };
    let verbs = server.offers(&format!("{HEAD}    - "));
    for verb in rigor_model::Verb::ALL {
        assert!(verbs.contains_key(verb.name()), "{} is not offered: {:?}", verb.name(), verbs.keys());
    }
    assert!(verbs.contains_key("as"));
    let power = verbs["power"].to_string();
    assert!(power.contains("Switches a board's power"), "{power}");
    assert!(power.contains("board: ") && power.contains("do: "), "its keys come along: {power}");

    let check = |offers: BTreeMap<String, Value>, wanted: &[&str], unwanted: &[&str]| {
        for label in wanted {
            assert!(offers.contains_key(*label), "`{label}` is not offered: {:?}", offers.keys());
        }
        for label in unwanted {
            assert!(!offers.contains_key(*label), "`{label}` is offered: {:?}", offers.keys());
        }
    };
    let inside = server.offers(&format!("{HEAD}    - expect:\n        of: {{kind: Pod}}\n        "));
    check(inside, &["match", "count", "within", "between"], &["of", "power", "do", "for"]);
    let words = server.offers(&format!("{HEAD}    - power:\n        board: a\n        do: "));
    check(words, &["cut", "restore", "cycle", "hang", "resume"], &["board"]);
    let kinds = server.offers(&format!("{HEAD}    - delete:\n        kind: "));
    check(kinds, &["Pod", "Node", "Deployment"], &["name"]);
    let operators = server.offers(&format!(
        "{HEAD}    - expect:\n        of: {{kind: Pod}}\n        match:\n          status:\n            $"
    ));
    check(operators, &["$is", "$regex", "$oneOf"], &["of"]);
    let nested =
        server.offers(&format!("{HEAD}    - repeat:\n        times: 2\n        steps:\n          - "));
    check(nested, &["power", "expect", "repeat"], &["times"]);
    let constants = server.offers(&HEAD.replace("  steps:\n", "  constants:\n    "));
    check(constants, &["leaseDuration", "checkPeriod"], &["slack"]);
}

#[test]
fn an_editor_tells_what_is_wrong_where_it_is() {
    let Some(mut server) = Server::start() else { return };
    let mut check = |steps: &str, expected: &[(u64, &str)]| {
        let indented: String = steps.lines().map(|line| format!("    {line}\n")).collect();
        let (_, told) = server.open(&format!("{HEAD}{indented}"));
        assert_eq!(told.len(), expected.len(), "{steps}\n{told:#?}");
        for ((line, part), (found, message)) in expected.iter().zip(&told) {
            assert!(
                line == found && message.contains(part),
                "{steps}: not `{part}` in line {line}: {told:?}"
            );
        }
    };
    check("- power: {board: a, do: cut}\n  as: outage", &[]);
    check("- exepct: {of: {kind: Pod}}", &[(10, "Property exepct is not allowed")]);
    check(
        "- wait: 1s\n- power:\n    board: a\n    doo: cut\n    do: cut",
        &[(13, "Property doo is not allowed")],
    );
    check("- wait: 1s\n- power: {board: a}", &[(11, "Missing property \"do\"")]);
    check("- power: {board: a, do: off}", &[(10, "one of cut, restore, cycle, hang, resume")]);
    check("- wait: 5", &[(10, "a duration with its unit")]);
    check("- scale:\n    name: web\n    replicas: many", &[(12, "a whole number from 0 to 10000")]);
    check("- expect:\n    within: 5s", &[(10, "expect needs one of of, console, request")]);
    check("- never: {of: {kind: Pod}}", &[(10, "never needs one of for, until")]);
    check(
        "- expect:\n    of: {kind: Pod}\n    within: 5s\n    between: [1s, 2s]",
        &[(13, "`within` stands here already")],
    );
    check("- power: {board: a, do: cut}\n  link: {board: a, do: cut}", &[(11, "a step has one verb")]);
    check("- as: outage", &[(10, "a step needs a verb: apply, ")]);
    check("- repeat: {times: 2, steps: [{wait: 1s}]}\n  as: x", &[(11, "`repeat` takes no `as`")]);
    check(
        "- expect:\n    of: {kind: Pod}\n    match: {spec: {x: {$gte: 1}}}",
        &[(12, "no operator of that name")],
    );
    check("- expect:\n    of: {kind: Pod}\n    match: {spec: }", &[(12, "nothing to match")]);
    check("- power: {board: a, do: cut}\n  as: power-cut", &[(11, "a hyphen would be a minus")]);
    check("- request: {method: get, path: /x}", &[(10, "one of GET, POST, ")]);
}

#[test]
fn an_editor_explains_what_it_points_at() {
    let Some(mut server) = Server::start() else { return };
    let text = format!(
        "{HEAD}    - power: {{board: a, do: cut}}\n    - expect: {{of: {{kind: Pod}}, within: 5s}}\n"
    );
    let verb = server.hover(&text, 10, 8);
    assert!(
        verb.contains("Switches a board's power") && verb.contains("- power: {board: a, do: cut}"),
        "{verb}"
    );
    let key = server.hover(&text, 10, 26);
    assert!(key.contains("What is done") && key.contains("restore"), "{key}");
    let within = server.hover(&text, 11, 36);
    assert!(within.contains("How long the window is") && within.contains("10s"), "{within}");
    let profile = server.hover(&text, 7, 4);
    assert!(profile.contains("Whose behaviour it shows") && profile.contains("kube32"), "{profile}");
}

#[test]
fn no_shipped_scenario_displeases_an_editor() {
    let Some(mut server) = Server::start() else { return };
    let suites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites");
    let (mut count, mut displeased) = (0, Vec::new());
    for area in std::fs::read_dir(suites).expect("the suites").flatten() {
        for file in std::fs::read_dir(area.path()).into_iter().flatten().flatten() {
            let Ok(text) = std::fs::read_to_string(file.path()) else { continue };
            if !text.contains("\nkind: Scenario") || text.contains("\nkind: Rig") {
                continue;
            }
            let text = if text.contains("$schema=") {
                text
            } else {
                format!("# yaml-language-server: $schema=../schema/scenario.json\n{text}")
            };
            let (_, told) = server.open(&text);
            if !told.is_empty() {
                displeased.push(format!("{}: {told:?}", file.path().display()));
            }
            count += 1;
        }
    }
    assert!(displeased.is_empty(), "{}", displeased.join("\n"));
    assert!(count > 100, "{count} scenarios");
}
