//! The servers that are measured: their schema, what they say of themselves, connections to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client::{ClientError, ConnectOptions, Connection, Row};
use protocol::{Consistency, Prepared, Version};

use crate::disturbance::Hand;
use crate::engine::Link;
use crate::error::LabError;
use crate::manifest::{Pace, Plan, Target};
use crate::process::Usage;
use crate::session::Preparation;
use crate::topology::{Near, Nodes};
use crate::workload::Workload;

/// A schema change may take that long on a busy cluster.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A node that does not take a connection in this time is down.
const BRIEF_TIMEOUT: Duration = Duration::from_secs(2);
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
    statements: Arc<[String]>,
    preparation: Preparation,
}

/// Whoever opens connections, at the beginning and when some have broken.
#[derive(Debug)]
pub(crate) struct Door {
    statements: Arc<[String]>,
    consistency: Consistency,
}

impl Door {
    /// A connection to a node, with the workload's statements prepared.
    pub(crate) fn open(&self, node: &Near, stream_count: i16) -> Result<Link, LabError> {
        self.over(connect(&node.address)?, node, stream_count)
    }

    /// The same in place of one that broke: a node that hangs is not waited for.
    pub(crate) fn open_briefly(&self, node: &Near, stream_count: i16) -> Result<Link, LabError> {
        let connection =
            connect_briefly(&node.address).map_err(|source| unanswered(&node.address, source))?;
        self.over(connection, node, stream_count)
    }

    fn over(&self, mut connection: Connection, node: &Near, stream_count: i16) -> Result<Link, LabError> {
        let prepared = prepare(&mut connection, &self.statements)?;
        let ids = prepared.into_iter().map(|prepared| prepared.id).collect();
        let socket = connection.into_socket().ok_or_else(|| LabError::Malformed {
            node: node.address.clone(),
            reason: "it answers what was not asked".to_owned(),
        })?;
        Ok(Link::new(socket, node, ids, self.consistency, stream_count)?)
    }
}

impl Session {
    /// Makes the keyspace and the tables, if they are not there, and tells the workload how its statements are
    /// understood.
    pub(crate) fn open(
        plan: &Plan,
        workload: &mut dyn Workload,
        preparation: &Preparation,
    ) -> Result<Session, LabError> {
        level_of(plan)?;
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
        Ok(Session {
            nodes: Arc::new(nodes),
            statements: statements.into(),
            preparation: preparation.clone(),
        })
    }

    /// What the nodes say of themselves; of one that does not answer, that.
    pub(crate) fn describe(&self) -> Result<Target, LabError> {
        let replication = self.nodes.replication().to_owned();
        let mut target = Target { process_ids: self.process_ids(), replication, ..Target::default() };
        for node in self.nodes.near() {
            let Ok(mut connection) = connect(&node.address) else {
                target.unreachable.push(node.address.clone());
                continue;
            };
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

    /// Whoever does to the nodes what a plan says.
    pub(crate) fn hand(&self) -> Option<&Arc<dyn Hand>> {
        self.preparation.hand.as_ref()
    }

    /// Whoever opens connections on which operations are at the level of a plan.
    ///
    /// # Errors
    /// There is no such level.
    pub(crate) fn door(&self, plan: &Plan) -> Result<Arc<Door>, LabError> {
        Ok(Arc::new(Door { statements: self.statements.clone(), consistency: level_of(plan)? }))
    }

    /// Connections for each thread, to each node, with the workload's statements prepared. Those to nodes that are down
    /// are buried.
    ///
    /// # Errors
    /// No node takes a connection.
    pub(crate) fn links(&self, plan: &Plan, door: &Door) -> Result<Vec<Vec<Link>>, LabError> {
        let near = self.nodes.near();
        // Each thread reaches each node.
        let link_count = plan.connection_count.max(near.len() * plan.thread_count);
        let stream_count = stream_count(plan.pace);
        let mut parts: Vec<Vec<Link>> = (0..plan.thread_count).map(|_| Vec::new()).collect();
        let mut down: Vec<Option<LabError>> = near.iter().map(|_| None).collect();
        for index in 0..link_count {
            let place = index % near.len();
            let opened = down[place].is_none().then(|| door.open(&near[place], stream_count));
            let link = match opened {
                Some(Ok(link)) => link,
                Some(Err(error @ LabError::Node { .. })) => {
                    down[place] = Some(error);
                    Link::buried(&near[place], stream_count)
                }
                Some(Err(error)) => return Err(error),
                None => Link::buried(&near[place], stream_count),
            };
            parts[index / near.len() % plan.thread_count].push(link);
        }
        match down.iter().all(Option::is_some) {
            true => Err(down.into_iter().flatten().next().unwrap_or_else(no_node)),
            false => Ok(parts),
        }
    }

    /// What this process and the servers have used up to now.
    pub(crate) fn usage(&self) -> Usage {
        Usage { caches: self.caches(), ..Usage::now(&self.process_ids()) }
    }

    /// Processes of the servers on this machine, as they are now.
    fn process_ids(&self) -> Vec<u32> {
        self.hand().map_or_else(|| self.preparation.process_ids.clone(), |hand| hand.process_ids())
    }

    /// Hits and requests of the nodes' caches since they began, by name, from those that tell.
    fn caches(&self) -> BTreeMap<String, (u64, u64)> {
        let mut caches: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for node in self.nodes.near() {
            for (name, hits, requests) in connect_briefly(&node.address).map(caches_of).unwrap_or_default() {
                let sum = caches.entry(name).or_default();
                *sum = (sum.0 + hits, sum.1 + requests);
            }
        }
        caches
    }
}

pub(crate) fn level_of(plan: &Plan) -> Result<Consistency, LabError> {
    let level = Consistency::from_name(&plan.consistency);
    level.ok_or_else(|| LabError::Plan(format!("there is no consistency level '{}'", plan.consistency)))
}

fn prepare(connection: &mut Connection, statements: &[String]) -> Result<Vec<Prepared>, LabError> {
    let prepare = |text: &String| connection.prepare(text).map_err(|source| refused(text, source));
    statements.iter().map(prepare).collect()
}

/// Streams of each connection. In a closed loop each has room for all that is under way, so that a request need never
/// go to a node that has not its row.
fn stream_count(pace: Pace) -> i16 {
    match pace {
        Pace::Open { .. } => STREAM_COUNT_OPEN,
        Pace::Closed { in_flight } => in_flight.min(usize::from(STREAM_COUNT_MAX)) as i16,
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

/// As `system_views.caches` has them: in Cassandra since 4.0, and in ours.
fn caches_of(mut connection: Connection) -> Vec<(String, u64, u64)> {
    let text = "SELECT name, hit_count, request_count FROM system_views.caches";
    let rows = connection.query(text).and_then(client::Answer::rows).map(|rows| rows.rows);
    let number = |row: &Row, index: usize| {
        let bytes = row.get(index)?.as_ref()?.as_ref().try_into().ok()?;
        u64::try_from(i64::from_be_bytes(bytes)).ok()
    };
    let cache = |row: &Row| {
        let name = String::from_utf8_lossy(row.first()?.as_ref()?).into_owned();
        Some((name, number(row, 1)?, number(row, 2)?))
    };
    rows.unwrap_or_default().iter().filter_map(cache).collect()
}

/// Ours tell Cassandra's release as their own, since drivers go by it, and what they are among the properties.
fn own_version(connection: &mut Connection) -> Option<String> {
    let text = "SELECT value FROM system_views.system_properties WHERE name = 'peristyle.version'";
    let rows = connection.query(text).and_then(client::Answer::rows).ok()?;
    let value = rows.rows.first()?.first()?.as_ref()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn no_node() -> LabError {
    LabError::Plan("no node is named".to_owned())
}

/// To the first of the named nodes that answers.
fn first_connection(nodes: &[String]) -> Result<(&str, Connection), LabError> {
    let mut outcome = Err(no_node());
    for node in nodes {
        outcome = connect(node).map(|connection| (node.as_str(), connection));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn connect(node: &str) -> Result<Connection, LabError> {
    let options = ConnectOptions { answer_timeout: Some(ANSWER_TIMEOUT), ..brief() };
    Connection::open(node.to_owned(), &options).map_err(|source| unanswered(node, source))
}

/// For what is not worth waiting for.
fn connect_briefly(node: &str) -> Result<Connection, ClientError> {
    Connection::open(node.to_owned(), &brief())
}

fn brief() -> ConnectOptions {
    ConnectOptions {
        version: Version::V4,
        connect_timeout: BRIEF_TIMEOUT,
        answer_timeout: Some(BRIEF_TIMEOUT),
        ..ConnectOptions::default()
    }
}
