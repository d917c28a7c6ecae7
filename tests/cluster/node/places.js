'use strict';

// Where the server says that tokens and rows are: the file `PERISTYLE_PLACES` of tests/cluster/README.md.

const fs = require('fs');

/** Tokens by address, each list sorted; and the nodes that have a row, in the order of the ring. */
function read() {
  const tokens = {}, rows = [];
  for (const line of fs.readFileSync(process.env.PERISTYLE_PLACES, 'utf8').trimEnd().split('\n')) {
    const [kind, first, second, ...replicas] = line.split(' ');
    if (kind === 'token') (tokens[first] ??= []).push(second);
    else if (kind === 'row') rows.push({ keyspace: first, key: Number(second), replicas });
    else throw new Error(`a line of places: ${line}`);
  }
  Object.values(tokens).forEach(list => list.sort());
  return { tokens, rows };
}

module.exports = { read };
