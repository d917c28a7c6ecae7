//! Who answers for which made-up table.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use cluster::membership::Known;
use coordinator::Coordinator;
use query::{ClusterFacts, Gathering, VirtualKeyspaces, VirtualTables};
use read::PartitionRows;
use schema::{Keyspace, Replication, Table, TableId};
use storage::Shards;
use uuid::Uuid;

use super::peers::OwnSchema;
use super::ranges::Placed;
use super::schema_version::SchemaVersions;
use super::view::NodeView;
use super::{estimates, local, peers, ring_views, schema_rows, views};
use crate::{Clients, NodeCompactions, NodeStats};

/// Tables of `system` that are stored like any other.
const STORED: [&str; 3] = ["batches", "operations", "paxos"];

/// The made-up tables of a node, as one shard sees them.
pub(crate) struct SystemTables {
    view: NodeView,
    coordinator: Coordinator,
    /// To be asked for their figures, as management asks them.
    shards: Shards,
    clients: Arc<dyn Clients>,
    schema: RefCell<AtEpoch>,
    /// What all shards said last, for the tables that tell of all of them.
    stats: RefCell<NodeStats>,
    /// The same of compactions.
    compactions: RefCell<NodeCompactions>,
}

/// What is made of a schema, kept until the next one comes.
#[derive(Default)]
struct AtEpoch {
    epoch: Option<u64>,
    versions: SchemaVersions,
    version: Uuid,
    rows: HashMap<TableId, Vec<PartitionRows>>,
}

impl SystemTables {
    /// The tables of the node that `facts` are about.
    pub(crate) fn new(
        facts: NodeView,
        coordinator: Coordinator,
        shards: Shards,
        clients: Arc<dyn Clients>,
    ) -> Rc<Self> {
        let (schema, stats, compactions) = (RefCell::default(), RefCell::default(), RefCell::default());
        Rc::new(SystemTables { view: facts, coordinator, shards, clients, schema, stats, compactions })
    }

    /// Does something with what is known of the schema in force.
    fn at_epoch<T>(&self, act: impl FnOnce(&mut AtEpoch) -> T) -> T {
        let schema = self.coordinator.schema();
        let mut known = self.schema.borrow_mut();
        if known.epoch != Some(schema.epoch()) {
            known.epoch = Some(schema.epoch());
            known.version = known.versions.of(&schema);
            known.rows.clear();
        }
        act(&mut known)
    }

    fn own_schema(&self) -> OwnSchema {
        self.at_epoch(|known| OwnSchema { epoch: known.epoch.unwrap_or_default(), version: known.version })
    }

    /// What is known of a ring; nothing when the node is alone.
    fn of_ring(&self, rows: impl FnOnce(&Known) -> Vec<PartitionRows>) -> Vec<PartitionRows> {
        self.view.ring().map_or_else(Vec::new, rows)
    }

    fn schema_rows(&self, table: &Table) -> Vec<PartitionRows> {
        let make = || schema_rows::rows(table, &self.coordinator.schema());
        self.at_epoch(|known| known.rows.entry(table.id()).or_insert_with(make).clone())
    }
}

/// Which tables a node makes up; of keyspaces that are not in the schema, these.
pub(super) struct MadeUp(pub(super) Vec<Arc<Keyspace>>);

impl VirtualKeyspaces for MadeUp {
    fn keyspaces(&self) -> &[Arc<Keyspace>] {
        &self.0
    }

    fn makes_up(&self, keyspace: &str, table: &str) -> bool {
        match keyspace {
            "system" => !STORED.contains(&table),
            "system_schema" => true,
            _ => self.is_virtual(keyspace),
        }
    }
}

impl VirtualTables for SystemTables {
    fn keyspaces(&self) -> &Arc<dyn VirtualKeyspaces> {
        &self.view.made_up
    }

    fn gather<'a>(&'a self, table: &'a Table) -> Option<Gathering<'a>> {
        if views::tells_of_compactions(table) {
            return Some(Box::pin(async move {
                match NodeCompactions::collect(&self.shards).await {
                    Ok(compactions) => *self.compactions.borrow_mut() = compactions,
                    Err(error) => tracing::warn!(%error, "shards were not asked for their compactions"),
                }
            }));
        }
        if !views::tells_of_all_shards(table) {
            return None;
        }
        Some(Box::pin(async move {
            match NodeStats::collect(&self.shards).await {
                Ok(stats) => *self.stats.borrow_mut() = stats,
                Err(error) => tracing::warn!(%error, "shards were not asked for their statistics"),
            }
        }))
    }

    fn rows(&self, table: &Table) -> Option<Vec<PartitionRows>> {
        if !self.view.made_up.makes_up(table.keyspace(), table.name()) {
            return None;
        }
        Some(match (table.keyspace(), table.name()) {
            ("system", "local") => local::rows(table, &self.view, self.own_schema().version),
            ("system", "size_estimates" | "table_estimates") => {
                estimates::rows(table, &self.view, &self.coordinator.schema(), &self.stats.borrow())
            }
            ("system", "peers" | "peers_v2") => {
                self.of_ring(|known| peers::rows(table, known, self.own_schema()))
            }
            ("system", "compaction_history") => views::compaction_rows(table, &self.compactions.borrow()),
            // Ranges that move, views and repairs: there are none.
            ("system", _) => Vec::new(),
            ("system_schema", _) => self.schema_rows(table),
            ("system_virtual_schema", _) => schema_rows::virtual_rows(table, self.view.made_up.keyspaces()),
            ("system_views", "sstable_tasks") => views::task_rows(table, &self.compactions.borrow()),
            ("system_views", "clients") => views::client_rows(table, &*self.clients),
            ("system_views", "gossip_info") => {
                self.of_ring(|known| ring_views::gossip_rows(table, known, self.own_schema()))
            }
            ("system_views", "internode_outbound") => {
                self.of_ring(|known| ring_views::outbound_rows(table, known))
            }
            _ => views::rows(table, &self.view, &self.stats.borrow()),
        })
    }

    fn cluster_facts(&self) -> ClusterFacts {
        let mut data_centers = BTreeMap::new();
        for node in self.view.nodes() {
            *data_centers.entry(node.candidate.data_center).or_default() += 1;
        }
        ClusterFacts {
            cluster: self.view.options.cluster_name.clone(),
            snitch: self.view.snitch().into(),
            data_centers,
            ..ClusterFacts::default()
        }
    }

    fn range_ownership(&self, replication: &Replication) -> BTreeMap<String, Vec<String>> {
        Placed::new(&self.view, replication).ownership()
    }
}
