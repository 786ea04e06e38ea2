//! A server with a handful of paths, in the place of the control plane. What it counts and says is what it writes.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::routing::{get, post};
use control_plane::Clock;
use futures_util::{FutureExt, stream};
use serde_json::json;

use crate::clock::ProcessClock;
use crate::fuse::Fuse;
use crate::plane::{Launch, Plane};

/// Lines that watchers get, and who waits for more.
#[derive(Default)]
pub(super) struct Shared {
    lines: Mutex<(Vec<String>, Vec<Waker>)>,
    answered: Mutex<u32>,
    fuse: Arc<Fuse>,
}

impl Shared {
    fn say(&self, line: String) {
        let wakers = {
            let mut lines = self.lines.lock().unwrap();
            lines.0.push(line);
            std::mem::take(&mut lines.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// A body that has every line from now on, and never ends.
    fn watch(self: &Arc<Self>) -> Body {
        let (shared, mut next) = (self.clone(), self.lines.lock().unwrap().0.len());
        Body::from_stream(stream::poll_fn(move |context| {
            let mut lines = shared.lines.lock().unwrap();
            if let Some(line) = lines.0.get(next) {
                next += 1;
                return Poll::Ready(Some(Ok::<_, Infallible>(format!("{line}\n"))));
            }
            lines.1.push(context.waker().clone());
            Poll::Pending
        }))
    }
}

/// A server with a handful of paths; says a line to its watchers every 2 s.
struct Small {
    shared: Arc<Shared>,
    clock: Arc<ProcessClock>,
    next: RefCell<Duration>,
}

impl Plane for Small {
    fn router(&self) -> Router {
        let (counted, watched, saying) = (self.shared.clone(), self.shared.clone(), self.shared.clone());
        let (listed, said) = (self.shared.clone(), self.shared.clone());
        Router::new()
            .route(
                "/api/v1/configmaps",
                get(async move |query: RawQuery| match query.0 {
                    Some(_) => listed.watch(),
                    None => Body::from(
                        json!({
                            "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"},
                            "items": [{"metadata": {"name": "old"}}],
                        })
                        .to_string(),
                    ),
                }),
            )
            .route(
                "/count",
                get(async move || {
                    let answer = {
                        let mut answered = counted.answered.lock().unwrap();
                        *answered += 1;
                        answered.to_string()
                    };
                    counted.fuse.burn().await;
                    answer
                }),
            )
            .route("/said", get(async move || said.lines.lock().unwrap().0.len().to_string()))
            .route("/watch", get(async move || watched.watch()))
            .route("/say", post(async move |body: String| saying.say(body)))
            .route("/wait", get(async || std::future::pending::<()>().await))
            .route("/panic", get(async || assert!(std::hint::black_box(false), "out of order")))
    }

    fn reconcile(&self) -> Result<Option<Duration>, String> {
        let mut next = self.next.borrow_mut();
        if self.clock.mono() >= *next {
            *next += Duration::from_secs(2);
            self.shared.say(format!("due at {:?}", self.clock.mono()));
            self.shared.fuse.burn().now_or_never().ok_or("it waited")?;
        }
        Ok(Some(*next))
    }
}

pub(super) struct SmallLaunch(pub(super) Arc<Shared>);

impl Launch for SmallLaunch {
    fn launch(&mut self, clock: Arc<ProcessClock>, _: u32) -> Result<Box<dyn Plane>, String> {
        Ok(Box::new(Small { shared: self.0.clone(), clock, next: RefCell::new(Duration::from_secs(2)) }))
    }

    fn fuse(&self) -> Arc<Fuse> {
        Arc::clone(&self.0.fuse)
    }
}
