//! Clients that add to counters, and know what these must show.
//!
//! One that gives its requests ids asks again until it is answered: what it has added is known. One that gives none
//! asks once. What was not answered may have been counted, or may not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::Host;
use super::super::faults::QUORUM;
use super::super::faults::client::{Asked, Client, now_us, rows};
use crate::crash::Dice;
use crate::report::Failure;
use crate::wire::Answer;

/// Counters whose requests have ids, and those whose have none.
pub(super) const NAMED: [i64; 2] = [1, 2];
pub(super) const PLAIN: [i64; 2] = [3, 4];
/// Of each counter.
const ADDER_COUNT: u64 = 4;
const AMOUNT_MAX: u64 = 4;
/// So long a request is asked again under its id, and so long a counter may not be readable.
const PATIENCE: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_millis(20);
/// 100-ns steps from 1582 to 1970.
const UUID_EPOCH: u64 = 0x01b2_1dd2_1381_4000;

/// Indexes of the statements.
const ADD: usize = 0;
const SHOW: usize = 1;
const ALL: u16 = 5;

fn client(hosts: &[Host], first: u64) -> Client {
    let statements = [
        "UPDATE counted.sums SET n = n + ? WHERE id = ?".to_owned(),
        "SELECT n FROM counted.sums WHERE id = ?".to_owned(),
    ];
    Client::new(hosts, statements.to_vec(), QUORUM, first as usize)
}

/// What a counter may show: from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    least: i64,
    most: i64,
}

/// What each counter may show.
pub(super) type Sums = BTreeMap<i64, Sum>;

impl Sum {
    pub(super) fn exactly(sum: i64) -> Sum {
        Sum { least: sum, most: sum }
    }

    pub(super) fn plus(self, other: Sum) -> Sum {
        Sum { least: self.least + other.least, most: self.most + other.most }
    }

    pub(super) fn has(self, shown: i64) -> bool {
        (self.least..=self.most).contains(&shown)
    }

    /// How much of it nobody knows.
    pub(super) fn unknown(self) -> i64 {
        self.most - self.least
    }
}

/// Adders at work.
pub(super) struct Adders {
    threads: Vec<(i64, JoinHandle<Result<Sum, Failure>>)>,
    is_over: Arc<AtomicBool>,
}

impl Adders {
    /// Begins the work on all counters.
    pub(super) fn begin(hosts: &[Host], seed: u64) -> Adders {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for counter in NAMED.into_iter().chain(PLAIN) {
            for _ in 0..ADDER_COUNT {
                let number = threads.len() as u64;
                let (client, dice) = (client(hosts, number), Dice(seed ^ number << 32));
                let mut adder = Adder { client, counter, number, operation_count: 0, dice };
                let is_over = Arc::clone(&is_over);
                threads.push((counter, std::thread::spawn(move || adder.work(&is_over))));
            }
        }
        Adders { threads, is_over }
    }

    /// Ends it; what each counter must show of it.
    pub(super) fn end(mut self) -> Result<Sums, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut sums = Sums::new();
        for (counter, thread) in self.threads.drain(..) {
            let added = thread.join().map_err(|_| Failure::new("an adder panicked"))??;
            let sum = sums.entry(counter).or_default();
            *sum = sum.plus(added);
        }
        Ok(sums)
    }
}

impl Drop for Adders {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

struct Adder {
    client: Client,
    counter: i64,
    number: u64,
    operation_count: u64,
    dice: Dice,
}

impl Adder {
    fn work(&mut self, is_over: &AtomicBool) -> Result<Sum, Failure> {
        let mut sum = Sum::default();
        while !is_over.load(Ordering::Relaxed) {
            sum = sum.plus(self.add()?);
        }
        Ok(sum)
    }

    /// # Errors
    /// What has an id is not answered.
    fn add(&mut self) -> Result<Sum, Failure> {
        let amount = self.dice.between(1, AMOUNT_MAX) as i64;
        if PLAIN.contains(&self.counter) {
            return Ok(match self.client.ask(self.asked(amount, None)) {
                Ok(_) => Sum::exactly(amount),
                // All have refused it.
                Err(lost) if lost.node.is_none() => Sum::default(),
                Err(_) => Sum { least: 0, most: amount },
            });
        }
        let (operation, began) = (self.next_operation(), Instant::now());
        loop {
            match self.client.ask(self.asked(amount, Some(operation))) {
                Ok(_) => return Ok(Sum::exactly(amount)),
                Err(lost) if began.elapsed() > PATIENCE => {
                    return Err(Failure::new(format!("not counted in a minute: {}", lost.what)));
                }
                Err(_) => std::thread::sleep(RETRY),
            }
        }
    }

    fn asked(&self, amount: i64, operation: Option<[u8; 16]>) -> Asked {
        let values = [amount, self.counter].map(|value| value.to_be_bytes().to_vec()).to_vec();
        Asked { statement: ADD, values, operation, ..Asked::default() }
    }

    /// A UUID of version 1 that nobody has had.
    fn next_operation(&mut self) -> [u8; 16] {
        self.operation_count += 1;
        let ticks = now_us() * 10 + UUID_EPOCH;
        let time = (ticks & 0xffff_ffff) << 32 | (ticks >> 32 & 0xffff) << 16 | 0x1000 | ticks >> 48;
        let node = 0x8000_0000_0000_0000 | self.number << 40 | self.operation_count;
        let mut operation = [0; 16];
        operation[..8].copy_from_slice(&time.to_be_bytes());
        operation[8..].copy_from_slice(&node.to_be_bytes());
        operation
    }
}

/// What a counter shows at `ALL`, as soon as all replicas can be read; `None` when it is not there.
pub(super) fn shown(hosts: &[Host], counter: i64) -> Result<Option<i64>, Failure> {
    let (mut client, began) = (client(hosts, 0), Instant::now());
    loop {
        let values = vec![counter.to_be_bytes().to_vec()];
        let asked = Asked { statement: SHOW, values, consistency: Some(ALL), ..Asked::default() };
        match client.ask(asked) {
            Ok(answer) => return number_in(answer),
            Err(lost) if began.elapsed() > PATIENCE => {
                return Err(Failure::new(format!("not to be read: {}", lost.what)));
            }
            Err(_) => std::thread::sleep(RETRY),
        }
    }
}

fn number_in(answer: Answer) -> Result<Option<i64>, Failure> {
    let rows = rows(answer).ok_or_else(|| Failure::new("no rows"))?;
    let cell = rows.rows.first().and_then(|cells| cells[0].as_deref());
    let number = cell.map(|bytes| bytes.try_into().map(i64::from_be_bytes)).transpose();
    number.map_err(|_| Failure::new("a counter of another length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_may_be_in_a_sum() {
        let sum = Sum::exactly(5).plus(Sum { least: 0, most: 3 });
        assert_eq!([4, 5, 8, 9].map(|shown| sum.has(shown)), [false, true, true, false]);
        assert_eq!((sum.unknown(), Sum::exactly(5).unknown()), (3, 0));
    }

    #[test]
    fn each_operation_has_an_id_of_version_1() {
        let mut adder =
            Adder { client: client(&[], 0), counter: 1, number: 9, operation_count: 0, dice: Dice(1) };
        let (one, other) = (adder.next_operation(), adder.next_operation());
        assert!(one != other && one[6] >> 4 == 1 && one[8] >> 6 == 2);
    }
}
