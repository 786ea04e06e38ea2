//! `docs/scenario-reference.md` is written from the tables that the reader follows, and is current.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rigor_model::pattern::OPERATORS;
use rigor_model::shape::{Field, FieldType, Shape};
use rigor_model::{Capability, Catalogue, Class, Constant, Rig, Scenario, Verb};

const UPDATE: &str = "UPDATE_REFERENCE";
const PAGE: &str = "../../docs/scenario-reference.md";
const COMMAND: &str = "UPDATE_REFERENCE=1 cargo test -p rigor-model --test reference";

const CATALOGUE: &str = "version: 2\nareas:\n  node:\n  - {id: NODE-03, profile: kube32, must: \"be so\"}\n";

fn files(name: &str) -> Result<String, String> {
    if name == "outage.yaml" {
        Ok("apiVersion: rigor.dev/v1alpha1\nkind: Fragment\nmetadata: {name: outage}\nspec: {parameters: {board: {}}, steps: [{power: {board: \"${board}\", do: cut}}]}\n".to_owned())
    } else if name.ends_with(".yaml") {
        Ok("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n".to_owned())
    } else {
        Err("no such file".to_owned())
    }
}

/// What a step implies of the rig, as the reader finds it.
fn needs(step: &str) -> Result<Vec<Capability>, String> {
    let catalogue = Catalogue::parse("requirements.yaml", CATALOGUE).expect("a catalogue");
    let source = format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: example, requirements: [NODE-03], profile: kube32}}\nspec:\n  rig: {{boards: 2}}\n  steps:\n    - wait: 0s\n      as: outage\n    - wait: 0s\n      as: tainted\n    - wait: 0s\n      as: evicted\n    - {step}\n"
    );
    let scenarios = Scenario::parse("example.yaml", &source, &catalogue, &files)
        .map_err(|mistakes| format!("{step}\n{mistakes:#}"))?;
    Ok(scenarios[0].needs.iter().copied().collect())
}

/// What a step implies that does `word`; some words want one more key, of which the first that is right is taken.
fn needs_of_word(verb: Verb, shape: &Shape, word: &str) -> Vec<Capability> {
    let (before, _) = verb.example().split_once("do: ").expect("an example with `do`");
    let more = shape.fields.iter().filter(|field| !field.required).filter_map(|field| match field.value {
        FieldType::Duration => Some(format!(", {}: 1s", field.key)),
        FieldType::Whole { min, .. } => Some(format!(", {}: {min}", field.key)),
        _ => None,
    });
    let mut steps =
        std::iter::once(String::new()).chain(more).map(|more| format!("{before}do: {word}{more}}}"));
    // Some words say something only after the act of the example.
    let after = |step: &str| needs(&format!("{}\n    - {step}", verb.example()));
    steps
        .find_map(|step| needs(&step).or_else(|_| after(&step)).ok())
        .unwrap_or_else(|| panic!("no step with do: {word} can be read"))
}

/// What a verb implies, with each word of its key `do`.
fn implied(verb: Verb) -> Vec<(String, Capability)> {
    let mut all = Vec::new();
    if let FieldType::Shape(shape) = verb.value()
        && let Some(FieldType::Word(words)) =
            shape.fields.iter().find(|field| field.key == "do").map(|field| field.value)
    {
        for word in words {
            let needs = needs_of_word(verb, shape, word);
            all.extend(needs.into_iter().map(|need| (format!("`{word}`"), need)));
        }
        return all;
    }
    let needs = needs(verb.example()).unwrap_or_else(|error| panic!("{error}"));
    all.extend(needs.into_iter().map(|need| (String::new(), need)));
    all
}

/// What is said of a verb's needs: capabilities, each with the words that imply it.
fn needs_line(verb: Verb) -> Option<String> {
    let all = implied(verb);
    let mut told: Vec<String> = Vec::new();
    for capability in Capability::ALL {
        let words: Vec<&str> =
            all.iter().filter(|(_, need)| *need == capability).map(|(word, _)| word.as_str()).collect();
        match words.as_slice() {
            [] => {}
            [""] => told.push(format!("`{}`", capability.name())),
            words => told.push(format!("`{}` ({})", capability.name(), words.join(", "))),
        }
    }
    (!told.is_empty()).then(|| format!("It implies the capability {}.", told.join(" and ")))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A table of a mapping's keys; mappings inside are laid out under their path.
fn table(page: &mut String, path: &str, shape: &'static Shape, shared: &[&'static str]) {
    page.push_str("| key | | value | meaning |\n| --- | --- | --- | --- |\n");
    let mut inner: Vec<(String, &'static Shape)> = Vec::new();
    rows(page, "", shape, &mut inner);
    for group in shape.exactly_one {
        let _ = writeln!(page, "\nExactly one of {}.", listed(group));
    }
    for group in shape.at_most_one {
        let _ = writeln!(page, "\nAt most one of {}.", listed(group));
    }
    for (key, shape) in inner {
        if shared.contains(&shape.name) {
            continue;
        }
        let _ = writeln!(page, "\n`{path}{key}`: {}\n", shape.about);
        table(page, &format!("{path}{key}."), shape, shared);
    }
}

fn rows(page: &mut String, prefix: &str, shape: &'static Shape, inner: &mut Vec<(String, &'static Shape)>) {
    for field in shape.fields {
        let Field { key, required, value, about, usual, example } = field;
        let needed = if *required { "required" } else { "" };
        let mut meaning = format!("{}.", about.trim_end_matches('.'));
        if let Some(usual) = usual {
            let _ = write!(meaning, " Left out: `{usual}`.");
        }
        if let Some(example) = example {
            let _ = write!(meaning, " Such as `{example}`.");
        }
        let _ =
            writeln!(page, "| `{prefix}{key}` | {needed} | {} | {} |", cell(&value.words()), cell(&meaning));
        if let Some(shape) = value.shape() {
            inner.push(((*key).to_owned(), shape));
        }
    }
}

fn listed(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// Mappings that many verbs have: told once, by the name of the key.
fn shared() -> Vec<(&'static str, &'static Shape)> {
    let mut found: Vec<(&'static str, &'static Shape, usize)> = Vec::new();
    for verb in Verb::ALL {
        let FieldType::Shape(shape) = verb.value() else { continue };
        for field in shape.fields {
            let Some(inner) = field.value.shape() else { continue };
            match found.iter_mut().find(|(key, _, _)| *key == field.key) {
                Some((_, _, count)) => *count += 1,
                None => found.push((field.key, inner, 1)),
            }
        }
    }
    found.into_iter().filter(|(_, _, count)| *count > 1).map(|(key, shape, _)| (key, shape)).collect()
}

fn page() -> String {
    let mut page = format!(
        "# Reference of the scenario language\n\nEvery key of scenario and rig files, with its type and what it is taken to be where it is left out. How the parts play\ntogether is told in [scenario-language.md](scenario-language.md); how to begin in [writing-scenarios.md](writing-scenarios.md).\n\nThis page is written from the tables that the reader follows, by\n`{COMMAND}`; a test fails where it is out of date.\n\n## A scenario\n\n"
    );
    let shared = shared();
    let names: Vec<&'static str> = shared.iter().map(|(_, shape)| shape.name).collect();
    table(&mut page, "", Scenario::shape(), &[]);
    page.push_str(
        "\n## Steps\n\nA step is a mapping with one verb and, if one likes, `as`, which names its instant.\n",
    );
    for (title, class) in [
        ("Acts", Class::Act),
        ("Expectations", Class::Expectation),
        ("Steps that hold steps", Class::Structure),
    ] {
        let _ = writeln!(page, "\n### {title}");
        for verb in Verb::ALL.iter().filter(|verb| verb.class() == class) {
            let _ = writeln!(
                page,
                "\n#### {}\n\n{}\n\n```yaml\n- {}\n```\n",
                verb.name(),
                verb.about(),
                verb.example()
            );
            match verb.value() {
                FieldType::Shape(shape) => table(&mut page, &format!("{}.", verb.name()), shape, &names),
                plain => {
                    let _ = writeln!(page, "Its value: {}.", plain.words());
                }
            }
            if let Some(line) = needs_line(*verb) {
                let _ = writeln!(page, "\n{line}");
            }
        }
    }
    page.push_str("\n### Mappings that several verbs have\n");
    for (key, shape) in &shared {
        let _ = writeln!(page, "\n#### {key}\n\n{}\n", shape.about);
        table(&mut page, &format!("{key}."), shape, &names);
    }
    let operators: Vec<String> = OPERATORS.iter().map(|operator| format!("`{operator}`")).collect();
    let _ = writeln!(
        page,
        "\n## Patterns\n\nOperators: {}. What each matches: [Matching](scenario-language.md#matching).\n\n## Constants\n\n| name | what it is |\n| --- | --- |",
        operators.join(", ")
    );
    for constant in Constant::ALL {
        let _ = writeln!(page, "| `{}` | {} |", constant.name(), constant.meaning());
    }
    page.push_str("\n## A rig\n\n");
    table(&mut page, "", Rig::shape(), &[]);
    page
}

#[test]
fn the_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let wanted = page();
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &wanted).expect("the page is written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/scenario-reference.md is out of date: run {COMMAND}");
}

#[test]
fn every_verb_says_what_it_is_and_its_example_is_right() {
    for verb in Verb::ALL {
        assert!(!verb.about().is_empty(), "{} has no sentence (harness/model/src/examples.rs)", verb.name());
        assert!(verb.example().starts_with(&format!("{}: ", verb.name())), "{}", verb.example());
        needs(verb.example())
            .unwrap_or_else(|error| panic!("the example of {} is wrong: {error}", verb.name()));
    }
    assert_eq!(implied(Verb::Power).len(), 5);
    assert_eq!(needs_line(Verb::Kubectl).as_deref(), Some("It implies the capability `kubectl`."));
    assert_eq!(needs_line(Verb::Bind), None);
    let link = needs_line(Verb::Link).expect("links imply something");
    assert!(link.contains("`link-quality` (`delay`, `loss`)"), "{link}");
}
