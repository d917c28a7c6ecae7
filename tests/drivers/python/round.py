"""The round of work of tests/drivers/README.md, with the Python driver."""

import datetime
import decimal
import ipaddress
import json
import os
import subprocess
import time
import uuid

from cassandra import ConsistencyLevel, OperationTimedOut
from cassandra.cluster import Cluster, EXEC_PROFILE_DEFAULT, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import ConstantReconnectionPolicy
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, SimpleStatement
from cassandra.util import Date, Duration, Time

HOST, PORT = os.environ.get("PERISTYLE_ADDRESS", "127.0.0.1:9042").rsplit(":", 1)
KEYSPACE = "driver_python"
ROW_COUNT = 100_000
ROWS_PER_PARTITION = 1_000
LARGE_ROW_COUNT = 1_000
LARGE_PARTITION_COUNT = 4
LARGE_BYTES = 50_000
IN_FLIGHT = 1_000
RECOVERY_SECONDS = 60

TYPES = [
    ("c_ascii", "ascii", "abc"),
    ("c_bigint", "bigint", -(2**63)),
    ("c_blob", "blob", b"\x00\xff\x10"),
    ("c_boolean", "boolean", True),
    ("c_date", "date", Date(datetime.date(2024, 2, 29))),
    ("c_decimal", "decimal", decimal.Decimal("-12345678901234567890.0500")),
    ("c_double", "double", -0.1),
    ("c_duration", "duration", Duration(1, 2, 3)),
    ("c_float", "float", 3.5),
    ("c_inet", "inet", "2001:db8::1"),
    ("c_int", "int", -(2**31)),
    ("c_smallint", "smallint", -(2**15)),
    ("c_text", "text", "gr\u00fc\u00dfe \U0001f30d"),
    ("c_time", "time", Time(86_399_999_999_999)),
    ("c_timestamp", "timestamp", datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)),
    ("c_timeuuid", "timeuuid", uuid.UUID("13814000-1dd2-11b2-8080-808080808080")),
    ("c_tinyint", "tinyint", -128),
    ("c_uuid", "uuid", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")),
    ("c_varchar", "varchar", ""),
    ("c_varint", "varint", -(2**127) - 1),
    ("c_list", "list<int>", [3, 1, 2, 1]),
    ("c_set", "set<text>", {"a", "b"}),
    ("c_map", "map<text, bigint>", {"k": 1, "l": -1}),
    ("c_frozen_list", "frozen<list<text>>", ["x", "y"]),
    ("c_frozen_map", "frozen<map<int, frozen<list<int>>>>", {1: [1, 2], 2: []}),
]


def connect(keyspace=None):
    profile = ExecutionProfile(request_timeout=30, consistency_level=ConsistencyLevel.LOCAL_QUORUM)
    cluster = Cluster(
        [HOST],
        port=int(PORT),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(0.2, None),
    )
    return cluster, cluster.connect(keyspace)


def check(condition, what):
    if not condition:
        raise SystemExit(f"failed: {what}")


def equal(got, expected, what):
    check(got == expected, f"{what}: got {got!r}, expected {expected!r}")


def schema(cluster, session):
    session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.set_keyspace(KEYSPACE)
    columns = ", ".join(f"{name} {kind}" for name, kind, _ in TYPES)
    session.execute(f"CREATE TABLE every_type (k int PRIMARY KEY, {columns})")
    session.execute("CREATE TABLE wide (k int, c int, v text, s text STATIC, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'wide'")
    table = cluster.metadata.keyspaces[KEYSPACE].tables["wide"]
    equal([c.name for c in table.primary_key], ["k", "c"], "primary key")
    check(table.clustering_key[0].is_reversed and table.columns["s"].is_static, "clustering order and static column")
    equal(table.options["comment"], "wide", "comment")
    for name, kind, _ in TYPES:
        got = cluster.metadata.keyspaces[KEYSPACE].tables["every_type"].columns[name].cql_type
        equal(got, "text" if kind == "varchar" else kind, f"type of {name}")
    check("CREATE TABLE driver_python.wide" in table.export_as_string(), "export as CQL")
    check(len(cluster.metadata.token_map.ring) > 0, "token map")


def every_type(session):
    names = ", ".join(name for name, _, _ in TYPES)
    insert = session.prepare(f"INSERT INTO every_type (k, {names}) VALUES (?{', ?' * len(TYPES)})")
    select = session.prepare("SELECT * FROM every_type WHERE k = ?")
    session.execute(insert, [1] + [value for _, _, value in TYPES])
    session.execute(insert, [2] + [None] * len(TYPES))
    session.execute(insert, [3] + [UNSET_VALUE] * len(TYPES))
    row = session.execute(select, [1]).one()
    for name, kind, value in TYPES:
        got = getattr(row, name)
        if kind == "inet":
            got, value = ipaddress.ip_address(got), ipaddress.ip_address(value)
        elif kind.startswith("set"):
            got = set(got)
        elif "map" in kind:
            got = dict(got)
        equal(got, value, name)
    for key in (2, 3):
        row = session.execute(select, [key]).one()
        equal([getattr(row, name) for name, _, _ in TYPES], [None] * len(TYPES), f"nulls of row {key}")
    plain = session.execute("SELECT c_text, c_int FROM every_type WHERE k = %s", (1,)).one()
    equal(tuple(plain), (TYPES[12][2], -(2**31)), "a plain statement with values")


def paging(session):
    insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)")
    rows = ((i // ROWS_PER_PARTITION, i % ROWS_PER_PARTITION, f"value {i}") for i in range(ROW_COUNT))
    for success, outcome in execute_concurrent_with_args(session, insert, rows, concurrency=200, results_generator=True):
        check(success, f"insert: {outcome}")
    seen, pages, last = 0, 0, {}
    result = session.execute(SimpleStatement("SELECT k, c, v FROM wide", fetch_size=1000))
    while True:
        pages += 1
        for row in result.current_rows:
            equal(row.v, f"value {row.k * ROWS_PER_PARTITION + row.c}", "value")
            equal(row.c, last.get(row.k, ROWS_PER_PARTITION) - 1, f"falling order in partition {row.k}")
            last[row.k] = row.c
            seen += 1
        if not result.has_more_pages:
            break
        result.fetch_next_page()
    equal(seen, ROW_COUNT, "rows")
    check(ROW_COUNT // 1000 <= pages <= ROW_COUNT // 1000 + 2, f"{pages} pages")
    state = session.execute(SimpleStatement("SELECT c FROM wide WHERE k = 7", fetch_size=10)).paging_state
    resumed = session.execute(SimpleStatement("SELECT c FROM wide WHERE k = 7", fetch_size=10), paging_state=state)
    equal([row.c for row in resumed.current_rows], list(range(989, 979, -1)), "resumed page")
    equal(session.execute("SELECT count(*) FROM wide WHERE k = 5").one()[0], ROWS_PER_PARTITION, "count")


def large_rows(session):
    """A page of the driver's default size would be 250 MB of these: it ends by bytes, and the driver asks for the next."""
    session.execute("CREATE TABLE large (k int, c int, v text, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO large (k, c, v) VALUES (?, ?, ?)")
    large = lambda i: (f"value {i} " * LARGE_BYTES)[:LARGE_BYTES]
    row = lambda i: (i % LARGE_PARTITION_COUNT, i // LARGE_PARTITION_COUNT, large(i))
    for success, outcome in execute_concurrent_with_args(session, insert, map(row, range(LARGE_ROW_COUNT)), concurrency=50):
        check(success, f"insert: {outcome}")
    each = LARGE_ROW_COUNT // LARGE_PARTITION_COUNT
    reads = {
        "SELECT * FROM large": LARGE_ROW_COUNT,
        "SELECT * FROM large WHERE k = 3": each,
        "SELECT * FROM large WHERE k = 3 AND c >= 10 AND c < 110": 100,
        "SELECT * FROM large WHERE k = 3 ORDER BY c DESC": each,
        "SELECT * FROM large WHERE k IN (0, 1, 2, 3)": LARGE_ROW_COUNT,
    }
    for text, count in reads.items():
        seen = set()
        for k, c, v in session.execute(text):
            i = c * LARGE_PARTITION_COUNT + k
            check(v == large(i), f"value of row {i}: {text}")
            check(i not in seen, f"row {i} comes once: {text}")
            seen.add(i)
        equal(len(seen), count, f"rows: {text}")
    texts = [json.loads(row[0]) for row in session.execute("SELECT JSON * FROM large")]
    equal(sorted((text["k"], text["c"]) for text in texts), sorted(row(i)[:2] for i in range(LARGE_ROW_COUNT)), "JSON")
    for text in texts:
        i = text["c"] * LARGE_PARTITION_COUNT + text["k"]
        check(text["v"] == large(i), f"value of row {i} in JSON")


def batches(session):
    insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)")
    for key, kind in ((1001, BatchType.LOGGED), (1002, BatchType.UNLOGGED)):
        batch = BatchStatement(batch_type=kind)
        for c in range(10):
            batch.add(insert, (key, c, f"batch {c}"))
        batch.add(SimpleStatement("UPDATE wide SET s = %s WHERE k = %s"), (kind.name, key))
        batch.add("DELETE FROM wide WHERE k = 1001 AND c = 100")
        session.execute(batch)
        rows = list(session.execute("SELECT c, s FROM wide WHERE k = %s", (key,)))
        equal([(row.c, row.s) for row in rows], [(c, kind.name) for c in range(9, -1, -1)], f"{kind.name} batch")


def in_flight(session):
    select = session.prepare("SELECT v FROM wide WHERE k = ? AND c = ?")
    keys = [(i % 100, i) for i in range(IN_FLIGHT)]
    futures = [session.execute_async(select, key) for key in keys]
    for (k, c), future in zip(keys, futures):
        equal(future.result().one().v, f"value {k * ROWS_PER_PARTITION + c}", "answer in flight")


def events(session):
    other_cluster, other = connect(KEYSPACE)

    def wait_for(condition, what):
        end = time.time() + 10
        while not condition():
            check(time.time() < end, f"no event: {what}")
            time.sleep(0.05)

    def current():
        return other_cluster.metadata.keyspaces[KEYSPACE].tables

    session.execute("CREATE TABLE heard (k int PRIMARY KEY)")
    wait_for(lambda: "heard" in current(), "created")
    session.execute("ALTER TABLE heard ADD more text")
    wait_for(lambda: "more" in current()["heard"].columns, "altered")
    session.execute("DROP TABLE heard")
    wait_for(lambda: "heard" not in current(), "dropped")
    session.execute("CREATE KEYSPACE driver_python_heard WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    wait_for(lambda: "driver_python_heard" in other_cluster.metadata.keyspaces, "keyspace created")
    session.execute("DROP KEYSPACE driver_python_heard")
    wait_for(lambda: "driver_python_heard" not in other_cluster.metadata.keyspaces, "keyspace dropped")
    other_cluster.shutdown()


def reconnect(session):
    select = session.prepare("SELECT v FROM wide WHERE k = ? AND c = ?")
    subprocess.run(os.environ["PERISTYLE_RESTART"], shell=True, check=True)
    end = time.time() + RECOVERY_SECONDS
    while True:
        try:
            equal(session.execute(select, (3, 4)).one().v, "value 3004", "value after the restart")
            break
        except (NoHostAvailable, OperationTimedOut) as error:
            check(time.time() < end, f"no recovery: {error}")
            time.sleep(0.1)
    equal(session.execute("SELECT count(*) FROM wide WHERE k = 9").one()[0], ROWS_PER_PARTITION, "rows after the restart")


def main():
    cluster, session = connect()
    steps = [
        ("schema", lambda: schema(cluster, session)),
        ("every type", lambda: every_type(session)),
        ("paging", lambda: paging(session)),
        ("large rows", lambda: large_rows(session)),
        ("batches", lambda: batches(session)),
        ("in flight", lambda: in_flight(session)),
        ("events", lambda: events(session)),
    ]
    if os.environ.get("PERISTYLE_RESTART"):
        steps.append(("reconnect", lambda: reconnect(session)))
    for name, step in steps:
        started = time.time()
        step()
        print(f"ok: {name} ({time.time() - started:.1f} s)", flush=True)
    session.execute(f"DROP KEYSPACE {KEYSPACE}")
    cluster.shutdown()


main()
