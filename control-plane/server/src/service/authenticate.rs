//! Who asks: by certificate, by token, or nobody in particular; and whom they ask to act as (GHOST-05).
//!
//! In Kubernetes' order: client certificates, static tokens, service accounts' tokens, bootstrap tokens. Whoever shows a
//! credential that none of them accepts gets 401, also where anyone would be let in. Why goes to the log, never the credential.

use control_plane_api::ApiError;
use control_plane_core::Snapshot;
use http::HeaderMap;
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

use super::Service;
use crate::auth::accounts::{self, Bound, Claims};
use crate::auth::{Attributes, Decision, Shown, User, joining};
use crate::tls::Peer;

/// No token is longer, in bytes.
const LONGEST: usize = 16 * 1024;
/// An object that is being deleted vouches for so many seconds more, as in Kubernetes.
const PARTING: i64 = 60;

impl Service {
    /// Whose request this is.
    ///
    /// # Errors
    /// 401 where credentials are shown and none of them is accepted, 403 for acting as someone without leave.
    pub fn authenticate(&self, peer: Option<&Peer>, headers: &HeaderMap) -> Result<User, ApiError> {
        if self.config.no_auth {
            return Ok(User::master("system:admin"));
        }
        let user = self.credentialed(peer, headers).map_err(|why| {
            tracing::info!("401: {why}");
            ApiError::unauthorized()
        })?;
        self.impersonated(user, headers)
    }

    fn credentialed(&self, peer: Option<&Peer>, headers: &HeaderMap) -> Result<User, String> {
        let vouched = peer.map_or(Ok(None), |peer| peer.user_at(self.clock.wall()));
        if let Ok(Some(user)) = vouched {
            return Ok(user.clone());
        }
        let by_token = match crate::auth::shown(headers) {
            Shown::Nothing => Ok(None),
            Shown::Unreadable => Err("the Authorization header cannot be read".to_owned()),
            Shown::Token(token) => self.user_of_token(&token).map(|(user, _)| Some(user)),
        };
        match (vouched, by_token) {
            (_, Ok(Some(user))) => Ok(user),
            (Err(why), _) | (Ok(_), Err(why)) => Err(why),
            (Ok(_), Ok(None)) => Ok(User::anonymous()),
        }
    }

    /// Whom a token stands for, and for which audiences it is (none stated: for this API's).
    ///
    /// # Errors
    /// Why it is not accepted; never with the token.
    pub fn user_of_token(&self, token: &str) -> Result<(User, Vec<String>), String> {
        let (user, audiences) = self.holder_of_token(token)?;
        match &self.issuer {
            Some(issuer) if !issuer.is_meant(&audiences) => Err("the token is for another audience".into()),
            _ => Ok((user, audiences)),
        }
    }

    /// As [`Self::user_of_token`], whatever the audience.
    ///
    /// # Errors
    /// Why it is not accepted; never with the token.
    pub fn holder_of_token(&self, token: &str) -> Result<(User, Vec<String>), String> {
        if token.len() > LONGEST {
            return Err("the token is too long".into());
        }
        if let Some(user) = self.tokens.find(token) {
            return Ok((user.clone(), Vec::new()));
        }
        let now = self.clock.wall();
        if let Some(node) = joining::board_of(token) {
            let reflector = self.fresh();
            let name = joining::board_secret_name(node);
            let secret = reflector.snapshot().get("secrets", joining::NAMESPACE, &name);
            return joining::board_user(node, token, secret.map(AsRef::as_ref))
                .map(|user| (user, Vec::new()));
        }
        if let Some(issuer) = &self.issuer
            && accounts::is_token(token, &issuer.name)
        {
            let claims = issuer.read(token, now)?;
            check_objects(self.fresh().snapshot(), &claims, now)?;
            return Ok((accounts::user_of(&claims), claims.audiences));
        }
        if let Some((id, given)) = joining::bootstrap_parts(token) {
            let reflector = self.fresh();
            let name = joining::bootstrap_secret(id);
            let secret = reflector.snapshot().get("secrets", joining::NAMESPACE, &name);
            return joining::bootstrap_user(id, given, secret.map(AsRef::as_ref), now)
                .map(|user| (user, Vec::new()));
        }
        Err("the token is unknown".into())
    }

    /// Who a request is to count as, by its `Impersonate-` headers.
    fn impersonated(&self, user: User, headers: &HeaderMap) -> Result<User, ApiError> {
        let (names, groups, uids) = (
            texts(headers, "impersonate-user")?,
            texts(headers, "impersonate-group")?,
            texts(headers, "impersonate-uid")?,
        );
        let mut extras: Vec<(String, Vec<String>)> = Vec::new();
        for name in headers.keys() {
            let Some(key) = name.as_str().strip_prefix("impersonate-extra-") else { continue };
            // As in Kubernetes, a key that cannot be decoded is meant as it stands.
            let key = crate::api::percent_decoded(key).unwrap_or_else(|| key.to_owned());
            extras.push((key, texts(headers, name.as_str())?));
        }
        let Some(name) = names.first().filter(|name| !name.is_empty()) else {
            if groups.is_empty() && uids.is_empty() && extras.is_empty() {
                return Ok(user);
            }
            return Err(ApiError::bad_request("requested to impersonate without an Impersonate-User header"));
        };
        let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        match account {
            Some((namespace, account)) => {
                self.may_be(&user, "", "serviceaccounts", "", namespace, account)?
            }
            None => self.may_be(&user, "", "users", "", "", name)?,
        }
        for group in &groups {
            self.may_be(&user, "", "groups", "", "", group)?;
        }
        for uid in &uids {
            self.may_be(&user, "authentication.k8s.io", "uids", "", "", uid)?;
        }
        for (key, values) in &extras {
            for value in values {
                self.may_be(&user, "authentication.k8s.io", "userextras", key, "", value)?;
            }
        }
        let mut other = User { name: name.clone(), groups, ..User::default() };
        if let (Some((namespace, _)), true) = (account, other.groups.is_empty()) {
            other.groups =
                vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")];
        }
        other.uid = uids.into_iter().next().unwrap_or_default();
        other.extra = extras.into_iter().collect();
        tracing::info!(user = user.name, acting_as = other.name, "a request counts as someone else's");
        Ok(other.with_usual_groups())
    }

    /// Whether a user may act as someone.
    fn may_be(
        &self,
        user: &User,
        group: &str,
        resource: &str,
        subresource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        let asked = Attributes {
            verb: "impersonate",
            group,
            resource,
            subresource,
            namespace,
            name,
            ..Attributes::default()
        };
        let Decision::Refused(why) = self.decide(user, &asked) else { return Ok(()) };
        let shown =
            if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
        let scope = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{namespace}\"")
        };
        let mut words = format!(
            "User {} cannot impersonate resource \"{shown}\" in API group \"{group}\" {scope}",
            Value::from(user.name.as_str())
        );
        if !why.is_empty() {
            words = format!("{words}: {why}");
        }
        Err(ApiError::forbidden(group, resource, name, &words))
    }
}

/// All values of a header. None may be left out: whoever asks to count as someone must never count as himself instead.
fn texts(headers: &HeaderMap, name: &str) -> Result<Vec<String>, ApiError> {
    let values = headers.get_all(name).into_iter();
    let texts = values.map(|value| std::str::from_utf8(value.as_bytes()).map(ToOwned::to_owned));
    texts.collect::<Result<_, _>>().map_err(|_| {
        ApiError::bad_request(format!(
            "the header {name} cannot be read: it is to be UTF-8, so send it as that"
        ))
    })
}

/// Whether the objects that a token of a service account speaks of are still those that they were.
fn check_objects(snapshot: &Snapshot, claims: &Claims, now: Timestamp) -> Result<(), String> {
    let still = |resource: &str, namespace: &str, name: &str, uid: &str| {
        let found = snapshot.get(resource, namespace, name);
        let same = found.filter(|object| object["metadata"]["uid"] == uid);
        let deleted = same.and_then(|object| object["metadata"]["deletionTimestamp"].as_str());
        let parted = deleted.is_some_and(|stamp| {
            let stamp = stamp.parse::<Timestamp>().ok();
            stamp.is_none_or(|stamp| stamp.checked_add(PARTING.seconds()).map_or(true, |until| until < now))
        });
        same.is_some() && !parted
    };
    let Claims { namespace, account, bound, .. } = claims;
    if !still("serviceaccounts", namespace, &account.name, &account.uid) {
        return Err(format!(
            "service account {namespace}/{} is gone, or another than the token's",
            account.name
        ));
    }
    let (resource, place, object) = match bound {
        Bound::Nothing => return Ok(()),
        Bound::Pod(pod, _) => ("pods", namespace.as_str(), pod),
        Bound::Secret(secret) => ("secrets", namespace.as_str(), secret),
        Bound::Node(node) => ("nodes", "", node),
    };
    if still(resource, place, &object.name, &object.uid) {
        return Ok(());
    }
    Err(format!("{resource} {}, to which the token is bound, is gone or another", object.name))
}
