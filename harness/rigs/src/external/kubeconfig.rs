//! A kubeconfig, resolved to how its server is reached and by what proof. Reading and merging files is kube-client's;
//! the connection is our own, because an observer needs raw answers.
//!
//! What is not supported is refused with its name: going on without it would be another server or another user.

use crate::world::Infra;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_client::config::{AuthInfo, Cluster, ExecConfig, ExecInteractiveMode, Kubeconfig};
use rigor_model::foreign::External;
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};

/// How a server is reached, and by what proof.
#[derive(Clone)]
pub(crate) struct Access {
    /// `https://ADDR:PORT`, without a slash at its end.
    pub(crate) base: String,
    /// Authorities that are trusted, in PEM; the system's own if absent.
    pub(crate) authorities: Option<Vec<u8>>,
    /// The server's certificate is not looked at.
    pub(crate) insecure: bool,
    /// Certificate and key of the client, in PEM.
    pub(crate) certificate: Option<Pair>,
    /// What stands in the Authorization header.
    pub(crate) proof: Proof,
    /// `Impersonate-…` header fields.
    pub(crate) impersonate: Vec<(String, String)>,
    /// The context's name, for kubectl.
    pub(crate) context: String,
    /// The file that was named; what the environment says if absent.
    pub(crate) file: Option<PathBuf>,
}

/// A certificate and its key, in PEM.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// By what a request proves who sends it, besides a certificate.
#[derive(Clone)]
pub(crate) enum Proof {
    /// Nothing.
    None,
    /// A bearer token.
    Token(String),
    /// A bearer token in a file, which may be exchanged at any time.
    TokenFile(PathBuf),
    /// User and password.
    Basic(String, String),
    /// A program that says it.
    Exec(Box<ExecConfig>),
}

fn wrong(what: impl Into<String>, remedy: impl Into<String>) -> Infra {
    Infra::lasting(what, remedy)
}

/// Reads what the rig file names: a file, or what the environment says.
pub(crate) fn read(external: &External) -> Result<Access, Infra> {
    let file = external.kubeconfig.as_deref().map(home);
    let config = match &file {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let config = config.map_err(|error| {
        let place = file.as_ref().map_or("the kubeconfig".to_owned(), |path| path.display().to_string());
        wrong(
            format!("{place} cannot be read: {}", chain(&error)),
            "name a kubeconfig in the rig file (spec.kubeconfig) or in KUBECONFIG; kubectl config view shows what is read",
        )
    })?;
    resolve(&config, external.context.as_deref(), file)
}

/// `~/` is the user's home.
fn home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        (Some(_) | None, _) => PathBuf::from(path),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

fn resolve(config: &Kubeconfig, context: Option<&str>, file: Option<PathBuf>) -> Result<Access, Infra> {
    let context_name = context.or(config.current_context.as_deref()).filter(|name| !name.is_empty());
    let known: Vec<&str> = config.contexts.iter().map(|context| context.name.as_str()).collect();
    let known =
        if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) };
    let Some(context_name) = context_name else {
        return Err(wrong(
            "the kubeconfig has no current context",
            format!("name one in the rig file (spec.context); {known}"),
        ));
    };
    let named = config.contexts.iter().find(|context| context.name == context_name);
    let Some(context) = named.and_then(|context| context.context.as_ref()) else {
        return Err(wrong(format!("the kubeconfig has no context `{context_name}`"), known));
    };
    let cluster = config.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let Some(cluster) = cluster.and_then(|cluster| cluster.cluster.as_ref()) else {
        return Err(wrong(
            format!(
                "the context `{context_name}` names the cluster `{}`, which the kubeconfig lacks",
                context.cluster
            ),
            "correct the kubeconfig",
        ));
    };
    let user = match &context.user {
        None => AuthInfo::default(),
        Some(name) => {
            let user = config.auth_infos.iter().find(|user| user.name == *name);
            user.and_then(|user| user.auth_info.clone()).ok_or_else(|| {
                wrong(
                    format!(
                        "the context `{context_name}` names the user `{name}`, which the kubeconfig lacks"
                    ),
                    "correct the kubeconfig",
                )
            })?
        }
    };
    let base = server(cluster)?;
    Ok(Access {
        base,
        authorities: pem(
            "certificate-authority",
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_deref(),
        )?,
        insecure: cluster.insecure_skip_tls_verify == Some(true),
        certificate: certificate(&user)?,
        proof: proof(&user)?,
        impersonate: impersonate(&user)?,
        context: context_name.to_owned(),
        file,
    })
}

fn server(cluster: &Cluster) -> Result<String, Infra> {
    if let Some(proxy) = &cluster.proxy_url {
        return Err(wrong(
            format!("the kubeconfig reaches its server through the proxy {proxy}, which is not supported"),
            "run rigor where the server is reached directly",
        ));
    }
    if let Some(name) = &cluster.tls_server_name {
        return Err(wrong(
            format!(
                "the kubeconfig expects the server's certificate to be for {name}, which is not supported"
            ),
            "use an address that the certificate names",
        ));
    }
    let server = cluster.server.as_deref().unwrap_or_default().trim_end_matches('/');
    if !server.starts_with("https://") && !server.starts_with("http://") {
        return Err(wrong(
            format!("the kubeconfig's server is `{server}`"),
            "it begins with https:// or http://",
        ));
    }
    Ok(server.to_owned())
}

/// Text in PEM: the data itself, in base64, or a file with it. Data goes before the file, as with kubectl.
fn pem(what: &str, data: Option<&str>, file: Option<&str>) -> Result<Option<Vec<u8>>, Infra> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let compact: String = data.split_ascii_whitespace().collect();
        return STANDARD.decode(compact).map(Some).map_err(|error| {
            wrong(format!("{what}-data of the kubeconfig is no base64: {error}"), "correct the kubeconfig")
        });
    }
    let Some(file) = file.filter(|file| !file.is_empty()) else { return Ok(None) };
    std::fs::read(file)
        .map(Some)
        .map_err(|error| wrong(format!("{what} {file} cannot be read: {error}"), "correct the kubeconfig"))
}

fn certificate(user: &AuthInfo) -> Result<Option<Pair>, Infra> {
    let certificate = pem(
        "client-certificate",
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
    )?;
    let key_data = user.client_key_data.as_ref().map(|secret| secret.expose_secret().to_owned());
    let key = pem("client-key", key_data.as_deref(), user.client_key.as_deref())?;
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(wrong("the kubeconfig has a client-certificate without client-key", "add it")),
        (None, Some(_)) => Err(wrong("the kubeconfig has a client-key without client-certificate", "add it")),
    }
}

fn proof(user: &AuthInfo) -> Result<Proof, Infra> {
    if let Some(provider) = &user.auth_provider {
        return Err(wrong(
            format!(
                "the kubeconfig's user has the auth-provider {}, which Kubernetes removed",
                provider.name
            ),
            "use its exec credential plugin instead",
        ));
    }
    if let Some(exec) = &user.exec {
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            return Err(wrong(
                "the kubeconfig's credential plugin wants to ask questions (interactiveMode: Always)",
                "use credentials that need no answer, such as a token",
            ));
        }
        return Ok(Proof::Exec(Box::new(exec.clone())));
    }
    if let Some(token) =
        user.token.as_ref().map(|token| token.expose_secret().trim()).filter(|token| !token.is_empty())
    {
        return Ok(Proof::Token(token.to_owned()));
    }
    if let Some(file) = user.token_file.as_deref().filter(|file| !file.is_empty()) {
        return Ok(Proof::TokenFile(PathBuf::from(file)));
    }
    match (&user.username, &user.password) {
        (Some(name), Some(password)) => Ok(Proof::Basic(name.clone(), password.expose_secret().to_owned())),
        _ => Ok(Proof::None),
    }
}

fn impersonate(user: &AuthInfo) -> Result<Vec<(String, String)>, Infra> {
    let Some(name) = &user.impersonate else {
        let others = user.impersonate_groups.as_ref().is_some_and(|groups| !groups.is_empty())
            || user.impersonate_uid.is_some()
            || user.impersonate_user_extra.as_ref().is_some_and(|extra| !extra.is_empty());
        return if others {
            Err(wrong("the kubeconfig impersonates groups, a uid or extra without a user", "add `as`"))
        } else {
            Ok(Vec::new())
        };
    };
    let mut fields = vec![("impersonate-user".to_owned(), name.clone())];
    let groups = user.impersonate_groups.iter().flatten();
    fields.extend(groups.map(|group| ("impersonate-group".to_owned(), group.clone())));
    fields.extend(user.impersonate_uid.iter().map(|uid| ("impersonate-uid".to_owned(), uid.clone())));
    for (key, values) in user.impersonate_user_extra.iter().flatten() {
        fields.extend(
            values
                .iter()
                .map(|value| (format!("impersonate-extra-{}", key.to_ascii_lowercase()), value.clone())),
        );
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cluster: &str, user: &str) -> String {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
        );
        let config = Kubeconfig::from_yaml(&text).unwrap();
        match resolve(&config, None, None) {
            Ok(access) => {
                let proof = match &access.proof {
                    Proof::None => "nothing".to_owned(),
                    Proof::Token(token) => format!("token {token}"),
                    Proof::TokenFile(path) => format!("token of {}", path.display()),
                    Proof::Basic(user, password) => format!("{user}:{password}"),
                    Proof::Exec(exec) => format!("exec {}", exec.command.as_deref().unwrap_or_default()),
                };
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let authorities = access.authorities.as_deref().map(text);
                let certificate =
                    access.certificate.map(|(certificate, key)| text(&certificate) + &text(&key));
                format!(
                    "{} insecure={} {authorities:?} {certificate:?} {proof} {:?}",
                    access.base, access.insecure, access.impersonate
                )
            }
            Err(error) => format!("{} / {}", error.what, error.remedy.unwrap_or_default()),
        }
    }

    #[test]
    fn what_a_kubeconfig_says_and_what_is_refused() {
        let there = "{server: \"https://h:6443/\"}";
        let cases = [
            (there, "{token: t0}"),
            (there, "{tokenFile: /run/token}"),
            (there, "{username: u, password: p}"),
            (
                there,
                "{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: IfAvailable}}",
            ),
            (there, "{exec: {command: aws, interactiveMode: Always}}"),
            (there, "{auth-provider: {name: gcp}}"),
            (there, "{as: kim, as-groups: [one, two], as-uid: \"7\", as-user-extra: {Scope: [s]}}"),
            (there, "{as-groups: [system:masters]}"),
            (
                "{server: \"https://h\", certificate-authority-data: Y2E=}",
                "{client-certificate-data: Y2VydA==, client-key-data: a2V5}",
            ),
            ("{server: \"https://h\", certificate-authority-data: \"?\"}", "{}"),
            ("{server: \"https://h\", certificate-authority: /nowhere/ca}", "{}"),
            (
                "{server: \"https://h\", insecure-skip-tls-verify: true}",
                "{client-certificate-data: Y2VydA==}",
            ),
            ("{server: \"https://h\", insecure-skip-tls-verify: true}", "{}"),
            ("{server: \"https://h\", proxy-url: \"http://p\"}", "{}"),
            ("{server: \"https://h\", tls-server-name: n}", "{}"),
            ("{server: \"h:6443\"}", "{}"),
        ];
        let told: Vec<String> = cases
            .iter()
            .map(|(cluster, user)| format!("{cluster} {user}\n    {}", told(cluster, user)))
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn a_context_that_is_not_there_is_told_with_those_that_are() {
        let text = "apiVersion: v1\nkind: Config\ncontexts: [{name: one, context: {cluster: k}}, {name: two, context: {cluster: k}}]\n";
        let config = Kubeconfig::from_yaml(text).unwrap();
        let told = |context: Option<&str>| match resolve(&config, context, None) {
            Ok(_) => "resolved".to_owned(),
            Err(error) => error.whole(),
        };
        assert_eq!(
            told(None),
            "the kubeconfig has no current context\nremedy: name one in the rig file (spec.context); there are one, two"
        );
        assert_eq!(told(Some("three")), "the kubeconfig has no context `three`\nremedy: there are one, two");
        assert_eq!(
            told(Some("two")),
            "the context `two` names the cluster `k`, which the kubeconfig lacks\nremedy: correct the kubeconfig"
        );
    }
}
