//! The shapes of names, label keys, label values and port names, and what is said about those that do not fit.

/// Bytes in a DNS label, a label value or the name part of a qualified name.
const SHORT: usize = 63;
/// Bytes in a DNS subdomain.
const LONG: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
    must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const ENV_NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
    or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// A check of a text: what is wrong with it, nothing when it fits.
pub(super) type Check = fn(&str) -> Vec<String>;

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// Lower case alphanumerics with `-` inside.
fn is_label(text: &str) -> bool {
    let inside = |ch: char| ch.is_ascii_lowercase() || ch.is_ascii_digit();
    text.starts_with(inside) && text.ends_with(inside) && text.chars().all(|ch| inside(ch) || ch == '-')
}

/// Alphanumerics with `-`, `_` and `.` inside.
fn is_name_part(text: &str) -> bool {
    let edge = |ch: char| ch.is_ascii_alphanumeric();
    text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|ch| edge(ch) || matches!(ch, '-' | '_' | '.'))
}

fn collect(text: &str, limit: usize, fits: bool, message: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > limit {
        wrong.push(too_long(limit));
    }
    if !fits {
        wrong.push(message.to_owned());
    }
    wrong
}

/// A name of one or more DNS labels joined by dots: the names of most objects.
pub(super) fn dns_subdomain(text: &str) -> Vec<String> {
    collect(text, LONG, text.split('.').all(is_label), SUBDOMAIN)
}

/// One DNS label: namespaces, containers, volumes.
pub(super) fn dns_label(text: &str) -> Vec<String> {
    collect(text, SHORT, is_label(text), LABEL)
}

/// One DNS label that starts with a letter: services.
pub(super) fn dns_1035_label(text: &str) -> Vec<String> {
    collect(text, SHORT, is_label(text) && text.starts_with(|ch: char| ch.is_ascii_lowercase()), LABEL_1035)
}

/// A name that only has to stand in a URL: roles and their bindings.
pub(super) fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        text => {
            let odd = ["/", "%"].into_iter().filter(|one| text.contains(one));
            odd.map(|one| format!("may not contain '{one}'")).collect()
        }
    }
}

/// A key of labels, annotations, taints or resources: `NAME` or `PREFIX/NAME`.
pub(super) fn qualified(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let mut wrong = Vec::new();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(dns_subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
            }
            *name
        }
        _ => {
            let rest = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a qualified name {QUALIFIED} {rest}")];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > SHORT {
        wrong.push(format!("name part {}", too_long(SHORT)));
    }
    if !is_name_part(name) {
        wrong.push(format!("name part {QUALIFIED}"));
    }
    wrong
}

/// A label's value; it may be empty.
pub(super) fn label_value(text: &str) -> Vec<String> {
    collect(text, SHORT, text.is_empty() || is_name_part(text), LABEL_VALUE)
}

/// The name of an environment variable.
pub(super) fn env_name(text: &str) -> Vec<String> {
    let fits = !text.is_empty() && text.chars().all(|ch| ch != '=' && (ch == ' ' || ch.is_ascii_graphic()));
    if fits { Vec::new() } else { vec![ENV_NAME.to_owned()] }
}

/// A key of a config map's or secret's data.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let fits = !text.is_empty()
        && text.chars().all(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '-' | '_' | '.'));
    let mut wrong = collect(text, LONG, fits, CONFIG_KEY);
    match text {
        "." | ".." => wrong.push(format!("must not be '{text}'")),
        text if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// The name of a port: a short label with at least one letter.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    if !text.chars().all(|ch| ch.is_ascii_lowercase() || ch.is_ascii_digit() || ch == '-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.contains(|ch: char| ch.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fits: Check, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(fits(text), Vec::<String>::new(), "{text}");
        }
        for text in bad {
            assert!(!fits(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn shapes() {
        let (short, long) = ("a".repeat(64), "a".repeat(254));
        check(dns_subdomain, &["a", "a.b-c.0"], &["", "A", "a_b", "-a", "a-", "a..b", &long]);
        check(dns_label, &["a", "0-a"], &["", "a.b", &short]);
        check(path_segment, &["system:a", "A b"], &[".", "..", "a/b", "a%b"]);
        check(dns_1035_label, &["a", "a-0"], &["0a", "a.b", &short]);
        check(qualified, &["a", "A_b.c", "x.io/A"], &["", "a b", "/a", "x.io/", "X/a", "a/b/c", &short]);
        check(label_value, &["", "A_b.c", "1"], &["a b", "-a", "a!", &short]);
        check(env_name, &["A", "a.b c"], &["", "a=b", "é"]);
        check(config_key, &["a", "A_.-"], &["", "a/b", ".", "..", "..a", &long]);
        check(port_name, &["http", "a-1"], &["", "80", "a--b", "-a", "A", "a234567890123456"]);
    }

    #[test]
    fn words() {
        assert_eq!(
            qualified("a b"),
            [
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
              alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
              '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ]
        );
        assert_eq!(
            dns_subdomain("Bad_Name"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
              start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
    }
}
