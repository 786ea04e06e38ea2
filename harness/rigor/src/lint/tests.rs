//! What lint says of broken files, whatever they are: it comes to an end, and names a line of the file.

use super::*;
use crate::suite::Suites;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, RngSeed};
use std::sync::OnceLock;

/// The scenarios that ship, with their catalogue.
fn shipped() -> &'static (Catalogue, Vec<(PathBuf, String)>) {
    static SHIPPED: OnceLock<(Catalogue, Vec<(PathBuf, String)>)> = OnceLock::new();
    SHIPPED.get_or_init(|| {
        let suites = Suites::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites"));
        let files = suites.files().expect("the suites that ship");
        let sources =
            files.iter().map(|file| (file.path().to_owned(), read(file.path()).expect("a scenario")));
        (suites.catalogue().expect("the catalogue"), sources.collect())
    })
}

/// The source with some signs of it in another place.
fn torn(source: &str, from: usize, length: usize, to: usize) -> String {
    let mut signs: Vec<char> = source.chars().collect();
    let from = from % signs.len();
    let piece: Vec<char> = signs.drain(from..(from + length).min(signs.len())).collect();
    let to = to % (signs.len() + 1);
    signs.splice(to..to, piece);
    signs.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_torn_file_passes_or_its_lines_are_named(
        which in 0_usize..10_000, from in 0_usize..5_000, length in 1_usize..60, to in 0_usize..5_000,
    ) {
        let (catalogue, sources) = shipped();
        let (path, source) = &sources[which % sources.len()];
        let (shown, source) = (path.display().to_string(), torn(source, from, length, to));
        let scenario = Source { shown: &shown, source: &source, files: &beside(path) };
        let twins = |_: &str| vec!["suites/other/twin.yaml".to_owned()];
        for found in scenario.check(catalogue, &twins, Some(&[])) {
            let lines = source.lines().count().max(1);
            for finding in found.findings() {
                prop_assert!((1..=lines).contains(&finding.line), "{finding:?}\n{source}");
                prop_assert!(finding.column >= 1 && finding.end_line >= finding.line, "{finding:?}\n{source}");
                prop_assert!(finding.remedy.is_some_and(|remedy| !remedy.is_empty()), "{finding:?}\n{source}");
            }
        }
    }
}
