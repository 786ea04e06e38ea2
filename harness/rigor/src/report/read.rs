//! Reading the reports of earlier runs.

use rigor_model::report::Report;
use rigor_model::scenario::API_VERSION;
use std::path::{Path, PathBuf};

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}; {remedy}")]
pub struct ReadError {
    /// Which file.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: &'static str,
}

/// The report in a folder that a run left, or in a file.
///
/// # Errors
/// There is none, or it is no report.
pub fn read(path: &Path) -> Result<Report, ReadError> {
    let file = report_file(path);
    let wrong = |problem: String, remedy| ReadError { path: file.display().to_string(), problem, remedy };
    let source = std::fs::read_to_string(&file).map_err(|error| {
        let remedy =
            "name the folder that rigor run --report-dir left; a run that was killed leaves no report";
        wrong(error.to_string(), remedy)
    })?;
    let report: Report = serde_saphyr::from_str(&source).map_err(|error| {
        let problem = format!("this is no conformance report: {error}");
        wrong(
            problem.lines().next().unwrap_or_default().to_owned(),
            "run the scenarios again with this rigor",
        )
    })?;
    if (report.api_version.as_str(), report.kind.as_str()) != (API_VERSION, "ConformanceReport") {
        let problem = format!("it is a {} of {}", report.kind, report.api_version);
        return Err(wrong(problem, "name a ConformanceReport, as rigor run writes it"));
    }
    Ok(report)
}

/// The file of a report that is named by its folder or by itself.
#[must_use]
pub fn report_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("report.yaml") } else { path.to_owned() }
}

/// The folder below `working` that holds the newest report: of those whose name begins with `report`, and what
/// `ci/conformance` leaves.
#[must_use]
pub fn newest(working: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(working).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("report"));
    let folders = named.map(|entry| entry.path()).chain([working.join("target/conformance")]);
    let dated = folders.filter_map(|folder| {
        let changed = std::fs::metadata(folder.join("report.yaml")).and_then(|told| told.modified()).ok()?;
        Some((changed, folder))
    });
    dated.max().map(|(_, folder)| folder)
}
