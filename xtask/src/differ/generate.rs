//! Random statements over one table, repeated by their seed.
//!
//! Keys and values come from small ranges, and timestamps from a smaller one, so that writes meet:
//! the same cell at the same time, a deletion beside what it hides, ranges over ranges. Every third
//! seed has partitions of many rows instead, with texts long enough for row indexes and several chunks.

/// A small generator (splitmix64), so that a seed means the same everywhere.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True once in `count`.
    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap_or_default();
        choices.get(index).copied().unwrap_or_default()
    }
}

/// A query, with the size of its pages.
pub(super) struct Query {
    pub(super) text: String,
    pub(super) page_size: Option<i32>,
}

/// Makes statements; the table's shape is decided by the seed too.
pub(super) struct Generator {
    random: Random,
    /// Few partitions, many rows.
    wide: bool,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        Generator { random: Random::new(seed), wide: seed.is_multiple_of(3) }
    }

    pub(super) fn create(&mut self) -> String {
        let (one, two) = (self.random.pick(&["ASC", "DESC"]), self.random.pick(&["ASC", "DESC"]));
        let compression = self.random.pick(&[
            "{'class': 'LZ4Compressor'}",
            "{'class': 'ZstdCompressor', 'chunk_length_in_kb': 4}",
            "{'enabled': 'false'}",
        ]);
        format!(
            "CREATE TABLE t (k int, c int, d text, s int STATIC, ss set<int> STATIC, v int, w text, l list<int>, \
             m map<int, text>, st set<text>, fl frozen<list<int>>, PRIMARY KEY (k, c, d)) \
             WITH CLUSTERING ORDER BY (c {one}, d {two}) AND compression = {compression}"
        )
    }

    /// A write.
    pub(super) fn write(&mut self) -> String {
        if self.random.one_in(if self.wide { 2 } else { 10 }) {
            let timestamp = self.timestamp();
            let count = 1 + self.random.below(if self.wide { 60 } else { 5 });
            let writes: Vec<String> = (0..count).map(|_| self.change("")).collect();
            let kind = self.random.pick(&["BATCH", "UNLOGGED BATCH"]);
            return format!("BEGIN {kind} USING TIMESTAMP {timestamp} {}; APPLY BATCH", writes.join("; "));
        }
        let timestamp = self.timestamp();
        self.change(&format!("TIMESTAMP {timestamp}"))
    }

    /// A read.
    pub(super) fn read(&mut self) -> Query {
        let page_size_max = if self.wide { 200 } else { 7 };
        let page_size =
            self.random.one_in(3).then(|| i32::try_from(1 + self.random.below(page_size_max)).unwrap_or(1));
        let text = match self.random.below(12) {
            0 => self.scan(),
            1 => "SELECT DISTINCT k, s, ss FROM t".to_owned(),
            2 => format!("SELECT count(*) FROM t WHERE k = {}", self.key()),
            3 => format!(
                "SELECT c, d, writetime(v), writetime(w), writetime(fl) FROM t WHERE k = {}",
                self.key()
            ),
            4 => self.filtered(),
            _ => self.slice(),
        };
        Query { text, page_size }
    }

    fn key(&mut self) -> u64 {
        self.random.below(if self.wide { 2 } else { 5 })
    }

    fn first(&mut self) -> u64 {
        self.random.below(if self.wide { 3000 } else { 7 })
    }

    fn second(&mut self) -> String {
        format!("'{}'", self.random.pick(&["", "a", "ab", "b", "c"]))
    }

    fn timestamp(&mut self) -> u64 {
        1_000_000 + self.random.below(if self.wide { 400 } else { 25 })
    }

    fn text(&mut self) -> String {
        if self.wide && self.random.one_in(2) {
            let count = usize::try_from(self.random.below(40)).unwrap_or_default();
            return format!("'{}{}'", "0123456789abcdef".repeat(count), self.random.below(1000));
        }
        format!("'{}'", self.random.pick(&["", "x", "yy", "zzz", "long long long long long long long text"]))
    }

    fn number(&mut self) -> String {
        match self.random.below(8) {
            0 => "null".to_owned(),
            number => (number.cast_signed() - 3).to_string(),
        }
    }

    fn numbers(&mut self) -> String {
        let count = self.random.below(4);
        (0..count).map(|_| self.random.below(5).to_string()).collect::<Vec<_>>().join(", ")
    }

    fn row(&mut self) -> String {
        format!("k = {} AND c = {} AND d = {}", self.key(), self.first(), self.second())
    }

    fn using(&mut self, timestamp: &str, may_expire: bool) -> String {
        let expires = may_expire && self.random.one_in(8);
        match (timestamp.is_empty(), expires) {
            (true, false) => String::new(),
            (true, true) => " USING TTL 100000".to_owned(),
            (false, false) => format!(" USING {timestamp}"),
            (false, true) => format!(" USING {timestamp} AND TTL 100000"),
        }
    }

    fn change(&mut self, timestamp: &str) -> String {
        match self.random.below(10) {
            0..=3 => self.insert(timestamp),
            4..=6 => self.update(timestamp),
            // In a wide partition a range hides much: rarer.
            7 | 8 if self.wide => self.insert(timestamp),
            _ => self.delete(timestamp),
        }
    }

    fn insert(&mut self, timestamp: &str) -> String {
        let mut columns = "k, c, d".to_owned();
        let mut values = format!("{}, {}, {}", self.key(), self.first(), self.second());
        for column in ["v", "w", "fl", "m", "st", "l", "s"] {
            if self.random.one_in(2) {
                columns.push_str(&format!(", {column}"));
                values.push_str(&format!(", {}", self.value(column)));
            }
        }
        let using = self.using(timestamp, true);
        format!("INSERT INTO t ({columns}) VALUES ({values}){using}")
    }

    fn value(&mut self, column: &str) -> String {
        if self.random.one_in(8) {
            return "null".to_owned();
        }
        match column {
            "w" => self.text(),
            "fl" | "l" => format!("[{}]", self.numbers()),
            "ss" => format!("{{{}}}", self.numbers()),
            "st" => format!("{{{}, {}}}", self.text(), self.text()),
            "m" => format!(
                "{{{}: {}, {}: {}}}",
                self.random.below(3),
                self.text(),
                3 + self.random.below(3),
                self.text()
            ),
            _ => self.number(),
        }
    }

    fn update(&mut self, timestamp: &str) -> String {
        let using = self.using(timestamp, true);
        if self.random.one_in(6) {
            let set = match self.random.below(3) {
                0 => format!("s = {}", self.number()),
                1 => format!("ss = ss + {{{}}}", self.random.below(4)),
                _ => format!("ss = ss - {{{}}}", self.random.below(4)),
            };
            return format!("UPDATE t{using} SET {set} WHERE k = {}", self.key());
        }
        let set = match self.random.below(14) {
            0 => format!("v = {}", self.number()),
            1 => format!("w = {}", self.value("w")),
            2 => format!("m[{}] = {}", self.random.below(5), self.value("w")),
            3 => format!("m = m + {{{}: {}}}", self.random.below(5), self.text()),
            4 => format!("m = m - {{{}}}", self.random.below(5)),
            5 => format!("st = st + {{{}}}", self.text()),
            6 => format!("st = st - {{{}}}", self.text()),
            7 => format!("l = l + [{}]", self.numbers()),
            8 => format!("l = [{}] + l", self.numbers()),
            9 => format!("l[{}] = {}", self.random.below(4), self.number()),
            10 => format!("l = l - [{}]", self.numbers()),
            11 => format!("v = {}, w = {}, fl = {}", self.number(), self.value("w"), self.value("fl")),
            _ => format!("m = {}, st = {}", self.value("m"), self.value("st")),
        };
        format!("UPDATE t{using} SET {set} WHERE {}", self.row())
    }

    fn delete(&mut self, timestamp: &str) -> String {
        let using = self.using(timestamp, false);
        let (what, place) = match self.random.below(10) {
            0 if !self.wide => (String::new(), format!("k = {}", self.key())),
            0 | 1 => ("s".to_owned(), format!("k = {}", self.key())),
            2 | 3 => (String::new(), self.row()),
            4 => (self.random.pick(&["v", "w", "m", "st", "fl", "l", "v, w"]).to_owned(), self.row()),
            5 if self.random.one_in(3) => (format!("l[{}]", self.random.below(4)), self.row()),
            5 => (format!("m[{}]", self.random.below(5)), self.row()),
            6 => (String::new(), format!("k = {} AND c = {}", self.key(), self.first())),
            _ => (String::new(), format!("k = {}{}", self.key(), self.range())),
        };
        format!("DELETE {what} FROM t{using} WHERE {place}")
    }

    /// A restriction of the clustering columns that is a range.
    fn range(&mut self) -> String {
        let (low, high) = (self.random.pick(&[">", ">="]), self.random.pick(&["<", "<="]));
        match self.random.below(6) {
            0 => format!(" AND c {low} {}", self.first()),
            1 => format!(" AND c {high} {}", self.first()),
            2 => format!(" AND c {low} {} AND c {high} {}", self.first(), self.first()),
            3 => format!(" AND c = {} AND d {low} {}", self.first(), self.second()),
            4 => format!(
                " AND c = {} AND d {low} {} AND d {high} {}",
                self.first(),
                self.second(),
                self.second()
            ),
            _ => format!(" AND (c, d) {low} ({}, {})", self.first(), self.second()),
        }
    }

    fn slice(&mut self) -> String {
        let place = match self.random.below(6) {
            0 => format!("k = {}", self.key()),
            1 => self.row(),
            2 => format!("k = {} AND c = {}", self.key(), self.first()),
            3 => format!("k = {} AND c IN ({}, {})", self.key(), self.first(), self.first()),
            _ => format!("k = {}{}", self.key(), self.range()),
        };
        // `d` alone can not be ordered by; the order of both follows from that of `c`.
        let order = self.random.pick(&["", "", " ORDER BY c ASC", " ORDER BY c DESC"]);
        let columns = self.random.pick(&["*", "*", "c, d, v", "d, s", "k, c, w, m", "st, fl, l"]);
        let limit = self.limit();
        format!("SELECT {columns} FROM t WHERE {place}{order}{limit}")
    }

    fn limit(&mut self) -> String {
        match self.random.below(8) {
            0 => format!(" LIMIT {}", 1 + self.random.below(6)),
            1 => format!(" PER PARTITION LIMIT {}", 1 + self.random.below(4)),
            2 => format!(
                " PER PARTITION LIMIT {} LIMIT {}",
                1 + self.random.below(4),
                1 + self.random.below(6)
            ),
            _ => String::new(),
        }
    }

    fn scan(&mut self) -> String {
        let place = match self.random.below(3) {
            0 => String::new(),
            1 => format!(" WHERE token(k) > token({})", self.key()),
            _ => format!(" WHERE k IN ({}, {}, {})", self.key(), self.key(), self.key()),
        };
        let limit = self.limit();
        format!("SELECT * FROM t{place}{limit}")
    }

    fn filtered(&mut self) -> String {
        let place = match self.random.below(5) {
            0 => format!("v = {}", self.random.below(4)),
            1 => format!("v > {} AND w = {}", self.random.below(3), self.text()),
            2 => format!("c = {}", self.first()),
            3 => format!("s = {}", self.random.below(4)),
            _ => format!("k = {} AND d = {}", self.key(), self.second()),
        };
        let limit = self.limit();
        format!("SELECT * FROM t WHERE {place}{limit} ALLOW FILTERING")
    }
}
