//! `peristyle bench`: how fast is a server, honestly? This one, Cassandra, or whatever speaks CQL.
//!
//! ```text
//!   bench list                     workloads
//!   bench run ycsb-a               make the table, load the rows, measure, write a report
//!   bench run netflix-1m           what an article measured, part by part
//!   bench compare ycsb-a ...       several servers in turns
//!   bench repeat .../manifest.json the same once more, and whether both agree
//!   bench report .../manifest.json its pages written anew
//! ```
//!
//! Servers run already, or are started for it (`--start-peer`).
//!
//! The measuring is `lab`'s; here are its words and its files.

mod arguments;
mod files;
mod peer;
mod study;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use lab::{
    LabError, Limit, Offer, Pace, Part, Plan, Preparation, Profile, Repetition, Results, Servers, Subject,
    Watch, Wishes,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::cqlsh::with_causes;
use arguments::{CompareArguments, Elsewhere, RunArguments, TRIAL_IN_FLIGHT};
use peer::PeerArguments;
use study::Asked;
use terminal::Terminal;

/// The part of what is borne that is offered when nobody says more.
const OFFERED_PART: f64 = 0.5;

/// Set by Ctrl-C: what was measured until then still makes a report.
static STOP: AtomicBool = AtomicBool::new(false);

/// What to measure.
#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    /// Print the workloads and the profiles
    List,
    /// Measure a server with a workload, and write a report
    Run(Box<RunArguments>),
    /// Measure several servers under one plan, in turns, and tell by how much they differ
    Compare(Box<CompareArguments>),
    /// Do once more what a manifest says, and tell whether it agrees with the results beside it
    Repeat {
        /// `manifest.json` of a run
        manifest: PathBuf,
        #[command(flatten)]
        elsewhere: Elsewhere,
    },
    /// Write the report of a run or a study anew, from the results beside its manifest
    Report {
        /// `manifest.json` of a run or a study
        manifest: PathBuf,
    },
}

/// Does it. The exit code tells whether there are figures that can be trusted.
pub(crate) fn run(arguments: &BenchArguments) -> ExitCode {
    let outcome = match &arguments.command {
        BenchCommand::List => {
            lab::workloads().for_each(|(name, about)| println!("{name:<20} {about}"));
            println!("\nprofiles, which repeat what articles measured:");
            lab::PROFILES.iter().for_each(|profile| println!("{:<20} {}", profile.name, profile.about));
            println!("\nsettings (--set NAME=VALUE) of ycsb-*: {}", lab::YCSB_SETTINGS);
            println!("those of the others stand in their texts: docs/lab/workloads.md");
            Ok(true)
        }
        BenchCommand::Run(arguments) => run_plan(arguments),
        BenchCommand::Compare(arguments) => compare(arguments),
        BenchCommand::Repeat { manifest, elsewhere } => repeat(manifest, elsewhere),
        BenchCommand::Report { manifest } => report_again(manifest).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

fn run_plan(arguments: &RunArguments) -> Result<bool, LabError> {
    if let Some((profile, wishes)) = arguments.plan.profile()? {
        if arguments.find_max {
            return Err(LabError::Plan(format!("{} has paces of its own", profile.name)));
        }
        let elsewhere = &arguments.elsewhere;
        let asked = Asked {
            contenders: elsewhere.contender().into_iter().collect(),
            ..asked(profile, &wishes, &elsewhere.peers, elsewhere.preparation())?
        };
        return run_study(asked, elsewhere.out.as_deref());
    }
    let mut plan = arguments.plan().completed()?;
    let mut preparation = arguments.elsewhere.preparation();
    let folder = files::free_folder(arguments.elsewhere.out.as_deref(), &plan.workload)?;
    stop_at_interrupt();
    let _peer = arguments.elsewhere.peers.start_for(&mut plan, &mut preparation)?;
    let mut loads = Vec::new();
    if arguments.plan.has_no_pace() {
        plan.pace = Pace::Open { rate: found_rate(&plan, arguments, &preparation, &mut loads)? };
        preparation.loads = false;
    }
    let results = watched_loading(&mut loads, |watch| lab::run(&plan, &preparation, watch))?;
    report(&results, loads.first(), &folder)?;
    Ok(results.is_sound())
}

/// The rate at which it is measured when none was given: the highest within a limit, or half of what is borne.
fn found_rate(
    plan: &Plan,
    arguments: &RunArguments,
    preparation: &Preparation,
    loads: &mut Vec<Repetition>,
) -> Result<f64, LabError> {
    println!("a closed loop finds out what is borne");
    let borne =
        watched_loading(loads, |watch| lab::closed_loop_rate(plan, TRIAL_IN_FLIGHT, preparation, watch))?;
    println!("  {borne:.0} operations a second with {TRIAL_IN_FLIGHT} under way");
    if !arguments.find_max {
        let rate = (borne * OFFERED_PART).max(1.0).round();
        println!("  {rate} are offered: half of that, since no --rate was given");
        return Ok(rate);
    }
    let limit = Limit { quantile: 0.99, response: arguments.p99 };
    watched(|watch| lab::find_max(plan, borne, limit, watch, &mut terminal::tell_trial))
}

/// A profile on the servers that are started for it.
fn asked<'a>(
    profile: &Profile,
    wishes: &Wishes,
    peers: &'a PeerArguments,
    preparation: Preparation,
) -> Result<Asked<'a>, LabError> {
    let lab::Repeated { subject, servers, parts } = profile.repeated(wishes)?;
    Ok(Asked { subject, servers, parts, contenders: Vec::new(), peers, preparation })
}

fn run_study(asked: Asked<'_>, out: Option<&Path>) -> Result<bool, LabError> {
    let folder = files::free_folder(out, &asked.subject.name)?;
    let part_count = asked.parts.len();
    Ok(study::is_sound(&study::carry_out(asked, &folder)?, part_count))
}

fn repeat(manifest: &Path, elsewhere: &Elsewhere) -> Result<bool, LabError> {
    if let files::AnyManifest::Study(before) = files::read_manifest(manifest)? {
        let folder = files::free_folder(elsewhere.out.as_deref(), &before.subject.name)?;
        return study::repeat(manifest, *before, elsewhere, &folder);
    }
    let (plan, before) = files::read_results(manifest)?;
    let (mut plan, mut preparation) = (elsewhere.applied_to(plan), elsewhere.preparation());
    let folder = files::free_folder(elsewhere.out.as_deref(), &plan.workload)?;
    stop_at_interrupt();
    let _peer = elsewhere.peers.start_for(&mut plan, &mut preparation)?;
    let mut loads = Vec::new();
    let results = watched_loading(&mut loads, |watch| lab::run(&plan, &preparation, watch))?;
    report(&results, loads.first(), &folder)?;
    let agreement = lab::agreement(&before, &results);
    println!("{agreement}");
    Ok(results.is_sound() && agreement.agrees())
}

fn compare(arguments: &CompareArguments) -> Result<bool, LabError> {
    let (contenders, peers) = (arguments.contenders()?, &arguments.peers);
    let asked = match arguments.plan.profile()? {
        Some((profile, wishes)) => {
            Asked { contenders, ..asked(profile, &wishes, peers, arguments.preparation())? }
        }
        None => {
            let plan = arguments.plan.plan().completed()?;
            let offer = match arguments.plan.has_no_pace() {
                true => Offer::PartOfBorne(OFFERED_PART),
                false => Offer::AsPlanned,
            };
            let subject = Subject { name: plan.workload.clone(), ..Subject::default() };
            let part = Part::new(plan.workload.clone(), "", plan, true, offer);
            // As many nodes as the command line says.
            let servers = Servers::nodes(1);
            Asked {
                subject,
                servers,
                parts: vec![part],
                contenders,
                peers,
                preparation: arguments.preparation(),
            }
        }
    };
    run_study(asked, arguments.out.as_deref())
}

/// The reports of another version, of results that are there.
fn report_again(manifest: &Path) -> Result<(), LabError> {
    let folder = manifest.parent().unwrap_or(Path::new(""));
    match files::read_manifest(manifest)? {
        files::AnyManifest::Study(of) => {
            let study = study::read(manifest, &of)?;
            files::write_study(&study, &of, folder)?;
            print!("{}", lab::report::study_text(&study));
        }
        files::AnyManifest::Run(_) => {
            let results = files::read_results(manifest)?.1;
            files::write_reports(&results, folder)?;
            print!("{}", lab::report::text(&results));
        }
    }
    println!("report: {}", folder.join(files::REPORT).display());
    Ok(())
}

/// Shows how something goes that takes its time, and ends it at Ctrl-C.
fn watched<T>(go: impl FnOnce(&mut Watch<'_>) -> Result<T, LabError>) -> Result<T, LabError> {
    watched_loading(&mut Vec::new(), go)
}

/// The same, and keeps what loads there were.
fn watched_loading<T>(
    loads: &mut Vec<Repetition>,
    go: impl FnOnce(&mut Watch<'_>) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let terminal = Terminal::new();
    let outcome = go(&mut Watch {
        tell: &mut |progress| terminal.show(&progress),
        loaded: &mut |plan, load| {
            terminal::tell_load(plan, load);
            loads.push(load.clone());
        },
        stop: &STOP,
    });
    terminal.clear();
    outcome
}

fn report(results: &Results, load: Option<&Repetition>, folder: &Path) -> Result<(), LabError> {
    files::write(results, load, folder)?;
    print!("{}", lab::report::text(results));
    println!("report: {}", folder.join(files::REPORT).display());
    Ok(())
}

/// Until somebody wants it to end, at the terminal or by a signal to the process.
async fn interrupt() -> std::io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed,
        _ = terminated.recv() => Ok(()),
    }
}

/// From now on Ctrl-C ends the run; a second one ends the program, and the servers that it has started.
fn stop_at_interrupt() {
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(interrupt())?;
        STOP.store(true, std::sync::atomic::Ordering::Relaxed);
        runtime.block_on(interrupt())
    };
    std::thread::spawn(move || match wait() {
        Ok(()) => {
            peer::end_all();
            std::process::exit(130)
        }
        Err(error) => eprintln!("bench: Ctrl-C will end the program at once: {error}"),
    });
}
