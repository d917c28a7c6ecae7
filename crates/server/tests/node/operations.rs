//! Requests with an id: sent again, they are not done again. In a ring the simulator's rivals do so, under faults.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use protocol::{CellReader, ErrorKind, RequestEnvelope, Response};
use types::uuid as time_uuid;

use super::support::{Client, Node, request};

/// An id that was made that long ago, the `number`-th of this test.
fn id(number: u64, age: Duration) -> [u8; 16] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let millis = i64::try_from((now - age).as_millis()).expect("a time");
    time_uuid::from_ticks(time_uuid::ticks_at_millis(millis), number)
}

fn new_id(number: u64) -> [u8; 16] {
    id(number, Duration::ZERO)
}

fn ask_with(client: &mut Client, text: &str, payload: &[u8]) -> Response {
    let custom_payload = Some(vec![("operation-id".to_owned(), Some(Bytes::copy_from_slice(payload)))]);
    client.call(RequestEnvelope { custom_payload, ..request(text).into() }).response
}

/// The cells of the first row of an answer.
fn row_of(response: &Response) -> Vec<Option<Bytes>> {
    let Response::Rows(rows) = response else { panic!("{response:?}") };
    let cells = CellReader::new(rows.cells.clone()).collect::<Result<Vec<_>, _>>().expect("cells");
    let column_count = cells.len() / usize::try_from(rows.row_count).expect("rows").max(1);
    cells.into_iter().take(column_count).collect()
}

fn int(number: i32) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(&number.to_be_bytes()))
}

fn with_tables() -> (Node, Client) {
    let node = Node::start();
    let mut client = node.client();
    client.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.query("CREATE TABLE k.t (k int PRIMARY KEY, v int)");
    client.query("CREATE TABLE k.c (k int PRIMARY KEY, n counter)");
    (node, client)
}

#[test]
fn what_came_of_a_condition_is_told_again() {
    let (node, mut client) = with_tables();
    let (applied, refused) = ([Some(Bytes::from_static(&[1]))], Some(Bytes::from_static(&[0])));
    let (insert, update) =
        ("INSERT INTO k.t (k, v) VALUES (1, 1) IF NOT EXISTS", "UPDATE k.t SET v = 2 WHERE k = 1 IF v = 1");
    let (first, second) = (new_id(1), new_id(2));
    assert_eq!(row_of(&ask_with(&mut client, insert, &first)), applied);
    assert_eq!(row_of(&ask_with(&mut client, insert, &first)), applied, "it is his own");
    let others = row_of(&ask_with(&mut client, insert, &new_id(3)));
    assert_eq!(others, [refused.clone(), int(1), int(1)], "another one asks");
    assert_eq!(row_of(&ask_with(&mut client, update, &second)), applied);
    let third = new_id(4);
    let refusal = [refused, int(2)];
    assert_eq!(row_of(&ask_with(&mut client, update, &third)), refusal);
    // Now it would hold; but it was refused.
    client.query("UPDATE k.t SET v = 1 WHERE k = 1");
    assert_eq!(row_of(&ask_with(&mut client, update, &third)), refusal);
    let node = node.restart();
    let mut client = node.client();
    assert_eq!(row_of(&ask_with(&mut client, update, &third)), refusal, "it is on the disk");
    assert_eq!(row_of(&ask_with(&mut client, update, &second)), applied);
}

#[test]
fn what_is_added_to_counters_under_one_id_is_counted_once() {
    let (_node, mut client) = with_tables();
    let count = |client: &mut Client, text: &str, id: [u8; 16]| match ask_with(client, text, &id) {
        Response::Void => {}
        other => panic!("{other:?}"),
    };
    let value = |client: &mut Client, k: i32| {
        let read = format!("SELECT n FROM k.c WHERE k = {k}");
        let cell = row_of(&client.call(request(&read).into()).response).remove(0).expect("a number");
        i64::from_be_bytes(cell[..].try_into().expect("eight bytes"))
    };
    let (first, both) = (new_id(1), new_id(2));
    for _ in 0..3 {
        count(&mut client, "UPDATE k.c SET n = n + 5 WHERE k = 1", first);
    }
    client.query("UPDATE k.c SET n = n + 100 WHERE k = 1");
    assert_eq!(value(&mut client, 1), 105, "beside one without an id");
    let batch = "BEGIN COUNTER BATCH UPDATE k.c SET n = n + 1 WHERE k = 1; \
                 UPDATE k.c SET n = n + 2 WHERE k = 2 APPLY BATCH";
    for _ in 0..2 {
        count(&mut client, batch, both);
    }
    assert_eq!((value(&mut client, 1), value(&mut client, 2)), (106, 2));
    count(&mut client, "DELETE FROM k.c WHERE k = 2", new_id(3));
    count(&mut client, "UPDATE k.c SET n = n + 7 WHERE k = 2", new_id(4));
    assert_eq!(value(&mut client, 2), 7, "after it was deleted");
}

#[test]
fn ids_that_make_no_sense_are_refused() {
    let (node, mut client) = with_tables();
    let insert = "INSERT INTO k.t (k, v) VALUES (1, 1) IF NOT EXISTS";
    let mut refuses = |text: &str, payload: &[u8], words: &str| match ask_with(&mut client, text, payload) {
        Response::Error(error) => {
            assert_eq!(error.kind, ErrorKind::Invalid);
            assert!(error.message.contains(words), "{}", error.message);
        }
        other => panic!("{other:?}"),
    };
    refuses(insert, b"seven", "must be the 16 bytes of a UUID of version 1");
    refuses(insert, uuid::Uuid::from_u128(7).as_bytes(), "must be the 16 bytes of a UUID of version 1");
    refuses(insert, &id(1, Duration::from_secs(400)), "one may be used for 300 s. Nothing was done");
    let mut client = node.client();
    assert_eq!(row_of(&ask_with(&mut client, insert, &new_id(2))), [Some(Bytes::from_static(&[1]))]);
    let once = new_id(3);
    let other = "INSERT INTO k.t (k, v) VALUES (1, 2) IF NOT EXISTS";
    row_of(&ask_with(&mut client, insert, &once));
    match ask_with(&mut client, other, &once) {
        Response::Error(error) => assert!(error.message.contains("to another request"), "{}", error.message),
        response => panic!("{response:?}"),
    }
}
