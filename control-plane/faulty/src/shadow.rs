//! The shadow workspace: a copy of the crates that the suites need, with faults woven in, below the target folder.
//!
//! Product code carries no hooks and product crates do not know of faults: only the copies depend on the crate `fault`,
//! which is written here. A file whose content stays is not written again, so that cargo builds what changed and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::fault::Fault;
use crate::weave::{self, Placed};

/// The crates that are copied, by their folders.
pub const CRATES: &[&str] = &[
    "control-plane/api",
    "control-plane/core",
    "control-plane/server",
    "control-plane/toy-scheduler",
    "firmware/boards-host",
    "firmware/kubelet",
    "harness/model",
    "harness/rigor",
    "harness/rigs",
    "harness/sim",
    "harness/switch",
    "harness/trace",
];

/// The crates that faults may be put into.
pub const BREAKABLE: &[&str] = &[
    "control-plane/api",
    "control-plane/core",
    "control-plane/server",
    "firmware/kubelet",
    SECOND_SCHEDULER,
];

/// The crate of the second scheduler: a part of the simulated rig, and elsewhere a program of its own.
pub const SECOND_SCHEDULER: &str = "control-plane/toy-scheduler";

/// The programs that are built, as their crates call them; in the shadow `-SUFFIX` is added.
pub const PROGRAMS: &[&str] = &["rigor", "control-plane", "kubelet-host", "toy-scheduler"];

/// What is woven into the copies.
#[derive(Debug, Default)]
pub struct Woven {
    /// Edits by the file that they are of, from the root of the repository.
    pub edits: BTreeMap<String, Vec<Placed>>,
    /// The names by which faults are chosen; the number of a fault is its place here, from 1 on.
    pub names: Vec<String>,
}

impl Woven {
    /// The hand-made faults of the repository at `root`.
    ///
    /// # Errors
    /// A source that a fault names is not there or of no breakable crate, or its sound code is not what the fault says;
    /// all such mistakes at once.
    pub fn of(root: &Path, faults: &[Fault]) -> Result<Self> {
        let mut woven = Self::default();
        let mut sources: BTreeMap<&str, String> = BTreeMap::new();
        let mut wrong = Vec::new();
        for fault in faults {
            woven.names.push(fault.id.clone());
            let number = woven.names.len();
            for edit in &fault.edits {
                let told = |what: &str| format!("{} ({}): {what}", fault.id, edit.file);
                if !is_breakable(&edit.file) {
                    wrong.push(told(&format!("only sources of {} can be broken", BREAKABLE.join(", "))));
                    continue;
                }
                if !sources.contains_key(edit.file.as_str()) {
                    match fs::read_to_string(root.join(&edit.file)) {
                        Ok(source) => drop(sources.insert(&edit.file, source)),
                        Err(error) => {
                            wrong.push(told(&format!("the file cannot be read: {error}")));
                            continue;
                        }
                    }
                }
                let Some(source) = sources.get(edit.file.as_str()) else { continue };
                match weave::find(source, edit.within.as_deref(), &edit.sound) {
                    Ok((start, end)) => woven.edits.entry(edit.file.clone()).or_default().push(Placed {
                        number,
                        id: fault.id.clone(),
                        start,
                        end,
                        template: weave::template(&edit.sound, &edit.broken),
                        marked: false,
                    }),
                    Err(what) => wrong.push(told(&what)),
                }
            }
        }
        ensure!(
            wrong.is_empty(),
            "faults that do not fit the sources any more; correct them below {} or take them away:\n  {}",
            crate::fault::FOLDER,
            wrong.join("\n  ")
        );
        Ok(woven)
    }

    /// The source `file` of the repository at `root`, with what is woven into it.
    ///
    /// # Errors
    /// It cannot be read, or edits of it overlap.
    pub fn source(&self, root: &Path, file: &str) -> Result<String> {
        let source = fs::read_to_string(root.join(file)).with_context(|| format!("{file} cannot be read"))?;
        let edits = self.edits.get(file).map_or(&[][..], Vec::as_slice);
        weave::weave(&source, edits).with_context(|| format!("in {file}"))
    }
}

fn is_breakable(file: &str) -> bool {
    BREAKABLE.iter().any(|folder| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with("/src/")))
}

/// Writes the shadow of the repository at `root` into `place`, its programs called NAME-`suffix`.
///
/// # Errors
/// Something cannot be read or written, or edits overlap.
pub fn write(root: &Path, place: &Path, woven: &Woven, suffix: &str) -> Result<()> {
    let mut written = BTreeSet::new();
    let mut put = |name: &str, content: &[u8]| -> Result<()> {
        let path = place.join(name);
        if fs::read(&path).ok().as_deref() != Some(content) {
            let folder = path.parent().unwrap_or(place);
            fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
            fs::write(&path, content).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        written.insert(path);
        Ok(())
    };
    let text =
        |name: &str| fs::read_to_string(root.join(name)).with_context(|| format!("{name} cannot be read"));
    put("Cargo.toml", workspace(&text("Cargo.toml")?)?.as_bytes())?;
    put("fault/Cargo.toml", FAULT_MANIFEST.as_bytes())?;
    put("fault/src/lib.rs", fault_crate(&woven.names).as_bytes())?;
    for folder in CRATES {
        let mut files = Vec::new();
        files_below(&root.join(folder), &mut files)?;
        for file in files {
            let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
            if name == format!("{folder}/Cargo.toml") {
                put(&name, manifest(folder, &text(&name)?, suffix).as_bytes())?;
            } else if woven.edits.contains_key(&name) {
                put(&name, woven.source(root, &name)?.as_bytes())?;
            } else {
                let content = fs::read(&file).with_context(|| format!("{name} cannot be read"))?;
                put(&name, &content)?;
            }
        }
    }
    // The lock is cargo's to change: it drops what the shadow has no use for.
    let (lock, basis) = (text("Cargo.lock")?, place.join("Cargo.lock.basis"));
    if fs::read_to_string(&basis).ok().as_deref() != Some(&lock) || !place.join("Cargo.lock").is_file() {
        fs::write(place.join("Cargo.lock"), &lock).context("Cargo.lock cannot be written")?;
        fs::write(&basis, &lock).context("Cargo.lock.basis cannot be written")?;
    }
    let mut stale = Vec::new();
    for folder in CRATES {
        files_below(&place.join(folder), &mut stale)?;
    }
    for file in stale.into_iter().filter(|file| !written.contains(file)) {
        fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))?;
    }
    Ok(())
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let told = || format!("{} cannot be listed", folder.display());
    for entry in fs::read_dir(folder).with_context(told)? {
        let path = entry.with_context(told)?.path();
        match path.is_dir() {
            true if path.ends_with("target") => {}
            true => files_below(&path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}

/// The workspace's manifest with no members but the copied crates.
fn workspace(manifest: &str) -> Result<String> {
    let cut = |text: &str, key: &str| -> Option<String> {
        let start = text.find(&format!("\n{key} = ["))?;
        let end = start + text[start..].find(']')? + 1;
        Some(format!("{}{}", &text[..start], &text[end..]))
    };
    let Some(text) = cut(manifest, "members") else {
        bail!("Cargo.toml has no list of members that could be exchanged for the shadow's")
    };
    let text = cut(&text, "default-members").unwrap_or(text);
    let text = cut(&text, "exclude").unwrap_or(text);
    let members: Vec<String> = CRATES.iter().chain(&["fault"]).map(|name| format!("{name:?}")).collect();
    Ok(text.replacen("[workspace]", &format!("[workspace]\nmembers = [{}]", members.join(", ")), 1))
}

/// A crate's manifest: breakable ones know of faults, and programs have names of their own.
fn manifest(folder: &str, manifest: &str, suffix: &str) -> String {
    let mut text = manifest.to_owned();
    for program in PROGRAMS {
        let named = |name: &str| format!("[[bin]]\nname = \"{name}\"");
        text = text.replace(&named(program), &named(&format!("{program}-{suffix}")));
    }
    if BREAKABLE.contains(&folder) {
        text.push_str("\n[dependencies.fault]\npath = \"../../fault\"\n");
    }
    text
}

const FAULT_MANIFEST: &str = r#"[package]
name = "fault"
version = "0.0.0"
edition = "2024"
publish = false
"#;

/// The crate that knows which fault is on: the one that the environment names, for the life of the process.
fn fault_crate(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("    {name:?},\n")).collect();
    format!(
        r#"//! Which fault is on. Written by control-plane/faulty; nothing that is shipped knows this crate.

use std::sync::OnceLock;

static NAMES: &[&str] = &[
{}];

static CHOSEN: OnceLock<usize> = OnceLock::new();

/// Whether the fault of this number is on.
#[inline]
pub fn on(number: usize) -> bool {{
    *CHOSEN.get_or_init(chosen) == number
}}

fn chosen() -> usize {{
    let Ok(name) = std::env::var("RIGOR_FAULT") else {{ return 0 }};
    if name.is_empty() {{
        return 0;
    }}
    match NAMES.iter().position(|it| *it == name) {{
        Some(place) => place + 1,
        None => {{
            eprintln!("RIGOR_FAULT names {{name}}, which is no fault of this program");
            std::process::exit(2)
        }}
    }}
}}
"#,
        names.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn the_shadow_of_this_repository_differs_from_it_where_faults_are_and_in_names_only() {
        let place = tempfile::tempdir().unwrap();
        let file = "control-plane/core/src/lib.rs";
        let (start, end) = (0, 3);
        let edit = Placed {
            number: 1,
            id: "x".into(),
            start,
            end,
            template: "// FAULT SOUND".into(),
            marked: false,
        };
        let woven = Woven { edits: [(file.to_owned(), vec![edit])].into(), names: vec!["x".into()] };
        write(&root(), place.path(), &woven, "faulty").unwrap();
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert!(read(file).starts_with("// ::fault::on(1) //!"));
        assert!(read("fault/src/lib.rs").contains("    \"x\",\n"));
        assert!(read("control-plane/server/Cargo.toml").contains("name = \"control-plane-faulty\"\npath"));
        for folder in ["firmware/kubelet", SECOND_SCHEDULER] {
            assert!(read(&format!("{folder}/Cargo.toml")).contains("[dependencies.fault]"), "{folder}");
        }
        let manifests: String = CRATES.iter().map(|folder| read(&format!("{folder}/Cargo.toml"))).collect();
        for program in PROGRAMS {
            let named = format!("[[bin]]\nname = \"{program}-faulty\"");
            assert!(manifests.contains(&named), "no crate builds {program}-faulty");
        }
        assert!(!read("harness/sim/Cargo.toml").contains("fault"));
        assert!(
            read("Cargo.toml").contains("\"fault\"]")
                && !read("Cargo.toml").contains("control-plane/bench\",")
        );
        let same = "control-plane/core/src/scheduler/mod.rs";
        assert_eq!(read(same), fs::read_to_string(root().join(same)).unwrap());

        let stray = place.path().join("control-plane/core/src/stray.rs");
        fs::write(&stray, "").unwrap();
        let stamp = |name: &str| fs::metadata(place.path().join(name)).unwrap().modified().unwrap();
        let before = (stamp(same), stamp(file));
        write(&root(), place.path(), &Woven { edits: BTreeMap::new(), ..woven }, "faulty").unwrap();
        assert!(!stray.exists());
        assert_eq!(stamp(same), before.0, "what stays is not written again");
        assert_ne!(stamp(file), before.1);
    }

    #[test]
    fn a_fault_that_does_not_fit_is_told_with_its_file_and_a_remedy() {
        let fault = |file: &str, sound: &str| Fault {
            id: "f".into(),
            kind: crate::fault::Kind::HandMade,
            goes_wrong: String::new(),
            like: String::new(),
            breaks: Vec::new(),
            equivalent: None,
            overlapping: false,
            edits: vec![crate::fault::Edit {
                file: file.into(),
                within: None,
                sound: sound.into(),
                broken: "0".into(),
            }],
            digest: String::new(),
        };
        let core = "control-plane/core/src/lib.rs";
        for (file, sound, said) in [
            (core, "no such code", "f (control-plane/core/src/lib.rs): the sound code is not there any more"),
            ("control-plane/core/src/none.rs", "x", "the file cannot be read"),
            ("harness/sim/src/lib.rs", "x", "only sources of control-plane/api"),
            ("control-plane/core/tests/decisions/world.rs", "x", "only sources of control-plane/api"),
        ] {
            let error = Woven::of(&root(), &[fault(file, sound)]).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("correct them below"), "{error}");
        }
    }
}
