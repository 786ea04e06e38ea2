//! The two kinds of objects, field by field as Kubernetes fills them in.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::backend::{Backend, Family};
use super::ports::{self, Resolved};
use super::{EndpointsConfig, MANAGER, identity};
use crate::json;

/// Endpoints name so many addresses at most and say so when there are more.
const MAX_ADDRESSES: usize = 1000;
/// A slice holds so many endpoints at most.
const MAX_ENDPOINTS: usize = 100;

const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const SERVICE_NAME: &str = "kubernetes.io/service-name";

fn is_headless(service: &Value) -> bool {
    matches!(json::text(service, &["spec", "clusterIP"]), None | Some("" | "None"))
}

/// The service's labels, and the mark of one that has no address of its own.
fn labels(service: &Value) -> Map<String, Value> {
    let mut labels =
        json::get(service, &["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), "".into());
    }
    labels
}

/// What the metadata of both kinds have.
fn metadata(service: &Value, name: &str, uid: String, labels: Map<String, Value>) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    metadata.insert("namespace".to_owned(), json::namespace(service).into());
    metadata.insert("uid".to_owned(), uid.into());
    let created = json::get(service, &["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
    metadata.insert("creationTimestamp".to_owned(), created);
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), labels.into());
    }
    metadata
}

/// Ports, and the backends that are reached at them, ready ones and others.
struct Subset {
    ports: Resolved,
    ready: Vec<usize>,
    others: Vec<usize>,
}

/// The Endpoints of `service`. Pods that are terminating are not among them, whatever it publishes (EP-02).
pub(super) fn endpoints(service: &Value, backends: &[Backend<'_>]) -> Value {
    let family = Family::all_of(service).first().copied().unwrap_or(Family::V4);
    let mut reached: Vec<(&str, &Backend<'_>)> = backends
        .iter()
        .filter(|backend| !backend.terminating)
        .filter_map(|backend| Some((backend.address(family)?, backend)))
        .collect();
    reached.sort_by_key(|(ip, backend)| (*ip, backend.uid()));
    let mut subsets = subsets(service, &reached);
    let cut = truncate(&mut subsets);
    let name = json::name(service);
    let uid = identity::uid(&[json::uid(service), "endpoints"]);
    let mut metadata = metadata(service, name, uid, labels(service));
    if cut {
        metadata.insert("annotations".to_owned(), json!({OVER_CAPACITY: "truncated"}));
    }
    let mut object = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata});
    if !subsets.is_empty() {
        let shown: Vec<Value> = subsets.iter().map(|subset| show(service, &reached, subset)).collect();
        json::object_mut(&mut object, &[]).insert("subsets".to_owned(), shown.into());
    }
    object
}

/// Ports that lead to the very same addresses share a subset, in the order of the service's ports.
fn subsets(service: &Value, reached: &[(&str, &Backend<'_>)]) -> Vec<Subset> {
    let publishes = json::is_true(service, &["spec", "publishNotReadyAddresses"]);
    let is_ready = |place: &usize| publishes || reached[*place].1.serving;
    let split = |places: Vec<usize>| places.into_iter().partition(is_ready);
    if json::list(service, &["spec", "ports"]).is_empty() {
        let (ready, others) = split((0..reached.len()).collect());
        let all = Subset { ports: Vec::new(), ready, others };
        return if reached.is_empty() { Vec::new() } else { vec![all] };
    }
    let mut by_port: BTreeMap<(usize, i64), Vec<usize>> = BTreeMap::new();
    for (place, (_, backend)) in reached.iter().enumerate() {
        for port in ports::resolve(service, backend) {
            by_port.entry(port).or_default().push(place);
        }
    }
    let mut grouped: Vec<(Resolved, Vec<usize>)> = Vec::new();
    for (port, places) in by_port {
        match grouped.iter_mut().find(|(_, of)| *of == places) {
            Some((ports, _)) => ports.push(port),
            None => grouped.push((vec![port], places)),
        }
    }
    let whole = |(ports, places)| {
        let (ready, others) = split(places);
        Subset { ports, ready, others }
    };
    grouped.into_iter().map(whole).collect()
}

/// Leaves out what is too much, addresses that are not ready first. Answers whether anything was.
fn truncate(subsets: &mut Vec<Subset>) -> bool {
    let mut room = MAX_ADDRESSES;
    let mut cut = false;
    let mut keep = |places: &mut Vec<usize>| {
        cut |= places.len() > room;
        places.truncate(room);
        room -= places.len();
    };
    subsets.iter_mut().for_each(|subset| keep(&mut subset.ready));
    subsets.iter_mut().for_each(|subset| keep(&mut subset.others));
    subsets.retain(|subset| !subset.ready.is_empty() || !subset.others.is_empty());
    cut
}

fn show(service: &Value, reached: &[(&str, &Backend<'_>)], subset: &Subset) -> Value {
    let addresses = |places: &[usize]| -> Vec<Value> {
        let one = |place: &usize| {
            let (ip, backend) = reached[*place];
            let mut fields = Map::from_iter([("ip".to_owned(), ip.into())]);
            backend.describe(service, &mut fields);
            Value::Object(fields)
        };
        places.iter().map(one).collect()
    };
    let ports = subset.ports.iter().map(|port| ports::shown(service, *port, false)).collect();
    let lists = [
        ("addresses", addresses(&subset.ready)),
        ("notReadyAddresses", addresses(&subset.others)),
        ("ports", ports),
    ];
    let said = lists.into_iter().filter(|(_, list)| !list.is_empty());
    Value::Object(said.map(|(field, list)| (field.to_owned(), list.into())).collect())
}

/// What a slice holds.
struct Content<'a> {
    ports: &'a [(usize, i64)],
    endpoints: &'a [Value],
}

/// The slices of `service`: of each family of addresses at least one, which is empty where there is nothing to hold.
pub(super) fn slices(service: &Value, backends: &[Backend<'_>], config: EndpointsConfig) -> Vec<Value> {
    let kept: Vec<&Backend<'_>> =
        backends.iter().filter(|backend| config.slices_keep_terminating || !backend.terminating).collect();
    let mut slices = Vec::new();
    for family in Family::all_of(service) {
        // Pods that resolve to other numbers are in other slices (EP-03).
        let mut by_ports: BTreeMap<Resolved, Vec<Value>> = BTreeMap::new();
        for backend in &kept {
            if let Some(ip) = backend.address(family) {
                let ports = ports::resolve(service, backend);
                by_ports.entry(ports).or_default().push(endpoint(service, backend, ip));
            }
        }
        let mut contents: Vec<Content<'_>> = by_ports
            .iter()
            .flat_map(|(ports, endpoints)| {
                endpoints.chunks(MAX_ENDPOINTS).map(|endpoints| Content { ports, endpoints })
            })
            .collect();
        if contents.is_empty() {
            contents.push(Content { ports: &[], endpoints: &[] });
        }
        let all = contents.iter().enumerate();
        slices.extend(all.map(|(place, content)| slice(service, family, place, content)));
    }
    slices
}

fn endpoint(service: &Value, backend: &Backend<'_>, ip: &str) -> Value {
    let publishes = json::is_true(service, &["spec", "publishNotReadyAddresses"]);
    let conditions = json!({
        "ready": publishes || backend.serving && !backend.terminating,
        "serving": backend.serving,
        "terminating": backend.terminating,
    });
    let mut fields = Map::new();
    fields.insert("addresses".to_owned(), json!([ip]));
    fields.insert("conditions".to_owned(), conditions);
    backend.describe(service, &mut fields);
    fields.into()
}

/// A slice is known by its place, so that one which changes its ports stays the same object.
fn slice(service: &Value, family: Family, place: usize, content: &Content<'_>) -> Value {
    let (name, uid) = (json::name(service), json::uid(service));
    let place = place.to_string();
    let parts = [uid, "endpointslices", family.name(), &place];
    let mut labels = labels(service);
    labels.insert(MANAGED_BY.to_owned(), MANAGER.into());
    labels.insert(SERVICE_NAME.to_owned(), name.into());
    let full_name = format!("{name}-{}", identity::suffix(&parts));
    let mut metadata = metadata(service, &full_name, identity::uid(&parts), labels);
    metadata.insert("generateName".to_owned(), format!("{name}-").into());
    let owner = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    });
    metadata.insert("ownerReferences".to_owned(), json!([owner]));
    let ports = content.ports.iter().map(|port| ports::shown(service, *port, true)).collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": family.name(),
        "endpoints": or_null(content.endpoints.to_vec()),
        "ports": or_null(ports),
    })
}

/// An empty list as Go writes it.
fn or_null(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { list.into() }
}
