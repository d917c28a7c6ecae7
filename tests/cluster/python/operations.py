"""Requests with ids while nodes are killed, by the Python driver: each is done once. See docs/operation-ids.md."""

import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import (
    ConstantReconnectionPolicy,
    ConstantSpeculativeExecutionPolicy,
    DCAwareRoundRobinPolicy,
    TokenAwarePolicy,
)
from cassandra.protocol import ErrorMessage

HOST, PORT = os.environ.get("PERISTYLE_ADDRESS", "127.0.0.1:9042").rsplit(":", 1)
SECONDS = float(os.environ.get("PERISTYLE_SECONDS", "5"))
KEYSPACE = "operations_python"
WORKERS = 16
# An id is good for five minutes.
PATIENCE_SECONDS = 120

repeats = []


def operation_id():
    """The name of an operation: it goes with every attempt, those of the driver and our own."""
    return {"operation-id": uuid.uuid1().bytes}


def until_answered(session, statement, values):
    payload, end = operation_id(), time.time() + PATIENCE_SECONDS
    while True:
        try:
            return session.execute(statement, values, custom_payload=payload)
        except (DriverException, NoHostAvailable, ErrorMessage) as error:
            # It may be done, or not: asked again under its id, it is not done again.
            repeats.append(error)
            if time.time() > end:
                raise
            time.sleep(0.05)


def prepare(session, text):
    statement = session.prepare(text)
    # With an id it may be sent again, and to several nodes at once.
    statement.is_idempotent = True
    statement.consistency_level = ConsistencyLevel.QUORUM
    return statement


def work(session, worker, failures):
    """Counts visits for some seconds, and up the version of an account that nobody else changes; returns how often."""
    count = prepare(session, "UPDATE visits SET count = count + 1 WHERE page = 'front'")
    begin = prepare(session, "INSERT INTO accounts (name, version) VALUES (?, 0) IF NOT EXISTS")
    change = prepare(session, "UPDATE accounts SET version = ? WHERE name = ? IF version = ?")
    name, version, end = f"account {worker}", 0, time.time() + SECONDS
    try:
        results = [until_answered(session, begin, (name,)).one()]
        while time.time() < end:
            version += 1
            until_answered(session, count, ())
            # Nobody else changes it: a refusal would be against our own change.
            results.append(until_answered(session, change, (version, name, version - 1)).one())
        failures += [f"{name}: {result}" for result in results if not result.applied]
    except Exception as error:
        failures.append(f"{name}: {error!r}")
    return version


def main():
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1")),
        speculative_execution_policy=ConstantSpeculativeExecutionPolicy(delay=0.05, max_attempts=2),
        consistency_level=ConsistencyLevel.QUORUM,
        request_timeout=10,
    )
    hosts = [f"127.0.0.{number}" for number in (1, 2, 3)]
    cluster = Cluster(
        hosts,
        port=int(PORT),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(0.5, None),
    )
    session = cluster.connect()
    replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}")
    session.set_keyspace(KEYSPACE)
    session.execute("CREATE TABLE visits (page text PRIMARY KEY, count counter)")
    session.execute("CREATE TABLE accounts (name text PRIMARY KEY, version int)")
    print("ready", flush=True)
    failures = []
    with ThreadPoolExecutor(WORKERS) as workers:
        wanted = sum(workers.map(lambda worker: work(session, worker, failures), range(WORKERS)))
    read = prepare(session, "SELECT count FROM visits WHERE page = 'front'")
    counted = until_answered(session, read, ()).one().count
    if wanted < SECONDS * WORKERS:
        failures.append(f"only {wanted} visits in {SECONDS} s")
    if counted != wanted:
        failures.append(f"{counted} visits instead of {wanted}")
    if failures:
        raise SystemExit("failed: " + "; ".join(failures))
    print(f"ok: {2 * counted} operations, each done once; {len(repeats)} were asked again by the application")
    cluster.shutdown()


main()
