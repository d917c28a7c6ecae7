//! Rows that are written and read until it is told to stop, and all of them once more at the end.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use futures::StreamExt;
use scylla::client::session::Session;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use crate::{KEYSPACE, Outcome, equal};

const READERS: usize = 16;

pub(crate) struct Work {
    session: Session,
    insert: PreparedStatement,
    select: PreparedStatement,
    next: AtomicI32,
    is_over: AtomicBool,
    pub(crate) acknowledged: Mutex<Vec<i32>>,
    pub(crate) failures: Mutex<BTreeSet<String>>,
}

impl Work {
    pub(crate) async fn new(session: Session) -> Result<Work, Box<dyn std::error::Error>> {
        let insert = format!("INSERT INTO {KEYSPACE}.rows (id, v) VALUES (?, ?)");
        let mut insert = session.prepare(insert).await?;
        insert.set_is_idempotent(true);
        let mut select = session.prepare(format!("SELECT v FROM {KEYSPACE}.rows WHERE id = ?")).await?;
        select.set_is_idempotent(true);
        Ok(Work {
            session,
            insert,
            select,
            next: AtomicI32::new(0),
            is_over: AtomicBool::new(false),
            acknowledged: Mutex::default(),
            failures: Mutex::default(),
        })
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn acknowledged_count(&self) -> usize {
        self.acknowledged.lock().expect("no writer panics").len()
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn write(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            if let Err(what) = self.write_one(id).await {
                self.failures.lock().expect("no writer panics").insert(what.to_string());
            }
        }
    }

    async fn write_one(&self, id: i32) -> Outcome {
        self.session.execute_unpaged(&self.insert, (id, value(id))).await?;
        self.acknowledged.lock().expect("no writer panics").push(id);
        equal(&self.read(&self.select, id).await?, &Some(value(id)), &format!("row {id}"))
    }

    async fn read(
        &self,
        select: &PreparedStatement,
        id: i32,
    ) -> Result<Option<String>, Box<dyn std::error::Error>> {
        let rows = self.session.execute_unpaged(select, (id,)).await?.into_rows_result()?;
        Ok(rows.maybe_first_row::<(String,)>()?.map(|(value,)| value))
    }

    pub(crate) async fn has_all_rows(&self) -> Outcome {
        let acknowledged = self.acknowledged.lock().expect("no writer panics").clone();
        for level in [Consistency::Quorum, Consistency::All] {
            let mut select = self.select.clone();
            select.set_consistency(level);
            let reads = acknowledged.iter().map(|id| async { (*id, self.read(&select, *id).await) });
            let mut reads = futures::stream::iter(reads).buffer_unordered(READERS);
            while let Some((id, found)) = reads.next().await {
                equal(&found?, &Some(value(id)), &format!("row {id} at {level}"))?;
            }
        }
        let count = self.session.query_unpaged(format!("SELECT count(*) FROM {KEYSPACE}.rows"), ()).await?;
        let (count,) = count.into_rows_result()?.single_row::<(i64,)>()?;
        equal(&count, &i64::try_from(acknowledged.len())?, "rows counted")?;
        println!("ok: {count} rows are there");
        Ok(())
    }
}

fn value(id: i32) -> String {
    format!("v{id}")
}
