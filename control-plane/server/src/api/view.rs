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

    /// Whether objects are shown just as they are stored.
    pub fn is_stored_form(&self) -> bool {
        self.form == Form::Object && !views::differs(self.kind)
    }

    /// A page as compact JSON, where that can be put together from the texts of its objects.
    pub fn page_text(&self, page: &Page) -> Option<String> {
        if !self.is_stored_form() {
            return None;
        }
        // Items do not repeat the type that the list has.
        let typed = format!(
            "{{\"apiVersion\":{},\"kind\":{},",
            json!(self.kind.api_version()),
            json!(self.kind.kind)
        );
        let size = page.entries.iter().map(|entry| entry.text().len()).sum::<usize>();
        let mut text = String::with_capacity(size + 256);
        let list = (json!(self.kind.api_version()), json!(self.kind.list_kind), self.page_metadata(page));
        text.push_str(&format!("{{\"apiVersion\":{},\"items\":[", list.0));
        for (n, entry) in page.entries.iter().enumerate() {
            let item = entry.text();
            let rest = std::str::from_utf8(&item).ok()?.strip_prefix(&typed)?;
            text.push_str(if n == 0 { "{" } else { ",{" });
            text.push_str(rest);
        }
        text.push_str(&format!("],\"kind\":{},\"metadata\":{}}}\n", list.1, list.2));
        Some(text)
    }

    fn page_metadata(&self, page: &Page) -> Value {
        let mut metadata = Map::from_iter([("resourceVersion".to_owned(), json!(page.revision.to_string()))]);
        if let Some(next) = &page.next {
            metadata.insert("continue".into(), json!(next.encode()));
        }
        if let Some(remaining) = page.remaining {
            metadata.insert("remainingItemCount".into(), json!(remaining));
        }
        metadata.into()
    }

    /// A page of a list.
    pub fn page(&self, page: &Page) -> Value {
        let items = page.entries.iter().map(|entry| {
            let mut item = views::to_view(self.kind, &entry.object);
            if let Some(fields) = item.as_object_mut() {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            item
        });
        let list = json!({
            "kind": self.kind.list_kind,
            "apiVersion": self.kind.api_version(),
            "metadata": self.page_metadata(page),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::store::Entry;
    use control_plane_api::kinds;

    fn view(kind: &'static Kind, form: Form) -> View {
        View { kind, form, include: IncludeObject::default(), clock: Arc::new(SystemClock::start()) }
    }

    fn page(objects: &[Value]) -> Page {
        let entries = objects.iter().map(|object| Entry::new(7, Arc::new(object.clone()))).collect();
        Page { revision: 9, entries, next: None, remaining: Some(3) }
    }

    #[test]
    fn a_page_made_of_texts_is_the_page() {
        let view = view(kinds::by_resource("pods").unwrap(), Form::Object);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a\"\n"}, "spec": {}});
        for count in 0..3 {
            let page = page(&vec![pod.clone(); count]);
            assert_eq!(view.page_text(&page), Some(format!("{}\n", view.page(&page))));
        }
    }

    #[test]
    fn what_is_not_shown_as_it_is_stored_is_no_text() {
        let pods = kinds::by_resource("pods").unwrap();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        assert_eq!(view(pods, Form::Partial("v1")).page_text(&page(std::slice::from_ref(&pod))), None);
        // binaryData sorts before kind, so the type does not stand in front.
        let maps = kinds::by_resource("configmaps").unwrap();
        let map = json!({"apiVersion": "v1", "binaryData": {"a": ""}, "kind": "ConfigMap", "metadata": {}});
        let (view, page) = (view(maps, Form::Object), page(&[map]));
        assert_eq!(view.page_text(&page), None);
        assert_eq!(view.page(&page)["items"][0].get("kind"), None);
        let events = kinds::all().iter().find(|kind| kind.group == "events.k8s.io").unwrap();
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {}});
        assert_eq!(self::view(events, Form::Object).page_text(&self::page(&[event])), None);
    }
}
