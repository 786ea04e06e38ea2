//! Which services a change concerns, and which pods each of them has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{EndpointsConfig, backend, compute, selector, selects};
use crate::snapshot::{Key, Object};

/// The services that select pods, and all pods.
#[derive(Debug, Clone, Default)]
pub struct Index {
    services: BTreeMap<Key, Selecting>,
    pods: BTreeMap<Key, Object>,
}

/// A service, and the names of the pods that it selects.
#[derive(Debug, Clone)]
struct Selecting {
    service: Object,
    pods: BTreeSet<String>,
}

impl Index {
    /// Takes in a change of a service (`None`: it is gone). Its objects are to be computed anew.
    pub fn observe_service(&mut self, key: &Key, service: Option<Object>) {
        let selecting = service.and_then(|service| {
            let wanted = selector(&service)?;
            let pods = self.pods.range(Key::new(key.namespace.as_str(), "")..);
            let own = pods.take_while(|(pod, _)| pod.namespace == key.namespace);
            let chosen = own.filter(|(_, pod)| selects(wanted, pod)).map(|(pod, _)| pod.name.clone());
            let pods = chosen.collect();
            Some(Selecting { service, pods })
        });
        match selecting {
            Some(selecting) => self.services.insert(key.clone(), selecting),
            None => self.services.remove(key),
        };
    }

    /// Takes in a change of a pod (`None`: it is gone). Answers the services whose objects are to be computed anew.
    pub fn observe_pod(&mut self, key: &Key, pod: Option<Object>) -> Vec<Key> {
        let old = match &pod {
            Some(pod) => self.pods.insert(key.clone(), Object::clone(pod)),
            None => self.pods.remove(key),
        };
        if let (Some(old), Some(new)) = (&old, &pod)
            && backend::same(old, new)
        {
            return Vec::new();
        }
        let mut concerned = Vec::new();
        let services = self.services.range_mut(Key::new(key.namespace.as_str(), "")..);
        for (service, selecting) in services.take_while(|(service, _)| service.namespace == key.namespace) {
            let had = selecting.pods.contains(&key.name);
            let has = pod
                .as_deref()
                .is_some_and(|pod| selector(&selecting.service).is_some_and(|wanted| selects(wanted, pod)));
            if has && !had {
                selecting.pods.insert(key.name.clone());
            }
            if had && !has {
                selecting.pods.remove(&key.name);
            }
            if had || has {
                concerned.push(service.clone());
            }
        }
        concerned
    }

    /// The services for which anything is computed.
    pub fn services(&self) -> impl Iterator<Item = &Key> + use<'_> {
        self.services.keys()
    }

    /// What [`compute`] says of one service; nothing where it is gone, or selects no pods.
    #[must_use]
    pub fn compute(&self, key: &Key, config: EndpointsConfig) -> Vec<(&'static str, Value)> {
        let Some(selecting) = self.services.get(key) else { return Vec::new() };
        let pods = selecting.pods.iter().filter_map(|name| {
            let pod = self.pods.get(&Key::new(key.namespace.as_str(), name.as_str()));
            pod.map(|pod| &**pod)
        });
        compute(&selecting.service, pods, config)
    }
}
