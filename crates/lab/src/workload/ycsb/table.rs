//! YCSB's table in the words of its Cassandra binding, and its rows.

use crate::generator::fnv64;
use crate::workload::Request;
use crate::workload::value::Owner;

/// `usertable`.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// YCSB's `fieldcount`.
    pub(super) field_count: usize,
    /// YCSB's `fieldlength`.
    pub(super) field_bytes: usize,
    /// YCSB's `maxscanlength`.
    pub(super) scan_rows_max: u32,
}

impl Default for Table {
    fn default() -> Table {
        Table { field_count: 10, field_bytes: 100, scan_rows_max: 100 }
    }
}

/// Places of the statements; that of an update is behind them, by its field.
pub(super) const READ: usize = 0;
pub(super) const INSERT: usize = 1;
pub(super) const SCAN: usize = 2;
pub(super) const UPDATE: usize = 3;

impl Table {
    /// The statement that makes it.
    pub(super) fn create(&self, keyspace: &str) -> String {
        let fields: Vec<String> = self.fields().map(|field| format!("{field} varchar")).collect();
        let fields = fields.join(", ");
        let table = self.name();
        format!("CREATE TABLE IF NOT EXISTS {keyspace}.{table} (y_id varchar PRIMARY KEY, {fields})")
    }

    /// Statements to prepare.
    pub(super) fn statements(&self, keyspace: &str) -> Vec<String> {
        let fields = self.fields().collect::<Vec<_>>().join(", ");
        let markers = vec!["?"; self.field_count + 1].join(", ");
        let table = format!("{keyspace}.{}", self.name());
        let mut statements = vec![
            format!("SELECT y_id, {fields} FROM {table} WHERE y_id = ?"),
            format!("INSERT INTO {table} (y_id, {fields}) VALUES ({markers})"),
            format!("SELECT y_id, {fields} FROM {table} WHERE token(y_id) >= token(?) LIMIT ?"),
        ];
        statements
            .extend(self.fields().map(|field| format!("UPDATE {table} SET {field} = ? WHERE y_id = ?")));
        statements
    }

    /// YCSB's name; rows of another shape have a table of their own, since old ones would be found wrong.
    fn name(&self) -> String {
        let usual = Table::default();
        match (self.field_count, self.field_bytes) == (usual.field_count, usual.field_bytes) {
            true => "usertable".to_owned(),
            false => format!("usertable_{}_{}", self.field_count, self.field_bytes),
        }
    }

    fn fields(&self) -> impl Iterator<Item = String> {
        (0..self.field_count).map(|field| format!("field{field}"))
    }

    /// Asks for a row.
    pub(super) fn read(&self, row: u64, request: &mut Request<'_>) {
        let key = Key::of(row);
        request.execute(READ).on(key.bytes()).value(key.bytes());
    }

    /// Writes a whole row.
    pub(super) fn insert(&self, row: u64, salt: u64, request: &mut Request<'_>) {
        let key = Key::of(row);
        request.execute(INSERT).on(key.bytes()).value(key.bytes());
        for field in 0..self.field_count {
            let owner = Owner::new(key.bytes(), field);
            request.value_with(self.field_bytes, |value| owner.fill(salt.wrapping_add(field as u64), value));
        }
    }

    /// Writes one field of a row.
    pub(super) fn update(&self, row: u64, field: usize, salt: u64, request: &mut Request<'_>) {
        let key = Key::of(row);
        let owner = Owner::new(key.bytes(), field);
        request.execute(UPDATE + field).on(key.bytes());
        request.value_with(self.field_bytes, |value| owner.fill(salt, value)).value(key.bytes());
    }

    /// Asks for rows from the token of this one on.
    pub(super) fn scan(&self, row: u64, row_count: u32, request: &mut Request<'_>) {
        let key = Key::of(row);
        request.execute(SCAN).on(key.bytes()).value(key.bytes()).value(&row_count.to_be_bytes());
    }

    /// What is wrong about a row, if anything is: its cells in the order of the statements. It must be the row that was
    /// asked for, if one was.
    pub(super) fn fault<'a>(
        &self,
        asked: Option<u64>,
        mut cells: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> Option<String> {
        let Some(key) = cells.next().flatten() else { return Some("a row has no key".to_owned()) };
        if asked.is_some_and(|row| Key::of(row).bytes() != key) {
            return Some("a row was answered that was not asked for".to_owned());
        }
        let named = |what: &str, field: usize| {
            Some(format!("field{field} of {} {what}", String::from_utf8_lossy(key)))
        };
        for field in 0..self.field_count {
            match cells.next().flatten() {
                None => return named("is null", field),
                Some(value) if value.len() != self.field_bytes => {
                    return named("is too short or too long", field);
                }
                Some(value) if !Owner::new(key, field).has(value) => {
                    return named("is not what was written there", field);
                }
                Some(_) => {}
            }
        }
        None
    }
}

/// A row's key: `user` and the number that YCSB makes of the row's.
pub(super) struct Key {
    bytes: [u8; Key::BYTES_MAX],
    start: usize,
}

impl Key {
    const PREFIX: &'static [u8] = b"user";
    const BYTES_MAX: usize = 24;

    /// Of a row.
    pub(super) fn of(row: u64) -> Key {
        let (mut bytes, mut start) = ([b'0'; Key::BYTES_MAX], Key::BYTES_MAX);
        let mut rest = fnv64(row);
        loop {
            start -= 1;
            bytes[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        start -= Key::PREFIX.len();
        bytes[start..start + Key::PREFIX.len()].copy_from_slice(Key::PREFIX);
        Key { bytes, start }
    }

    /// As it is written.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::generator::build_key;

    #[test]
    fn keys_are_those_of_ycsb() {
        for row in (0..1000).chain([u64::MAX, 1 << 40]) {
            assert_eq!(Key::of(row).bytes(), build_key(row).as_bytes());
        }
    }

    #[test]
    fn a_row_that_was_written_is_right_and_a_mixed_one_is_not() {
        let (table, mut buffer) = (Table::default(), BytesMut::new());
        let mut rows = Vec::new();
        for row in [7, 8] {
            let mut request = Request::new(&mut buffer);
            table.insert(row, 42, &mut request);
            rows.push(request.apart());
        }
        let fault = |row: &[Vec<u8>]| table.fault(Some(7), row.iter().map(|cell| Some(cell.as_slice())));
        assert_eq!(fault(&rows[0]), None);
        let mut mixed = rows[0].clone();
        mixed[4] = rows[1][4].clone();
        assert!(fault(&mixed).is_some_and(|fault| fault.starts_with("field3 of user")));
        assert!(fault(&rows[0][..9]).is_some_and(|fault| fault.ends_with("is null")));
        assert!(fault(&rows[1]).is_some_and(|fault| fault.ends_with("not asked for")));
    }

    #[test]
    fn an_update_writes_a_value_of_its_field() {
        let (table, mut buffer) = (Table::default(), BytesMut::new());
        let mut request = Request::new(&mut buffer);
        table.update(7, 9, 1, &mut request);
        assert_eq!(request.statement, UPDATE + 9);
        let values = request.apart();
        assert!(Owner::new(&values[1], 9).has(&values[0]));
    }
}
