//! Rows from cursors that need not wait, and answers of several replicas made one.

use std::convert::Infallible;

use rows::{MergeCursor, MergeLack, PartitionHeader, Step, Unfiltered, UnfilteredCursor};

use crate::{Begun, Place, ReadCommand, ReadError, ReadTarget, RowConsumer, UnfilteredPage};

/// Gives what answers of several replicas make to a consumer. They are answers to one command, of a range or of one
/// key, and merged as far as they are given: what a replica has told no further is only known up to the least of their
/// positions.
///
/// # Errors
/// As those of the consumer.
///
/// # Panics
/// When the command is of several keys: these are in the order that was asked for, which merging takes for the ring's.
pub fn merge_answers<C: RowConsumer>(
    command: &ReadCommand,
    answers: impl IntoIterator<Item = UnfilteredPage>,
    mut consumer: C,
) -> Result<C::Answer, ReadError> {
    let is_of_several = matches!(&command.target, ReadTarget::Keys(keys) if keys.len() > 1);
    assert!(!is_of_several, "answers to several keys are merged key by key");
    let reversed = command.reversed && matches!(command.target, ReadTarget::Keys(_));
    let cursors = answers.into_iter().map(UnfilteredPage::cursor);
    let mut merged = MergeCursor::new(command.table.clone(), reversed, cursors);
    while let Some(step) = next_step(&mut merged) {
        let is_full = match step {
            Step::Header(header) => consumer.end() || !begin(command, header, &mut consumer)?,
            Step::Item(_) if !consumer.wants_more() => false,
            Step::Item(Unfiltered::Marker(marker)) => consumer.take_marker(marker)?,
            Step::Item(Unfiltered::Row(row)) => match consumer.see(Place::Begun, row)? {
                Some(row) => consumer.take_row(row)?,
                None => false,
            },
            Step::Need(never) => match never {},
            Step::End => true,
        };
        if is_full {
            return Ok(consumer.finish());
        }
    }
    consumer.end();
    if let ReadTarget::Keys(keys) = &command.target {
        keys.iter().for_each(|key| consumer.leave(key));
    }
    Ok(consumer.finish())
}

/// The next step of a merge, in which nothing is waited for.
fn next_step<C>(merged: &mut MergeCursor<C>) -> Option<Step<Infallible>>
where
    C: UnfilteredCursor<Need = Infallible, Error = Infallible>,
{
    loop {
        let Ok(step) = merged.step();
        match step {
            Step::Header(header) => return Some(Step::Header(header)),
            Step::Item(item) => return Some(Step::Item(item)),
            Step::End => return None,
            Step::Need(MergeLack::Merged(versions)) => merged.merge_here(*versions),
            Step::Need(MergeLack::Source(never)) => match never {},
        }
    }
}

/// Begins a partition; `false` when there is no room for it.
fn begin<C: RowConsumer>(
    command: &ReadCommand,
    header: PartitionHeader,
    consumer: &mut C,
) -> Result<bool, ReadError> {
    let PartitionHeader { key, deletion, static_row } = header;
    let static_row = match static_row {
        Some(row) => consumer.see(Place::Key(&key), row)?,
        None => None,
    };
    let resumed = command.resumed_in(&key);
    consumer.begin(Begun { key, deletion, static_row, resumed })
}
