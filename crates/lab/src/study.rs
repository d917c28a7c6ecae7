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
use crate::manifest::Plan;

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
}

/// What came of a study.
#[derive(Clone, Debug)]
pub struct Study {
    /// What was studied.
    pub subject: Subject,
    /// Part by part, each with what all servers did in it.
    pub parts: Vec<(Part, Comparison)>,
}

/// Carries out all parts, and tells of each once it is over.
///
/// # Errors
/// As [`run`](crate::run). What was told of before stands.
pub fn study(
    subject: &Subject,
    parts: &[Part],
    contenders: &[Contender],
    watch: &mut Watch<'_>,
    done: &mut dyn FnMut(&Part, &Comparison) -> Result<(), LabError>,
) -> Result<Study, LabError> {
    let mut study = Study { subject: subject.clone(), parts: Vec::new() };
    for part in parts {
        if watch.is_stopped() {
            break;
        }
        let mut contenders = contenders.to_vec();
        contenders.iter_mut().for_each(|contender| contender.preparation.loads &= part.loads);
        let comparison = compare(&part.plan, &contenders, watch)?;
        done(part, &comparison)?;
        study.parts.push((part.clone(), comparison));
    }
    Ok(study)
}
