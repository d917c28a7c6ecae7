#!/usr/bin/env python3
"""Writes the kept `big` files of this folder anew, with a real Cassandra 5.

    generate.py VERSION PORT JMX_PORT NODE_DIRECTORY

VERSION is `nb` (`lab/peers/cassandra start --dir NODE_DIRECTORY --profile default`) or `oa` (`--profile big`).
The tables are those of `../cassandra-da/generate.py`, in a keyspace named as the version, but for the
types as keys: those are in the tries of `da` only.  Each table's folder gets what that script says.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION, PORT, JMX_PORT, NODE = sys.argv[1:5]
sys.argv = [sys.argv[0], PORT, JMX_PORT]
sys.path.insert(0, os.path.join(HERE, "..", "cassandra-da"))
import generate as of_da  # noqa: E402

of_da.HERE = os.path.join(HERE, VERSION)
of_da.NODE = NODE
of_da.KEYSPACE = VERSION


def main():
    os.makedirs(of_da.HERE, exist_ok=True)
    t = of_da.Tables()
    for step in (of_da.every_type, of_da.tombstones, of_da.wide, of_da.compressors, of_da.many_partitions, of_da.shapes):
        step(t)
    time.sleep(2)
    t.flush()
    of_da.keep(t)
    t.run(f"DROP KEYSPACE {VERSION}")
    t.cluster.shutdown()


main()
