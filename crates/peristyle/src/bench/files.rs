//! Files of a run, in a folder of their own.
//!
//! ```text
//!   report.html     for people
//!   manifest.json   what was run: `bench repeat` takes it
//!   results.json    all that was found, with raw histograms for each second
//!   seconds.csv     a line for each second and kind of operation
//!   latencies.hlog  the histograms as HdrHistogram's tools read them
//! ```

use std::path::{Path, PathBuf};

use lab::{LabError, Manifest, Plan, Results};

/// What people look at.
pub(super) const REPORT: &str = "report.html";
const MANIFEST: &str = "manifest.json";
const RESULTS: &str = "results.json";

/// Makes the folder; one that is there already is left alone.
pub(super) fn folder(named: Option<&Path>, workload: &str) -> Result<PathBuf, LabError> {
    let numbered = || (1..).map(|number| PathBuf::from(format!("bench-{workload}-{number}")));
    let free = || numbered().find(|folder| !folder.exists()).unwrap_or_default();
    let folder = named.map_or_else(free, Path::to_owned);
    match std::fs::create_dir(&folder) {
        Ok(()) => Ok(folder),
        Err(source) => Err(LabError::File { path: format!("make the folder {}", folder.display()), source }),
    }
}

/// Writes all of them.
pub(super) fn write(results: &Results, folder: &Path) -> Result<(), LabError> {
    let json = |name: &str, text: serde_json::Result<String>| {
        let path = folder.join(name).display().to_string();
        text.map_err(|source| LabError::Format { path, source })
    };
    let files = [
        (REPORT, lab::report::html(results)),
        (MANIFEST, json(MANIFEST, serde_json::to_string_pretty(&results.manifest))?),
        (RESULTS, json(RESULTS, serde_json::to_string(results))?),
        ("seconds.csv", lab::report::csv(results)),
        ("latencies.hlog", lab::report::hdr_log(results)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        let written = std::fs::write(&path, text);
        written.map_err(|source| LabError::File { path: format!("write {}", path.display()), source })?;
    }
    Ok(())
}

/// The plan of a manifest, and the results that lie beside it.
pub(super) fn read_results(manifest: &Path) -> Result<(Plan, Results), LabError> {
    let manifest_read: Manifest = read(manifest)?;
    let results = read(&manifest.with_file_name(RESULTS))?;
    Ok((manifest_read.plan, results))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, LabError> {
    let named = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|source| LabError::File { path: format!("read {named}"), source })?;
    serde_json::from_str(&text).map_err(|source| LabError::Format { path: named, source })
}
