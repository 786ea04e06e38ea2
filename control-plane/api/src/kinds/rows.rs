//! The rows of the table of kinds, by group in the order in which `/apis` lists groups, then by resource name.

use super::{Kind, Subresource};

/// The verbs of an ordinary stored kind, in the order in which discovery prints them.
pub const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const STATUS_VERBS: &[&str] = &["get", "patch", "update"];
const CREATE_ONLY: &[&str] = &["create"];

/// The category of what `kubectl get all` shows.
const ALL: &[&str] = &["all"];
/// The category of what extends the API.
const EXTENSIONS: &[&str] = &["api-extensions"];

const SCALE: Subresource = sub("scale", "autoscaling", "v1", "Scale", STATUS_VERBS);

const fn sub(
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Subresource {
    Subresource { name, group, version, kind, verbs }
}

const fn status(group: &'static str, version: &'static str, kind: &'static str) -> Subresource {
    sub("status", group, version, kind, STATUS_VERBS)
}

/// A stored kind without subresources, short names or categories; what differs follows the semicolon. The last
/// argument before it is the group and version of its definition in the embedded schema.
macro_rules! row {
    ($($own:literal),*; $($field:ident: $value:expr),*) => {
        Kind { $($field: $value,)* ..row!($($own),*) }
    };
    ($group:literal, $version:literal, $kind:literal, $plural:literal, $singular:literal, $schema:literal) => {
        Kind {
            group: $group,
            version: $version,
            kind: $kind,
            list_kind: concat!($kind, "List"),
            plural: $plural,
            singular: $singular,
            short_names: &[],
            categories: &[],
            namespaced: true,
            generation: false,
            subresources: &[],
            verbs: ALL_VERBS,
            resource: $plural,
            schema: concat!($schema, ".", $kind),
        }
    };
}

/// Every kind served.
pub(super) static KINDS: &[Kind] = &[
    row!("", "v1", "Binding", "bindings", "binding", "core.v1"; verbs: CREATE_ONLY, list_kind: ""),
    row!("", "v1", "ConfigMap", "configmaps", "configmap", "core.v1"; short_names: &["cm"]),
    row!("", "v1", "Endpoints", "endpoints", "endpoints", "core.v1"; short_names: &["ep"]),
    row!("", "v1", "Event", "events", "event", "core.v1"; short_names: &["ev"]),
    row!("", "v1", "LimitRange", "limitranges", "limitrange", "core.v1"; short_names: &["limits"]),
    row!("", "v1", "Namespace", "namespaces", "namespace", "core.v1";
        short_names: &["ns"], namespaced: false, verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: &[sub("finalize", "", "v1", "Namespace", &["update"]), status("", "v1", "Namespace")]),
    row!("", "v1", "Node", "nodes", "node", "core.v1"; short_names: &["no"], namespaced: false,
        subresources: &[status("", "v1", "Node")]),
    row!("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", "core.v1";
        short_names: &["pvc"],
        subresources: &[status("", "v1", "PersistentVolumeClaim")]),
    row!("", "v1", "PersistentVolume", "persistentvolumes", "persistentvolume", "core.v1";
        short_names: &["pv"], namespaced: false,
        subresources: &[status("", "v1", "PersistentVolume")]),
    row!("", "v1", "Pod", "pods", "pod", "core.v1"; short_names: &["po"], categories: ALL,
    subresources: &[
        sub("binding", "", "v1", "Binding", CREATE_ONLY),
        sub("eviction", "policy", "v1", "Eviction", CREATE_ONLY),
        sub("log", "", "v1", "Pod", &["get"]),
        status("", "v1", "Pod"),
    ]),
    row!("", "v1", "PodTemplate", "podtemplates", "podtemplate", "core.v1"),
    row!("", "v1", "ReplicationController", "replicationcontrollers", "replicationcontroller", "core.v1";
        generation: true, short_names: &["rc"], categories: ALL,
        subresources: &[SCALE, status("", "v1", "ReplicationController")]),
    row!("", "v1", "ResourceQuota", "resourcequotas", "resourcequota", "core.v1"; short_names: &["quota"],
        subresources: &[status("", "v1", "ResourceQuota")]),
    row!("", "v1", "Secret", "secrets", "secret", "core.v1"),
    row!("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount", "core.v1"; short_names: &["sa"],
        subresources: &[sub("token", "authentication.k8s.io", "v1", "TokenRequest", CREATE_ONLY)]),
    row!("", "v1", "Service", "services", "service", "core.v1"; short_names: &["svc"], categories: ALL,
        subresources: &[status("", "v1", "Service")]),
    row!("apiregistration.k8s.io", "v1", "APIService", "apiservices", "apiservice", "apiregistration.v1";
        categories: EXTENSIONS, namespaced: false,
        subresources: &[status("apiregistration.k8s.io", "v1", "APIService")]),
    row!("apps", "v1", "ControllerRevision", "controllerrevisions", "controllerrevision", "apps.v1"),
    row!("apps", "v1", "DaemonSet", "daemonsets", "daemonset", "apps.v1"; generation: true, short_names: &["ds"], categories: ALL,
        subresources: &[status("apps", "v1", "DaemonSet")]),
    row!("apps", "v1", "Deployment", "deployments", "deployment", "apps.v1"; generation: true, short_names: &["deploy"], categories: ALL,
        subresources: &[SCALE, status("apps", "v1", "Deployment")]),
    row!("apps", "v1", "ReplicaSet", "replicasets", "replicaset", "apps.v1"; generation: true, short_names: &["rs"], categories: ALL,
        subresources: &[SCALE, status("apps", "v1", "ReplicaSet")]),
    row!("apps", "v1", "StatefulSet", "statefulsets", "statefulset", "apps.v1"; generation: true, short_names: &["sts"], categories: ALL,
        subresources: &[SCALE, status("apps", "v1", "StatefulSet")]),
    row!("events.k8s.io", "v1", "Event", "events", "event", "events.v1"; short_names: &["ev"]),
    row!("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview",
        "authentication.v1";
        namespaced: false, verbs: CREATE_ONLY, list_kind: ""),
    row!("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", "tokenreview", "authentication.v1";
        namespaced: false, verbs: CREATE_ONLY, list_kind: ""),
    row!("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", "localsubjectaccessreview",
        "authorization.v1";
        verbs: CREATE_ONLY, list_kind: ""),
    row!("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", "selfsubjectaccessreview",
        "authorization.v1";
        namespaced: false, verbs: CREATE_ONLY, list_kind: ""),
    row!("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview",
        "authorization.v1";
        namespaced: false, verbs: CREATE_ONLY, list_kind: ""),
    row!("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", "subjectaccessreview",
        "authorization.v1";
        namespaced: false, verbs: CREATE_ONLY, list_kind: ""),
    row!("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "horizontalpodautoscaler",
        "autoscaling.v2"; short_names: &["hpa"], categories: ALL,
        subresources: &[status("autoscaling", "v2", "HorizontalPodAutoscaler")]),
    row!("batch", "v1", "CronJob", "cronjobs", "cronjob", "batch.v1"; generation: true, short_names: &["cj"], categories: ALL,
        subresources: &[status("batch", "v1", "CronJob")]),
    row!("batch", "v1", "Job", "jobs", "job", "batch.v1"; generation: true, categories: ALL,
        subresources: &[status("batch", "v1", "Job")]),
    row!("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", "certificatesigningrequest",
    "certificates.v1"; short_names: &["csr"], namespaced: false,
    subresources: &[status("certificates.k8s.io", "v1", "CertificateSigningRequest")]),
    row!("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "ingressclass", "networking.v1";
        generation: true, namespaced: false),
    row!("networking.k8s.io", "v1", "Ingress", "ingresses", "ingress", "networking.v1"; generation: true, short_names: &["ing"],
        subresources: &[status("networking.k8s.io", "v1", "Ingress")]),
    row!("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "networkpolicy", "networking.v1";
        generation: true, short_names: &["netpol"]),
    row!("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget", "policy.v1";
        generation: true, short_names: &["pdb"],
        subresources: &[status("policy", "v1", "PodDisruptionBudget")]),
    row!("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding",
        "rbac.v1";
        namespaced: false),
    row!("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "clusterrole", "rbac.v1"; namespaced: false),
    row!("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "rolebinding", "rbac.v1"),
    row!("rbac.authorization.k8s.io", "v1", "Role", "roles", "role", "rbac.v1"),
    row!("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "csidriver", "storage.v1"; generation: true, namespaced: false),
    row!("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode", "storage.v1"; namespaced: false),
    row!(
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        "csistoragecapacity",
        "storage.v1"
    ),
    row!("storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass", "storage.v1";
        short_names: &["sc"], namespaced: false),
    row!("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "volumeattachment", "storage.v1";
        namespaced: false,
        subresources: &[status("storage.k8s.io", "v1", "VolumeAttachment")]),
    row!("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutatingwebhookconfiguration",
        "admissionregistration.v1";
        generation: true, categories: EXTENSIONS, namespaced: false),
    row!("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicy",
        "admissionregistration.v1"; generation: true, categories: EXTENSIONS, namespaced: false,
        subresources: &[status("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy")]),
    row!("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "validatingadmissionpolicybinding",
        "admissionregistration.v1";
        generation: true, categories: EXTENSIONS, namespaced: false),
    row!("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validatingwebhookconfiguration",
        "admissionregistration.v1";
        generation: true, categories: EXTENSIONS, namespaced: false),
    row!("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "customresourcedefinition",
        "apiextensions.v1"; generation: true, short_names: &["crd", "crds"], categories: EXTENSIONS, namespaced: false,
        subresources: &[status("apiextensions.k8s.io", "v1", "CustomResourceDefinition")]),
    row!("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass", "scheduling.v1";
        generation: true, short_names: &["pc"], namespaced: false),
    row!("coordination.k8s.io", "v1", "Lease", "leases", "lease", "coordination.v1"),
    row!("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass", "node.v1"; namespaced: false),
    row!("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice", "discovery.v1"; generation: true),
    row!("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", "flowschema", "flowcontrol.v1";
        generation: true, namespaced: false,
        subresources: &[status("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema")]),
    row!("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", "prioritylevelconfiguration",
        "flowcontrol.v1"; generation: true, namespaced: false,
        subresources: &[status("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration")]),
];
