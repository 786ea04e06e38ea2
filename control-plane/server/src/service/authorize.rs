//! Whether someone may do something: masters may, then boards by what is theirs, then everyone by their roles (GHOST-05).

use std::sync::{Arc, PoisonError};

use control_plane_api::{ApiError, Kind};
use serde_json::Value;

use super::Service;
use crate::auth::rbac::{self, Grant, Policy, Rule};
use crate::auth::{Asked, Attributes, Decision, MASTERS, User, node};

impl Service {
    /// The policy that all roles and bindings make, made anew when one of them changed.
    pub fn policy(&self) -> Arc<Policy> {
        let reflector = self.fresh();
        let version = reflector.policy_version();
        let mut held = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        match held.as_ref() {
            Some((of, policy)) if *of == version => Arc::clone(policy),
            Some(_) | None => {
                let policy = Arc::new(Policy::of(reflector.snapshot()));
                *held = Some((version, Arc::clone(&policy)));
                policy
            }
        }
    }

    /// What the authorisers say to a question about a resource.
    pub fn decide(&self, user: &User, asked: &Attributes<'_>) -> Decision {
        if user.is_in(MASTERS) {
            return Decision::Allowed(String::new());
        }
        let of_board = user.node().map(|name| {
            let reflector = self.fresh();
            node::decide(name, asked, rbac::node_rules(), reflector.snapshot())
        });
        match (of_board, self.policy().decide(user, asked)) {
            (Some(Decision::Allowed(why)), _) | (_, Decision::Allowed(why)) => Decision::Allowed(why),
            (Some(Decision::Refused(board)), Decision::Refused(roles)) => {
                let said: Vec<String> = [board, roles].into_iter().filter(|why| !why.is_empty()).collect();
                Decision::Refused(said.join("\n"))
            }
            (None, refused) => refused,
        }
    }

    /// What the authorisers say to a question about a path; `verb` is a method in lower case.
    pub fn decide_path(&self, user: &User, verb: &str, path: &str) -> Decision {
        if user.is_in(MASTERS) {
            return Decision::Allowed(String::new());
        }
        self.policy().decide_path(user, verb, path)
    }

    /// Whether a request is let through.
    ///
    /// # Errors
    /// 403 in Kubernetes' words.
    pub fn authorize(&self, user: &User, asked: &Asked<'_>) -> Result<String, ApiError> {
        match self.decide(user, &asked.attributes()) {
            Decision::Allowed(why) => Ok(why),
            Decision::Refused(why) => Err(asked.refusal(user, &why)),
        }
    }

    /// As [`Self::authorize`], for a path that is no resource.
    ///
    /// # Errors
    /// 403 in Kubernetes' words.
    pub fn authorize_path(&self, user: &User, verb: &str, path: &str) -> Result<String, ApiError> {
        match self.decide_path(user, verb, path) {
            Decision::Allowed(why) => Ok(why),
            Decision::Refused(why) => {
                let mut refusal = ApiError::forbidden_path(&user.name, verb, path);
                if !why.is_empty() {
                    refusal.message = format!("{}: {why}", refusal.message);
                }
                Err(refusal)
            }
        }
    }

    /// Whether a user may write a role or binding: nobody grants what they do not hold, unless they may `escalate` or `bind`.
    ///
    /// # Errors
    /// 403 with what is not held, 404 for a role that is bound and absent.
    pub fn check_grant(
        &self,
        user: &User,
        kind: &Kind,
        namespace: Option<&str>,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), ApiError> {
        if !rbac::RESOURCES.contains(&kind.resource) || user.is_in(MASTERS) {
            return Ok(());
        }
        let Some(grant) = rbac::grant_of(kind.resource, old, new) else { return Ok(()) };
        let namespace = namespace.unwrap_or_default();
        let name = new["metadata"]["name"].as_str().unwrap_or_default();
        let stored = if old.is_some() { name } else { "" };
        let may = |verb: &str, resource: &str, name: &str| {
            let asked =
                Attributes { verb, group: rbac::GROUP, resource, namespace, name, ..Attributes::default() };
            self.decide(user, &asked).is_allowed()
        };
        let refuse = |why: &str| Err(ApiError::forbidden(kind.group, kind.plural, name, why));
        let policy = self.policy();
        let rules = match grant {
            Grant::Rules { .. } if may("escalate", kind.plural, stored) => return Ok(()),
            Grant::Rules { rules, aggregates } => {
                let everything = Rule::everything();
                if aggregates && rbac::not_held(&policy, user, "", &everything).is_some() {
                    return refuse("must have cluster-admin privileges to use an aggregationRule");
                }
                rules
            }
            Grant::Role(of, role) => {
                let (resource, shown, place) = match of.as_str() {
                    "Role" => ("roles", "role", namespace),
                    _ => ("clusterroles", "clusterrole", ""),
                };
                if may("bind", resource, &role) {
                    return Ok(());
                }
                let reflector = self.fresh();
                let Some(found) = reflector.snapshot().get(resource, place, &role) else {
                    return Err(ApiError::not_found_in(rbac::GROUP, shown, &role));
                };
                Policy::rules_of(reflector.snapshot(), found)
            }
        };
        match rbac::not_held(&policy, user, namespace, &rules) {
            None => Ok(()),
            Some(why) => refuse(&why),
        }
    }
}
