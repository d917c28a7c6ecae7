//! `/v1/cluster`, `/v1/ranges` and `/v1/endpoints`: all nodes together, and which of them have what.

use std::collections::BTreeMap;

use assembly::{PARTITIONER, Placed, RELEASE_VERSION, schema_versions};
use axum::extract::State;
use axum::middleware::map_request;
use axum::routing::get;
use axum::{Json, Router};
use cluster::metadata::Member;
use management::{Cluster, DataCenter, Endpoints, Range, Ranges, Replica, Replication};
use ring::TokenRange;
use schema::{Column, Keyspace, Schema, Table};
use serde::Deserialize;
use types::{Token, encoding};

use super::ManagementState;
use super::answer::{Answer, Refusal};
use super::request::{Parameters, refuse_parameters};

const PACKAGE: &str = "org.apache.cassandra.locator.";

pub(super) fn routes() -> Router<ManagementState> {
    Router::new()
        .route("/v1/cluster", get(cluster))
        .route_layer(map_request(refuse_parameters))
        .route("/v1/ranges", get(ranges))
        .route("/v1/endpoints", get(endpoints))
}

async fn cluster(State(state): State<ManagementState>) -> Answer<Cluster> {
    let (schema, view) = (state.schema().await?, &state.view);
    let mut data_centers = BTreeMap::<String, DataCenter>::new();
    let (mut unreachable, mut all) = (Vec::new(), Vec::new());
    let mut nodes = view.nodes();
    nodes.sort_by_key(|node| node.candidate.address);
    for Member { candidate, .. } in nodes {
        let center = data_centers.entry(candidate.data_center).or_default();
        center.node_count += 1;
        if !view.hears(candidate.host_id) {
            center.down_count += 1;
            unreachable.push(candidate.address.ip().to_string());
        }
        all.push(candidate.address.to_string());
    }
    let versions = schema_versions(view, &schema).into_iter().map(|(version, nodes)| {
        (version.to_string(), nodes.iter().map(|address| address.ip().to_string()).collect())
    });
    let seeds = view.options.ring.iter().flat_map(|ring| &ring.seeds);
    let remote = seeds.filter(|seed| **seed != view.address());
    Ok(Json(Cluster {
        name: view.options.cluster_name.clone(),
        snitch: format!("{PACKAGE}{}", view.snitch()),
        partitioner: PARTITIONER.into(),
        schema_versions: versions.collect(),
        unreachable,
        data_centers,
        release_versions: [(RELEASE_VERSION.to_owned(), all)].into(),
        keyspaces: schema.keyspaces().values().map(|keyspace| replication(keyspace)).collect(),
        seeds: remote.map(|seed| format!("/{seed}")).collect(),
    }))
}

fn replication(keyspace: &Keyspace) -> (String, Replication) {
    let of = &keyspace.replication;
    let class = of.class.rsplit('.').next().unwrap_or_default().to_owned();
    (keyspace.name.clone(), Replication { class, options: of.options.clone() })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfKeyspace {
    keyspace: String,
}

async fn ranges(
    State(state): State<ManagementState>,
    Parameters(OfKeyspace { keyspace }): Parameters<OfKeyspace>,
) -> Answer<Ranges> {
    let schema = state.schema().await?;
    let missing = || Refusal::missing(format!("Unknown keyspace {keyspace}"));
    let found = schema.keyspace(&keyspace).ok_or_else(missing)?;
    if found.replication.class.ends_with("LocalStrategy") {
        return Err(Refusal::wrong(format!("There is no ring for the keyspace: {keyspace}")));
    }
    let placed = Placed::new(&state.view, &found.replication);
    let of_range = |(range, replicas): &(TokenRange, Vec<usize>)| Range {
        start_token: range.start.0.to_string(),
        end_token: range.end.0.to_string(),
        replicas: replicas.iter().map(|place| replica(&placed.nodes[*place])).collect(),
    };
    let versions = schema_versions(&state.view, &schema);
    let own = versions.iter().find(|(_, nodes)| nodes.contains(&state.view.address()));
    let schema_version = own.map(|(version, _)| version.to_string()).unwrap_or_default();
    Ok(Json(Ranges { schema_version, ranges: placed.ranges.iter().map(of_range).collect() }))
}

fn replica(node: &Member) -> Replica {
    let candidate = &node.candidate;
    Replica {
        address: candidate.address.ip().to_string(),
        cql_address: candidate.cql_address.ip().to_string(),
        data_center: candidate.data_center.clone(),
        rack: candidate.rack.clone(),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfKey {
    keyspace: String,
    table: String,
    key: String,
}

async fn endpoints(
    State(state): State<ManagementState>,
    Parameters(wanted): Parameters<OfKey>,
) -> Answer<Endpoints> {
    let schema = state.schema().await?;
    let (keyspace, token) = wanted.find(&schema)?;
    let placed = Placed::new(&state.view, &keyspace.replication);
    let addresses = placed.replicas_of(token).map(|node| node.candidate.address.ip().to_string());
    Ok(Json(Endpoints { addresses: addresses.collect() }))
}

impl OfKey {
    /// The keyspace, and the token of the key.
    fn find<'a>(&self, schema: &'a Schema) -> Result<(&'a Keyspace, Token), Refusal> {
        let OfKey { keyspace: name, table, key } = self;
        let missing = || Refusal::missing(format!("Unknown keyspace '{name}'"));
        let keyspace = schema.keyspace(name).ok_or_else(missing)?;
        let missing = || Refusal::missing(format!("Unknown table '{table}' in keyspace '{name}'"));
        let table = keyspace.tables.get(table).ok_or_else(missing)?;
        Ok((keyspace, token_of(table, key)?))
    }
}

/// The token of a key as text. Values of several columns have colons between them; behind `\` a colon is one.
fn token_of(table: &Table, key: &str) -> Result<Token, Refusal> {
    let columns = table.partition_key();
    let texts = if columns.len() == 1 { vec![key.to_owned()] } else { split(key) };
    if texts.len() != columns.len() {
        let (expected, found) = (columns.len(), texts.len());
        return Err(Refusal::wrong(format!("the key has {expected} values, not {found}: {key}")));
    }
    let value = |(column, text): (&Column, &String)| column.cql_type.from_text(text, 0);
    let values: Result<Vec<Vec<u8>>, _> = columns.iter().zip(&texts).map(value).collect();
    let wrong = |error: types::TypeError| Refusal::wrong(error.to_string());
    let key = encoding::partition_key(values.map_err(wrong)?.iter().map(Vec::as_slice));
    Ok(Token::of(&key.map_err(wrong)?))
}

fn split(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = key.chars().peekable();
    while let Some(letter) = letters.next() {
        let part = parts.last_mut().expect("there is one at the start");
        match letter {
            '\\' if letters.next_if_eq(&':').is_some() => part.push(':'),
            ':' => parts.push(String::new()),
            _ => part.push(letter),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_key_have_colons_between_them() {
        assert_eq!(split("a:b"), ["a", "b"]);
        assert_eq!(split(r"a\:b:c\d:"), ["a:b", r"c\d", ""]);
    }

    #[test]
    fn keys_are_read_as_the_columns_of_the_table_are() {
        let table = |columns: &[(&str, types::CqlType)]| {
            let id = schema::TableId(uuid::Uuid::from_u128(1));
            let builder = schema::TableBuilder::new(id, "k", "t");
            let with = |builder: schema::TableBuilder,
                        (place, (name, of)): (u16, &(&str, types::CqlType))| {
                builder.column(*name, schema::ColumnKind::PartitionKey(place), of.clone())
            };
            (0..).zip(columns).fold(builder, with).build().expect("a table")
        };
        let one = table(&[("a", types::CqlType::Int)]);
        assert_eq!(token_of(&one, "7").expect("a token"), Token::of(&[0, 0, 0, 7]));
        assert!(token_of(&one, "seven").is_err());
        let two = table(&[("a", types::CqlType::Int), ("b", types::CqlType::Text)]);
        let bytes = [&[0, 4, 0, 0, 0, 7, 0][..], &[0, 3, b'x', b':', b'y', 0]].concat();
        assert_eq!(token_of(&two, r"7:x\:y").expect("a token"), Token::of(&bytes));
        assert!(token_of(&two, "7:x:y").is_err() && token_of(&two, "7").is_err());
    }
}
