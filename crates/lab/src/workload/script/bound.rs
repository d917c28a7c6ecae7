//! Statements of a script once a server has prepared them: what writes their values, and what is right about answers.

use protocol::{Prepared, Rows};
use types::encoding::partition_key;

use super::check::{Checks, Written};
use super::fitting::Fitting;
use super::maker::{Maker, Moment, Whole};
use super::text::{Effect, StatementText};
use crate::workload::Request;

/// A statement that can be executed.
#[derive(Debug)]
pub(super) struct Bound {
    /// Its place among all that were prepared.
    place: usize,
    makers: Vec<Maker>,
    /// How many partitions it is about; its values are made for each of them.
    times: u64,
    /// Which of its values make the key of the first one.
    key: Vec<usize>,
    pub(super) effect: Effect,
    rows: Option<(u32, u32)>,
    checks: Checks,
}

impl Bound {
    /// Fits a statement's values to its markers, of which there are as many.
    ///
    /// # Errors
    /// One does not fit: why, in words.
    pub(super) fn new(
        place: usize,
        text: &StatementText,
        prepared: &Prepared,
        fitting: Fitting<'_>,
        written: &[Written],
    ) -> Result<Bound, String> {
        let makers =
            (0..text.values.len()).map(|place| fitting.marker(place)).collect::<Result<Vec<_>, _>>()?;
        let key = prepared.bind.partition_key_indexes.iter().map(|index| usize::from(*index));
        Ok(Bound {
            place,
            makers,
            times: text.times,
            key: key.filter(|index| *index < text.values.len()).collect(),
            effect: text.effect()?,
            rows: text.rows.map(|rows| (rows.from.max(0) as u32, rows.to.clamp(0, u32::MAX.into()) as u32)),
            checks: Checks::new(prepared.result.columns(), written),
        })
    }

    /// The first of the partitions that it is about, if this one was chosen among so many. Several stand one behind the
    /// other, and what is chosen one after the other does not overlap.
    pub(super) fn first_partition(&self, chosen: u64, partition_count: u64) -> u64 {
        chosen.wrapping_mul(self.times) % partition_count
    }

    /// Puts a request of it, about the moment's partition and those behind it.
    pub(super) fn put(
        &self,
        moment: &mut Moment<'_>,
        partition_count: u64,
        values: &mut Vec<Vec<u8>>,
        request: &mut Request<'_>,
    ) {
        if values.len() < self.makers.len() {
            values.resize_with(self.makers.len(), Vec::new);
        }
        request.execute(self.place);
        let first = moment.partition;
        self.put_values(moment, values, request);
        self.aim(values, request);
        for further in 1..self.times {
            moment.partition = (first + further) % partition_count;
            self.put_values(moment, values, request);
        }
        moment.partition = first;
    }

    fn put_values(&self, moment: &mut Moment<'_>, values: &mut Vec<Vec<u8>>, request: &mut Request<'_>) {
        if values.len() < self.makers.len() {
            values.resize_with(self.makers.len(), Vec::new);
        }
        for (maker, value) in self.makers.iter().zip(values.iter_mut()) {
            value.clear();
            maker.make(moment, value);
            request.value(value);
        }
    }

    /// The request goes to where the partition is whose values these are, if the statement has its key.
    fn aim(&self, values: &[Vec<u8>], request: &mut Request<'_>) {
        match self.key.as_slice() {
            [] => {}
            [alone] => drop(request.on(&values[*alone])),
            several => {
                // A key that is too long is refused by the server, whoever is asked.
                if let Ok(key) = partition_key(several.iter().map(|index| values[*index].as_slice())) {
                    request.on(&key);
                }
            }
        }
    }

    /// What a partition holds once this is applied, if it holds a number at all.
    pub(super) fn holds_after(&self, moment: &mut Moment<'_>) -> Option<u64> {
        let whole = |maker: &Maker| match maker {
            Maker::Whole(whole @ (Whole::Held | Whole::Next { .. }), _) => Some(whole.clone()),
            _ => None,
        };
        let mut wholes: Vec<Whole> = self.makers.iter().filter_map(whole).collect();
        wholes.sort_by_key(|whole| matches!(whole, Whole::Held));
        wholes.first().map(|whole| whole.of(moment) as u64)
    }

    /// What is wrong about rows, if anything is.
    pub(super) fn fault(&self, rows: &Rows) -> Option<String> {
        match self.rows {
            Some((from, to)) if !(from..=to).contains(&rows.row_count) => {
                let expected = if from == to { from.to_string() } else { format!("{from} to {to}") };
                Some(format!("there are {} rows, and {expected} must be", rows.row_count))
            }
            _ => self.checks.fault(rows),
        }
    }
}
