//! What it costs clients of conditional changes when the node is killed that decides about their partition.
//!
//! Each of some partitions is changed by two clients, who ask the nodes that stay; a third of them, or so, is decided
//! by the node that is killed. Of each it is noted when a change was made, and the longest time in which none was is
//! told.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use protocol::{Consistency, Response};
use tokio::time::{Instant, sleep};

use super::super::World;
use super::super::visitor::Visitor;
use super::scenes::{BEFORE, HIT, WATCHED, tell};
use crate::scenario::Violation;

const PARTITIONS: usize = 8;
/// Of each partition: one for each node that stays.
const STAYING: [usize; 2] = [0, 2];
/// Between two changes of a client.
const PAUSE: Duration = Duration::from_millis(10);
/// No partition is without a change for longer.
const GAP_MAX: Duration = Duration::from_millis(200);

/// When changes of a partition were made.
type Made = Rc<RefCell<Vec<Instant>>>;

/// Kills the node; tells the figure if it is out of its bound.
pub(super) async fn play(world: &Rc<World>) -> Result<Option<String>, Violation> {
    let (is_over, mut partitions) = (Rc::new(Cell::new(false)), Vec::<Made>::new());
    for partition in 0..PARTITIONS {
        let made = Made::default();
        for node in STAYING {
            let visitor = Visitor::new(world, (110 + 2 * partition + node / 2) as u8);
            let (made, is_over) = (Rc::clone(&made), Rc::clone(&is_over));
            let changing = async move { change(&visitor, (partition, node), &made, &is_over).await };
            runtime::spawn_local("a client of conditional changes", Box::pin(changing));
        }
        partitions.push(made);
    }
    sleep(BEFORE).await;
    let before = longest_gap(&partitions, BEFORE / 2);
    world.kill_one(HIT).await;
    sleep(WATCHED).await;
    is_over.set(true);
    let gap = longest_gap(&partitions, WATCHED);
    let what = format!(
        "Killed: a partition was without a conditional change for {} ms at most, and for {} ms before",
        gap.as_millis(),
        before.as_millis()
    );
    Ok(tell(world, gap <= GAP_MAX, what))
}

/// Changes a partition through a node, over and over.
async fn change(visitor: &Visitor, (partition, node): (usize, usize), made: &Made, is_over: &Cell<bool>) {
    // Of keys that nobody else writes.
    let key = super::load::KEY_COUNT + partition;
    let statement = format!("UPDATE load.rows SET v = 1 WHERE k = {key} IF EXISTS");
    while !is_over.get() {
        let answer = visitor.ask(node, &statement, Consistency::Quorum).await;
        if matches!(answer, Ok(Response::Rows(_))) {
            made.borrow_mut().push(Instant::now());
        }
        sleep(PAUSE).await;
    }
}

/// The longest time without a change in any partition, in the time that has just passed.
fn longest_gap(partitions: &[Made], passed: Duration) -> Duration {
    let (now, from) = (Instant::now(), Instant::now() - passed);
    let of_partition = |made: &Made| {
        let made = made.borrow();
        let times = made.iter().copied().filter(|when| *when > from).chain([now]);
        let (longest, _) =
            times.fold((Duration::ZERO, from), |(longest, last), when| (longest.max(when - last), when));
        longest
    };
    partitions.iter().map(of_partition).max().unwrap_or_default()
}
