//! What can be described, and in which order.

use std::cmp::Ordering;

use schema::{Keyspace, Table};
use types::{CqlType, UserType};

use super::{table_text, text};
use crate::catalog::Catalog;

/// A thing of the schema.
#[derive(Clone, Copy, Debug)]
pub(super) enum Element<'a> {
    Keyspace(&'a Keyspace),
    Type(&'a UserType),
    Table(&'a Table),
}

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Keyspace,
    Type,
    Function,
    Aggregate,
    Table,
    Index,
    View,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Keyspace => "keyspace",
            Kind::Type => "type",
            Kind::Function => "function",
            Kind::Aggregate => "aggregate",
            Kind::Table => "table",
            Kind::Index => "index",
            Kind::View => "materialized_view",
        }
    }
}

impl<'a> Element<'a> {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Element::Keyspace(_) => Kind::Keyspace,
            Element::Type(_) => Kind::Type,
            Element::Table(_) => Kind::Table,
        }
    }

    pub(super) fn keyspace(&self) -> &'a str {
        match self {
            Element::Keyspace(keyspace) => &keyspace.name,
            Element::Type(definition) => &definition.keyspace,
            Element::Table(table) => table.keyspace(),
        }
    }

    pub(super) fn name(&self) -> &'a str {
        match self {
            Element::Keyspace(keyspace) => &keyspace.name,
            Element::Type(definition) => &definition.name,
            Element::Table(table) => table.name(),
        }
    }

    /// The statement that makes it; a comment when it is made up.
    pub(super) fn create_statement(&self, catalog: &Catalog<'_>, with_internals: bool) -> String {
        let is_virtual = catalog.made_up.is_virtual(self.keyspace());
        match self {
            Element::Keyspace(keyspace) => text::keyspace(keyspace, is_virtual),
            Element::Type(definition) => text::user_type(definition),
            Element::Table(table) => table_text::table(table, is_virtual, with_internals),
        }
    }
}

/// A keyspace and all in it.
pub(super) fn of_keyspace(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let mut elements = vec![Element::Keyspace(keyspace)];
    elements.extend(types_by_use(keyspace).into_iter().map(Element::Type));
    elements.extend(tables(keyspace));
    elements
}

/// The tables of a keyspace, by name.
pub(super) fn tables(keyspace: &Keyspace) -> Vec<Element<'_>> {
    by_name(keyspace.tables.values().map(|table| Element::Table(table)).collect())
}

/// The user types of a keyspace, by name.
pub(super) fn types(keyspace: &Keyspace) -> Vec<Element<'_>> {
    by_name(keyspace.types.values().map(|definition| Element::Type(definition)).collect())
}

fn by_name(mut elements: Vec<Element<'_>>) -> Vec<Element<'_>> {
    sort_by_name(&mut elements, |element| element.name());
    elements
}

/// Sorts without regard to case.
pub(super) fn sort_by_name<'a, T>(items: &mut [T], name: impl Fn(&T) -> &'a str)
where
    T: 'a,
{
    items.sort_by(|a, b| compare_names(name(a), name(b)));
}

fn compare_names(a: &str, b: &str) -> Ordering {
    let fold = |letter: char| letter.to_ascii_lowercase();
    a.chars().map(fold).cmp(b.chars().map(fold))
}

/// The user types of a keyspace, each behind those it is made of.
fn types_by_use(keyspace: &Keyspace) -> Vec<&UserType> {
    let mut sorted = Vec::new();
    keyspace.types.values().for_each(|definition| add_type(definition, keyspace, &mut sorted));
    sorted
}

fn add_type<'a>(definition: &UserType, keyspace: &'a Keyspace, sorted: &mut Vec<&'a UserType>) {
    definition.fields.iter().for_each(|(_, field)| add_types_in(field, keyspace, sorted));
    let Some(known) = keyspace.types.get(&definition.name) else { return };
    if !sorted.iter().any(|before| before.name == known.name) {
        sorted.push(known);
    }
}

fn add_types_in<'a>(cql_type: &CqlType, keyspace: &'a Keyspace, sorted: &mut Vec<&'a UserType>) {
    match cql_type {
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            add_types_in(element, keyspace, sorted);
        }
        CqlType::Map { key, value, .. } => {
            add_types_in(key, keyspace, sorted);
            add_types_in(value, keyspace, sorted);
        }
        CqlType::Tuple(parts) => parts.iter().for_each(|part| add_types_in(part, keyspace, sorted)),
        CqlType::UserDefined { definition, .. } => add_type(definition, keyspace, sorted),
        _ => {}
    }
}
