//! From the recorded server's uids, versions and tokens to this one's: requests name what earlier answers said.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::exchange::{Headers, Recorded};
use crate::rig::Answer;

/// What stands for what. Learned by laying recorded answers beside ours.
#[derive(Default)]
pub struct Translation {
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
    tokens: BTreeMap<String, String>,
    etags: BTreeMap<String, String>,
}

impl Translation {
    pub fn uid(&mut self, recorded: &str, ours: &str) {
        self.uids.insert(recorded.to_owned(), ours.to_owned());
    }

    pub fn version(&mut self, recorded: &str, ours: &str) {
        self.versions.insert(recorded.to_owned(), ours.to_owned());
    }

    pub fn learn(&mut self, recorded: &Recorded, answer: &Answer) {
        for (name, value) in &recorded.headers {
            if let ("etag", Some(ours)) = (name.as_str(), answer.header("etag").first()) {
                self.etags.insert(value.clone(), ours.clone());
            }
        }
        if let Some(json) = &recorded.json {
            self.beside(json, &answer.json());
        }
        for (line, ours) in recorded.lines.iter().flatten().zip(answer.lines().unwrap_or_default()) {
            self.beside(line, &ours);
        }
    }

    fn beside(&mut self, recorded: &Value, ours: &Value) {
        match (recorded, ours) {
            (Value::Object(recorded), Value::Object(ours)) => {
                for (key, value) in recorded {
                    let Some(other) = ours.get(key) else { continue };
                    match (key.as_str(), value.as_str(), other.as_str()) {
                        ("uid", Some(value), Some(other)) => self.uid(value, other),
                        ("resourceVersion", Some(value), Some(other)) => self.version(value, other),
                        ("continue", Some(value), Some(other)) => {
                            self.tokens.insert(value.to_owned(), other.to_owned());
                        }
                        _ => self.beside(value, other),
                    }
                }
            }
            (Value::Array(recorded), Value::Array(ours)) => {
                for (value, other) in recorded.iter().zip(ours) {
                    self.beside(value, other);
                }
            }
            _ => {}
        }
    }

    pub fn url(&self, url: &str) -> String {
        let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
        let pairs = query.split('&').map(|pair| {
            let translated = match pair.split_once('=') {
                Some(("resourceVersion", version)) => {
                    self.versions.get(version).map(|ours| ("resourceVersion", ours.clone()))
                }
                Some(("continue", token)) => self.token(token).map(|ours| ("continue", ours)),
                _ => None,
            };
            translated.map_or_else(|| pair.to_owned(), |(key, value)| format!("{key}={value}"))
        });
        format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
    }

    /// A token that an answer held, or one of a version that has a translation.
    fn token(&self, token: &str) -> Option<String> {
        if let Some(ours) = self.tokens.get(token) {
            return Some(ours.clone());
        }
        let mut fields: Value = serde_json::from_slice(&base64(token)?).ok()?;
        let ours = self.versions.get(&fields["rv"].to_string())?;
        fields["rv"] = serde_json::from_str(ours).unwrap();
        Some(URL_SAFE_NO_PAD.encode(fields.to_string()))
    }

    pub fn headers(&self, headers: &Headers) -> Headers {
        let translate = |(name, value): &(String, String)| {
            let ours = self.etags.get(value).filter(|_| name == "if-none-match").unwrap_or(value);
            (name.clone(), ours.clone())
        };
        headers.iter().map(translate).collect()
    }

    /// Bodies may be no JSON at all, so this works on their text.
    pub fn body(&self, body: &str) -> String {
        let mut body = body.to_owned();
        for (recorded, ours) in &self.uids {
            body = body.replace(recorded, ours);
        }
        let pattern = regex::Regex::new(r#"("resourceVersion": ?")(\d+)""#).unwrap();
        let translate = |found: &regex::Captures<'_>| {
            let version = &found[2];
            format!("{}{}\"", &found[1], self.versions.get(version).map_or(version, String::as_str))
        };
        pattern.replace_all(&body, translate).into_owned()
    }
}

/// The bytes of a continue token.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
