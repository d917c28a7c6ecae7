//! Operators: they change the schema through any node, now and then both the same name, and empty tables.

use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use protocol::{CellReader, Consistency, ErrorKind, Response};
use tokio::time::sleep;

use super::World;
use super::cast::CLIENT_COUNT;
use super::definitions::Word;
use super::rivals::KEYSPACE;
use super::table::Table;
use super::visitor::Visitor;
use crate::scenario::Violation;
use crate::score;
use crate::ways::Way;

/// Names over which operators may come to blows.
const CONTESTED_COUNT: usize = 30;
/// So many rows are written before a table is emptied.
const ROWS_TO_BE_EMPTIED: u32 = 12;
/// Tables that each operator has at a time.
const OWN_COUNT_MAX: usize = 6;
/// So many rows are written at once before a table is dropped.
const ROWS_IN_BATCH: u32 = 12;
/// So long a table is there for others.
const PASSES_WITHIN_MILLIS: u64 = 4_000;
/// The key of the row that is written when it is empty.
const ROW_BEHIND: i32 = 77;
/// So often the tables of clients are asked for.
const TRIES_MAX: usize = 300;

pub(crate) struct Operator {
    world: Rc<World>,
    number: u8,
    visitor: Visitor,
    /// Of what it makes, the last one.
    last: u32,
    /// Contested names that it has asked for.
    contested: BTreeSet<String>,
}

impl Operator {
    pub(crate) fn new(world: &Rc<World>, number: u8) -> Operator {
        let (visitor, contested) = (Visitor::new(world, number), BTreeSet::new());
        Operator { world: Rc::clone(world), number, visitor, last: 0, contested }
    }

    /// Works while there are faults. The first of them makes what clients need.
    pub(crate) async fn work(mut self) -> Result<(), Violation> {
        if self.number == CLIENT_COUNT {
            self.make_tables().await?;
        }
        while !self.world.is_settled.get() {
            sleep(Duration::from_millis(self.visitor.dice.between(10, 3_000))).await;
            if self.world.has_tables.get() {
                self.act().await?;
            }
        }
        Ok(())
    }

    async fn make_tables(&self) -> Result<(), Violation> {
        let one = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        let keyspaces = [("several", &self.world.plan.replication[..]), ("one", one)];
        let keyspaces = keyspaces.into_iter().map(|(name, replication)| {
            format!("CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {replication}")
        });
        let tables = Table::ALL.into_iter();
        let tables = tables.map(|table| format!("CREATE TABLE IF NOT EXISTS {table} {}", table.definition()));
        let of_rivals = score::TABLES
            .into_iter()
            .map(|(table, definition)| format!("CREATE TABLE IF NOT EXISTS {KEYSPACE}.{table} {definition}"));
        for statement in keyspaces.chain(tables).chain(of_rivals) {
            let mut tries = 0;
            while self.change(&statement).await?.1 != Told::Done {
                tries += 1;
                if tries == TRIES_MAX {
                    return Err(Violation::new(format!("never done: {statement}")));
                }
                sleep(Duration::from_millis(self.visitor.dice.between(1, 500))).await;
            }
        }
        self.world.has_tables.set(true);
        Ok(())
    }

    async fn act(&mut self) -> Result<(), Violation> {
        self.last += 1;
        let (number, last) = (self.number, self.last);
        let act = match self.world.plan.cast.has_all {
            true => self.visitor.dice.below(9),
            // Tables that are emptied, made for that, and dropped when there are enough.
            false => *self.visitor.dice.pick(&[4, 4, 5, 5, 5]),
        };
        match act {
            5 | 6 => self.empty_one().await,
            7 => self.make_for_a_moment().await,
            0 => {
                let name = format!("contested{}", self.visitor.dice.below(CONTESTED_COUNT));
                let is_durable = number == CLIENT_COUNT;
                let statement = format!(
                    "CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', \
                     'replication_factor': 3}} AND durable_writes = {is_durable}"
                );
                self.make(&statement, &format!("{name} {is_durable}"), &name).await
            }
            1 | 2 => {
                let name = format!("several.contested{}", self.visitor.dice.below(CONTESTED_COUNT));
                let statement = format!("CREATE TABLE {name} (k int PRIMARY KEY, of{number} int)");
                self.make(&statement, &format!("{name}.of{number}"), &name).await
            }
            3 => {
                let sure = self.world.definitions.borrow().sure("several.contested");
                let Some(table) = sure.first().and_then(|name| name.rsplit_once('.')).map(|(table, _)| table)
                else {
                    return Ok(());
                };
                let column = format!("more{number}x{last}");
                let statement = format!("ALTER TABLE {table} ADD {column} int");
                let name = format!("{table}.{column}");
                self.make(&statement, &name, &name).await
            }
            4 if self.own_count() < OWN_COUNT_MAX => {
                let name = format!("several.own{number}x{last}.v");
                let statement = format!("CREATE TABLE several.own{number}x{last} (k int PRIMARY KEY, v int)");
                self.make(&statement, &name, &name).await
            }
            _ => self.drop_one().await,
        }
    }

    /// Has something made under a name that may be contested.
    async fn make(&mut self, statement: &str, name: &str, contested: &str) -> Result<(), Violation> {
        // Once for each name: what was in doubt may come true later.
        if !self.contested.insert(contested.to_owned()) {
            return Ok(());
        }
        self.world.definitions.borrow_mut().make(name, contested);
        let (node, told) = self.change(statement).await?;
        {
            let definitions = &mut *self.world.definitions.borrow_mut();
            match told {
                Told::Done => definitions.made(name, Word::Yes)?,
                Told::Exists => {
                    self.world.ways.add(Way::LostName, 1);
                    definitions.lost(name)?;
                }
                Told::Refused => definitions.made(name, Word::No)?,
                Told::Doubtful => {}
            }
        }
        if told == Told::Done && self.visitor.dice.one_in(3) {
            self.sees(node, name).await?;
        }
        Ok(())
    }

    /// Who acknowledged it has it.
    async fn sees(&self, node: usize, name: &str) -> Result<(), Violation> {
        match definitions_on(&self.visitor, node).await {
            Ok(shown) if !shown.contains(name) => {
                Err(Violation::new(format!("node {node} has acknowledged {name} and does not show it")))
            }
            _ => Ok(()),
        }
    }

    fn own_count(&self) -> usize {
        self.world.definitions.borrow().sure(&format!("several.own{}x", self.number)).len()
    }

    async fn drop_one(&self) -> Result<(), Violation> {
        let own = self.world.definitions.borrow().sure(&format!("several.own{}x", self.number));
        match own.first() {
            Some(name) => self.drop(name).await,
            None => Ok(()),
        }
    }

    async fn drop(&self, name: &str) -> Result<(), Violation> {
        self.world.definitions.borrow_mut().drop(name, Word::Maybe);
        let statement = format!("DROP TABLE {}", name.trim_end_matches(".v"));
        match self.change(&statement).await?.1 {
            Told::Done => self.world.definitions.borrow_mut().drop(name, Word::Yes),
            Told::Refused => self.world.definitions.borrow_mut().drop(name, Word::No),
            Told::Exists => return Err(Violation::new(format!("{statement}: it is there"))),
            Told::Doubtful => {}
        }
        Ok(())
    }

    /// Makes a table, and drops it behind a logged batch, whatever came of that: it may be under way, and so may those
    /// of clients that write to it and to others meanwhile.
    async fn make_for_a_moment(&mut self) -> Result<(), Violation> {
        let keyspace = *self.visitor.dice.pick(&["one", "several"]);
        let table = format!("{keyspace}.brief{}x{}", self.number, self.last);
        let name = format!("{table}.v");
        self.make(&format!("CREATE TABLE {table} (k int PRIMARY KEY, v int)"), &name, &name).await?;
        let (Some(node), [_]) = (self.some_node(), &self.world.definitions.borrow().sure(&name)[..]) else {
            return Ok(());
        };
        self.world.passing.replace(Some(table.clone()));
        sleep(Duration::from_millis(self.visitor.dice.between(0, PASSES_WITHIN_MILLIS))).await;
        let writes = (0..ROWS_IN_BATCH).map(|k| format!("INSERT INTO {table} (k, v) VALUES ({k}, 1);"));
        let batch = format!("BEGIN BATCH {} APPLY BATCH", writes.collect::<Vec<_>>().join(" "));
        let answered = self.visitor.ask(node, &batch, Consistency::One).await;
        self.world.ways.add(Way::DroppedUnderWay, u64::from(!matches!(answered, Ok(Response::Void))));
        self.world.stage.note(format_args!("operator {}: batch to {table}: {answered:?}", self.number));
        let dropped = self.drop(&name).await;
        self.world.passing.borrow_mut().take_if(|passing| *passing == table);
        dropped
    }

    /// Writes to a table of its own and empties it: from then on it shows only what is written behind that, whatever
    /// was under way.
    async fn empty_one(&self) -> Result<(), Violation> {
        let own = self.world.definitions.borrow().sure(&format!("several.own{}x", self.number));
        let is_full = |name: &&String| !self.world.emptied.borrow().contains(*name);
        let Some(name) = own.iter().find(is_full) else { return Ok(()) };
        let table = name.trim_end_matches(".v");
        let condition = if self.visitor.dice.one_in(2) { " IF NOT EXISTS" } else { "" };
        for k in 0..ROWS_TO_BE_EMPTIED {
            let level = *self.visitor.dice.pick(&[Consistency::One, Consistency::Quorum]);
            let Some(node) = self.some_node() else { continue };
            let write = format!("INSERT INTO {table} (k, v) VALUES ({k}, 1){condition}");
            let written = self.visitor.ask(node, &write, level).await;
            // Of a plain write whatever comes; but what is still to be decided may be so behind a truncation.
            if !condition.is_empty() && !matches!(written, Ok(Response::Rows(_))) {
                self.world.emptied.borrow_mut().insert(name.clone());
                return Ok(());
            }
        }
        let (_, told) = self.change(&format!("TRUNCATE {table}")).await?;
        // In doubt, it may be emptied later: nothing is written to it any more.
        self.world.emptied.borrow_mut().insert(name.clone());
        if told != Told::Done {
            return Ok(());
        }
        self.world.ways.add(Way::Truncation, 1);
        let write = format!("INSERT INTO {table} (k, v) VALUES ({ROW_BEHIND}, 1)");
        let mut is_sure = false;
        if let Some(node) = self.some_node() {
            let written = self.visitor.ask(node, &write, Consistency::Quorum).await;
            is_sure = matches!(written, Ok(Response::Void));
            self.world.stage.note(format_args!("operator {}: {write} on {node}: {written:?}", self.number));
        }
        self.world.emptied_for_sure.borrow_mut().insert(name.clone(), is_sure);
        match self.some_node() {
            Some(node) => {
                shows_what_came_behind(&self.visitor, node, table, Consistency::Quorum, is_sure).await
            }
            None => Ok(()),
        }
    }

    fn some_node(&self) -> Option<usize> {
        let serving = self.world.serving();
        (!serving.is_empty()).then(|| *self.visitor.dice.pick(&serving))
    }

    /// Asks some node for a change of the schema.
    async fn change(&self, statement: &str) -> Result<(usize, Told), Violation> {
        let Some(node) = self.some_node() else { return Ok((0, Told::Refused)) };
        let answered = self.visitor.ask(node, statement, Consistency::One).await;
        let told = Told::of(&answered).map_err(|what| Violation::new(format!("{statement}: {what}")))?;
        let way = match told {
            Told::Done => Way::SchemaChange,
            Told::Doubtful => Way::DoubtfulSchemaChange,
            Told::Exists | Told::Refused => Way::RefusedSchemaChange,
        };
        self.world.ways.add(way, 1);
        self.world.stage.count_operation();
        let number = self.number;
        self.world
            .stage
            .note(format_args!("operator {number}: {statement} on {node}: {told:?}, {answered:?}"));
        Ok((node, told))
    }
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Done,
    /// Nothing was done: there is one of that name.
    Exists,
    /// Nothing was done.
    Refused,
    /// It may be done, now or later.
    Doubtful,
}

impl Told {
    fn of(answered: &io::Result<Response>) -> Result<Told, String> {
        match answered {
            Ok(Response::SchemaChange(_) | Response::Void) => Ok(Told::Done),
            Ok(Response::Error(error)) => match error.kind {
                ErrorKind::AlreadyExists { .. } => Ok(Told::Exists),
                // A node that has started a moment ago may be behind.
                ErrorKind::Invalid | ErrorKind::Config => Ok(Told::Refused),
                ErrorKind::Server | ErrorKind::Truncate => Ok(Told::Doubtful),
                _ => Err(format!("{error:?}")),
            },
            Ok(other) => Err(format!("{other:?}")),
            Err(_) => Ok(Told::Doubtful),
        }
    }
}

/// A table that was emptied shows the row that was written behind that, if that is sure, and no other, if the node
/// answers.
pub(crate) async fn shows_what_came_behind(
    visitor: &Visitor,
    node: usize,
    table: &str,
    level: Consistency,
    is_sure: bool,
) -> Result<(), Violation> {
    let Ok(rows) = texts_at(visitor, node, &format!("SELECT k FROM {table}"), level).await else {
        return Ok(());
    };
    let behind = String::from_utf8_lossy(&ROW_BEHIND.to_be_bytes()).into_owned();
    let is_behind = |row: &Vec<String>| row[0] == behind;
    match rows.iter().all(is_behind) && (rows.iter().any(is_behind) || !is_sure) {
        true => Ok(()),
        false => Err(Violation::new(format!(
            "{table} was emptied, {ROW_BEHIND} is sure: {is_sure}, and node {node} shows {rows:?} at {level:?}"
        ))),
    }
}

/// What a node shows of the schema: keyspaces and whether they are durable, and columns.
pub(crate) async fn definitions_on(visitor: &Visitor, node: usize) -> io::Result<BTreeSet<String>> {
    let mut shown = BTreeSet::new();
    for row in
        texts(visitor, node, "SELECT keyspace_name, durable_writes FROM system_schema.keyspaces").await?
    {
        shown.insert(format!("{} {}", row[0], row[1] == "\u{1}"));
    }
    let columns = "SELECT keyspace_name, table_name, column_name FROM system_schema.columns";
    for row in texts(visitor, node, columns).await? {
        shown.insert(row.join("."));
    }
    shown.retain(|name| !name.starts_with("system"));
    Ok(shown)
}

/// The rows that a statement shows, as texts.
pub(crate) async fn texts(visitor: &Visitor, node: usize, statement: &str) -> io::Result<Vec<Vec<String>>> {
    texts_at(visitor, node, statement, Consistency::One).await
}

async fn texts_at(
    visitor: &Visitor,
    node: usize,
    statement: &str,
    level: Consistency,
) -> io::Result<Vec<Vec<String>>> {
    let rows = cells_at(visitor, node, statement, level).await?;
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    Ok(rows.iter().map(|row| row.iter().map(text).collect()).collect())
}

/// The rows that a statement shows, cell by cell; nothing stands for a cell that is null.
pub(crate) async fn cells_at(
    visitor: &Visitor,
    node: usize,
    statement: &str,
    level: Consistency,
) -> io::Result<Vec<Vec<Vec<u8>>>> {
    let page = match visitor.ask(node, statement, level).await? {
        Response::Rows(page) => page,
        other => return Err(io::Error::other(format!("{statement}: {other:?}"))),
    };
    let mut cells = CellReader::new(page.cells.clone());
    let mut rows = Vec::new();
    for _ in 0..page.row_count {
        let mut row = Vec::new();
        for _ in 0..page.metadata.columns().len() {
            let cell = cells.next_cell().and_then(Result::ok).flatten();
            row.push(cell.map_or(Vec::new(), |bytes| bytes.to_vec()));
        }
        rows.push(row);
    }
    Ok(rows)
}
