//! `cargo xtask mutants`: would a test notice if the code were wrong?
//!
//! `cargo-mutants` changes one thing in the code: an operator, a condition, what a function returns. A test must then
//! fail, or nobody watches over that line. Five areas are judged, those where a mistake loses or hides data.
//!
//! ```text
//!   killed      a test failed
//!   timed out   a test never ended: killed too, but told apart
//!   survived    all tests of all stages passed; `tests/mutants/explained.txt` says why that is right, or it counts
//!   unviable    it does not compile: not counted
//! ```
//!
//! Of all mutants of an area a sample is drawn, by a seed: each has a place in a row that only the seed, its file and
//! what it changes decide. So a larger sample holds the smaller one, and an edit elsewhere leaves most of it in place.
//! A mutant meets the tests of its own crate first, and only survivors that are not explained meet those of the crates
//! above (`areas.rs`).
//!
//! Everything happens under `target/mutants`, on a copy of the tree: the copy with its build, and the verdicts. A run
//! that is stopped goes on where it was. A killed mutant stays killed while its file is the same; a survivor is judged
//! anew once anything changed, a test perhaps. `--anew` forgets all verdicts.
//!
//! What is not checked: mutants outside the sample, two changes at once, and what only the tests from outside
//! (drivers, crashes, flipped bytes) would see.

mod areas;
mod explained;
mod mutant;
mod tool;
mod verdicts;

use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::report::{Failure, Tally, complain};
use areas::{AREAS, Area};
use explained::Explanations;
use mutant::{Mutant, sample};
use tool::Workshop;
use verdicts::{Verdict, Verdicts};

/// Below this an area fails: killed or explained, of those that compile.
const PERCENT_MIN: f64 = 90.0;
/// So many are judged between two looks at the clock, by one run of the tool.
const BATCH_COUNT: usize = 5;

/// What a run is made of.
struct Options {
    areas: Vec<&'static Area>,
    sample_count: usize,
    seed: u64,
    /// When to leave the rest for the next run.
    end: Option<Instant>,
}

/// How the mutants of one area came out.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    killed: usize,
    timed_out: usize,
    survived: usize,
    /// Of those that survived.
    explained: usize,
    unviable: usize,
    /// Left for the next run.
    left: usize,
}

/// Judges all areas, or those named.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    let options = read_options(arguments)?;
    let workshop = Workshop::open()?;
    let mut verdicts = Verdicts::read(workshop.tree_checksum(), arguments.flag("anew"))?;
    let explanations = Explanations::read()?;
    let mut tally = Tally::default();
    for area in &options.areas {
        tally += judge_area(area, &options, &workshop, &mut verdicts, &explanations)?;
    }
    Ok(tally)
}

fn read_options(arguments: &Arguments) -> Result<Options, Failure> {
    arguments.only(&["only", "sample", "seed", "minutes", "anew"])?;
    let minutes: u64 = arguments.value("minutes", 0)?;
    let names = arguments.list("only");
    if let Some(name) = names.iter().find(|name| AREAS.iter().all(|area| area.name != **name)) {
        let all = AREAS.map(|area| area.name).join(", ");
        return Err(Failure::new(format!("there is no area '{name}' (there are {all})")));
    }
    let is_wanted = |area: &&Area| names.is_empty() || names.iter().any(|name| name == area.name);
    Ok(Options {
        areas: AREAS.iter().filter(is_wanted).collect(),
        sample_count: arguments.value("sample", 100)?,
        seed: arguments.value("seed", 1)?,
        end: (minutes > 0).then(|| Instant::now() + Duration::from_secs(60 * minutes)),
    })
}

/// Judges the sample of one area; one pass or one failure.
fn judge_area(
    area: &Area,
    options: &Options,
    workshop: &Workshop,
    verdicts: &mut Verdicts,
    explanations: &Explanations,
) -> Result<Tally, Failure> {
    let all = workshop.list(area)?;
    let all_count = all.len();
    let stale = explanations.stale(area, &all);
    stale.iter().for_each(|what| complain!("tests/mutants/explained.txt: {what}"));
    let sampled = sample(all, options.sample_count, options.seed);
    println!(
        "--- mutants of {}: {} of {all_count}; to repeat: cargo xtask mutants --only {} --sample {} --seed {}",
        area.name,
        sampled.len(),
        area.name,
        options.sample_count,
        options.seed
    );
    judge_sample(area, &sampled, options.end, workshop, verdicts, explanations)?;
    let figures = Figures::of(&sampled, verdicts, explanations);
    println!("{}: {figures}", area.name);
    let mut is_good = stale.is_empty();
    if figures.left > 0 {
        complain!("mutants of {}: {} are left, run the same again to go on", area.name, figures.left);
        is_good = false;
    } else if figures.percent() < PERCENT_MIN {
        complain!("mutants of {}: less than {PERCENT_MIN}% are killed or explained", area.name);
        is_good = false;
    }
    Ok(if is_good { Tally::PASS } else { Tally::FAIL })
}

/// Judges what has no verdict yet, a few at a time, until the time is over.
fn judge_sample(
    area: &Area,
    sampled: &[Mutant],
    end: Option<Instant>,
    workshop: &Workshop,
    verdicts: &mut Verdicts,
    explanations: &Explanations,
) -> Result<(), Failure> {
    let open: Vec<&Mutant> = sampled.iter().filter(|mutant| verdicts.of(mutant).is_none()).collect();
    for (index, batch) in open.chunks(BATCH_COUNT).enumerate() {
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        println!("    {} of {} to judge", index * BATCH_COUNT, open.len());
        judge_batch(area, batch, workshop, verdicts, explanations)?;
    }
    Ok(())
}

/// Brings mutants before one stage after the other; the next has only those that survived the one before, and that are
/// not explained.
fn judge_batch(
    area: &Area,
    batch: &[&Mutant],
    workshop: &Workshop,
    verdicts: &mut Verdicts,
    explanations: &Explanations,
) -> Result<(), Failure> {
    let mut alive = batch.to_vec();
    for (index, stage) in area.stages.iter().enumerate() {
        let is_judged =
            |mutant: &&Mutant| stage.may_notice(mutant) && (index == 0 || !explanations.has(mutant));
        let (judged, mut survivors): (Vec<&Mutant>, Vec<&Mutant>) = alive.into_iter().partition(is_judged);
        if !judged.is_empty() {
            let baseline = format!("{} stage {}", area.name, index + 1);
            if !verdicts.has_passed(&baseline) {
                workshop.baseline(area, stage)?;
                verdicts.keep_passed(&baseline)?;
            }
            for (mutant, verdict) in judged.iter().zip(workshop.judge(area, stage, &judged)?) {
                match verdict {
                    Verdict::Survived => survivors.push(mutant),
                    verdict => verdicts.tell(mutant, verdict)?,
                }
            }
        }
        alive = survivors;
    }
    alive.into_iter().try_for_each(|mutant| verdicts.tell(mutant, Verdict::Survived))
}

impl Figures {
    /// Counts, and prints each that survived without an explanation.
    fn of(sampled: &[Mutant], verdicts: &Verdicts, explanations: &Explanations) -> Figures {
        let mut figures = Figures::default();
        for mutant in sampled {
            match verdicts.of(mutant) {
                None => figures.left += 1,
                Some(Verdict::Killed) => figures.killed += 1,
                Some(Verdict::TimedOut) => figures.timed_out += 1,
                Some(Verdict::Unviable) => figures.unviable += 1,
                Some(Verdict::Survived) => {
                    figures.survived += 1;
                    if explanations.has(mutant) {
                        figures.explained += 1;
                    } else {
                        println!("*** survived: {}\n      {}", mutant.name, mutant.line);
                    }
                }
            }
        }
        figures
    }

    /// Killed or explained, of those that compile.
    fn percent(&self) -> f64 {
        let good = self.killed + self.timed_out + self.explained;
        let counted = self.killed + self.timed_out + self.survived;
        if counted == 0 { 100.0 } else { 100.0 * good as f64 / counted as f64 }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { killed, timed_out, survived, explained, unviable, left } = self;
        write!(f, "{killed} killed, {timed_out} timed out, {survived} survived ({explained} explained), ")?;
        write!(f, "{unviable} unviable, {left} left: {:.1}% killed or explained", self.percent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unviable_do_not_count_and_the_explained_do() {
        let figures = Figures { killed: 15, timed_out: 1, survived: 4, explained: 2, unviable: 80, left: 0 };
        assert_eq!(figures.percent(), 90.0);
        assert_eq!(Figures::default().percent(), 100.0);
    }
}
