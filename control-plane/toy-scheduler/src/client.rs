//! What is sent to the API server: bindings and events (EXT-05). A request that got no answer is sent again, which does
//! no harm: the pod's uid stands in the binding and in the event's name, so nothing is bound or said twice.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::PostParams;
use kube::core::Status;
use kube::{Api, Client, Error};

use crate::clock;
use crate::cluster::PodRef;
use crate::{messages, told};

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);
/// So often the server may say that it cannot just now, before that counts as its answer.
const REFUSALS: usize = 40;

/// Sends requests in the name of a scheduler.
pub struct Sender {
    client: Client,
    scheduler: String,
    lost: Cell<bool>,
}

/// What became of a binding.
pub enum Bound {
    /// The pod is on the node.
    Here,
    /// Somebody else was faster: the pod is bound, going or gone. The status code, and what the server said.
    Late(u16, String),
    /// What the server said.
    Refused(String),
}

/// An answer, and whether one before it got lost.
struct Answer<T> {
    result: Result<T, String>,
    code: u16,
    repeated: bool,
}

async fn answer<T, F: Future<Output = Result<T, Error>>>(what: &str, send: impl Fn() -> F) -> Answer<T> {
    let (mut repeated, mut refusals) = (false, 0);
    loop {
        let problem = match clock::within(ANSWER_WITHIN, send()).await {
            Some(Ok(value)) => return Answer { result: Ok(value), code: 200, repeated },
            Some(Err(Error::Api(status))) if is_final(&status) || refusals == REFUSALS => {
                return Answer { result: Err(status.message), code: status.code, repeated };
            }
            Some(Err(Error::Api(status))) => {
                refusals += 1;
                status.message
            }
            Some(Err(error)) => told::request(&error),
            None => format!("no answer within {ANSWER_WITHIN:?}"),
        };
        if !repeated {
            tracing::warn!("{what}: {problem}; trying again");
        }
        repeated = true;
        clock::pause(PAUSE).await;
    }
}

fn is_final(status: &Status) -> bool {
    status.code < 500 && status.code != 429
}

impl Sender {
    /// Sends by `client`.
    pub fn new(client: Client, scheduler: &str) -> Self {
        Self { client, scheduler: scheduler.to_owned(), lost: Cell::new(false) }
    }

    /// Whether an answer was lost since this was last asked: then watches may have ended unnoticed.
    pub fn take_lost(&self) -> bool {
        self.lost.take()
    }

    async fn answer<T, F: Future<Output = Result<T, Error>>>(
        &self,
        what: &str,
        send: impl Fn() -> F,
    ) -> Answer<T> {
        let answer = answer(what, send).await;
        self.lost.set(self.lost.get() || answer.repeated);
        answer
    }

    /// Binds the pod to the node.
    pub async fn bind(&self, pod: &PodRef, node: &str) -> Bound {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let (binding, parameters) = (messages::binding(pod, node), PostParams::default());
        let send = || pods.create_subresource::<_, Status>("binding", &pod.name, &parameters, &binding);
        let answer = self.answer(&format!("binding {pod}"), send).await;
        match answer.result {
            Ok(_) => Bound::Here,
            Err(_) if answer.code == 409 && answer.repeated && self.is_on(&pods, pod, node).await => {
                Bound::Here
            }
            Err(message) if matches!(answer.code, 404 | 409) => Bound::Late(answer.code, message),
            Err(message) => Bound::Refused(message),
        }
    }

    /// Whether a binding whose answer was lost had been made after all.
    async fn is_on(&self, pods: &Api<Pod>, pod: &PodRef, node: &str) -> bool {
        let found = self.answer(&format!("reading {pod}"), || pods.get(&pod.name)).await.result;
        found.is_ok_and(|found| {
            found.metadata.uid.as_ref() == Some(&pod.uid)
                && found.spec.and_then(|spec| spec.node_name).as_deref() == Some(node)
        })
    }

    /// Says on the pod that it was placed.
    pub async fn scheduled(&self, pod: &PodRef, node: &str) {
        self.say(pod, messages::scheduled(&self.scheduler, pod, node, clock::wall())).await;
    }

    /// Says on the pod that it was not placed, and why.
    pub async fn failed(&self, pod: &PodRef, reason: &str) {
        self.say(pod, messages::failed(&self.scheduler, pod, reason, clock::wall())).await;
    }

    async fn say(&self, pod: &PodRef, event: Event) {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &pod.namespace);
        let reason = event.reason.clone().unwrap_or_default();
        let parameters = PostParams::default();
        let answer = self.answer(&format!("event of {pod}"), || events.create(&parameters, &event)).await;
        match answer.result {
            Ok(_) => {}
            Err(_) if answer.code == 409 => tracing::debug!("{reason} was said of {pod} before"),
            Err(message) => tracing::warn!("event {reason} of {pod} refused: {message}"),
        }
    }
}
