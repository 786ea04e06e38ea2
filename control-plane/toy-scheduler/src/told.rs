//! What went wrong, in one line for people. kube's own words repeat an answer as a debug dump, and do not say why there is no
//! connection.

use std::error::Error as _;

use kube::Error;
use kube::config::{InferConfigError, KubeconfigError, LoadDataError};
use kube::core::Status;
use kube::runtime::watcher;

/// Why a request came to nothing.
pub fn request(error: &Error) -> String {
    match error {
        Error::Api(status) => answer(status),
        Error::Service(cause) => format!("the API server cannot be reached: {}", innermost(cause.as_ref())),
        other => other.to_string(),
    }
}

/// Why a watch ended.
pub fn watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error) => format!("no list: {}", request(error)),
        watcher::Error::WatchStartFailed(error) => format!("no watch: {}", request(error)),
        watcher::Error::WatchFailed(error) => format!("a watch broke off: {}", request(error)),
        watcher::Error::WatchError(status) => format!("a watch was ended: {}", answer(status)),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

/// Why a kubeconfig cannot be used; its name stands elsewhere.
pub fn kubeconfig(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        KubeconfigError::Parse(error) => error.without_snippet().to_string(),
        KubeconfigError::LoadCertificateAuthority(LoadDataError::ReadFile(error, path))
        | KubeconfigError::LoadClientCertificate(LoadDataError::ReadFile(error, path))
        | KubeconfigError::LoadClientKey(LoadDataError::ReadFile(error, path)) => {
            format!("{} cannot be read: {error}", path.display())
        }
        other => other.to_string(),
    }
}

/// Why no cluster is known. Who runs this in no cluster means a kubeconfig.
pub fn nowhere(error: &InferConfigError) -> String {
    match error.source().and_then(|source| source.downcast_ref()) {
        Some(KubeconfigError::ReadConfig(error, path)) => format!("{}: {error}", path.display()),
        Some(other) => kubeconfig(other),
        None => error.to_string(),
    }
}

fn answer(status: &Status) -> String {
    match status.message.as_str() {
        "" => format!("the API server answered {}", status.code),
        message => message.to_owned(),
    }
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}
