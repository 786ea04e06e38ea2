//! `/healthz`, `/livez` and `/readyz`: named checks, in Kubernetes' words.
//!
//! Alive means that a restart would not help: a full disk is no reason to be killed, controllers that stand still are. Ready
//! means that clients may be sent here. Why a check fails stands in the log and under the check's own path, which not everyone
//! may read; the public answers only say which one.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use http::Response;

use super::query::{Query, get};
use super::respond;
use crate::service::Service;
use crate::store::Key;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// It answers.
    Ping,
    /// It can say what happens.
    Log,
    /// The store can be read; Kubernetes' name, which its tools know.
    Etcd,
    /// The controllers move.
    Controllers,
    /// The store took its last write.
    Store,
    /// What decisions are made from is as new as the store.
    InformerSync,
    /// It was not asked to end.
    Shutdown,
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Log => "log",
            Self::Etcd => "etcd",
            Self::Controllers => "controllers",
            Self::Store => "store",
            Self::InformerSync => "informer-sync",
            Self::Shutdown => "shutdown",
        }
    }

    async fn run(self, service: &Service) -> Result<(), String> {
        match self {
            Self::Ping | Self::Log => Ok(()),
            Self::Etcd => {
                let key = Key::new("namespaces", "", "default");
                service.store.get(&key).await.map(drop).map_err(|error| error.to_string())
            }
            Self::Controllers => match service.vitals.stalled(service.clock.mono()) {
                Some(silent) => {
                    Err(format!("the controllers have not moved for {} seconds", silent.as_secs()))
                }
                None => Ok(()),
            },
            Self::Store => match service.vitals.store_failure() {
                Some(why) => Err(format!("the last write failed: {why}")),
                None => Ok(()),
            },
            Self::InformerSync => {
                let newest = service.store.revision();
                match newest.saturating_sub(service.fresh().cursor()) {
                    0 => Ok(()),
                    behind => Err(format!("{behind} changes are not taken in yet")),
                }
            }
            Self::Shutdown if service.vitals.is_ending() => Err("process is shutting down".into()),
            Self::Shutdown => Ok(()),
        }
    }
}

const LIVE: &[Check] = &[Check::Ping, Check::Log, Check::Etcd, Check::Controllers];
const READY: &[Check] = &[
    Check::Ping,
    Check::Log,
    Check::Etcd,
    Check::Controllers,
    Check::Store,
    Check::InformerSync,
    Check::Shutdown,
];

fn checks(endpoint: &str) -> &'static [Check] {
    match endpoint {
        "readyz" => READY,
        _ => LIVE,
    }
}

/// Every path that answers for an endpoint or one of its checks.
pub fn paths() -> Vec<String> {
    let mut paths = Vec::new();
    for endpoint in ["healthz", "livez", "readyz"] {
        paths.push(format!("/{endpoint}"));
        paths.extend(checks(endpoint).iter().map(|check| format!("/{endpoint}/{}", check.name())));
    }
    paths
}

/// Answers for an endpoint, or for one of its checks.
pub async fn answer(
    service: &Arc<Service>,
    endpoint: &str,
    check: Option<&str>,
    query: &Query,
) -> Response<Body> {
    if let Some(check) = check {
        let Some(check) = checks(endpoint).iter().find(|known| known.name() == check) else {
            return not_found();
        };
        return match check.run(service).await {
            Ok(()) => respond::word("ok"),
            Err(why) => respond::text(500, format!("internal server error: {why}\n")),
        };
    }
    let mut excluded: BTreeSet<&str> =
        query.iter().filter(|(name, _)| name == "exclude").map(|(_, check)| check.as_str()).collect();
    let (mut text, mut failed) = (String::new(), false);
    for check in checks(endpoint) {
        let name = check.name();
        if excluded.remove(name) {
            text += &format!("[+]{name} excluded: ok\n");
            continue;
        }
        match check.run(service).await {
            Ok(()) => text += &format!("[+]{name} ok\n"),
            Err(why) => {
                tracing::debug!(check = name, why, "{endpoint} check failed");
                failed = true;
                text += &format!("[-]{name} failed: reason withheld\n");
            }
        }
    }
    if !excluded.is_empty() {
        let unknown: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let unknown = unknown.join(", ");
        text += &format!("warn: some health checks cannot be excluded: no matches for {unknown}\n");
    }
    if failed {
        return respond::text(500, format!("{text}{endpoint} check failed\n"));
    }
    if get(query, "verbose").is_none() {
        return respond::text(200, "ok".into());
    }
    respond::text(200, format!("{text}{endpoint} check passed\n"))
}

/// What a path without meaning gets.
pub fn not_found() -> Response<Body> {
    respond::text(404, "404 page not found\n".into())
}
