//! INSERT JSON: the columns and values are in a text.

use std::sync::Arc;

use cql::ast::{JsonDefault, JsonValue, Marker, Term as Written};
use schema::{Column, Table};
use types::CqlType;

use super::insert::plan_values;
use super::plan::{ModifyPlan, Using};
use crate::QueryError;
use crate::scope::{Receiver, Scope, TableNames};
use crate::terms::{self, JsonMarker, Term, json};

pub(super) fn plan(
    value: &JsonValue,
    default: JsonDefault,
    table: &Arc<Table>,
    using: Using,
    scope: &mut Scope<'_>,
) -> Result<ModifyPlan, QueryError> {
    let names: Arc<[String]> = table.columns().iter().map(|column| column.name.clone()).collect();
    let values: Vec<(&Column, Term)> = match value {
        JsonValue::Literal(text) => {
            let document = json::parse(text, None, &names)?;
            let mut values = Vec::with_capacity(table.columns().len());
            for column in table.columns() {
                match (document.get(&column.name), default) {
                    (None, JsonDefault::Unset) => {}
                    (None, JsonDefault::Null) => values.push((column, Term::Null)),
                    (Some(value), _) => {
                        let encoded = json::encode(&column.name, &column.cql_type, value, scope.now_millis)?;
                        values
                            .push((column, encoded.map_or(Term::Null, |bytes| Term::Constant(bytes.into()))));
                    }
                }
            }
            values
        }
        JsonValue::Marker(marker) => {
            bind(marker, table, scope)?;
            let one = |column: &Column| {
                Term::Json(Arc::new(JsonMarker {
                    index: marker.index as usize,
                    column: column.name.clone(),
                    cql_type: column.cql_type.clone(),
                    defaults_to_unset: default == JsonDefault::Unset,
                    columns: Arc::clone(&names),
                }))
            };
            table.columns().iter().map(|column| (column, one(column))).collect()
        }
    };
    plan_values(values, table, using)
}

fn bind(marker: &Marker, table: &Table, scope: &mut Scope<'_>) -> Result<(), QueryError> {
    let receiver = Receiver::new(&TableNames::of(table), json::MARKER_NAME, CqlType::Text);
    terms::plan(&Written::Marker(marker.clone()), &receiver, scope).map(|_| ())
}
