//! Request bodies: read within the limit, and turned into JSON whatever they were written in.

use axum::body::Body;
use bytes::Bytes;
use control_plane_api::{ApiError, protobuf};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

use super::MAX_BODY;

const ACCEPTED: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Reads a whole body.
///
/// # Errors
/// 413 over the limit, 400 when it breaks off.
pub async fn read(body: Body) -> Result<Bytes, ApiError> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiError::too_large(format!("Request entity too large: limit is {MAX_BODY}")))
        }
        Err(error) => Err(ApiError::bad_request(format!("the body broke off: {error}"))),
    }
}

/// The media type of the body, in lower case and without parameters; empty when there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A body as JSON.
#[derive(Debug)]
pub struct Json {
    /// The text.
    pub text: Bytes,
    /// What was lost on the way: a key that YAML holds twice, of which the last stays.
    pub problem: Option<String>,
}

/// The body of a POST, PUT or DELETE as JSON.
///
/// # Errors
/// 415 for another media type, 400 for YAML that cannot be read.
pub fn to_json(headers: &HeaderMap, body: Bytes) -> Result<Json, ApiError> {
    let text = match media_type(headers).as_str() {
        "" | "*/*" | "application/json" => body,
        "application/yaml" => return yaml(&body),
        "application/vnd.kubernetes.protobuf" => protobuf::to_json(&body).map(Into::into)?,
        _ => return Err(ApiError::unsupported_media_type(ACCEPTED)),
    };
    Ok(Json { text, problem: None })
}

/// So many nodes of a document may come out of its aliases: a few hundred bytes of them could stand for millions, and
/// everyone else would wait while they are copied.
const ALIASED: usize = 10_000;

fn yaml(body: &[u8]) -> Result<Json, ApiError> {
    let refuse = |why: String| ApiError::bad_request(format!("error converting YAML to JSON: yaml: {why}"));
    let text = std::str::from_utf8(body).map_err(|error| refuse(error.to_string()))?;
    let read = |duplicate_keys| {
        let alias_limits = serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED };
        let options = serde_saphyr::options! {
            strict_booleans: true, duplicate_keys: duplicate_keys, alias_limits: alias_limits
        };
        serde_saphyr::from_str_with_options::<Value>(text, options)
    };
    let refuse_error = |error: serde_saphyr::Error| refuse(error.without_snippet().to_string());
    let (value, problem) = match read(DuplicateKeyPolicy::Error) {
        Ok(value) => (value, None),
        Err(error) => match duplicate(&error) {
            Some(problem) => {
                let lenient = read(DuplicateKeyPolicy::LastWins);
                (lenient.map_err(refuse_error)?, Some(problem))
            }
            None => return Err(refuse_error(error)),
        },
    };
    Ok(Json { text: value.to_string().into(), problem })
}

/// What Kubernetes says of a key that occurs twice, where this error is about one.
fn duplicate(error: &serde_saphyr::Error) -> Option<String> {
    let bare = error.without_snippet();
    let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), location } = bare else { return None };
    Some(format!("yaml: unmarshal errors:\n  line {}: key \"{key}\" already set in map", location.line()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(media: &str, body: &'static str) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        if !media.is_empty() {
            headers.insert(CONTENT_TYPE, media.parse().unwrap());
        }
        let converted = to_json(&headers, Bytes::from_static(body.as_bytes()));
        converted.map(|body| String::from_utf8(body.text.to_vec()).unwrap()).map_err(|error| error.code)
    }

    #[test]
    fn a_key_that_yaml_holds_twice_is_told_of() {
        let read = yaml(b"x: 1\nm: {name: a, name: b}\n").unwrap();
        let problem = "yaml: unmarshal errors:\n  line 2: key \"name\" already set in map";
        assert_eq!(read.problem.as_deref(), Some(problem));
        assert!(yaml(b"x: 1").unwrap().problem.is_none());
    }

    #[test]
    fn aliases_stand_for_so_much_and_no_more() {
        let shared = yaml(b"a: &a {b: [1, 2]}\nc: *a\nd: *a\n").unwrap();
        assert_eq!(shared.text, Bytes::from(r#"{"a":{"b":[1,2]},"c":{"b":[1,2]},"d":{"b":[1,2]}}"#));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let ten = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{ten}]\n"));
        }
        let error = yaml(bomb.as_bytes()).unwrap_err();
        assert_eq!(error.code, 400);
        assert!(error.message.contains("alias") && error.message.len() < 300, "{}", error.message);
    }

    #[test]
    fn json_and_yaml_are_read_and_nothing_else() {
        assert_eq!(convert("", "{}"), Ok("{}".into()));
        assert_eq!(convert("application/json; charset=utf-8", "{}"), Ok("{}".into()));
        let yaml = "a: {on: \"yes\", n: 5}\nb: [true, x]\n";
        assert_eq!(
            convert("application/yaml", yaml),
            Ok(r#"{"a":{"n":5,"on":"yes"},"b":[true,"x"]}"#.into())
        );
        assert_eq!(convert("application/yaml", "a: [1"), Err(400));
        assert_eq!(convert("application/yaml", "a: 1\na: 2"), Ok(r#"{"a":2}"#.into()));
        assert_eq!(convert("text/plain", "{}"), Err(415));
        assert_eq!(convert("application/vnd.kubernetes.protobuf", "k8s"), Err(400));
    }
}
