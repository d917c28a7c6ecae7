//! How many replicas must answer.

use crate::CoordinatorError;

/// A consistency level, by Cassandra's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs, reason = "Cassandra's levels by their names")]
pub enum Consistency {
    Any,
    One,
    Two,
    Three,
    Quorum,
    All,
    LocalQuorum,
    EachQuorum,
    Serial,
    LocalSerial,
    LocalOne,
}

impl Consistency {
    /// Replicas needed of those there are, which are asked for only by a level that depends on them: most requests
    /// name one that does not.
    pub fn required(self, replication_factor: impl FnOnce() -> u32) -> u32 {
        match self {
            Consistency::Any | Consistency::One | Consistency::LocalOne => 1,
            Consistency::Two => 2,
            Consistency::Three => 3,
            Consistency::All => replication_factor().max(1),
            Consistency::Quorum
            | Consistency::LocalQuorum
            | Consistency::EachQuorum
            | Consistency::Serial
            | Consistency::LocalSerial => replication_factor() / 2 + 1,
        }
    }

    /// May a read ask for it?
    #[inline]
    pub fn is_for_reads(self) -> bool {
        self != Consistency::Any
    }

    /// May a write ask for it? The serial levels are those of conditions.
    #[inline]
    pub fn is_for_writes(self) -> bool {
        !self.is_serial()
    }

    /// Is it one at which changes with conditions are agreed on?
    #[inline]
    pub fn is_serial(self) -> bool {
        matches!(self, Consistency::Serial | Consistency::LocalSerial)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Consistency::Any => "ANY",
            Consistency::One => "ONE",
            Consistency::Two => "TWO",
            Consistency::Three => "THREE",
            Consistency::Quorum => "QUORUM",
            Consistency::All => "ALL",
            Consistency::LocalQuorum => "LOCAL_QUORUM",
            Consistency::EachQuorum => "EACH_QUORUM",
            Consistency::Serial => "SERIAL",
            Consistency::LocalSerial => "LOCAL_SERIAL",
            Consistency::LocalOne => "LOCAL_ONE",
        }
    }

    /// Refuses at once what one live node can not give.
    ///
    /// # Errors
    /// `Unavailable`.
    pub(crate) fn check(self, replication_factor: impl FnOnce() -> u32) -> Result<(), CoordinatorError> {
        let required = self.required(replication_factor);
        let alive = 1;
        if required > alive {
            return Err(CoordinatorError::Unavailable { consistency: self.name(), required, alive });
        }
        Ok(())
    }
}
