//! The recorded exchanges, and what is known about them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// Header names and values in their order; names in lower case.
pub type Headers = Vec<(String, String)>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    pub name: String,
    /// `admin`, `nobody` (known, allowed nothing), `wrong` (a token that nobody has) or `anonymous`.
    pub who: String,
    pub method: String,
    pub url: String,
    pub headers: Headers,
    #[serde(default)]
    pub body: String,
    /// Absent where the answer was kept back.
    pub answer: Option<Recorded>,
}

/// What Kubernetes answered: one of `json`, `text` and `lines`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    pub status: u16,
    pub headers: Headers,
    pub json: Option<Value>,
    pub text: Option<String>,
    pub lines: Option<Vec<Value>>,
    /// There were managedFields, which are not compared.
    #[serde(default)]
    pub managed: bool,
}

impl Exchange {
    pub fn is_watch(&self) -> bool {
        self.url.contains("watch=") || self.url.contains("/watch/")
    }
}

pub fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings")).join(name)
}

pub fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn load(folder: &str) -> Vec<Exchange> {
    let name = format!("{folder}.jsonl");
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}:{}: {error}", number + 1))
    };
    read(&name).lines().enumerate().map(parse).collect()
}

/// `FOLDER/NAME` of each exchange that is known to be answered differently, and why.
pub fn differences() -> BTreeMap<String, String> {
    serde_saphyr::from_str(&read("differences.yaml")).unwrap()
}
