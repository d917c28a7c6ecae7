//! Types as names of Cassandra's Java classes: in table files' headers, in custom types, and in
//! what old tools print.
//!
//! ```text
//!   org.apache.cassandra.db.marshal.MapType(
//!       org.apache.cassandra.db.marshal.UTF8Type,
//!       org.apache.cassandra.db.marshal.FrozenType(org.apache.cassandra.db.marshal.ListType(…)))
//! ```
//!
//! The package may be left out when reading. Clustering columns in descending order are wrapped in
//! `ReversedType`, partition keys of several columns are a `CompositeType`; neither is a type that
//! a value can have, so they are told apart as [`MarshalType`].

use crate::{CqlType, TypeError, UserType, blob};
use std::fmt::Write as _;
use std::sync::Arc;

/// The package of the classes.
const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// Types nest no deeper than this when read: CQL itself allows less.
const DEPTH_MAX: usize = 64;

/// Dimensions of a vector when read: what Cassandra's own frames can carry.
const DIMENSION_MAX: u32 = i32::MAX as u32;

/// What a marshal class name can stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarshalType {
    /// A type of values.
    Plain(CqlType),
    /// `ReversedType`: a clustering column in descending order.
    Reversed(CqlType),
    /// `CompositeType`: the columns of a partition key (or of a clustering, in old tables).
    Composite(Vec<MarshalType>),
}

/// Reads a marshal class name.
///
/// # Errors
/// It does not parse, or names a class without counterpart in CQL.
pub fn parse(name: &str) -> Result<MarshalType, TypeError> {
    let mut parser = Parser { name, offset: 0, depth: 0 };
    let parsed = parser.any_type()?;
    parser.skip_blanks();
    if parser.peek().is_some() {
        return Err(parser.syntax("unexpected characters behind the type"));
    }
    Ok(parsed)
}

/// The class name of a clustering column's type.
pub fn clustering_name(of: &CqlType, reversed: bool) -> String {
    if reversed { format!("{PACKAGE}ReversedType({})", of.to_marshal()) } else { of.to_marshal() }
}

/// The class name of a partition key: that of its only column, or a composite's.
pub fn partition_key_name<'a>(types: impl ExactSizeIterator<Item = &'a CqlType>) -> String {
    let composite = types.len() != 1;
    let names: Vec<String> = types.map(CqlType::to_marshal).collect();
    if composite { format!("{PACKAGE}CompositeType({})", names.join(",")) } else { names.concat() }
}

impl CqlType {
    /// The name of the Java class, as Cassandra writes it.
    pub fn to_marshal(&self) -> String {
        let mut out = String::new();
        self.write_marshal(false, &mut out);
        out
    }

    /// Reads the name of a Java class that is a type of values.
    ///
    /// # Errors
    /// It does not parse, or is something else.
    pub fn from_marshal(name: &str) -> Result<CqlType, TypeError> {
        plain(parse(name)?, "here")
    }

    /// `frozen_implied`: inside something frozen the wrapper is left out.
    fn write_marshal(&self, frozen_implied: bool, out: &mut String) {
        let wrap = !frozen_implied && self.shows_freezing();
        if wrap {
            out.push_str(PACKAGE);
            out.push_str("FrozenType(");
        }
        out.push_str(PACKAGE);
        out.push_str(self.class());
        let implied = frozen_implied || !self.is_multi_cell();
        match self {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                write_list([&**element], implied, out);
            }
            CqlType::Map { key, value, .. } => write_list([&**key, &**value], implied, out),
            CqlType::Tuple(types) => write_list(types.iter(), true, out),
            CqlType::UserDefined { definition, .. } => write_user_type(definition, implied, out),
            CqlType::Vector { element, dimension } => {
                out.push('(');
                element.write_marshal(frozen_implied, out);
                let _ = write!(out, " , {dimension})");
            }
            _ => {}
        }
        if wrap {
            out.push(')');
        }
    }

    /// Is it one of those that can be frozen or not, and frozen?
    fn shows_freezing(&self) -> bool {
        match self {
            CqlType::List { frozen, .. }
            | CqlType::Set { frozen, .. }
            | CqlType::Map { frozen, .. }
            | CqlType::UserDefined { frozen, .. } => *frozen,
            _ => false,
        }
    }

    /// The class, without package and parameters.
    fn class(&self) -> &'static str {
        match self {
            CqlType::Ascii => "AsciiType",
            CqlType::Bigint => "LongType",
            CqlType::Blob => "BytesType",
            CqlType::Boolean => "BooleanType",
            CqlType::Counter => "CounterColumnType",
            CqlType::Date => "SimpleDateType",
            CqlType::Decimal => "DecimalType",
            CqlType::Double => "DoubleType",
            CqlType::Duration => "DurationType",
            CqlType::Empty => "EmptyType",
            CqlType::Float => "FloatType",
            CqlType::Inet => "InetAddressType",
            CqlType::Int => "Int32Type",
            CqlType::Smallint => "ShortType",
            CqlType::Text => "UTF8Type",
            CqlType::Time => "TimeType",
            CqlType::Timestamp => "TimestampType",
            CqlType::Timeuuid => "TimeUUIDType",
            CqlType::Tinyint => "ByteType",
            CqlType::Uuid => "UUIDType",
            CqlType::Varint => "IntegerType",
            CqlType::List { .. } => "ListType",
            CqlType::Set { .. } => "SetType",
            CqlType::Map { .. } => "MapType",
            CqlType::Tuple(_) => "TupleType",
            CqlType::UserDefined { .. } => "UserType",
            CqlType::Vector { .. } => "VectorType",
        }
    }

    /// The type of a class without parameters.
    fn from_class(class: &str) -> Option<CqlType> {
        Some(match class {
            "AsciiType" => CqlType::Ascii,
            "LongType" => CqlType::Bigint,
            "BytesType" => CqlType::Blob,
            "BooleanType" => CqlType::Boolean,
            "CounterColumnType" => CqlType::Counter,
            "SimpleDateType" => CqlType::Date,
            "DecimalType" => CqlType::Decimal,
            "DoubleType" => CqlType::Double,
            "DurationType" => CqlType::Duration,
            "EmptyType" => CqlType::Empty,
            "FloatType" => CqlType::Float,
            "InetAddressType" => CqlType::Inet,
            "Int32Type" => CqlType::Int,
            "ShortType" => CqlType::Smallint,
            "UTF8Type" => CqlType::Text,
            "TimeType" => CqlType::Time,
            "TimestampType" => CqlType::Timestamp,
            "TimeUUIDType" => CqlType::Timeuuid,
            "ByteType" => CqlType::Tinyint,
            "UUIDType" => CqlType::Uuid,
            "IntegerType" => CqlType::Varint,
            _ => return None,
        })
    }
}

fn write_list<'a>(types: impl IntoIterator<Item = &'a CqlType>, frozen_implied: bool, out: &mut String) {
    out.push('(');
    for (index, of) in types.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        // A tuple says nothing of freezing inside it, whatever stands around it.
        of.write_marshal(frozen_implied, out);
    }
    out.push(')');
}

fn write_user_type(definition: &UserType, frozen_implied: bool, out: &mut String) {
    let _ = write!(out, "({},{}", definition.keyspace, blob::format(definition.name.as_bytes()));
    for (name, of) in &definition.fields {
        let _ = write!(out, ",{}:", blob::format(name.as_bytes()));
        of.write_marshal(frozen_implied, out);
    }
    out.push(')');
}

fn plain(parsed: MarshalType, place: &'static str) -> Result<CqlType, TypeError> {
    let class = match parsed {
        MarshalType::Plain(of) => return Ok(of),
        MarshalType::Reversed(_) => "ReversedType",
        MarshalType::Composite(_) => "CompositeType",
    };
    Err(TypeError::MarshalClass { class: class.to_owned(), place: Some(place) })
}

struct Parser<'a> {
    name: &'a str,
    offset: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn any_type(&mut self) -> Result<MarshalType, TypeError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.syntax("types nest too deep"));
        }
        self.skip_blanks();
        let full = self.identifier();
        let class = full.strip_prefix(PACKAGE).unwrap_or(full);
        self.skip_blanks();
        let parsed = self.type_of_class(class)?;
        self.depth -= 1;
        Ok(parsed)
    }

    fn type_of_class(&mut self, class: &str) -> Result<MarshalType, TypeError> {
        let parsed = match class {
            // What Cassandra takes an empty name for.
            "" if self.name.trim().is_empty() => CqlType::Blob,
            "" => return Err(self.syntax("expected a class name")),
            "ReversedType" => return self.only_parameter(class).map(MarshalType::Reversed),
            "CompositeType" => return self.parameters().map(MarshalType::Composite),
            "FrozenType" => self.only_parameter(class)?.freeze(),
            "ListType" => CqlType::List { element: Arc::new(self.only_parameter(class)?), frozen: false },
            "SetType" => CqlType::Set { element: Arc::new(self.only_parameter(class)?), frozen: false },
            "MapType" => self.map()?,
            "TupleType" => CqlType::Tuple(self.plain_parameters()?.iter().map(CqlType::freeze).collect()),
            "UserType" => self.user_type()?,
            "VectorType" => self.vector()?,
            _ => {
                let of = CqlType::from_class(class)
                    .ok_or_else(|| TypeError::MarshalClass { class: class.to_owned(), place: None })?;
                if self.peek() == Some(b'(') {
                    self.parameters()?;
                }
                of
            }
        };
        Ok(MarshalType::Plain(parsed))
    }

    fn map(&mut self) -> Result<CqlType, TypeError> {
        let [key, value] = <[CqlType; 2]>::try_from(self.plain_parameters()?)
            .map_err(|_| self.syntax("MapType takes two types"))?;
        Ok(CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen: false })
    }

    fn vector(&mut self) -> Result<CqlType, TypeError> {
        self.expect(b'(', "expected '('")?;
        let element = plain(self.any_type()?, "in a vector")?;
        self.skip_blanks_and_comma();
        let dimension = self.identifier().parse::<u32>().ok();
        let dimension = dimension.filter(|dimension| (1..=DIMENSION_MAX).contains(dimension));
        let dimension = dimension.ok_or_else(|| self.syntax("expected a positive dimension"))?;
        self.skip_blanks();
        self.expect(b')', "expected ')'")?;
        Ok(CqlType::Vector { element: Arc::new(element), dimension })
    }

    fn user_type(&mut self) -> Result<CqlType, TypeError> {
        self.expect(b'(', "expected '('")?;
        self.skip_blanks_and_comma();
        let keyspace = self.identifier().to_owned();
        self.skip_blanks_and_comma();
        let name = self.hexadecimal_name()?;
        let mut fields = Vec::new();
        loop {
            self.skip_blanks_and_comma();
            if self.peek() == Some(b')') {
                break;
            }
            let field = self.hexadecimal_name()?;
            self.skip_blanks();
            self.expect(b':', "expecting ':' token")?;
            fields.push((field, plain(self.any_type()?, "in a user type")?));
        }
        self.expect(b')', "expected ')'")?;
        let definition = Arc::new(UserType { keyspace, name, fields });
        Ok(CqlType::UserDefined { definition, frozen: false })
    }

    fn hexadecimal_name(&mut self) -> Result<String, TypeError> {
        let bytes = blob::parse(self.identifier()).ok();
        let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        name.ok_or_else(|| self.syntax("expected a name in hexadecimal digits"))
    }

    fn only_parameter(&mut self, class: &str) -> Result<CqlType, TypeError> {
        let mut types = self.plain_parameters()?;
        match (types.pop(), types.is_empty()) {
            (Some(of), true) => Ok(of),
            _ => Err(self.syntax(match class {
                "ListType" => "ListType takes exactly one type",
                "SetType" => "SetType takes exactly one type",
                "FrozenType" => "FrozenType takes exactly one type",
                _ => "ReversedType takes exactly one type",
            })),
        }
    }

    fn plain_parameters(&mut self) -> Result<Vec<CqlType>, TypeError> {
        self.parameters()?.into_iter().map(|parsed| plain(parsed, "inside another")).collect()
    }

    fn parameters(&mut self) -> Result<Vec<MarshalType>, TypeError> {
        self.expect(b'(', "expected '('")?;
        let mut types = Vec::new();
        loop {
            self.skip_blanks_and_comma();
            match self.peek() {
                Some(b')') => break,
                Some(_) => types.push(self.any_type()?),
                None => return Err(self.syntax("unexpected end of string")),
            }
        }
        self.expect(b')', "expected ')'")?;
        Ok(types)
    }

    fn peek(&self) -> Option<u8> {
        self.name.as_bytes().get(self.offset).copied()
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), TypeError> {
        if self.peek() != Some(byte) {
            return Err(self.syntax(problem));
        }
        self.offset += 1;
        Ok(())
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n')) {
            self.offset += 1;
        }
    }

    fn skip_blanks_and_comma(&mut self) {
        self.skip_blanks();
        if self.peek() == Some(b',') {
            self.offset += 1;
            self.skip_blanks();
        }
    }

    fn identifier(&mut self) -> &'a str {
        let rest = self.name.get(self.offset..).unwrap_or_default();
        let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"-+._&".contains(&byte);
        let length = rest.bytes().take_while(|byte| belongs(*byte)).count();
        self.offset += length;
        &rest[..length]
    }

    fn syntax(&self, problem: &'static str) -> TypeError {
        TypeError::MarshalSyntax { name: self.name.to_owned(), offset: self.offset, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reversed_and_composite_are_told_apart() {
        let parsed = parse("CompositeType(UTF8Type,ReversedType(Int32Type))").expect("well formed");
        let expected = MarshalType::Composite(vec![
            MarshalType::Plain(CqlType::Text),
            MarshalType::Reversed(CqlType::Int),
        ]);
        assert_eq!(parsed, expected);
        assert!(CqlType::from_marshal("ReversedType(Int32Type)").is_err());
        assert!(CqlType::from_marshal("ListType(ReversedType(Int32Type))").is_err());
    }

    #[test]
    fn unknown_and_broken_names_are_refused() {
        for name in [
            "DynamicCompositeType(a=>BytesType)",
            "LexicalUUIDType",
            "com.example.MyType",
            "ListType",
            "ListType(",
            "ListType(Int32Type",
            "ListType()",
            "MapType(Int32Type)",
            "VectorType(FloatType , 0)",
            "VectorType(FloatType , x)",
            "UserType(ks,xy)",
            "UserType(ks,61,62Int32Type)",
            "Int32Type)",
            "(",
        ] {
            assert!(parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        let name = "FrozenType(".repeat(100_000);
        assert!(matches!(parse(&name), Err(TypeError::MarshalSyntax { .. })));
    }

    #[test]
    fn keys_name_their_columns() {
        assert_eq!(partition_key_name([CqlType::Int].iter()), "org.apache.cassandra.db.marshal.Int32Type");
        assert_eq!(
            partition_key_name([CqlType::Int, CqlType::Text].iter()),
            "org.apache.cassandra.db.marshal.CompositeType(org.apache.cassandra.db.marshal.Int32Type,\
             org.apache.cassandra.db.marshal.UTF8Type)"
        );
        assert_eq!(
            clustering_name(&CqlType::Int, true),
            "org.apache.cassandra.db.marshal.ReversedType(org.apache.cassandra.db.marshal.Int32Type)"
        );
    }
}
