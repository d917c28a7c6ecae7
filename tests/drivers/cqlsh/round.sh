#!/usr/bin/env bash
# Stock cqlsh (PyPI) at work: connect, DESCRIBE FULL SCHEMA, COPY out and in again, SOURCE, paging.
#
#   round.sh CQLSH HOST PORT WORKDIR
#
# Prints `ok: …` a step; any difference ends it with an error.
set -euo pipefail
cqlsh=$1 host=$2 port=$3 work=$4
mkdir -p "$work"
cd "$work"  # COPY leaves files of what it could not read where it runs
# It warns of any server that is not 5.0.0, on stdout.
run() { "$cqlsh" --no-color "$host" "$port" "$@" | sed '/^WARNING: cqlsh was built/d'; }
# shows PATTERN WORDS…: cqlsh with these words prints the pattern.
shows() { local pattern=$1 text; shift; text=$(run "$@" 2>&1); grep -q "$pattern" <<< "$text" || { echo "$text" | tail -20; return 1; }; }
fail() { echo "failed: $*" >&2; exit 1; }

shows "CQL spec 3" -e "SHOW VERSION" || fail "SHOW VERSION"
echo "ok: connect"

cat > "$work/schema.cql" <<'CQL'
DROP KEYSPACE IF EXISTS driver_cqlsh;
CREATE KEYSPACE driver_cqlsh WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
USE driver_cqlsh;
CREATE TABLE flights (day date, carrier text, number int, origin ascii, delay float, tail text, hour timestamp, ids uuid,
  stops list<text>, tags set<text>, codes map<text, int>, price decimal, ok boolean, raw blob, big varint, PRIMARY KEY (day, carrier, number))
  WITH CLUSTERING ORDER BY (carrier ASC, number DESC) AND comment = 'it''s flights';
CREATE TABLE flights_back (day date, carrier text, number int, origin ascii, delay float, tail text, hour timestamp, ids uuid,
  stops list<text>, tags set<text>, codes map<text, int>, price decimal, ok boolean, raw blob, big varint, PRIMARY KEY (day, carrier, number))
  WITH CLUSTERING ORDER BY (carrier ASC, number DESC);
INSERT INTO flights (day, carrier, number) VALUES ('2013-01-31', 'null''s', 1);
CQL
run -f "$work/schema.cql" || fail "SOURCE of the schema"
echo "ok: schema"

python3 - "$work/flights.csv" <<'PY'
import csv, sys
with open(sys.argv[1], "w", newline="") as out:
    writer = csv.writer(out, doublequote=False, escapechar="\\")
    for n in range(20_000):
        day = f"2013-01-{n % 30 + 1:02}"
        writer.writerow([day, ["AA", "B6", "DL", "Ü,\"q\""][n % 4], n, "JFK", n / 8, f"N{n}",
                         f"{day} 05:00:00.000+0000", f"00000000-0000-4000-8000-{n:012}", f"['a', 'stop {n}']",
                         "{'x', 'y'}" if n % 3 else "", "{'k': %d}" % n, f"{n}.50", n % 2 == 0, "0x00ff", 10**25 + n])
PY
columns="day, carrier, number, origin, delay, tail, hour, ids, stops, tags, codes, price, ok, raw, big"
run -e "COPY driver_cqlsh.flights ($columns) FROM '$work/flights.csv' WITH NUMPROCESSES = 1" > "$work/from.log" 2>&1 || { cat "$work/from.log"; fail "COPY FROM"; }
grep -q "^20000 rows imported" "$work/from.log" || { cat "$work/from.log"; fail "20000 rows imported"; }
run -e "COPY driver_cqlsh.flights ($columns) TO '$work/out.csv' WITH NUMPROCESSES = 1" > "$work/to.log" 2>&1 || { cat "$work/to.log"; fail "COPY TO"; }
grep -q "^20001 rows exported" "$work/to.log" || { cat "$work/to.log"; fail "20001 rows exported"; }
run -e "COPY driver_cqlsh.flights_back ($columns) FROM '$work/out.csv' WITH NUMPROCESSES = 1" > "$work/from2.log" 2>&1 || fail "COPY FROM again"
run -e "COPY driver_cqlsh.flights_back ($columns) TO '$work/back.csv' WITH NUMPROCESSES = 1" > "$work/to2.log" 2>&1 || fail "COPY TO again"
python3 - "$work/out.csv" "$work/back.csv" <<'PY' || fail "COPY out and in again gives other rows"
import csv, sys
one, two = (sorted(csv.reader(open(path, newline=""), doublequote=False, escapechar="\\")) for path in sys.argv[1:])
sys.exit(one != two or len(one) != 20001)
PY
echo "ok: COPY"

shows " 20001" -e "SELECT count(*) FROM driver_cqlsh.flights" || fail "count"
shows "(667 rows)\|(666 rows)" -e "PAGING 100; SELECT number FROM driver_cqlsh.flights WHERE day = '2013-01-05'" || fail "a page after the other"
run -e "SELECT * FROM driver_cqlsh.nope" > "$work/error.log" 2>&1 && fail "an error must end cqlsh with a code"
grep -q "InvalidRequest" "$work/error.log" || fail "error text"
shows "2013-01" -e "TRACING OFF; CONSISTENCY LOCAL_QUORUM; SELECT day FROM driver_cqlsh.flights LIMIT 1" || fail "CONSISTENCY"
echo "ok: SELECT"

run -e "DESCRIBE KEYSPACE driver_cqlsh" > "$work/described.cql"
grep -q "CREATE TABLE driver_cqlsh.flights (" "$work/described.cql" || fail "DESCRIBE KEYSPACE"
run -e "DESCRIBE FULL SCHEMA" > "$work/full.cql"
grep -q "CREATE TABLE driver_cqlsh.flights (" "$work/full.cql" || fail "DESCRIBE FULL SCHEMA has our table"
grep -q "CREATE TABLE system_schema.tables (" "$work/full.cql" || fail "DESCRIBE FULL SCHEMA has the system tables"
run -e "DESCRIBE TABLES" | grep -q flights_back || fail "DESCRIBE TABLES"
run -e "DROP KEYSPACE driver_cqlsh"
run -f "$work/described.cql" || fail "what DESCRIBE printed does not run"
run -e "DESCRIBE KEYSPACE driver_cqlsh" | diff "$work/described.cql" - || fail "DESCRIBE of what DESCRIBE printed is another schema"
run -e "DROP KEYSPACE driver_cqlsh"
echo "ok: DESCRIBE"
