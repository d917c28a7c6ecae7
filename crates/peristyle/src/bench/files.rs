//! Files of a run, in a folder of their own.
//!
//! ```text
//!   report.html     for people
//!   manifest.json   what was run: `bench repeat` takes it
//!   results.json    all that was found, with raw histograms for each second
//!   summary.json    the figures of the report, for programs
//!   seconds.csv     a line for each second and kind of operation
//!   latencies.hlog  the histograms as HdrHistogram's tools read them
//! ```

use std::path::{Path, PathBuf};

use lab::{LabError, Manifest, Plan, Repetition, Results, Study, StudyManifest};

/// What people look at.
pub(super) const REPORT: &str = "report.html";
pub(super) const MANIFEST: &str = "manifest.json";
const RESULTS: &str = "results.json";
const SUMMARY: &str = "summary.json";

/// The folder of a run: the one that was named, or the first of a row that is not there. One that is there already is
/// left alone; it is made when there is something to write.
pub(super) fn free_folder(named: Option<&Path>, workload: &str) -> Result<PathBuf, LabError> {
    let stem = Path::new(workload).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = || (1..).map(|number| PathBuf::from(format!("bench-{stem}-{number}")));
    let free = || numbered().find(|folder| !folder.exists()).unwrap_or_default();
    match named {
        Some(folder) if folder.exists() => {
            Err(LabError::Plan(format!("{} is there already, and is left alone", folder.display())))
        }
        Some(folder) => Ok(folder.to_owned()),
        None => Ok(free()),
    }
}

/// Writes all of a run; `load` is what it took to write the rows, if that was done and is known.
pub(super) fn write(results: &Results, load: Option<&Repetition>, folder: &Path) -> Result<(), LabError> {
    let files = [
        (MANIFEST, json(MANIFEST, serde_json::to_string_pretty(&results.manifest))?),
        (RESULTS, json(RESULTS, serde_json::to_string(results))?),
        (SUMMARY, json(SUMMARY, lab::report::digest(results, load))?),
    ];
    write_all(&files, folder)?;
    write_reports(results, folder)
}

/// Writes what is made of results alone.
pub(super) fn write_reports(results: &Results, folder: &Path) -> Result<(), LabError> {
    let files = [
        (REPORT, lab::report::html(results)),
        ("seconds.csv", lab::report::csv(results)),
        ("latencies.hlog", lab::report::hdr_log(results)),
    ];
    write_all(&files, folder)
}

/// Writes what stands above the runs of a study.
pub(super) fn write_study(study: &Study, manifest: &StudyManifest, folder: &Path) -> Result<(), LabError> {
    let link = |part: &str, server: &str| format!("{part}/{server}/{REPORT}");
    let files = [
        (REPORT, lab::report::study_html(study, &link)),
        (MANIFEST, json(MANIFEST, serde_json::to_string_pretty(manifest))?),
        ("figures.csv", lab::report::study_csv(study)),
    ];
    write_all(&files, folder)
}

fn json(path: &str, text: serde_json::Result<String>) -> Result<String, LabError> {
    text.map_err(|source| LabError::Format { path: path.to_owned(), source })
}

fn write_all(files: &[(&str, String)], folder: &Path) -> Result<(), LabError> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|source| LabError::File {
        act: "make the folder",
        path: folder.display().to_string(),
        source,
    })?;
    for (name, text) in files {
        let path = folder.join(name);
        let written = std::fs::write(&path, text);
        written.map_err(|source| LabError::File {
            act: "write",
            path: path.display().to_string(),
            source,
        })?;
    }
    Ok(())
}

/// A manifest: of a run or of a study.
#[derive(serde::Deserialize)]
#[serde(untagged)]
pub(super) enum AnyManifest {
    Study(Box<StudyManifest>),
    Run(Box<Manifest>),
}

/// Reads either.
pub(super) fn read_manifest(path: &Path) -> Result<AnyManifest, LabError> {
    let manifest = read(path)?;
    match &manifest {
        AnyManifest::Study(study) => study.check_version()?,
        AnyManifest::Run(run) => run.check_version()?,
    }
    Ok(manifest)
}

/// The plan of a manifest, and the results that lie beside it.
pub(super) fn read_results(manifest: &Path) -> Result<(Plan, Results), LabError> {
    let manifest_read: Manifest = read(manifest)?;
    manifest_read.check_version()?;
    let results = read(&manifest.with_file_name(RESULTS))?;
    Ok((manifest_read.plan, results))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, LabError> {
    let named = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| LabError::File {
        act: "read",
        path: named.clone(),
        source,
    })?;
    serde_json::from_str(&text).map_err(|source| LabError::Format { path: named, source })
}
