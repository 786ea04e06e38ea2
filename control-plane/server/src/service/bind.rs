//! Assigning pods to nodes, and taking them off again: the only ways in which a pod's nodeName changes (BIND-01…13, NODE-18).

use control_plane_api::{ApiError, binding, kinds};
use control_plane_core::controllers::node_lifecycle;
use control_plane_core::scheduler;
use serde_json::Value;

use super::{ATTEMPTS, Service, store_failed, text};
use crate::admission;
use crate::store::{Expect, Key, StoreError};

impl Service {
    /// Does what a Binding says.
    ///
    /// # Errors
    /// 404 for a missing pod or namespace, 409 for a pod that is bound, gated, going, or not the one meant.
    pub async fn bind(
        &self,
        namespace: &str,
        name: &str,
        wanted: &Value,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let Some(pods) = kinds::by_resource("pods") else { return Err(ApiError::resource_not_found()) };
        self.store.catch_up().await.map_err(|error| store_failed(&error))?;
        admission::namespace_open(self.fresh().snapshot(), pods, namespace, name)?;
        let key = Key::new("pods", namespace, name);
        for _ in 0..ATTEMPTS {
            let entry = self.store.get(&key).await.map_err(|error| store_failed(&error))?;
            let Some(entry) = entry else { return Err(ApiError::not_found(pods, name)) };
            let bound = binding::bind(&entry.object, name, namespace, wanted, self.clock.wall())?;
            if dry_run {
                return Ok(());
            }
            let written = self.store.put(key.clone(), bound, Expect::Revision(entry.revision)).await;
            self.take_in();
            match written {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(store_failed(&error)),
            }
        }
        Err(ApiError::stale(pods, name))
    }

    /// Binds the very pod that the scheduler decided on.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is no longer as it was.
    pub async fn bind_decided(
        &self,
        key: Key,
        uid: &str,
        version: Option<&str>,
        node: &str,
    ) -> Result<(), StoreError> {
        let now = self.now();
        self.exchange(key, uid, version, |pod| scheduler::bound(pod, node, &now)).await
    }

    /// Takes a pod off its node; it stays the same object (NODE-18).
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is no longer as it was.
    pub async fn evict(
        &self,
        key: Key,
        uid: &str,
        version: Option<&str>,
        message: &str,
    ) -> Result<(), StoreError> {
        let now = self.now();
        self.exchange(key, uid, version, |pod| node_lifecycle::evicted(pod, message, &now)).await
    }

    async fn exchange(
        &self,
        key: Key,
        uid: &str,
        version: Option<&str>,
        make: impl Fn(&Value) -> Value + Send,
    ) -> Result<(), StoreError> {
        let entry = self.store.get(&key).await?;
        let Some(entry) = entry.filter(|entry| {
            text(&entry.object, "/metadata/uid") == uid
                && version.is_none_or(|version| version == entry.revision.to_string())
        }) else {
            return Err(StoreError::Conflict { found: None });
        };
        let object = make(&entry.object);
        let written = self.store.put(key, object, Expect::Revision(entry.revision)).await;
        self.take_in();
        written.map(drop)
    }
}
