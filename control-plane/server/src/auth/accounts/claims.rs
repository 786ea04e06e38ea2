//! What a service account's token says.

use jiff::Timestamp;
use serde_json::{Value, json};

/// Clocks may differ so much, in seconds, before a token is taken for one of the future.
const LEEWAY: i64 = 60;

/// A name and the uid that it had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

/// The object without which a token does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// None.
    Nothing,
    /// A pod, and the node on which it was then.
    Pod(Subject, Option<Subject>),
    /// A secret of the account's namespace.
    Secret(Subject),
    /// A node.
    Node(Subject),
}

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The account's namespace.
    pub namespace: String,
    /// The account.
    pub account: Subject,
    /// What it is bound to.
    pub bound: Bound,
    /// For whom it is.
    pub audiences: Vec<String>,
    /// From this second of the Unix epoch.
    pub from: i64,
    /// Until this one, exclusively.
    pub until: i64,
    /// Its id.
    pub id: String,
}

impl Subject {
    fn to_value(&self) -> Value {
        json!({"name": self.name, "uid": self.uid})
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        value.is_object().then(|| Self { name: text("name"), uid: text("uid") })
    }
}

impl Claims {
    /// As the payload of a token of this issuer.
    pub fn to_value(&self, issuer: &str) -> Value {
        let mut about = json!({"namespace": self.namespace, "serviceaccount": self.account.to_value()});
        match &self.bound {
            Bound::Nothing => {}
            Bound::Pod(pod, node) => {
                about["pod"] = pod.to_value();
                if let Some(node) = node {
                    about["node"] = node.to_value();
                }
            }
            Bound::Secret(secret) => about["secret"] = secret.to_value(),
            Bound::Node(node) => about["node"] = node.to_value(),
        }
        json!({
            "aud": self.audiences,
            "exp": self.until,
            "iat": self.from,
            "iss": issuer,
            "jti": self.id,
            "kubernetes.io": about,
            "nbf": self.from,
            "sub": format!("system:serviceaccount:{}:{}", self.namespace, self.account.name),
        })
    }

    /// Reads the payload of a token whose signature was found good.
    ///
    /// # Errors
    /// When it is of another issuer, out of its time, or not of this form.
    pub fn read(payload: &Value, issuer: &str, now: Timestamp) -> Result<Self, String> {
        if payload["iss"] != issuer {
            return Err("the token is of another issuer".into());
        }
        let second = |field: &str| payload[field].as_f64().map(|second| second as i64);
        let until = second("exp").ok_or("the token has no time of expiry")?;
        let from = second("nbf").or_else(|| second("iat")).unwrap_or_default();
        if now.as_second() >= until {
            return Err("the token has expired".into());
        }
        if now.as_second() + LEEWAY < from {
            return Err("the token is not yet valid".into());
        }
        let about = &payload["kubernetes.io"];
        let namespace = about["namespace"].as_str().unwrap_or_default().to_owned();
        let account = Subject::read(&about["serviceaccount"]).unwrap_or_default();
        if payload["sub"] != format!("system:serviceaccount:{namespace}:{}", account.name)
            || account.name.is_empty()
            || account.uid.is_empty()
        {
            return Err("the token does not name one service account".into());
        }
        let part = |field: &str| Subject::read(&about[field]);
        let bound = match (part("pod"), part("secret"), part("node")) {
            (Some(pod), _, node) => Bound::Pod(pod, node),
            (None, Some(secret), _) => Bound::Secret(secret),
            (None, None, Some(node)) => Bound::Node(node),
            (None, None, None) => Bound::Nothing,
        };
        let audiences = match &payload["aud"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(many) => many.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
            _ => Vec::new(),
        };
        let id = payload["jti"].as_str().unwrap_or_default().to_owned();
        Ok(Self { namespace, account, bound, audiences, from, until, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_another_form_are_refused() {
        let good = json!({
            "iss": "me", "exp": 2000, "aud": "here", "sub": "system:serviceaccount:ns:robot",
            "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "u"}},
        });
        let now = Timestamp::from_second(1000).unwrap();
        assert_eq!(Claims::read(&good, "me", now).unwrap().audiences, ["here"]);
        let check = |field: &str, value: Value, word: &str| {
            let mut bad = good.clone();
            bad[field] = value;
            let why = Claims::read(&bad, "me", now).unwrap_err();
            assert!(why.contains(word), "{field}: {why}");
        };
        check("iss", json!("you"), "issuer");
        check("iss", Value::Null, "issuer");
        check("exp", Value::Null, "expiry");
        check("exp", json!("2000"), "expiry");
        check("exp", json!(-5), "expired");
        check("nbf", json!(1100), "not yet valid");
        check("sub", json!("system:serviceaccount:ns:other"), "one service account");
        check("kubernetes.io", Value::Null, "one service account");
        check(
            "kubernetes.io",
            json!({"namespace": "ns", "serviceaccount": {"name": "robot"}}),
            "one service account",
        );
    }
}
