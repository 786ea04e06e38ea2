//! Continue tokens of paged lists: base64url over JSON, as Kubernetes makes them, so that its tokens are read here too.

use control_plane_api::{ApiError, syntax_error};
use serde_json::{Value, json};

use crate::base64;

/// Stands for the newest revision, where the list's own is forgotten.
const NEWEST: i64 = -1;

/// Where the next page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// The revision of the whole list; absent for the newest, which ends the list's consistency.
    pub revision: Option<u64>,
    /// The first key of the next page is not less than this; relative to the listed namespace.
    pub start: String,
}

impl Continue {
    /// The token for the page after the object at `key` (`NAME`, or `NAMESPACE/NAME` over all namespaces).
    pub fn after(revision: u64, key: &str) -> Self {
        Self { revision: Some(revision), start: format!("/{key}\0") }
    }

    /// The token that goes on at the same place among the newest objects.
    pub fn inconsistent(&self) -> Self {
        Self { revision: None, start: self.start.clone() }
    }

    /// The token as text.
    pub fn encode(&self) -> String {
        let revision = self.revision.map_or(json!(NEWEST), |revision| json!(revision));
        base64::encode(
            json!({"v": "meta.k8s.io/v1", "rv": revision, "start": self.start}).to_string().as_bytes(),
        )
    }

    /// Reads a token.
    ///
    /// # Errors
    /// 400 for what is no token.
    pub fn decode(token: &str) -> Result<Self, ApiError> {
        const UNREADABLE: &str = "continue key is not valid";
        let bad = |why: &str| ApiError::bad_request(format!("invalid continue token: {UNREADABLE}{why}"));
        if let Some(at) = base64::fault(token) {
            return Err(bad(&format!(": illegal base64 data at input byte {at}")));
        }
        let bytes = base64::decode(token).ok_or_else(|| bad(""))?;
        if let Some(why) = syntax_error(&bytes) {
            return Err(bad(&format!(": {why}")));
        }
        let fields: Value = serde_json::from_slice(&bytes).map_err(|_| bad(""))?;
        if fields["v"] != "meta.k8s.io/v1" {
            return Err(bad(": server does not recognize this encoded version"));
        }
        let revision = match fields["rv"].as_i64() {
            Some(NEWEST) => None,
            Some(revision) if revision > 0 => u64::try_from(revision).ok(),
            _ => {
                let why = ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
                return Err(bad(why));
            }
        };
        let start = fields["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(bad(": encoded start key empty (version meta.k8s.io/v1)"));
        }
        if !is_clean(start) {
            return Err(bad(&format!(": {start}")));
        }
        Ok(Self { revision, start: start.into() })
    }

    /// Whether the object at `key` is on a later page than the token's.
    pub fn includes(&self, key: &str) -> bool {
        key >= self.start.trim_start_matches('/')
    }
}

/// Whether a path goes nowhere but down, so that it stays below the listed place.
fn is_clean(start: &str) -> bool {
    let path = start.strip_prefix('/').unwrap_or(start);
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            if let Ok(token) = Continue::decode(&text) {
                prop_assert!(!token.start.is_empty());
            }
        }
    }

    fn token(fields: &str) -> String {
        base64::encode(fields.as_bytes())
    }

    #[test]
    fn kubernetes_tokens_are_read() {
        let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjUxLCJzdGFydCI6Ii9ucy9wMTFcdTAwMDAifQ";
        let expected = Continue { revision: Some(251), start: "/ns/p11\0".into() };
        assert_eq!(Continue::decode(token), Ok(expected.clone()));
        assert_eq!(Continue::decode(&expected.encode()), Ok(expected.clone()));
        assert!(expected.includes("ns/p12") && !expected.includes("ns/p11") && expected.includes("ns/p11a"));
    }

    #[test]
    fn a_token_goes_on_among_the_newest_objects() {
        let token = Continue::after(5, "b").inconsistent();
        assert_eq!(Continue::decode(&token.encode()), Ok(Continue { revision: None, start: "/b\0".into() }));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let check = |token: &str, why: &str| {
            let error = Continue::decode(token).unwrap_err();
            let words = format!("invalid continue token: continue key is not valid{why}");
            assert_eq!((error.code, error.message), (400, words), "{token}");
        };
        check("zzz", ": invalid character 'Ï' looking for beginning of value");
        check("!", ": illegal base64 data at input byte 0");
        check("eyJ9=", ": illegal base64 data at input byte 4");
        check("eyJ9z", ": illegal base64 data at input byte 4");
        check("eyJ9", ": unexpected end of JSON input");
        check("e30", ": server does not recognize this encoded version");
        let start = ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
        check(&token(r#"{"v":"meta.k8s.io/v1","start":"a"}"#), start);
        check(&token(r#"{"v":"meta.k8s.io/v1","rv":-2,"start":"a"}"#), start);
        let empty = ": encoded start key empty (version meta.k8s.io/v1)";
        check(&token(r#"{"v":"meta.k8s.io/v1","rv":1}"#), empty);
        check(&token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#), ": ../a");
        check(&token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"/a//b"}"#), ": /a//b");
    }
}
