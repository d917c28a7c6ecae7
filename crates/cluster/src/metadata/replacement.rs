//! Whose place a node may take.
//!
//! The place is taken as it is: with its tokens, data centre, rack and `num_tokens`, so that nothing else moves. Two
//! may be joining at the same time, as long as of no range fewer than a majority of the replicas can be read then;
//! what was lost before that, or given up, does not make it worse.

use std::net::SocketAddr;

use ring::{NodeIndex, Placement, Strategy};
use schema::Schema;
use uuid::Uuid;

use super::{Candidate, Member, MemberState, Members, Refusal};

/// The ring with a node in the place of the member at an address: the one that was found dead, if that is known.
///
/// # Errors
/// There is none, or another one, or its place can not be taken by that node, or not now.
pub(super) fn replace(
    members: &Members,
    schema: &Schema,
    candidate: &Candidate,
    (address, found_dead): (SocketAddr, Option<Uuid>),
) -> Result<Members, Refusal> {
    let refuse = |what: String| Err(Refusal::Candidate { what });
    let is_at = |address: SocketAddr| move |member: &&Member| member.candidate.address == address;
    let Some(Member { candidate: replaced, .. }) = members.list().iter().find(is_at(address)) else {
        return refuse(format!("no member of the ring is at {address}, so that nobody can take its place"));
    };
    if let Some(found_dead) = found_dead.filter(|found_dead| *found_dead != replaced.host_id) {
        return refuse(format!(
            "node {found_dead} was found dead, and at {address} there is node {} by now",
            replaced.host_id
        ));
    }
    let (was, is) = (place(replaced), place(candidate));
    if was != is {
        return refuse(format!("the place of node {} is in {was}, and not in {is}", replaced.host_id));
    }
    if let Some(there) = members.list().iter().find(is_at(candidate.address))
        && there.candidate.host_id != replaced.host_id
    {
        let (address, host_id) = (candidate.address, there.candidate.host_id);
        return refuse(format!("at {address} there is node {host_id} already, a member of the ring"));
    }
    let after = members.replaced(replaced.host_id, candidate);
    match unreadable_keyspace(members, &after, schema, candidate.host_id) {
        None => Ok(after),
        Some((keyspace, joining)) => refuse(format!(
            "node {joining} is getting its rows: if another one did, no majority of the replicas of keyspace \
             {keyspace} could be read"
        )),
    }
}

/// What of a place stays, in words.
fn place(candidate: &Candidate) -> String {
    let Candidate { data_center, rack, num_tokens, .. } = candidate;
    format!("{data_center}, {rack}, with num_tokens {num_tokens}")
}

/// A keyspace of which a range would be left without a majority that can be read, because somebody else is joining,
/// too; and who that is.
fn unreadable_keyspace<'s>(
    before: &Members,
    after: &Members,
    schema: &'s Schema,
    newcomer: Uuid,
) -> Option<(&'s str, Uuid)> {
    schema.keyspaces().values().find_map(|keyspace| {
        let strategy =
            Strategy::of(&keyspace.replication).ok().filter(|strategy| *strategy != Strategy::Local)?;
        let placement = Placement::new(after.topology().clone(), &strategy, NodeIndex(0));
        let of_centers = matches!(strategy, Strategy::NetworkTopology { .. });
        placement.ranges().find_map(|(_, set)| {
            let replicas: Vec<&Member> = placement.replicas(set).iter().map(|node| after.at(*node)).collect();
            let newcomer = replicas.iter().find(|member| member.candidate.host_id == newcomer)?;
            let center = &newcomer.candidate.data_center;
            let counted =
                replicas.iter().filter(|member| !of_centers || member.candidate.data_center == *center);
            let counted: Vec<&&Member> = counted.collect();
            let is_joining = |member: &&&&Member| {
                member.state == MemberState::Joining && member.candidate.host_id != newcomer.candidate.host_id
            };
            let joining = counted.iter().find(is_joining)?;
            let readable_count = counted.iter().filter(|member| member.state.has_rows()).count();
            let was_lost = is_lost_before(before, newcomer);
            (readable_count < counted.len() / 2 + 1 && !was_lost)
                .then_some((keyspace.name.as_str(), joining.candidate.host_id))
        })
    })
}

/// Did who had these tokens before not count any more?
fn is_lost_before(before: &Members, newcomer: &Member) -> bool {
    before.list().iter().any(|member| member.tokens == newcomer.tokens && !member.state.has_rows())
}
