//! The servers that are measured: their schema, what they say of themselves, connections to them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{ClientError, ConnectOptions, Connection};
use protocol::{Consistency, Prepared, Version};

use crate::engine::Link;
use crate::error::LabError;
use crate::manifest::{Pace, Plan, Target};
use crate::process::Usage;
use crate::topology::Nodes;
use crate::workload::Workload;

/// A schema change may take that long on a busy cluster.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Nodes are asked so often, and so many times, whether they agree on the schema: for ten seconds.
const AGREEMENT_LOOK_EVERY: Duration = Duration::from_millis(100);
const AGREEMENT_LOOK_COUNT: u32 = 100;
/// Streams of each connection in an open loop. More that are due wait at the client.
const STREAM_COUNT_OPEN: i16 = 1024;
/// Of version 4 twice that, less the negative ones.
const STREAM_COUNT_MAX: u16 = 1 << 14;

/// Nodes that are known, with the workload's tables on them.
#[derive(Debug)]
pub(crate) struct Session {
    nodes: Arc<Nodes>,
    statements: Vec<String>,
    consistency: Consistency,
    process_ids: Vec<u32>,
}

impl Session {
    /// Makes the keyspace and the tables, if they are not there, and tells the workload how its statements are
    /// understood.
    pub(crate) fn open(
        plan: &Plan,
        workload: &mut dyn Workload,
        process_ids: &[u32],
    ) -> Result<Session, LabError> {
        let consistency = Consistency::from_name(&plan.consistency)
            .ok_or_else(|| LabError::Plan(format!("there is no consistency level '{}'", plan.consistency)))?;
        let (node, mut connection) = first_connection(&plan.nodes)?;
        let keyspace = &plan.keyspace;
        let mut statements =
            vec![format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {}", plan.replication)];
        statements.extend(workload.tables(keyspace));
        for statement in statements {
            connection.query(&statement).map_err(|source| refused(&statement, source))?;
        }
        wait_for_schema(&mut connection).map_err(|source| unanswered(node, source))?;
        let nodes = Nodes::ask(&mut connection, node, keyspace)
            .map_err(|source| LabError::Nodes { node: node.to_owned(), source: Box::new(source) })?;
        let statements = workload.statements(keyspace);
        workload.learn(&prepare(&mut connection, &statements)?)?;
        Ok(Session { nodes: Arc::new(nodes), statements, consistency, process_ids: process_ids.to_vec() })
    }

    /// What the nodes say of themselves.
    pub(crate) fn describe(&self) -> Result<Target, LabError> {
        let replication = self.nodes.replication().to_owned();
        let mut target = Target { process_ids: self.process_ids.clone(), replication, ..Target::default() };
        for node in self.nodes.near() {
            let mut connection = connect(&node.address)?;
            let text = "SELECT release_version, cluster_name FROM system.local";
            let rows = connection.query(text).and_then(client::Answer::rows);
            let rows = rows.map_err(|source| unanswered(&node.address, source))?;
            let row = rows.rows.first().map(Vec::as_slice).unwrap_or_default();
            let word = |index: usize| {
                let cell = row.get(index).and_then(Option::as_ref);
                cell.map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into_owned())
            };
            target.releases.push(word(0));
            target.cluster = word(1);
            if let Some(version) = own_version(&mut connection) {
                target.facts.insert("peristyle_version".to_owned(), version);
            }
        }
        Ok(target)
    }

    /// Which node has which rows.
    pub(crate) fn nodes(&self) -> &Arc<Nodes> {
        &self.nodes
    }

    /// Connections for each thread, to each node, with the workload's statements prepared.
    pub(crate) fn links(&self, plan: &Plan) -> Result<Vec<Vec<Link>>, LabError> {
        let near = self.nodes.near();
        let link_count = plan.connection_count.max(near.len());
        let mut ids: Vec<Option<Arc<Vec<Bytes>>>> = vec![None; near.len()];
        let mut parts: Vec<Vec<Link>> = (0..plan.thread_count).map(|_| Vec::new()).collect();
        for index in 0..link_count {
            let stream_count = stream_count(plan.pace, index, link_count);
            if stream_count == 0 {
                continue;
            }
            let place = index % near.len();
            let mut connection = connect(&near[place].address)?;
            let prepared = match &ids[place] {
                Some(prepared) => prepared.clone(),
                None => ids[place].insert(Arc::new(self.ids(&mut connection)?)).clone(),
            };
            let socket = connection.into_socket().ok_or_else(|| LabError::Malformed {
                node: near[place].address.clone(),
                reason: "it answers what was not asked".to_owned(),
            })?;
            let link = Link::new(socket, &near[place], prepared, self.consistency, stream_count)?;
            parts[index / near.len() % plan.thread_count].push(link);
        }
        Ok(parts)
    }

    /// What a node calls the statements.
    fn ids(&self, connection: &mut Connection) -> Result<Vec<Bytes>, LabError> {
        let prepared = prepare(connection, &self.statements)?;
        Ok(prepared.into_iter().map(|prepared| prepared.id).collect())
    }

    /// What this process and the servers have used up to now.
    pub(crate) fn usage(&self) -> Usage {
        Usage::now(&self.process_ids)
    }
}

fn prepare(connection: &mut Connection, statements: &[String]) -> Result<Vec<Prepared>, LabError> {
    let prepare = |text: &String| connection.prepare(text).map_err(|source| refused(text, source));
    statements.iter().map(prepare).collect()
}

/// Streams of one of several connections: of a closed loop, all together are as many as are to be under way.
fn stream_count(pace: Pace, index: usize, link_count: usize) -> i16 {
    match pace {
        Pace::Open { .. } => STREAM_COUNT_OPEN,
        Pace::Closed { in_flight } => {
            let share = in_flight / link_count + usize::from(index < in_flight % link_count);
            share.min(usize::from(STREAM_COUNT_MAX)) as i16
        }
    }
}

/// Waits until all nodes have the schema, as drivers do; goes on without that when it takes too long.
fn wait_for_schema(connection: &mut Connection) -> Result<(), ClientError> {
    for _ in 0..AGREEMENT_LOOK_COUNT {
        let mut versions = Vec::new();
        for table in ["system.local", "system.peers"] {
            let rows = connection.query(&format!("SELECT schema_version FROM {table}"))?.rows()?;
            versions.extend(rows.rows.into_iter().flatten());
        }
        if versions.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(());
        }
        std::thread::sleep(AGREEMENT_LOOK_EVERY);
    }
    Ok(())
}

fn unanswered(node: &str, source: ClientError) -> LabError {
    LabError::Node { node: node.to_owned(), source: Box::new(source) }
}

fn refused(statement: &str, source: ClientError) -> LabError {
    LabError::Statement { statement: statement.to_owned(), source: Box::new(source) }
}

/// Ours tell Cassandra's release as their own, since drivers go by it, and what they are among the properties.
fn own_version(connection: &mut Connection) -> Option<String> {
    let text = "SELECT value FROM system_views.system_properties WHERE name = 'peristyle.version'";
    let rows = connection.query(text).and_then(client::Answer::rows).ok()?;
    let value = rows.rows.first()?.first()?.as_ref()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// To the first of the named nodes that answers.
fn first_connection(nodes: &[String]) -> Result<(&str, Connection), LabError> {
    let mut outcome = Err(LabError::Plan("no node is named".to_owned()));
    for node in nodes {
        outcome = connect(node).map(|connection| (node.as_str(), connection));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn connect(node: &str) -> Result<Connection, LabError> {
    let options = ConnectOptions {
        version: Version::V4,
        answer_timeout: Some(ANSWER_TIMEOUT),
        ..ConnectOptions::default()
    };
    Connection::open(node.to_owned(), &options).map_err(|source| unanswered(node, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_under_way_as_were_asked_for() {
        for in_flight in [1, 7, 8, 9, 256] {
            for link_count in [1, 3, 8] {
                let shares =
                    (0..link_count).map(|index| stream_count(Pace::Closed { in_flight }, index, link_count));
                assert_eq!(shares.map(|share| share as usize).sum::<usize>(), in_flight);
            }
        }
    }
}
