"""More prepared statements than the node has room for, each executed twice, with the Python driver.

Every statement has a text, a column and an answer of its own. The node keeps those used last; of the others the
driver is told that they are not prepared, prepares them again and goes on, and a program sees none of it.
"""

import os

from cassandra.cluster import Cluster, EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.concurrent import execute_concurrent

HOST, PORT = os.environ.get("PERISTYLE_ADDRESS", "127.0.0.1:9042").rsplit(":", 1)
STATEMENT_COUNT = int(os.environ.get("PERISTYLE_STATEMENTS", "10000"))
KEYSPACE = "driver_prepared"
ROW_COUNT = 1_000
IN_FLIGHT = 100


def value(number):
    return number * 7 + 3


def fill(session):
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.set_keyspace(KEYSPACE)
    session.execute("CREATE TABLE numbers (k int, c int, v int, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO numbers (k, c, v) VALUES (?, ?, ?)")
    rows = [(insert, (1, number, value(number))) for number in range(ROW_COUNT)]
    execute_concurrent(session, rows, concurrency=IN_FLIGHT, raise_on_first_error=True)


def execute_all(session, statements):
    calls = ((statement, (1,)) for statement in statements)
    outcomes = execute_concurrent(session, calls, concurrency=IN_FLIGHT, raise_on_first_error=True, results_generator=True)
    for number, (_, rows) in enumerate(outcomes):
        got = rows.one()._asdict()
        expected = {f"a{number}": value(number % ROW_COUNT)}
        if got != expected:
            raise SystemExit(f"failed: statement {number}: got {got!r}, expected {expected!r}")


def main():
    profile = ExecutionProfile(request_timeout=30)
    cluster = Cluster([HOST], port=int(PORT), execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    session = cluster.connect()
    fill(session)
    texts = (f"SELECT v AS a{number} FROM numbers WHERE k = ? AND c = {number % ROW_COUNT}" for number in range(STATEMENT_COUNT))
    statements = [session.prepare(text) for text in texts]
    print(f"ok: {STATEMENT_COUNT} statements prepared", flush=True)
    for time in ("once", "twice"):
        execute_all(session, statements)
        print(f"ok: all executed {time}", flush=True)
    session.execute(f"DROP KEYSPACE {KEYSPACE}")
    cluster.shutdown()


main()
