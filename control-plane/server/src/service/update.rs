//! Changing objects: replacement, patches, and their subresources. A write that changes nothing is not made.

use std::sync::Arc;

use control_plane_api::decode;
use control_plane_api::options::{FieldValidation, WriteOptions};
use control_plane_api::patch::{self, PatchType};
use control_plane_api::{ApiError, Kind, delete, scale, strategy, views};
use control_plane_core::controllers::node_lifecycle;
use control_plane_core::reports;
use serde_json::{Value, json};

use super::create::allocate;
use super::{ATTEMPTS, Service, key_of, store_failed, stored_kind, text};
use crate::auth::node::check_write;
use crate::auth::{Action, Asked, User};
use crate::config::{Admission, Controller};
use crate::store::{Entry, Expect, StoreError};

/// The object after a write, in the form that the endpoint shows, and what to warn of.
pub struct Written {
    /// The object.
    pub object: Arc<Value>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    /// A PUT made it.
    pub created: bool,
}

/// Which object, through which door.
#[derive(Clone, Copy)]
pub struct Door<'a> {
    /// The kind as it is served.
    pub kind: &'static Kind,
    /// `status`, `scale`, `finalize`, or none for the object itself.
    pub subresource: Option<&'a str>,
    /// The namespace, absent when cluster-scoped.
    pub namespace: Option<&'a str>,
    /// The name in the URL.
    pub name: &'a str,
}

impl Door<'_> {
    /// Whether a node's figures and conditions come through here.
    fn is_report(&self) -> bool {
        self.kind.resource == "nodes" && self.subresource == Some("status")
    }
}

impl Service {
    /// Replaces an object, or the part that a subresource stands for.
    ///
    /// # Errors
    /// 404, 409 for a stale resourceVersion or another uid, 422 for what validation refuses, 403 for a board's foreign writes.
    pub async fn update(
        &self,
        user: &User,
        door: Door<'_>,
        object: Value,
        dry_run: bool,
    ) -> Result<Written, ApiError> {
        let Door { kind, subresource, namespace, name } = door;
        let mut object = if subresource == Some("scale") { object } else { views::from_view(kind, object) };
        if subresource != Some("scale") {
            strategy::check_url(kind, name, namespace, &mut object)?;
        }
        let make = |old: &Value| {
            self.check_report(user, Action::Update, door, old, &object)?;
            let (kind, context) = (stored_kind(kind), self.context());
            let object = match subresource {
                None => strategy::prepare_replacement(kind, old, object.clone(), &context)?,
                Some("status") => strategy::prepare_status_replacement(kind, old, object.clone(), &context)?,
                Some(_) => self.prepare(door, old, object.clone())?,
            };
            Ok((object, Vec::new()))
        };
        let written = self.write_over(user, Action::Update, door, dry_run, make).await;
        match written {
            Err(error) if error.code == 404 && subresource.is_none() && strategy::creates_on_update(kind) => {
                let versioned = !text(&object, "/metadata/resourceVersion").is_empty();
                if versioned {
                    return Err(error);
                }
                let asked = Asked {
                    action: Action::Create,
                    kind,
                    subresource: None,
                    namespace,
                    name: "",
                    node_selected: None,
                };
                self.authorize(user, &asked)?;
                let object = self.create(user, kind, namespace, object.clone(), dry_run).await?;
                Ok(Written { object, warnings: Vec::new(), created: true })
            }
            written => written,
        }
    }

    /// Patches an object, or the part that a subresource stands for.
    ///
    /// # Errors
    /// As [`Self::update`], and 400 or 422 for a patch that cannot be applied.
    pub async fn patch(
        &self,
        user: &User,
        door: Door<'_>,
        patch_type: PatchType,
        body: &[u8],
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        let make = |old: &Value| self.patched(user, door, old, patch_type, body, options.field_validation);
        self.write_over(user, Action::Patch, door, options.dry_run, make).await
    }

    fn patched(
        &self,
        user: &User,
        door: Door<'_>,
        old: &Value,
        patch_type: PatchType,
        body: &[u8],
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let Door { kind, subresource, .. } = door;
        let shown = show(kind, subresource, old);
        let expected = match subresource.and_then(|name| kind.subresource(name)) {
            Some(subresource) => decode::Expected::from(subresource),
            None => decode::Expected::from(kind),
        };
        let decoded = patch::apply(expected, patch_type, &shown, body, validation, self.config.dialect)?;
        let object = if subresource == Some("scale") {
            decoded.object
        } else {
            let mut object = views::from_view(kind, decoded.object);
            strategy::check_url(kind, door.name, door.namespace, &mut object)?;
            object
        };
        self.check_report(user, Action::Patch, door, old, &object)?;
        Ok((self.prepare(door, old, object)?, decoded.warnings))
    }

    /// Refuses a node's report that wants taints or labels which are not the board's to change. As in Kubernetes this is judged by
    /// what was sent: of a status, the spec is dropped afterwards.
    fn check_report(
        &self,
        user: &User,
        action: Action,
        door: Door<'_>,
        old: &Value,
        sent: &Value,
    ) -> Result<(), ApiError> {
        if !door.is_report() || self.config.disable_admission.contains(&Admission::NodeRestriction) {
            return Ok(());
        }
        check_write(user, action, door.kind, door.subresource, Some(old), Some(sent))
    }

    /// The object to store, where `new` is what the client wants to see behind the door.
    fn prepare(&self, door: Door<'_>, old: &Value, new: Value) -> Result<Value, ApiError> {
        let kind = stored_kind(door.kind);
        let context = self.context();
        match door.subresource {
            None => strategy::prepare_update(kind, old, new, &context),
            Some("status") => strategy::prepare_status_update(kind, old, new, &context),
            Some("scale") => strategy::prepare_update(kind, old, scale::apply(kind, old, &new)?, &context),
            Some("finalize") => strategy::prepare_finalize(kind, old, &new, &context),
            Some(_) => Err(ApiError::method_not_allowed()),
        }
    }

    /// Writes what `make` makes of the object, again and again while others write in between.
    async fn write_over<F>(
        &self,
        user: &User,
        action: Action,
        door: Door<'_>,
        dry_run: bool,
        make: F,
    ) -> Result<Written, ApiError>
    where
        F: Fn(&Value) -> Result<(Value, Vec<String>), ApiError> + Send + Sync,
    {
        let Door { kind, subresource, namespace, name } = door;
        let key = key_of(kind, namespace, name);
        for _ in 0..ATTEMPTS {
            let entry = self.store.get(&key).await.map_err(|error| store_failed(&error))?;
            let Some(entry) = entry else { return Err(absent(kind, subresource, name)) };
            let restricted = !self.config.disable_admission.contains(&Admission::NodeRestriction);
            if restricted {
                // Before the object's own checks: what is not the board's is refused whatever it wants there.
                check_write(user, action, kind, subresource, Some(&entry.object), Some(&entry.object))?;
            }
            let (mut object, warnings) = make(&entry.object)?;
            let own = kind.resource == "services" && subresource.is_none();
            let _allocating = if own { Some(self.allocating.lock().await) } else { None };
            if own {
                allocate(kind, &mut object, Some(&entry.object), &self.services())?;
            }
            if kind.resource == "priorityclasses" {
                let reflector = self.fresh();
                let classes = reflector.snapshot().list(kind.resource).map(|(_, class)| class.as_ref());
                strategy::admit_default_class(&object, false, classes)?;
            }
            if restricted {
                check_write(user, action, kind, subresource, Some(&entry.object), Some(&object))?;
            }
            self.check_grant(user, kind, namespace, Some(&entry.object), &object)?;
            if door.is_report() && self.runs(Controller::NodeLifecycle) {
                node_lifecycle::hold(&entry.object, &mut object);
            }
            object["metadata"]["resourceVersion"] = json!(entry.revision.to_string());
            let done = |object: Arc<Value>| Written { object, warnings, created: false };
            if kind.resource == "nodes" {
                reports::leave(&entry.object, &mut object);
            }
            if object == *entry.object && (dry_run || !self.is_news(door, &entry.object)) {
                return Ok(done(entry.object));
            }
            if door.is_report() {
                reports::reported(&mut object);
            } else if kind.resource == "nodes" {
                reports::keep(&entry.object, &mut object);
            }
            if dry_run {
                return Ok(done(Arc::new(object)));
            }
            match self.store.put(key.clone(), object, Expect::Revision(entry.revision)).await {
                Ok(written) => {
                    self.take_in();
                    self.reported(door, written.revision);
                    let Entry { object, revision, .. } = written;
                    if delete::finished(stored_kind(kind), &object) {
                        // Someone else may have removed it first, which is as good.
                        drop(self.store.delete(key, revision).await);
                        self.take_in();
                    }
                    return Ok(done(object));
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(store_failed(&error)),
            }
        }
        Err(ApiError::stale(kind, name))
    }

    /// Whether a report of the figures that are there already covers pods which the one before did not (SCHED-22). It is written
    /// all the same then: that it was made stands in the node's resourceVersion, where also a later process finds it.
    fn is_news(&self, door: Door<'_>, node: &Value) -> bool {
        if !door.is_report() {
            return false;
        }
        let covered = reports::covered(node);
        let after =
            |pod: &Value| text(pod, "/metadata/resourceVersion").parse().is_ok_and(|it: u64| it > covered);
        self.fresh().snapshot().pods_on(door.name).any(|(_, pod)| after(pod))
    }

    /// Notes the report of a node's figures (SCHED-22).
    fn reported(&self, door: Door<'_>, revision: u64) {
        if door.is_report() {
            self.reflector().status_reported(door.name, revision);
        }
    }
}

/// 404, in the words of the door.
pub fn absent(kind: &Kind, subresource: Option<&str>, name: &str) -> ApiError {
    if subresource == Some("scale") { scale::not_found(kind, name) } else { ApiError::not_found(kind, name) }
}

/// What stands behind a door, as the client sees it.
pub fn show(kind: &'static Kind, subresource: Option<&str>, object: &Value) -> Value {
    if subresource == Some("scale") { scale::from_object(object) } else { views::to_view(kind, object) }
}
