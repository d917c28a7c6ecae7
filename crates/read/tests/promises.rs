//! What consumers of rows are promised by whoever reads: each promise is broken, and seen to be.

use std::sync::Arc;

use read::{
    Begun, Digester, LivePage, ReadColumns, ReadCommand, ReadTarget, RowConsumer, TombstoneThresholds,
    UnfilteredRows, merge_answers,
};
use rows::{Clustering, DeletionTime, Liveness, PartitionKey, RingRange, Row, RowBuilder};
use schema::{ColumnId, ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;

const NONE: TombstoneThresholds = TombstoneThresholds::NONE;

fn table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(uuid::Uuid::from_u128(1)), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Int);
    Arc::new(table.build().expect("a sound table"))
}

/// A read of everything, of so many rows.
fn command(row_count: u32) -> ReadCommand {
    let mut command = ReadCommand::new(table(), ReadTarget::Range(RingRange::ALL), 1);
    command.limits.row_count = row_count;
    command
}

fn key(number: u8) -> PartitionKey {
    PartitionKey::new(vec![0, 0, 0, number].into())
}

fn row() -> Row {
    RowBuilder::new(&Clustering::EMPTY, Liveness::at(1), DeletionTime::LIVE).finish()
}

fn begin<C: RowConsumer>(consumer: &mut C, number: u8) {
    let begun = Begun { key: key(number), deletion: DeletionTime::LIVE, static_row: None, resumed: None };
    assert!(consumer.begin(begun).expect("begun"));
}

fn take_row<C: RowConsumer>(consumer: &mut C) -> bool {
    let seen = consumer.see(read::Place::Begun, row()).expect("few tombstones").expect("it lives");
    consumer.take_row(seen).expect("taken")
}

/// A page of one row is full, and is given another partition.
fn go_on_when_full<C: RowConsumer>(mut consumer: C) {
    begin(&mut consumer, 1);
    assert!(take_row(&mut consumer));
    begin(&mut consumer, 2);
}

#[test]
#[should_panic(expected = "a page that has ended takes no more")]
fn a_page_of_live_rows_that_is_full_is_given_no_more() {
    go_on_when_full(LivePage::new(&command(1), NONE));
}

#[test]
#[should_panic(expected = "a page that has ended takes no more")]
fn a_page_of_single_rows_that_is_full_is_given_no_more() {
    let command = command(1);
    let mut page = LivePage::new(&command, NONE);
    assert!(page.take_single_row(key(1), DeletionTime::LIVE, Some(row())).expect("taken"));
    _ = page.take_single_row(key(2), DeletionTime::LIVE, Some(row()));
}

#[test]
#[should_panic(expected = "a page that has ended takes no more")]
fn an_answer_to_a_replica_that_is_full_is_given_no_more() {
    go_on_when_full(UnfilteredRows::new(&command(1), NONE));
}

#[test]
#[should_panic(expected = "a page that has ended takes no more")]
fn a_hash_that_is_full_is_given_no_more() {
    go_on_when_full(Digester::new(&command(1), NONE));
}

/// The page is finished within a partition that has a row.
fn finish_early<C: RowConsumer>(mut consumer: C) {
    begin(&mut consumer, 1);
    assert!(!take_row(&mut consumer));
    consumer.finish();
}

#[test]
#[should_panic(expected = "the last partition is ended before the page is")]
fn rows_of_a_partition_that_goes_on_are_not_lost_to_a_page() {
    finish_early(LivePage::new(&command(9), NONE));
}

#[test]
#[should_panic(expected = "the last partition is ended before the page is")]
fn rows_of_a_partition_that_goes_on_are_not_lost_to_a_replica() {
    finish_early(UnfilteredRows::new(&command(9), NONE));
}

#[test]
#[should_panic(expected = "all that was hashed of a partition is in the page's hash")]
fn rows_of_a_partition_that_goes_on_are_not_lost_to_a_hash() {
    finish_early(Digester::new(&command(9), NONE));
}

/// A partition of which a row is wanted gives two.
fn take_one_too_many<'c, C: RowConsumer>(command: &'c mut ReadCommand, consumer: fn(&'c ReadCommand) -> C) {
    command.limits.rows_per_partition = 1;
    let mut consumer = consumer(command);
    begin(&mut consumer, 1);
    assert!(!take_row(&mut consumer) && !consumer.wants_more());
    take_row(&mut consumer);
}

#[test]
#[should_panic(expected = "a partition gives no more rows than it may")]
fn a_page_is_given_no_more_rows_of_a_partition_than_are_asked_for() {
    take_one_too_many(&mut command(9), |command| LivePage::new(command, NONE));
}

#[test]
#[should_panic(expected = "a partition gives no more rows than it may")]
fn a_replica_is_given_no_more_rows_of_a_partition_than_are_asked_for() {
    take_one_too_many(&mut command(9), |command| UnfilteredRows::new(command, NONE));
}

#[test]
#[should_panic(expected = "the columns that are asked for ascend")]
fn columns_that_would_not_be_found_are_not_asked_for() {
    let columns = ReadColumns::Some(Arc::from([ColumnId(2), ColumnId(1)]));
    LivePage::new(&ReadCommand { columns, ..command(9) }, NONE);
}

#[test]
#[should_panic(expected = "answers are merged in the order of the ring")]
fn answers_to_keys_in_another_order_are_not_merged() {
    let mut keys = vec![key(1), key(2)];
    keys.sort_by(|one, other| other.cmp(one));
    let target = ReadTarget::Keys(keys);
    let command = ReadCommand { target, ..command(9) };
    _ = merge_answers(&command, [], LivePage::new(&command, NONE));
}
