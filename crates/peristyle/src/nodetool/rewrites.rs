//! `nodetool upgradesstables` and `recompress_sstables`: files written anew in the form that tables ask for.

use std::io::Write;

use clap::Args;
use management::Rewritten;
use serde_json::{Value, json};

use super::compactions::concurrent_compactors;
use super::http::Management;
use super::{NodetoolError, target};

/// `nodetool upgradesstables`.
#[derive(Args, Debug)]
pub(super) struct UpgradeArguments {
    /// Use -a to include all sstables, even those already on the current version
    #[arg(short = 'a', long)]
    include_all_sstables: bool,
    /// Use -t to compact only SSTables that have local creation time _older_ than the given timestamp
    #[arg(short = 't', long, value_name = "max_timestamp")]
    max_timestamp: Option<u64>,
    #[command(flatten)]
    common: RecompressArguments,
}

/// `nodetool recompress_sstables`.
#[derive(Args, Debug)]
pub(super) struct RecompressArguments {
    /// Number of sstables to upgrade simultanously, set to 0 to use all available compaction threads;
    /// a shard of the node writes one at a time
    #[arg(short, long, default_value_t = 2)]
    jobs: u64,
    /// The keyspace followed by one or many tables
    names: Vec<String>,
}

pub(super) fn upgrade(
    management: &Management,
    arguments: &UpgradeArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let mut body = body(&arguments.common);
    body["include_all"] = json!(arguments.include_all_sstables);
    body["max_timestamp"] = json!(arguments.max_timestamp);
    run(management, &body, arguments.common.jobs, "upgrading sstables", out)
}

pub(super) fn recompress(
    management: &Management,
    arguments: &RecompressArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let mut body = body(arguments);
    body["other_compression"] = json!(true);
    run(management, &body, arguments.jobs, "recompressing sstables", out)
}

fn body(arguments: &RecompressArguments) -> Value {
    let mut body = target(&arguments.names);
    body["jobs"] = json!(arguments.jobs);
    body
}

/// Asks for it, and says what Cassandra says.
fn run(
    management: &Management,
    body: &Value,
    jobs: u64,
    act: &str,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let compactors = concurrent_compactors(management)?;
    if let Some(warning) = too_many_jobs(jobs, compactors) {
        writeln!(out, "{warning}")?;
    }
    let Rewritten { aborted_keyspaces, .. } = management.ask("/v1/upgradesstables", body)?;
    for keyspace in aborted_keyspaces {
        writeln!(out, "{}", aborted(act, &keyspace))?;
    }
    Ok(())
}

fn too_many_jobs(jobs: u64, compactors: u64) -> Option<String> {
    (jobs > compactors).then(|| {
        format!(
            "jobs ({jobs}) is bigger than configured concurrent_compactors ({compactors}) on the host, using at \
             most {compactors} threads"
        )
    })
}

fn aborted(act: &str, keyspace: &str) -> String {
    format!(
        "Aborted {act} for at least one table in keyspace {keyspace}, check server logs for more information."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_in_cassandras_words() {
        assert_eq!(too_many_jobs(2, 2), None);
        let warning = "jobs (3) is bigger than configured concurrent_compactors (2) on the host, using at most 2 \
                       threads";
        assert_eq!(too_many_jobs(3, 2).as_deref(), Some(warning));
        let words = "Aborted upgrading sstables for at least one table in keyspace ks, check server logs for more \
                     information.";
        assert_eq!(aborted("upgrading sstables", "ks"), words);
    }

    #[test]
    fn names_and_jobs_are_what_is_asked_for() {
        let arguments = RecompressArguments { jobs: 0, names: vec!["ks".into(), "t".into()] };
        assert_eq!(body(&arguments), json!({"keyspace": "ks", "tables": ["t"], "jobs": 0}));
    }
}
