//! Several plans under one roof: what an article measured, repeated part by part.
//!
//! ```text
//!   part "4 KB chunks"    first server  second server  first server ...
//!   part "16 KB chunks"   first server  second server  ...
//! ```
//!
//! Each part is a comparison of its own: servers take turns within it, repetition by repetition.

use serde::{Deserialize, Serialize};

use crate::comparison::{Comparison, Contender, compare};
use crate::engine::Watch;
use crate::error::LabError;
use crate::manifest::{Pace, Plan, VERSION, check_version};
use crate::results::Results;
use crate::search::{closed_loop_rate, trial_seconds};
use crate::servers::Servers;
use crate::session::refusal;

/// What is studied, in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// As it is called for: `netflix-1m`.
    pub name: String,
    /// A line: whose article, which question.
    pub title: String,
    /// Where the article is to be read.
    pub source: String,
    /// What the article claims, sentence by sentence.
    pub claims: Vec<String>,
    /// What was made smaller or left out, and why, sentence by sentence.
    pub scaled: Vec<String>,
    /// What an hour of the servers costs.
    pub price: Option<Price>,
}

/// Of all servers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// In dollars.
    pub dollars_per_hour: f64,
    /// What the figure is derived from.
    pub words: String,
}

/// One plan of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Short: it names a folder too, so it is of letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What differs from the other parts, in a few words.
    pub about: String,
    /// What is run.
    pub plan: Plan,
    /// Its rows are loaded first; otherwise those of a part before it are there.
    pub loads: bool,
    /// At which pace.
    #[serde(default)]
    pub offer: Offer,
    /// Not every server has what it needs: one that refuses its statements is left out of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_refused: bool,
    /// Who was left out, and what the server said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<(String, String)>,
}

impl Part {
    /// One that all servers can do.
    pub fn new(
        name: impl Into<String>,
        about: impl Into<String>,
        plan: Plan,
        loads: bool,
        offer: Offer,
    ) -> Part {
        let (name, about) = (name.into(), about.into());
        Part { name, about, plan, loads, offer, may_be_refused: false, left_out: Vec::new() }
    }
}

/// At which pace a part is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// As its plan says.
    #[default]
    AsPlanned,
    /// In an open loop, with this part of what the slowest of the servers bears in a closed one. Parts that only differ
    /// in this share one trial, so that they are steps of one ladder.
    PartOfBorne(f64),
}

/// Enough to run a study again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyManifest {
    /// Version of this format.
    pub version: u32,
    /// What was studied.
    pub subject: Subject,
    /// What was started of each kind.
    pub servers: Servers,
    /// Its parts, with the paces that were found.
    pub parts: Vec<Part>,
    /// Who took part: the name of each, and its nodes; none of one that was started for it.
    pub contenders: Vec<(String, Vec<String>)>,
    /// What was started for it, as `--start-peer` calls it.
    pub started: Vec<String>,
    /// Names of parts that were to come when it was ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

impl StudyManifest {
    /// Of a study that is over.
    pub fn of(
        study: &Study,
        servers: Servers,
        contenders: Vec<(String, Vec<String>)>,
        started: Vec<String>,
    ) -> Self {
        let parts = study.parts.iter().map(|(part, _)| part.clone()).collect();
        StudyManifest {
            version: VERSION,
            subject: study.subject.clone(),
            servers,
            parts,
            contenders,
            started,
            left: study.left.clone(),
        }
    }

    /// Is it one that this lab can read?
    ///
    /// # Errors
    /// It was written by a later one.
    pub fn check_version(&self) -> Result<(), LabError> {
        check_version(self.version)
    }
}

/// What came of a study.
#[derive(Clone, Debug)]
pub struct Study {
    /// What was studied.
    pub subject: Subject,
    /// Part by part, each with what all servers did in it.
    pub parts: Vec<(Part, Comparison)>,
    /// Names of parts that were to come when it was ended.
    pub left: Vec<String>,
}

/// Carries out all parts, and tells of each once it is over: whoever is told keeps what was found.
///
/// # Errors
/// As [`run`](crate::run). What was told of before stands.
pub fn study(
    parts: &[Part],
    contenders: &[Contender],
    watch: &mut Watch<'_>,
    tell: &mut dyn Tell,
) -> Result<(), LabError> {
    let mut borne: Option<(Plan, f64)> = None;
    for (index, part) in parts.iter().enumerate() {
        if watch.is_stopped() {
            break;
        }
        tell.begins(part, index + 1, parts.len());
        let mut contenders = contenders.to_vec();
        contenders.iter_mut().for_each(|contender| contender.preparation.loads &= part.loads);
        let mut part = Part { left_out: Vec::new(), ..part.clone() };
        if part.may_be_refused {
            part.left_out = leave_out(&part.plan, &mut contenders)?;
            tell.leaves_out(&part);
            if contenders.is_empty() {
                tell.ends(part, Comparison::of(Vec::new()))?;
                continue;
            }
        }
        if let Offer::PartOfBorne(share) = part.offer {
            let known = borne.as_ref().filter(|(other, _)| !part.loads && is_same_load(other, &part.plan));
            let rate = match known {
                Some((_, rate)) => *rate,
                None => slowest(&part, &contenders, watch)?,
            };
            contenders.iter_mut().for_each(|contender| contender.preparation.loads = false);
            part.plan.pace = Pace::Open { rate: (rate * share).max(1.0).round() };
            part.offer = Offer::AsPlanned;
            tell.offers(&part, rate);
            borne = Some((part.plan.clone(), rate));
        }
        let comparison = compare(&part.plan, &contenders, watch)?;
        let is_measured =
            |results: &Results| results.repetitions.iter().any(|one| one.total().response.count() > 0);
        if watch.is_stopped() && !comparison.results().any(|(_, results)| is_measured(results)) {
            break;
        }
        tell.ends(part, comparison)?;
    }
    Ok(())
}

/// About how many seconds a study of so many servers takes: warm-ups, measurements, and trials that find out what is
/// borne. Loads come on top.
pub fn study_seconds(parts: &[Part], contender_count: usize) -> f64 {
    let (mut seconds, mut tried) = (0.0, None);
    for part in parts {
        let plan = &part.plan;
        seconds += plan.repetition_count as f64 * (plan.warmup_s + plan.measured_s);
        let has_trial = matches!(part.offer, Offer::PartOfBorne(_));
        let is_known = |tried: &Plan| !part.loads && is_same_load(tried, plan);
        if has_trial && !tried.is_some_and(is_known) {
            seconds += trial_seconds(plan);
        }
        tried = has_trial.then_some(plan).or(tried);
    }
    seconds * contender_count as f64
}

/// Whoever is told how a study goes.
pub trait Tell {
    /// A part begins: its number, and of how many.
    fn begins(&mut self, part: &Part, number: usize, count: usize);

    /// Some servers were asked whether they can do a part, and those that can not are left out of it.
    fn leaves_out(&mut self, part: &Part);

    /// A part's pace was found: so many operations each second the slowest server bears in a closed loop.
    fn offers(&mut self, part: &Part, borne: f64);

    /// A part is over.
    ///
    /// # Errors
    /// What was found can not be kept, and the study ends.
    fn ends(&mut self, part: Part, comparison: Comparison) -> Result<(), LabError>;
}

/// Leaves out those that refuse the statements of a plan, and tells what they said.
///
/// # Errors
/// One can not be asked.
fn leave_out(plan: &Plan, contenders: &mut Vec<Contender>) -> Result<Vec<(String, String)>, LabError> {
    let (mut left_out, mut others) = (Vec::new(), Vec::new());
    for contender in contenders.drain(..) {
        let plan = Plan { nodes: contender.nodes.clone(), ..plan.clone() };
        match refusal(&plan, &contender.preparation)? {
            None => others.push(contender),
            Some(why) => left_out.push((contender.name, why)),
        }
    }
    *contenders = others;
    Ok(left_out)
}

/// Would the same closed loop find the same?
pub(crate) fn is_same_load(one: &Plan, other: &Plan) -> bool {
    let of =
        |plan: &Plan| Plan { pace: Pace::Closed { in_flight: 1 }, disturbances: Vec::new(), ..plan.clone() };
    of(one) == of(other)
}

/// What the slowest of some servers bears in a closed loop, the part's rows being loaded first where it loads.
fn slowest(part: &Part, contenders: &[Contender], watch: &mut Watch<'_>) -> Result<f64, LabError> {
    let in_flight = match part.plan.pace {
        Pace::Closed { in_flight } => in_flight,
        Pace::Open { .. } => {
            return Err(LabError::Plan(format!("{} has a rate already", part.name)));
        }
    };
    let mut least = f64::INFINITY;
    for contender in contenders {
        let plan = Plan { nodes: contender.nodes.clone(), ..part.plan.clone() };
        least = least.min(closed_loop_rate(&plan, in_flight, &contender.preparation, watch)?);
    }
    Ok(least)
}
