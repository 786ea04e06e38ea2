//! Reading: one object, and lists that are consistent over their pages.

use control_plane_api::{ApiError, Kind};

use super::{Service, key_of, store_failed};
use crate::api::{At, Continue, Filter, ListOptions};
use crate::store::{Entry, StoreError};

/// A page of a list.
pub struct Page {
    /// The revision that the whole list shows.
    pub revision: u64,
    /// The objects in their stored form.
    pub entries: Vec<Entry>,
    /// Where the next page starts, when there is one.
    pub next: Option<Continue>,
    /// How many objects come after this page, where that is known.
    pub remaining: Option<usize>,
}

const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";

impl Service {
    /// One object in its stored form, at least as new as `not_older_than`.
    ///
    /// # Errors
    /// 404, or 504 when the store is not there yet.
    pub async fn get(
        &self,
        kind: &'static Kind,
        namespace: Option<&str>,
        name: &str,
        not_older_than: u64,
    ) -> Result<Entry, ApiError> {
        self.reached(not_older_than).await?;
        let entry = self.source(kind.resource).await.get(&key_of(kind, namespace, name)).await;
        entry.map_err(|error| store_failed(&error))?.ok_or_else(|| ApiError::not_found(kind, name))
    }

    /// Refuses to wait for a revision that is still to come. One that another control plane on the same store has answered
    /// with is not.
    ///
    /// # Errors
    /// 504 with the current revision.
    pub async fn reached(&self, revision: u64) -> Result<(), ApiError> {
        let mut current = self.store.revision();
        if revision > current {
            current = self.store.catch_up().await.map_err(|error| store_failed(&error))?;
        }
        if revision > current { Err(ApiError::future_version(revision, current)) } else { Ok(()) }
    }

    /// A page of the objects that a filter lets through.
    ///
    /// # Errors
    /// 410 for a revision or page that is no longer known, 504 for one that is still to come.
    pub async fn list(&self, filter: &Filter, options: &ListOptions) -> Result<Page, ApiError> {
        let (at, limit) = match &options.at {
            At::Newest => (None, options.limit),
            // Served whole, as Kubernetes serves it from its cache.
            At::NotOlderThan(0) => (None, None),
            At::NotOlderThan(revision) => {
                self.reached(*revision).await?;
                (None, options.limit)
            }
            At::Exactly(revision) => {
                self.reached(*revision).await?;
                (Some(*revision), options.limit)
            }
            At::Continue(token) => {
                self.reached(token.revision.unwrap_or(0)).await?;
                (token.revision, options.limit)
            }
        };
        let listing = self.source(filter.scope().resource).await.list(filter.scope(), at).await;
        let listing = listing.map_err(|error| match (&error, &options.at) {
            (StoreError::Compacted { .. }, At::Continue(token)) => {
                ApiError::expired_page(&token.inconsistent().encode())
            }
            (StoreError::Compacted { .. }, _) => ApiError::expired(TOO_OLD),
            _ => store_failed(&error),
        })?;
        let everywhere = filter.scope().namespace.is_none();
        let mut entries: Vec<(String, Entry)> = listing
            .entries
            .into_iter()
            .map(|(key, entry)| {
                let spread = everywhere && !key.namespace.is_empty();
                let place = if spread { format!("{}/{}", key.namespace, key.name) } else { key.name };
                (place, entry)
            })
            .collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        if let At::Continue(token) = &options.at {
            entries.retain(|(place, _)| token.includes(place));
        }
        entries.retain(|(_, entry)| filter.selects(&entry.object));
        let cut = limit.filter(|limit| *limit < entries.len());
        let next = cut.map(|limit| Continue::after(listing.revision, &entries[limit - 1].0));
        let remaining = cut.filter(|_| !filter.is_selective()).map(|limit| entries.len() - limit);
        entries.truncate(cut.unwrap_or(entries.len()));
        let entries = entries.into_iter().map(|(_, entry)| entry).collect();
        Ok(Page { revision: listing.revision, entries, next, remaining })
    }
}
