//! The world of a trial on a cluster that is there already.

use super::cluster::{Inner, Present, Turn, evidence, locked};
use super::command;
use super::scope::BOARDS_ANNOTATION;
use crate::place::Place;
use crate::processes::request_fact;
use crate::recorder::Source;
use crate::recording::{Opening, Recording};
use crate::streams;
use crate::tool;
use crate::world::{ApiAnswer, ApiRequest, ControlPlaneAct, Infra, LinkChange, PowerAct, ToolOutcome, World};
use futures_util::future::{BoxFuture, join_all};
use reqwest::Response;
use rigor_model::Constants;
use rigor_model::act::Tool;
use rigor_model::kinds::ObjectKind;
use rigor_trace::{Fact, History, Micros};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for the recorder's first lists.
const SYNC_LIMIT: Duration = Duration::from_secs(60);

/// Longest page of a list.
const PAGE: u32 = 500;

/// Between two attempts while the server is away: it is not ours to hurry.
const RETRY: Duration = Duration::from_millis(250);

/// Whoever has this is on the cluster; what the trial made goes with it, also where the trial panics.
pub(super) struct Entered {
    pub(super) inner: Arc<Inner>,
    pub(super) present: Arc<Present>,
    pub(super) _turn: Turn,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Someone who stops the run does the same; then this thread waits for the process's end.
        let _ = self.inner.guarded(|| self.inner.finish(&self.present));
    }
}

/// A trial. Fields are dropped in this order: what records first, so that it does not see the cleanup.
struct Foreign {
    recording: Recording,
    sent: u32,
    entered: Entered,
    place: Place,
}

/// How often the server is polled: as rarely as the slack allows, and never more than it costs a server of others
/// nothing.
fn pulse(slack: Duration) -> Duration {
    (slack / 4).clamp(Duration::from_millis(100), Duration::from_secs(1))
}

/// Begins to record.
pub(super) fn begin(entered: Entered, constants: &Constants) -> Result<Box<dyn World>, Infra> {
    let opening = Opening::begin()?;
    let (connection, present) = (entered.inner.connection.clone(), entered.present.clone());
    let scope = locked(&present.scope).clone();
    let ask = move |path: String| -> BoxFuture<'static, Result<Response, String>> {
        let connection = connection.clone();
        Box::pin(async move { connection.ask(&path).await })
    };
    let source = Source {
        ask: Arc::new(ask),
        ledger: opening.ledger.clone(),
        keep: Arc::new(move |stream, object| locked(&present.scope).keeps(stream, object)),
        pulse: pulse(constants.slack),
        pulse_path: format!("/api/v1/namespaces/{}/configmaps?limit=1", scope.namespace),
        retry: RETRY,
        page: Some(PAGE),
    };
    let feeds = if scope.exclusive { streams::everywhere() } else { streams::of_trial(&scope.namespace) };
    let handle = entered.inner.runtime.handle().clone();
    let recording = opening
        .record(&handle, source, &feeds, SYNC_LIMIT)
        .ok_or_else(|| Infra::transient("the cluster did not answer the recorder's lists"))?;
    Ok(Box::new(Foreign { recording, sent: 0, entered, place: Place::new()? }))
}

fn no_driver(what: &str) -> Infra {
    Infra::lasting(format!("{what} of a cluster that is there already cannot be switched"), "use another rig")
}

impl Foreign {
    /// Writes down, on the trial's namespace, how the boards' Nodes were: a run that is killed cannot put them right.
    async fn remember_boards(&self) -> Result<(), String> {
        let scope = locked(&self.entered.present.scope).clone();
        let before = &self.entered.present.before;
        let kept: BTreeMap<&String, &Value> =
            before.iter().filter(|(node, _)| scope.touched.contains(*node)).collect();
        let text = serde_json::to_string(&kept).unwrap_or_default();
        let patch = json!({"metadata": {"annotations": {BOARDS_ANNOTATION: text}}});
        let path = format!("/api/v1/namespaces/{}", scope.namespace);
        let answer = self.entered.inner.connection.own("PATCH", &path, Some(&patch)).await;
        match answer.status {
            200 => Ok(()),
            status => Err(format!(
                "not sent, because what it changes could not be written down (answered {status})"
            )),
        }
    }

    /// Sends what the trial may, and notes what came of it.
    async fn exchange(&self, id: u32, mut request: ApiRequest) -> ApiAnswer {
        let (mut refused, touches) = {
            let mut scope = locked(&self.entered.present.scope);
            let refused = scope.allows(&request).err().or_else(|| self.entered.inner.barred());
            if refused.is_none() {
                scope.stamp(&mut request);
            }
            let touches = refused.is_none() && scope.touches(&request).is_some();
            (refused, touches)
        };
        if touches {
            refused = self.remember_boards().await.err();
        }
        let sent = self.recording.now();
        let answer = match refused {
            Some(why) => ApiAnswer { error: Some(why), ..ApiAnswer::default() },
            None => {
                let answer = self.entered.inner.connection.send(&request).await;
                locked(&self.entered.present.scope).note(&request, answer)
            }
        };
        self.recording.ledger.note(request_fact(id, sent, &request, &answer));
        answer
    }
}

impl World for Foreign {
    fn watch(&mut self, kind: &ObjectKind) -> Result<(), Infra> {
        let scope = locked(&self.entered.present.scope).clone();
        if !kind.namespaced && !scope.exclusive {
            return Err(Infra::lasting(
                format!("{} are the whole cluster's, and a trial looks at its own namespace", kind.stream),
                "say exclusive-cluster in the rig file where nobody else uses the cluster",
            ));
        }
        let namespace = (!scope.exclusive).then_some(scope.namespace.as_str());
        if self.recording.watch(streams::of_kind(kind, namespace)) {
            return Ok(());
        }
        Err(Infra::transient(format!("the cluster gave no list of {}", kind.stream)))
    }

    fn now(&self) -> Micros {
        self.recording.now()
    }

    fn history(&self) -> &History {
        self.recording.history()
    }

    fn record(&mut self, fact: Fact) {
        let scope = locked(&self.entered.present.scope).clone();
        let boards = scope.boards.into_iter().map(|(board, node)| Fact::Board { board, node });
        self.recording.record(fact, [Fact::Namespace { name: scope.namespace }].into_iter().chain(boards));
    }

    fn request(&mut self, request: ApiRequest) -> ApiAnswer {
        self.requests(vec![request]).pop().unwrap_or_default()
    }

    fn requests(&mut self, requests: Vec<ApiRequest>) -> Vec<ApiAnswer> {
        let first = self.sent;
        self.sent += u32::try_from(requests.len()).unwrap_or(u32::MAX);
        let answers = self.entered.inner.guarded(|| {
            let exchanges = (first..).zip(requests).map(|(id, request)| self.exchange(id, request));
            self.entered.inner.runtime.block_on(join_all(exchanges))
        });
        self.recording.take_in();
        answers.unwrap_or_default()
    }

    fn power(&mut self, board: &str, _: PowerAct) -> Result<(), Infra> {
        Err(no_driver(&format!("the power of board {board}")))
    }

    fn link(&mut self, board: &str, _: LinkChange) -> Result<(), Infra> {
        Err(no_driver(&format!("the link of board {board}")))
    }

    fn control_plane(&mut self, _: ControlPlaneAct) -> Result<(), Infra> {
        Err(no_driver("the control plane"))
    }

    fn wait(&mut self, until: Micros) {
        self.recording.wait(until);
    }

    fn boards(&self) -> Vec<String> {
        locked(&self.entered.present.scope).boards.keys().cloned().collect()
    }

    fn run(&mut self, tool: Tool, argv: &[String], stdin: Option<&str>) -> Result<ToolOutcome, Infra> {
        if tool == Tool::Etcdctl {
            return Err(Infra::lasting(
                "the etcd of a cluster that is there already is not looked into",
                "run the scenario on a rig of kind host or qemu (needs: [etcd])",
            ));
        }
        let scope = locked(&self.entered.present.scope).clone();
        command::allows(&scope, argv, stdin).map_err(|why| {
            Infra::lasting(why, "say what it does with a verb of the language, or on a cluster of its own")
        })?;
        if let Some(why) = self.entered.inner.barred() {
            return Err(Infra::transient(why));
        }
        let access = self.entered.inner.connection.access();
        let command = command::command(access, &scope, &self.place.file("kubectl-cache"), argv)?;
        let begun = self.recording.now();
        let outcome = self.entered.inner.guarded(|| tool::run(tool, command, stdin))??;
        self.recording.ran(tool, begun, argv, &outcome);
        Ok(outcome)
    }

    fn save_evidence(&mut self, dir: &Path) -> Result<(), Infra> {
        self.recording.take_in();
        evidence(&self.entered.inner, dir)
            .map_err(|error| Infra::transient(format!("{} could not be written: {error}", dir.display())))
    }

    fn close(self: Box<Self>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_others_is_polled_as_rarely_as_the_slack_allows() {
        for (slack, expected) in [(50, 100), (500, 125), (2_000, 500), (60_000, 1_000)] {
            assert_eq!(pulse(Duration::from_millis(slack)), Duration::from_millis(expected), "{slack} ms");
        }
    }
}
