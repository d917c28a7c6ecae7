'use strict';

// The round of tests/cluster/README.md in which a node is lost, by the Node.js driver.

const assert = require('assert');
const { exec } = require('child_process');
const { promisify } = require('util');
const { setTimeout: sleep } = require('timers/promises');
const { Client, policies, types } = require('cassandra-driver');
const places = require('./places');

const KEYSPACE = 'loss_node';
const INSERT = `INSERT INTO ${KEYSPACE}.rows (id, v) VALUES (?, ?)`;
const SELECT = `SELECT v FROM ${KEYSPACE}.rows WHERE id = ?`;
const WRITERS = 8;
const READERS = 32;
const SETTLE_MS = 30_000;
const REST_MS = 1000 * Number(process.env.PERISTYLE_REST_SECONDS);
// The node of the contact point: the driver's control connection goes with it.
const LOST = '1', LOST_ADDRESS = '127.0.0.1';

const { consistencies } = types;

function connect() {
  const [host, port] = process.env.PERISTYLE_ADDRESS.split(':');
  return new Client({
    contactPoints: [host],
    protocolOptions: { port: Number(port) },
    localDataCenter: 'datacenter1',
    queryOptions: { consistency: consistencies.quorum, isIdempotent: true, prepare: true },
    policies: { reconnection: new policies.reconnection.ConstantReconnectionPolicy(500) },
  });
}

const addressOf = host => host.address.split(':')[0];

function tokensOfHostsUp(client) {
  const up = client.hosts.values().filter(host => host.isUp());
  return Object.fromEntries(up.map(host => [addressOf(host), [...host.tokens].sort()]));
}

async function waitFor(what, condition) {
  const end = Date.now() + SETTLE_MS;
  while (!condition()) {
    assert(Date.now() < end, `failed: ${what}`);
    await sleep(100);
  }
}

async function seesTheRing(client, tokens) {
  const names = Object.keys(tokens).sort();
  await waitFor('all hosts are up', () => {
    return Object.keys(tokensOfHostsUp(client)).sort().join() === names.join();
  });
  assert.deepStrictEqual(tokensOfHostsUp(client), tokens);
}

async function findsReplicas(client, rows) {
  let owned = 0;
  for (const { keyspace, key, replicas } of rows) {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(key);
    const found = client.getReplicas(keyspace, bytes).map(addressOf);
    assert.deepStrictEqual(found, replicas, `failed: replicas of row ${key} of ${keyspace}: ${found}`);
    if (replicas.length > 1) continue;
    const done = await client.execute(`INSERT INTO ${keyspace}.rows (id, v) VALUES (?, ?)`, [key, 'v']);
    assert.strictEqual(done.info.queriedHost.split(':')[0], replicas[0], `who was asked for row ${key} of ${keyspace}`);
    owned++;
  }
  assert(owned > 0, 'there are rows with one replica');
  console.log(`ok: replicas of ${rows.length} rows, ${owned} sent to their only one`);
}

async function createTable(client) {
  const replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
  await client.execute(`CREATE KEYSPACE ${KEYSPACE} WITH replication = ${replication}`, [], { prepare: false });
  await client.execute(`CREATE TABLE ${KEYSPACE}.rows (id int PRIMARY KEY, v text)`, [], { prepare: false });
}

/** Writes and reads rows until it is told to stop. */
async function write(client, work) {
  while (!work.isOver) {
    const id = work.next++;
    try {
      await client.execute(INSERT, [id, `v${id}`]);
      work.acknowledged.push(id);
      const found = await select(client, id, consistencies.quorum);
      if (found !== `v${id}`) work.failures.push(`row ${id} is shown as ${found}`);
    } catch (error) {
      work.failures.push(String(error));
    }
  }
}

async function select(client, id, consistency) {
  const result = await client.execute(SELECT, [id], { consistency });
  return result.first()?.v;
}

/** Rows are written for a while. */
async function goesOn(work, when) {
  const before = work.acknowledged.length;
  await sleep(REST_MS);
  const written = work.acknowledged.length - before;
  console.log(`ok: ${written} rows written ${when}`);
  assert(written > 0, `failed: rows are written ${when}`);
}

async function cluster(words) {
  const { stdout } = await promisify(exec)(`${process.env.PERISTYLE_CLUSTER} ${words}`);
  process.stdout.write(stdout);
}

async function losesANode(client) {
  const work = { next: 0, acknowledged: [], failures: [], isOver: false };
  const writers = Array.from({ length: WRITERS }, () => write(client, work));
  try {
    await goesOn(work, 'before');
    await cluster(`kill ${LOST}`);
    await goesOn(work, `without node ${LOST}`);
    await waitFor('the driver sees that it is down', () => !(LOST_ADDRESS in tokensOfHostsUp(client)));
    await cluster(`start ${LOST}`);
    await goesOn(work, 'with it again');
  } finally {
    work.isOver = true;
    await Promise.all(writers);
  }
  const some = [...new Set(work.failures)].slice(0, 5).join('; ');
  assert(work.failures.length === 0, `failed: ${work.failures.length} requests failed: ${some}`);
  return work.acknowledged;
}

async function hasAllRows(client, acknowledged) {
  for (const level of ['quorum', 'all']) {
    const rest = [...acknowledged], lost = [];
    await Promise.all(Array.from({ length: READERS }, async () => {
      for (let id = rest.pop(); id !== undefined; id = rest.pop()) {
        if (await select(client, id, consistencies[level]) !== `v${id}`) lost.push(id);
      }
    }));
    assert(lost.length === 0, `failed: ${lost.length} acknowledged rows are not there at ${level}`);
  }
  const counted = await client.execute(`SELECT count(*) FROM ${KEYSPACE}.rows`);
  assert.strictEqual(Number(counted.first().count), acknowledged.length, 'rows counted');
  console.log(`ok: ${acknowledged.length} rows are there`);
}

async function main() {
  const { tokens, rows } = places.read();
  const client = connect();
  await client.connect();
  await seesTheRing(client, tokens);
  console.log(`ok: ${Object.keys(tokens).length} hosts with their tokens`);
  await findsReplicas(client, rows);
  await createTable(client);
  const acknowledged = await losesANode(client);
  await seesTheRing(client, tokens);
  await hasAllRows(client, acknowledged);
  await client.shutdown();
}

main().catch(error => {
  console.error(error.message ?? error);
  process.exit(1);
});
