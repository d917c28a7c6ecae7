//! Tables are made equal on all their replicas because somebody asks for it.
//!
//! ```text
//!   any thread: Repairer::repair ──► Repairs ──► the first shard: carry_out_repairs, one table at a time
//!                                                   └─ range by range of this node: compare and mend (equal.rs)
//! ```

use std::collections::BTreeSet;

use ring::{NodeIndex, Placement, TokenRange};
use schema::TableId;
use tokio::sync::{mpsc, oneshot};
use types::Token;
use uuid::Uuid;

use super::equal::make_range_equal_now;
use super::view::{Plan, RingView};
use super::{Compared, Participants, ReplicaError, RingSeat};
use crate::{Consistency, Coordinator, CoordinatorError};

/// So many tables wait for their turn; whoever asks for more waits for room.
const WAITING_MAX: usize = 16;
/// The least token belongs to nobody.
pub(super) const FIRST_TOKEN: Token = Token(i64::MIN + 1);

/// Asks for repairs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Repairer(mpsc::Sender<Asked>);

/// What repairs are asked for on this node.
#[derive(Debug)]
pub struct Repairs(mpsc::Receiver<Asked>);

/// What is repaired of a table, and on which nodes. By default all of which a node is a replica, on all replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairExtent {
    /// Only ranges of which the node is the first replica, of those that are meant.
    pub only_primary: bool,
    /// Only what lies in this part of the ring.
    pub tokens: Option<TokenRange>,
    /// Only on these nodes. Ranges of which not two are replicas are left out.
    pub nodes: Option<BTreeSet<Uuid>>,
    /// A range of which not two of `nodes` are replicas is an error, instead of being left out.
    pub must_share: bool,
    /// On those that live, instead of refusing where one does not.
    pub only_living: bool,
}

/// A table, and who waits for what comes of it.
#[derive(Debug)]
struct Asked {
    table: TableId,
    extent: RepairExtent,
    outcome: oneshot::Sender<Result<Compared, CoordinatorError>>,
}

/// Both ends.
pub fn repairs() -> (Repairer, Repairs) {
    let (repairer, repairs) = mpsc::channel(WAITING_MAX);
    (Repairer(repairer), Repairs(repairs))
}

impl Repairer {
    /// Makes the rows of a table equal in ranges of which this node is a replica. Where there are no other replicas,
    /// nothing is compared.
    ///
    /// # Errors
    /// The nodes that are meant do not share a range; or one of them does not live, or could not be asked or mended:
    /// what was made equal so far stays so.
    ///
    /// # Cancel safety
    /// Dropped, the table may be repaired all the same.
    pub async fn repair(&self, table: TableId, extent: RepairExtent) -> Result<Compared, CoordinatorError> {
        let (outcome, waits) = oneshot::channel();
        let asked = self.0.send(Asked { table, extent, outcome }).await;
        asked.map_err(|_| CoordinatorError::ShuttingDown)?;
        waits.await.unwrap_or(Err(CoordinatorError::ShuttingDown))
    }
}

/// Carries out what is asked for, in its order, until nobody can ask any more.
pub async fn carry_out_repairs(coordinator: Coordinator, mut repairs: Repairs) {
    while let Some(Asked { table, extent, outcome }) = repairs.0.recv().await {
        if outcome.is_closed() {
            continue;
        }
        let repaired = match coordinator.seat() {
            Some(seat) => repair(seat, table, &extent).await,
            None => Ok(Compared::default()),
        };
        // Whoever asked may have gone away.
        _ = outcome.send(repaired);
    }
}

async fn repair(
    seat: &RingSeat,
    table: TableId,
    extent: &RepairExtent,
) -> Result<Compared, CoordinatorError> {
    let mut compared = Compared::default();
    for range in ranges_of(seat, table, extent)? {
        match repair_range(seat, table, range, extent).await {
            Ok(more) => compared += more,
            // It was dropped, or the other nodes are gone.
            Err(ReplicaError::NoTable) => break,
            // All the others are away, and who asks knows that some may be.
            Err(ReplicaError::Unavailable { .. }) if extent.only_living => compared.partial_count += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(compared)
}

/// All its replicas that are meant must live: who asks for a repair wants to hear that they are equal.
async fn repair_range(
    seat: &RingSeat,
    table: TableId,
    range: (Token, Token),
    extent: &RepairExtent,
) -> Result<Compared, ReplicaError> {
    let on = extent.nodes.as_ref().map_or(Participants::All, Participants::These);
    if !extent.only_living {
        let replicas = seat.replicas().ok_or(ReplicaError::NoTable)?;
        let (plan, _) = replicas.admit(table, range.1, Consistency::One)?;
        check_live(&replicas.view, &plan, on)?;
    }
    let replicas = seat.replicas().ok_or(ReplicaError::NoTable)?;
    make_range_equal_now(&replicas, table, range, on).await
}

/// Do those replicas live on which rows are to be made equal? One that is getting its rows need not.
///
/// # Errors
/// `Unavailable`.
fn check_live(view: &RingView, plan: &Plan<'_>, on: Participants<'_>) -> Result<(), ReplicaError> {
    let is_meant = |node: &&NodeIndex| view.has_rows(**node) && on.takes_in(view.host_of(**node));
    let meant = || plan.nodes.iter().filter(is_meant);
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (required, alive) = (meant().count(), meant().filter(|node| view.is_alive(**node)).count());
    let (consistency, required, alive) = (Consistency::All, count(required), count(alive));
    if alive < required { Err(ReplicaError::Unavailable { consistency, required, alive }) } else { Ok(()) }
}

/// The ranges to be compared. None when this node is alone, or the table is not on the ring.
///
/// # Errors
/// `RingRefuses`: nodes that are to share them do not.
fn ranges_of(
    seat: &RingSeat,
    table: TableId,
    extent: &RepairExtent,
) -> Result<Vec<(Token, Token)>, CoordinatorError> {
    let Some(replicas) = seat.replicas() else { return Ok(Vec::new()) };
    let is_meant = |node: NodeIndex| {
        extent.nodes.as_ref().is_none_or(|nodes| nodes.contains(&replicas.view.host_of(node)))
    };
    let ranges = seat.shard().local().with_schema(|schema| {
        let placement = replicas.view.placement(&schema.keyspace_of(table)?.name)?;
        Some(ranges_at(placement, replicas.view.here(), extent, is_meant))
    });
    ranges.unwrap_or(Ok(Vec::new()))
}

/// First and last tokens of the ranges that a node has together with others that are meant.
fn ranges_at(
    placement: &Placement,
    here: NodeIndex,
    extent: &RepairExtent,
    is_meant: impl Fn(NodeIndex) -> bool,
) -> Result<Vec<(Token, Token)>, CoordinatorError> {
    // The first of those that are meant: of a data centre, each part of the ring has one there.
    let is_wanted = |replicas: &[NodeIndex]| match extent.only_primary {
        true => replicas.iter().find(|node| is_meant(**node)) == Some(&here),
        false => replicas.contains(&here),
    };
    let mut ranges = Vec::new();
    for (range, set) in placement.ranges() {
        let replicas = placement.replicas(set);
        if replicas.len() < 2 || !is_wanted(replicas) {
            continue;
        }
        let parts: Vec<_> =
            first_and_last(range).flat_map(|part| parts_within(part, extent.tokens)).collect();
        if replicas.iter().filter(|node| is_meant(**node)).count() >= 2 {
            ranges.extend(parts);
        } else if extent.must_share && !parts.is_empty() {
            return Err(not_shared(range));
        }
    }
    Ok(ranges)
}

/// In Cassandra's words (`ActiveRepairService.getNeighbors` of 5.0).
fn not_shared(TokenRange { start, end }: TokenRange) -> CoordinatorError {
    let what = format!(
        "Specified hosts do not share range ({},{}] needed for repair. Either restrict repair ranges with -st/-et \
         options, or specify one of the neighbors that share this range with this node",
        start.0, end.0
    );
    CoordinatorError::RingRefuses { what }
}

/// What of a range without a break lies in a part of the ring, if one is given.
fn parts_within(
    (first, last): (Token, Token),
    tokens: Option<TokenRange>,
) -> impl Iterator<Item = (Token, Token)> {
    let whole = tokens.is_none().then_some((first, last));
    let within = tokens.into_iter().flat_map(first_and_last);
    let parts = within.map(move |(begin, end)| (first.max(begin), last.min(end)));
    whole.into_iter().chain(parts.filter(|(first, last)| first <= last))
}

/// In two parts when it goes around the end of the ring.
fn first_and_last(TokenRange { start, end }: TokenRange) -> impl Iterator<Item = (Token, Token)> {
    let behind_start = Token(start.0.saturating_add(1));
    let parts = match start < end {
        true => [Some((behind_start, end)), None],
        false => [
            (start < Token::MAX).then_some((behind_start, Token::MAX)),
            (end >= FIRST_TOKEN).then_some((FIRST_TOKEN, end)),
        ],
    };
    parts.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ring::{Grid, Node, Strategy, Topology};
    use uuid::Uuid;

    use super::*;

    /// Where three nodes with two tokens each have a keyspace with so many replicas.
    fn placement(factor: u32) -> Placement {
        let grid = Grid::COARSEST;
        let node = |number: u16| {
            let slots = [usize::from(number) * 700 + 7, usize::from(number) * 500 + 2_500];
            Node {
                host_id: Uuid::from_u128(u128::from(number) + 1),
                data_center: "dc1".to_owned(),
                rack: "r1".to_owned(),
                num_tokens: 2,
                tokens: slots.map(|slot| grid.last_token(slot)).to_vec(),
            }
        };
        let topology = Topology::new(grid, (0..3).map(node).collect()).expect("a topology");
        Placement::new(Arc::new(topology), &Strategy::Simple { factor }, NodeIndex(0))
    }

    fn ranges(factor: u32, node: u16, only_primary: bool) -> Vec<(Token, Token)> {
        let extent = RepairExtent { only_primary, ..RepairExtent::default() };
        ranges_at(&placement(factor), NodeIndex(node), &extent, |_| true).expect("nobody has to share them")
    }

    #[test]
    fn primary_ranges_of_all_nodes_are_the_ring_and_none_is_there_twice() {
        for factor in [2, 3] {
            let mut all: Vec<_> = (0..3).flat_map(|node| ranges(factor, node, true)).collect();
            all.sort_unstable();
            // Six tokens, and the range that goes around the end is cut in two.
            assert_eq!(all.len(), 7);
            assert_eq!((all[0].0, all[6].1), (FIRST_TOKEN, Token::MAX));
            assert!(all.windows(2).all(|pair| pair[0].1.0 + 1 == pair[1].0.0), "{all:?}");
        }
    }

    #[test]
    fn a_node_repairs_what_it_has_and_others_have_too() {
        assert_eq!(ranges(3, 1, false).len(), 7, "everything");
        let all: usize = (0..3).map(|node| ranges(2, node, false).len()).sum();
        assert_eq!(all, 2 * 7, "each range at both of its replicas");
        assert!(ranges(2, 0, true).iter().all(|range| ranges(2, 0, false).contains(range)));
        assert_eq!(ranges(1, 0, false), [], "nobody else has it");
    }

    #[test]
    fn a_range_around_the_end_is_cut_in_two() {
        let cut = |start, end| {
            first_and_last(TokenRange { start: Token(start), end: Token(end) }).collect::<Vec<_>>()
        };
        assert_eq!(cut(-5, 7), [(Token(-4), Token(7))]);
        assert_eq!(cut(7, -5), [(Token(8), Token::MAX), (FIRST_TOKEN, Token(-5))]);
        assert_eq!(cut(i64::MAX, 0), [(FIRST_TOKEN, Token(0))]);
        assert_eq!(cut(3, 3), [(Token(4), Token::MAX), (FIRST_TOKEN, Token(3))], "the whole ring");
    }

    /// What node 0 repairs of a keyspace with two replicas in a part of the ring.
    fn ranges_within(start: i64, end: i64) -> Vec<(Token, Token)> {
        let tokens = Some(TokenRange { start: Token(start), end: Token(end) });
        let extent = RepairExtent { tokens, ..RepairExtent::default() };
        ranges_at(&placement(2), NodeIndex(0), &extent, |_| true).expect("nobody has to share them")
    }

    #[test]
    fn two_parts_of_the_ring_together_are_all_of_it() {
        let token_count = |ranges: &[(Token, Token)]| -> i128 {
            ranges.iter().map(|(first, last)| i128::from(last.0) - i128::from(first.0) + 1).sum()
        };
        let all = token_count(&ranges(2, 0, false));
        for (start, end) in [(-5, 7), (i64::MIN, 0), (1 << 62, i64::MAX), (-1 << 61, 1 << 62)] {
            let (inside, around) = (ranges_within(start, end), ranges_within(end, start));
            assert_eq!(token_count(&inside) + token_count(&around), all, "{start} to {end}");
            let is_inside =
                |(first, last): &(Token, Token)| first.0 > start && last.0 <= end && first <= last;
            assert!(inside.iter().all(is_inside), "{inside:?}");
        }
    }

    #[test]
    fn ranges_that_the_nodes_do_not_share_are_left_out_or_told() {
        let of = |nodes: &[u16], must_share| {
            let extent = RepairExtent { must_share, ..RepairExtent::default() };
            ranges_at(&placement(2), NodeIndex(0), &extent, |node| nodes.contains(&node.0))
        };
        let with = |nodes: &[u16]| of(nodes, false).expect("nobody has to share them").len();
        let all = ranges(2, 0, false).len();
        assert!(with(&[0, 1]) > 0 && with(&[0, 2]) > 0);
        assert_eq!((with(&[0, 1]) + with(&[0, 2]), with(&[0]), with(&[0, 1, 2])), (all, 0, all));
        let told = of(&[0, 1], true).expect_err("node 2 shares some").to_string();
        assert!(told.starts_with("Specified hosts do not share range ("), "{told}");
        assert!(of(&[0, 1, 2], true).is_ok());
    }

    /// Nodes of one data centre, while the first replica of many parts is elsewhere.
    #[test]
    fn primary_ranges_of_the_nodes_that_are_meant_are_the_ring() {
        let extent = RepairExtent { only_primary: true, ..RepairExtent::default() };
        let of = |node| {
            let ranges = ranges_at(&placement(3), NodeIndex(node), &extent, |node| [1, 2].contains(&node.0));
            ranges.expect("nobody has to share them")
        };
        let mut all = [of(1), of(2)].concat();
        all.sort_unstable();
        assert_eq!((all[0].0, all[all.len() - 1].1), (FIRST_TOKEN, Token::MAX));
        assert!(all.windows(2).all(|pair| pair[0].1.0 + 1 == pair[1].0.0), "{all:?}");
        assert!(!of(1).is_empty() && !of(2).is_empty());
    }
}
