"""A ring that is hurt while a stock driver works: tests/cluster/README.md."""

import os
import shlex
import subprocess
import threading
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import (
    ConstantReconnectionPolicy,
    DCAwareRoundRobinPolicy,
    TokenAwarePolicy,
    WhiteListRoundRobinPolicy,
)

PORT = int(os.environ["PERISTYLE_PORT"])
HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
# `peristyle cluster --data-dir D`, to hurt nodes with.
CLUSTER = shlex.split(os.environ["PERISTYLE_CLUSTER"])
REST_SECONDS = float(os.environ.get("PERISTYLE_REST_SECONDS", "3"))
ROUNDS = int(os.environ.get("PERISTYLE_ROUNDS", "1"))
WRITERS = 8
SETTLE_SECONDS = 60
KEYSPACE = "harm"


def check(condition, what):
    if not condition:
        raise SystemExit(f"failed: {what}")


def connect(balancing, level, hosts=HOSTS):
    profile = ExecutionProfile(
        load_balancing_policy=balancing,
        request_timeout=10,
        consistency_level=level,
    )
    cluster = Cluster(
        hosts,
        port=PORT,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(0.5, None),
    )
    return cluster, cluster.connect()


def harm(*words):
    done = subprocess.run(CLUSTER + list(words), capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"{words}: {done.stdout}{done.stderr}")


def sees_the_ring(cluster, session):
    hosts = cluster.metadata.all_hosts()
    check(sorted(host.address for host in hosts) == HOSTS, f"the driver sees {hosts}")
    check(all(host.is_up for host in hosts), "all of them are up")
    tokens = cluster.metadata.token_map.token_to_host_owner
    for host in hosts:
        count = sum(owner is host for owner in tokens.values())
        check(count == 16, f"{host.address} has {count} tokens")
    session.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}}"
    )
    session.execute(f"CREATE TABLE {KEYSPACE}.rows (id int PRIMARY KEY, v text)")
    check(cluster.control_connection.wait_for_schema_agreement(wait_time=5), "the driver sees that they agree")
    replicas = cluster.metadata.get_replicas(KEYSPACE, (7).to_bytes(4, "big"))
    check(len(replicas) == 3, f"all nodes are replicas: {replicas}")


class Work:
    """Rows that are written and read until it is told to stop."""

    def __init__(self, session):
        self.session = session
        self.insert = session.prepare(f"INSERT INTO {KEYSPACE}.rows (id, v) VALUES (?, ?)")
        self.select = session.prepare(f"SELECT v FROM {KEYSPACE}.rows WHERE id = ?")
        self.acknowledged, self.failures, self.wrong = set(), [], []
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.write, args=(writer,)) for writer in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, writer):
        row = writer
        last = None
        while not self.is_over.is_set():
            try:
                self.session.execute(self.insert, (row, f"v{row}"))
                with self.lock:
                    self.acknowledged.add(row)
                last = row
            except Exception as error:  # each kind of failure is told
                self.failures.append((time.monotonic(), f"write: {type(error).__name__}: {error}"))
            if last is not None:
                self.read(last)
            row += WRITERS

    def read(self, row):
        try:
            found = self.session.execute(self.select, (row,)).one()
            if found is None or found.v != f"v{row}":
                self.wrong.append((row, found))
        except Exception as error:
            self.failures.append((time.monotonic(), f"read: {type(error).__name__}: {error}"))

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def hurt(work):
    """Each kind of harm to each node in turn; what failed then is told."""
    for _ in range(ROUNDS):
        for node in ("2", "3", "1"):
            other = "1" if node != "1" else "2"
            third = ({"1", "2", "3"} - {node, other}).pop()
            for name, begin, end in (
                ("kill", [("kill", node)], [("start", node)]),
                ("pause", [("pause", node)], [("resume", node)]),
                ("cut", [("cut", node, other), ("cut", node, third)], [("heal",)]),
            ):
                before, written = len(work.failures), len(work.acknowledged)
                for words in begin:
                    harm(*words)
                time.sleep(REST_SECONDS)
                for words in end:
                    harm(*words)
                time.sleep(REST_SECONDS)
                failed = work.failures[before:]
                kinds = sorted({what[:140] for _, what in failed})
                print(f"{name} {node}: {len(work.acknowledged) - written} writes, {len(failed)} failed {kinds}")
                check(len(work.acknowledged) > written, f"writes went on while node {node} was hurt by {name}")


def all_rows(session, rows):
    select = session.prepare(f"SELECT v FROM {KEYSPACE}.rows WHERE id = ?")
    found = execute_concurrent_with_args(session, select, [(row,) for row in rows], concurrency=64)
    lost = []
    for row, (is_done, result) in zip(rows, found):
        check(is_done, f"row {row}: {result}")
        got = result.one()
        if got is None or got.v != f"v{row}":
            lost.append(row)
    return lost


def equal_without_a_command(rows):
    """Each node by itself comes to show all rows."""
    for host in HOSTS:
        cluster, session = connect(WhiteListRoundRobinPolicy([host]), ConsistencyLevel.ONE, [host])
        deadline = time.monotonic() + SETTLE_SECONDS
        while (lost := all_rows(session, rows)) and time.monotonic() < deadline:
            time.sleep(1)
        check(not lost, f"{host} does not have {len(lost)} of {len(rows)} rows, such as {lost[:5]}")
        cluster.shutdown()


def stays_empty(cluster, session):
    """A table is emptied while a node is away: what that one has must not come back with it."""
    harm("kill", "3")
    session.execute(f"TRUNCATE {KEYSPACE}.rows", timeout=60)
    count = session.execute(f"SELECT count(*) FROM {KEYSPACE}.rows").one()[0]
    check(count == 0, f"{count} rows are there behind TRUNCATE")
    session.execute(f"INSERT INTO {KEYSPACE}.rows (id, v) VALUES (1, 'behind it')")
    harm("start", "3")
    cluster.shutdown()
    cluster, session = connect(WhiteListRoundRobinPolicy([HOSTS[2]]), ConsistencyLevel.ONE, [HOSTS[2]])
    deadline = time.monotonic() + SETTLE_SECONDS
    while (ids := shown(session)) != [1] and time.monotonic() < deadline:
        time.sleep(1)
    check(ids == [1], f"{len(ids)} rows on the node that was away, such as {ids[:5]}")
    print("a table that was emptied while a node was away is empty there, too")
    cluster.shutdown()


def shown(session):
    return [row.id for row in session.execute(f"SELECT id FROM {KEYSPACE}.rows")]


def main():
    balancing = TokenAwarePolicy(DCAwareRoundRobinPolicy())
    cluster, session = connect(balancing, ConsistencyLevel.QUORUM)
    sees_the_ring(cluster, session)
    work = Work(session)
    try:
        hurt(work)
    finally:
        work.end()
    check(not work.wrong, f"rows that were acknowledged were not shown: {work.wrong[:5]}")
    rows = sorted(work.acknowledged)
    # By itself first: a read at ALL would make replicas equal.
    equal_without_a_command(rows)
    cluster.shutdown()
    cluster, session = connect(balancing, ConsistencyLevel.ALL)
    lost = all_rows(session, rows)
    check(not lost, f"{len(lost)} acknowledged rows are lost, such as {lost[:5]}")
    count = session.execute(f"SELECT count(*) FROM {KEYSPACE}.rows").one()[0]
    check(count >= len(rows), f"{count} rows are counted of {len(rows)}")
    print(f"{len(rows)} acknowledged rows are there, {len(work.failures)} requests failed")
    cluster.shutdown()
    stays_empty(*connect(balancing, ConsistencyLevel.QUORUM))


main()
