//! A client: it owns keys, writes numbers to them and reads them, one request after the other.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use coordinator::Consistency;
use coordinator::replicas::{ReplicaError, Replicas};
use read::{ReadCommand, ReadTarget};
use rows::{
    CellRef, Clustering, ColumnData, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey,
    RowBuilder,
};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::World;
use super::model::{LEVELS, Register};
use super::node::table;
use crate::dice::Dice;
use crate::scenario::Violation;

pub(crate) const CLIENT_COUNT: usize = 4;
const KEYS_PER_CLIENT: usize = 4;
/// After the faults a request may be refused for a moment; so often in a row it is not.
const TRIES_MAX: usize = 20;
const NOW: u32 = 1_704_067_300;

/// What a client asks of a node, and where the answer goes. Dropped with the node.
pub(crate) struct Order {
    what: What,
    level: Consistency,
    patience: Duration,
    answer: oneshot::Sender<Result<i64, ReplicaError>>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Write { key: i32, number: i64 },
    Read { key: i32 },
}

impl Order {
    pub(crate) async fn carry_out(self, replicas: &Replicas) {
        let Order { what, level, patience, answer } = self;
        let outcome = match what {
            What::Write { key, number } => {
                replicas.write(vec![write_of(key, number)], level, patience).await.map(|()| number)
            }
            What::Read { key } => {
                let command = ReadCommand::new(table(), ReadTarget::Keys(vec![key_of(key)]), NOW);
                let page = replicas.read(&command, level, patience).await;
                page.map(|page| page.partitions.first().map_or(0, |partition| number_of(&partition.rows[0])))
            }
        };
        // The client may have given up.
        _ = answer.send(outcome);
    }
}

fn key_of(key: i32) -> PartitionKey {
    PartitionKey::new(Bytes::copy_from_slice(&key.to_be_bytes()))
}

fn write_of(key: i32, number: i64) -> Mutation {
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(number), DeletionTime::LIVE);
    row.cell(table().column("v").expect("v").id, CellRef::live(number, &number.to_be_bytes()));
    let mut mutation = MutationBuilder::new(table().id(), key_of(key));
    mutation.row(row.finish());
    mutation.finish()
}

fn number_of(row: &rows::Row) -> i64 {
    match row.column(table().column("v").expect("v").id) {
        Some(ColumnData::Simple(cell)) => i64::from_be_bytes(cell.value.try_into().expect("a bigint")),
        other => panic!("{other:?}"),
    }
}

/// A client of a run.
pub(crate) struct Client {
    world: Rc<World>,
    number: usize,
    dice: Dice,
    registers: [Register; KEYS_PER_CLIENT],
    next: i64,
}

impl Client {
    pub(crate) fn new(world: Rc<World>, number: usize) -> Client {
        let dice = Dice::new(world.seed, 1, 7_000 + number as u64);
        Client { world, number, dice, registers: Default::default(), next: 0 }
    }

    /// Works while there are faults, and then reads all.
    pub(crate) async fn work(mut self) -> Result<(), Violation> {
        while !*self.world.is_settled.borrow() {
            sleep(Duration::from_micros(self.dice.between(1, 200_000))).await;
            let key = self.dice.below(KEYS_PER_CLIENT);
            if self.dice.one_in(2) { self.write(key).await } else { self.read(key).await.map(drop)? }
        }
        for key in 0..KEYS_PER_CLIENT {
            self.read_at_last(key).await?;
        }
        Ok(())
    }

    async fn write(&mut self, key: usize) {
        self.next += 1;
        let (number, (level, replica_count)) = (self.next, *self.dice.pick(&LEVELS));
        self.registers[key].sent = number;
        // Otherwise it may be anywhere, or nowhere.
        if let Some(Ok(_)) = self.ask(What::Write { key: self.key(key), number }, level).await {
            self.registers[key].acknowledged(number, replica_count);
        }
    }

    async fn read(&mut self, key: usize) -> Result<bool, Violation> {
        let (level, replica_count) = *self.dice.pick(&LEVELS);
        self.read_at(key, level, replica_count).await
    }

    async fn read_at(
        &mut self,
        key: usize,
        level: Consistency,
        replica_count: usize,
    ) -> Result<bool, Violation> {
        match self.ask(What::Read { key: self.key(key) }, level).await {
            Some(Ok(number)) => self.registers[key].shown(number, replica_count).map(|()| true),
            Some(Err(_)) | None => Ok(false),
        }
    }

    /// All replicas have it, and are equal then: also one alone shows it.
    async fn read_at_last(&mut self, key: usize) -> Result<(), Violation> {
        for (level, replica_count) in [(Consistency::All, 3), (Consistency::One, 1)] {
            let mut tries = 0;
            while !self.read_at(key, level, replica_count).await? {
                tries += 1;
                if tries == TRIES_MAX {
                    return Err(Violation::new(format!("{} can not be read at {level:?}", self.key(key))));
                }
                sleep(Duration::from_millis(200)).await;
            }
        }
        Ok(())
    }

    fn key(&self, key: usize) -> i32 {
        (self.number * KEYS_PER_CLIENT + key) as i32
    }

    /// Asks a node that lives; `None` when there is none, or it died.
    async fn ask(&self, what: What, level: Consistency) -> Option<Result<i64, ReplicaError>> {
        let life = {
            let lives = self.world.lives.borrow();
            let alive: Vec<usize> = (0..lives.len()).filter(|node| lives[*node].is_some()).collect();
            let node = *alive.get(self.dice.below(alive.len().max(1)))?;
            lives[node].clone()?
        };
        let (answer, answered) = oneshot::channel();
        let patience = Duration::from_millis(self.dice.between(100, 3_000));
        life.orders.send(Order { what, level, patience, answer }).ok()?;
        drop(life);
        let outcome = answered.await.ok();
        let told = match &outcome {
            Some(Ok(number)) => format!("{number}"),
            Some(Err(error)) => format!("{error}"),
            None => "died".to_owned(),
        };
        self.world.note(format_args!("client {}: {what:?} at {}: {told}", self.number, level.name()));
        outcome
    }
}
