#!/usr/bin/env python3
"""Writes the kept `da` files of this folder anew, with a real Cassandra 5.

    generate.py PORT JMX_PORT

`lab/peers/cassandra` must be running with the profile `latest` (so that it writes BTI files, version `da`)
and the Python driver must be importable.  For each table the folder of its name gets the
components of every file, `schema.cql`, and beside each `-Data.db` the output of sstabledump
(`-dump.json`, or `-dump.json.gz` when it is long).  Timestamps are fixed; deletion times are those of the run.
"""
import glob
import gzip
import os
import random
import shutil
import subprocess
import sys
import time
import uuid

from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.query import dict_factory

PORT, JMX_PORT = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
SCRIPT = os.path.join(ROOT, "lab/peers/cassandra")
NODE = os.path.join(ROOT, ".peers/cassandra/node")
KEYSPACE = "da"
# Microseconds; 2024-01-01T00:00:00Z, so that the files look the same in every run.
T0 = 1704067200000000
TEN_YEARS = 315360000
# Longer dumps are kept with gzip.
DUMP_BYTES_PLAIN = 90_000

EVERY_TYPE = [
    ("c_ascii", "ascii", "'abc'"),
    ("c_bigint", "bigint", "-9223372036854775808"),
    ("c_blob", "blob", "0x00ff10"),
    ("c_boolean", "boolean", "true"),
    ("c_date", "date", "'2024-02-29'"),
    ("c_decimal", "decimal", "-12345678901234567890.0500"),
    ("c_double", "double", "-0.1"),
    ("c_duration", "duration", "1mo2d3ns"),
    ("c_float", "float", "3.5"),
    ("c_inet", "inet", "'2001:db8::1'"),
    ("c_int", "int", "-2147483648"),
    ("c_smallint", "smallint", "-32768"),
    ("c_text", "text", "'gr\u00fc\u00dfe, \u4e16\u754c \U0001f30d'"),
    ("c_time", "time", "'23:59:59.999999999'"),
    ("c_timestamp", "timestamp", "'1969-12-31T23:59:59.999Z'"),
    ("c_timeuuid", "timeuuid", "13814000-1dd2-11b2-8080-808080808080"),
    ("c_tinyint", "tinyint", "-128"),
    ("c_uuid", "uuid", "00112233-4455-6677-8899-aabbccddeeff"),
    ("c_varint", "varint", "-170141183460469231731687303715884105729"),
    ("c_list", "list<int>", "[3, 1, 2, 1]"),
    ("c_set", "set<text>", "{'a', 'b', ''}"),
    ("c_map", "map<text, bigint>", "{'k': 1, 'l': -1}"),
    ("c_frozen_list", "frozen<list<text>>", "['x', 'y']"),
    ("c_frozen_set", "frozen<set<int>>", "{1, -1}"),
    ("c_frozen_map", "frozen<map<int, frozen<list<int>>>>", "{1: [1, 2], 2: []}"),
    ("c_map_of_frozen", "map<int, frozen<set<text>>>", "{7: {'p', 'q'}}"),
    ("c_tuple", "tuple<int, text>", "(1, null)"),
    ("c_vector", "vector<float, 3>", "[1.0, 2.0, -0.5]"),
]


def nodetool(*args):
    subprocess.run([SCRIPT, "nodetool", "--jmx-port", JMX_PORT, *args], check=True)


class Tables:
    def __init__(self):
        profile = ExecutionProfile(row_factory=dict_factory, request_timeout=60)
        self.cluster = Cluster(["127.0.0.1"], port=int(PORT), execution_profiles={EXEC_PROFILE_DEFAULT: profile})
        self.session = self.cluster.connect()
        self.run(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        self.run(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        self.session.set_keyspace(KEYSPACE)
        self.names = []

    def run(self, text):
        return self.session.execute(text)

    def create(self, name, body):
        self.names.append(name)
        # No automatic compaction: a file stays as it was flushed.
        sep = " AND " if " WITH " in body else " WITH "
        self.run(f"CREATE TABLE {name} {body}{sep}compaction = {{'class': 'UnifiedCompactionStrategy', 'enabled': 'false'}}")

    def flush(self):
        nodetool("flush", KEYSPACE)


def every_type(t):
    columns = ", ".join(f"{n} {ty}" for n, ty, _ in EVERY_TYPE)
    t.create("every_type", f"(key int, sort text, {columns}, PRIMARY KEY (key, sort))")
    names = ", ".join(n for n, _, _ in EVERY_TYPE)
    values = ", ".join(v for _, _, v in EVERY_TYPE)
    t.run(f"INSERT INTO every_type (key, sort, {names}) VALUES (1, 'full', {values}) USING TIMESTAMP {T0}")
    t.run(f"INSERT INTO every_type (key, sort) VALUES (1, 'key only') USING TIMESTAMP {T0 + 1}")
    t.run(f"UPDATE every_type USING TIMESTAMP {T0 + 2} SET c_int = 5 WHERE key = 1 AND sort = 'no row marker'")
    t.run(f"INSERT INTO every_type (key, sort, {names}) VALUES (2, 'ttl', {values}) USING TTL {TEN_YEARS} AND TIMESTAMP {T0 + 3}")
    nulls = ", ".join("null" for _ in EVERY_TYPE)
    t.run(f"INSERT INTO every_type (key, sort, {names}) VALUES (3, 'null', {nulls}) USING TIMESTAMP {T0 + 4}")
    others = [
        ("c_ascii", "''"), ("c_bigint", "9223372036854775807"), ("c_blob", "0x"), ("c_boolean", "false"),
        ("c_date", "'1969-12-31'"), ("c_decimal", "0.000"), ("c_double", "NaN"), ("c_duration", "-1y2mo3h"),
        ("c_float", "-Infinity"), ("c_inet", "'127.0.0.1'"), ("c_int", "2147483647"), ("c_smallint", "32767"),
        ("c_text", "''"), ("c_time", "'00:00:00'"), ("c_timestamp", "0"), ("c_tinyint", "127"), ("c_varint", "128"),
        ("c_list", "[]"), ("c_set", "{}"), ("c_map", "{}"), ("c_frozen_list", "[]"), ("c_frozen_set", "{}"), ("c_frozen_map", "{}"),
    ]
    names2 = ", ".join(n for n, _ in others)
    values2 = ", ".join(v for _, v in others)
    t.run(f"INSERT INTO every_type (key, sort, {names2}) VALUES (4, '', {values2}) USING TIMESTAMP {T0 + 5}")


def every_key(t):
    """Each type as partition key part and as clustering column, rising and falling."""
    keys = [(n, ty, v) for n, ty, v in EVERY_TYPE if ty != "duration" and not (ty.startswith(("list", "set", "map")))]
    for name, ty, value in keys:
        table = "key_" + name[2:]
        t.create(table, f"(a {ty}, b {ty}, c {ty}, v int, PRIMARY KEY (a, b, c)) WITH CLUSTERING ORDER BY (b ASC, c DESC)")
        t.run(f"INSERT INTO {table} (a, b, c, v) VALUES ({value}, {value}, {value}, 1) USING TIMESTAMP {T0}")
    for i, (table, low, high) in enumerate([
        ("key_bigint", "-5", "5"), ("key_text", "'a'", "'b'"), ("key_blob", "0x00", "0x0001"), ("key_varint", "-1", "256"),
        ("key_decimal", "1.0", "1.00e1"), ("key_double", "-2.5", "2.5"), ("key_float", "-2.5", "2.5"), ("key_tinyint", "-1", "1"), ("key_time", "'01:00:00'", "'02:00:00'"),
        ("key_timestamp", "-1", "1"), ("key_date", "'1960-01-01'", "'2030-01-01'"), ("key_inet", "'1.2.3.4'", "'10.0.0.1'"),
        ("key_uuid", "00000000-0000-4000-8000-000000000000", "ffffffff-ffff-1fff-bfff-ffffffffffff"),
    ]):
        value = dict((("key_" + n[2:]), v) for n, _, v in EVERY_TYPE)[table]
        for b in (low, high):
            for c in (low, high):
                t.run(f"INSERT INTO {table} (a, b, c, v) VALUES ({value}, {b}, {c}, 2) USING TIMESTAMP {T0 + 1 + i}")


def tombstones(t):
    t.create("tombstones", "(key text, c1 int, c2 text, s int static, st set<int> static, v int, w text, l list<int>, m map<text, int>, PRIMARY KEY (key, c1, c2)) WITH gc_grace_seconds = 2000000000")
    r = t.run
    for key in ("a", "b", "c", "d", "e"):
        for c1 in range(6):
            for c2 in ("x", "y"):
                r(f"INSERT INTO tombstones (key, c1, c2, v, w, l, m) VALUES ('{key}', {c1}, '{c2}', {c1}, 'w', [1, 2], {{'a': 1, 'b': 2}}) USING TIMESTAMP {T0 + c1}")
    r(f"UPDATE tombstones USING TIMESTAMP {T0} SET s = 1, st = {{1, 2}} WHERE key = 'a'")
    r(f"DELETE v FROM tombstones USING TIMESTAMP {T0 + 100} WHERE key = 'a' AND c1 = 0 AND c2 = 'x'")
    r(f"DELETE m['a'], l FROM tombstones USING TIMESTAMP {T0 + 101} WHERE key = 'a' AND c1 = 0 AND c2 = 'y'")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 102} WHERE key = 'a' AND c1 = 1 AND c2 = 'x'")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 103} WHERE key = 'a' AND c1 = 2")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 104} WHERE key = 'b' AND c1 > 1 AND c1 <= 3")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 105} WHERE key = 'b' AND c1 >= 3 AND c1 < 5")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 106} WHERE key = 'b' AND (c1, c2) > (4, 'x')")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 2} WHERE key = 'c'")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 1000} WHERE key = 'd'")
    r(f"DELETE s, st FROM tombstones USING TIMESTAMP {T0 + 107} WHERE key = 'e'")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 108} WHERE key = 'never written'")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 109} WHERE key = 'only a range' AND c1 < 7")
    r(f"INSERT INTO tombstones (key, s) VALUES ('only static', 7) USING TIMESTAMP {T0 + 110}")
    r(f"INSERT INTO tombstones (key, s) VALUES ('static ttl', 7) USING TIMESTAMP {T0 + 110} AND TTL {TEN_YEARS}")
    r(f"UPDATE tombstones USING TIMESTAMP {T0 + 111} AND TTL {TEN_YEARS} SET w = 'lives ten years' WHERE key = 'ttl' AND c1 = 0 AND c2 = 'cell'")
    r(f"INSERT INTO tombstones (key, c1, c2, v, l) VALUES ('ttl', 1, 'row', 1, [9]) USING TIMESTAMP {T0 + 112} AND TTL {TEN_YEARS}")
    r(f"INSERT INTO tombstones (key, c1, c2, v, m) VALUES ('ttl', 2, 'expired', 1, {{'z': 26}}) USING TIMESTAMP {T0 + 113} AND TTL 1")
    r(f"UPDATE tombstones USING TIMESTAMP {T0 + 114} SET v = 1 WHERE key = 'ttl' AND c1 = 3 AND c2 = 'mixed'")
    r(f"UPDATE tombstones USING TIMESTAMP {T0 + 115} AND TTL 1 SET w = 'gone' WHERE key = 'ttl' AND c1 = 3 AND c2 = 'mixed'")
    # One base for both: element adds never shadow, the second overwrites the whole.
    r(f"UPDATE tombstones USING TIMESTAMP {T0 + 200} SET m = m + {{'n': 5}}, l = l + [7] WHERE key = 'append' AND c1 = 0 AND c2 = ''")
    r(f"UPDATE tombstones USING TIMESTAMP {T0 + 201} SET m = {{'o': 6}} WHERE key = 'append' AND c1 = 1 AND c2 = ''")
    t.flush()
    # A second file over the first: for merging readers.
    r(f"INSERT INTO tombstones (key, c1, c2, v, w) VALUES ('a', 1, 'x', 11, 'back') USING TIMESTAMP {T0 + 300}")
    r(f"INSERT INTO tombstones (key, c1, c2, v, w) VALUES ('a', 2, 'x', 11, 'too old') USING TIMESTAMP {T0 + 50}")
    r(f"INSERT INTO tombstones (key, c1, c2, v) VALUES ('d', 1, 'x', 11) USING TIMESTAMP {T0 + 1001}")
    r(f"DELETE FROM tombstones USING TIMESTAMP {T0 + 301} WHERE key = 'b' AND c1 >= 0 AND c1 < 2")


def wide(t):
    t.create("wide", "(key int, c int, v text, s text static, PRIMARY KEY (key, c)) WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}")
    insert = t.session.prepare("INSERT INTO wide (key, c, v) VALUES (?, ?, ?) USING TIMESTAMP ?")
    t.run(f"INSERT INTO wide (key, s) VALUES (1, 'static of the wide one') USING TIMESTAMP {T0}")
    for c in range(3000):
        t.session.execute(insert, (1, c * 2, f"row {c} " + "abcdefgh" * (4 + c % 9), T0 + c))
    t.run(f"DELETE FROM wide USING TIMESTAMP {T0 + 5000} WHERE key = 1 AND c >= 1000 AND c < 2500")
    t.run(f"DELETE FROM wide USING TIMESTAMP {T0 + 5000} WHERE key = 1 AND c = 4001")
    t.run(f"DELETE FROM wide USING TIMESTAMP {T0 + 5} WHERE key = 1")
    for key in (2, 3):
        for c in range(200):
            t.session.execute(insert, (key, c, "middling " + "z" * 40, T0 + c))
    for key in range(4, 40):
        t.session.execute(insert, (key, 0, "narrow", T0))
    t.create("wide_text", "(key text, a text, b blob, v int, PRIMARY KEY (key, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC) AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}")
    insert = t.session.prepare("INSERT INTO wide_text (key, a, b, v) VALUES (?, ?, ?, ?) USING TIMESTAMP ?")
    for a in range(40):
        for b in range(25):
            t.session.execute(insert, ("only", f"common prefix {a:03}" * (1 + a % 3), bytes([b, 0, a % 4, 255]), a * b, T0 + a))


def compressors(t):
    rng = random.Random(5)
    kinds = {
        "lz4": "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}",
        "snappy": "{'class': 'SnappyCompressor', 'chunk_length_in_kb': 4}",
        "deflate": "{'class': 'DeflateCompressor', 'chunk_length_in_kb': 4}",
        "zstd": "{'class': 'ZstdCompressor', 'chunk_length_in_kb': 4}",
        "none": "{'enabled': 'false'}",
        "ratio": "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4, 'min_compress_ratio': '1.1'}",
    }
    for kind, options in kinds.items():
        table = f"compressed_{kind}"
        t.create(table, f"(key int, c int, v text, b blob, PRIMARY KEY (key, c)) WITH compression = {options}")
        insert = t.session.prepare(f"INSERT INTO {table} (key, c, v, b) VALUES (?, ?, ?, ?) USING TIMESTAMP ?")
        for key in range(20):
            for c in range(4):
                # Every fourth partition does not compress, so that raw chunks occur under a ratio.
                noise = rng.randbytes(1100 if kind == "ratio" and key % 4 == 0 else 8)
                t.session.execute(insert, (key, c, "pattern " * 40, noise, T0 + key))


def many_partitions(t):
    t.create("many", "(key text PRIMARY KEY, v int) WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}")
    insert = t.session.prepare("INSERT INTO many (key, v) VALUES (?, ?) USING TIMESTAMP ?")
    for i in range(3000):
        t.session.execute(insert, (f"key{i}", i, T0 + i))
    t.create("compound", "(a int, b text, c uuid, v int, PRIMARY KEY ((a, b, c)))")
    for i in range(20):
        t.run(f"INSERT INTO compound (a, b, c, v) VALUES ({i}, '{'é' * (i % 3)}', {uuid.UUID(int=i * 7)}, {i}) USING TIMESTAMP {T0}")


def shapes(t):
    columns = ", ".join(f"v{i:03} int" for i in range(100))
    t.create("hundred_columns", f"(key int, c int, {columns}, PRIMARY KEY (key, c))")
    for row, present in enumerate([range(100), [0], [99], range(0, 100, 2), range(60), range(90, 100), []]):
        names = "".join(f", v{i:03}" for i in present)
        values = "".join(f", {i}" for i in present)
        t.run(f"INSERT INTO hundred_columns (key, c{names}) VALUES (1, {row}{values}) USING TIMESTAMP {T0}")
    t.create("dropped", "(key int, c int, gone text, gone_map map<int, int>, stays int, PRIMARY KEY (key, c))")
    t.run(f"INSERT INTO dropped (key, c, gone, gone_map, stays) VALUES (1, 1, 'old', {{1: 1}}, 5) USING TIMESTAMP {T0}")
    t.flush()
    t.run("ALTER TABLE dropped DROP gone")
    t.run("ALTER TABLE dropped DROP gone_map")
    t.run("ALTER TABLE dropped ADD added text")
    t.run(f"INSERT INTO dropped (key, c, added, stays) VALUES (1, 2, 'new', 6) USING TIMESTAMP {T0 + 1}")
    t.run("CREATE TYPE point (x int, y int, label text)")
    t.create("user_types", "(key int PRIMARY KEY, p point, fp frozen<point>, lp list<frozen<point>>)")
    t.run(f"INSERT INTO user_types (key, p, fp, lp) VALUES (1, {{x: 1, y: 2}}, {{x: 3, label: 'f'}}, [{{x: 4, y: 5, label: ''}}]) USING TIMESTAMP {T0}")
    t.create("counters", "(key int, c int, n counter, PRIMARY KEY (key, c))")
    t.run("UPDATE counters SET n = n + 5 WHERE key = 1 AND c = 1")
    t.run("UPDATE counters SET n = n - 7 WHERE key = 1 AND c = 2")
    t.create("large_value", "(key int PRIMARY KEY, v blob) WITH compression = {'class': 'ZstdCompressor', 'chunk_length_in_kb': 16}")
    t.session.execute(t.session.prepare("INSERT INTO large_value (key, v) VALUES (1, ?) USING TIMESTAMP ?"), (b"0123456789" * 30000, T0))


def keep(t):
    by_table = {}
    for name in t.names:
        folder = glob.glob(f"{NODE}/d/data/{KEYSPACE}/{name}-*")
        assert len(folder) == 1, folder
        target = os.path.join(HERE, name)
        shutil.rmtree(target, ignore_errors=True)
        os.makedirs(target)
        for path in glob.glob(f"{folder[0]}/{KEYSPACE}-*"):
            shutil.copy(path, target)
        by_table[name] = sorted(glob.glob(f"{target}/*-Data.db"))
        describe = t.session.execute(f"DESCRIBE TABLE {KEYSPACE}.{name}").one()["create_statement"]
        with open(os.path.join(target, "schema.cql"), "w") as out:
            if name == "user_types":
                out.write(t.session.execute(f"DESCRIBE TYPE {KEYSPACE}.point").one()["create_statement"] + "\n\n")
            out.write(describe + "\n")
    for name, files in by_table.items():
        assert files, name
        for path in files:
            dump = subprocess.run([SCRIPT, "tool", "org.apache.cassandra.tools.SSTableExport", path], check=True, stdout=subprocess.PIPE).stdout
            kept = path.replace("-Data.db", "-dump.json")
            if len(dump) <= DUMP_BYTES_PLAIN:
                with open(kept, "wb") as out:
                    out.write(dump)
            else:
                with open(kept + ".gz", "wb") as out:
                    out.write(gzip.compress(dump, mtime=0))
        print(name, len(files), flush=True)


def main():
    t = Tables()
    for step in (every_type, every_key, tombstones, wide, compressors, many_partitions, shapes):
        step(t)
    time.sleep(2)
    t.flush()
    keep(t)
    t.run(f"DROP KEYSPACE {KEYSPACE}")
    t.cluster.shutdown()


if __name__ == "__main__":
    main()
