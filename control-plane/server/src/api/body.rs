//! Request bodies: read within the limit, and turned into JSON whatever they were written in.

use axum::body::Body;
use bytes::Bytes;
use control_plane_api::{ApiError, protobuf};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;

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
            Err(ApiError::too_large(format!("Request entity is too large: limit is {MAX_BODY}")))
        }
        Err(error) => Err(ApiError::bad_request(format!("the body broke off: {error}"))),
    }
}

/// The media type of the body, in lower case and without parameters; empty when there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The body of a POST, PUT or DELETE as JSON.
///
/// # Errors
/// 415 for another media type, 400 for YAML that cannot be read.
pub fn to_json(headers: &HeaderMap, body: Bytes) -> Result<Bytes, ApiError> {
    match media_type(headers).as_str() {
        "" | "*/*" | "application/json" => Ok(body),
        "application/yaml" => yaml(&body),
        "application/vnd.kubernetes.protobuf" => protobuf::to_json(&body).map(Into::into),
        _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
    }
}

fn yaml(body: &[u8]) -> Result<Bytes, ApiError> {
    let refuse = |why: String| ApiError::bad_request(format!("error converting YAML to JSON: yaml: {why}"));
    let text = std::str::from_utf8(body).map_err(|error| refuse(error.to_string()))?;
    let options = serde_saphyr::options! { strict_booleans: true };
    let value: Value =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| refuse(error.to_string()))?;
    Ok(value.to_string().into())
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
        converted.map(|body| String::from_utf8(body.to_vec()).unwrap()).map_err(|error| error.code)
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
        assert_eq!(convert("application/yaml", "a: 1\na: 2"), Err(400));
        assert_eq!(convert("text/plain", "{}"), Err(415));
        assert_eq!(convert("application/vnd.kubernetes.protobuf", "k8s"), Err(400));
    }
}
