//! SHA-256 in hexadecimal digits, of bytes and of the suites as a whole.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// The digest of some bytes.
#[must_use]
pub fn of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The digest of a file.
///
/// # Errors
/// It cannot be read.
pub fn of_file(path: &Path) -> Result<String> {
    Ok(of(&fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?))
}

/// The digest of all scenarios of the repository at `root`: each file with its path and length, in order of the paths.
///
/// # Errors
/// A folder or file of them cannot be read.
pub fn of_suites(root: &Path) -> Result<String> {
    let mut files = Vec::new();
    for entry in listed(&root.join("suites"))? {
        let name = entry.file_name().unwrap_or_default().to_owned();
        if entry.is_dir() && name != "schema" && name != "tests" {
            yaml_below(&entry, &mut files)?;
        }
    }
    let mut named: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|file| (file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned(), file))
        .collect();
    named.sort_unstable();
    let mut hasher = Sha256::new();
    for (name, file) in named {
        let content = fs::read(&file).with_context(|| format!("{name} cannot be read"))?;
        hasher.update(name.as_bytes());
        hasher.update(format!("\0{}\0", content.len()).as_bytes());
        hasher.update(&content);
    }
    Ok(hex(&hasher.finalize()))
}

fn yaml_below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for path in listed(folder)? {
        if path.is_dir() {
            yaml_below(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    Ok(())
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let told = || format!("{} cannot be listed", folder.display());
    fs::read_dir(folder)
        .with_context(told)?
        .map(|entry| entry.map(|entry| entry.path()).with_context(told))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_the_suites_is_that_of_scenarios_only() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join("suites").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("b/two.yaml", "2");
        write("a/deep/one.yaml", "1");
        let first = of_suites(root.path()).unwrap();
        let fed = "suites/a/deep/one.yaml\x001\x001suites/b/two.yaml\x001\x002";
        assert_eq!(first, of(fed.as_bytes()));
        for ignored in ["requirements.yaml", "schema/x.yaml", "tests/x.yaml", "a/notes.md"] {
            write(ignored, "x");
        }
        assert_eq!(of_suites(root.path()).unwrap(), first);
        write("b/two.yaml", "3");
        assert_ne!(of_suites(root.path()).unwrap(), first);
    }
}
