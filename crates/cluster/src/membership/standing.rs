//! A member that is one no more learns it, and ends: by its own log, or though nobody sends it that, for it hears of no
//! leader and asks the others. Its data would else be shown by whoever asks it alone.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;

use super::message::{Question, Reply, Said, ask};
use super::presence::Claims;
use super::{Known, MembershipError};
use crate::metadata::{Candidate, MemberState, MetadataMachine};
use crate::raft::Agreement;

/// So often it is looked whether there is a leader.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long others may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns when this node was a member and is one no more.
pub(super) async fn is_over(
    known: &Known,
    agreement: &Agreement<MetadataMachine>,
    claims: &Claims,
) -> MembershipError {
    // Before that it is one that comes in.
    known.is_member().await;
    tokio::select! {
        biased;
        () = known.wait_until(is_left_out) => MembershipError::LeftOut,
        removed = others_say_so(known, agreement, claims) => removed,
    }
}

/// Does what this node knows of the ring say so?
fn is_left_out(known: &Known) -> bool {
    let Some(members) = known.members() else { return false };
    members.get(known.host_id()).is_none_or(|member| member.state == MemberState::Lost)
}

/// Returns when another member says so.
async fn others_say_so(
    known: &Known,
    agreement: &Agreement<MetadataMachine>,
    claims: &Claims,
) -> MembershipError {
    loop {
        sleep(INTERVAL).await;
        // Also who led is asked about: it does not know that others elect one.
        let hears_leader = agreement.standing().leader.is_some_and(|leader| known.other(leader).is_alive());
        if !hears_leader && let Some(by) = who_knows_better(known, agreement, claims).await {
            return MembershipError::Removed { by: by.host_id, address: by.address };
        }
    }
}

/// A member that has come farther, and for which this node is none.
async fn who_knows_better(
    known: &Known,
    agreement: &Agreement<MetadataMachine>,
    claims: &Claims,
) -> Option<Candidate> {
    let members = known.members()?;
    let own_epoch = members.epoch();
    let others = members.list().iter().filter(|member| member.candidate.host_id != known.host_id());
    let asked = others.map(|member| {
        let peer = agreement.peer(member.candidate.host_id, claims.address_of(member));
        async move {
            match ask(&peer, &Said::Question(Question::Standing), PATIENCE).await? {
                // One that is behind may not know yet that this node is a member.
                Reply::Standing { ring_epoch, is_member: false } if ring_epoch > own_epoch => {
                    Some(member.candidate.clone())
                }
                _ => None,
            }
        }
    });
    join_all(asked).await.into_iter().flatten().next()
}
