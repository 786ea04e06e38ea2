//! Query parameters of write requests: dry run and field validation (Kubernetes' CreateOptions and its kin).
//!
//! Read and watch parameters belong to the server; delete options to [`crate::delete`].

use serde_json::Value;

use crate::status::{ApiError, Cause, CauseReason, quote};

/// What to do about unknown and duplicate fields in a body (`fieldValidation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and say so in `Warning` headers; what is done when the parameter is absent.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// The options kind that a verb carries; it names the object in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteVerb {
    /// POST
    Create,
    /// PUT
    Update,
    /// PATCH
    Patch,
}

impl WriteVerb {
    fn options_kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch => "PatchOptions",
        }
    }
}

/// The parsed options of a create, update or patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Go through everything but the store.
    pub dry_run: bool,
    /// How to treat unknown fields.
    pub field_validation: FieldValidation,
}

impl WriteOptions {
    /// Reads the options from decoded query pairs; other parameters are left alone.
    ///
    /// Errors: 422 with Kubernetes' causes for an unsupported `dryRun` or `fieldValidation`.
    pub fn parse(verb: WriteVerb, query: &[(String, String)]) -> Result<Self, ApiError> {
        let mut options = Self::default();
        let mut causes = Vec::new();
        let dry_runs = query.iter().filter(|(key, value)| key == "dryRun" && !value.is_empty());
        let values: Vec<&str> = dry_runs.map(|(_, value)| value.as_str()).collect();
        options.dry_run = !values.is_empty();
        causes.extend(dry_run_cause(&values));
        if let Some((_, value)) = query.iter().find(|(key, _)| key == "fieldValidation") {
            match value.as_str() {
                "" => {}
                "Ignore" => options.field_validation = FieldValidation::Ignore,
                "Warn" => options.field_validation = FieldValidation::Warn,
                "Strict" => options.field_validation = FieldValidation::Strict,
                other => {
                    let known = ["", "Ignore", "Strict", "Warn"];
                    causes.push(Cause::not_supported("fieldValidation", other, &known));
                }
            }
        }
        // Whatever it says: even `force=false` is given.
        if verb == WriteVerb::Patch && query.iter().any(|(key, _)| key == "force") {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
        causes.extend(field_manager_causes(query));
        if causes.is_empty() {
            Ok(options)
        } else {
            Err(ApiError::invalid_for("meta.k8s.io", verb.options_kind(), "", causes))
        }
    }
}

/// The longest name of a field manager, in bytes.
const FIELD_MANAGER: usize = 128;

/// What is wrong with `fieldManager`; the name itself is not kept.
fn field_manager_causes(query: &[(String, String)]) -> Vec<Cause> {
    let Some((_, manager)) = query.iter().find(|(key, _)| key == "fieldManager") else { return Vec::new() };
    let mut causes = Vec::new();
    if manager.len() > FIELD_MANAGER {
        causes.push(Cause::too_long("fieldManager", FIELD_MANAGER));
    }
    if let Some(letter) = manager.chars().find(|letter| letter.is_control()) {
        let why = format!("should only contain printable characters, found {letter:?}");
        causes.push(Cause::invalid("fieldManager", &Value::from(manager.as_str()), &why));
    }
    causes
}

/// The cause for dry-run values of which one is not `All`; they are printed as Go prints a list.
pub(crate) fn dry_run_cause(values: &[&str]) -> Option<Cause> {
    if values.iter().all(|value| *value == "All") {
        return None;
    }
    let list = values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ");
    let message = format!("Unsupported value: []string{{{list}}}: supported values: \"All\"");
    Some(Cause::new("dryRun", CauseReason::NotSupported, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<WriteOptions, ApiError> {
        let query: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        WriteOptions::parse(WriteVerb::Create, &query)
    }

    #[test]
    fn defaults_and_known_values() {
        let cases = [
            (&[][..], false, FieldValidation::Warn),
            (&[("dryRun", "All")], true, FieldValidation::Warn),
            (&[("dryRun", ""), ("fieldValidation", "")], false, FieldValidation::Warn),
            (&[("fieldValidation", "Strict"), ("fieldManager", "x")], false, FieldValidation::Strict),
            (&[("fieldValidation", "Ignore")], false, FieldValidation::Ignore),
        ];
        for (pairs, dry_run, field_validation) in cases {
            let expected = WriteOptions { dry_run, field_validation };
            assert_eq!(parse(pairs), Ok(expected), "{pairs:?}");
        }
    }

    #[test]
    fn force_is_for_patches_that_are_not_served() {
        for value in ["true", "false", "x", ""] {
            let query = [("force".to_owned(), value.to_owned())];
            let error = WriteOptions::parse(WriteVerb::Patch, &query).unwrap_err();
            let words = "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch";
            assert_eq!((error.code, error.message.as_str()), (422, words), "{value}");
            assert!(WriteOptions::parse(WriteVerb::Update, &query).is_ok());
        }
    }

    #[test]
    fn unknown_values_are_refused_in_kubernetes_words() {
        let error = parse(&[("fieldValidation", "Nope")]).unwrap_err();
        assert_eq!(
            error.message,
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Nope\": \
             supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
        );
        assert_eq!(error.code, 422);
        assert_eq!(
            parse(&[("dryRun", "Some")]).unwrap_err().message,
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: []string{\"Some\"}: supported values: \
             \"All\""
        );
    }
}
