//! Who has the log, and who votes. The leader sees to it that all members have it, and that three, five or seven vote,
//! over as many racks as there are.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{Known, ProposeError};
use crate::metadata::{Candidate, Member, MemberState, Members, MetadataMachine};
use crate::raft::{Agreement, Standing};

/// So often it is looked whether there are too few.
const INTERVAL: Duration = Duration::from_millis(50);
/// So long most of them may be silent, beyond what heartbeats take to tell that, before nothing is expected of them:
/// they may have been away for a moment.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Gives members the log and makes learners voters, one after the other, whenever this node leads and there are too
/// few.
pub(super) async fn see_to(known: Known, agreement: Agreement<MetadataMachine>) {
    loop {
        sleep(INTERVAL).await;
        let standing = agreement.standing();
        if standing.leader == Some(known.host_id())
            && let Some(members) = known.members()
        {
            see_to_next(&members, &standing, &agreement).await;
        }
    }
}

async fn see_to_next(members: &Members, standing: &Standing, agreement: &Agreement<MetadataMachine>) {
    if standing.next_voters.is_some() {
        match agreement.finish_change().await {
            Ok(()) => tracing::info!("a change of voters that was begun is finished"),
            Err(error) => tracing::debug!(%error, "a change of voters is not finished yet"),
        }
        return;
    }
    // By what is agreed on, and not by what is written down: a learner may be a member only since a moment ago.
    let leaver =
        agreement.look(|machine| machine.members().and_then(|members| next_leaver(members, standing)));
    if let Some(leaver) = leaver {
        match agreement.remove(leaver).await {
            Ok(()) => tracing::info!(%leaver, "a node that is no member any more does not get the log"),
            Err(error) => tracing::debug!(%leaver, %error, "it gets the log yet"),
        }
        return;
    }
    if let Some(member) = next_learner(members, standing) {
        let Candidate { host_id, address, .. } = member.candidate;
        if let Err(error) = agreement.add_learner(host_id, address).await {
            tracing::debug!(%host_id, %error, "it does not get the log yet");
        }
        return;
    }
    if let Some(learner) = next_voter(members, standing)
        && let Err(error) = agreement.make_voter(learner).await
    {
        tracing::debug!(%learner, %error, "it does not vote yet");
    }
}

/// Waits until there are as many as there are to be.
pub(super) async fn are_enough(known: &Known, agreement: &Agreement<MetadataMachine>) {
    let are_missing =
        || known.members().is_some_and(|members| agreement.standing().voters.len() < wanted(&members));
    while are_missing() {
        sleep(INTERVAL).await;
    }
}

/// Waits until most of them are heard, so that they can agree on something.
///
/// # Errors
/// They are not, for a while.
pub(super) async fn are_heard(
    known: &Known,
    agreement: &Agreement<MetadataMachine>,
) -> Result<(), ProposeError> {
    let hearing = async {
        while !is_majority_heard(known, agreement) {
            sleep(INTERVAL).await;
        }
    };
    timeout(SILENCE_MAX, hearing).await.map_err(|_| {
        let voters = agreement.standing().voters;
        let heard_count = voters.iter().filter(|voter| is_heard(known, **voter)).count();
        ProposeError::NoMajority { heard_count, voter_count: voters.len() }
    })
}

/// Waits until most of them have been silent for a while.
pub(super) async fn are_silent(known: &Known, agreement: &Agreement<MetadataMachine>) {
    let mut heard = Instant::now();
    while heard.elapsed() < SILENCE_MAX {
        sleep(INTERVAL).await;
        if is_majority_heard(known, agreement) {
            heard = Instant::now();
        }
    }
}

fn is_majority_heard(known: &Known, agreement: &Agreement<MetadataMachine>) -> bool {
    agreement.is_majority(|voter| is_heard(known, voter))
}

fn is_heard(known: &Known, voter: Uuid) -> bool {
    voter == known.host_id() || known.other_member(voter).is_some_and(|other| other.is_heard())
}

/// A member that does not get the log: the leader that let it in has told it so, and died before it kept that. It does
/// not ask again.
fn next_learner<'m>(members: &'m Members, standing: &Standing) -> Option<&'m Member> {
    let has_log = |id: &Uuid| standing.voters.contains(id) || standing.learners.contains(id);
    let mut counting = members.list().iter().filter(|member| member.state != MemberState::Lost);
    counting.find(|member| !has_log(&member.candidate.host_id))
}

/// Somebody who gets the log and is no member any more.
fn next_leaver(members: &Members, standing: &Standing) -> Option<Uuid> {
    let is_over = |id: &Uuid| members.get(*id).is_none_or(|member| member.state == MemberState::Lost);
    standing.voters.iter().chain(&standing.learners).copied().find(is_over)
}

/// How many are to vote of these: more survive more losses, and make each decision dearer.
fn wanted(members: &Members) -> usize {
    match members.list().iter().filter(|member| member.state != MemberState::Lost).count() {
        count @ 0..=2 => count,
        3..=4 => 3,
        5..=6 => 5,
        _ => 7,
    }
}

/// The learner in the rack that has the fewest voters.
fn next_voter(members: &Members, standing: &Standing) -> Option<Uuid> {
    if standing.voters.len() >= wanted(members) {
        return None;
    }
    let rack = |host_id: &Uuid| {
        let member = members.get(*host_id)?;
        Some((&member.candidate.data_center, &member.candidate.rack))
    };
    let mut voters_by_rack: BTreeMap<_, usize> = BTreeMap::new();
    for rack in standing.voters.iter().filter_map(rack) {
        *voters_by_rack.entry(rack).or_default() += 1;
    }
    let voter_count =
        |learner: &&Uuid| rack(learner).map(|rack| voters_by_rack.get(&rack).copied().unwrap_or(0));
    standing.learners.iter().filter(|learner| rack(learner).is_some()).min_by_key(voter_count).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metadata::testing::candidate;

    fn members(racks: &[&str]) -> Members {
        let mut numbers = 1u8..;
        let mut candidates = racks.iter().map(|rack| {
            let number = numbers.next().expect("a few");
            Candidate { rack: (*rack).to_owned(), ..candidate(number) }
        });
        let first = Members::founded(Uuid::from_u128(99), candidates.next().expect("one")).expect("a ring");
        candidates.fold(first, |members, candidate| members.joined(candidate).expect("it joins"))
    }

    #[track_caller]
    fn check(racks: &[&str], voters: &[u128], learners: &[u128], expected: Option<u128>) {
        let ids =
            |numbers: &[u128]| -> BTreeSet<Uuid> { numbers.iter().copied().map(Uuid::from_u128).collect() };
        let standing = Standing { voters: ids(voters), learners: ids(learners), ..Standing::default() };
        assert_eq!(next_voter(&members(racks), &standing), expected.map(Uuid::from_u128));
    }

    #[test]
    fn three_vote_of_four_each_in_another_rack() {
        check(&["a", "a", "b", "c"], &[1], &[2, 3, 4], Some(3));
        check(&["a", "a", "b", "c"], &[1, 3], &[2, 4], Some(4));
        check(&["a", "a", "b", "c"], &[1, 3, 4], &[2], None);
    }

    #[test]
    fn who_is_no_member_any_more_leaves_and_who_was_given_up() {
        let ids =
            |numbers: &[u128]| -> BTreeSet<Uuid> { numbers.iter().copied().map(Uuid::from_u128).collect() };
        let standing = Standing { voters: ids(&[1, 2, 3]), learners: ids(&[4]), ..Standing::default() };
        let members = members(&["a"; 4]);
        assert_eq!(next_leaver(&members, &standing), None);
        let replaced = members.replaced(Uuid::from_u128(2), &candidate(9));
        assert_eq!(next_leaver(&replaced, &standing), Some(Uuid::from_u128(2)));
        assert_eq!(
            next_learner(&replaced, &standing).map(|member| member.candidate.host_id),
            Some(Uuid::from_u128(9))
        );
        let without = members.without(&ids(&[3, 4]));
        assert_eq!((next_leaver(&without, &standing), wanted(&without)), (Some(Uuid::from_u128(3)), 2));
    }

    #[test]
    fn who_is_no_member_yet_does_not_vote() {
        check(&["a", "a"], &[1], &[2, 7], Some(2));
        check(&["a"], &[1], &[7], None);
        check(&["a"; 5], &[1, 2, 3], &[4, 5], Some(4));
    }
}
