//! Continue tokens of paged lists: base64url over JSON, as Kubernetes makes them, so that its tokens are read here too.

use control_plane_api::ApiError;
use serde_json::{Value, json};

use crate::base64;

/// Where the next page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// The revision of the whole list.
    pub revision: u64,
    /// The first key of the next page is not less than this; relative to the listed namespace.
    pub start: String,
}

impl Continue {
    /// The token for the page after the object at `key` (`NAME`, or `NAMESPACE/NAME` over all namespaces).
    pub fn after(revision: u64, key: &str) -> Self {
        Self { revision, start: format!("/{key}\0") }
    }

    /// The token as text.
    pub fn encode(&self) -> String {
        base64::encode(
            json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.start}).to_string().as_bytes(),
        )
    }

    /// Reads a token.
    ///
    /// # Errors
    /// 400 for what is no token.
    pub fn decode(token: &str) -> Result<Self, ApiError> {
        let bad = || ApiError::bad_request("invalid continue token: continue key is not valid");
        let fields: Value =
            serde_json::from_slice(&base64::decode(token).ok_or_else(bad)?).map_err(|_| bad())?;
        let revision = fields["rv"].as_u64().filter(|revision| *revision > 0).ok_or_else(bad)?;
        let start = fields["start"].as_str().filter(|start| !start.is_empty()).ok_or_else(bad)?;
        if fields["v"] != "meta.k8s.io/v1" || start.split('/').any(|part| part == "..") {
            return Err(bad());
        }
        Ok(Self { revision, start: start.into() })
    }

    /// Whether the object at `key` is on a later page than the token's.
    pub fn includes(&self, key: &str) -> bool {
        key >= self.start.trim_start_matches('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            if let Ok(token) = Continue::decode(&text) {
                prop_assert!(token.revision > 0);
            }
        }
    }

    #[test]
    fn kubernetes_tokens_are_read() {
        let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjUxLCJzdGFydCI6Ii9ucy9wMTFcdTAwMDAifQ";
        let expected = Continue { revision: 251, start: "/ns/p11\0".into() };
        assert_eq!(Continue::decode(token), Ok(expected.clone()));
        assert_eq!(Continue::decode(&expected.encode()), Ok(expected.clone()));
        assert!(expected.includes("ns/p12") && !expected.includes("ns/p11") && expected.includes("ns/p11a"));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for token in ["zzz", "!", "eyJ9", "", "e30"] {
            assert_eq!(Continue::decode(token).unwrap_err().code, 400, "{token}");
        }
    }
}
