//! The statements of a load: their tables, their texts, and the requests made of them.
//!
//! Reads and updates are those of YCSB: rows of ten fields of 100 bytes under a text key, one field
//! changed by an update.

use std::sync::Arc;

use crate::Outcome;
use crate::frame::{self, EXECUTE, REQUEST_VERSION};
use crate::keys::{Random, Skewed, hash};
use crate::route::Route;

const FIELDS: u64 = 10;
const FIELD_BYTES: usize = 100;
/// Random letters that all values are cut from.
const LETTERS_BYTES: usize = 1 << 20;
/// Rows that a scan asks for at the most.
const SCANNED_ROWS_MAX: u64 = 20;
/// Rows in each partition of `wide`.
pub(crate) const WIDE_ROWS: u64 = 1000;
/// Bytes of the value of a row of `wide`: with its two numbers the row has 40.
const WIDE_VALUE_BYTES: usize = 24;
/// Values, no metadata in the answer, page size: what drivers send.
const FLAGS: u8 = 0x01 | 0x02 | 0x04;
const PAGE_ROWS: i32 = 5000;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// YCSB C: all fields of one row.
    Read,
    /// YCSB U: one field of one row.
    Update,
    /// YCSB's load: a whole row of 1 KB.
    Insert,
    /// Half reads, half updates: YCSB A.
    Mixed,
    /// A row of 16 bytes.
    Small,
    /// The same, written.
    SmallInsert,
    /// One more in a counter.
    Count,
    /// The value of a row of 16 bytes, if there is the row.
    If,
    /// A row of 40 bytes in a partition of a thousand.
    WideInsert,
    /// All fields of up to 20 rows, from one on: a short YCSB E, which a server does in one turn even where it is
    /// watched and slow.
    Scan,
}

impl Kind {
    /// By its name on the command line.
    pub(crate) fn named(name: &str) -> Outcome<Kind> {
        Ok(match name {
            "read" => Kind::Read,
            "update" => Kind::Update,
            "insert" => Kind::Insert,
            "mixed" => Kind::Mixed,
            "small" => Kind::Small,
            "small-insert" => Kind::SmallInsert,
            "count" => Kind::Count,
            "if" => Kind::If,
            "wide-insert" => Kind::WideInsert,
            "scan" => Kind::Scan,
            _ => return Err(format!("no statement '{name}'").into()),
        })
    }

    /// The table's name and what its definition holds.
    pub(crate) fn table(self) -> (&'static str, String) {
        match self {
            Kind::Small | Kind::SmallInsert | Kind::If => {
                ("small", "id bigint PRIMARY KEY, v bigint".to_owned())
            }
            Kind::Count => ("counts", "id bigint PRIMARY KEY, n counter".to_owned()),
            Kind::WideInsert => ("wide", "p bigint, c bigint, v blob, PRIMARY KEY (p, c)".to_owned()),
            _ => {
                let fields: Vec<String> = (0..FIELDS).map(|index| format!("field{index} varchar")).collect();
                ("usertable", format!("y_id varchar PRIMARY KEY, {}", fields.join(", ")))
            }
        }
    }

    /// The statement that writes the rows this one asks for.
    pub(crate) fn filling(self) -> Kind {
        match self {
            Kind::Small | Kind::SmallInsert | Kind::If => Kind::SmallInsert,
            Kind::Count => Kind::Count,
            Kind::WideInsert => Kind::WideInsert,
            _ => Kind::Insert,
        }
    }

    /// A row's partition key, as it is hashed.
    fn partition_key(self, row: u64) -> Vec<u8> {
        match self {
            Kind::Small | Kind::SmallInsert | Kind::If | Kind::Count => row.to_be_bytes().to_vec(),
            Kind::WideInsert => (row / WIDE_ROWS).to_be_bytes().to_vec(),
            _ => key(row).to_vec(),
        }
    }

    /// Texts to prepare, in the order that requests name them.
    pub(crate) fn texts(self, keyspace: &str) -> Vec<String> {
        let table = format!("{keyspace}.{}", self.table().0);
        let read = format!("SELECT * FROM {table} WHERE y_id = ? LIMIT 1");
        let update = format!("UPDATE {table} SET field0 = ? WHERE y_id = ?");
        match self {
            Kind::Read => vec![read],
            Kind::Scan => vec![format!("SELECT * FROM {table} WHERE token(y_id) >= token(?) LIMIT ?")],
            Kind::Update => vec![update],
            Kind::Mixed => vec![read, update],
            Kind::Insert => {
                let fields: Vec<String> = (0..FIELDS).map(|index| format!("field{index}")).collect();
                let marks = vec!["?"; FIELDS as usize + 1].join(", ");
                vec![format!("INSERT INTO {table} (y_id, {}) VALUES ({marks})", fields.join(", "))]
            }
            Kind::Small => vec![format!("SELECT id, v FROM {table} WHERE id = ?")],
            Kind::SmallInsert => vec![format!("INSERT INTO {table} (id, v) VALUES (?, ?)")],
            Kind::Count => vec![format!("UPDATE {table} SET n = n + 1 WHERE id = ?")],
            Kind::If => vec![format!("UPDATE {table} SET v = ? WHERE id = ? IF EXISTS")],
            Kind::WideInsert => vec![format!("INSERT INTO {table} (p, c, v) VALUES (?, ?, ?)")],
        }
    }
}

/// Makes requests; one for each thread.
pub(crate) struct Requests {
    kind: Kind,
    /// Ids of the prepared texts.
    ids: Vec<Vec<u8>>,
    /// The consistency level, by its number in the protocol.
    level: u16,
    /// Of each host, where requests go to replicas only; else of all.
    skewed: Vec<Skewed>,
    random: Random,
    letters: Arc<[u8]>,
}

/// A consistency level's number in the protocol.
pub(crate) fn level_named(name: &str) -> Outcome<u16> {
    const LEVELS: [(&str, u16); 6] =
        [("ONE", 1), ("TWO", 2), ("THREE", 3), ("QUORUM", 4), ("ALL", 5), ("LOCAL_QUORUM", 6)];
    let level = LEVELS.iter().find(|(known, _)| *known == name);
    level.map(|(_, number)| *number).ok_or_else(|| format!("no consistency level '{name}'").into())
}

/// Random letters, shared by all threads.
pub(crate) fn letters() -> Arc<[u8]> {
    let mut random = Random::new(99);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..LETTERS_BYTES).map(|_| alphabet[(random.next() >> 32) as usize % alphabet.len()]).collect()
}

impl Requests {
    /// Of one kind, over so many rows.
    pub(crate) fn new(kind: Kind, ids: &[Vec<u8>], rows: u64, seed: u64, letters: &Arc<[u8]>) -> Requests {
        Requests {
            kind,
            ids: ids.to_vec(),
            level: 1,
            skewed: vec![Skewed::new(rows, seed)],
            random: Random::new(seed),
            letters: letters.clone(),
        }
    }

    /// The same at another level than ONE.
    pub(crate) fn at(self, level: u16) -> Requests {
        Requests { level, ..self }
    }

    /// The same, where each host is asked only for rows that it has.
    pub(crate) fn routed(mut self, route: &Route, host_count: usize) -> Outcome<Requests> {
        let (all, kind) = (&self.skewed[0], self.kind);
        let of_host = |host| all.among(|row| route.is_replica(host, &kind.partition_key(row)));
        self.skewed = (0..host_count).map(of_host).collect::<Outcome<_>>()?;
        Ok(self)
    }

    /// Appends the next request to a host, for a row with YCSB's skew.
    pub(crate) fn put_next(&mut self, out: &mut Vec<u8>, stream: u16, host: usize) {
        let choice = host % self.skewed.len();
        let row = self.skewed[choice].next();
        self.put(out, stream, row);
    }

    /// Appends a request for this row.
    pub(crate) fn put(&mut self, out: &mut Vec<u8>, stream: u16, row: u64) {
        let second = self.kind == Kind::Mixed && self.random.next() >> 63 == 1;
        let kind = match (self.kind, second) {
            (Kind::Mixed, false) => Kind::Read,
            (Kind::Mixed, true) => Kind::Update,
            (kind, _) => kind,
        };
        frame::put(out, REQUEST_VERSION, stream, EXECUTE, |out| {
            let id = &self.ids[usize::from(second)];
            out.extend_from_slice(&(id.len() as u16).to_be_bytes());
            out.extend_from_slice(id);
            out.extend_from_slice(&self.level.to_be_bytes());
            out.push(FLAGS);
            let letters = &self.letters;
            let random = &mut self.random;
            let mut text = |out: &mut Vec<u8>, length: usize| {
                let start = random.below((LETTERS_BYTES - length) as u64) as usize;
                put_value(out, &letters[start..start + length]);
            };
            match kind {
                Kind::Read | Kind::Mixed => put_values(out, 1, |out| put_value(out, &key(row))),
                Kind::Scan => put_values(out, 2, |out| {
                    put_value(out, &key(row));
                    let rows = 1 + random.below(SCANNED_ROWS_MAX) as u32;
                    put_value(out, &rows.to_be_bytes());
                }),
                Kind::Update => put_values(out, 2, |out| {
                    text(out, FIELD_BYTES);
                    put_value(out, &key(row));
                }),
                Kind::Insert => put_values(out, FIELDS as u16 + 1, |out| {
                    put_value(out, &key(row));
                    (0..FIELDS).for_each(|_| text(out, FIELD_BYTES));
                }),
                Kind::Small | Kind::Count => put_values(out, 1, |out| put_value(out, &row.to_be_bytes())),
                Kind::If => put_values(out, 2, |out| {
                    put_value(out, &random.next().to_be_bytes());
                    put_value(out, &row.to_be_bytes());
                }),
                Kind::SmallInsert => put_values(out, 2, |out| {
                    put_value(out, &row.to_be_bytes());
                    put_value(out, &row.wrapping_mul(3).to_be_bytes());
                }),
                Kind::WideInsert => put_values(out, 3, |out| {
                    put_value(out, &(row / WIDE_ROWS).to_be_bytes());
                    put_value(out, &(row % WIDE_ROWS).to_be_bytes());
                    text(out, WIDE_VALUE_BYTES);
                }),
            }
            out.extend_from_slice(&PAGE_ROWS.to_be_bytes());
        });
    }
}

fn put_values(out: &mut Vec<u8>, count: u16, put: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&count.to_be_bytes());
    put(out);
}

fn put_value(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

/// `user` and twenty digits, scattered as YCSB's keys are.
fn key(row: u64) -> [u8; 24] {
    let mut digits = *b"user00000000000000000000";
    let mut rest = hash(row);
    for digit in digits.iter_mut().rev() {
        if rest == 0 {
            break;
        }
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}
