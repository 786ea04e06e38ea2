//! The scenario files: where they are, what their trials are called, reading them.
//!
//! A file directly in `suites/<area>/` whose apiVersion is ours is a scenario; its trials are called
//! `area/file` or `area/file/case`, so that listing reads heads only and one name leads to one file.

use rigor_model::catalogue::Catalogue;
use rigor_model::mistake::{Mistake, nearest};
use rigor_model::scenario::{Head, Scenario};
use rigor_model::{Fragment, Mistakes};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

/// Why a file or suite cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A file or folder cannot be read.
    #[error("{path}: {problem}; {remedy}")]
    Unreadable {
        /// Which one.
        path: String,
        /// Why.
        problem: String,
        /// What to do.
        remedy: Cow<'static, str>,
    },
    /// A file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

/// One scenario file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScenarioFile {
    area: String,
    stem: String,
    path: PathBuf,
    /// The one row of its table that is meant; all of them if there is none.
    only: Option<String>,
}

impl ScenarioFile {
    /// The file at `path`; its folder is its area.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        let text = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A trial draws by its name: a file has the same one from wherever it is named.
        let whole = || folder.canonicalize().ok().and_then(|whole| text(whole.file_name()));
        let area = text(folder.file_name()).or_else(whole).unwrap_or_else(|| ".".to_owned());
        Self { area, stem: text(path.file_stem()).unwrap_or_default(), path: path.to_owned(), only: None }
    }

    /// `area/file`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.area, self.stem)
    }

    /// The name of a trial of this file.
    #[must_use]
    pub fn trial(&self, case: Option<&str>) -> String {
        match case {
            Some(case) => format!("{}/{case}", self.name()),
            None => self.name(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads its head only.
    ///
    /// # Errors
    /// The file cannot be read, or its head has mistakes.
    pub fn head(&self) -> Result<Head, SuiteError> {
        Ok(Head::read(&self.shown(), &read(&self.path)?)?)
    }

    /// Reads it whole: a scenario a row of its table.
    ///
    /// # Errors
    /// The file cannot be read, has mistakes, or is called otherwise than its scenario.
    pub fn load(&self, catalogue: &Catalogue) -> Result<Vec<Scenario>, SuiteError> {
        let source = read(&self.path)?;
        let mut scenarios = Scenario::parse(&self.shown(), &source, catalogue, &beside(&self.path))?;
        if let Some(case) = &self.only {
            scenarios.retain(|scenario| scenario.case.as_ref() == Some(case));
            if scenarios.is_empty() {
                return Err(SuiteError::Unreadable {
                    path: self.shown(),
                    problem: format!("its table has no row {case}"),
                    remedy: "rigor list shows the names of all trials".into(),
                });
            }
        }
        match scenarios.iter().find(|scenario| scenario.name != self.stem) {
            Some(other) => Err(SuiteError::Unreadable {
                path: self.shown(),
                problem: format!("the scenario in it is called {}", other.name),
                remedy: "a scenario and its file have the same name: rename one of them".into(),
            }),
            None => Ok(scenarios),
        }
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

/// The text of a file that a person wrote.
///
/// # Errors
/// It cannot be read, or is not UTF-8.
pub fn read(path: &Path) -> Result<String, SuiteError> {
    let shown = path.display().to_string();
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        // What stands in front of that place is as it was.
        let source = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let mistake =
            Mistake::new(at..at, format!("the file is not UTF-8: the byte 0x{byte:02X} stands here"))
                .remedy("save it as UTF-8; its text is of another encoding, or it is no text at all");
        SuiteError::Mistakes(Mistakes::new(&shown, &source, vec![mistake]))
    })
}

/// What can be named.
const NAMES: &str = "name an area below suites/, a folder, a scenario file or a trial as rigor list shows it";

fn unreadable(path: &Path, error: &std::io::Error) -> SuiteError {
    SuiteError::Unreadable {
        path: path.display().to_string(),
        problem: error.to_string(),
        remedy: NAMES.into(),
    }
}

/// A name without a letter, as a variable of a shell that is not set.
fn nameless() -> SuiteError {
    SuiteError::Unreadable {
        path: "''".to_owned(),
        problem: "the name is empty".to_owned(),
        remedy: "a variable of the shell may not be set; leave the name out altogether to mean everything"
            .into(),
    }
}

/// The signs that a shell makes several names of.
const PATTERN: [char; 4] = ['*', '?', '[', '{'];

/// A pattern that came through a shell as it was written.
fn pattern(name: &str) -> SuiteError {
    SuiteError::Unreadable {
        path: name.to_owned(),
        problem: "no file is called that, and patterns are the shell's to expand".to_owned(),
        remedy: "leave the quotes out; a shell passes on a pattern that matches nothing, so check it with ls"
            .into(),
    }
}

/// Reads files that the file at `path` names, by paths relative to it. Only those below the folder of all suites are read:
/// where there is a catalogue, else the folder around that of the file.
pub fn beside(path: &Path) -> impl Fn(&str) -> Result<String, String> + use<> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let suites = folder.ancestors().find(|above| above.join("requirements.yaml").is_file());
    let root = suites.or(folder.parent()).unwrap_or(&folder).to_owned();
    move |name: &str| {
        // Links are followed first, so that none leads out.
        let wanted = folder.join(name).canonicalize().map_err(|error| error.to_string())?;
        if !wanted.starts_with(&root) {
            return Err("it stands outside of the folder of all suites".to_owned());
        }
        fs::read_to_string(wanted).map_err(|error| error.to_string())
    }
}

/// The folder of all suites.
#[derive(Debug, Clone)]
pub struct Suites {
    root: PathBuf,
}

impl Suites {
    /// The suites in `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The catalogue that scenarios cite.
    ///
    /// # Errors
    /// `requirements.yaml` is missing or has mistakes.
    pub fn catalogue(&self) -> Result<Catalogue, SuiteError> {
        let path = self.root.join("requirements.yaml");
        let source = fs::read_to_string(&path).map_err(|error| SuiteError::Unreadable {
            path: path.display().to_string(),
            problem: error.to_string(),
            remedy: "run from the repository's root, or name the suites' folder with --suites".into(),
        })?;
        Ok(Catalogue::parse(&path.display().to_string(), &source)?)
    }

    /// All scenario files, sorted by name.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn files(&self) -> Result<Vec<ScenarioFile>, SuiteError> {
        let mut files = Vec::new();
        for area in entries(&self.root)? {
            if area.is_dir() {
                files.extend(scenario_files(&area)?);
            }
        }
        files.sort();
        Ok(files)
    }

    /// All fragments, at any depth, sorted by path.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn fragments(&self) -> Result<Vec<FragmentFile>, SuiteError> {
        FragmentFile::below(&self.root)
    }

    /// The files that a person means by `names`: areas, folders, files or trials; all of them without a name.
    ///
    /// # Errors
    /// A name leads nowhere.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<ScenarioFile>, SuiteError> {
        if names.is_empty() {
            return self.files();
        }
        let mut files = Vec::new();
        for name in names {
            if name.trim().is_empty() {
                return Err(nameless());
            }
            let (area, path) = (self.root.join(name), Path::new(name));
            if path.is_dir() && self.is_root(path) {
                files.extend(self.files()?);
            } else if area.is_dir() {
                files.extend(scenario_files(&area)?);
            } else if path.is_dir() {
                files.extend(scenario_files(path)?);
            } else if let Some((file, case)) = self.find(name) {
                files.push(ScenarioFile { only: case, ..file });
            } else {
                fs::metadata(path).map_err(|error| {
                    if name.contains(PATTERN) { pattern(name) } else { self.nowhere(name, &error) }
                })?;
                if is_something_else(path) {
                    return Err(SuiteError::Unreadable {
                        path: name.clone(),
                        problem: "this is no scenario: those are called NAME.yaml".to_owned(),
                        remedy: NAMES.into(),
                    });
                }
                files.push(ScenarioFile::at(path));
            }
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The file that a trial's name leads to, and its case; nothing where there is no such file.
    #[must_use]
    pub fn find(&self, trial: &str) -> Option<(ScenarioFile, Option<String>)> {
        let mut parts = trial.splitn(3, '/');
        let (area, stem) = (parts.next()?, parts.next()?);
        let path = self.root.join(area).join(format!("{stem}.yaml"));
        path.is_file().then(|| (ScenarioFile::at(&path), parts.next().map(str::to_owned)))
    }

    /// The scenario files called `stem`, in any area.
    #[must_use]
    pub fn called(&self, stem: &str) -> Vec<ScenarioFile> {
        let areas = entries(&self.root).unwrap_or_default();
        let paths = areas.into_iter().map(|area| area.join(format!("{stem}.yaml")));
        let mut files: Vec<ScenarioFile> = paths
            .filter(|path| path.is_file() && !is_no_scenario(path))
            .map(|path| ScenarioFile::at(&path))
            .collect();
        files.sort();
        files
    }

    /// A name that leads nowhere: with the trials that are called nearly so.
    fn nowhere(&self, name: &str, error: &std::io::Error) -> SuiteError {
        let all: Vec<String> = self.files().unwrap_or_default().iter().map(ScenarioFile::name).collect();
        let wanted = name.trim_end_matches(".yaml");
        let stem = wanted.rsplit('/').next().unwrap_or_default();
        // The same name in another area or without one, or with a slip; else one that is like the whole.
        let near_stem = nearest(stem, all.iter().filter_map(|one| one.rsplit('/').next()));
        let near: Vec<&str> = match near_stem {
            Some(_) => {
                all.iter().map(String::as_str).filter(|one| one.rsplit('/').next() == near_stem).collect()
            }
            None => nearest(wanted, all.iter().map(String::as_str)).into_iter().collect(),
        };
        let remedy = match near.as_slice() {
            [] => NAMES.into(),
            near => format!("did you mean {}? {NAMES}", near.join(" or ")).into(),
        };
        SuiteError::Unreadable { path: name.to_owned(), problem: error.to_string(), remedy }
    }

    fn is_root(&self, path: &Path) -> bool {
        match (path.canonicalize(), self.root.canonicalize()) {
            (Ok(path), Ok(root)) => path == root,
            (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
        }
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, SuiteError> {
    let cannot = |error: std::io::Error| SuiteError::Unreadable {
        path: folder.display().to_string(),
        problem: error.to_string(),
        remedy: "run from the repository's root, or name the suites' folder with --suites".into(),
    };
    fs::read_dir(folder)
        .map_err(cannot)?
        .map(|entry| entry.map(|entry| entry.path()).map_err(cannot))
        .collect::<Result<Vec<_>, _>>()
}

fn scenario_files(area: &Path) -> Result<Vec<ScenarioFile>, SuiteError> {
    Ok(entries(area)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml") && !is_no_scenario(path))
        .map(|path| ScenarioFile::at(&path))
        .collect())
}

/// Whether a file that was named is none of ours, by how it is called.
fn is_something_else(path: &Path) -> bool {
    let ours = |extension: &std::ffi::OsStr| ["yaml", "yml", "json"].iter().any(|one| extension == *one);
    path.extension().is_some_and(|extension| !ours(extension))
}

/// Whether a file beside the scenarios is something else: one of Kubernetes' objects, since it names an apiVersion and
/// not ours, or a fragment. A file without an apiVersion is a scenario with a mistake.
fn is_no_scenario(path: &Path) -> bool {
    let Ok(source) = fs::read_to_string(path) else { return false };
    let version = first(&source, "apiVersion:");
    version.is_some_and(|version| !version.starts_with("rigor.dev/")) || is_fragment(&source)
}

fn is_fragment(source: &str) -> bool {
    first(source, "kind:") == Some("Fragment")
}

/// The value of a key at the beginning of a line.
fn first<'a>(source: &'a str, key: &str) -> Option<&'a str> {
    let value = source.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']))
}

/// A fragment's file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FragmentFile {
    path: PathBuf,
}

impl FragmentFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file at `path`, if it says that it is a fragment.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        is_fragment(&fs::read_to_string(path).ok()?).then(|| Self { path: path.to_owned() })
    }

    /// All of a folder, at any depth, sorted by path.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn below(folder: &Path) -> Result<Vec<Self>, SuiteError> {
        let mut files = Vec::new();
        fragment_files(folder, &mut files)?;
        files.sort();
        Ok(files)
    }

    /// Looks for its mistakes.
    ///
    /// # Errors
    /// The file cannot be read, or has mistakes.
    pub fn check(&self) -> Result<(), SuiteError> {
        Ok(Fragment::check(&self.path.display().to_string(), &read(&self.path)?, &beside(&self.path))?)
    }
}

/// The fragments in a folder and in the folders in it.
fn fragment_files(folder: &Path, files: &mut Vec<FragmentFile>) -> Result<(), SuiteError> {
    for path in entries(folder)? {
        if path.is_dir() {
            fragment_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.extend(FragmentFile::at(&path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(dir)
        }

        fn path(&self, name: &str) -> String {
            self.0.path().join(name).display().to_string()
        }
    }

    const OURS: &str = "apiVersion: rigor.dev/v1alpha1\n";

    fn suites() -> Folder {
        Folder::new(&[
            ("suites/requirements.yaml", "version: 2\n"),
            ("suites/schema/scenario.json", "{}"),
            ("suites/node/loss.yaml", OURS),
            ("suites/node/hang.yaml", OURS),
            ("suites/node/shared.yaml", "apiVersion: rigor.dev/v1alpha1\nkind: Fragment # shared\n"),
            ("suites/node/deep/own.yaml", "apiVersion: rigor.dev/v1alpha1\nkind: \"Fragment\"\n"),
            ("suites/node/pods.yaml", "apiVersion: v1\nkind: Pod\n"),
            ("suites/node/broken.yaml", "kind: Scenari"),
            ("suites/node/manifests/web.yaml", "apiVersion: apps/v1\n"),
            ("suites/sched/bind.yaml", OURS),
            ("own/mine.yaml", OURS),
        ])
    }

    #[test]
    fn names_come_from_paths_and_lead_back_to_them() {
        let folder = suites();
        let suites = Suites::new(folder.path("suites"));
        let names: Vec<_> = suites.files().unwrap().iter().map(ScenarioFile::name).collect();
        assert_eq!(names, ["node/broken", "node/hang", "node/loss", "sched/bind"]);
        let fragments = suites.fragments().unwrap();
        let fragments: Vec<String> = fragments.iter().map(|file| file.path.display().to_string()).collect();
        assert_eq!(
            fragments,
            ["suites/node/deep/own.yaml", "suites/node/shared.yaml"].map(|path| folder.path(path))
        );
        let (file, case) = suites.find("node/loss/short").unwrap();
        assert_eq!(
            (file.trial(case.as_deref()), case.as_deref()),
            ("node/loss/short".to_owned(), Some("short"))
        );
        assert_eq!(suites.find("node/loss").unwrap().1, None);
        assert!(suites.find("node/none").is_none() && suites.find("node").is_none());
    }

    #[test]
    fn a_file_has_the_same_name_from_wherever_it_is_named() {
        let here = std::env::current_dir().unwrap();
        let area = here.file_name().unwrap().to_string_lossy().into_owned();
        for path in [PathBuf::from("mine.yaml"), PathBuf::from("./mine.yaml"), here.join("mine.yaml")] {
            assert_eq!(ScenarioFile::at(&path).name(), format!("{area}/mine"), "{}", path.display());
        }
    }

    #[test]
    fn a_person_names_areas_folders_and_files() {
        let folder = suites();
        let suites = Suites::new(folder.path("suites"));
        let check = |names: &[&str], expected: &[&str]| {
            let names: Vec<String> = names
                .iter()
                .map(|name| name.strip_prefix('@').map_or((*name).to_owned(), |name| folder.path(name)))
                .collect();
            let files = suites.chosen(&names).unwrap();
            assert_eq!(files.iter().map(ScenarioFile::name).collect::<Vec<_>>(), expected, "{names:?}");
        };
        check(&["sched"], &["sched/bind"]);
        check(&["@suites"], &["node/broken", "node/hang", "node/loss", "sched/bind"]);
        check(&["@suites/node"], &["node/broken", "node/hang", "node/loss"]);
        check(&["@own/mine.yaml", "sched", "@own"], &["own/mine", "sched/bind"]);
        check(&["node/loss", "sched/bind"], &["node/loss", "sched/bind"]);
        let error = suites.chosen(&["nowhere".to_owned()]).unwrap_err().to_string();
        assert_eq!(
            error,
            "nowhere: No such file or directory (os error 2); name an area below suites/, a folder, a scenario file or a trial as rigor list shows it"
        );
    }

    #[test]
    fn a_name_that_leads_nowhere_is_told_with_those_that_are_near() {
        let folder = suites();
        let suites = Suites::new(folder.path("suites"));
        let error = |name: &str| suites.chosen(&[name.to_owned()]).unwrap_err().to_string();
        for (name, near) in [
            ("loss", "node/loss"),
            ("node/bind", "sched/bind"),
            ("node/losss", "node/loss"),
            ("suites/node/lss.yaml", "node/loss"),
            ("nod/loss", "node/loss"),
        ] {
            let said = error(name);
            let begin =
                format!("{name}: No such file or directory (os error 2); did you mean {near}? name an area");
            assert!(said.starts_with(&begin), "{said}");
        }
        let readme = folder.path("own/README.md");
        fs::write(&readme, "# *Mine*\n").unwrap();
        let said = error(&readme);
        assert!(said.contains("README.md: this is no scenario: those are called NAME.yaml"), "{said}");
    }

    #[test]
    fn an_empty_name_is_told() {
        let folder = suites();
        let suites = Suites::new(folder.path("suites"));
        for name in ["", " "] {
            let error = suites.chosen(&["sched".to_owned(), name.to_owned()]).unwrap_err().to_string();
            assert!(error.starts_with("'': the name is empty; a variable of the shell"), "{error}");
        }
    }

    #[test]
    fn a_pattern_that_no_shell_expanded_is_told() {
        let folder = suites();
        let suites = Suites::new(folder.path("suites"));
        for name in ["suites/node/*.yaml", "node/los?", "node/{loss,hang}.yaml"] {
            let error = suites.chosen(&[name.to_owned()]).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains("the shell's to expand"), "{error}");
        }
    }

    #[test]
    fn a_file_names_only_what_stands_in_the_suites() {
        let folder = suites();
        fs::write(folder.path("secret.yaml"), "secret").unwrap();
        std::os::unix::fs::symlink(folder.path("secret.yaml"), folder.path("suites/node/link.yaml")).unwrap();
        let read = beside(Path::new(&folder.path("suites/node/loss.yaml")));
        assert_eq!(read("manifests/web.yaml").unwrap(), "apiVersion: apps/v1\n");
        assert_eq!(read("../sched/bind.yaml").unwrap(), OURS);
        let outside = "it stands outside of the folder of all suites";
        for name in ["../../secret.yaml", "link.yaml", "manifests/../../../secret.yaml", "/etc/passwd"] {
            assert_eq!(read(name).unwrap_err(), outside, "{name}");
        }
        assert!(read("none.yaml").unwrap_err().contains("No such file"));
        // Without a catalogue around it, a file's folder is taken for its area.
        let read = beside(Path::new(&folder.path("own/mine.yaml")));
        assert_eq!(read("../secret.yaml").unwrap(), "secret");
        assert_eq!(read("../..").unwrap_err(), outside);
    }

    #[test]
    fn a_file_of_another_encoding_is_told_with_its_place() {
        let folder = suites();
        fs::write(folder.path("suites/node/loss.yaml"), b"a: b\nc: d\xe4\n").unwrap();
        let error = read(Path::new(&folder.path("suites/node/loss.yaml"))).unwrap_err();
        let SuiteError::Mistakes(mistakes) = error else { panic!("{error}") };
        assert!(
            format!("{mistakes:#}").contains("loss.yaml:2:5: the file is not UTF-8: the byte 0xE4"),
            "{mistakes:#}"
        );
    }

    #[test]
    fn suites_that_are_not_there_are_not_an_empty_list() {
        let suites = Suites::new("/nowhere");
        assert!(suites.files().is_err() && suites.catalogue().is_err());
    }
}
