//! The table of options.

use std::path::PathBuf;

use crate::choices::{parse_commit_failure_policy, parse_disk_access, parse_disk_failure_policy, parse_sync};
use crate::config::Config;
use crate::handoff;
use crate::internode;
use crate::memory::{FRAME_BYTES_LIMIT, FRAME_BYTES_MIN, MEMORY_BYTES_MIN};
use crate::quantity::{parse_size, parse_time};
use crate::words::{
    at_least, at_most, not_empty, parse_address, parse_connections, parse_count, parse_limit, parse_path,
    parse_paths, parse_shards, parse_switch,
};

/// One option.
#[derive(Debug)]
pub struct OptionSpec {
    /// Its name in the file. The flag is `--` and the same with hyphens.
    pub name: &'static str,
    /// What its value looks like.
    pub value: &'static str,
    /// Its default, as one would write it.
    pub default: &'static str,
    /// Its effect, for people: one or two sentences.
    pub about: &'static str,
    /// Puts a value into a configuration, or says what is wrong with it.
    pub(crate) set: fn(&mut Config, &str) -> Result<(), String>,
}

impl OptionSpec {
    /// Its flag, without the two hyphens.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// May its value be a list in the file, and its flag be given several times?
    pub fn is_list(&self) -> bool {
        LISTS.contains(&self.name)
    }
}

/// Options whose value is a list.
const LISTS: [&str; 3] = ["data_file_directories", "seeds", "initial_token"];

/// Every option, in the order of the documentation.
pub static OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "data_dir",
        value: "PATH",
        default: "peristyle-data",
        about: "Directory of everything the node keeps: table files, commit log, schema. Made if it is missing; \
                one running node per directory.",
        set: |config, text| {
            config.data_dir = PathBuf::from(not_empty(text)?);
            Ok(())
        },
    },
    OptionSpec {
        name: "data_file_directories",
        value: "PATH,PATH or a list",
        default: "",
        about: "Where table files go, one directory for each disk; without any, `data` in `data_dir`. Each shard writes \
                to one of them, so have at least as many shards as directories. Files that lie in `data` from before \
                are read on, and move as they are compacted. The log and the manifests stay in `data_dir`.",
        set: |config, text| set(&mut config.data_file_directories, parse_paths(text)),
    },
    OptionSpec {
        name: "listen",
        value: "ADDR:PORT",
        default: "127.0.0.1:9042",
        about: "Where CQL clients connect. To be reached from other machines, give an address of this one; `0.0.0.0:9042` \
                is all of them, and in a ring needs `broadcast_rpc_address`.",
        set: |config, text| set(&mut config.listen, parse_address(text)),
    },
    OptionSpec {
        name: "broadcast_rpc_address",
        value: "ADDR",
        default: "",
        about: "Address that clients are told of this node, by itself and by the others of its ring, where it is another \
                one than that of `listen`. The port is that of `listen`.",
        set: |config, text| set(&mut config.broadcast_rpc_address, internode::parse_address(text)),
    },
    OptionSpec {
        name: "management",
        value: "ADDR:PORT",
        default: "127.0.0.1:7199",
        about: "Where `peristyle nodetool` and metrics collectors connect (HTTP). Another address than one of loopback \
                needs `management_token_file`; without it a node does not start.",
        set: |config, text| set(&mut config.management, parse_address(text)),
    },
    OptionSpec {
        name: "management_token_file",
        value: "PATH",
        default: "",
        about: "A file with the word that whoever asks the management port must know: one line of up to 1024 visible \
                characters, such as `openssl rand -hex 32` makes, in a file that only its owner and its group may \
                read. Requests need `Authorization: Bearer` and the word, `peristyle nodetool` takes `--token-file`. \
                It is read at the start. Without it every program of this machine may ask.",
        set: |config, text| {
            config.management_token_file = parse_path(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "memory",
        value: "auto or SIZE",
        default: "auto",
        about: "Memory budget of the whole process, at least 64MiB, and with many shards or in a ring more \
                (22MiB, 10MiB in a ring, 5MiB for each shard, and 16MiB); `auto` is a quarter of what the machine or \
                the control group can give. The program and each shard have theirs first. Of the rest a \
                quarter is for memtables, three eighths for the \
                cache (and what memtables do not use, for as long as they do not), an eighth for requests and \
                answers (`in_flight_bytes_max`), an eighth for what reads and compactions work in; prepared \
                statements and connections have theirs, too. In a ring a ninth of the rest is taken before, for \
                messages between nodes. It is held, not aimed at: while the process has nearly \
                all of it, the cache has less. More than the machine or the control group can give is refused.",
        set: |config, text| {
            let bytes = match text.trim() {
                "auto" => Ok(None),
                text => parse_size(text).and_then(|bytes| at_least(bytes, MEMORY_BYTES_MIN)).map(Some),
            };
            set(&mut config.memory_limit, bytes)
        },
    },
    OptionSpec {
        name: "memory_pretouch",
        value: "true or false",
        default: "false",
        about: "Take all of `memory` from the kernel before the first client is served, and keep it (what \
                `AlwaysPreTouch` does for Cassandra). Otherwise pages come when they are first needed, which costs \
                most where a hypervisor has to find them, and go back when they are not needed for a minute (at once, \
                where `memory` is less than 2GiB).",
        set: |config, text| set(&mut config.memory_pretouch, parse_switch(text)),
    },
    OptionSpec {
        name: "shards",
        value: "auto or a number",
        default: "auto",
        about: "How many threads own a part of the data each; `auto` is one per core, and no fewer than there are \
                `data_file_directories`. A node that is alone can change it at any restart; a member of a ring keeps what it has joined with.",
        set: |config, text| set(&mut config.shards, parse_shards(text)),
    },
    OptionSpec {
        name: "commitlog_sync",
        value: "group, periodic or batch",
        default: "group",
        about: "When a write is acknowledged. `group`: once it is on disk, one sync shared by all who wait. \
                `batch`: the same, each sync started at once. `periodic`: right away; a power cut may lose the \
                last `commitlog_sync_period`.",
        set: |config, text| set(&mut config.commitlog_sync, parse_sync(text)),
    },
    OptionSpec {
        name: "commitlog_sync_period",
        value: "TIME",
        default: "10s",
        about: "With `commitlog_sync = \"periodic\"`: at most this long from a write to the sync that covers it.",
        set: |config, text| set(&mut config.commitlog_sync_period, parse_limit(text)),
    },
    OptionSpec {
        name: "commitlog_sync_window",
        value: "TIME",
        default: "0ms",
        about: "With `commitlog_sync = \"group\"`: wait this long for more writers before a sync. Worth it only on \
                disks whose syncs are dear; every write waits for it.",
        set: |config, text| set(&mut config.commitlog_sync_window, parse_time(text)),
    },
    OptionSpec {
        name: "compaction_throughput",
        value: "SIZE per second",
        default: "64MiB",
        about: "How fast compaction may read table files, over all shards and measured as they lie on the disk; 0 is as \
                fast as the disk. Whatever it is, it gives way to reads of the same shard that wait for the disk, for \
                up to 4 ms at each MiB.",
        set: |config, text| {
            let text = text.trim().trim_end_matches("/s");
            set(&mut config.compaction_bytes_per_second, parse_size(text))
        },
    },
    OptionSpec {
        name: "concurrent_compactors",
        value: "a number",
        default: "2",
        about: "How many compactions may run at the same time, over all shards. Each takes a core at most.",
        set: |config, text| {
            let number = text.trim().parse::<u32>().ok().filter(|number| (1..=1024).contains(number));
            let problem = || "not a whole number from 1 to 1024".to_owned();
            set(&mut config.concurrent_compactors, number.ok_or_else(problem))
        },
    },
    OptionSpec {
        name: "auto_snapshot",
        value: "true or false",
        default: "true",
        about: "Keep the files of a table as a snapshot when it is dropped or truncated. Snapshots take disk space \
                until `nodetool clearsnapshot`; a table opts out with `allow_auto_snapshot`.",
        set: |config, text| set(&mut config.auto_snapshot, parse_switch(text)),
    },
    OptionSpec {
        name: "incremental_backups",
        value: "true or false",
        default: "false",
        about: "Keep every flushed file in `backups` beside its table too, until somebody deletes it there. \
                `nodetool enablebackup` and `disablebackup` change it while the node runs.",
        set: |config, text| set(&mut config.incremental_backups, parse_switch(text)),
    },
    OptionSpec {
        name: "tombstone_warn_threshold",
        value: "a number",
        default: "1000",
        about: "A read that comes upon more tombstones than this warns its client, and the log. Counted as in \
                Cassandra: for each partition read by its key and for a scan as a whole, page by page.",
        set: |config, text| set(&mut config.tombstone_warn_threshold, parse_count(text)),
    },
    OptionSpec {
        name: "tombstone_failure_threshold",
        value: "a number",
        default: "100000",
        about: "A read that comes upon more tombstones than this is ended with an error: deleted rows are not \
                answered, but they have to be passed.",
        set: |config, text| set(&mut config.tombstone_failure_threshold, parse_count(text)),
    },
    OptionSpec {
        name: "disk_access",
        value: "auto, io_uring, pread or buffered",
        default: "auto",
        about: "How rows that are not in memory are read. `io_uring`: past the kernel's page cache, into a cache of \
                our own inside `memory`. `pread`: the same by threads, where the kernel refuses io_uring. `auto`: \
                the first of the two that is possible. `buffered`: through the page cache, which is outside \
                `memory`.",
        set: |config, text| set(&mut config.disk_access, parse_disk_access(text)),
    },
    OptionSpec {
        name: "disk_failure_policy",
        value: "stop, stop_paranoid, best_effort, ignore or die",
        default: "stop",
        about: "What happens when table files, manifests or their directories fail (EIO and the like; a full disk is \
                no failure). `stop`: clients are disconnected and served no more, the management port goes on. \
                `stop_paranoid`: the same for a single damaged file, which also ends a start. `best_effort`: what \
                failed is used no more, reads answer from the rest and may show old data. `ignore`: the requests \
                fail that need it. `die`: the process ends with code 100.",
        set: |config, text| set(&mut config.disk_failure_policy, parse_disk_failure_policy(text)),
    },
    OptionSpec {
        name: "commit_failure_policy",
        value: "stop, stop_commit, ignore or die",
        default: "stop",
        about: "What happens when the commit log can not be written or synced. `stop`: clients are disconnected and \
                served no more, the management port goes on. `stop_commit`: writes are refused until a restart, \
                reads are served. `ignore`: the writes under way fail, and the log goes on in a new segment as soon \
                as the disk lets it. `die`: the process ends with code 100. A start that finds the log damaged, or \
                a part of it missing, ends; under `ignore` it goes on without what is lost, which it logs.",
        set: |config, text| set(&mut config.commit_failure_policy, parse_commit_failure_policy(text)),
    },
    OptionSpec {
        name: "connections_max",
        value: "auto or a number",
        default: "auto",
        about: "How many clients may be connected; one more is closed at once. `auto` is 10000, or as many as a sixth \
                of what is shared of `memory` has room for, at 8KiB each, if that is less.",
        set: |config, text| set(&mut config.connections_limit, parse_connections(text)),
    },
    OptionSpec {
        name: "connections_max_per_address",
        value: "auto or a number",
        default: "auto",
        about: "How many of them may come from one address. `auto` leaves one place in sixteen to others.",
        set: |config, text| set(&mut config.connections_limit_per_address, parse_connections(text)),
    },
    OptionSpec {
        name: "frame_bytes_max",
        value: "auto or SIZE",
        default: "auto",
        about: "The largest request, from 16KiB to 256MiB. `auto` is 16MiB, Cassandra's, or a 24th of what is shared if \
                that is less: carrying it out takes several times as much. A larger one is skipped and answered with an error.",
        set: |config, text| {
            let bytes = match text.trim() {
                "auto" => Ok(None),
                text => parse_size(text)
                    .and_then(|bytes| at_least(bytes, FRAME_BYTES_MIN))
                    .and_then(|bytes| at_most(bytes, FRAME_BYTES_LIMIT))
                    .map(Some),
            };
            set(&mut config.frame_bytes_limit, bytes)
        },
    },
    OptionSpec {
        name: "in_flight_bytes_max",
        value: "auto or SIZE",
        default: "auto",
        about: "The share of `memory` for what connections hold for their clients: half for requests, half for \
                answers. A request that waits counts as three times its frame and 4KiB; frames that have come in part \
                count, too. An answer counts from before it is read until the client has taken it. `auto` is an \
                eighth of what is shared of `memory`. When the half for requests is spent, connections are not read \
                until there is room, each in its turn; when that for answers is, pages end early. At least \
                `frame_bytes_max`, at most half of `memory`.",
        set: |config, text| {
            let bytes = match text.trim() {
                "auto" => Ok(None),
                text => parse_size(text).map(Some),
            };
            set(&mut config.in_flight_bytes_limit, bytes)
        },
    },
    OptionSpec {
        name: "request_wait_max",
        value: "TIME",
        default: "500ms",
        about: "A request that is known to have waited longer than this before the server came to begin it is \
                answered `Overloaded` instead: past saturation the server's time goes to requests whose clients \
                still wait. 0 lets them wait for ever.",
        set: |config, text| {
            let time = parse_time(text).map(|time| Some(time).filter(|time| !time.is_zero()));
            set(&mut config.request_wait_max, time)
        },
    },
    OptionSpec {
        name: "read_request_timeout",
        value: "TIME",
        default: "5s",
        about: "A read of partitions by their keys that takes longer is given up, and its client told so. The time is \
                that of one page; an aggregate has it for each page that it reads. \
                `nodetool settimeout read` changes it while the node runs.",
        set: |config, text| set(&mut config.request_timeouts[0], parse_limit(text)),
    },
    OptionSpec {
        name: "range_request_timeout",
        value: "TIME",
        default: "10s",
        about: "A read of a part of the ring, or of all of it, that takes longer is given up, and its client told so. \
                Counted as for `read_request_timeout`. \
                `nodetool settimeout range` changes it while the node runs.",
        set: |config, text| set(&mut config.request_timeouts[1], parse_limit(text)),
    },
    OptionSpec {
        name: "write_request_timeout",
        value: "TIME",
        default: "2s",
        about: "A write that takes longer is given up, and its client told so. It may or may not have been done. \
                `nodetool settimeout write` changes it while the node runs.",
        set: |config, text| set(&mut config.request_timeouts[2], parse_limit(text)),
    },
    OptionSpec {
        name: "truncate_request_timeout",
        value: "TIME",
        default: "60s",
        about: "A TRUNCATE that takes longer is given up, and its client told so (`nodetool settimeout truncate`).",
        set: |config, text| set(&mut config.request_timeouts[3], parse_limit(text)),
    },
    OptionSpec {
        name: "cas_contention_timeout",
        value: "TIME",
        default: "1800ms",
        about: "A change with a condition (IF) that is not decided after this time is given up, and its client told \
                so, and whether it may be made yet (`nodetool settimeout cascontention`).",
        set: |config, text| set(&mut config.request_timeouts[4], parse_limit(text)),
    },
    OptionSpec {
        name: "counter_write_request_timeout",
        value: "TIME",
        default: "5s",
        about: "As `write_request_timeout`, of what is added to counters (`nodetool settimeout counterwrite`).",
        set: |config, text| set(&mut config.request_timeouts[5], parse_limit(text)),
    },
    OptionSpec {
        name: "slow_query_log_timeout",
        value: "TIME",
        default: "500ms",
        about: "A statement that takes longer, until its answer is there, is logged with its text, its times and its \
                consistency level: every 5 seconds, one line for each of up to 50 different ones. 0 logs none.",
        set: |config, text| {
            let time = parse_time(text).map(|time| Some(time).filter(|time| !time.is_zero()));
            set(&mut config.slow_query_log_timeout, time)
        },
    },
    OptionSpec {
        name: "cluster_name",
        value: "TEXT",
        default: "Test Cluster",
        about: "Name of the cluster, shown to clients; some refuse to connect to a name they do not expect. \
                The same on all nodes.",
        set: |config, text| set(&mut config.cluster_name, not_empty(text).map(str::to_owned)),
    },
    OptionSpec {
        name: "datacenter",
        value: "TEXT",
        default: "datacenter1",
        about: "Data centre of this node: the name that NetworkTopologyStrategy and clients' load balancing use.",
        set: |config, text| set(&mut config.datacenter, not_empty(text).map(str::to_owned)),
    },
    OptionSpec {
        name: "rack",
        value: "TEXT",
        default: "rack1",
        about: "Rack of this node; replicas are spread over racks.",
        set: |config, text| set(&mut config.rack, not_empty(text).map(str::to_owned)),
    },
    OptionSpec {
        name: "rackdc_file",
        value: "PATH",
        default: "",
        about: "A file like Cassandra's `cassandra-rackdc.properties` that says `dc` and `rack` of this node. \
                `datacenter` and `rack` say the same then, or nothing.",
        set: |config, text| {
            config.rackdc_file = parse_path(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "listen_address",
        value: "ADDR",
        default: "",
        about: "Address of this machine where other nodes reach this one, which makes it one of a ring. Without it the \
                node is alone. Another address than one of loopback needs `internode_secret_file`, or certificates and \
                `internode_encryption` all.",
        set: |config, text| set(&mut config.listen_address, internode::parse_address(text)),
    },
    OptionSpec {
        name: "storage_port",
        value: "a number",
        default: "7000",
        about: "Port at `listen_address` for other nodes. The same on all nodes.",
        set: |config, text| set(&mut config.storage_port, internode::parse_port(text)),
    },
    OptionSpec {
        name: "broadcast_address",
        value: "ADDR",
        default: "",
        about: "Address that other nodes are told, where it is another one than `listen_address`, as behind an address \
                translation.",
        set: |config, text| set(&mut config.broadcast_address, internode::parse_address(text)),
    },
    OptionSpec {
        name: "seeds",
        value: "ADDR,ADDR:PORT or a list",
        default: "",
        about: "Nodes that this one asks first for its ring; a port that is missing is `storage_port`. The same on all \
                nodes. A node without seeds, or that is the first of them, founds a ring when nobody knows one.",
        set: |config, text| set(&mut config.seeds, internode::parse_seeds(text)),
    },
    OptionSpec {
        name: "replace_address",
        value: "ADDR or ADDR:PORT",
        default: "",
        about: "Where the node was that is lost and whose place this one takes when it starts for the first time, with \
                an empty directory; a port that is missing is `storage_port`. Once it is a member, it makes no \
                difference.",
        set: |config, text| set(&mut config.replace_address, internode::parse_replaced(text)),
    },
    OptionSpec {
        name: "num_tokens",
        value: "a number",
        default: "16",
        about: "How many tokens this node takes when it joins a ring, from 1 to 256: a node with twice as many has \
                about twice as much data.",
        set: |config, text| set(&mut config.num_tokens, internode::parse_token_count(text)),
    },
    OptionSpec {
        name: "initial_token",
        value: "TOKEN,TOKEN or a list",
        default: "",
        about: "The tokens that this node takes when it founds a ring or joins one, as many as `num_tokens` says. All \
                members of a ring choose theirs so, or none does. A token is the end of one of 65536 equal parts of \
                the ring; another one is refused with the nearest that can be had. Once it is a member, it makes no \
                difference.",
        set: |config, text| set(&mut config.initial_tokens, internode::parse_tokens(text)),
    },
    OptionSpec {
        name: "internode_connections_max",
        value: "auto or a number",
        default: "auto",
        about: "How many connections other nodes may have to this one; one more is closed at once. Each node has one \
                from each of its shards and two more. `auto` is 10000, or as many as a sixteenth of what is shared of \
                `memory` has room for, at 16KiB each, if that is less.",
        set: |config, text| set(&mut config.internode_connections_limit, parse_connections(text)),
    },
    OptionSpec {
        name: "internode_connections_max_per_address",
        value: "auto or a number",
        default: "auto",
        about: "How many of these may come from one address. `auto` is half of them, so that a stranger leaves room for \
                the others.",
        set: |config, text| set(&mut config.internode_connections_limit_per_address, parse_connections(text)),
    },
    OptionSpec {
        name: "internode_secret_file",
        value: "PATH",
        default: "",
        about: "A file with the secret that all nodes of a ring share; whoever does not know it is let into no talk \
                between nodes. By itself it encrypts nothing.",
        set: |config, text| {
            config.internode_secret_file = parse_path(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "internode_encryption",
        value: "none, rack, dc or all",
        default: "none",
        about: "Which talks between nodes must be under TLS: none, those between racks, those between data centres, or \
                all. A node with certificates takes TLS from others whatever stands here.",
        set: |config, text| set(&mut config.internode_encryption, internode::parse_encryption(text)),
    },
    OptionSpec {
        name: "internode_certificate_file",
        value: "PATH",
        default: "",
        about: "The node's certificate for TLS between nodes, in PEM, and behind it those that lead to the CA. It is \
                shown to who connects and to whom this node connects. This file and the next two are looked at every \
                five seconds: new connections take what is new.",
        set: |config, text| {
            config.internode_certificate_file = parse_path(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "internode_key_file",
        value: "PATH",
        default: "",
        about: "The private key of `internode_certificate_file`, in PEM, without a password.",
        set: |config, text| {
            config.internode_key_file = parse_path(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "internode_ca_file",
        value: "PATH",
        default: "",
        about: "The CAs whose certificates are believed of other nodes, in PEM, one or more: best a CA for the nodes \
                of this ring alone.",
        set: |config, text| {
            config.internode_ca_file = parse_path(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "internode_endpoint_verification",
        value: "true or false",
        default: "true",
        about: "Must the certificate of a node name, as IP in its subject alternative names, the address at which this \
                node connects to it? Without that any certificate of the CAs does for any node.",
        set: |config, text| set(&mut config.internode_endpoint_verification, parse_switch(text)),
    },
    OptionSpec {
        name: "internode_compression",
        value: "none or all",
        default: "none",
        about: "Whether this node compresses what it and another send each other, if both want it: worth it where the \
                network is slow or dear.",
        set: |config, text| set(&mut config.internode_compression, internode::parse_compression(text)),
    },
    OptionSpec {
        name: "hinted_handoff_enabled",
        value: "true or false",
        default: "true",
        about: "Whether what another node misses is brought to it when it is back. Without it only reads and `nodetool \
                repair` make nodes equal. `nodetool disablehandoff` and `enablehandoff` change it while the node runs.",
        set: |config, text| set(&mut config.handoff.is_enabled, parse_switch(text)),
    },
    OptionSpec {
        name: "hinted_handoff_disabled_datacenters",
        value: "NAME,NAME or a list",
        default: "",
        about: "Data centres of whose nodes nothing is kept that they miss.",
        set: |config, text| {
            config.handoff.disabled_centers = handoff::parse_names(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "hinted_handoff_throttle",
        value: "SIZE",
        default: "0",
        about: "How much a shard sends in a second to a node that has missed something, at most; 0 for as much as the \
                node takes. `nodetool sethintedhandoffthrottlekb` changes it while the node runs.",
        set: |config, text| set(&mut config.handoff.bytes_per_second, parse_size(text)),
    },
    OptionSpec {
        name: "max_hint_window",
        value: "TIME",
        default: "3h",
        about: "What a node has missed is sent to it from the commit log if it is back within this time. If not, its \
                rows are compared: that reads all that has changed hands meanwhile, and takes longer.",
        set: |config, text| set(&mut config.handoff.window, parse_time(text)),
    },
    OptionSpec {
        name: "max_hints_log_size",
        value: "SIZE",
        default: "1GiB",
        about: "How much of its commit log each shard keeps for nodes that are away. When it is more, or the disk is \
                full, it is let go, and rows are compared.",
        set: |config, text| set(&mut config.handoff.log_bytes_max, parse_size(text)),
    },
];

fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}
