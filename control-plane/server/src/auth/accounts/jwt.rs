//! JSON web signatures in their compact form, with the two algorithms that Kubernetes' issuers use: ES256 and RS256.
//!
//! The algorithm is the key's: what a token's header says has to agree with it and decides nothing.

use serde_json::{Value, json};

use super::keys::{Keys, PublicKey};
use crate::base64;

/// No token is longer, in bytes.
const LONGEST: usize = 16 * 1024;

/// A signed token.
///
/// # Errors
/// When the key cannot sign.
pub fn sign(payload: &Value, keys: &Keys) -> Result<String, String> {
    let public = keys.signing().ok_or("there is no key to sign with")?;
    let header = json!({"alg": public.algorithm(), "kid": public.id()});
    let text = [header, payload.clone()].map(|part| base64::encode(part.to_string().as_bytes())).join(".");
    let signature = keys.sign(text.as_bytes())?;
    Ok(format!("{text}.{}", base64::encode(&signature)))
}

fn parts(token: &str) -> Result<[&str; 3], String> {
    if token.len() > LONGEST {
        return Err("the token is too long".into());
    }
    let mut parts = token.split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(header), Some(payload), Some(signature), None) => Ok([header, payload, signature]),
        _ => Err("the token does not have three parts".into()),
    }
}

fn json_of(part: &str) -> Result<Value, String> {
    let bytes = base64::decode(part).ok_or("the token is not base64")?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| "the token is not JSON")?;
    if value.is_object() { Ok(value) } else { Err("the token is not a JSON object".into()) }
}

/// The payload of a token that one of the keys signed.
///
/// # Errors
/// Why it is none.
pub fn verify(token: &str, keys: &[PublicKey]) -> Result<Value, String> {
    let [header, payload, signature] = parts(token)?;
    let said = json_of(header)?;
    if said.get("crit").is_some() {
        return Err("the token has critical extensions, of which none is known".into());
    }
    let algorithm = said["alg"].as_str().unwrap_or_default();
    if !keys.iter().any(|key| key.algorithm() == algorithm) {
        return Err("the token's algorithm is not that of a key".into());
    }
    let signature = base64::decode(signature).ok_or("the token is not base64")?;
    let signed = format!("{header}.{payload}");
    // An id that is not known says nothing: keys are few, so all of them are tried then.
    let named: Vec<&PublicKey> = keys.iter().filter(|key| said["kid"] == key.id()).collect();
    let tried = if named.is_empty() { keys.iter().collect() } else { named };
    let good = |key: &&PublicKey| key.algorithm() == algorithm && key.verifies(signed.as_bytes(), &signature);
    if !tried.iter().any(good) {
        return Err("the token's signature is not that of a known key".into());
    }
    json_of(payload)
}

/// The issuer that a token claims to have, before anything is verified.
pub fn claimed_issuer(token: &str) -> Option<String> {
    let [_, payload, _] = parts(token).ok()?;
    json_of(payload).ok()?["iss"].as_str().map(ToOwned::to_owned)
}
