//! Generators fitted to the types of markers. A generator that can not make a value of a type is refused here, before
//! anything is measured.

use std::collections::BTreeMap;

use protocol::ColumnSpec;
use types::CqlType;

use super::check::Written;
use super::choice::Spread;
use super::generator::Generator;
use super::maker::{Maker, Whole, column_number};
use super::plain::{fields, has_room, simple, sized, time, width};

/// Values may be made of values that deep; deeper ones are made of themselves.
const DEPTH_MAX: usize = 8;

/// A script's generators, with what they need to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fitting<'a> {
    pub(super) generators: &'a BTreeMap<String, Generator>,
    pub(super) partition_count: u64,
    pub(super) rows_per_partition: u64,
    /// Names of the statement's values, and as many markers: those of the first partition, if it is about several.
    pub(super) values: &'a [String],
    pub(super) markers: &'a [ColumnSpec],
}

impl Fitting<'_> {
    /// What makes values of the marker at this place.
    pub(super) fn marker(&self, place: usize) -> Result<Maker, String> {
        let (name, marker) = (&self.values[place], &self.markers[place]);
        let (column, is_entry) = column_of(&marker.name);
        let column = if is_entry { format!("{column}.value") } else { column.to_owned() };
        self.maker(name, &marker.cql_type, &column, 0)
    }

    /// The columns that the statement writes.
    pub(super) fn written(&self) -> Result<Vec<Written>, String> {
        let mut written = Vec::new();
        for (place, (name, marker)) in self.values.iter().zip(self.markers).enumerate() {
            let of = self.derived_of(name, 0)?;
            let (column, is_entry) = column_of(&marker.name);
            written.push(Written {
                table: marker.table.to_string(),
                column: column.to_owned(),
                maker: self.marker(place)?.of_column(is_entry),
                is_entry,
                of: of.map(|of| self.columns_of(&of)).transpose()?,
            });
        }
        Ok(written)
    }

    /// The columns that values of these names are written to.
    fn columns_of(&self, names: &[String]) -> Result<Vec<String>, String> {
        let column = |name: &String| {
            let place = self.values.iter().position(|value| value == name);
            let marker = place.and_then(|place| self.markers.get(place));
            marker.map(|marker| marker.name.to_string())
        };
        let columns = names.iter().map(column).collect::<Option<Vec<_>>>();
        columns.ok_or_else(|| {
            format!("a value is derived of {}, which the statement does not have", names.join(", "))
        })
    }

    /// The generator of a name.
    fn named(&self, name: &str) -> Result<&Generator, String> {
        self.generators.get(name).ok_or_else(|| format!("there is no value '{name}' under [values]"))
    }

    /// What the derived parts of a value are derived of; nothing if it has none.
    fn derived_of(&self, name: &str, depth: usize) -> Result<Option<Vec<String>>, String> {
        if depth > DEPTH_MAX {
            return Err(format!("'{name}' is made of itself"));
        }
        let generator = self.named(name)?;
        if let Generator::Derived { of, .. } = generator {
            return Ok(Some(of.clone()));
        }
        let mut found: Option<Vec<String>> = None;
        for part in generator.parts() {
            let of_part = self.derived_of(part, depth + 1)?;
            if found.is_some() && of_part.is_some() && found != of_part {
                return Err(format!("parts of '{name}' are derived of different values"));
            }
            found = found.or(of_part);
        }
        Ok(found)
    }

    /// `place` is the column, with what is within it behind dots.
    fn maker(&self, name: &str, cql_type: &CqlType, place: &str, depth: usize) -> Result<Maker, String> {
        if depth > DEPTH_MAX {
            return Err(format!("'{name}' is made of itself"));
        }
        let generator = self.named(name)?;
        let found = match generator {
            Generator::Template { .. } | Generator::Derived { .. } | Generator::Letters { .. } => {
                self.bytes(name, generator, cql_type, place)?
            }
            Generator::Now { .. } | Generator::Time { .. } => time(generator, cql_type),
            _ if !generator.parts().is_empty() => self.composed(name, generator, cql_type, place, depth)?,
            _ => match self.whole(name, generator)? {
                Some(whole) => self.sized_whole(name, generator, whole, cql_type)?,
                None => simple(name, generator, cql_type)?,
            },
        };
        found.ok_or_else(|| format!("'{name}' can not make a value of type {cql_type} for {place}"))
    }

    /// What makes a text or a blob.
    fn bytes(
        &self,
        name: &str,
        generator: &Generator,
        cql_type: &CqlType,
        place: &str,
    ) -> Result<Option<Maker>, String> {
        if !matches!(cql_type, CqlType::Text | CqlType::Ascii | CqlType::Blob) {
            return Ok(None);
        }
        Ok(match generator {
            Generator::Template { text } => Some(Maker::Template(text.clone())),
            Generator::Letters { bytes } => Some(Maker::Letters(sized(name, *bytes)?)),
            Generator::Derived { bytes, of } => Some(Maker::Derived {
                bytes: sized(name, *bytes)?,
                of: of.iter().map(|of| self.known(name, of)).collect::<Result<_, _>>()?,
                column: column_number(place),
            }),
            _ => None,
        })
    }

    /// What makes a value of others.
    fn composed(
        &self,
        name: &str,
        generator: &Generator,
        cql_type: &CqlType,
        place: &str,
        depth: usize,
    ) -> Result<Option<Maker>, String> {
        let fit =
            |part: &String, cql_type: &CqlType, place: &str| self.maker(part, cql_type, place, depth + 1);
        Ok(Some(match (generator, cql_type) {
            (Generator::List { of, count }, CqlType::List { element, .. })
            | (Generator::Set { of, count }, CqlType::Set { element, .. }) => {
                Maker::Many { parts: vec![fit(of, element, place)?], count: sized(name, *count)? }
            }
            (Generator::Map { key, value, count }, CqlType::Map { key: key_type, value: value_type, .. }) => {
                let key = fit(key, key_type, &format!("{place}.key"))?;
                let value = fit(value, value_type, &format!("{place}.value"))?;
                Maker::Many { parts: vec![key, value], count: sized(name, *count)? }
            }
            (Generator::Fields { of }, CqlType::UserDefined { .. } | CqlType::Tuple(_)) => {
                let fields = fields(cql_type);
                if fields.len() != of.len() {
                    let (own, those) = (of.len(), fields.len());
                    return Err(format!("'{name}' has {own} fields, and {cql_type} has {those}"));
                }
                let both = of.iter().zip(&fields);
                let makers = both.map(|(of, (field, one))| fit(of, one, &format!("{place}.{field}")));
                Maker::Fields(makers.collect::<Result<_, _>>()?)
            }
            (Generator::Uuid { of: Some(of) }, CqlType::Uuid) => {
                let whole = self.whole(of, self.named(of)?)?;
                let refuse = || format!("'{name}' is of '{of}', which is no whole number");
                Maker::Uuid(Some(whole.ok_or_else(refuse)?))
            }
            _ => return Ok(None),
        }))
    }

    /// What a value is derived of: something else that this statement writes, and that a reader knows by the row.
    fn known(&self, name: &str, of: &str) -> Result<Maker, String> {
        let is_known = match self.named(of)? {
            Generator::Uuid { of: Some(number) } => self.named(number)?.is_known_of_the_row(),
            generator => generator.is_known_of_the_row(),
        };
        if !is_known {
            return Err(format!(
                "'{name}' is derived of '{of}', which does not follow from partition and row alone"
            ));
        }
        match self.values.iter().position(|value| value == of) {
            Some(place) => self.marker(place),
            None => Err(format!("'{name}' is derived of '{of}', which the statement does not have")),
        }
    }

    fn whole(&self, name: &str, generator: &Generator) -> Result<Option<Whole>, String> {
        Ok(Some(match generator {
            Generator::Partition {} => Whole::Partition,
            Generator::Row {} => Whole::Row,
            Generator::Held {} => Whole::Held,
            Generator::Next { modulo } => {
                let modulo = modulo.unwrap_or(i32::MAX as u64);
                if modulo < 2 {
                    return Err(format!("'{name}' has less than two numbers"));
                }
                Whole::Next { modulo }
            }
            Generator::Number { from, to, distribution } => {
                let count = (from <= to).then(|| to.abs_diff(*from).checked_add(1)).flatten();
                let count = count.ok_or_else(|| format!("'{name}' has no numbers from {from} to {to}"))?;
                let spread = Spread::new(*distribution, count);
                let spread = spread.ok_or_else(|| {
                    format!("'{name}' is drawn anew each time: uniform, zipfian, true-zipfian or normal")
                })?;
                Whole::Drawn { from: *from, spread }
            }
            _ => return Ok(None),
        }))
    }

    /// What makes a whole number of a type, unless that has no room for it.
    fn sized_whole(
        &self,
        name: &str,
        generator: &Generator,
        whole: Whole,
        cql_type: &CqlType,
    ) -> Result<Option<Maker>, String> {
        let Some(width) = width(cql_type) else { return Ok(None) };
        let last = |count: u64| i64::try_from(count - 1).unwrap_or(i64::MAX);
        let (from, to) = match generator {
            Generator::Partition {} => (0, last(self.partition_count)),
            Generator::Row {} => (0, last(self.rows_per_partition)),
            Generator::Number { from, to, .. } => (*from, *to),
            Generator::Next { modulo: Some(modulo) } => (0, last(*modulo)),
            _ => (0, 0),
        };
        if !has_room(width, from) || !has_room(width, to) {
            return Err(format!("'{name}' goes from {from} to {to}, too far for {cql_type}"));
        }
        Ok(Some(Maker::Whole(whole, width)))
    }
}

/// The column that a marker is for, and whether it is for one entry of it.
fn column_of(marker: &str) -> (&str, bool) {
    let entry = marker.strip_prefix("value(").and_then(|rest| rest.strip_suffix(')'));
    entry.map_or((marker, false), |column| (column, true))
}
