//! Tables are made equal on all their replicas because somebody asks for it.
//!
//! ```text
//!   any thread: Repairer::repair ──► Repairs ──► the first shard: carry_out_repairs, one table at a time
//!                                                   └─ range by range of this node: compare and mend (equal.rs)
//! ```

use ring::{NodeIndex, Placement, TokenRange};
use schema::TableId;
use tokio::sync::{mpsc, oneshot};
use types::Token;

use super::{Compared, ReplicaError, RingSeat};
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

/// A table, and who waits for what comes of it.
#[derive(Debug)]
struct Asked {
    table: TableId,
    only_primary: bool,
    outcome: oneshot::Sender<Result<Compared, CoordinatorError>>,
}

/// Both ends.
pub fn repairs() -> (Repairer, Repairs) {
    let (repairer, repairs) = mpsc::channel(WAITING_MAX);
    (Repairer(repairer), Repairs(repairs))
}

impl Repairer {
    /// Makes the rows of a table equal in all ranges of which this node is a replica, or the first replica. Where there
    /// are no other replicas, nothing is compared.
    ///
    /// # Errors
    /// A replica does not live, or could not be asked or mended: what was made equal so far stays so.
    ///
    /// # Cancel safety
    /// Dropped, the table may be repaired all the same.
    pub async fn repair(&self, table: TableId, only_primary: bool) -> Result<Compared, CoordinatorError> {
        let (outcome, waits) = oneshot::channel();
        let asked = self.0.send(Asked { table, only_primary, outcome }).await;
        asked.map_err(|_| CoordinatorError::ShuttingDown)?;
        waits.await.unwrap_or(Err(CoordinatorError::ShuttingDown))
    }
}

/// Carries out what is asked for, in its order, until nobody can ask any more.
pub async fn carry_out_repairs(coordinator: Coordinator, mut repairs: Repairs) {
    while let Some(Asked { table, only_primary, outcome }) = repairs.0.recv().await {
        if outcome.is_closed() {
            continue;
        }
        let repaired = match coordinator.seat() {
            Some(seat) => repair(seat, table, only_primary).await,
            None => Ok(Compared::default()),
        };
        // Whoever asked may have gone away.
        _ = outcome.send(repaired.map_err(CoordinatorError::from));
    }
}

async fn repair(seat: &RingSeat, table: TableId, only_primary: bool) -> Result<Compared, ReplicaError> {
    let mut compared = Compared::default();
    for range in ranges_of(seat, table, only_primary) {
        match repair_range(seat, table, range).await {
            Ok(more) => compared += more,
            // It was dropped, or the other nodes are gone.
            Err(ReplicaError::NoTable) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(compared)
}

/// All its replicas must live: who asks for a repair wants to hear that they are equal.
async fn repair_range(
    seat: &RingSeat,
    table: TableId,
    range: (Token, Token),
) -> Result<Compared, ReplicaError> {
    let replicas = seat.replicas().ok_or(ReplicaError::NoTable)?;
    replicas.admit(table, range.1, Consistency::All)?;
    seat.make_range_equal(table, range, None).await
}

/// The ranges to be compared. None when this node is alone, or the table is not on the ring.
fn ranges_of(seat: &RingSeat, table: TableId, only_primary: bool) -> Vec<(Token, Token)> {
    let ranges = || {
        let replicas = seat.replicas()?;
        seat.shard().local().with_schema(|schema| {
            let placement = replicas.view.placement(&schema.keyspace_of(table)?.name)?;
            Some(ranges_at(placement, replicas.view.here(), only_primary))
        })
    };
    ranges().unwrap_or_default()
}

/// First and last tokens of the ranges that a node has together with others.
fn ranges_at(placement: &Placement, here: NodeIndex, only_primary: bool) -> Vec<(Token, Token)> {
    let is_wanted = |replicas: &[NodeIndex]| match only_primary {
        true => replicas.first() == Some(&here),
        false => replicas.contains(&here),
    };
    let wanted = placement.ranges().filter(|(_, set)| {
        let replicas = placement.replicas(*set);
        replicas.len() > 1 && is_wanted(replicas)
    });
    wanted.flat_map(|(range, _)| first_and_last(range)).collect()
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
        ranges_at(&placement(factor), NodeIndex(node), only_primary)
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
}
