//! Paths into objects: `status.conditions[type=Ready].status`, `metadata.annotations["a.b/c"]`.

use std::fmt;

use serde_json::Value;

/// Where in an object a value stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Segment>);

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// Into a mapping.
    Key(String),
    /// Into a list, from 0.
    Index(usize),
    /// To the first element of a list that has all these texts.
    Where(Vec<(String, String)>),
}

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no path: {why}")]
pub struct PathError {
    text: String,
    why: &'static str,
}

impl PathError {
    /// What would be right: the path as it was most likely meant, or an example.
    pub fn remedy(&self) -> String {
        match plain(&self.text) {
            Some(right) => format!("write {right}"),
            None => "write for example status.conditions[type=Ready].status".to_owned(),
        }
    }
}

/// A JSONPath or JSON pointer as a path of ours, if it can be one.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let inner = inner.strip_prefix('$').unwrap_or(inner);
    let inner = match inner.strip_prefix('/') {
        Some(pointer) => pointer.replace('/', "."),
        None => inner.trim_start_matches('.').to_owned(),
    };
    // `[?(@.type=="Ready")]` chooses an element, `['x']` is a name.
    let inner = inner.replace("[?(@.", "[").replace(")]", "]").replace("==", "=").replace("['", "[\"");
    let inner = inner.replace("']", "\"]").replace("=\"", "=").replace("='", "=");
    let cut = |part: &str| if part.contains('=') { part.replace(['"', '\''], "") } else { part.to_owned() };
    let right: String = inner.split_inclusive(']').map(cut).collect();
    (right != text && Path::parse(&right).is_ok()).then_some(right)
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// [`PathError`] when a name, a bracket or what stands in brackets is wrong.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let wrong = |why| PathError { text: text.to_owned(), why };
        let mut segments = Vec::new();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(wrong("it is empty"));
        }
        if rest.starts_with(['{', '.', '/']) || (rest.starts_with('$') && !rest.starts_with("${")) {
            return Err(wrong("it begins with a name, without a sign in front"));
        }
        let mut may_begin_key = true;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (segment, after) = bracket(inside).map_err(wrong)?;
                segments.push(segment);
                rest = after;
                may_begin_key = false;
                continue;
            }
            if !may_begin_key {
                rest = rest.strip_prefix('.').ok_or_else(|| wrong("a `.` or `[` is missing after `]`"))?;
            }
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            if key.is_empty() {
                return Err(wrong("a name is missing between two dots"));
            }
            if key.contains("${") {
                return Err(wrong("a value that is known only while the trial runs cannot stand in a path"));
            }
            if key.contains([' ', ',', ']', '(', ')', '"', '=', '/', '{', '}', '$', '*', '?', '@', '\'']) {
                return Err(wrong("a name with other characters goes into brackets and quotes: [\"…\"]"));
            }
            segments.push(Segment::Key(key.to_owned()));
            match after.strip_prefix('.') {
                Some("") => return Err(wrong("it ends with a dot")),
                Some(next) => {
                    rest = next;
                    may_begin_key = true;
                    if rest.starts_with('[') {
                        return Err(wrong("no dot before a bracket"));
                    }
                }
                None => {
                    rest = after;
                    may_begin_key = false;
                }
            }
        }
        Ok(Path(segments))
    }

    /// The value there, if there is one.
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, segment| match segment {
            Segment::Key(key) => value.get(key),
            Segment::Index(index) => value.get(index),
            Segment::Where(pairs) => value.as_array()?.iter().find(|element| {
                pairs.iter().all(|(key, text)| {
                    element.get(key).is_some_and(|found| match found.as_str() {
                        Some(found) => found == text,
                        None => serde_json::from_str(text).is_ok_and(|wanted: Value| wanted == *found),
                    })
                })
            }),
        })
    }

    /// The steps down.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }
}

/// Reads what stands after an opening bracket; returns what stands after the closing one.
fn bracket(inside: &str) -> Result<(Segment, &str), &'static str> {
    if let Some(quoted) = inside.strip_prefix('"') {
        let end = quoted.find('"').ok_or("a quote is not closed")?;
        let after = quoted[end + 1..].strip_prefix(']').ok_or("a `]` is missing")?;
        return Ok((Segment::Key(quoted[..end].to_owned()), after));
    }
    let end = inside.find(']').ok_or("a `]` is missing")?;
    if inside.starts_with(['?', '*', '@', '\'']) || inside[..end].contains("==") {
        return Err("an element is chosen by [key=value] or by its number, a name goes into double quotes");
    }
    let (content, after) = (&inside[..end], &inside[end + 1..]);
    if !content.is_empty() && content.bytes().all(|byte| byte.is_ascii_digit()) {
        let index = content.parse().map_err(|_| "the index is too large")?;
        return Ok((Segment::Index(index), after));
    }
    let pairs = content
        .split(',')
        .map(|pair| match pair.split_once('=') {
            Some((key, text)) if !key.trim().is_empty() => {
                Ok((key.trim().to_owned(), text.trim().to_owned()))
            }
            Some(_) | None => Err("brackets hold a number, key=value pairs, or a name in quotes"),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok((Segment::Where(pairs), after))
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if key.contains(['.', '[', ' ', '/', ',', '"', '=', ']', '(', ')']) => {
                    write!(f, "[\"{key}\"]")?;
                }
                Segment::Key(key) => write!(f, "{}{key}", if position > 0 { "." } else { "" })?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Where(pairs) => {
                    let pairs: Vec<String> =
                        pairs.iter().map(|(key, text)| format!("{key}={text}")).collect();
                    write!(f, "[{}]", pairs.join(","))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "NoExecute", "timeAdded": "t"}]},
            "ports": [{"port": 80, "name": "web"}],
        });
        let check = |text: &str, expected: Option<Value>| {
            let path = Path::parse(text).expect(text);
            assert_eq!(path.get(&object).cloned(), expected, "{text}");
            assert_eq!(Path::parse(&path.to_string()), Ok(path), "{text}");
        };
        check("spec.taints[1].timeAdded", Some(json!("t")));
        check("spec.taints[key=k,effect=NoExecute].timeAdded", Some(json!("t")));
        check("spec.taints[effect=PreferNoSchedule].timeAdded", None);
        check("metadata.annotations[\"a.b/c\"]", Some(json!("x")));
        check("ports[port=80].name", Some(json!("web")));
        check("spec.taints[7]", None);
        check("status", None);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", ".", "a.", "a..b", "a[", "a[]", "a[x]", "a[\"b]", "a.[0]", "a[0]b", "a b", "a[=x]"] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_of_other_languages_are_refused_and_told_as_ours() {
        for (text, right) in [
            ("{.status.x}", "status.x"),
            ("$.status", "status"),
            (".status.phase", "status.phase"),
            ("/status/phase", "status.phase"),
            ("status.conditions[?(@.type==\"Ready\")].status", "status.conditions[type=Ready].status"),
            ("{.status.conditions[?(@.type=='Ready')].status}", "status.conditions[type=Ready].status"),
            ("metadata.annotations['a.b/c']", "metadata.annotations[\"a.b/c\"]"),
            ("metadata.labels.a.b/c", "for example status.conditions[type=Ready].status"),
            ("status.containers[*].name", "for example status.conditions[type=Ready].status"),
            ("status.${x}", "for example status.conditions[type=Ready].status"),
        ] {
            let error = Path::parse(text).expect_err(text);
            assert_eq!(error.remedy(), format!("write {right}"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_path_or_an_error(text in ".{0,40}") {
            if let Ok(path) = Path::parse(&text) {
                prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
            }
        }
    }
}
