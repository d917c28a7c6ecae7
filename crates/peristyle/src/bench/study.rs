//! Profiles and comparisons carried out: servers started, parts run, reports written as they come.
//!
//! ```text
//!   bench-netflix-1m-1/
//!     report.html    all parts and servers on one page
//!     manifest.json  `bench repeat` takes it
//!     figures.csv    a line for each part, server and repetition
//!     write-one/cassandra/report.html   each by itself, with its own manifest
//!     write-one/peristyle/...
//! ```

use std::path::{Path, PathBuf};

use lab::{
    Comparison, Contender, LabError, Part, Plan, Preparation, Servers, Study, StudyManifest, Subject, Tell,
};

use super::files;
use super::peer::PeerArguments;
use super::{stop_at_interrupt, watched};
use crate::cqlsh::with_causes;

/// What is carried out, on which servers.
pub(super) struct Asked<'a> {
    pub(super) subject: Subject,
    pub(super) servers: Servers,
    pub(super) parts: Vec<Part>,
    /// Servers that run already.
    pub(super) contenders: Vec<Contender>,
    pub(super) peers: &'a PeerArguments,
    /// Of servers that are started.
    pub(super) preparation: Preparation,
}

/// Carries it out in a folder, and tells what came of it.
///
/// # Errors
/// Servers can not be started, or a part can not be run; reports of the parts before it stand.
pub(super) fn carry_out(asked: Asked<'_>, folder: &Path) -> Result<Study, LabError> {
    let Asked { subject, servers, parts, mut contenders, peers, preparation } = asked;
    stop_at_interrupt();
    tell_subject(&subject);
    let manifest_contenders: Vec<(String, Vec<String>)> =
        contenders.iter().map(|one| (one.name.clone(), one.nodes.clone())).collect();
    let plans: Vec<&Plan> = parts.iter().map(|part| &part.plan).collect();
    let peers = peers.fitted_to(servers);
    let _started = peers.start_beside(&mut contenders, &plans, &preparation)?;
    let minutes = lab::study_seconds(&parts, contenders.len()) / 60.0;
    println!("{} parts, {minutes:.0} minutes and what loading takes", parts.len());
    let done = Study { subject, parts: Vec::new(), left: Vec::new() };
    let mut clerk = Clerk { folder: folder.to_owned(), server_count: contenders.len(), done };
    let outcome = watched(|watch| lab::study(&parts, &contenders, watch, &mut clerk));
    // What was measured before something went wrong still makes a report.
    let mut study = clerk.done;
    let is_done = |name: &&String| study.parts.iter().any(|(part, _)| part.name == **name);
    study.left = parts.iter().map(|part| &part.name).filter(|name| !is_done(name)).cloned().collect();
    if !study.parts.is_empty() {
        let manifest = StudyManifest::of(&study, peers.servers(), manifest_contenders, peers.kinds());
        files::write_study(&study, &manifest, folder)?;
        print!("\n{}", lab::report::study_text(&study));
        println!("report: {}", folder.join(files::REPORT).display());
    }
    outcome.map(|()| study)
}

/// Was all measured that was planned, and each answer right?
pub(super) fn is_sound(study: &Study, part_count: usize) -> bool {
    let results = || study.parts.iter().flat_map(|(_, comparison)| comparison.results());
    study.parts.len() == part_count && results().all(|(_, results)| results.is_sound())
}

/// Does once more what a manifest says, and tells whether each part agrees with what lies beside it.
pub(super) fn repeat(
    manifest: &Path,
    before: StudyManifest,
    elsewhere: &super::arguments::Elsewhere,
    folder: &Path,
) -> Result<bool, LabError> {
    let peers = match elsewhere.peers.kinds().is_empty() {
        true => elsewhere.peers.of_kinds(&before.started)?,
        false => elsewhere.peers.clone(),
    };
    let nodes = elsewhere.nodes_instead(before.contenders.len())?;
    let contender = |(name, known): &(String, Vec<String>)| Contender {
        name: name.clone(),
        nodes: nodes.as_ref().unwrap_or(known).clone(),
        preparation: elsewhere.preparation(),
    };
    let asked = Asked {
        subject: before.subject.clone(),
        servers: before.servers,
        parts: before.parts.clone(),
        contenders: before.contenders.iter().map(contender).collect(),
        peers: &peers,
        preparation: elsewhere.preparation(),
    };
    let then = read(manifest, &before);
    let study = carry_out(asked, folder)?;
    let is_whole = is_sound(&study, before.parts.len());
    match then {
        Ok(then) => Ok(tell_agreement(&then, &study) && is_whole),
        Err(error) => {
            println!("nothing lies beside the manifest to hold this against: {}", with_causes(&error));
            Ok(is_whole)
        }
    }
}

/// Says part by part whether two studies agree, and whether all do: each server that both had, by its name.
fn tell_agreement(then: &Study, now: &Study) -> bool {
    let mut is_same = true;
    for ((part, now), (_, then)) in now.parts.iter().zip(&then.parts) {
        for (name, now) in now.results() {
            let Some((_, then)) = then.results().find(|(other, _)| *other == name) else {
                println!("{}, {name}: it was not there then", part.name);
                is_same = false;
                continue;
            };
            let agreement = lab::agreement(then, now);
            println!("{}, {name}\n{agreement}", part.name);
            is_same &= agreement.agrees();
        }
        for (name, _) in then.results() {
            if now.results().all(|(other, _)| other != name) {
                println!("{}, {name}: it is not there now", part.name);
                is_same = false;
            }
        }
    }
    is_same
}

/// What came of a study, as it lies beside its manifest.
///
/// # Errors
/// Results are not there, or can not be read.
pub(super) fn read(manifest: &Path, of: &StudyManifest) -> Result<Study, LabError> {
    let contenders = of.contenders.iter().map(|(name, _)| name.as_str());
    // What was started is called by the first word of its kind.
    let started = of.started.iter().map(|kind| kind.split('=').next().unwrap_or(kind));
    let names: Vec<&str> = contenders.chain(started).collect();
    let mut study = Study { subject: of.subject.clone(), parts: Vec::new(), left: of.left.clone() };
    for part in &of.parts {
        let mut all = Vec::new();
        let is_left_out = |name: &str| part.left_out.iter().any(|(other, _)| other == name);
        for name in names.iter().filter(|name| !is_left_out(name)) {
            let place = place_of(manifest.parent(), &part.name, name).join(files::MANIFEST);
            all.push(((*name).to_owned(), files::read_results(&place)?.1));
        }
        study.parts.push((part.clone(), Comparison::of(all)));
    }
    Ok(study)
}

/// Where a server's report of a part is.
fn place_of(folder: Option<&Path>, part: &str, server: &str) -> PathBuf {
    folder.unwrap_or(Path::new("")).join(part).join(server)
}

fn tell_subject(subject: &Subject) {
    if !subject.title.is_empty() {
        println!("{}", subject.title);
    }
    subject.scaled.iter().for_each(|sentence| println!("  {sentence}"));
}

/// Writes down each part once it is over.
struct Clerk {
    folder: PathBuf,
    server_count: usize,
    done: Study,
}

impl Tell for Clerk {
    fn begins(&mut self, part: &Part, number: usize, count: usize) {
        println!("part {number} of {count}: {} ({})", part.name, part.about);
    }

    fn leaves_out(&mut self, part: &Part) {
        part.left_out.iter().for_each(|(name, why)| println!("  {name} does not have this: {why}"));
    }

    fn offers(&mut self, part: &Part, borne: f64) {
        if let lab::Pace::Open { rate } = part.plan.pace {
            println!(
                "  {rate:.0} operations a second are offered: a short closed loop{} came to {borne:.0}",
                if self.server_count > 1 { " of the slowest server" } else { "" }
            );
        }
    }

    fn ends(&mut self, part: Part, comparison: Comparison) -> Result<(), LabError> {
        for (name, results) in comparison.results() {
            files::write(results, None, &place_of(Some(&self.folder), &part.name, name))?;
            println!("  {name}: {}", lab::report::headline(results));
        }
        self.done.parts.push((part, comparison));
        Ok(())
    }
}
