//! From restrictions of the partition key to keys, or to a part of the ring.

use bytes::Bytes;
use cql::ast::{Ident, Operator, Term as Written};
use rows::{PartitionKey, RingPlace, RingRange};
use runtime::Io;
use types::encoding::{self, KEY_BYTES_MAX};
use types::{CqlType, Token};

use super::Restrictions;
use super::product::Product;
use super::relation::{Relations, existing_column, symbol};
use super::restriction::{Point, Restriction, Test, Values};
use crate::QueryError;
use crate::error::refuse;
use crate::scope::{Receiver, Scope};
use crate::terms::{self, Bindings, Term, Value};

/// The partitions asked for.
#[derive(Clone, Debug)]
pub(crate) enum Partitions {
    /// These, in the order of their values, without doubles.
    Keys(Vec<PartitionKey>),
    /// A part of the ring.
    Range(RingRange),
}

/// What is asked of `token(key)`.
#[derive(Clone, Debug)]
pub(super) enum TokenRestriction {
    Equal(Term),
    Slice { start: Option<(Term, bool)>, end: Option<(Term, bool)> },
}

impl TokenRestriction {
    /// Adds a relation of the token to what is there.
    ///
    /// # Errors
    /// The columns are not the partition key, or the two do not go together.
    pub(super) fn add(
        all: &mut Option<TokenRestriction>,
        relations: &Relations<'_>,
        columns: &[Ident],
        operator: Operator,
        value: &Written,
        scope: &mut Scope<'_>,
    ) -> Result<(), QueryError> {
        let names = check_columns(relations, columns)?;
        let receiver = Receiver::new(&relations.names, "partition key token", CqlType::Bigint);
        let new = match operator {
            Operator::NotEqual => {
                refuse!("Unsupported \"!=\" relation: token({names}) != {value}")
            }
            Operator::Contains | Operator::ContainsKey | Operator::Like => {
                refuse!("{} cannot be used with the token function", symbol(operator))
            }
            Operator::Equal => TokenRestriction::Equal(terms::plan(value, &receiver, scope)?),
            _ => {
                let edge = Some((
                    terms::plan(value, &receiver, scope)?,
                    matches!(operator, Operator::LessOrEqual | Operator::GreaterOrEqual),
                ));
                match operator {
                    Operator::Less | Operator::LessOrEqual => {
                        TokenRestriction::Slice { start: None, end: edge }
                    }
                    _ => TokenRestriction::Slice { start: edge, end: None },
                }
            }
        };
        *all = Some(match (all.take(), new) {
            (None, new) => new,
            (Some(TokenRestriction::Equal(_)), _) => {
                refuse!("{names} cannot be restricted by more than one relation if it includes an Equal")
            }
            (Some(TokenRestriction::Slice { .. }), TokenRestriction::Equal(_)) => refuse!(
                "Columns \"{names}\" cannot be restricted by both an equality and an inequality relation"
            ),
            (
                Some(TokenRestriction::Slice { start, end }),
                TokenRestriction::Slice { start: new_start, end: new_end },
            ) => {
                if start.is_some() && new_start.is_some() {
                    refuse!("More than one restriction was found for the start bound on {names}");
                }
                if end.is_some() && new_end.is_some() {
                    refuse!("More than one restriction was found for the end bound on {names}");
                }
                TokenRestriction::Slice { start: start.or(new_start), end: end.or(new_end) }
            }
        });
        Ok(())
    }

    /// The tokens asked for; `None` when there can be none.
    fn bind(&self, bindings: &Bindings<'_>) -> Result<Option<RingRange>, QueryError> {
        match self {
            TokenRestriction::Equal(term) => {
                let token = bind_token(term, bindings)?;
                Ok(Some(RingRange::tokens(token, token)))
            }
            TokenRestriction::Slice { start, end } => {
                let mut range = RingRange::ALL;
                if let Some((term, is_inclusive)) = start {
                    let Token(token) = bind_token(term, bindings)?;
                    match if *is_inclusive { Some(token) } else { token.checked_add(1) } {
                        Some(first) => range.start = RingPlace::BeforeToken(Token(first)),
                        None => return Ok(None),
                    }
                }
                if let Some((term, is_inclusive)) = end {
                    let Token(token) = bind_token(term, bindings)?;
                    // The minimum token as an end means the end of the ring, as in Cassandra.
                    if token != i64::MIN {
                        range.end =
                            RingPlace::AfterToken(Token(if *is_inclusive { token } else { token - 1 }));
                    }
                }
                Ok((range.first_token() <= range.last_token()).then_some(range))
            }
        }
    }
}

fn check_columns(relations: &Relations<'_>, columns: &[Ident]) -> Result<String, QueryError> {
    let table = relations.table;
    let found: Vec<_> = columns.iter().map(|name| existing_column(table, name)).collect::<Result<_, _>>()?;
    let key = table.partition_key();
    let same_order = found.len() == key.len() && found.iter().zip(key).all(|(a, b)| a.id == b.id);
    let names = key.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    if same_order {
        return Ok(names);
    }
    if !key.iter().all(|column| found.iter().any(|other| other.id == column.id)) {
        refuse!("The token() function must be applied to all partition key components or none of them");
    }
    let has_double = found
        .iter()
        .enumerate()
        .any(|(index, column)| found[..index].iter().any(|other| other.id == column.id));
    if has_double {
        refuse!("The token() function contains duplicate partition key components");
    }
    if found.len() > key.len() {
        refuse!("The token() function must contains only partition key components");
    }
    refuse!("The token function arguments must be in the partition key order: {names}");
}

pub(super) fn bind_token(term: &Term, bindings: &Bindings<'_>) -> Result<Token, QueryError> {
    let value = match term.bind(bindings)? {
        Value::Set(value) => value,
        Value::Null => refuse!("Invalid null token value"),
        Value::Unset => refuse!("Invalid unset token value"),
    };
    match <[u8; 8]>::try_from(&*value) {
        Ok(bytes) => Ok(Token(i64::from_be_bytes(bytes))),
        Err(_) => refuse!("Invalid token value"),
    }
}

impl Restrictions {
    /// The partitions asked for.
    ///
    /// # Errors
    /// A value is null, unset or not of its type, or a key is empty or too long.
    pub(crate) async fn bind_partitions(
        &self,
        bindings: &Bindings<'_>,
        io: &Io,
    ) -> Result<Partitions, QueryError> {
        let range = match &self.token {
            Some(token) => match token.bind(bindings)? {
                Some(range) => range,
                None => return Ok(Partitions::Keys(Vec::new())),
            },
            None => RingRange::ALL,
        };
        if self.is_key_range {
            return Ok(Partitions::Range(range));
        }
        if let Some(key) = self.bind_shared_key(bindings)? {
            let keys = if range.contains(&key) { vec![key] } else { Vec::new() };
            return Ok(Partitions::Keys(keys));
        }
        let mut keys = self.bind_keys(bindings, io).await?;
        if self.token.is_some() {
            keys.retain(|key| range.contains(key));
        }
        Ok(Partitions::Keys(keys))
    }

    /// The keys of a partition key that is restricted whole.
    ///
    /// # Errors
    /// A value is null, unset or not of its type, or a key is empty or too long.
    pub(crate) async fn bind_keys(
        &self,
        bindings: &Bindings<'_>,
        io: &Io,
    ) -> Result<Vec<PartitionKey>, QueryError> {
        if let [Restriction { test: Test::Equal(Values::Terms(terms)), .. }] = &*self.partition
            && let [term] = terms.as_slice()
        {
            return Ok(vec![self.bind_single_key(term, bindings)?]);
        }
        // Boxed, so that the many of one key need no room for it.
        Box::pin(self.bind_product(bindings, io)).await
    }

    async fn bind_product(&self, bindings: &Bindings<'_>, io: &Io) -> Result<Vec<PartitionKey>, QueryError> {
        let mut product = Product::new("partition key");
        for restriction in &self.partition {
            let of = restriction.first().cql_type.clone();
            let arrange = move |points: &mut Vec<Point>| {
                // Values that compare equal may be different keys.
                points.sort_by(|a, b| of.compare(&a[0], &b[0]).then_with(|| a.cmp(b)));
                points.dedup();
            };
            product.push(restriction, bindings, io, arrange).await?;
        }
        product
            .make(io, |product| product.iter().map(|parts| partition_key(parts.into_iter())).collect())
            .await
    }

    /// What the partition key must equal, if it is one column and nothing else is asked.
    pub(crate) fn single_key(&self) -> Option<&Term> {
        let [Restriction { test: Test::Equal(Values::Terms(terms)), .. }] = &*self.partition else {
            return None;
        };
        let has_more = self.is_key_range
            || self.token.is_some()
            || !self.clustering.is_empty()
            || !self.other.is_empty()
            || self.partition_key_count != 1;
        match terms.as_slice() {
            [term] if !has_more => Some(term),
            _ => None,
        }
    }

    /// The hot path of reads: one key column, one value, not copied out of the frame.
    fn bind_shared_key(&self, bindings: &Bindings<'_>) -> Result<Option<PartitionKey>, QueryError> {
        let [Restriction { test: Test::Equal(Values::Terms(terms)), .. }] = &*self.partition else {
            return Ok(None);
        };
        let [term] = terms.as_slice() else { return Ok(None) };
        let Some(bytes) = term.bind_shared(bindings)? else { return Ok(None) };
        check_key_length(bytes.len())?;
        Ok(Some(PartitionKey::new(bytes)))
    }

    /// The hot path of writes: one key column, one value, which the memtable may keep.
    fn bind_single_key(&self, term: &Term, bindings: &Bindings<'_>) -> Result<PartitionKey, QueryError> {
        let name = &self.partition[0].first().name;
        let bytes = match term.bind(bindings)? {
            Value::Set(bytes) => bytes,
            Value::Null => refuse!("Invalid null value in condition for column {name}"),
            Value::Unset => refuse!("Invalid unset value for column {name}"),
        };
        check_key_length(bytes.len())?;
        Ok(PartitionKey::new(Bytes::from(bytes.into_owned())))
    }
}

/// A key has at least one byte and at most [`KEY_BYTES_MAX`].
pub(crate) fn check_key_length(key_bytes: usize) -> Result<(), QueryError> {
    if key_bytes == 0 {
        refuse!("Key may not be empty");
    }
    if key_bytes > KEY_BYTES_MAX {
        refuse!("Key length of {key_bytes} is longer than maximum of {KEY_BYTES_MAX}");
    }
    Ok(())
}

/// The key of these components.
///
/// # Errors
/// It is empty or too long.
pub(crate) fn partition_key<'a>(
    parts: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Result<PartitionKey, QueryError> {
    let bytes = encoding::partition_key(parts)?;
    check_key_length(bytes.len())?;
    Ok(PartitionKey::new(bytes.into()))
}
