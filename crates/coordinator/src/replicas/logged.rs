//! What a node has missed is sent to it from the log of the shard that has written it (decision 0031).
//!
//! The log is read from where the first missed write may stand, in its order, and what lies in a marked slot of the
//! node is sent, once (`repeats.rs`): also what it has, which changes nothing. As many messages are under way at a time
//! as the node takes without being slower than with one: clients wait behind them.
//!
//! What was emptied meanwhile is left out. A message says the epoch on which it was gathered, so a replica that has
//! emptied the table since refuses it; it has missed nothing then.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use replica::{Failure, Written};
use ring::NodeIndex;
use rows::Mutation;
use runtime::Plant;
use storage::{HeldLog, KEYS_TOGETHER, LogPosition, LoggedMutations, StorageError, Unit};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::owed::Logged;
use super::repeats::Repeats;
use super::slots::{Places, slot_of};
use super::write::{are_of_one_table, is_outdated, said_of};
use super::{Missed, Replicas, RingSeat};

/// What goes as one message: so many bytes, or as many mutations as are done in one go.
const MESSAGE_BYTES: usize = 64 << 10;
const MESSAGE_COUNT: usize = KEYS_TOGETHER;
/// So many messages are under way to one node at most.
const UNDER_WAY_MAX: usize = 16;
/// An answer that takes half as long again as the quickest one, and so much more, has waited behind others.
const SLOWER_BY: Duration = Duration::from_millis(1);
/// And so many bytes, or one message: the connection is that of clients' requests, too.
const UNDER_WAY_BYTES_MAX: usize = 1 << 20;
const _: () = assert!(
    UNDER_WAY_MAX * MESSAGE_BYTES <= UNDER_WAY_BYTES_MAX,
    "as many messages of the usual size as may be under way have room"
);
/// How long one may take to be answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// Records after which others have their turn, when none of them is sent.
const TURN_COUNT: usize = 256;

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct SentLogged {
    /// Mutations that the node has now.
    pub(super) mutation_count: u64,
    /// Their bytes.
    pub(super) byte_count: u64,
    /// The node does not answer, or has no room now: what stands from there on is to be sent later.
    pub(super) rest_from: Option<LogPosition>,
    /// What is not in the log any more, or was refused: it is to be compared.
    pub(super) refused: Places,
}

/// What is sent together.
struct Message {
    /// Where the first of it stands.
    first: LogPosition,
    byte_count: usize,
    mutations: Vec<Mutation>,
}

/// A message that was sent.
struct UnderWay {
    message: Message,
    /// How it was sent, and to whom.
    replicas: Rc<Replicas>,
    to: NodeIndex,
    deadline: Instant,
    answer: LocalBoxFuture<'static, Result<Written, Missed>>,
}

/// Sends a node what it has missed and this shard has logged.
///
/// # Errors
/// The log can not be read. Some of it may have been sent.
pub(super) async fn send_logged(
    seat: &RingSeat,
    node: Uuid,
    owed: &Logged,
) -> Result<SentLogged, StorageError> {
    let mut sent = SentLogged::default();
    let from = owed.from().unwrap_or(LogPosition::START);
    let Some(reading) = HeldLog(seat.shard().local()).read(from).await? else {
        sent.refused.add_all(owed.places());
        return Ok(sent);
    };
    let mut gathering = Gathering { reading, left: VecDeque::new(), repeats: Repeats::default() };
    let (mut under_way, mut replicas, mut pace) = (VecDeque::new(), None, Pace::default());
    while sent.rest_from.is_none() {
        if gathering.left.is_empty() {
            // Before anything is read: who has emptied a table since refuses what came before.
            replicas = seat.replicas();
        }
        let to = replicas.as_ref().and_then(|replicas| Some((replicas, replicas.view.index_of(node)?)));
        // It is no member any more.
        let Some((replicas, to)) = to else { break };
        let is_missed = |mutation: &Mutation, position: LogPosition| {
            let (table, token) = (mutation.table, mutation.key.token);
            owed.contains(table, token, position)
                && replicas.plan_of(table, token).is_some_and(|plan| plan.nodes.contains(&to))
        };
        let Some(mut message) = gathering.next_message(is_missed).await? else { break };
        if seat.marks().handoff().is_paused() {
            sent.rest_from = Some(message.first);
            break;
        }
        if replicas.has_planted(Plant::MissedUnsent) {
            message.mutations.truncate(1);
        }
        let pause = seat.marks().handoff().time_for(message.byte_count);
        under_way.push_back(message.send(replicas, to));
        while under_way.len() >= pace.under_way_max
            || under_way.len() > 1 && byte_count_of(&under_way) > UNDER_WAY_BYTES_MAX
        {
            take_in_first(&mut under_way, &mut sent, &mut pace).await;
        }
        if let Some(pause) = pause {
            sleep(pause).await;
        }
    }
    while !under_way.is_empty() {
        take_in_first(&mut under_way, &mut sent, &mut pace).await;
    }
    Ok(sent)
}

/// How many messages the node takes at a time.
struct Pace {
    under_way_max: usize,
    /// Answers since it was changed.
    answer_count: usize,
    /// How long the quickest answer took.
    quickest: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { under_way_max: 1, answer_count: 0, quickest: Duration::MAX }
    }
}

impl Pace {
    /// An answer took so long. When all that were under way were quick, it is one message more; half of them when one
    /// was not.
    fn note(&mut self, took: Duration) {
        self.quickest = self.quickest.min(took);
        self.answer_count += 1;
        if took > self.quickest * 3 / 2 + SLOWER_BY {
            (self.under_way_max, self.answer_count) = ((self.under_way_max / 2).max(1), 0);
        } else if self.answer_count >= self.under_way_max {
            (self.under_way_max, self.answer_count) = ((self.under_way_max + 1).min(UNDER_WAY_MAX), 0);
        }
    }
}

/// Mutations as they come out of the log.
struct Gathering {
    reading: LoggedMutations,
    /// Of a record that had more than one message takes, each with its place.
    left: VecDeque<(LogPosition, Mutation)>,
    repeats: Repeats,
}

impl Gathering {
    /// The next of what was missed; `None` at the end of the log.
    ///
    /// # Errors
    /// The log can not be read.
    async fn next_message(
        &mut self,
        is_missed: impl Fn(&Mutation, LogPosition) -> bool,
    ) -> Result<Option<Message>, StorageError> {
        let (mut record_count, is_to_be_filled) = (0, self.left.is_empty());
        while is_to_be_filled && self.left.len() < MESSAGE_COUNT && self.byte_count() < MESSAGE_BYTES {
            let Some(logged) = self.reading.next().await? else { break };
            let is_sent =
                |mutation: &Mutation| is_missed(mutation, logged.position) && self.repeats.is_new(mutation);
            let missed = logged.mutations.into_iter().filter(is_sent);
            self.left.extend(missed.map(|mutation| (logged.position, mutation)));
            record_count += 1;
            if record_count % TURN_COUNT == 0 {
                tokio::task::yield_now().await;
            }
        }
        let Some((first, _)) = self.left.front() else { return Ok(None) };
        let mut message = Message { first: *first, byte_count: 0, mutations: Vec::new() };
        while message.mutations.len() < MESSAGE_COUNT
            && message.byte_count < MESSAGE_BYTES
            && let Some((_, mutation)) = self.left.pop_front()
        {
            message.byte_count += mutation.as_encoded().len();
            message.mutations.push(mutation);
        }
        Ok(Some(message))
    }

    fn byte_count(&self) -> usize {
        self.left.iter().map(|(_, mutation)| mutation.as_encoded().len()).sum()
    }
}

impl Message {
    /// Sends it, at once.
    fn send(self, replicas: &Rc<Replicas>, to: NodeIndex) -> UnderWay {
        let deadline = Instant::now() + PATIENCE;
        let answer = replicas.begin_write(to, Unit::Each, &self.mutations, deadline);
        UnderWay { message: self, replicas: Rc::clone(replicas), to, deadline, answer }
    }
}

fn byte_count_of(under_way: &VecDeque<UnderWay>) -> usize {
    under_way.iter().map(|one| one.message.byte_count).sum()
}

/// Waits for the answer to the message that was sent first. If the node had room for some of it, the rest goes at once,
/// on the same epoch: it makes room before it answers.
async fn take_in_first(under_way: &mut VecDeque<UnderWay>, sent: &mut SentLogged, pace: &mut Pace) {
    let Some(UnderWay { message, replicas, to, deadline, answer }) = under_way.pop_front() else { return };
    let written = timeout_at(deadline, answer).await.unwrap_or(Err(Missed::Silent { was_sent: true }));
    pace.note(PATIENCE.saturating_sub(deadline.saturating_duration_since(Instant::now())));
    let is_some_done = written.as_ref().is_ok_and(|written| !written.done.is_empty());
    let is_of_one_table = are_of_one_table(message.mutations.iter().map(|mutation| mutation.table));
    let mut rest = Message { first: message.first, byte_count: 0, mutations: Vec::new() };
    for (index, mutation) in message.mutations.into_iter().enumerate() {
        let (said, byte_count) = (said_of(&written, index), mutation.as_encoded().len());
        match said {
            Ok(()) => {
                sent.mutation_count += 1;
                sent.byte_count += byte_count as u64;
            }
            // There is nothing that it could have.
            _ if is_of_one_table && is_outdated(&said) => {}
            // Of another table it could, and it goes again when this node has emptied its own, too.
            _ if is_outdated(&said) => _ = sent.rest_from.get_or_insert(message.first),
            Err(Missed::Failed(Failure::Overloaded { .. })) if is_some_done => {
                rest.byte_count += byte_count;
                rest.mutations.push(mutation);
            }
            Err(Missed::Silent { .. } | Missed::Failed(Failure::Overloaded { .. })) => {
                _ = sent.rest_from.get_or_insert(message.first);
            }
            Err(Missed::Failed(_)) => {
                _ = sent.refused.insert(mutation.table, slot_of(mutation.key.token));
            }
        }
    }
    if !rest.mutations.is_empty() {
        under_way.push_front(rest.send(&replicas, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_under_way_as_long_as_answers_are_quick() {
        let mut pace = Pace::default();
        let mut note = |millis: u64, count: usize| {
            (0..count).for_each(|_| pace.note(Duration::from_millis(millis)));
            pace.under_way_max
        };
        assert_eq!(note(10, 1), 2);
        assert_eq!(note(12, 2), 3, "after as many answers as were under way");
        assert_eq!(note(12, 2), 3);
        assert_eq!(note(10, 1_000), UNDER_WAY_MAX);
        assert_eq!(note(40, 1), UNDER_WAY_MAX / 2);
        assert_eq!(note(40, 100), 1, "one is always under way");
    }
}
