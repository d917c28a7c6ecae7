//! How a ring begins, and how a node comes in.
//!
//! Only one node may found a ring: one that is told no seeds, or the first of its own seeds. It does so when all other
//! seeds say that they know of none: one that can not be asked may know of one. Where two were each told to be the
//! first, the one with the lesser id founds. All others ask until they are let in.

use std::time::Duration;

use runtime::{Plant, Runtime};
use tokio::time::{Instant, sleep, timeout};

use super::contact::{Contact, Contacts};
use super::message::{Question, Reply};
use super::{Known, MembershipError, MembershipOptions};
use crate::metadata::{Command, MetadataMachine, Refusal, decode_outcome};
use crate::raft::{Agreement, AgreementError, COMMAND_BYTES_MAX};

/// How long a seed may take to answer: longer than an election.
const PATIENCE: Duration = Duration::from_secs(8);
/// Between two rounds of asking.
const PAUSE: Duration = Duration::from_millis(100);
/// So often the log says what is waited for.
const TELL_AFTER: Duration = Duration::from_secs(5);

/// Comes into a ring, or founds it; returns when this node is a member.
///
/// # Errors
/// The ring does not want it, or there is nobody to ask.
pub(super) async fn come_in(
    options: &MembershipOptions,
    runtime: &Runtime,
    known: &Known,
    contacts: &Contacts,
    agreement: &Agreement<MetadataMachine>,
) -> Result<(), MembershipError> {
    let may_found = options.may_found() || runtime.plants.has(Plant::FoundsAlone);
    let seeds = &contacts.to_seeds(options);
    if options.replaces.is_some() && !options.history.is_empty() {
        return Err(MembershipError::NotEmpty);
    }
    if options.replaces.is_some() && seeds.is_empty() {
        return Err(MembershipError::NoSeeds);
    }
    assert!(may_found || !seeds.is_empty(), "who may not found a ring has somebody to ask");
    let mut told = Instant::now();
    loop {
        let waits_for = match may_found && nobody_has_a_ring(seeds, runtime, known).await? {
            true => found(options, runtime, agreement).await?,
            false if options.history.is_empty() => ask_to_be_let_in(options, seeds).await?,
            false if may_found => {
                sleep(PAUSE).await;
                "another seed says whether it knows of a ring".to_owned()
            }
            false => return Err(MembershipError::HasHistory),
        };
        if timeout(PAUSE, known.is_member()).await.is_ok() {
            return Ok(());
        }
        if told.elapsed() >= TELL_AFTER {
            told = Instant::now();
            tracing::info!(seeds = ?options.seeds, "not in the ring yet: {waits_for}");
        }
    }
}

/// Does every other seed say so?
async fn nobody_has_a_ring(
    seeds: &[Contact],
    runtime: &Runtime,
    known: &Known,
) -> Result<bool, MembershipError> {
    for seed in seeds {
        if known.members().is_some() {
            return Ok(false);
        }
        match seed.ask(Question::Ring, PATIENCE).await {
            Ok(Reply::Ring { cluster_id: None, rival })
                if rival.is_none_or(|rival| rival > known.host_id()) => {}
            Err(_) if runtime.plants.has(Plant::FoundsAlone) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Founds a ring of this node alone; what is still waited for.
async fn found(
    options: &MembershipOptions,
    runtime: &Runtime,
    agreement: &Agreement<MetadataMachine>,
) -> Result<String, MembershipError> {
    let command = Command::Found {
        cluster_id: runtime.random.uuid_v4(),
        history: options.history.clone(),
        founder: options.candidate.clone(),
    };
    let command = command.encode();
    if command.len() > COMMAND_BYTES_MAX {
        return Err(MembershipError::HistoryTooLong { bytes: command.len() });
    }
    // Founded, and then cut off before the first command: it is only that which is missing.
    if let Err(error) = agreement.found().await
        && error != AgreementError::Founded
    {
        return Ok(error.to_string());
    }
    match agreement.propose(runtime.random.uuid_v4(), command).await {
        Err(error) => Ok(error.to_string()),
        Ok(outcome) => match decode_outcome(&outcome) {
            Ok(_) | Err(Refusal::Founded) => Ok("its first entry".to_owned()),
            Err(refusal) => Err(MembershipError::Refused(refusal)),
        },
    }
}

/// Asks one seed after the other; what is still waited for.
async fn ask_to_be_let_in(options: &MembershipOptions, seeds: &[Contact]) -> Result<String, MembershipError> {
    let mut waits_for = "another seed says whether it knows of a ring".to_owned();
    for seed in seeds {
        let candidate = options.candidate.clone();
        let question = match options.replaces {
            None => Question::Join(candidate),
            Some(replaced) => Question::Replace(candidate, replaced),
        };
        match seed.ask(question, PATIENCE).await {
            Ok(Reply::Admitted) => return Ok("what was agreed on has not come yet".to_owned()),
            Ok(Reply::Refused(Refusal::NotFounded)) => {
                waits_for = format!("{} knows of no ring", seed.address());
            }
            Ok(Reply::Refused(refusal)) => return Err(MembershipError::Refused(refusal)),
            Ok(Reply::Later(why)) => waits_for = format!("{}: {why}", seed.address()),
            Ok(_) => waits_for = format!("{} has answered something else", seed.address()),
            Err(trouble) => waits_for = format!("{}: {trouble}", seed.address()),
        }
    }
    sleep(PAUSE).await;
    Ok(waits_for)
}
