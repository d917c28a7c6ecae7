'use strict';

// Requests with ids while nodes are killed, by the Node.js driver: each is done once. See docs/operation-ids.md.

const { setTimeout: sleep } = require('timers/promises');
const { Client, policies, types } = require('cassandra-driver');

const KEYSPACE = 'operations_node';
const SECONDS = Number(process.env.PERISTYLE_SECONDS || 5);
const WORKERS = 16;
// An id is good for five minutes.
const PATIENCE_MS = 120_000;

let repeats = 0;

function connect() {
  return new Client({
    contactPoints: ['127.0.0.1', '127.0.0.2', '127.0.0.3'],
    protocolOptions: { port: Number(process.env.PERISTYLE_ADDRESS.split(':')[1]) },
    localDataCenter: 'datacenter1',
    // With an id it may be sent again, and to several nodes at once.
    queryOptions: { consistency: types.consistencies.quorum, isIdempotent: true, prepare: true },
    policies: {
      reconnection: new policies.reconnection.ConstantReconnectionPolicy(500),
      speculativeExecution: new policies.speculativeExecution.ConstantSpeculativeExecutionPolicy(50, 1),
    },
  });
}

/** The id goes with every attempt, those of the driver and our own. */
async function untilAnswered(client, text, values = []) {
  const customPayload = { 'operation-id': types.TimeUuid.now().getBuffer() };
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await client.execute(text, values, { customPayload });
    } catch (error) {
      // It may be done, or not: asked again under its id, it is not done again.
      repeats++;
      if (Date.now() > end) throw error;
      await sleep(50);
    }
  }
}

/** It must be applied: a refusal would be against our own change. */
async function change(client, text, values) {
  const result = await untilAnswered(client, text, values);
  if (!result.wasApplied()) throw new Error(`${text} ${values}: ${JSON.stringify(result.rows)}`);
}

/** Counts visits, and up the version of an account that nobody else changes; returns how often. */
async function work(client, worker) {
  const name = `account ${worker}`;
  await change(client, `INSERT INTO ${KEYSPACE}.accounts (name, version) VALUES (?, 0) IF NOT EXISTS`, [name]);
  const end = Date.now() + 1000 * SECONDS;
  let version = 0;
  while (Date.now() < end) {
    version++;
    await untilAnswered(client, `UPDATE ${KEYSPACE}.visits SET count = count + 1 WHERE page = 'front'`);
    const text = `UPDATE ${KEYSPACE}.accounts SET version = ? WHERE name = ? IF version = ?`;
    await change(client, text, [version, name, version - 1]);
  }
  return version;
}

async function main() {
  const client = connect();
  const replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
  const plain = text => client.execute(text, [], { prepare: false });
  await plain(`CREATE KEYSPACE ${KEYSPACE} WITH replication = ${replication}`);
  await plain(`CREATE TABLE ${KEYSPACE}.visits (page text PRIMARY KEY, count counter)`);
  await plain(`CREATE TABLE ${KEYSPACE}.accounts (name text PRIMARY KEY, version int)`);
  console.log('ready');
  const versions = await Promise.all([...Array(WORKERS).keys()].map(worker => work(client, worker)));
  const read = await untilAnswered(client, `SELECT count FROM ${KEYSPACE}.visits WHERE page = 'front'`);
  const counted = read.first().count.toNumber(), wanted = versions.reduce((sum, version) => sum + version);
  if (wanted < SECONDS * WORKERS) throw new Error(`only ${wanted} visits in ${SECONDS} s`);
  if (counted !== wanted) throw new Error(`${counted} visits instead of ${wanted}`);
  console.log(`ok: ${2 * counted} operations, each done once; ${repeats} were asked again by the application`);
  await client.shutdown();
}

main().catch(error => {
  console.log(`failed: ${error.stack}`);
  process.exit(1);
});
