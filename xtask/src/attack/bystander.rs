//! Who asks one row at a time, writes one now and then, and remembers what was acknowledged.

use std::time::{Duration, Instant};

use crate::measure::{replicated_keyspace, statements};
use crate::report::Failure;
use crate::wire::{Answer, BoundValue, Connection, Request};

/// Connections, so that some come to each shard.
const CONNECTIONS: usize = 16;
const ROWS: i32 = 200;
/// One in so many requests is a write.
const WRITE_EVERY: u64 = 8;
const PAUSE: Duration = Duration::from_millis(1);
/// The protocol's code for `Overloaded`: an answer, though not the one that was asked for.
const OVERLOADED: u32 = 0x1001;
const UNPREPARED: u32 = 0x2500;
const ONE: u16 = 1;
const QUORUM: u16 = 4;

/// How long the bystander waited.
pub(super) struct Waits {
    pub(super) count: usize,
    pub(super) p99_ms: f64,
    pub(super) worst_ms: f64,
}

pub(super) struct Bystander {
    connections: Vec<Client>,
    table: String,
    replicas: u64,
    /// The version that was acknowledged last, by key, and the last one that may have come in beside it.
    rows: Vec<(i64, i64)>,
    asked_count: u64,
    waits: Vec<Duration>,
}

struct Client {
    connection: Connection,
    /// On a ring a quorum, so that what was acknowledged is seen.
    consistency: u16,
    select: Prepared,
    insert: Prepared,
}

struct Prepared {
    text: String,
    id: Vec<u8>,
}

impl Bystander {
    /// Writes the rows that are asked for, into a table of that name.
    pub(super) fn open(address: &str, name: &str, replicas: u64) -> Result<Bystander, Failure> {
        let table = format!("bystander.{name}");
        let make = format!("CREATE TABLE IF NOT EXISTS {table} (k int PRIMARY KEY, version bigint, v text)");
        statements(address, &[replicated_keyspace("bystander", replicas), make])?;
        let open = |_| Client::open(address, &table, replicas);
        let connections = (0..CONNECTIONS).map(open).collect::<Result<_, _>>()?;
        let rows = vec![(0, 0); ROWS as usize];
        let mut bystander =
            Bystander { connections, table, replicas, rows, asked_count: 0, waits: Vec::new() };
        (0..ROWS).try_for_each(|key| bystander.write(key))?;
        Ok(bystander)
    }

    /// Asks for so long.
    pub(super) fn ask_for(&mut self, time: Duration) -> Result<(), Failure> {
        self.waits.clear();
        let began = Instant::now();
        while began.elapsed() < time {
            let key = (self.asked_count * 7 % u64::from(ROWS.unsigned_abs())) as i32;
            let asked = Instant::now();
            if self.asked_count.is_multiple_of(WRITE_EVERY) {
                self.write(key)?;
            } else {
                self.read(key)?;
            }
            self.waits.push(asked.elapsed());
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    pub(super) fn waits(&self) -> Waits {
        let mut sorted = self.waits.clone();
        sorted.sort_unstable();
        let ms = |index: usize| sorted.get(index).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1000.0);
        Waits {
            count: sorted.len(),
            p99_ms: ms(sorted.len() * 99 / 100),
            worst_ms: ms(sorted.len().saturating_sub(1)),
        }
    }

    /// What a node there does not have of what was acknowledged, or has though nobody wrote it.
    pub(super) fn missing(&self, address: &str) -> Result<Vec<String>, Failure> {
        let mut client = Client::open(address, &self.table, self.replicas)?;
        let mut wrong = Vec::new();
        for (key, (acknowledged, written)) in self.rows.iter().enumerate() {
            let found = client.version(key as i32)?;
            if !found.is_some_and(|version| (*acknowledged..=*written).contains(&version)) {
                wrong.push(format!("row {key} has version {found:?} and not {acknowledged} to {written}"));
            }
        }
        Ok(wrong)
    }

    fn client(&mut self) -> usize {
        self.asked_count += 1;
        (self.asked_count % self.connections.len() as u64) as usize
    }

    fn read(&mut self, key: i32) -> Result<(), Failure> {
        let client = self.client();
        let found = self.connections[client].version(key)?;
        let (acknowledged, _) = self.rows[key as usize];
        match found.is_some_and(|version| version >= acknowledged) {
            true => Ok(()),
            false => Err(Failure::new(format!("row {key} has version {found:?} after {acknowledged}"))),
        }
    }

    fn write(&mut self, key: i32) -> Result<(), Failure> {
        let client = self.client();
        let row = &mut self.rows[key as usize];
        row.1 += 1;
        if self.connections[client].write(key, row.1)? {
            row.0 = row.1;
        }
        Ok(())
    }
}

impl Client {
    fn open(address: &str, table: &str, replicas: u64) -> Result<Client, Failure> {
        let mut connection = Connection::open(address, 4)?;
        let select = Prepared::on(&mut connection, format!("SELECT version, v FROM {table} WHERE k = ?"))?;
        let insert = format!("INSERT INTO {table} (k, version, v) VALUES (?, ?, 'a text')");
        let insert = Prepared::on(&mut connection, insert)?;
        Ok(Client { connection, consistency: if replicas > 1 { QUORUM } else { ONE }, select, insert })
    }

    /// The version of a row.
    fn version(&mut self, key: i32) -> Result<Option<i64>, Failure> {
        let request = self.request(vec![key.to_be_bytes().to_vec()]);
        match self.select.execute(&mut self.connection, &request)? {
            Answer::Rows(rows) => {
                let cell = rows.rows.first().and_then(|row| row.first()?.as_deref());
                Ok(cell.and_then(|cell| cell.try_into().ok()).map(i64::from_be_bytes))
            }
            other => Err(Failure::new(format!("the bystander's read of row {key}: {other:?}"))),
        }
    }

    /// Was the write acknowledged? If not, it may or may not be there.
    fn write(&mut self, key: i32, version: i64) -> Result<bool, Failure> {
        let request = self.request(vec![key.to_be_bytes().to_vec(), version.to_be_bytes().to_vec()]);
        match self.insert.execute(&mut self.connection, &request)? {
            Answer::Void => Ok(true),
            Answer::Error { code: OVERLOADED, .. } => Ok(false),
            other => Err(Failure::new(format!("the bystander's write of row {key}: {other:?}"))),
        }
    }

    fn request(&self, values: Vec<Vec<u8>>) -> Request {
        let values = values.into_iter().map(|bytes| (None, BoundValue::Bytes(bytes))).collect();
        Request { values, consistency: self.consistency, ..Request::default() }
    }
}

impl Prepared {
    fn on(connection: &mut Connection, text: String) -> Result<Prepared, Failure> {
        match connection.prepare(&text, None)?.answer {
            Answer::Prepared(prepared) => Ok(Prepared { text, id: prepared.id }),
            other => Err(Failure::new(format!("{text}: {other:?}"))),
        }
    }

    /// Executes it; prepares it again if the node has made room for others, as drivers do without a word.
    fn execute(&mut self, connection: &mut Connection, request: &Request) -> Result<Answer, Failure> {
        match connection.execute(&self.id, &[], request)?.answer {
            Answer::Error { code: UNPREPARED, .. } => {
                *self = Prepared::on(connection, std::mem::take(&mut self.text))?;
                Ok(connection.execute(&self.id, &[], request)?.answer)
            }
            answer => Ok(answer),
        }
    }
}
