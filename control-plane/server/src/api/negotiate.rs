//! In which form and encoding an answer goes out, by the Accept header.

use control_plane_api::ApiError;

/// What the answer shows of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The object.
    Object,
    /// Rows and columns; the version of `meta.k8s.io` asked for.
    Table(&'static str),
    /// Only the metadata.
    Partial(&'static str),
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON, compact unless asked otherwise.
    Json,
    /// YAML.
    Yaml,
}

/// An acceptable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// What it shows.
    pub form: Form,
    /// How it is written.
    pub encoding: Encoding,
}

impl Accepted {
    /// The object itself, as JSON.
    pub const PLAIN: Self = Self { form: Form::Object, encoding: Encoding::Json };
}

/// What can be sent.
const AVAILABLE: &[&str] = &["application/json", "application/yaml", "application/json;stream=watch"];

/// How an answer can be written.
const ENCODINGS: &[&str] = &["application/json", "application/yaml"];

/// Chooses the first acceptable clause. `list` says whether the answer is a list, which decides between the two kinds of
/// partial metadata.
///
/// # Errors
/// 406 with what is available.
pub fn accept(header: Option<&str>, list: bool) -> Result<Accepted, ApiError> {
    let Some(header) = header.filter(|header| !header.trim().is_empty()) else {
        return Ok(Accepted::PLAIN);
    };
    let mut clauses: Vec<(f32, Accepted)> =
        header.split(',').filter_map(|clause| read(clause, list)).collect();
    clauses.sort_by(|a, b| b.0.total_cmp(&a.0));
    match clauses.first() {
        Some((_, accepted)) => Ok(*accepted),
        // Kubernetes has two words for this: one for the encoding, one for what is shown.
        None if header.split(',').any(|clause| encoding(clause).is_some()) => {
            Err(ApiError::no_such_form(ENCODINGS))
        }
        None => Err(ApiError::not_acceptable(AVAILABLE)),
    }
}

fn encoding(clause: &str) -> Option<Encoding> {
    match clause.split(';').next()?.trim().to_ascii_lowercase().as_str() {
        "application/json" | "application/*" | "*/*" => Some(Encoding::Json),
        "application/yaml" => Some(Encoding::Yaml),
        _ => None,
    }
}

fn read(clause: &str, list: bool) -> Option<(f32, Accepted)> {
    let encoding = encoding(clause)?;
    let parts = clause.split(';').skip(1).map(str::trim);
    let (mut kind, mut group, mut version, mut quality) = ("", "", "", 1.0);
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim() {
            "as" => kind = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            "q" => quality = value.trim().parse().ok()?,
            _ => {}
        }
    }
    if quality <= 0.0 {
        return None;
    }
    let known = match version {
        "v1" => "v1",
        "v1beta1" => "v1beta1",
        _ => "",
    };
    let form = match kind {
        "" => Form::Object,
        _ if group != "meta.k8s.io" || known.is_empty() => return None,
        "Table" => Form::Table(known),
        "PartialObjectMetadataList" if list => Form::Partial(known),
        "PartialObjectMetadata" if !list => Form::Partial(known),
        _ => return None,
    };
    Some((quality, Accepted { form, encoding }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_acceptable_clause_decides() {
        let check = |header: &str, list: bool, form: Form, encoding: Encoding| {
            assert_eq!(accept(Some(header), list), Ok(Accepted { form, encoding }), "{header}");
        };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        check(kubectl, true, Form::Table("v1"), Encoding::Json);
        check(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            true,
            Form::Table("v1beta1"),
            Encoding::Json,
        );
        check("application/json;as=Nope;v=v1;g=meta.k8s.io, */*;q=0.1", true, Form::Object, Encoding::Json);
        check("application/vnd.kubernetes.protobuf,application/json", true, Form::Object, Encoding::Json);
        check("application/yaml", false, Form::Object, Encoding::Yaml);
        check("application/json;q=0.1, application/yaml", false, Form::Object, Encoding::Yaml);
        check(
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            false,
            Form::Partial("v1"),
            Encoding::Json,
        );
        check(
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            true,
            Form::Partial("v1"),
            Encoding::Json,
        );
        check("", true, Form::Object, Encoding::Json);
        assert_eq!(accept(None, true), Ok(Accepted::PLAIN));
    }

    #[test]
    fn nothing_acceptable_is_406() {
        let check = |header: &str, words: &str| {
            let error = accept(Some(header), true).unwrap_err();
            assert_eq!(error.code, 406, "{header}");
            assert!(error.message.contains(words), "{header}: {}", error.message);
        };
        check("text/plain", "Available representations: application/json");
        check("application/vnd.kubernetes.protobuf", "Available representations: application/json");
        let form = "only the following media types are accepted: application/json, application/yaml";
        check("application/json;as=Nope;v=v1;g=meta.k8s.io", form);
        check("application/json;as=Table;v=v1;g=other", form);
        check("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", form);
        check("application/json;q=0", form);
    }
}
