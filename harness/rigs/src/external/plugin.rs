//! Credential programs (`exec` in a kubeconfig, `client.authentication.k8s.io`): run without a terminal, their answer
//! kept until it expires.

use super::kubeconfig::{Access, Pair};
use crate::clock::Clock;
use crate::world::Infra;
use base64::Engine;
use kube_client::config::ExecConfig;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Longest run of a credential program.
const LIMIT: Duration = Duration::from_secs(60);

/// So long before it expires a credential is asked for anew.
const AHEAD: Duration = Duration::from_secs(10);

/// What a program said.
pub(crate) struct Credential {
    /// A bearer token.
    pub(crate) token: Option<String>,
    /// Certificate and key, in PEM.
    pub(crate) certificate: Option<Pair>,
    /// When it is over; never if absent.
    expires: Option<jiff::Timestamp>,
}

impl Credential {
    /// Whether it has to be asked for anew.
    pub(crate) fn is_over(&self) -> bool {
        let Some(expires) = self.expires else { return false };
        let now: jiff::Timestamp = Clock::start().wall().parse().unwrap_or_default();
        now.checked_add(AHEAD).is_ok_and(|soon| soon >= expires)
    }
}

/// Runs the program to its end.
pub(crate) async fn run(exec: &ExecConfig, access: &Access) -> Result<Credential, Infra> {
    let program = exec.command.as_deref().unwrap_or_default();
    let hint =
        || exec.install_hint.clone().unwrap_or_else(|| "try kubectl with the same kubeconfig".to_owned());
    let failed = |why: String| Infra::lasting(format!("the credential program `{program}` {why}"), hint());
    let mut command = Command::new(program);
    command.args(exec.args.iter().flatten()).stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    for pair in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (pair.get("name"), pair.get("value")) {
            command.env(name, value);
        }
    }
    let version = exec.api_version.as_deref().unwrap_or("client.authentication.k8s.io/v1");
    command.env("KUBERNETES_EXEC_INFO", info(version, exec, access).to_string());
    let output = tokio::time::timeout(LIMIT, command.output())
        .await
        .map_err(|_| failed(format!("did not end within {} s", LIMIT.as_secs())))?
        .map_err(|error| failed(format!("could not be started: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("ended with {}", output.status)));
    }
    read(&output.stdout, version).map_err(failed)
}

fn info(version: &str, exec: &ExecConfig, access: &Access) -> Value {
    let mut spec = json!({"interactive": false});
    if exec.provide_cluster_info {
        let authorities = access.authorities.as_ref();
        spec["cluster"] = json!({
            "server": access.base,
            "insecure-skip-tls-verify": access.insecure,
            "certificate-authority-data":
                authorities.map(|pem| base64::engine::general_purpose::STANDARD.encode(pem)),
        });
    }
    json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec})
}

fn read(stdout: &[u8], version: &str) -> Result<Credential, String> {
    let said: Value = serde_json::from_slice(stdout).map_err(|error| format!("wrote no JSON: {error}"))?;
    if said["kind"] != "ExecCredential" || said["apiVersion"] != version {
        return Err(format!(
            "wrote a {} of {}, not an ExecCredential of {version}",
            said["kind"], said["apiVersion"]
        ));
    }
    let text = |key: &str| said["status"][key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let bytes = |key: &str| text(key).map(String::into_bytes);
    let certificate = bytes("clientCertificateData").zip(bytes("clientKeyData"));
    let token = text("token");
    if token.is_none() && certificate.is_none() {
        return Err("gave neither a token nor a certificate with its key".to_owned());
    }
    let expires = match text("expirationTimestamp") {
        Some(stamp) => Some(stamp.parse().map_err(|error| format!("gave the expiry `{stamp}`: {error}"))?),
        None => None,
    };
    Ok(Credential { token, certificate, expires })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        match read(text.as_bytes(), "client.authentication.k8s.io/v1") {
            Ok(credential) => format!(
                "token {:?} certificate {} over {}",
                credential.token,
                credential.certificate.is_some(),
                credential.is_over()
            ),
            Err(why) => why,
        }
    }

    #[test]
    fn an_answer_is_a_token_or_a_certificate_and_may_expire() {
        let answer = |status: &str| {
            format!(
                "{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{status}}}"
            )
        };
        for (text, expected) in [
            (answer("{\"token\":\"t\"}"), "token Some(\"t\") certificate false over false"),
            (
                answer("{\"token\":\"t\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}"),
                "token Some(\"t\") certificate false over true",
            ),
            (
                answer("{\"token\":\"t\",\"expirationTimestamp\":\"2999-01-01T00:00:00Z\"}"),
                "token Some(\"t\") certificate false over false",
            ),
            (
                answer("{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}"),
                "token None certificate true over false",
            ),
            (
                answer("{\"clientCertificateData\":\"c\"}"),
                "gave neither a token nor a certificate with its key",
            ),
            (answer("{}"), "gave neither a token nor a certificate with its key"),
        ] {
            assert_eq!(said(&text), expected, "{text}");
        }
        assert!(said("hello").starts_with("wrote no JSON"), "{}", said("hello"));
        let old = answer("{\"token\":\"t\"}").replace("k8s.io/v1", "k8s.io/v1beta1");
        assert!(
            said(&old).contains("not an ExecCredential of client.authentication.k8s.io/v1"),
            "{}",
            said(&old)
        );
    }
}
