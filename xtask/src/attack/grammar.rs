//! Statements made by the grammar, of values at the edge and beyond it.
//!
//! Right and wrong ones alike: each must be answered, by rows or by an error that is not the server's own.

use super::arena::Arena;
use super::scenarios::connect;
use crate::crash::Dice;
use crate::report::Failure;
use crate::wire::{Answer, Request};

/// The protocol's code for an error of the server's own.
const SERVER_ERROR: u32 = 0x0000;
/// Sent on one connection, one after the other.
const STATEMENTS: u64 = 200;
/// Parts of a statement are nested so deep at most; long lists are as long as `LENGTHS` say.
const DEPTH_MAX: u32 = 5;
const LENGTHS: &[u64] = &[0, 1, 1, 2, 2, 3, 10, 100, 3_000];

const COLUMNS: &[&str] = &[
    "p", "c", "d", "s", "i", "t", "b", "dc", "v", "f", "dt", "ts", "tm", "du", "u", "tu", "ip", "l", "st",
    "m", "tp", "vec", "nothing", "\"P\"", "*",
];
const TYPES: &[&str] = &[
    "int",
    "bigint",
    "text",
    "blob",
    "decimal",
    "varint",
    "double",
    "date",
    "timestamp",
    "time",
    "duration",
    "uuid",
    "timeuuid",
    "inet",
    "list<int>",
    "frozen<set<text>>",
    "map<text, frozen<list<int>>>",
    "tuple<int, text>",
    "vector<float, 3>",
    "counter",
    "nothing",
];
const VALUES: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "99999999999999999999999999999999999999",
    "0.0",
    "-0.0",
    "1e308",
    "1e-400",
    "1e999999999",
    "-1e-999999999",
    "1e2147483648",
    "NaN",
    "-NaN",
    "Infinity",
    "-Infinity",
    "''",
    "'a'",
    "'\u{10ffff}'",
    "'a''b'",
    "$$it's$$",
    "0x",
    "0xff",
    "0xzz",
    "true",
    "null",
    "now()",
    "uuid()",
    "'1970-01-01'",
    "'-5877641-06-23'",
    "'9999999-12-31'",
    "'292278994-08-17T07:12:55.807Z'",
    "'23:59:59.999999999'",
    "1y2mo3w4d5h6m7s8ms9us10ns",
    "-768614336404564650y",
    "P99999999Y",
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-1fff-bfff-ffffffffffff",
    "'::ffff:1.2.3.4'",
    "'256.0.0.1'",
    "[]",
    "{}",
    "[1, null]",
    "{1, 1}",
    "{'a': 1, 'a': 2}",
    "(1, 'a')",
    "[0.1, -3e38, NaN]",
    "{i: 1}",
    "?",
    ":name",
    "(int) 'a'",
    "(blob) 1",
    "'{\"p\": 1}'",
    "fromJson('[1, 2')",
];
const OPERATORS: &[&str] =
    &["=", "<", "<=", ">", ">=", "!=", "IN", "CONTAINS", "CONTAINS KEY", "LIKE", "IS NOT"];
const FUNCTIONS: &[&str] = &[
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "token",
    "toJson",
    "fromJson",
    "ttl",
    "writetime",
    "maxwritetime",
    "abs",
    "exp",
    "log",
    "log10",
    "round",
    "textAsBlob",
    "blobAsText",
    "blobAsInt",
    "toTimestamp",
    "toDate",
    "minTimeuuid",
    "cast",
    "map_keys",
    "collection_sum",
    "collection_avg",
    "similarity_cosine",
    "floor",
    "system.now",
    "mask_inner",
    "mask_hash",
    "current_timestamp",
    "nothing",
];
const NOISE: &[&str] =
    &["(", ")", ";", ",", "'", "\"", "--", "/*", "*/", "$$", "\0", "\u{feff}", "SELECT", "??", "\\"];

/// The tables that statements are about.
pub(super) fn tables(arena: &Arena) -> Result<(), Failure> {
    let columns = "p int, c int, d text, s text STATIC, i bigint, t text, b blob, dc decimal, v varint, f double, \
                   dt date, ts timestamp, tm time, du duration, u uuid, tu timeuuid, ip inet, l list<int>, \
                   st set<text>, m map<text, int>, tp tuple<int, text>, vec vector<float, 3>";
    let mut texts = vec![
        arena.keyspace("g"),
        format!(
            "CREATE TABLE g.t ({columns}, PRIMARY KEY (p, c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)"
        ),
        "CREATE TABLE g.k (p decimal PRIMARY KEY, v varint)".to_owned(),
    ];
    texts.extend((0..300).map(|c| {
        format!(
            "INSERT INTO g.t (p, c, d, i, t, dc, v, l) VALUES ({}, {c}, 'd', {c}, 't', 1e{c}, {c}, [1])",
            c % 3
        )
    }));
    crate::measure::statements(&arena.address, &texts)
}

/// Some statements, each of which must be answered.
pub(super) fn statements(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut connection = connect(arena)?;
    for count in 0..STATEMENTS {
        let text = Writer { dice: &mut *dice, text: String::new() }.statement();
        let page_size = [None, Some(1), Some(5000), Some(i32::MAX), Some(-1)][dice.between(0, 5) as usize];
        let request = Request { page_size, ..Request::default() };
        let answer = match dice.between(0, 4) {
            0 => connection.prepare(&text, None),
            _ => connection.query(&text, &request),
        };
        match answer {
            Ok(response) => {
                if let Answer::Error { code: SERVER_ERROR, message, .. } = response.answer {
                    arena.wrong(format!("an error of the server's own, {message}: {}", shown(&text)));
                }
            }
            Err(error) => {
                arena.wrong(format!("no answer, {error}: {}", shown(&text)));
                return Ok(count);
            }
        }
    }
    Ok(STATEMENTS)
}

fn shown(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Writes one statement.
struct Writer<'a> {
    dice: &'a mut Dice,
    text: String,
}

impl Writer<'_> {
    fn statement(mut self) -> String {
        match self.dice.between(0, 20) {
            0..8 => self.select(),
            8..11 => self.insert(),
            11..13 => self.update(),
            13..15 => self.delete(),
            15 => self.batch(),
            16 => self.create(),
            17 => self.other(),
            18 => self.nested(),
            _ => self.noise(),
        }
        if self.one_in(20) {
            self.spoil();
        }
        self.text
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.dice.between(0, count) == 0
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.dice.between(0, words.len() as u64) as usize]
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn put_one_of(&mut self, words: &[&'static str]) {
        let word = self.pick(words);
        self.put(word);
    }

    fn length(&mut self) -> u64 {
        LENGTHS[self.dice.between(0, LENGTHS.len() as u64) as usize]
    }

    fn list(&mut self, between: &str, mut part: impl FnMut(&mut Self)) {
        let length = self.length();
        for index in 0..length {
            if index > 0 {
                self.put(between);
            }
            part(self);
            // Long lists of long lists would be frames that are refused for their length.
            if self.text.len() > 100_000 {
                break;
            }
        }
    }

    fn select(&mut self) {
        self.put("SELECT ");
        self.put_one_of(&["", "", "JSON ", "DISTINCT "]);
        match self.one_in(4) {
            true => self.put("*"),
            false => self.list(", ", |writer| writer.term(DEPTH_MAX)),
        }
        self.put(" FROM ");
        self.put_one_of(&["g.t", "g.t", "g.t", "g.k", "g.nothing", "system.local", "system_views.settings"]);
        self.conditions();
        if self.one_in(4) {
            self.put(" GROUP BY ");
            self.list(", ", |writer| writer.put_one_of(COLUMNS));
        }
        if self.one_in(4) {
            self.put(" ORDER BY ");
            self.list(", ", |writer| {
                writer.put_one_of(COLUMNS);
                writer.put_one_of(&["", " ASC", " DESC", " ANN OF [1, 2, 3]"]);
            });
        }
        for limit in [" PER PARTITION LIMIT ", " LIMIT "] {
            if self.one_in(3) {
                self.put(limit);
                self.put_one_of(VALUES);
            }
        }
        self.put_one_of(&["", " ALLOW FILTERING"]);
    }

    fn conditions(&mut self) {
        if self.one_in(4) {
            return;
        }
        self.put(" WHERE ");
        self.list(" AND ", |writer| {
            match writer.one_in(6) {
                true => writer.put("(c, d)"),
                false => writer.put_one_of(COLUMNS),
            }
            let operator = writer.pick(OPERATORS);
            writer.put(" ");
            writer.put(operator);
            writer.put(" ");
            match operator == "IN" {
                true => writer.bracketed("(", ")", |writer| writer.list(", ", |writer| writer.term(2))),
                false => writer.term(2),
            }
        });
    }

    fn bracketed(&mut self, left: &str, right: &str, inside: impl FnOnce(&mut Self)) {
        self.put(left);
        inside(self);
        self.put(right);
    }

    fn term(&mut self, depth: u32) {
        match self.dice.between(0, if depth == 0 { 2 } else { 8 }) {
            0 => self.put_one_of(COLUMNS),
            1 | 2 => self.put_one_of(VALUES),
            3 => {
                self.term(depth - 1);
                self.put_one_of(&[" + ", " - ", " * ", " / ", " % "]);
                self.term(depth - 1);
            }
            4 => {
                self.put_one_of(FUNCTIONS);
                self.bracketed("(", ")", |writer| writer.list(", ", |writer| writer.term(depth - 1)));
            }
            5 => {
                self.put("CAST(");
                self.term(depth - 1);
                self.put(" AS ");
                self.put_one_of(TYPES);
                self.put(")");
            }
            6 => {
                let (left, right) = [("[", "]"), ("{", "}"), ("(", ")")][self.dice.between(0, 3) as usize];
                self.bracketed(left, right, |writer| writer.list(", ", |writer| writer.term(depth - 1)));
            }
            _ => self.bracketed("{", "}", |writer| {
                writer.list(", ", |writer| {
                    writer.term(depth - 1);
                    writer.put(": ");
                    writer.term(depth - 1);
                });
            }),
        }
    }

    fn insert(&mut self) {
        self.put("INSERT INTO g.t ");
        if self.one_in(4) {
            self.put("JSON '{");
            self.list(", ", |writer| {
                let (column, value) = (writer.pick(COLUMNS), writer.pick(VALUES));
                writer.put(&format!("\"{}\": {}", column.replace('"', "\\\""), value.replace('\'', "\"")));
            });
            self.put("}'");
            self.put_one_of(&["", " DEFAULT UNSET", " DEFAULT NULL"]);
        } else {
            let columns: Vec<_> = (0..self.dice.between(0, 12)).map(|_| self.pick(COLUMNS)).collect();
            self.put(&format!("(p, c, d, {}) VALUES (1, 2, 'd'", columns.join(", ")));
            for _ in columns {
                self.put(", ");
                self.term(2);
            }
            self.put(")");
        }
        self.using();
    }

    fn using(&mut self) {
        self.put_one_of(&["", "", " USING TIMESTAMP ", " USING TTL ", " IF NOT EXISTS"]);
        if self.text.ends_with(' ') {
            self.put_one_of(VALUES);
        }
    }

    fn update(&mut self) {
        self.put("UPDATE g.t");
        self.using();
        self.put(" SET ");
        self.list(", ", |writer| {
            writer.put_one_of(COLUMNS);
            writer.put_one_of(&["", "[0]", "['a']", "[2147483647]", ".field"]);
            writer.put_one_of(&[" = ", " = ", " += ", " -= "]);
            writer.term(3);
        });
        self.conditions();
    }

    fn delete(&mut self) {
        self.put("DELETE ");
        self.list(", ", |writer| writer.put_one_of(COLUMNS));
        self.put(" FROM g.t");
        self.using();
        self.conditions();
    }

    fn batch(&mut self) {
        self.put_one_of(&[
            "BEGIN BATCH ",
            "BEGIN UNLOGGED BATCH ",
            "BEGIN COUNTER BATCH USING TIMESTAMP -1 ",
        ]);
        self.list("; ", |writer| match writer.dice.between(0, 3) {
            0 => writer.insert(),
            1 => writer.update(),
            _ => writer.delete(),
        });
        self.put(" APPLY BATCH");
    }

    /// Refused ones, mostly, or there already: names are few.
    fn create(&mut self) {
        self.put_one_of(&[
            "CREATE TABLE IF NOT EXISTS g.x",
            "CREATE TABLE g.t",
            "CREATE TYPE IF NOT EXISTS g.y",
        ]);
        self.bracketed(" (", ")", |writer| {
            writer.list(", ", |writer| {
                writer.put_one_of(COLUMNS);
                writer.put(" ");
                writer.put_one_of(TYPES);
                writer.put_one_of(&["", "", " PRIMARY KEY", " STATIC"]);
            });
        });
        self.put_one_of(&[
            "",
            " WITH comment = 'c'",
            " WITH compression = {'chunk_length_in_kb': 1e9}",
            " WITH ID = 1",
        ]);
    }

    fn other(&mut self) {
        self.put_one_of(&[
            "DROP TABLE IF EXISTS g.x",
            "DROP INDEX IF EXISTS g.nothing",
            "DROP KEYSPACE nothing",
            "ALTER TABLE g.t ADD (i int)",
            "ALTER TABLE g.t WITH gc_grace_seconds = -1",
            "ALTER TABLE g.t DROP p",
            "CREATE INDEX ON g.t (t)",
            "CREATE KEYSPACE g WITH replication = {'class': 'x'}",
            "USE \"\"",
            "DESCRIBE FULL SCHEMA",
            "DESCRIBE TABLE g.t",
            "LIST ROLES",
            "GRANT ALL ON ALL KEYSPACES TO nobody",
            "TRUNCATE g.k",
            "CREATE FUNCTION g.f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
        ]);
    }

    /// Deeper, or longer, than anybody writes.
    fn nested(&mut self) {
        let count = [100, 1_000, 20_000][self.dice.between(0, 3) as usize];
        let (left, middle, right) = [
            ("SELECT ", "(", "p"),
            ("SELECT ", "- ", "p"),
            ("SELECT ", "1 + ", "p"),
            ("SELECT * FROM g.t WHERE p IN (", "1,", "1)"),
            ("SELECT * FROM g.t WHERE ", "p = 1 AND ", "c = 1"),
            ("CREATE TYPE g.y (a ", "frozen<list<", "int"),
            ("SELECT ", "toJson(", "p"),
            ("INSERT INTO g.t (p, c, d, l) VALUES (1, 1, '', [", "1,", "1])"),
            ("BEGIN BATCH ", "INSERT INTO g.k (p, v) VALUES (1, 1); ", "APPLY BATCH"),
            ("SELECT * FROM g.t -- ", "/*", "*/"),
        ][self.dice.between(0, 10) as usize];
        self.put(left);
        self.put(&middle.repeat(count));
        self.put(right);
        self.put_one_of(&["", " FROM g.t"]);
    }

    fn noise(&mut self) {
        for _ in 0..self.dice.between(0, 50) {
            match self.one_in(2) {
                true => self.put_one_of(NOISE),
                false => self.put_one_of(VALUES),
            }
            self.put_one_of(&["", " "]);
        }
    }

    /// Takes a piece out of the text, or puts something in.
    fn spoil(&mut self) {
        let at = self.text.floor_char_boundary(self.dice.between(0, self.text.len() as u64 + 1) as usize);
        let word = self.pick(NOISE);
        match self.one_in(2) {
            true => self.text.truncate(at),
            false => self.text.insert_str(at, word),
        }
    }
}
