//! Credentials that live in Secrets: bootstrap tokens, with which a new board asks for its own, and the boards' own tokens.
//!
//! Pure: the Secrets are given. Of a board's token only a hash is kept; deleting its Secret revokes it at once.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{NODE_PREFIX, NODES, User};
use crate::base64;

/// The namespace of these Secrets.
pub const NAMESPACE: &str = "kube-system";
const BOOTSTRAP_TYPE: &str = "bootstrap.kubernetes.io/token";
const BOARD_TYPE: &str = "rigor.dev/board-token";
const BOOTSTRAPPERS: &str = "system:bootstrappers";
/// Before a bootstrap token's id in the name of its user.
const BOOTSTRAP_PREFIX: &str = "system:bootstrap:";
/// Before a board's name in its token.
const BOARD_PREFIX: &str = "rigor-board:";

/// `ID.SECRET` of a bootstrap token; nothing for other texts.
pub fn bootstrap_parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    (id.len() == 6 && secret.len() == 16 && plain(id) && plain(secret)).then_some((id, secret))
}

/// The name of the Secret of a bootstrap token.
pub fn bootstrap_secret(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

fn data(secret: &Value, key: &str) -> Option<String> {
    String::from_utf8(base64::decode(secret["data"][key].as_str()?)?).ok()
}

/// Whether two texts are the same, in a time that does not depend on where they differ.
fn same(a: &str, b: &str) -> bool {
    let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest(a).as_ref() == digest(b).as_ref()
}

/// Whom a bootstrap token stands for.
///
/// # Errors
/// Why it is not accepted; never with the token.
pub fn bootstrap_user(id: &str, given: &str, secret: Option<&Value>, now: Timestamp) -> Result<User, String> {
    let refuse = |why: &str| Err(format!("the bootstrap token {id} {why}"));
    let Some(secret) = secret else { return refuse("is unknown") };
    if secret["type"] != BOOTSTRAP_TYPE || !secret["metadata"]["deletionTimestamp"].is_null() {
        return refuse("is unknown");
    }
    if data(secret, "token-id").as_deref() != Some(id)
        || !data(secret, "token-secret").is_some_and(|kept| same(&kept, given))
    {
        return refuse("does not have this secret");
    }
    if let Some(expiration) = data(secret, "expiration") {
        match expiration.trim().parse::<Timestamp>() {
            Ok(until) if now < until => {}
            Ok(_) => return refuse("has expired"),
            Err(_) => return refuse("has an expiration that is no RFC 3339 time"),
        }
    }
    if data(secret, "usage-bootstrap-authentication").as_deref() != Some("true") {
        return refuse("is not for authentication");
    }
    let mut groups = vec![BOOTSTRAPPERS.to_owned()];
    for group in data(secret, "auth-extra-groups").unwrap_or_default().split(',').map(str::trim) {
        if group.is_empty() {
            continue;
        }
        let rest = group.strip_prefix("system:bootstrappers:").unwrap_or_default();
        let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = rest.bytes().all(|byte| letters(byte) || b":-".contains(&byte))
            && rest.bytes().next_back().is_some_and(letters)
            && rest.len() <= 256;
        if !fits {
            return refuse("names a group that does not begin with system:bootstrappers:");
        }
        groups.push(group.to_owned());
    }
    Ok(User::known(format!("{BOOTSTRAP_PREFIX}{id}"), groups))
}

/// Whether a user shows a bootstrap token, or acts as one: such users get tokens for new boards only.
pub fn is_newcomer(user: &User) -> bool {
    user.is_in(BOOTSTRAPPERS) || user.name.starts_with(BOOTSTRAP_PREFIX)
}

/// The token of a board that was drawn this secret.
pub fn board_token(node: &str, drawn: &str) -> String {
    format!("{BOARD_PREFIX}{node}:{drawn}")
}

/// The board that a token claims to be of; nothing for other texts.
pub fn board_of(token: &str) -> Option<&str> {
    let (node, drawn) = token.strip_prefix(BOARD_PREFIX)?.rsplit_once(':')?;
    (!node.is_empty() && !drawn.is_empty()).then_some(node)
}

/// The name of the Secret of a board's token.
pub fn board_secret_name(node: &str) -> String {
    format!("board-token-{node}")
}

fn hash(token: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The Secret to keep for a board's token.
pub fn board_secret(node: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": board_secret_name(node), "namespace": NAMESPACE},
        "type": BOARD_TYPE,
        "data": {
            "node": base64::encode_standard(node.as_bytes()),
            "token-sha256": base64::encode_standard(hash(token).as_bytes()),
        },
    })
}

/// Whom a board's token stands for, by the Secret of the board that it claims to be of.
///
/// # Errors
/// Why it is not accepted; never with the token.
pub fn board_user(node: &str, token: &str, secret: Option<&Value>) -> Result<User, String> {
    let kept = secret.filter(|secret| {
        secret["type"] == BOARD_TYPE
            && secret["metadata"]["deletionTimestamp"].is_null()
            && data(secret, "node").as_deref() == Some(node)
    });
    match kept.and_then(|secret| data(secret, "token-sha256")) {
        Some(kept) if same(&kept, &hash(token)) => {
            Ok(User::known(format!("{NODE_PREFIX}{node}"), vec![NODES.into()]))
        }
        Some(_) => Err(format!("the token of board {node} is not the one that it was given")),
        None => Err(format!("board {node} has no token, or it was revoked")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(change: impl FnOnce(&mut Value)) -> Value {
        let encode = |text: &str| base64::encode_standard(text.as_bytes());
        let mut secret = json!({
            "type": BOOTSTRAP_TYPE,
            "metadata": {"name": "bootstrap-token-abcdef"},
            "data": {
                "token-id": encode("abcdef"),
                "token-secret": encode("0123456789abcdef"),
                "usage-bootstrap-authentication": encode("true"),
                "expiration": encode("2026-01-02T00:00:00Z"),
                "auth-extra-groups": encode("system:bootstrappers:boards, system:bootstrappers:b:2"),
            },
        });
        change(&mut secret);
        secret
    }

    #[test]
    fn a_bootstrap_token_is_what_its_secret_says() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let ask = |secret: &Value, given: &str| bootstrap_user("abcdef", given, Some(secret), now);
        let user = ask(&secret(|_| {}), "0123456789abcdef").unwrap();
        assert_eq!(user.name, "system:bootstrap:abcdef");
        let groups = [
            "system:bootstrappers",
            "system:bootstrappers:boards",
            "system:bootstrappers:b:2",
            "system:authenticated",
        ];
        assert_eq!(user.groups, groups);
        let encode = |text: &str| json!(base64::encode_standard(text.as_bytes()));
        let check = |change: &dyn Fn(&mut Value), word: &str| {
            let why = ask(&secret(|secret| change(secret)), "0123456789abcdef").unwrap_err();
            assert!(why.contains(word) && !why.contains("0123456789"), "{why}");
        };
        check(&|secret| secret["type"] = json!("Opaque"), "unknown");
        check(&|secret| secret["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"), "unknown");
        check(&|secret| secret["data"]["token-id"] = encode("fedcba"), "secret");
        check(&|secret| secret["data"]["expiration"] = encode("2026-01-01T00:00:00Z"), "expired");
        check(&|secret| secret["data"]["expiration"] = encode("tomorrow"), "RFC 3339");
        check(&|secret| secret["data"]["usage-bootstrap-authentication"] = encode("false"), "authentication");
        check(&|secret| secret["data"]["auth-extra-groups"] = encode("system:masters"), "group");
        assert!(ask(&secret(|_| {}), "0123456789abcdeg").unwrap_err().contains("secret"));
        assert!(bootstrap_user("abcdef", "x", None, now).unwrap_err().contains("unknown"));
        let forever = secret(|secret| drop(secret["data"].as_object_mut().unwrap().remove("expiration")));
        assert!(ask(&forever, "0123456789abcdef").is_ok());
        assert_eq!(bootstrap_parts("abcdef.0123456789abcdef"), Some(("abcdef", "0123456789abcdef")));
        for text in
            ["abcdef", "abcdef.0123456789abcde", "Abcdef.0123456789abcdef", "abcdef.0123456789abcdef.x"]
        {
            assert_eq!(bootstrap_parts(text), None, "{text}");
        }
    }

    #[test]
    fn a_boards_token_is_known_by_its_hash() {
        let token = board_token("a.b", "c0ffee");
        assert_eq!(board_of(&token), Some("a.b"));
        assert_eq!(board_of("rigor-board:a"), None);
        assert_eq!(board_of("rigor-board::x"), None);
        let kept = board_secret("a.b", &token);
        assert!(!kept.to_string().contains("c0ffee"), "{kept}");
        let user = board_user("a.b", &token, Some(&kept)).unwrap();
        assert_eq!(user.node(), Some("a.b"));
        let other = board_token("a.b", "c0ffef");
        assert!(board_user("a.b", &other, Some(&kept)).unwrap_err().contains("not the one"));
        assert!(
            board_user("a.c", &board_token("a.c", "c0ffee"), Some(&kept)).unwrap_err().contains("revoked")
        );
        assert!(board_user("a.b", &token, None).unwrap_err().contains("revoked"));
    }
}
