//! Query parameters: decoding, and the options of lists and watches with Kubernetes' rules on how they combine.

use control_plane_api::{ApiError, status::Cause, strconv};
use http::HeaderMap;
use http::header::USER_AGENT;

use super::continue_token::Continue;

/// Decoded query parameters in the order given.
pub type Query = Vec<(String, String)>;

/// Decodes percent escapes; nothing when they are malformed or no UTF-8.
pub fn decode(text: &str) -> Option<String> {
    String::from_utf8(unescape(text)?).ok()
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

/// Splits and decodes a query string. Pairs with malformed escapes are left out, as Go's parser does. What is no UTF-8 stays,
/// with U+FFFD in place of each such sequence: a selector that was left out would select everything.
pub fn parse(query: Option<&str>) -> Query {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let decoded = pairs.filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let text = |escaped: &str| {
            let bytes = unescape(&escaped.replace('+', " "))?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        Some((text(key)?, text(value)?))
    });
    decoded.collect()
}

/// The first value of a parameter.
pub fn get<'q>(query: &'q Query, key: &str) -> Option<&'q str> {
    query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// A boolean parameter as Kubernetes reads it: absent, `0` and `false` are false, anything else is true.
pub fn flag(query: &Query, key: &str) -> bool {
    get(query, key).is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "0" | "false"))
}

/// Clients that people read with, who get indented answers unless they ask otherwise; by the begin of their User-Agent.
const READERS: &[&str] = &["curl", "Wget", "Mozilla/5.0"];

/// Whether an answer is to be indented.
pub fn pretty(query: &Query, headers: &HeaderMap) -> bool {
    match get(query, "pretty").filter(|value| !value.is_empty()) {
        Some(value) => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => {
            let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
            READERS.iter().any(|reader| agent.starts_with(reader))
        }
    }
}

fn integer(query: &Query, key: &str) -> Result<Option<i64>, ApiError> {
    get(query, key).map(strconv::parse_int).transpose().map_err(ApiError::bad_request)
}

/// Checks `timeout`, which kubectl sends with `--request-timeout`. What a client says here is held against Go's grammar and not
/// waited for: it hangs up by itself.
///
/// # Errors
/// 400 for what is no duration.
pub fn check_timeout(query: &Query) -> Result<(), ApiError> {
    let given = get(query, "timeout").filter(|timeout| !timeout.is_empty());
    given
        .map_or(Ok(()), strconv::check_duration)
        .map_err(|why| ApiError::bad_request(format!("invalid timeout specified in the request URL - {why}")))
}

/// Reads a `resourceVersion`: absent and empty are nothing.
///
/// # Errors
/// 500, which is what Kubernetes answers.
pub fn version(query: &Query) -> Result<Option<u64>, ApiError> {
    match get(query, "resourceVersion") {
        None | Some("") => Ok(None),
        Some(text) => strconv::parse_uint(text).map(Some).map_err(|why| {
            let cause = Cause::invalid("", &text.into(), &why);
            ApiError::plain(500, format!("resourceVersion: {}", cause.message))
        }),
    }
}

/// Which version of the data a list shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The newest.
    Newest,
    /// The newest, which must be at least this.
    NotOlderThan(u64),
    /// Exactly this.
    Exactly(u64),
    /// The next page of an earlier list.
    Continue(Continue),
}

/// What a list shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// Which version of the data.
    pub at: At,
    /// At most so many; absent for all.
    pub limit: Option<usize>,
}

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With what exists, as additions; then the end of it is marked when `mark` is set.
    Existing {
        /// At least so new.
        not_older_than: u64,
        /// A bookmark says where the existing objects end.
        mark: bool,
    },
    /// With the changes after this revision.
    After(u64),
    /// With the changes from now on.
    Now,
}

/// How to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// Where to start.
    pub start: Start,
    /// Bookmarks are welcome.
    pub bookmarks: bool,
    /// Ends after so many seconds.
    pub timeout_seconds: Option<u64>,
}

const UNSET: &str = "resourceVersionMatch is forbidden unless resourceVersion is provided";

fn refuse(causes: Vec<Cause>) -> ApiError {
    ApiError::invalid_for("meta.k8s.io", "ListOptions", "", causes)
}

/// Reads the options of a list.
///
/// # Errors
/// Kubernetes' refusals of combinations that make no sense.
pub fn list_options(query: &Query) -> Result<ListOptions, ApiError> {
    let limit = integer(query, "limit")?;
    integer(query, "timeoutSeconds")?;
    let token = get(query, "continue").filter(|token| !token.is_empty());
    let given = get(query, "resourceVersion").filter(|version| !version.is_empty());
    let how = get(query, "resourceVersionMatch").unwrap_or_default();
    let mut causes = Vec::new();
    if !how.is_empty() {
        if given.is_none() {
            causes.push(Cause::forbidden("resourceVersionMatch", UNSET));
        }
        if token.is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            causes.push(Cause::forbidden("resourceVersionMatch", why));
        }
        if how != "Exact" && how != "NotOlderThan" {
            let known = ["Exact", "NotOlderThan", ""];
            causes.push(Cause::not_supported("resourceVersionMatch", how, &known));
        } else if how == "Exact" && given == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden("resourceVersionMatch", why));
        }
    }
    if get(query, "sendInitialEvents").is_some_and(|value| !value.is_empty()) {
        causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if !causes.is_empty() {
        return Err(refuse(causes));
    }
    let version = version(query)?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    let at = match (token, version) {
        (Some(_), Some(version)) if version > 0 => {
            let why = "specifying resource version is not allowed when using continue";
            return Err(ApiError::bad_request(why));
        }
        (Some(token), _) => At::Continue(Continue::decode(token)?),
        (None, None) => At::Newest,
        (None, Some(0)) => At::NotOlderThan(0),
        (None, Some(version)) if how == "Exact" => At::Exactly(version),
        // With a limit and no match, Kubernetes lists exactly at the version.
        (None, Some(version)) if how.is_empty() && limit.is_some() => At::Exactly(version),
        (None, Some(version)) => At::NotOlderThan(version),
    };
    Ok(ListOptions { at, limit })
}

/// Reads the options of a watch.
///
/// # Errors
/// Kubernetes' refusals of combinations that make no sense.
pub fn watch_options(query: &Query) -> Result<WatchOptions, ApiError> {
    let timeout = integer(query, "timeoutSeconds")?;
    let bookmarks = flag(query, "allowWatchBookmarks");
    let how = get(query, "resourceVersionMatch").unwrap_or_default();
    let initial = get(query, "sendInitialEvents")
        .filter(|value| !value.is_empty())
        .map(|_| flag(query, "sendInitialEvents"));
    let mut causes = Vec::new();
    if initial.is_some() {
        if how != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden("resourceVersionMatch", why));
        }
    } else if !how.is_empty() {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(Cause::forbidden("resourceVersionMatch", why));
    }
    if !causes.is_empty() {
        return Err(refuse(causes));
    }
    let version = version(query)?;
    let start = match (initial, version) {
        (Some(true), version) => Start::Existing { not_older_than: version.unwrap_or(0), mark: bookmarks },
        (None, None) => Start::Existing { not_older_than: 0, mark: bookmarks },
        (None, Some(0)) => Start::Existing { not_older_than: 0, mark: false },
        (Some(false), None | Some(0)) => Start::Now,
        (_, Some(version)) => Start::After(version),
    };
    let timeout_seconds =
        timeout.and_then(|timeout| u64::try_from(timeout).ok()).filter(|timeout| *timeout > 0);
    Ok(WatchOptions { start, bookmarks, timeout_seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let query = parse(Some("labelSelector=app%20in+%28a%2Cb%29&watch&x=%GG&limit=5"));
        assert_eq!(get(&query, "labelSelector"), Some("app in (a,b)"));
        assert_eq!(get(&query, "limit"), Some("5"));
        assert_eq!(get(&query, "x"), None);
        assert_eq!(get(&parse(Some("labelSelector=app%3D%ff")), "labelSelector"), Some("app=\u{FFFD}"));
        assert!(flag(&query, "watch") && !flag(&query, "absent"));
    }

    #[test]
    fn lists_show_the_version_asked_for() {
        let check = |text: &str, at: At, limit: Option<usize>| {
            assert_eq!(list_options(&parse(Some(text))), Ok(ListOptions { at, limit }), "{text}");
        };
        check("", At::Newest, None);
        check("limit=-1", At::Newest, None);
        check("limit=500&resourceVersion=0", At::NotOlderThan(0), Some(500));
        check("resourceVersion=7", At::NotOlderThan(7), None);
        check("resourceVersion=7&limit=2", At::Exactly(7), Some(2));
        check("resourceVersion=7&resourceVersionMatch=Exact", At::Exactly(7), None);
        check("resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=1", At::NotOlderThan(7), Some(1));
    }

    #[test]
    fn lists_refuse_what_makes_no_sense() {
        let check = |text: &str, code: u16, words: &str| {
            let error = list_options(&parse(Some(text))).unwrap_err();
            assert_eq!(error.code, code, "{text}");
            assert!(error.message.contains(words), "{text}: {}", error.message);
        };
        check("limit=abc", 400, "strconv.ParseInt: parsing \"abc\": invalid syntax");
        check("limit=", 400, "strconv.ParseInt: parsing \"\": invalid syntax");
        check("limit=9223372036854775808", 400, "value out of range");
        check("resourceVersion=abc", 500, "resourceVersion: Invalid value: \"abc\"");
        check("resourceVersionMatch=Exact", 422, UNSET);
        check(
            "resourceVersion=1&resourceVersionMatch=Foo",
            422,
            "supported values: \"Exact\", \"NotOlderThan\", \"\"",
        );
        check(
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            422,
            "is invalid: [resourceVersionMatch: Forbidden",
        );
        check("continue=zzz", 400, "continue key is not valid");
    }

    #[test]
    fn watches_start_where_they_are_told() {
        let check = |text: &str, start: Start| {
            assert_eq!(watch_options(&parse(Some(text))).map(|options| options.start), Ok(start), "{text}");
        };
        check("", Start::Existing { not_older_than: 0, mark: false });
        check("allowWatchBookmarks=true", Start::Existing { not_older_than: 0, mark: true });
        check(
            "resourceVersion=0&allowWatchBookmarks=true",
            Start::Existing { not_older_than: 0, mark: false },
        );
        check("resourceVersion=9", Start::After(9));
        let streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&resourceVersion=4";
        check(streaming, Start::Existing { not_older_than: 4, mark: true });
        check("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", Start::Now);
    }

    #[test]
    fn watches_refuse_what_makes_no_sense() {
        let check = |text: &str, code: u16, words: &str| {
            let error = watch_options(&parse(Some(text))).unwrap_err();
            assert_eq!(error.code, code, "{text}");
            assert!(error.message.contains(words), "{text}: {}", error.message);
        };
        check("timeoutSeconds=abc", 400, "strconv.ParseInt");
        check("sendInitialEvents=true", 422, "requires setting resourceVersionMatch to NotOlderThan");
        check(
            "resourceVersion=1&resourceVersionMatch=NotOlderThan",
            422,
            "forbidden for watch unless sendInitialEvents",
        );
        check("resourceVersion=abc", 500, "strconv.ParseUint");
    }
}
