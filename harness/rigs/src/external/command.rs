//! kubectl on somebody else's cluster: it is given the user's own kubeconfig and the trial's namespace, and run only
//! where its arguments show that it reads, or writes inside that namespace. Where they do not show it, it is not run.

use super::kubeconfig::Access;
use super::scope::Scope;
use crate::binaries::on_path;
use crate::world::{ApiRequest, Infra};
use rigor_model::kinds::KINDS;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Subcommands that only read.
const READS: [&str; 12] = [
    "get",
    "describe",
    "logs",
    "wait",
    "explain",
    "version",
    "api-resources",
    "api-versions",
    "cluster-info",
    "events",
    "top",
    "auth",
];

/// Flags that lead to another cluster, user or namespace.
const ASTRAY: [&str; 9] = [
    "--kubeconfig",
    "--context",
    "--cluster",
    "--user",
    "--server",
    "-s",
    "--token",
    "--as",
    "--all-namespaces",
];

/// The command, with a cache of the trial's own.
pub(crate) fn command(
    access: &Access,
    scope: &Scope,
    cache: &Path,
    argv: &[String],
) -> Result<Command, Infra> {
    let kubectl = on_path("kubectl")
        .ok_or_else(|| Infra::lasting("kubectl is not installed", "put it on the search path"))?;
    let mut command = Command::new(kubectl);
    if let Some(file) = &access.file {
        command.arg("--kubeconfig").arg(file);
    }
    command.arg("--context").arg(&access.context).arg("--namespace").arg(&scope.namespace);
    command.arg("--cache-dir").arg(cache).args(argv);
    Ok(command)
}

/// Whether it may be run; if not, why.
pub(crate) fn allows(scope: &Scope, argv: &[String], stdin: Option<&str>) -> Result<(), String> {
    if scope.exclusive {
        return Ok(());
    }
    let said = || format!("kubectl {} is not run, because", argv.join(" "));
    let flag = |argument: &String| argument.split('=').next().unwrap_or_default().to_owned();
    if let Some(astray) =
        argv.iter().map(flag).find(|flag| ASTRAY.contains(&flag.as_str()) && flag != "--all-namespaces")
    {
        return Err(format!("{} {astray} leads elsewhere", said()));
    }
    let verb = argv.first().map(String::as_str).unwrap_or_default();
    if READS.contains(&verb) {
        return Ok(());
    }
    let value = |names: &[&str]| {
        argv.iter().enumerate().find_map(|(index, argument)| match argument.split_once('=') {
            Some((name, value)) if names.contains(&name) => Some(value.to_owned()),
            _ if names.contains(&argument.as_str()) => argv.get(index + 1).cloned(),
            _ => None,
        })
    };
    if argv.iter().any(|argument| matches!(argument.as_str(), "-A" | "--all-namespaces")) {
        return Err(format!("{} it writes to all namespaces", said()));
    }
    if let Some(namespace) = value(&["-n", "--namespace"]).filter(|namespace| *namespace != scope.namespace) {
        return Err(format!("{} {namespace} is not the trial's namespace", said()));
    }
    if let Some(path) = value(&["--raw"]) {
        let method = match verb {
            "create" => "POST",
            "replace" => "PUT",
            "delete" => "DELETE",
            _ => return Err(format!("{} it is not known what it does", said())),
        };
        return scope
            .allows(&ApiRequest::new(method, path, None))
            .map_err(|why| format!("{} it is {why}", said()));
    }
    let from_stdin = value(&["-f", "--filename"]).as_deref() == Some("-");
    if from_stdin && matches!(verb, "apply" | "create" | "replace" | "delete" | "patch") {
        let object: Option<Value> = stdin.and_then(|text| serde_json::from_str(text).ok());
        let kind = object.as_ref().and_then(|object| object["kind"].as_str()).unwrap_or_default();
        if KINDS.iter().any(|row| row.namespaced && row.kind == kind) {
            return Ok(());
        }
        return Err(format!("{} the kind of its object is not known to live in a namespace", said()));
    }
    let target = argv.get(1).map(|target| target.split('/').next().unwrap_or_default().to_lowercase());
    let inside = target.is_some_and(|target| {
        KINDS.iter().any(|row| row.namespaced && (row.plural == target || row.kind.to_lowercase() == target))
    });
    let writes = ["delete", "scale", "label", "annotate", "patch", "create", "expose", "run"];
    if inside && writes.contains(&verb) && value(&["-f", "--filename", "-k", "--kustomize"]).is_none() {
        return Ok(());
    }
    Err(format!(
        "{} its arguments do not show that it stays in the trial's namespace (exclusive-cluster)",
        said()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_certainly_stays_inside_is_run() {
        let mut scope = Scope { namespace: "ours".to_owned(), ..Scope::default() };
        let pod = "{\"kind\":\"Pod\"}";
        let node = "{\"kind\":\"Node\"}";
        for (line, stdin, allowed) in [
            ("get pods -A", None, true),
            ("wait pods/p --for=delete", None, true),
            ("get pods --context other", None, false),
            ("get pods --server=https://other", None, false),
            ("delete pods --all", None, true),
            ("delete pods --all -n ours", None, true),
            ("delete pods --all -n default", None, false),
            ("delete pods --all --namespace=default", None, false),
            ("delete pods --all -A", None, false),
            ("delete deployment/web", None, true),
            ("delete nodes --all", None, false),
            ("delete namespace default", None, false),
            ("delete -f file.yaml", None, false),
            ("delete pods -f file.yaml", None, false),
            ("apply -f -", Some(pod), true),
            ("apply -f -", Some(node), false),
            ("apply -f -", Some("kind: Pod"), false),
            ("apply -k dir", None, false),
            ("create --raw /api/v1/namespaces/ours/pods/p/binding -f -", Some(pod), true),
            ("create --raw /api/v1/namespaces/default/pods/p/binding -f -", Some(pod), false),
            ("drain n1", None, false),
            ("exec p -- ls", None, false),
            ("proxy", None, false),
            ("", None, false),
        ] {
            let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let answer = allows(&scope, &argv, stdin);
            assert_eq!(answer.is_ok(), allowed, "{line}: {answer:?}");
            scope.exclusive = true;
            assert!(allows(&scope, &argv, stdin).is_ok());
            scope.exclusive = false;
        }
    }
}
