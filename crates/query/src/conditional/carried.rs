//! A change with a condition on its way to the node that decides about its partition, and the decision back.
//!
//! What goes over is the statement: its text and its values. That node plans it for itself, as it would for a client of
//! its own.

use bytes::Bytes;
use coordinator::Consistency;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::operation::OperationId;
use crate::QueryError;
use crate::request::Values;

/// What is decided about for a client of another node.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Carried {
    Change(CarriedChange),
    Count(CarriedCount),
}

/// What a request with an id adds to the counters of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CarriedCount {
    /// The mutation, encoded.
    pub(crate) increments: Bytes,
    pub(crate) operation: OperationId,
    pub(crate) consistency: Consistency,
    pub(crate) serial_consistency: Option<Consistency>,
}

/// A change as a client has asked for it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CarriedChange {
    /// One, or those of a BATCH message.
    pub(crate) statements: Vec<CarriedStatement>,
    /// Are they those of a BATCH message?
    pub(crate) is_batch: bool,
    pub(crate) consistency: Consistency,
    pub(crate) serial_consistency: Option<Consistency>,
    pub(crate) now_in_seconds: Option<i32>,
    /// If the client has given it an id.
    pub(crate) operation: Option<OperationId>,
}

/// A statement of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CarriedStatement {
    /// The id under which it was prepared, if it was.
    pub(crate) id: Option<[u8; 16]>,
    pub(crate) text: String,
    /// That of its unqualified names.
    pub(crate) keyspace: Option<String>,
    pub(crate) values: Values,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Decision {
    /// The change was made.
    Applied,
    /// It was not: these are the cells of what is there, row by row; `None` when there is nothing.
    NotApplied(Option<FoundRows>),
}

/// The cells of rows, as an answer shows them.
pub(crate) type FoundRows = Vec<Vec<Option<Bytes>>>;

/// Writes something for another node.
pub(crate) fn pack(value: &impl Serialize) -> Bytes {
    postcard::to_stdvec(value).expect("plain values in memory can be written").into()
}

/// Reads what [`pack`] has written.
///
/// # Errors
/// It was something else.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, QueryError> {
    let nonsense =
        |error: postcard::Error| QueryError::Server(format!("another node makes no sense: {error}"));
    postcard::from_bytes(bytes).map_err(nonsense)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::BindValue;

    #[test]
    fn what_is_carried_is_read_as_it_was_written() {
        let statement = CarriedStatement {
            id: Some([7; 16]),
            text: "UPDATE t SET v = ? WHERE k = ? IF v = ?".to_owned(),
            keyspace: Some("ks".to_owned()),
            values: Values::Positional(vec![
                BindValue::Set(Bytes::from_static(b"a")),
                BindValue::Null,
                BindValue::Unset,
            ]),
        };
        let change = CarriedChange {
            statements: vec![statement],
            is_batch: true,
            consistency: Consistency::Quorum,
            serial_consistency: Some(Consistency::LocalSerial),
            now_in_seconds: Some(-1),
            operation: None,
        };
        assert_eq!(unpack::<CarriedChange>(&pack(&change)), Ok(change));
        let found = Some(vec![vec![Some(Bytes::from_static(b"")), None]]);
        let decisions: [Result<Decision, QueryError>; 4] = [
            Ok(Decision::Applied),
            Ok(Decision::NotApplied(None)),
            Ok(Decision::NotApplied(found)),
            Err(QueryError::CasWriteUnknown { consistency: Consistency::Serial, received: 1, block_for: 2 }),
        ];
        for decision in decisions {
            assert_eq!(unpack(&pack(&decision)), Ok(decision));
        }
        assert!(unpack::<CarriedChange>(b"\xff\xff\xff\xff").is_err());
    }
}
