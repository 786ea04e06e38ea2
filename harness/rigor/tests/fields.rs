//! The fields of the kinds that scenarios name, as Kubernetes' own types have them. `src/lint/fields.txt` is made from those,
//! so that `rigor lint` knows a misspelt field; `UPDATE_FIELDS=1` writes it anew.

#[path = "fields/tracer.rs"]
mod tracer;

use k8s_openapi::api::{apps, batch, coordination, core, discovery};
use rigor_model::kinds::KINDS;
use std::path::Path;
use tracer::{Sort, Types};

const HEAD: &str = "# The fields of Kubernetes' objects, a type a line, made by the test `fields` from the types of k8s-openapi.
# After a field stands its type; [ ] is a list, { } a mapping with keys of the writer's own, nothing a quantity or
# whatever one likes.
";

fn traced() -> Types {
    let mut types = Types::default();
    types.trace::<core::v1::Namespace>();
    types.trace::<core::v1::Node>();
    types.trace::<core::v1::Pod>();
    types.trace::<coordination::v1::Lease>();
    types.trace::<core::v1::Event>();
    types.trace::<core::v1::Service>();
    types.trace::<core::v1::ServiceAccount>();
    types.trace::<core::v1::ConfigMap>();
    types.trace::<core::v1::Secret>();
    types.trace::<core::v1::Endpoints>();
    types.trace::<apps::v1::Deployment>();
    types.trace::<apps::v1::ReplicaSet>();
    types.trace::<apps::v1::DaemonSet>();
    types.trace::<batch::v1::Job>();
    types.trace::<discovery::v1::EndpointSlice>();
    types
}

#[test]
fn the_fields_that_lint_knows_are_those_of_kubernetes() {
    let types = traced();
    for kind in &KINDS {
        assert!(
            types.all.contains_key(kind.kind),
            "no type is called {}: add it to the list here",
            kind.kind
        );
    }
    let mut text = HEAD.to_owned();
    for (name, fields) in &types.all {
        let fields: Vec<String> = fields
            .iter()
            .map(|(field, sort)| match sort {
                Sort::Plain => (*field).to_owned(),
                sort => format!("{field} {sort}"),
            })
            .collect();
        text.push_str(&format!("{name}: {}\n", fields.join(", ")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lint/fields.txt");
    if std::env::var_os("UPDATE_FIELDS").is_some() {
        std::fs::write(&path, &text).expect("the file of fields");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "fields.txt is out of date: run UPDATE_FIELDS=1 cargo test -p rigor --test fields"
    );
}
