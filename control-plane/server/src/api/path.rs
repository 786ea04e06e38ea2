//! What a URL's path means, read off the table of kinds.

use control_plane_api::{Kind, kinds};

/// A path under `/api` or `/apis` that names a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The kind served there.
    pub kind: &'static Kind,
    /// The namespace, absent for cluster-scoped kinds and for all namespaces.
    pub namespace: Option<String>,
    /// The object, absent for the collection.
    pub name: Option<String>,
    /// The subresource of the object.
    pub subresource: Option<String>,
    /// The old form `/api/v1/watch/…`.
    pub watch: bool,
}

/// Everything that is served.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    /// Objects.
    Resource(Box<Target>),
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/VERSION` or `/apis/GROUP/VERSION`
    GroupVersion(String, String),
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/…`; the rest of the path.
    OpenApi(String),
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`, and one of their checks.
    Health(&'static str, Option<String>),
    /// `/metrics`
    Metrics,
    /// `/explain-schedule/NAMESPACE/POD`
    ExplainSchedule(String, String),
    /// `/.well-known/openid-configuration`
    OpenIdConfiguration,
    /// `/openid/v1/jwks`
    OpenIdKeys,
    /// `/`
    Root,
    /// Below a served group and version, but no resource.
    NoResource,
    /// Nothing at all.
    Nothing,
}

const HEALTH: &[&str] = &["healthz", "livez", "readyz"];
/// Subresources of a namespace; any other third segment is a resource in it.
const OF_NAMESPACES: &[&str] = &["status", "finalize"];

impl Route {
    /// Reads a path whose segments are percent-decoded here. Unreadable segments lead nowhere.
    pub fn parse(path: &str) -> Self {
        let Some(segments) =
            path.trim_start_matches('/').split('/').map(super::query::decode).collect::<Option<Vec<_>>>()
        else {
            return Self::Nothing;
        };
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let segments = match segments.as_slice() {
            [rest @ .., ""] if !rest.is_empty() => rest,
            all => all,
        };
        match segments {
            [""] => Self::Root,
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["api", version] => Self::group_version("", version),
            ["apis", group] if served_group(group) => Self::Group((*group).into()),
            ["apis", group, version] => Self::group_version(group, version),
            ["api", version, rest @ ..] => Self::resource("", version, rest),
            ["apis", group, version, rest @ ..] => Self::resource(group, version, rest),
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", rest @ ..] => Self::OpenApi(rest.join("/")),
            ["version"] => Self::Version,
            ["metrics"] => Self::Metrics,
            ["explain-schedule", namespace, pod] => Self::ExplainSchedule((*namespace).into(), (*pod).into()),
            [".well-known", "openid-configuration"] => Self::OpenIdConfiguration,
            ["openid", "v1", "jwks"] => Self::OpenIdKeys,
            [health] => match HEALTH.iter().find(|known| *known == health) {
                Some(known) => Self::Health(known, None),
                None => Self::Nothing,
            },
            [health, check] => match HEALTH.iter().find(|known| *known == health) {
                Some(known) => Self::Health(known, Some((*check).into())),
                None => Self::Nothing,
            },
            _ => Self::Nothing,
        }
    }

    /// The served path for metrics: one of a fixed number, whatever was asked for.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Resource(_) | Self::NoResource | Self::Nothing => "",
            Self::CoreVersions => "/api",
            Self::Groups => "/apis",
            Self::Group(_) => "/apis/group",
            Self::GroupVersion(..) => "/apis/group/version",
            Self::OpenApiV2 => "/openapi/v2",
            Self::OpenApiIndex | Self::OpenApi(_) => "/openapi/v3",
            Self::Version => "/version",
            Self::Health("readyz", _) => "/readyz",
            Self::Health("livez", _) => "/livez",
            Self::Health(..) => "/healthz",
            Self::Metrics => "/metrics",
            Self::ExplainSchedule(..) => "/explain-schedule",
            Self::OpenIdConfiguration => "/.well-known/openid-configuration",
            Self::OpenIdKeys => "/openid/v1/jwks",
            Self::Root => "/",
        }
    }

    fn group_version(group: &str, version: &str) -> Self {
        if served(group, version) { Self::GroupVersion(group.into(), version.into()) } else { Self::Nothing }
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Self {
        if !served(group, version) {
            return Self::Nothing;
        }
        let (watch, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            all => (false, all),
        };
        let (namespace, rest) = match rest {
            ["namespaces", _] | ["namespaces"] => (None, rest),
            ["namespaces", _, third, ..] if OF_NAMESPACES.contains(third) => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            all => (None, all),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            _ => return Self::NoResource,
        };
        let Some(kind) = kinds::find(group, version, plural) else { return Self::NoResource };
        let scope_fits = match (kind.namespaced, namespace) {
            (true, Some(_)) | (false, None) => true,
            (true, None) => name.is_none(),
            (false, Some(_)) => false,
        };
        if !scope_fits || subresource.is_some_and(|subresource| kind.subresource(subresource).is_none()) {
            return Self::NoResource;
        }
        Self::Resource(Box::new(Target {
            kind,
            namespace: namespace.map(Into::into),
            name: name.map(Into::into),
            subresource: subresource.map(Into::into),
            watch,
        }))
    }
}

fn served(group: &str, version: &str) -> bool {
    kinds::group_versions().contains(&(group, version))
}

fn served_group(group: &str) -> bool {
    !group.is_empty() && kinds::group_versions().iter().any(|(served, _)| *served == group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> String {
        match Route::parse(path) {
            Route::Resource(target) => format!(
                "{} {} {} {}{}",
                target.kind.plural,
                target.namespace.as_deref().unwrap_or("-"),
                target.name.as_deref().unwrap_or("-"),
                target.subresource.as_deref().unwrap_or("-"),
                if target.watch { " watch" } else { "" }
            ),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn resources_are_found_where_kubernetes_has_them() {
        let check = |path: &str, expected: &str| assert_eq!(resource(path), expected, "{path}");
        check("/api/v1/pods", "pods - - -");
        check("/api/v1/namespaces", "namespaces - - -");
        check("/api/v1/namespaces/x", "namespaces - x -");
        check("/api/v1/namespaces/x/status", "namespaces - x status");
        check("/api/v1/namespaces/x/finalize", "namespaces - x finalize");
        check("/api/v1/namespaces/x/pods", "pods x - -");
        check("/api/v1/namespaces/x/pods/", "pods x - -");
        check("/api/v1/namespaces/x/pods/p", "pods x p -");
        check("/api/v1/namespaces/x/pods/p/binding", "pods x p binding");
        check("/api/v1/namespaces/x/bindings", "bindings x - -");
        check("/api/v1/watch/namespaces/x/pods/p", "pods x p - watch");
        check("/api/v1/nodes/n/status", "nodes - n status");
        check("/apis/apps/v1/namespaces/x/deployments/d/scale", "deployments x d scale");
        check("/apis/coordination.k8s.io/v1/leases", "leases - - -");
        check("/api/v1/namespaces/x/pods/a%2Fb", "pods x a/b -");
    }

    #[test]
    fn the_rest_is_told_apart() {
        let check = |path: &str, expected: Route| assert_eq!(Route::parse(path), expected, "{path}");
        check("/", Route::Root);
        check("/api", Route::CoreVersions);
        check("/apis/", Route::Groups);
        check("/apis/apps", Route::Group("apps".into()));
        check("/apis/apps/v1", Route::GroupVersion("apps".into(), "v1".into()));
        check("/apis/apps/v9", Route::Nothing);
        check("/apis/nope.example.com", Route::Nothing);
        check("/apis/nope.example.com/v1/things", Route::Nothing);
        check("/api/v1/namespaces/default/podz", Route::NoResource);
        check("/api/v1/namespaces/default/nodes", Route::NoResource);
        check("/api/v1/pods/p", Route::NoResource);
        check("/api/v1/namespaces/x/pods/p/nonesuch", Route::NoResource);
        check("/livez/ping", Route::Health("livez", Some("ping".into())));
        check("/openapi/v3/apis/apps/v1", Route::OpenApi("apis/apps/v1".into()));
        check("/nope", Route::Nothing);
        check("/api/v1/namespaces/%FF/pods", Route::Nothing);
    }
}
