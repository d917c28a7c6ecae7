//! A client's name for what it asks for, so that it is done once however often it is sent.
//!
//! Drivers send a request again when they have no answer, and they may do so while the first is still under way. One
//! with an id is decided once: what came of it stays with the change for a while, and is told again.

use bytes::Bytes;
use coordinator::OPERATION_WINDOW_SECONDS;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use types::uuid as time_uuid;
use uuid::Uuid;

use super::carried::{CarriedStatement, Decision, pack, unpack};
use crate::QueryError;
use crate::error::refuse;

/// So far ahead of a node's clock the time of an id may be, in seconds: clocks differ.
const AHEAD_SECONDS_MAX: i64 = 10;

/// A decision of more bytes is not kept whole: of a refusal the rows are read again then.
const DECISION_BYTES_MAX: usize = 4 << 10;

/// The id of an operation, and what it is given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OperationId {
    id: [u8; 16],
    /// A hash of the statements and their values: an id is of one request.
    request: [u8; 16],
}

/// What has come of an operation, as it is kept.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    request: [u8; 16],
    decision: KeptDecision,
}

/// What was decided, as far as it is kept.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptDecision {
    Whole(Decision),
    /// It was refused; the rows were too large to be kept.
    Refused,
}

impl OperationId {
    /// That of a request.
    pub(crate) fn new(id: Uuid, statements: &[CarriedStatement]) -> OperationId {
        // Prepared or not, it is the same.
        let words = |CarriedStatement { text, keyspace, values, .. }: &CarriedStatement| {
            pack(&(text, keyspace, values))
        };
        let words: Vec<_> = statements.iter().map(words).collect();
        OperationId { id: id.into_bytes(), request: Md5::digest(pack(&words)).into() }
    }

    pub(crate) fn id(self) -> Uuid {
        Uuid::from_bytes(self.id)
    }

    /// What is to be kept of a decision.
    pub(crate) fn keep(self, decision: Decision) -> (Uuid, Bytes) {
        let request = self.request;
        let whole = pack(&Kept { request, decision: KeptDecision::Whole(decision) });
        let kept = match whole.len() > DECISION_BYTES_MAX {
            true => pack(&Kept { request, decision: KeptDecision::Refused }),
            false => whole,
        };
        (self.id(), kept)
    }

    /// What was decided, of what [`OperationId::keep`] has given.
    ///
    /// # Errors
    /// It is of another request.
    pub(crate) fn read(self, kept: &[u8]) -> Result<KeptDecision, QueryError> {
        let Kept { request, decision } = unpack(kept)?;
        if request != self.request {
            refuse!("The operation id {} was given to another request before", self.id());
        }
        Ok(decision)
    }

    /// May something be done under this id now, in µs since 1970, of which nothing has come that is known?
    ///
    /// # Errors
    /// It is so old that what has come of it may be forgotten, or is of the future.
    pub(crate) fn check_age(self, now: i64) -> Result<(), QueryError> {
        let made = time_uuid::unix_micros(&self.id).unwrap_or(i64::MIN);
        let age = now.saturating_sub(made) / 1_000_000;
        if age > i64::from(OPERATION_WINDOW_SECONDS) {
            refuse!(
                "The operation id {} was made {age} s ago by this node's clock: one may be used for {} s. Nothing was done now",
                self.id(),
                OPERATION_WINDOW_SECONDS
            );
        }
        if age < -AHEAD_SECONDS_MAX {
            refuse!(
                "The operation id {} is {} s ahead of this node's clock. Nothing was done",
                self.id(),
                -age
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Values;

    fn of(micros: i64, text: &str) -> OperationId {
        let ticks = time_uuid::ticks_at_millis(0) + 10 * micros;
        let id = Uuid::from_bytes(time_uuid::from_ticks(ticks, 7));
        let (text, values) = (text.to_owned(), Values::Positional(Vec::new()));
        OperationId::new(id, &[CarriedStatement { id: None, text, keyspace: None, values }])
    }

    #[test]
    fn what_is_kept_is_told_to_the_same_request_alone() {
        let operation = of(5, "UPDATE");
        let large = Some(vec![vec![Some(Bytes::from(vec![1; DECISION_BYTES_MAX]))]]);
        for (decision, kept) in [
            (Decision::Applied, KeptDecision::Whole(Decision::Applied)),
            (Decision::NotApplied(None), KeptDecision::Whole(Decision::NotApplied(None))),
            (Decision::NotApplied(large), KeptDecision::Refused),
        ] {
            let (id, bytes) = operation.keep(decision);
            assert_eq!(id, operation.id());
            assert_eq!(operation.read(&bytes), Ok(kept));
            let other = of(5, "INSERT").read(&bytes).expect_err("it is another request");
            assert!(other.to_string().contains("was given to another request"), "{other}");
        }
    }

    #[test]
    fn an_id_is_taken_for_a_while() {
        let (made, second) = (1_700_000_000_000_000, 1_000_000);
        let check = |after: i64| of(made, "UPDATE").check_age(made + after * second);
        let window = i64::from(OPERATION_WINDOW_SECONDS);
        for taken in [-AHEAD_SECONDS_MAX, 0, window] {
            assert_eq!(check(taken), Ok(()), "{taken}");
        }
        let old = check(window + 1).expect_err("it may be forgotten").to_string();
        assert!(old.contains("was made 301 s ago"), "{old}");
        let ahead = check(-AHEAD_SECONDS_MAX - 1).expect_err("it would live too long").to_string();
        assert!(ahead.contains("is 11 s ahead"), "{ahead}");
    }
}
