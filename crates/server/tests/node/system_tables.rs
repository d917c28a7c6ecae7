//! What drivers and people read in the system keyspaces of a running node.

use protocol::Response;

use super::support::{Client, Node};

fn create_keyspace(client: &mut Client) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    let created = client.query(&format!("CREATE KEYSPACE k WITH replication = {replication}"));
    assert!(matches!(created, Response::SchemaChange(_)), "{created:?}");
}

#[test]
fn a_lone_node_has_one_local_row_and_no_peers() {
    let node = Node::start();
    let mut client = node.client();
    let local = "SELECT key, cluster_name, data_center, rack, release_version, partitioner, rpc_port, \
                 bootstrapped FROM system.local WHERE key='local'";
    let port = node.server().listen().port();
    let partitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
    let expected = format!("local|Test Cluster|datacenter1|rack1|5.0.9|{partitioner}|{port}|COMPLETED");
    assert_eq!(client.rows(local), [expected]);
    assert_eq!(client.rows("SELECT * FROM system.local WHERE key = 'other'"), [""; 0]);
    assert_eq!(client.rows("SELECT * FROM system.peers"), [""; 0]);
    assert_eq!(client.rows("SELECT * FROM system.peers_v2"), [""; 0]);
}

#[test]
fn clients_are_told_another_address_than_that_where_it_listens() {
    let broadcast = std::net::IpAddr::from([10, 1, 2, 3]);
    let node = Node::try_with(|options| options.broadcast_rpc = Some(broadcast)).expect("a node");
    let mut client = node.client();
    let port = node.server().listen().port();
    let told = client.rows("SELECT rpc_address, rpc_port FROM system.local");
    assert_eq!(told, [format!("10.1.2.3|{port}")]);
    let setting = |name: &str| format!("SELECT value FROM system_views.settings WHERE name = '{name}'");
    assert_eq!(client.rows(&setting("rpc_address")), ["127.0.0.1"]);
    assert_eq!(client.rows(&setting("broadcast_rpc_address")), ["10.1.2.3"]);
}

#[test]
fn schema_tables_follow_the_schema_on_all_shards() {
    let node = Node::start();
    // The kernel spreads connections over the shards.
    let mut clients: Vec<Client> = (0..8).map(|_| node.client()).collect();
    let version = "SELECT schema_version FROM system.local";
    let before = clients[0].rows(version);
    create_keyspace(&mut clients[0]);
    clients[0].query("CREATE TYPE k.address (street text, numbers frozen<list<int>>)");
    clients[0].query("CREATE TABLE k.t (a int, b text, c frozen<address>, d set<uuid>, PRIMARY KEY (a, b)) WITH CLUSTERING ORDER BY (b DESC)");
    let after = clients[0].rows(version);
    assert_ne!(before, after);
    for client in &mut clients {
        assert_eq!(client.rows(version), after);
        let columns = "SELECT column_name, kind, position, clustering_order, type FROM system_schema.columns \
                       WHERE keyspace_name = 'k' AND table_name = 't'";
        let expected = [
            "a|partition_key|0|none|int",
            "b|clustering|0|desc|text",
            "c|regular|-1|none|frozen<address>",
            "d|regular|-1|none|set<uuid>",
        ];
        assert_eq!(client.rows(columns), expected);
        let types =
            "SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name='k'";
        assert_eq!(client.rows(types), ["address|['street', 'numbers']|['text', 'frozen<list<int>>']"]);
    }
    clients[1].query("DROP TABLE k.t");
    assert_eq!(
        clients[0].rows("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'k'"),
        [""; 0]
    );
}

#[test]
fn views_tell_the_state_of_all_shards() {
    let node = Node::start();
    let mut client = node.client();
    create_keyspace(&mut client);
    client.query("CREATE TABLE k.t (a int PRIMARY KEY)");
    for key in 0..20 {
        client.query(&format!("INSERT INTO k.t (a) VALUES ({key})"));
    }
    let writes =
        "SELECT count FROM system_views.local_write_latency WHERE keyspace_name='k' AND table_name='t'";
    assert_eq!(client.rows(writes), ["20"]);
    assert_eq!(client.rows("SELECT value FROM system_views.settings WHERE name = 'num_tokens'"), ["16"]);
    assert_eq!(client.rows("SELECT name, capacity_bytes FROM system_views.caches").len(), 1);
    assert_eq!(client.rows("SELECT * FROM system_views.repairs"), [""; 0]);
}

#[test]
fn virtual_tables_are_in_the_order_of_their_keys_over_pages() {
    let node = Node::start();
    let mut client = node.client();
    let names = client.rows("SELECT name FROM system_views.settings");
    assert!(names.len() > 10 && names.is_sorted(), "{names:?}");
    assert_eq!(client.pages("SELECT name FROM system_views.settings", 4), names);
    let disk_usage = "SELECT keyspace_name, table_name FROM system_views.disk_usage";
    let tables = client.rows(disk_usage);
    let keys: Vec<_> = tables.iter().filter_map(|line| line.split_once('|')).collect();
    assert!(keys.len() == 49 && keys.is_sorted(), "{keys:?}");
    assert_eq!(client.pages(disk_usage, 7), tables);
    let columns = "SELECT keyspace_name, table_name, column_name FROM system_schema.columns";
    assert_eq!(client.rows(columns).len(), 318);
    assert_eq!(client.pages(columns, 10), client.rows(columns));
}

#[test]
fn clients_are_listed_with_their_driver_and_keyspace() {
    let node = Node::start();
    let mut client = node.client();
    let mut other = node.client();
    other.query("USE system_auth");
    let text =
        "SELECT driver_name, protocol_version, keyspace_name, connection_stage FROM system_views.clients";
    let mut listed = client.rows(text);
    listed.sort();
    assert_eq!(listed, ["test|4|null|ready", "test|4|system_auth|ready"]);
    drop(other);
    let is_alone = (0..200).any(|_| {
        std::thread::yield_now();
        client.rows(text).len() == 1
    });
    assert!(is_alone);
}

#[test]
fn system_tables_refuse_writes() {
    let node = Node::start();
    let mut client = node.client();
    for statement in [
        "INSERT INTO system.local (key) VALUES ('x')",
        "DELETE FROM system_schema.tables WHERE keyspace_name = 'system'",
        "INSERT INTO system_views.settings (name) VALUES ('x')",
        "DROP TABLE system.local",
        "TRUNCATE system_schema.keyspaces",
    ] {
        let refused = client.query(statement);
        assert!(matches!(refused, Response::Error(_)), "{statement}: {refused:?}");
    }
}
