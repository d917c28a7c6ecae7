//! Functions built in: scalar ones, computed from the values of a row, and aggregates over rows.
//!
//! Names are found case-folded; the old spellings (`toTimestamp`) stand beside Cassandra 5's
//! (`to_timestamp`) and keep their own names in results, as there.

mod aggregate;
mod arithmetic;
mod call_types;
mod cast;
mod collection;
mod decimal;
mod native;
mod number;
mod resolve;

use std::cell::Cell;
use std::sync::Arc;

use runtime::{Clock, Random, Runtime};
use types::CqlType;

use crate::QueryError;
use crate::error::refuse;

pub(crate) use aggregate::{AggregateFunction, AggregateState, count_rows};
pub(crate) use arithmetic::{addition, symbol};
pub(crate) use call_types::CallTypes;
pub(crate) use resolve::{Argument, Call, Found, call_type, find, plan_call, qualified};

/// Most bytes that functions may make of one row, or of the terms of one statement, on the way to what is asked for. A
/// text may be 16 MiB, and `toJson` of `toJson` doubles it as often as it is written.
const MADE_BYTES_MAX: usize = 64 << 20;

/// The world as functions see it.
pub(crate) struct Environment<'a> {
    world: Option<World<'a>>,
    /// What functions have made.
    made_bytes: Cell<usize>,
}

/// Clock and dice.
#[derive(Clone, Copy)]
struct World<'a> {
    clock: &'a dyn Clock,
    random: &'a dyn Random,
}

impl<'a> Environment<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, random: &'a dyn Random) -> Self {
        Environment { world: Some(World { clock, random }), made_bytes: Cell::new(0) }
    }

    pub(crate) fn of(runtime: &'a Runtime) -> Self {
        Self::new(&*runtime.clock, &*runtime.random)
    }

    /// No world at all: for folding constants, which ask nothing of it.
    pub(crate) fn none() -> Self {
        Environment { world: None, made_bytes: Cell::new(0) }
    }

    /// What is made from here on is of another row.
    pub(crate) fn begin_row(&self) {
        self.made_bytes.set(0);
    }

    /// Counts what a function has made.
    fn count_made(&self, bytes: usize) -> Result<(), QueryError> {
        self.made_bytes.set(self.made_bytes.get() + bytes);
        if self.made_bytes.get() > MADE_BYTES_MAX {
            refuse!("The functions of a row may make at most {MADE_BYTES_MAX} bytes");
        }
        Ok(())
    }

    pub(crate) fn now_millis(&self) -> i64 {
        self.world.map_or(0, |world| world.clock.now_millis())
    }

    pub(crate) fn time_uuid(&self) -> [u8; 16] {
        self.world.map_or([0; 16], |world| *world.random.uuid_v1(world.clock).as_bytes())
    }

    pub(crate) fn random_uuid(&self) -> [u8; 16] {
        self.world.map_or([0; 16], |world| *world.random.uuid_v4().as_bytes())
    }
}

/// What computes a scalar function.
pub(crate) type Body =
    Arc<dyn Fn(&[Option<&[u8]>], &Environment<'_>) -> Result<Option<Vec<u8>>, QueryError> + Send + Sync>;

/// A function of the values of one row.
#[derive(Clone)]
pub(crate) struct ScalarFunction {
    /// `system.to_timestamp`
    pub(crate) name: String,
    pub(crate) arguments: Vec<CqlType>,
    pub(crate) returns: CqlType,
    pub(crate) body: Body,
}

impl std::fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.signature())
    }
}

impl ScalarFunction {
    pub(crate) fn native(
        name: &str,
        arguments: Vec<CqlType>,
        returns: CqlType,
        body: impl Fn(&[Option<&[u8]>], &Environment<'_>) -> Result<Option<Vec<u8>>, QueryError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        ScalarFunction { name: format!("system.{name}"), arguments, returns, body: Arc::new(body) }
    }

    /// The name without its keyspace.
    pub(crate) fn bare_name(&self) -> &str {
        self.name.strip_prefix("system.").unwrap_or(&self.name)
    }

    pub(crate) fn call(
        &self,
        arguments: &[Option<&[u8]>],
        environment: &Environment<'_>,
    ) -> Result<Option<Vec<u8>>, QueryError> {
        let made = (self.body)(arguments, environment)?;
        environment.count_made(made.as_ref().map_or(0, Vec::len))?;
        Ok(made)
    }

    /// As Cassandra shows a function in messages.
    pub(crate) fn signature(&self) -> String {
        signature(&self.name, &self.arguments, &self.returns)
    }
}

fn signature(name: &str, arguments: &[CqlType], returns: &CqlType) -> String {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    format!("{name} : ({}) -> {returns}", arguments.join(", "))
}
