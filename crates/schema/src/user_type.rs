//! User types inside other types: definitions are spelled out whole wherever they are used, so a
//! changed one is changed everywhere at once.

use std::sync::Arc;

use types::{CqlType, UserType};

use crate::{Keyspace, Table};

/// Puts a definition into a keyspace, and into every type and table there that uses it.
pub(crate) fn put(keyspace: &mut Keyspace, definition: &Arc<UserType>) {
    for other in keyspace.types.values_mut() {
        if let Some(renewed) = renew_definition(other, definition) {
            *other = renewed;
        }
    }
    let of_table = |(name, table): (&String, &Arc<Table>)| {
        let renewed = table.map_types(|cql_type| renew(cql_type, definition))?;
        Some((name.clone(), Arc::new(renewed)))
    };
    let renewed: Vec<_> = keyspace.tables.iter().filter_map(of_table).collect();
    keyspace.tables.extend(renewed);
    keyspace.types.insert(definition.name.clone(), Arc::clone(definition));
}

fn is_same(a: &UserType, b: &UserType) -> bool {
    a.keyspace == b.keyspace && a.name == b.name
}

/// The definition with the changed one in it; none when that makes no difference.
fn renew_definition(definition: &Arc<UserType>, changed: &Arc<UserType>) -> Option<Arc<UserType>> {
    if is_same(definition, changed) {
        return (definition != changed).then(|| Arc::clone(changed));
    }
    let renewed: Vec<_> = definition.fields.iter().map(|(_, field)| renew(field, changed)).collect();
    if renewed.iter().all(Option::is_none) {
        return None;
    }
    let mut copy = UserType::clone(definition);
    for (field, renewed) in copy.fields.iter_mut().zip(renewed) {
        if let Some(renewed) = renewed {
            field.1 = renewed;
        }
    }
    Some(Arc::new(copy))
}

/// The type with the changed definition in it; none when that makes no difference.
fn renew(cql_type: &CqlType, changed: &Arc<UserType>) -> Option<CqlType> {
    let part = |of: &Arc<CqlType>| renew(of, changed).map(Arc::new);
    match cql_type {
        CqlType::List { element, frozen } => {
            part(element).map(|element| CqlType::List { element, frozen: *frozen })
        }
        CqlType::Set { element, frozen } => {
            part(element).map(|element| CqlType::Set { element, frozen: *frozen })
        }
        CqlType::Vector { element, dimension } => {
            part(element).map(|element| CqlType::Vector { element, dimension: *dimension })
        }
        CqlType::Map { key, value, frozen } => {
            let (new_key, new_value) = (part(key), part(value));
            (new_key.is_some() || new_value.is_some()).then(|| CqlType::Map {
                key: new_key.unwrap_or_else(|| Arc::clone(key)),
                value: new_value.unwrap_or_else(|| Arc::clone(value)),
                frozen: *frozen,
            })
        }
        CqlType::Tuple(parts) => {
            let renewed: Vec<_> = parts.iter().map(|part| renew(part, changed)).collect();
            renewed.iter().any(Option::is_some).then(|| {
                let choose = |(old, new): (&CqlType, Option<CqlType>)| new.unwrap_or_else(|| old.clone());
                CqlType::Tuple(parts.iter().zip(renewed).map(choose).collect())
            })
        }
        CqlType::UserDefined { definition, frozen } => renew_definition(definition, changed)
            .map(|definition| CqlType::UserDefined { definition, frozen: *frozen }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uuid::Uuid;

    use super::*;
    use crate::{ColumnKind, Replication, Schema, TableBuilder, TableId, Transformation};

    fn user_type(name: &str, fields: &[(&str, CqlType)]) -> CqlType {
        let fields = fields.iter().map(|(field, cql_type)| ((*field).to_owned(), cql_type.clone())).collect();
        let definition = Arc::new(UserType { keyspace: "k".into(), name: name.into(), fields });
        CqlType::UserDefined { definition, frozen: true }
    }

    #[test]
    fn a_changed_type_is_changed_in_types_and_tables_that_use_it() {
        let inner = user_type("inner", &[("a", CqlType::Int)]);
        let outer = user_type("outer", &[("i", inner.clone())]);
        let column = CqlType::List { element: outer.clone().into(), frozen: false };
        let table = TableBuilder::new(TableId(Uuid::from_u128(1)), "k", "t")
            .column("k", ColumnKind::PartitionKey(0), CqlType::Int)
            .column("c", ColumnKind::Clustering(0, crate::ClusteringOrder::Asc), inner.clone())
            .column("v", ColumnKind::Regular, column)
            .build()
            .expect("table");
        let replication = Replication { class: String::new(), options: BTreeMap::new() };
        let created = Transformation::CreateKeyspace { name: "k".into(), replication, durable_writes: true };
        let put = |cql_type: &CqlType| Transformation::PutType { cql_type: cql_type.clone() };
        let created_table = Transformation::CreateTable { table: Box::new(table) };
        let longer = user_type("inner", &[("a", CqlType::Int), ("b", CqlType::Text)]);
        let steps = [created, put(&inner), put(&outer), created_table, put(&longer)];
        let mut creates = Vec::new();
        let schema = steps.iter().fold(Schema::default(), |schema, step| {
            creates.push(step.creates(&schema));
            step.apply(&schema).expect("applies")
        });
        assert_eq!(creates, [true, true, true, true, false]);

        let expected = user_type("outer", &[("i", longer.clone())]);
        let table = schema.table("k", "t").expect("table");
        let list = CqlType::List { element: expected.clone().into(), frozen: false };
        assert_eq!(table.column("v").map(|column| &column.cql_type), Some(&list));
        assert_eq!(table.column("c").map(|column| &column.cql_type), Some(&longer));
        assert_eq!(table.clustering_types()[0].0, longer);
        let types = &schema.keyspace("k").expect("keyspace").types;
        let outer = types.get("outer").cloned().expect("type");
        assert_eq!(CqlType::UserDefined { definition: outer, frozen: true }, expected);
    }

    #[test]
    fn types_come_back_from_the_log_as_they_were() {
        let list = |frozen| CqlType::List { element: CqlType::Int.into(), frozen };
        let inner = user_type("in ner", &[("l", list(false)), ("f", list(true)), ("ü", CqlType::Text)]);
        let CqlType::UserDefined { definition, .. } = &inner else { unreachable!("made above") };
        let open = CqlType::UserDefined { definition: Arc::clone(definition), frozen: false };
        let map = CqlType::Map { key: inner.clone().into(), value: list(true).into(), frozen: false };
        let types = [
            inner.clone(),
            open.clone(),
            map.clone(),
            map.freeze(),
            CqlType::Vector { element: list(false).into(), dimension: 3 },
            CqlType::Vector { element: open.clone().into(), dimension: 3 },
            CqlType::Tuple([inner.clone(), list(true)].into()),
            CqlType::Set { element: CqlType::Tuple([CqlType::Duration].into()).into(), frozen: false },
            user_type("outer", &[("i", inner), ("m", map), ("t", CqlType::Tuple([list(true)].into()))]),
        ];
        for cql_type in types {
            let mut builder = TableBuilder::new(TableId(Uuid::from_u128(1)), "k", "t")
                .column("k", ColumnKind::PartitionKey(0), CqlType::Int)
                .column("v", ColumnKind::Regular, cql_type.clone());
            builder.options.bloom_filter_fp_chance = crate::Fraction(0.30000000000000004);
            builder.options.crc_check_chance = crate::Fraction(9.007199254740993e-15);
            let table = builder.build().expect("table");
            let mut changes = vec![Transformation::CreateTable { table: Box::new(table) }];
            if matches!(cql_type, CqlType::UserDefined { .. }) {
                changes.push(Transformation::PutType { cql_type });
            }
            for change in changes {
                let text = serde_json::to_string(&change).expect("text");
                assert_eq!(serde_json::from_str::<Transformation>(&text).expect("change"), change, "{text}");
            }
        }
    }
}
