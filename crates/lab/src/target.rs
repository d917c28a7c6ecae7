//! The servers that are measured: their schema, what they say of themselves, connections to them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{ClientError, ConnectOptions, Connection};
use protocol::{Consistency, Prepared, Version};

use crate::engine::Link;
use crate::error::LabError;
use crate::manifest::{Plan, Target};
use crate::process::Usage;
use crate::topology::Nodes;
use crate::workload::Workload;

/// A schema change may take that long on a busy cluster.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

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
        let nodes = Nodes::ask(&mut connection, node, keyspace)
            .map_err(|source| LabError::Nodes { node: node.to_owned(), source: Box::new(source) })?;
        let statements = workload.statements(keyspace);
        workload.learn(&prepare(&mut connection, &statements)?)?;
        Ok(Session { nodes: Arc::new(nodes), statements, consistency, process_ids: process_ids.to_vec() })
    }

    /// What the nodes say of themselves.
    pub(crate) fn describe(&self) -> Result<Target, LabError> {
        let mut target = Target { process_ids: self.process_ids.clone(), ..Target::default() };
        for node in self.nodes.near() {
            let mut connection = connect(&node.address)?;
            let of_node = |source| LabError::Node { node: node.address.clone(), source: Box::new(source) };
            let text = "SELECT release_version, cluster_name FROM system.local";
            let rows = connection.query(text).and_then(client::Answer::rows).map_err(of_node)?;
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

    /// Connections for each thread, over the nodes in turns, with the workload's statements prepared.
    pub(crate) fn links(&self, plan: &Plan, stream_count: i16) -> Result<Vec<Vec<Link>>, LabError> {
        let near = self.nodes.near();
        let mut ids: Vec<Option<Arc<Vec<Bytes>>>> = vec![None; near.len()];
        let mut parts: Vec<Vec<Link>> = (0..plan.thread_count).map(|_| Vec::new()).collect();
        for index in 0..plan.connection_count.max(near.len()) {
            let place = index % near.len();
            let mut connection = connect(&near[place].address)?;
            let prepared = match &ids[place] {
                Some(prepared) => prepared.clone(),
                None => ids[place].insert(Arc::new(self.ids(&mut connection)?)).clone(),
            };
            let socket = connection.into_socket().expect("whoever prepares waits for the answers");
            let link = Link::new(socket, &near[place], prepared, self.consistency, stream_count)?;
            parts[index % plan.thread_count].push(link);
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
    let of_node = |source: ClientError| LabError::Node { node: node.to_owned(), source: Box::new(source) };
    Connection::open(node.to_owned(), &options).map_err(of_node)
}
