//! Tokens of service accounts: signed JSON web tokens with Kubernetes' claims, bound to an audience, a time and an object.
//!
//! Pure apart from `keys`, which reads and makes the key files. What a token says about objects (the account is still the same,
//! the pod is still there) is checked against a snapshot that is given.

mod claims;
mod jwt;
mod keys;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::claims::{Bound, Claims, Subject};
pub use self::keys::{Keys, PublicKey};

use super::User;

/// Who issues tokens, and with which keys.
#[derive(Debug)]
pub struct Issuer {
    /// The `iss` of tokens.
    pub name: String,
    /// For whom the tokens are that this API accepts, and that it gives who asks for nobody else's.
    pub audiences: Vec<String>,
    keys: Keys,
}

impl Issuer {
    /// An issuer, whose name is also the audience of this API.
    pub fn new(name: &str, keys: Keys) -> Self {
        Self { name: name.into(), audiences: vec![name.into()], keys }
    }

    /// The same where this API has these audiences; none leaves it as it is.
    #[must_use]
    pub fn for_audiences(self, audiences: &[String]) -> Self {
        if audiences.is_empty() { self } else { Self { audiences: audiences.to_vec(), ..self } }
    }

    /// Whether a token for these audiences is for this API; one that states none is.
    pub fn is_meant(&self, audiences: &[String]) -> bool {
        audiences.is_empty() || audiences.iter().any(|one| self.audiences.contains(one))
    }

    /// A token that says this.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn issue(&self, claims: &Claims) -> Result<String, String> {
        jwt::sign(&claims.to_value(&self.name), &self.keys)
    }

    /// What a token says, once its signature, issuer and time are found good.
    ///
    /// # Errors
    /// Why it is not good; never with the token itself.
    pub fn read(&self, token: &str, now: Timestamp) -> Result<Claims, String> {
        let payload = jwt::verify(token, self.keys.verifying())?;
        Claims::read(&payload, &self.name, now)
    }

    /// The document at `/.well-known/openid-configuration`, for a server at `host`.
    pub fn discovery(&self, host: &str) -> Value {
        let mut algorithms: Vec<&str> = self.keys.verifying().iter().map(PublicKey::algorithm).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        json!({
            "issuer": self.name,
            "jwks_uri": format!("https://{host}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        })
    }

    /// The document at `/openid/v1/jwks`.
    pub fn key_set(&self) -> Value {
        json!({"keys": self.keys.verifying().iter().map(PublicKey::to_jwk).collect::<Vec<_>>()})
    }
}

/// Whether a token is one of these at all: anything else is left to other authenticators.
pub fn is_token(text: &str, issuer: &str) -> bool {
    jwt::claimed_issuer(text).as_deref() == Some(issuer)
}

/// The user that an account is.
pub fn user_of(claims: &Claims) -> User {
    let Claims { namespace, account, bound, id, .. } = claims;
    let groups = vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")];
    let mut user = User::known(format!("system:serviceaccount:{namespace}:{}", account.name), groups);
    user.uid = account.uid.clone();
    user.credential_id(&format!("JTI={id}"));
    let mut note = |field: &str, value: &str| {
        user.extra.insert(format!("authentication.kubernetes.io/{field}"), vec![value.to_owned()]);
    };
    match bound {
        Bound::Pod(pod, node) => {
            note("pod-name", &pod.name);
            note("pod-uid", &pod.uid);
            if let Some(node) = node {
                note("node-name", &node.name);
                if !node.uid.is_empty() {
                    note("node-uid", &node.uid);
                }
            }
        }
        Bound::Node(node) => {
            note("node-name", &node.name);
            note("node-uid", &node.uid);
        }
        Bound::Secret(_) | Bound::Nothing => {}
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(name: &str) -> Issuer {
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        Issuer::new(name, Keys::of_private(&key).unwrap())
    }

    fn claims() -> Claims {
        Claims {
            namespace: "ns".into(),
            account: Subject { name: "robot".into(), uid: "u1".into() },
            bound: Bound::Pod(
                Subject { name: "p".into(), uid: "u2".into() },
                Some(Subject { name: "a".into(), uid: "u3".into() }),
            ),
            audiences: vec!["here".into(), "there".into()],
            from: 1000,
            until: 2000,
            id: "j1".into(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_token_says_what_was_put_into_it_until_it_expires() {
        let issuer = issuer("me");
        let token = issuer.issue(&claims()).unwrap();
        assert!(is_token(&token, "me") && !is_token(&token, "you") && !is_token("opaque", "me"));
        assert_eq!(issuer.read(&token, at(1500)), Ok(claims()));
        assert_eq!(issuer.read(&token, at(1999)), Ok(claims()));
        assert!(issuer.read(&token, at(2000)).unwrap_err().contains("expired"));
        assert!(issuer.read(&token, at(900)).unwrap_err().contains("not yet valid"));
        let user = user_of(&claims());
        assert_eq!(user.name, "system:serviceaccount:ns:robot");
        assert_eq!(user.uid, "u1");
        assert_eq!(
            user.groups,
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        );
        assert_eq!(user.extra["authentication.kubernetes.io/pod-name"], ["p"]);
        assert_eq!(user.extra["authentication.kubernetes.io/node-uid"], ["u3"]);
        assert_eq!(user.extra["authentication.kubernetes.io/credential-id"], ["JTI=j1"]);
    }

    #[test]
    fn forged_tokens_are_refused() {
        let (mine, other) = (issuer("me"), issuer("me"));
        let token = mine.issue(&claims()).unwrap();
        let refused = |token: &str, word: &str| {
            let why = mine.read(token, at(1500)).unwrap_err();
            assert!(why.contains(word), "{why}, expected {word}");
            assert!(token.len() < 20 || !why.contains(token), "{why}");
        };
        refused(&other.issue(&claims()).unwrap(), "signature");
        let parts: Vec<&str> = token.split('.').collect();
        let encode = |value: Value| crate::base64::encode(value.to_string().as_bytes());
        let header = |alg: &str| encode(json!({"alg": alg}));
        for alg in ["none", "None", "HS256", "RS256", "ES384", ""] {
            refused(&format!("{}.{}.{}", header(alg), parts[1], parts[2]), "algorithm");
            refused(&format!("{}.{}.", header(alg), parts[1]), "algorithm");
        }
        let mut payload = claims().to_value("me");
        payload["sub"] = json!("system:serviceaccount:kube-system:root");
        refused(&format!("{}.{}.{}", parts[0], encode(payload), parts[2]), "signature");
        refused(&format!("{}.{}.{}", header("ES256"), parts[1], ""), "signature");
        refused(
            &format!("{}.{}.{}", encode(json!({"alg": "ES256", "crit": ["x"]})), parts[1], parts[2]),
            "critical",
        );
        refused(&format!("{}.{}", parts[0], parts[1]), "three parts");
        refused(&format!("{token}.x"), "three parts");
        refused("a.b.c", "");
        refused(&"x.".repeat(40_000), "too long");
        let elsewhere = Issuer::new("you", Keys::of_private(&mine.keys.private_pem().unwrap()).unwrap());
        refused(&elsewhere.issue(&claims()).unwrap(), "issuer");
    }

    #[test]
    fn the_key_set_and_the_discovery_document_name_the_keys() {
        let issuer = issuer("https://kubernetes.default.svc.cluster.local");
        let set = issuer.key_set();
        let key = &set["keys"][0];
        assert_eq!(
            (&key["kty"], &key["crv"], &key["alg"], &key["use"]),
            (&json!("EC"), &json!("P-256"), &json!("ES256"), &json!("sig"))
        );
        assert_eq!(crate::base64::decode(key["x"].as_str().unwrap()).unwrap().len(), 32);
        let token = issuer.issue(&claims()).unwrap();
        let header = crate::base64::decode(token.split('.').next().unwrap()).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        assert_eq!(header["kid"], key["kid"]);
        let document = issuer.discovery("127.0.0.1:6443");
        assert_eq!(document["jwks_uri"], "https://127.0.0.1:6443/openid/v1/jwks");
        assert_eq!(document["id_token_signing_alg_values_supported"], json!(["ES256"]));
    }
}
