//! `WITH name = value AND …`

use std::collections::HashSet;

use super::Parser;
use super::failure::Outcome;
use super::literal::is_literal;
use super::name::is_name;
use crate::ast::{ClusteringOrder, Ident, Literal, Property, PropertyValue, TableOptions, Term};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `name = value AND …`, at least one.
    pub(super) fn properties(&mut self) -> Outcome<Vec<Property>> {
        let (mut properties, mut names) = (Vec::new(), HashSet::new());
        loop {
            properties.push(self.property(&mut names)?);
            if !self.accept(TokenKind::And) {
                return Ok(properties);
            }
        }
    }

    /// `name = value`; the name must be new.
    fn property(&mut self, names: &mut HashSet<Ident>) -> Outcome<Property> {
        // One decision takes in the name, the sign and the start of the value.
        if !is_name(self.kind()) {
            return Err(self.no_viable());
        }
        if self.kind_at(1) != TokenKind::Equal {
            return Err(self.no_viable_ahead(1));
        }
        let value = self.kind_at(2);
        if value != TokenKind::OpenBrace
            && !is_literal(value)
            && (!is_name(value) || matches!(value, TokenKind::Identifier | TokenKind::QuotedName))
        {
            return Err(self.no_viable_ahead(2));
        }
        let name = self.take_name();
        self.advance();
        let value = self.property_value()?;
        if !names.insert(name.clone()) {
            return Err(self.refused(format!("Multiple definitions for property '{}'", name.as_str())));
        }
        Ok(Property { name, value })
    }

    fn property_value(&mut self) -> Outcome<PropertyValue> {
        if let Some(literal) = self.accept_literal() {
            return Ok(PropertyValue::Literal(literal));
        }
        if self.kind() != TokenKind::OpenBrace {
            return Ok(PropertyValue::Keyword(self.name()?));
        }
        Ok(PropertyValue::Map(self.property_map()?))
    }

    /// A map of constants whose keys differ.
    pub(super) fn property_map(&mut self) -> Outcome<Vec<(Literal, Literal)>> {
        let mut entries: Vec<(Literal, Literal)> = Vec::new();
        let mut keys = HashSet::new();
        for (key, value) in self.map_literal()? {
            let Term::Literal(key) = key else {
                return Err(self.refused(format!(
                    "Invalid property name: {}{}",
                    show(&key),
                    bound_hint(&key)
                )));
            };
            let Term::Literal(value) = value else {
                let (value, hint) = (show(&value), bound_hint(&value));
                return Err(
                    self.refused(format!("Invalid property value: {value} for property: {key}{hint}"))
                );
            };
            if !keys.insert(key.text.clone()) {
                return Err(self.refused(format!("Multiple definition for property {}", key.text)));
            }
            entries.push((key, value));
        }
        Ok(entries)
    }

    /// All that may stand behind the WITH of a table or a view; nothing without WITH.
    pub(super) fn table_options(&mut self) -> Outcome<TableOptions> {
        let (mut options, mut names) = (TableOptions::default(), HashSet::new());
        if !self.accept(TokenKind::With) {
            return Ok(options);
        }
        loop {
            let next = if is_name(self.kind()) { self.kind_at(1) } else { TokenKind::End };
            match (self.kind(), next) {
                (TokenKind::Compact, TokenKind::Storage) => {
                    self.advance();
                    self.advance();
                    options.is_compact_storage = true;
                }
                (TokenKind::Clustering, TokenKind::Order) => {
                    self.advance();
                    self.advance();
                    self.expect_all(&[TokenKind::By, TokenKind::OpenParenthesis])?;
                    let order = self.separated(TokenKind::Comma, Self::clustering_order)?;
                    self.expect(TokenKind::CloseParenthesis)?;
                    options.clustering_order.extend(order);
                }
                _ => options.properties.push(self.property(&mut names)?),
            }
            if !self.accept(TokenKind::And) {
                return Ok(options);
            }
        }
    }

    fn clustering_order(&mut self) -> Outcome<ClusteringOrder> {
        let column = self.name()?;
        let is_descending = self.accept(TokenKind::Desc);
        if !is_descending && !self.accept(TokenKind::Asc) {
            return Err(self.no_viable());
        }
        Ok(ClusteringOrder { column, is_descending })
    }
}

/// A term as messages show it: a marker without its name.
fn show(term: &Term) -> String {
    match term {
        Term::Marker(_) => "?".to_owned(),
        term => term.to_string(),
    }
}

fn bound_hint(term: &Term) -> &'static str {
    match term {
        Term::Marker(_) => " (bind variables are not supported in DDL queries)",
        _ => "",
    }
}
