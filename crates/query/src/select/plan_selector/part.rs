//! Parts of columns in a selection, and what is known of their cells.

use cql::ast::{CellMetadata, Ident, Selector as Written, Term as WrittenTerm};
use types::CqlType;

use super::{Planned, Selectors, source_of};
use crate::error::refuse;
use crate::restrictions::existing_column;
use crate::scope::{Receiver, Scope};
use crate::select::selector::{Part, Selector};
use crate::{QueryError, terms};

impl Selectors<'_> {
    pub(super) fn plan_metadata(
        &mut self,
        what: CellMetadata,
        inner: &Written,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let label = match what {
            CellMetadata::WriteTime => "writetime",
            CellMetadata::MaxWriteTime => "maxwritetime",
            CellMetadata::TimeToLive => "ttl",
        };
        let one = if what == CellMetadata::TimeToLive { CqlType::Int } else { CqlType::Bigint };
        let (column, part, whole_name) = match inner {
            Written::Column(name) => (name, Part::Whole, None),
            Written::Element(column, key) => match &**column {
                Written::Column(name) => {
                    let of = self.source(name)?.1;
                    let part = Part::Element(self.plan_key(name, &of, "Element", key, scope)?);
                    (name, part, Some(inner.to_string()))
                }
                _ => refuse!("{label} can only be asked of columns and their parts, not of {inner}"),
            },
            Written::Slice(column, from, to) => match &**column {
                Written::Column(name) => {
                    let of = self.source(name)?.1;
                    let mut edge = |edge: &Option<Box<WrittenTerm>>| {
                        edge.as_ref().map(|key| self.plan_key(name, &of, "Slice", key, scope)).transpose()
                    };
                    (name, Part::Slice(edge(from)?, edge(to)?), Some(inner.to_string()))
                }
                _ => refuse!("{label} can only be asked of columns and their parts, not of {inner}"),
            },
            Written::Field(column, field) => match &**column {
                Written::Column(name) => {
                    let of = self.source(name)?.1;
                    let (index, _) = field_of(&of, name, field)?;
                    (name, Part::Field(u16::try_from(index).unwrap_or(u16::MAX)), Some(inner.to_string()))
                }
                _ => refuse!("{label} can only be asked of columns and their parts, not of {inner}"),
            },
            _ => refuse!("{label} can only be asked of columns and their parts, not of {inner}"),
        };
        let found = existing_column(self.table, column)?;
        if found.is_primary_key() {
            refuse!("Cannot use selection function {label} on PRIMARY KEY part {}", found.name);
        }
        let source = source_of(self.projection, found.id, found.kind);
        let several = found.cql_type.is_multi_cell()
            && matches!(part, Part::Whole | Part::Slice(..))
            && what != CellMetadata::MaxWriteTime;
        let cql_type = if several { CqlType::List { element: one.into(), frozen: false } } else { one };
        let name = format!("{label}({})", whole_name.as_deref().unwrap_or(column.as_str()));
        let of = found.cql_type.clone();
        Ok(Planned { selector: Selector::Metadata { what, source, cql_type: of, part }, cql_type, name })
    }

    /// The key of an element or the edge of a slice.
    pub(super) fn plan_key(
        &mut self,
        selected: &str,
        of: &CqlType,
        what: &str,
        key: &WrittenTerm,
        scope: &mut Scope<'_>,
    ) -> Result<terms::Term, QueryError> {
        let (part, by) = match of {
            CqlType::Map { key, .. } => ("key", key),
            CqlType::Set { element, .. } => ("value", element),
            CqlType::List { .. } => {
                refuse!("{what} selection is only allowed on sets and maps, but {selected} is a list")
            }
            // The two sentences differ in Cassandra too.
            _ if what == "Slice" => {
                refuse!("Invalid slice selection: {selected} of type {of} is not a collection")
            }
            _ => refuse!("Invalid element selection: {selected} is of type {of} is not a collection"),
        };
        let receiver = Receiver::new(&self.names, selected, of.clone()).part(part, (**by).clone());
        terms::plan(key, &receiver, scope)
    }

    pub(super) fn plan_element(
        &mut self,
        inner: &Written,
        key: &WrittenTerm,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let planned = self.plan(inner, None, scope)?;
        let of = planned.cql_type;
        let key_term = self.plan_key(&planned.name, &of, "Element", key, scope)?;
        let cql_type = match &of {
            CqlType::Map { value, .. } => (**value).clone(),
            CqlType::Set { element, .. } => (**element).clone(),
            other => other.clone(),
        };
        let name = format!("{}[{key}]", planned.name);
        Ok(Planned { selector: Selector::Element(Box::new(planned.selector), of, key_term), cql_type, name })
    }

    pub(super) fn plan_slice(
        &mut self,
        inner: &Written,
        from: Option<&WrittenTerm>,
        to: Option<&WrittenTerm>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let planned = self.plan(inner, None, scope)?;
        let of = planned.cql_type;
        let mut edge = |edge: Option<&WrittenTerm>| {
            edge.map(|key| self.plan_key(&planned.name, &of, "Slice", key, scope)).transpose()
        };
        let (from_term, to_term) = (edge(from)?, edge(to)?);
        let shown = |edge: Option<&WrittenTerm>| edge.map(ToString::to_string).unwrap_or_default();
        let name = format!("{}[{}..{}]", planned.name, shown(from), shown(to));
        let selector = Selector::Slice(Box::new(planned.selector), of.clone(), from_term, to_term);
        Ok(Planned { selector, cql_type: of, name })
    }

    pub(super) fn plan_field(
        &mut self,
        inner: &Written,
        field: &Ident,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let planned = self.plan(inner, None, scope)?;
        let (index, cql_type) = field_of(&planned.cql_type, &planned.name, field)?;
        let name = format!("{}.{}", planned.name, field.as_str());
        Ok(Planned { selector: Selector::Field(Box::new(planned.selector), index), cql_type, name })
    }
}

fn field_of(of: &CqlType, selected: &str, field: &str) -> Result<(usize, CqlType), QueryError> {
    let CqlType::UserDefined { definition, .. } = of else {
        refuse!("Invalid field selection: {selected} of type {of} is not a user type");
    };
    match definition.fields.iter().position(|(name, _)| name == field) {
        Some(index) => Ok((index, definition.fields[index].1.clone())),
        None => refuse!("{selected} of type {of} has no field {field}"),
    }
}
