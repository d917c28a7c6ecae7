//! Rows of a result that are computed: functions, JSON, and whatever is no plain column.

use std::sync::Arc;

use read::PartitionRows;
use rows::Row;
use runtime::{Io, Piece, Runtime};
use types::CqlType;

use super::aggregate::one_row;
use super::cells::RowView;
use super::plan::SelectPlan;
use super::rows::{ComputedRows, StoredRows};
use super::selector::{Evaluation, Selector};
use crate::QueryError;
use crate::error::refuse;
use crate::memory::AnswerRoom;
use crate::response::RowSink;
use crate::terms::{Bindings, is_long};

/// Computes the rows of a result from those that were read; what they take counts in the room.
///
/// # Errors
/// A function fails, or they take more than one answer may.
pub(super) async fn compute(
    plan: &SelectPlan,
    selectors: &Arc<[Selector]>,
    rows: &StoredRows,
    (bindings, now): (&Bindings<'_>, u32),
    runtime: &Runtime,
    room: &mut AnswerRoom,
) -> Result<ComputedRows, QueryError> {
    let mut computed = ComputedRows::default();
    let mut view = RowView::new(&plan.projection);
    let mut piece = Piece::of_turn();
    for partition in &rows.partitions {
        view.enter_partition(partition);
        for row in partition.shown_rows() {
            let before = computed.byte_count();
            let bytes_max = room.answer_bytes_max();
            if row.into_iter().chain(&partition.static_row).any(Row::is_large) {
                let one = one_row(partition, row);
                let bytes_max = bytes_max.saturating_sub(before);
                // Boxed, so that the many others need no room for it.
                let elsewhere = compute_elsewhere(plan, selectors, one, (bindings, now), runtime, bytes_max);
                computed.append(Box::pin(elsewhere).await?);
            } else {
                view.enter_row(row);
                let evaluation = Evaluation { view: &view, bindings, aggregates: &[], now };
                let computing = plan.computing(selectors);
                write_row(computing, &evaluation, bytes_max, &runtime.io, &mut computed).await?;
            }
            room.take(computed.byte_count() - before);
            piece.give_way().await;
        }
    }
    Ok(computed)
}

/// What is computed of a row.
#[derive(Clone, Copy)]
pub(super) struct Computing<'a> {
    selectors: &'a [Selector],
    /// Names and types of the columns, if the row becomes a JSON object.
    json_columns: Option<&'a [(String, CqlType)]>,
}

impl SelectPlan {
    pub(super) fn computing<'a>(&'a self, selectors: &'a [Selector]) -> Computing<'a> {
        Computing { selectors, json_columns: self.is_json.then_some(&*self.json_columns) }
    }
}

/// Computes the one row of a partition on another thread: what functions make of a large row is long work.
async fn compute_elsewhere(
    plan: &SelectPlan,
    selectors: &Arc<[Selector]>,
    partition: PartitionRows,
    (bindings, now): (&Bindings<'_>, u32),
    runtime: &Runtime,
    bytes_max: usize,
) -> Result<ComputedRows, QueryError> {
    let (selectors, projection) = (Arc::clone(selectors), Arc::clone(&plan.projection));
    let json_columns = plan.is_json.then(|| Arc::clone(&plan.json_columns));
    let computing = move |bindings: &Bindings<'_>| {
        let mut view = RowView::new(&projection);
        view.enter_partition(&partition);
        view.enter_row(partition.rows.first());
        let evaluation = Evaluation { view: &view, bindings, aggregates: &[], now };
        let computing = Computing { selectors: &selectors, json_columns: json_columns.as_deref() };
        let mut computed = ComputedRows::default();
        let here = Io::inline();
        runtime::block_on(write_row(computing, &evaluation, bytes_max, &here, &mut computed))?;
        Ok(computed)
    };
    bindings.elsewhere(runtime, computing).await
}

/// Computes one row of the result, behind those before it, which may be so many bytes with it.
///
/// # Errors
/// A function fails, or they are more.
pub(super) async fn write_row(
    computing: Computing<'_>,
    evaluation: &Evaluation<'_>,
    bytes_max: usize,
    io: &Io,
    out: &mut ComputedRows,
) -> Result<(), QueryError> {
    evaluation.bindings.environment.begin_row();
    if let Some(columns) = computing.json_columns {
        let bytes_max = bytes_max.saturating_sub(out.byte_count());
        let json = json(computing.selectors, columns, evaluation, bytes_max, io).await?;
        out.cell(Some(json.as_bytes()));
    } else {
        for selector in computing.selectors {
            out.cell(selector.evaluate(evaluation)?.as_deref());
            check(out.byte_count(), bytes_max)?;
        }
    }
    out.end_row();
    Ok(())
}

/// A row as one JSON object of at most so many bytes.
async fn json(
    selectors: &[Selector],
    columns: &[(String, CqlType)],
    evaluation: &Evaluation<'_>,
    bytes_max: usize,
    io: &Io,
) -> Result<String, QueryError> {
    let mut json = String::from("{");
    for (selector, (name, cql_type)) in selectors.iter().zip(columns) {
        if json.len() > 1 {
            json.push_str(", ");
        }
        let has_upper_case = name.chars().any(|c| c != c.to_ascii_lowercase());
        let shown = if has_upper_case { format!("\"{name}\"") } else { name.clone() };
        types::write_json_string(&shown, &mut json);
        json.push_str(": ");
        match selector.evaluate(evaluation)? {
            Some(value) if is_long(&value) => {
                json.push_str(&long_json(cql_type, value.into_owned(), io).await);
            }
            value => cql_type.write_json(value.as_deref(), &mut json),
        }
        check(json.len(), bytes_max)?;
    }
    json.push('}');
    Ok(json)
}

/// The JSON of a long value, made on another thread: 10 ms for each MiB of a list.
async fn long_json(cql_type: &CqlType, value: Vec<u8>, io: &Io) -> String {
    let of = cql_type.clone();
    io.run(move || of.to_json(Some(&value))).await
}

fn check(bytes: usize, bytes_max: usize) -> Result<(), QueryError> {
    if bytes > bytes_max {
        refuse!(
            "The answer would take more than the {bytes_max} bytes of memory that one may have: ask for pages, for fewer rows or for fewer columns"
        );
    }
    Ok(())
}
