//! Paths of requests, wherever one is written: in acts, in expectations and in instants.

use crate::template;

/// What word processors make of quotes: to YAML, signs like others.
const CURLY_QUOTES: [char; 5] = ['“', '”', '„', '‘', '’'];

/// What is wrong with a path that no request can have, and what would be right. A name in it may hold anything.
pub(crate) fn wrong_path(path: &str) -> Option<(String, String)> {
    let write = |right: &str| format!("write \"{right}\"");
    // A name that is none is told by itself.
    if template::broken(path).is_some() {
        return None;
    }
    if !path.starts_with('/') && !path.starts_with("${") {
        let (message, right) = match path.split_once("://") {
            Some((_, rest)) => (
                "a path says nothing of the server: that is the rig's",
                rest.find('/').map_or("/", |slash| &rest[slash..]),
            ),
            None => ("a path begins with a slash", path),
        };
        let right = right.replace(CURLY_QUOTES, "");
        return Some((message.to_owned(), write(&format!("/{}", right.trim_start_matches('/')))));
    }
    if let Some(name) = template::single_braces(path) {
        let message = format!("`{{{name}}}` stays as it is written: nothing is put in for it");
        return Some((message, format!("write ${{{name}}}")));
    }
    path.contains(|c: char| c.is_whitespace() || c.is_control())
        .then(|| ("a path has no blanks".to_owned(), write(&path.replace(' ', "%20"))))
}
