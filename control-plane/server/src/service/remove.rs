//! Deleting: at once, with a period of grace, or as far as finalizers allow.

use std::sync::Arc;

use control_plane_api::delete::{self, DeleteOptions, Outcome};
use control_plane_api::{ApiError, Kind};
use control_plane_core::reports;
use serde_json::{Value, json};

use super::{ATTEMPTS, Service, key_of, store_failed, stored_kind, text};
use crate::auth::node::check_write;
use crate::auth::{Action, User};
use crate::config::Admission;
use crate::store::{Expect, Key, StoreError};

impl Service {
    /// Deletes an object, and answers what Kubernetes answers: the object, or a Status.
    ///
    /// # Errors
    /// 404, 409 for a precondition that does not hold, 403 for what may not be deleted.
    pub async fn remove(
        &self,
        user: &User,
        kind: &'static Kind,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Arc<Value>, ApiError> {
        let key = key_of(kind, namespace, name);
        for _ in 0..ATTEMPTS {
            let entry = self.store.get(&key).await.map_err(|error| store_failed(&error))?;
            let Some(entry) = entry else { return Err(ApiError::not_found(kind, name)) };
            if !self.config.disable_admission.contains(&Admission::NodeRestriction) {
                check_write(user, Action::Delete, kind, None, Some(&entry.object), None)?;
            }
            let outcome = delete::plan(stored_kind(kind), &entry.object, options, self.clock.wall())?;
            let written = match outcome {
                Outcome::Pending { object } => return Ok(Arc::new(object)),
                Outcome::Remove { answer, .. } if options.dry_run => return Ok(Arc::new(answer)),
                Outcome::Update { object } if options.dry_run => return Ok(Arc::new(object)),
                Outcome::Remove { object, answer } => {
                    let removed = self.take_away(&key, entry.revision, &entry.object, object).await;
                    removed.map(|object| if answer["kind"] == "Status" { Arc::new(answer) } else { object })
                }
                Outcome::Update { mut object } => {
                    if kind.resource == "nodes" {
                        reports::keep(&entry.object, &mut object);
                    }
                    let written = self.store.put(key.clone(), object, Expect::Revision(entry.revision)).await;
                    written.map(|entry| entry.object)
                }
            };
            self.take_in();
            match written {
                Ok(answer) => return Ok(answer),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(store_failed(&error)),
            }
        }
        Err(ApiError::stale(kind, name))
    }

    /// Notes in a pod that it is evicted, before it is deleted for that. A version that `options` ask for follows this write.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub async fn mark_evicted(
        &self,
        user: &User,
        kind: &'static Kind,
        namespace: Option<&str>,
        name: &str,
        options: &mut DeleteOptions,
    ) -> Result<(), ApiError> {
        let key = key_of(kind, namespace, name);
        for _ in 0..ATTEMPTS {
            let entry = self.store.get(&key).await.map_err(|error| store_failed(&error))?;
            let Some(entry) = entry else { return Err(ApiError::not_found(kind, name)) };
            if !self.config.disable_admission.contains(&Admission::NodeRestriction) {
                check_write(user, Action::Delete, kind, None, Some(&entry.object), None)?;
            }
            // Only for its refusals: what the options ask for must hold before anything is written.
            delete::plan(stored_kind(kind), &entry.object, options, self.clock.wall())?;
            let marked = delete::evicted(&entry.object, self.clock.wall());
            if marked == *entry.object {
                return Ok(());
            }
            let written = self.store.put(key.clone(), marked, Expect::Revision(entry.revision)).await;
            self.take_in();
            match written {
                Ok(entry) => {
                    if let Some(version) = &mut options.resource_version {
                        *version = entry.revision.to_string();
                    }
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(store_failed(&error)),
            }
        }
        Err(ApiError::stale(kind, name))
    }

    /// Removes an object that is last seen as `last`. One that was not marked as being deleted is marked first, so that watches
    /// tell of it as Kubernetes' do.
    async fn take_away(
        &self,
        key: &Key,
        revision: u64,
        stored: &Value,
        last: Value,
    ) -> Result<Arc<Value>, StoreError> {
        let marked = |object: &Value| !text(object, "/metadata/deletionTimestamp").is_empty();
        if marked(stored) || !marked(&last) {
            let entry = self.store.delete(key.clone(), revision).await?;
            let mut answer = last;
            answer["metadata"]["resourceVersion"] = json!(entry.revision.to_string());
            return Ok(Arc::new(answer));
        }
        let entry = self.store.put(key.clone(), last, Expect::Revision(revision)).await?;
        match self.store.delete(key.clone(), entry.revision).await {
            Ok(_) | Err(StoreError::Conflict { found: None }) => Ok(entry.object),
            Err(error) => Err(error),
        }
    }

    /// Removes what an earlier process had begun to remove.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn finish_removals(&self) -> Result<(), StoreError> {
        let snapshot = self.fresh().snapshot().clone();
        let mut begun = Vec::new();
        for resource in snapshot.resources() {
            let Some(kind) = control_plane_api::kinds::by_resource(resource) else { continue };
            for (key, object) in snapshot.list(resource).filter(|(_, object)| delete::finished(kind, object))
            {
                let revision = text(object, "/metadata/resourceVersion").parse().unwrap_or_default();
                begun.push((Key::new(resource, &key.namespace, &key.name), revision));
            }
        }
        for (key, revision) in begun {
            match self.store.delete(key, revision).await {
                // Whoever had begun it, on the same store, may be at it still.
                Ok(_) | Err(StoreError::Conflict { .. }) => self.take_in(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
