//! Static bearer tokens, in the CSV form of Kubernetes' `--token-auth-file`: `token,user,uid,"group1,group2"`.
//!
//! A token is also taken as the password of Basic credentials: kubectl sends the tokens of a kubeconfig over TLS only, but a
//! password that stands in the server's URL over plain HTTP too.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::User;
use crate::base64;
use http::HeaderMap;
use http::header::AUTHORIZATION;

/// A token file that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("token file {path} cannot be read ({reason}): check --token-auth-file")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A line is wrong.
    #[error(
        "token file {path}, line {line}: {reason}; a line is token,user,uid,\"group1,group2\" (groups are optional)"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
}

/// Who each token stands for. They are looked up by their hash, so that the time it takes tells nothing of a token.
#[derive(Clone, Default)]
pub struct Tokens {
    users: BTreeMap<String, User>,
    by_hash: BTreeMap<Vec<u8>, User>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users: Vec<&str> = self.users.values().map(|user| user.name.as_str()).collect();
        f.debug_struct("Tokens").field("users", &users).finish_non_exhaustive()
    }
}

/// What the Authorization header shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// No token.
    Nothing,
    /// This one.
    Token(String),
    /// One that cannot be read.
    Unreadable,
}

/// The token that is shown as a bearer's, or as the password of Basic credentials.
pub fn shown(headers: &HeaderMap) -> Shown {
    let Some(credentials) = headers.get(AUTHORIZATION) else { return Shown::Nothing };
    let Some((scheme, token)) = credentials.to_str().ok().and_then(|text| text.trim().split_once(' ')) else {
        return Shown::Unreadable;
    };
    if scheme.eq_ignore_ascii_case("bearer") {
        return Shown::Token(token.trim().to_owned());
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let text = base64::decode(token.trim()).and_then(|bytes| String::from_utf8(bytes).ok());
        let password = text.and_then(|text| text.split_once(':').map(|(_, password)| password.to_owned()));
        return password.map_or(Shown::Unreadable, Shown::Token);
    }
    Shown::Nothing
}

fn hash(token: &str) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, token.as_bytes()).as_ref().to_vec()
}

impl Tokens {
    /// Reads a token file.
    ///
    /// # Errors
    /// [`TokenFileError`] naming the file and the line.
    pub fn read(path: &Path) -> Result<Self, TokenFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| TokenFileError::Unreadable { path: path.into(), reason: error.to_string() })?;
        Self::parse(&text, path)
    }

    /// Reads the text of a token file; `path` is what errors call it.
    ///
    /// # Errors
    /// [`TokenFileError::Line`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, TokenFileError> {
        let mut tokens = Self::default();
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let bad = |line: u64, reason: String| TokenFileError::Line { path: path.into(), line, reason };
            if !quotes_enclose_fields(text) {
                return Err(bad(
                    line,
                    "a quotation mark is not closed on its line, or stands inside a field; quotes enclose a whole field, from right after its comma"
                        .into(),
                ));
            }
            let mut reader = csv::ReaderBuilder::new();
            let reader =
                reader.has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
            let record = reader.into_records().next().transpose();
            let record = record.map_err(|error| bad(line, error.to_string()))?.unwrap_or_default();
            if record.len() < 3 {
                return Err(bad(line, format!("it has {} of at least 3 fields", record.len())));
            }
            if record.len() > 4 {
                return Err(bad(
                    line,
                    format!("it has {} fields; put several groups in quotes", record.len()),
                ));
            }
            let (token, name, uid) = (&record[0], &record[1], &record[2]);
            if token.is_empty() || name.is_empty() {
                return Err(bad(line, "token and user must not be empty".into()));
            }
            let groups = record.get(3).unwrap_or_default().split(',').map(str::trim);
            let groups = groups.filter(|group| !group.is_empty()).map(Into::into).collect();
            let user = User { name: name.into(), uid: uid.into(), groups, ..User::default() };
            if let Some(other) = tokens.users.get(token) {
                return Err(bad(line, format!("this token was given to user {} before", other.name)));
            }
            tokens.add(token, user);
        }
        Ok(tokens)
    }

    /// Lets `token` stand for `user`, who also becomes one of the authenticated.
    pub fn add(&mut self, token: &str, user: User) {
        let user = user.with_usual_groups();
        self.by_hash.insert(hash(token), user.clone());
        self.users.insert(token.into(), user);
    }

    /// All tokens and their users.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &User)> {
        self.users.iter().map(|(token, user)| (token.as_str(), user))
    }

    /// Whom a token stands for.
    pub fn find(&self, token: &str) -> Option<&User> {
        self.by_hash.get(&hash(token))
    }
}

/// Whether every quote of a line opens or closes a whole field, or is doubled inside a quoted one. The CSV reader takes
/// others as they come, which gives users groups that nobody meant.
fn quotes_enclose_fields(line: &str) -> bool {
    let mut rest = Some(line);
    while let Some(field) = rest {
        let (inside, after) = match field.strip_prefix('"') {
            None => field.split_once(',').map_or((field, None), |(inside, after)| (inside, Some(after))),
            Some(quoted) => {
                let mut end = 0;
                loop {
                    let Some(next) = quoted[end..].find('"') else { return false };
                    end += next + 1;
                    if !quoted[end..].starts_with('"') {
                        break;
                    }
                    end += 1;
                }
                let tail = &quoted[end..];
                let (tail, after) =
                    tail.split_once(',').map_or((tail, None), |(tail, after)| (tail, Some(after)));
                if !tail.trim().is_empty() {
                    return false;
                }
                ("", after)
            }
        };
        if inside.contains('"') {
            return false;
        }
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Tokens, TokenFileError> {
        Tokens::parse(text, Path::new("tokens.csv"))
    }

    fn ask(tokens: &Tokens, header: Option<&str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, header.parse().unwrap());
        }
        match shown(&headers) {
            Shown::Nothing => Some("nobody".into()),
            Shown::Token(token) => tokens.find(&token).map(|user| user.name.clone()),
            Shown::Unreadable => None,
        }
    }

    #[test]
    fn tokens_stand_for_users_with_groups() {
        let tokens = parse(
            "t1,system:node:a,u1,\"system:nodes\"\n\nt2, admin ,u2,\"system:masters, x\"\nt3,nobody,\n",
        )
        .unwrap();
        let users: Vec<User> = tokens.iter().map(|(_, user)| user.clone()).collect();
        assert_eq!(users[0].node(), Some("a"));
        assert_eq!(users[1].groups, ["system:masters", "x", "system:authenticated"]);
        assert_eq!(users[2].groups, ["system:authenticated"]);
    }

    #[test]
    fn quotes_around_fields_and_doubled_ones_are_taken() {
        let check = |text: &str, name: &str, groups: &[&str]| {
            let tokens = parse(text).unwrap();
            let (_, user) = tokens.iter().next().unwrap();
            assert_eq!(user.name, name, "{text:?}");
            assert_eq!(user.groups[..user.groups.len() - 1], *groups, "{text:?}");
        };
        check(r#""t1","a","u","g1,g2" "#, "a", &["g1", "g2"]);
        check(r#"t1,"say ""a""",u"#, r#"say "a""#, &[]);
        check(r#"t1,a,u,"" "#, "a", &[]);
    }

    #[test]
    fn requests_without_credentials_are_anonymous_and_with_unknown_ones_nobodys() {
        let tokens = parse("t1,alice,u1").unwrap();
        let check = |header, expected: Option<&str>| {
            assert_eq!(ask(&tokens, header).as_deref(), expected, "{header:?}");
        };
        check(None, Some("nobody"));
        check(Some("Bearer t1"), Some("alice"));
        check(Some("bearer  t1 "), Some("alice"));
        check(Some("Bearer wrong"), None);
        check(Some("Bearer"), None);
        check(Some("Basic YmVhcmVyOnQx"), Some("alice"));
        check(Some("Basic YmVhcmVyOnR4"), None);
        check(Some("Basic !"), None);
        check(Some("Negotiate x"), Some("nobody"));
        assert!(!format!("{tokens:?}").contains("t1"), "{tokens:?}");
    }

    #[test]
    fn a_bad_line_is_named() {
        let check = |text: &str, line: u64, word: &str| match parse(text) {
            Err(TokenFileError::Line { line: found, reason, .. }) => {
                assert_eq!(found, line, "{text:?}");
                assert!(reason.contains(word), "{text:?}: {reason}");
            }
            other => panic!("{text:?}: {other:?}"),
        };
        check("t1,a", 1, "2 of at least 3");
        check("t1,a,u\nt2,b,u,g1,g2\n", 2, "quotes");
        check("t1,a,u\n\n,b,u\n", 3, "empty");
        check("t1,a,u\nt1,b,u\n", 2, "user a before");
        check("t1,a,u\nt2,b,u,\"g1\n", 2, "quotation mark");
        check("t1,a,u,\"g1,g2\nt2,b,u,g3\"", 1, "quotation mark");
        check("t1,a,u,g1\"", 1, "quotation mark");
        check("\"t1,a,u", 1, "quotation mark");
        check("t1,a,u,\"g1\"x", 1, "quotation mark");
        check("t1,a,u, \"g1\"", 1, "quotation mark");
        check("t1,a,\"u,\"g1", 1, "quotation mark");
    }

    #[test]
    fn an_absent_file_is_named() {
        let error = Tokens::read(Path::new("/nonexistent/tokens.csv")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/tokens.csv") && error.contains("--token-auth-file"), "{error}");
    }
}
