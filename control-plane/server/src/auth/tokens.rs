//! Static bearer tokens, in the CSV form of Kubernetes' `--token-auth-file`: `token,user,uid,"group1,group2"`.
//!
//! A token is also taken as the password of Basic credentials: kubectl sends the tokens of a kubeconfig over TLS only, but a
//! password that stands in the server's URL over plain HTTP too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{AUTHENTICATED, User};
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

/// Who each token stands for.
#[derive(Clone, Debug, Default)]
pub struct Tokens(BTreeMap<String, User>);

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
            if let Some(other) = tokens.0.get(token) {
                return Err(bad(line, format!("this token was given to user {} before", other.name)));
            }
            tokens.add(token, user);
        }
        Ok(tokens)
    }

    /// Lets `token` stand for `user`, who also becomes one of the authenticated.
    pub fn add(&mut self, token: &str, mut user: User) {
        if !user.is_in(AUTHENTICATED) {
            user.groups.push(AUTHENTICATED.into());
        }
        self.0.insert(token.into(), user);
    }

    /// All tokens and their users.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &User)> {
        self.0.iter().map(|(token, user)| (token.as_str(), user))
    }

    /// Who sent these headers: anonymous without credentials, nobody (401) with unknown ones.
    pub fn user_of(&self, headers: &HeaderMap) -> Option<User> {
        let Some(credentials) = headers.get(AUTHORIZATION) else {
            return Some(User::anonymous());
        };
        let credentials = credentials.to_str().ok()?;
        let (scheme, token) = credentials.trim().split_once(' ')?;
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.0.get(token.trim()).cloned();
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let credentials = String::from_utf8(base64::decode(token.trim())?).ok()?;
            return self.0.get(credentials.split_once(':')?.1).cloned();
        }
        Some(User::anonymous())
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
        tokens.user_of(&headers).map(|user| user.name)
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
        check(None, Some("system:anonymous"));
        check(Some("Bearer t1"), Some("alice"));
        check(Some("bearer  t1 "), Some("alice"));
        check(Some("Bearer wrong"), None);
        check(Some("Bearer"), None);
        check(Some("Basic YmVhcmVyOnQx"), Some("alice"));
        check(Some("Basic YmVhcmVyOnR4"), None);
        check(Some("Basic !"), None);
        check(Some("Negotiate x"), Some("system:anonymous"));
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
