//! How stored objects are shown: as they are, as rows of a table, or by their metadata only.

use std::sync::Arc;

use control_plane_api::table::{self, IncludeObject};
use control_plane_api::{Dialect, Kind, decode, views};
use serde_json::{Map, Value, json};

use super::negotiate::Form;
use crate::base64;
use crate::clock::Clock;
use crate::service::Page;

/// A way to show objects of a kind.
#[derive(Clone)]
pub struct View {
    /// The kind as it is served.
    pub kind: &'static Kind,
    /// What is shown.
    pub form: Form,
    /// What a table's rows carry along.
    pub include: IncludeObject,
    /// For ages.
    pub clock: Arc<dyn Clock>,
}

impl View {
    /// One object.
    pub fn one(&self, object: &Value) -> Value {
        let object = views::to_view(self.kind, object);
        match self.form {
            Form::Object => object,
            Form::Table(version) => self.table(&object, version),
            Form::Partial(version) => versioned(table::partial_metadata(&object, false), version),
        }
    }

    /// A page of a list.
    pub fn page(&self, page: &Page) -> Value {
        let items = page.objects.iter().map(|object| {
            let mut item = views::to_view(self.kind, object);
            if let Some(fields) = item.as_object_mut() {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            item
        });
        let mut metadata = Map::from_iter([("resourceVersion".to_owned(), json!(page.revision.to_string()))]);
        if let Some(next) = &page.next {
            metadata.insert("continue".into(), json!(next.encode()));
        }
        if let Some(remaining) = page.remaining {
            metadata.insert("remainingItemCount".into(), json!(remaining));
        }
        let list = json!({
            "kind": self.kind.list_kind,
            "apiVersion": self.kind.api_version(),
            "metadata": metadata,
            "items": items.collect::<Vec<_>>(),
        });
        match self.form {
            Form::Object => list,
            Form::Table(version) => self.table(&list, version),
            Form::Partial(version) => versioned(table::partial_metadata(&list, true), version),
        }
    }

    /// The object of a watch's line.
    pub fn watched(&self, object: &Value) -> Value {
        self.one(object)
    }

    /// The object of a bookmark at `revision`; `complete` when it ends the initial objects.
    pub fn bookmark(&self, revision: u64, complete: bool) -> Value {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if complete {
            metadata["annotations"] = json!({
                "k8s.io/initial-events-end": "true",
                "kubernetes.io/initial-events-list-blueprint": self.blueprint(),
            });
        }
        match self.form {
            Form::Object => self.empty(metadata),
            Form::Table(version) => json!({
                "kind": "Table",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": metadata,
                "columnDefinitions": [],
                "rows": [],
            }),
            Form::Partial(version) => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": metadata,
            }),
        }
    }

    /// An object that says nothing but its metadata, with the fields that Kubernetes prints even so.
    fn empty(&self, metadata: Value) -> Value {
        let bare =
            json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata});
        decode::empty(self.kind.into(), bare["metadata"].clone(), Dialect::Kubernetes).unwrap_or(bare)
    }

    /// The empty list from which a client can make a list of the initial objects.
    fn blueprint(&self) -> String {
        let (kind, api_version) = match self.form {
            Form::Object | Form::Table(_) => (self.kind.list_kind, self.kind.api_version()),
            Form::Partial(version) => ("PartialObjectMetadataList", format!("meta.k8s.io/{version}")),
        };
        let list = format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{{}},\"items\":null}}\n"
        );
        base64::encode_standard(list.as_bytes())
    }

    fn table(&self, shown: &Value, version: &str) -> Value {
        let mut table = versioned(table::table(self.kind, shown, self.clock.wall(), self.include), version);
        if self.include == IncludeObject::Metadata {
            for row in table["rows"].as_array_mut().into_iter().flatten() {
                row["object"]["apiVersion"] = json!(format!("meta.k8s.io/{version}"));
            }
        }
        table
    }
}

fn versioned(mut shown: Value, version: &str) -> Value {
    shown["apiVersion"] = json!(format!("meta.k8s.io/{version}"));
    shown
}
