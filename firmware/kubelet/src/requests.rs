//! What is asked of the server next. Nothing is queued: each time the connection is free the most
//! pressing need is looked up and its request built from the state of that moment, so that changes
//! coalesce and nothing stale is sent. Renewals go first (NODE-01).

use alloc::format;
use alloc::string::String;

use crate::flight::{Flight, Intent};
use crate::http::{Content, Method, Request};
use crate::json::Json;
use crate::kubelet::{Kubelet, Registration, Standing};
use crate::node::{self, Report};
use crate::pod::Stage;
use crate::pod_status;
use crate::seam::{ConnId, Output};

/// How long the first list of pods may delay the first status report, in milliseconds.
const LIST_GRACE: u64 = 2000;

impl Kubelet {
    /// Sends the most pressing request, if any is due.
    pub(crate) fn send_next(&mut self) {
        let Some((intent, request)) = self.next_request() else { return };
        let bytes = request.encode(&self.host, self.config.token.as_deref());
        self.flight = Some(Flight::new(intent, self.millis, self.timeout()));
        self.outputs.push_back(Output::Send(ConnId::REQUESTS, bytes));
    }

    fn next_request(&mut self) -> Option<(Intent, Request)> {
        let millis = self.millis;
        if self.heard && self.lease.due <= millis {
            return Some(self.lease_request());
        }
        if self.renewal_is_near() {
            return None;
        }
        if self.node.registration != Registration::Done {
            return (self.node.retry.due <= millis).then(|| self.registration_request());
        }
        if self.sync.need_list && self.sync.retry.due <= millis {
            self.begin_list();
            let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", self.config.node_name);
            return Some((Intent::ListPods, Request::get(path)));
        }
        if let Some(request) = self.pod_request() {
            return Some(request);
        }
        if self.report_due() <= millis {
            return Some(self.report_request());
        }
        let (name, request) = self.events.next(millis, &self.config.node_name)?;
        Some((Intent::Event { name }, request))
    }

    /// When the next request is due while none is on its way, in milliseconds.
    pub(crate) fn next_request_due(&self) -> u64 {
        let lease = if self.heard { self.lease.due } else { u64::MAX };
        if self.renewal_is_near() {
            return lease;
        }
        if self.node.registration != Registration::Done {
            return lease.min(self.node.retry.due);
        }
        let list = if self.sync.need_list { self.sync.retry.due } else { u64::MAX };
        let pods = self.pods.iter().map(|pod| match pod.stage {
            Stage::Tombstone => u64::MAX,
            Stage::Deleting => pod.delete_after,
            Stage::Creating { .. } | Stage::Active | Stage::Terminal | Stage::Stopping => {
                if self.lease.standing == Standing::Sound { pod.posting.deadline() } else { u64::MAX }
            }
        });
        lease.min(list).min(pods.min().unwrap_or(u64::MAX)).min(self.report_due()).min(self.events.deadline())
    }

    /// Reports wait for the first list, since what the pods hold is not known before, but not for ever.
    fn report_due(&self) -> u64 {
        let due = self.node.report_due.max(self.node.retry.due);
        if self.sync.listed { due } else { due.max(self.sync.first_wanted + LIST_GRACE) }
    }

    fn lease_request(&mut self) -> (Intent, Request) {
        let wall = self.clock.at(self.millis);
        let collection = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        if self.lease.create {
            let body = node::lease(&self.config, &self.node.uid, wall);
            let path = String::from(collection);
            return (Intent::CreateLease, Request { method: Method::Post, path, body: json(body) });
        }
        let body = Some((Content::MergePatch, node::renewal(&self.config, wall)));
        let path = format!("{collection}/{}", self.config.node_name);
        (Intent::RenewLease, Request { method: Method::Patch, path, body })
    }

    fn registration_request(&self) -> (Intent, Request) {
        match self.node.registration {
            Registration::Create => {
                let body = json(node::object(&self.config));
                (Intent::CreateNode, Request { method: Method::Post, path: "/api/v1/nodes".into(), body })
            }
            Registration::Adopt | Registration::Done => {
                let body = Some((Content::MergePatch, node::labels_patch(&self.config)));
                (Intent::AdoptNode, Request { method: Method::Patch, path: self.node_path(""), body })
            }
        }
    }

    fn node_path(&self, subresource: &str) -> String {
        format!("/api/v1/nodes/{}{subresource}", self.config.node_name)
    }

    /// The status of one pod, read first where the API may show something else than we know; or the removal
    /// of one that has ended.
    fn pod_request(&mut self) -> Option<(Intent, Request)> {
        let (ip, wall, millis) = (self.ip(), self.wall(), self.millis);
        let silence = self.out_of_contact.is_some();
        let sound = self.lease.standing == Standing::Sound;
        for pod in &mut self.pods {
            let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
            let uid = pod.uid.clone();
            match pod.stage {
                Stage::Creating { .. } | Stage::Active | Stage::Terminal | Stage::Stopping => {
                    if !sound || !pod.posting.is_due(millis) {
                        continue;
                    }
                    let Some((body, sent)) = pod_status::patch(pod, &ip, &wall) else { continue };
                    if silence || pod.posting.needs_reading(&sent) {
                        pod.posting.postpone(millis);
                        return Some((Intent::PodStatus { uid, sent: None }, Request::get(path)));
                    }
                    let body = Some((Content::StrategicPatch, body));
                    let path = format!("{path}/status");
                    let intent = Intent::PodStatus { uid, sent: Some(sent) };
                    return Some((intent, Request { method: Method::Patch, path, body }));
                }
                Stage::Deleting if pod.delete_after <= millis => {
                    let body = Json::document(|j| {
                        j.field("kind", "DeleteOptions");
                        j.field("apiVersion", "v1");
                        j.key("gracePeriodSeconds").number(0);
                        j.key("preconditions").object(|j| j.field("uid", &uid));
                    });
                    let request = Request { method: Method::Delete, path, body: json(body) };
                    return Some((Intent::DeletePod { uid }, request));
                }
                Stage::Deleting | Stage::Tombstone => {}
            }
        }
        None
    }

    /// The node's status; read first where the API may show something else than we wrote.
    fn report_request(&mut self) -> (Intent, Request) {
        let Some(mut view) = self.node.view.take() else {
            return (Intent::ReadNode, Request::get(self.node_path("")));
        };
        self.node.before = Some(view.of_any_version());
        let figures = self.figures();
        let wall = self.clock.at(self.millis);
        let report = Report {
            config: &self.config,
            ledger: &self.ledger,
            figures: &figures,
            memory_capacity: self.memory_capacity.unwrap_or_default(),
            boot_id: self.boot_id,
            full: self.node.full,
        };
        let body = Some((Content::StrategicPatch, report.patch(&mut view, wall)));
        let path = self.node_path("/status");
        (Intent::NodeStatus { figures, view }, Request { method: Method::Patch, path, body })
    }
}

fn json(body: String) -> Option<(Content, String)> {
    Some((Content::Json, body))
}
