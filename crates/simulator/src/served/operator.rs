//! What an operator does to a node by statements, while nobody else asks: its schema, and truncations.

use protocol::Response;

use super::tables::{SCHEMA, Table};
use super::tenant::Tenant;
use crate::dice::Dice;
use crate::scenario::Violation;
use crate::score::TABLES;
use crate::ways::Way;

impl Tenant {
    /// Makes keyspace and tables. False if the node died meanwhile: it may have some of them.
    pub(super) async fn make_schema(&self) -> Result<bool, Violation> {
        let of_rivals = TABLES.map(|(table, definition)| format!("CREATE TABLE s.{table} {definition}"));
        for statement in SCHEMA.map(str::to_owned).into_iter().chain(of_rivals) {
            let statement = statement.replacen("CREATE KEYSPACE ", "CREATE KEYSPACE IF NOT EXISTS ", 1);
            let statement = statement.replacen("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1);
            match self.ask(&statement).await? {
                Some(Response::SchemaChange(_) | Response::Void) => {}
                Some(other) => return Err(self.wrong(format!("{statement}: {other:?}"))),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn burn(&self) {
        if let Some(fuse) = &*self.fuse.borrow() {
            fuse.burn_for_operator();
        }
    }

    /// Something alone.
    pub(super) async fn between_rounds(&self, dice: &Dice) -> Result<(), Violation> {
        match dice.below(8) {
            0 | 5 => self.truncate(*dice.pick(&Table::ALL)).await,
            1 => self.add_column(dice).await,
            2 => {
                let class = *dice.pick(&["SizeTiered", "Leveled", "Unified"]);
                let table = *dice.pick(&Table::ALL);
                self.change(&format!(
                    "ALTER TABLE {table} WITH compaction = {{'class': '{class}CompactionStrategy'}}"
                ))
                .await
                .map(|_| ())
            }
            3 | 4 => self.make_again(*dice.pick(&Table::ALL)).await,
            _ => Ok(()),
        }
    }

    async fn truncate(&self, table: Table) -> Result<(), Violation> {
        *self.truncating.borrow_mut() = Some(table);
        self.world.ways.add(Way::Truncation, 1);
        self.burn();
        match self.ask(&format!("TRUNCATE {table}")).await? {
            Some(Response::Void) => {
                self.model.borrow_mut().empty(table);
                *self.truncating.borrow_mut() = None;
                Ok(())
            }
            Some(other) => Err(self.wrong(format!("TRUNCATE {table}: {other:?}"))),
            None => Ok(()),
        }
    }

    /// Drops a table and makes it again: it is another one of the same name.
    async fn make_again(&self, table: Table) -> Result<(), Violation> {
        *self.truncating.borrow_mut() = Some(table);
        *self.remaking.borrow_mut() = Some(table);
        self.world.ways.add(Way::TableMadeAgain, 1);
        if !self.change(&format!("DROP TABLE {table}")).await? {
            return Ok(());
        }
        self.model.borrow_mut().empty(table);
        *self.truncating.borrow_mut() = None;
        if table == Table::Narrow {
            *self.columns.borrow_mut() = Default::default();
        }
        if self.change(table.statement()).await? {
            *self.remaking.borrow_mut() = None;
        }
        Ok(())
    }

    async fn add_column(&self, dice: &Dice) -> Result<(), Violation> {
        let name = format!("x{}", self.columns.borrow().0.len());
        let kind = *dice.pick(&["text", "int", "map<int, text>"]);
        self.columns.borrow_mut().1 = Some(name.clone());
        if !self.change(&format!("ALTER TABLE s.narrow ADD {name} {kind}")).await? {
            return Ok(());
        }
        {
            let (known, added) = &mut *self.columns.borrow_mut();
            known.extend(added.take());
        }
        self.check_columns().await
    }

    /// A change of the schema by a statement. False if the node died meanwhile.
    async fn change(&self, statement: &str) -> Result<bool, Violation> {
        self.world.ways.add(Way::SchemaChange, 1);
        self.burn();
        match self.ask(statement).await? {
            // There may be nothing to change.
            Some(Response::SchemaChange(_) | Response::Void) => Ok(true),
            Some(other) => Err(self.wrong(format!("{statement}: {other:?}"))),
            None => Ok(false),
        }
    }

    /// Whatever connection asks: columns that were acknowledged are there.
    pub(super) async fn check_columns(&self) -> Result<(), Violation> {
        let columns = self.columns.borrow().0.clone();
        for name in columns {
            let statement = format!("SELECT {name} FROM s.narrow WHERE k = 1");
            match self.ask(&statement).await? {
                Some(Response::Rows(_)) | None => {}
                Some(other) => return Err(self.wrong(format!("{statement}: {other:?}"))),
            }
        }
        Ok(())
    }

    /// Which columns that may be there are. False if the node died meanwhile.
    pub(super) async fn decide_columns(&self) -> Result<bool, Violation> {
        let (sure, doubtful) = self.columns.borrow().clone();
        // A table that was dropped and made again has none of those that it was given.
        let is_made_again = *self.remaking.borrow() == Some(Table::Narrow);
        let (mut known, asked) = match is_made_again {
            true => (Vec::new(), [sure, doubtful.into_iter().collect()].concat()),
            false => (sure, doubtful.into_iter().collect()),
        };
        for name in asked {
            match self.ask(&format!("SELECT {name} FROM s.narrow WHERE k = 1")).await? {
                Some(Response::Rows(_)) => known.push(name),
                Some(_) => {}
                None => return Ok(false),
            }
        }
        *self.columns.borrow_mut() = (known, None);
        Ok(true)
    }
}
