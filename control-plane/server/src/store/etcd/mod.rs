//! The store that several control planes share: etcd (GHOST-06).
//!
//! Writes are transactions that compare the key's revision; reads come from a local copy that follows etcd's watch ([`feed`]).
//! A read first asks etcd for its newest revision and waits until the copy has reached it, so whatever any control plane was
//! acknowledged is seen by the next read on any other. A write is answered once the local copy has it. An answer that was lost
//! is [`StoreError::Uncertain`]; nothing is sent twice.

mod client;
mod compact;
mod feed;
mod layout;
mod proto;

pub use self::client::TlsFiles;
pub use self::compact::Compaction;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use self::client::{CallError, Client};
use self::feed::Shared;
use self::layout::{Layout, decode, encode};
use self::proto::{Compare, RequestOp, TxnRequest, TxnResponse};
use super::table::at_revision;
use super::{Answer, Change, Entry, Expect, Figures, Key, Listing, Scope, Signal, Store, StoreError, Turn};
use crate::clock::{pause, within};
use crate::leadership::Leadership;

/// A copy that does not follow for so long does not follow.
const BEHIND: Duration = Duration::from_secs(10);
/// At the start etcd may need so long to come up.
const START: Duration = Duration::from_secs(10);
const START_PAUSE: Duration = Duration::from_millis(100);
/// The mark that is written by whoever begins to lead.
const TERM: &str = "term";

/// Why there is no store; the message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// The servers or certificates cannot be used.
    #[error("--etcd-servers: {0}")]
    Configuration(String),
    /// etcd does not answer, or refuses.
    #[error("{servers}: {reason}; check that etcd runs there, or correct --etcd-servers")]
    Unreachable {
        /// As given.
        servers: String,
        /// What was tried last.
        reason: String,
    },
    /// It holds what this control plane cannot use.
    #[error("{0}")]
    Refused(String),
}

/// Objects in etcd.
#[derive(Debug)]
pub struct EtcdStore {
    shared: Arc<Shared>,
    asking: mpsc::UnboundedSender<oneshot::Sender<Result<u64, String>>>,
    /// Set in the view that only a leader writes through.
    fence: Option<Arc<Leadership>>,
    tasks: Arc<Tasks>,
}

#[derive(Debug)]
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl EtcdStore {
    /// Takes up what is stored under `prefix` and follows it. Waits a little for an etcd that is just starting.
    ///
    /// # Errors
    /// [`EtcdError`] with a remedy in its message.
    pub async fn open(
        servers: &[String],
        prefix: &str,
        tls: &TlsFiles,
        history: usize,
    ) -> Result<Self, EtcdError> {
        let layout = Layout::new(prefix);
        let mut last = "it takes too long".to_owned();
        let opened = within(START, async {
            loop {
                let client = Client::new(servers, tls).map_err(EtcdError::Configuration)?;
                match Shared::load(client, layout.clone(), history).await {
                    Ok(loaded) => return Ok(loaded),
                    Err(CallError::Refused(reason)) => return Err(EtcdError::Refused(reason)),
                    Err(error) => last = error.to_string(),
                }
                pause(START_PAUSE).await;
            }
        });
        let opened = opened.await;
        let unreachable =
            |reason: &str| EtcdError::Unreachable { servers: servers.join(","), reason: reason.to_owned() };
        let (shared, newest) = opened.unwrap_or_else(|| Err(unreachable(&last)))?;
        let shared = Arc::new(shared);
        let (asking, asked) = mpsc::unbounded_channel();
        let tasks = vec![
            tokio::spawn(Arc::clone(&shared).follow()),
            tokio::spawn(answer_newest(Arc::clone(&shared), asked)),
            tokio::spawn(compact::run(Arc::clone(&shared))),
        ];
        let store = Self { shared, asking, fence: None, tasks: Arc::new(Tasks(tasks)) };
        let reached = within(BEHIND, store.shared.reach(newest)).await;
        reached.ok_or_else(|| unreachable("its watch does not catch up"))?;
        let unreadable = store.shared.copy().unreadable.first().and_then(|key| store.shared.layout.of(key));
        match unreadable {
            None => Ok(store),
            Some(key) => Err(EtcdError::Refused(format!(
                "the key {key} in etcd holds no JSON object: give this control plane an --etcd-prefix of its own, or have the \
                 API server that wrote it store application/json"
            ))),
        }
    }

    /// The same store for decisions: whatever is written through it, is written only while this process leads, as etcd itself
    /// checks within the write.
    pub fn fenced(&self, leadership: Arc<Leadership>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            asking: self.asking.clone(),
            fence: Some(leadership),
            tasks: Arc::clone(&self.tasks),
        }
    }

    /// The object as the local copy has it, without asking etcd.
    pub fn local(&self, key: &Key) -> Option<Entry> {
        self.shared.copy().table.get(key).cloned()
    }

    /// One round of compaction, which this store makes every five minutes by itself: forgets what was before the last round,
    /// unless another process did since. Answers what the next round is to be told.
    ///
    /// # Errors
    /// When etcd does not take part.
    pub async fn compact(&self, last: Compaction) -> Result<Compaction, StoreError> {
        compact::round(&self.shared, last).await.map_err(|error| write_failed(&error))
    }

    /// Writes the lease that says who leads, and with it begins a new term: whoever led before can write no decision any more.
    /// Answers the term.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub async fn begin_term(&self, key: Key, lease: Value, expect: Expect) -> Result<u64, StoreError> {
        let also = proto::put(&self.shared.layout.mark(TERM), b"{}".to_vec());
        Ok(self.write(key, Some(lease), expect, Vec::new(), vec![also]).await?.revision)
    }

    /// One transaction on one key, with what else must hold and what else is written.
    async fn write(
        &self,
        key: Key,
        object: Option<Value>,
        expect: Expect,
        conditions: Vec<Compare>,
        also: Vec<RequestOp>,
    ) -> Result<Entry, StoreError> {
        let path = self.shared.layout.of(&key).ok_or_else(|| {
            StoreError::Unavailable(format!("there is no place in etcd for {}", key.resource))
        })?;
        let revision = match expect {
            Expect::Absent => 0,
            Expect::Revision(revision) => revision,
        };
        let (write, object) = match object {
            Some(object) => {
                let (bytes, object) = encode(object);
                (proto::put(&path, bytes), Some(object))
            }
            None => (proto::delete(&path), None),
        };
        let mut request = TxnRequest {
            compare: vec![Compare::mod_revision(&path, revision)],
            success: vec![write],
            failure: vec![proto::look(&path)],
        };
        request.compare.extend(conditions);
        request.success.extend(also);
        let term = match &self.fence {
            None => None,
            Some(leadership) => {
                let term = leadership.term().ok_or(StoreError::Deposed)?;
                let mark = self.shared.layout.mark(TERM);
                request.compare.push(Compare::mod_revision(&mark, term));
                request.failure.push(proto::look(&mark));
                Some((leadership, term))
            }
        };
        let response = self.shared.client.txn(request).await.map_err(|error| write_failed(&error))?;
        let reached = within(BEHIND, self.shared.reach(response.revision())).await;
        if !response.succeeded {
            if let Some((leadership, term)) = term
                && response.found(1).map(|mark| proto::unsigned(mark.mod_revision)) != Some(term)
            {
                leadership.lose(term);
                return Err(StoreError::Deposed);
            }
            return Err(refusal(&response, expect));
        }
        self.shared.writes.fetch_add(1, Ordering::Relaxed);
        if reached.is_none() {
            let revision = response.revision();
            return Err(StoreError::Uncertain(format!(
                "it was made at revision {revision}, but this control plane cannot read the store back yet"
            )));
        }
        let revision = response.revision();
        match object {
            Some(object) => Ok(Entry::new(revision, Arc::new(at_revision(object, revision)))),
            None => {
                let last = response.found(0).and_then(|last| decode(&last.value, revision));
                last.ok_or_else(|| StoreError::Uncertain("etcd did not say what it removed".into()))
            }
        }
    }

    async fn newest(&self) -> Result<u64, StoreError> {
        let (answer, answered) = oneshot::channel();
        let ended = || StoreError::Unavailable("its task has ended".into());
        self.asking.send(answer).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?.map_err(StoreError::Unavailable)
    }

    async fn caught_up(&self) -> Result<u64, StoreError> {
        let before = self.shared.copy().table.revision();
        let newest = self.newest().await?;
        if newest < before {
            return Err(StoreError::Unavailable(format!(
                "etcd has gone back from revision {before} to {newest}, as after a restored backup: restart every control plane"
            )));
        }
        let behind = || StoreError::Unavailable("etcd's watch does not keep up".into());
        within(BEHIND, self.shared.reach(newest)).await.ok_or_else(behind)?;
        Ok(self.shared.copy().table.revision())
    }

    async fn list_at(&self, scope: Scope<'_>, at: u64) -> Result<Listing, StoreError> {
        let compacted = match self.shared.copy().table.list(scope, Some(at)) {
            Err(error @ StoreError::Compacted { .. }) => error,
            listed => return listed,
        };
        let Some(range) = self.shared.layout.scope(scope.resource, scope.namespace) else {
            return Ok(Listing { revision: at, entries: Vec::new() });
        };
        let kvs = match feed::read_range(&self.shared.client, range, at).await {
            Ok(kvs) => kvs,
            Err(CallError::Compacted) => return Err(compacted),
            Err(error) => return Err(StoreError::Unavailable(error.to_string())),
        };
        let mut entries: Vec<(Key, Entry)> = kvs
            .into_iter()
            .filter_map(|kv| match self.shared.layout.place(&kv.key) {
                layout::Place::Object(key) => {
                    Some((key, decode(&kv.value, proto::unsigned(kv.mod_revision))?))
                }
                layout::Place::Mark(_) | layout::Place::Foreign => None,
            })
            .collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Listing { revision: at, entries })
    }
}

/// Answers with etcd's newest revision; whoever asks while one question is under way shares the next.
async fn answer_newest(
    shared: Arc<Shared>,
    mut asked: mpsc::UnboundedReceiver<oneshot::Sender<Result<u64, String>>>,
) {
    let mut waiting = Vec::new();
    while asked.recv_many(&mut waiting, usize::MAX).await > 0 {
        let newest = feed::newest(&shared.client, &shared.layout).await.map_err(|error| error.to_string());
        for answer in waiting.drain(..) {
            drop(answer.send(newest.clone()));
        }
    }
}

fn write_failed(error: &CallError) -> StoreError {
    let message = error.to_string();
    match error {
        CallError::NotSent(_) | CallError::Refused(_) | CallError::Compacted => {
            StoreError::Unavailable(message)
        }
        CallError::Lost(_) => StoreError::Uncertain(message),
    }
}

/// What a transaction that did not hold says of its key.
fn refusal(response: &TxnResponse, expect: Expect) -> StoreError {
    let found = response.found(0).map(|found| proto::unsigned(found.mod_revision));
    match (expect, found) {
        (Expect::Absent, Some(_)) => StoreError::Exists,
        (Expect::Absent | Expect::Revision(_), found) => StoreError::Conflict { found },
    }
}

impl Store for EtcdStore {
    /// An fsync on the slowest of the members that are needed, and the ways there and back.
    fn latency(&self) -> Duration {
        Duration::from_millis(300)
    }

    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Entry>> {
        Box::pin(async move {
            self.caught_up().await?;
            Ok(self.local(key))
        })
    }

    fn list<'a>(&'a self, scope: Scope<'a>, at: Option<u64>) -> Answer<'a, Listing> {
        Box::pin(async move {
            match at {
                Some(at) => self.list_at(scope, at).await,
                None => {
                    self.caught_up().await?;
                    self.shared.copy().table.list(scope, None)
                }
            }
        })
    }

    fn put(&self, key: Key, object: Value, expect: Expect) -> Answer<'_, Entry> {
        Box::pin(self.write(key, Some(object), expect, Vec::new(), Vec::new()))
    }

    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry> {
        Box::pin(self.write(key, None, Expect::Revision(revision), Vec::new(), Vec::new()))
    }

    fn revision(&self) -> u64 {
        self.shared.copy().table.revision()
    }

    fn catch_up(&self) -> Answer<'_, u64> {
        Box::pin(self.caught_up())
    }

    fn turn(&self, topic: &'static str) -> Turn {
        Turn { topic, number: self.shared.copy().marks.get(topic).copied().unwrap_or(0) }
    }

    fn put_in_turn(&self, key: Key, object: Value, expect: Expect, turn: Turn) -> Answer<'_, Entry> {
        let mark = self.shared.layout.mark(turn.topic);
        let still = Compare::mod_revision(&mark, turn.number);
        Box::pin(self.write(key, Some(object), expect, vec![still], vec![proto::put(&mark, b"{}".to_vec())]))
    }

    fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        self.shared.copy().table.changes(after)
    }

    fn signal(&self) -> &Arc<Signal> {
        &self.shared.signal
    }

    fn figures(&self) -> Figures {
        let writes = self.shared.writes.load(Ordering::Relaxed);
        Figures { history: self.shared.copy().table.remembered(), commits: writes, committed_writes: writes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::{Code, Status};

    #[test]
    fn only_what_etcd_refused_counts_as_not_written() {
        let check = |code: Code, message: &str, sure: bool| {
            let error = write_failed(&CallError::from(Status::new(code, message)));
            let found = match &error {
                StoreError::Unavailable(_) => true,
                StoreError::Uncertain(_) => false,
                other => panic!("{other:?}"),
            };
            assert_eq!(found, sure, "{code:?}: {error}");
        };
        check(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", true);
        check(Code::InvalidArgument, "etcdserver: request is too large", true);
        check(Code::PermissionDenied, "etcdserver: permission denied", true);
        check(Code::Unavailable, "etcdserver: request timed out", false);
        check(Code::Unavailable, "etcdserver: leader changed", false);
        check(Code::DeadlineExceeded, "", false);
        check(Code::Cancelled, "", false);
        check(Code::Unknown, "transport error", false);
        check(Code::Internal, "", false);
    }
}
