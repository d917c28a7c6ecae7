//! After the faults: all nodes serve and agree, nothing that was acknowledged is missing, all show the same.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use coordinator::replicas::Pending;
use protocol::{Consistency, QueryParameters, Response, Rows};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::World;
use super::client::Client;
use super::level::At;
use super::node::CLOCK_STEP_MAX;
use super::operator::{cells_at, definitions_on, shows_what_came_behind, texts};
use super::rivals::KEYSPACE;
use super::statement::{Read, Seen};
use super::table::{Place, Table};
use super::visitor::Visitor;
use crate::scenario::Violation;
use crate::score::Score;
use crate::served::{Ended, spelled};
use crate::ways::Way;

/// Within this time all come together: the longest pause of a connection, the time to make one, and elections.
pub(super) const BOUND: Duration = Duration::from_secs(60);
/// And so many times its longest access on the slowest disk: who gets all its rows, or what it has missed, writes as
/// many files, some dozen accesses each.
const ACCESSES: u32 = 4_000;
/// A node that serves may refuse a request for a moment; so often in a row it does not.
const TRIES_MAX: usize = 20;
/// Timestamps of others are believed that are so far ahead of a clock.
const BELIEVED_MAX_MICROS: i64 = 10_000_000;
/// Of a row of no client.
const ORDERED_KEY: i32 = -1;
/// So often batches are looked at while a node is away: longer than they rest before they are written again.
const TRIES_WITHOUT_MAX: usize = 60;
/// So many rows are read together: where disks and networks are slow, all of them take too long.
const KEYS_TOGETHER: usize = 50;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until all nodes serve, and know of each other the same.
pub(super) async fn all_serve(world: &World) {
    while !is_whole(world) {
        sleep(Duration::from_millis(50)).await;
    }
}

fn is_whole(world: &World) -> bool {
    let lives = world.lives.borrow();
    let epochs: Option<Vec<(u64, u64)>> = lives
        .iter()
        .map(|life| {
            let known = life.as_ref()?;
            let is_complete = known.members()?.list().len() == lives.len();
            is_complete.then(|| (known.ring_epoch(), known.schema_epoch()))
        })
        .collect();
    epochs.is_some_and(|epochs| epochs.windows(2).all(|pair| pair[0] == pair[1]))
}

/// How the nodes stand, in words.
pub(super) fn standing(world: &World) -> String {
    let of = |life: &Option<_>| {
        let known: &cluster::membership::Known = life.as_ref()?;
        let states =
            known.members().map(|members| members.list().iter().map(|member| member.state).collect());
        let states: Vec<_> = states.unwrap_or_default();
        Some((states, known.ring_epoch(), known.schema_epoch()))
    };
    format!("{:?}", world.lives.borrow().iter().map(of).collect::<Vec<_>>())
}

/// Sees that all is well.
pub(super) async fn settle(world: &Rc<World>, clients: &mut [Client]) -> Result<(), Violation> {
    // Who stayed away may have lost its disk since they have asked last.
    clients.iter_mut().for_each(Client::heed_losses);
    let begun = Instant::now();
    let patience = BOUND + ACCESSES * world.slowest_disk();
    let together = timeout(patience, all_serve(world)).await;
    together.map_err(|_| Violation::new(format!("nodes do not come together: {}", standing(world))))?;
    world.stage.note(format_args!("together after {:?}", begun.elapsed()));
    let finished = timeout(patience, all_batches_finished(world)).await;
    finished.map_err(|_| Violation::new("logged batches are never finished".to_owned()))?;
    let handed = timeout(patience, all_is_handed_on(world)).await;
    handed.map_err(|_| Violation::new(format!("nodes still lack what they have missed: {}", owed(world))))?;
    world.stage.note(format_args!("nothing is owed after {:?}", begun.elapsed()));
    all_expired(clients).await;
    for client in clients.iter_mut().filter(|_| !world.plan.may_lose_acknowledged()) {
        read_untouched(client, world).await?;
    }
    let visitor = Visitor::new(world, 100);
    check_schema(world, &visitor).await?;
    check_emptied(world, &visitor).await?;
    check_peers(world, &visitor).await?;
    check_order(world, &visitor).await?;
    for client in clients.iter_mut() {
        client.read_at_last(world).await?;
    }
    for client in clients {
        client.check_timestamps(world).await?;
    }
    Ok(())
}

/// Counters show what was acknowledged of them: at `ALL`, and then each replica by itself, the same.
pub(super) async fn check_counters(world: &Rc<World>, score: &mut Score) -> Result<(), Violation> {
    let visitor = Visitor::new(world, 101);
    let lost = world.disks_lost.borrow().iter().map(|(_, when)| *when).max();
    lost.into_iter().for_each(|then| score.tallies.doubt_told_until(then));
    score.tallies.settle();
    for counter in 0..score.tallies.count() {
        for level in [Consistency::All, Consistency::One] {
            for node in 0..world.node_count() {
                check_counter(&visitor, node, level, counter, score).await?;
            }
        }
    }
    Ok(())
}

async fn check_counter(
    visitor: &Visitor,
    node: usize,
    level: Consistency,
    counter: usize,
    score: &Score,
) -> Result<(), Violation> {
    let asked = score.tallies.show(counter);
    let (text, values) = asked.statement(&format!("{KEYSPACE}.tallies"));
    let text = spelled(&text, &values);
    let wrong = |what: String| {
        Violation::new(format!("in the end, at {level:?} through node {node}, {}: {what}", text.as_str()))
    };
    let (rows, _) = rows_at_last(visitor, node, text.as_str(), level).await?;
    score.tallies.take_rows(&asked, &rows).map_err(wrong)
}

/// The rows that a node answers, which may refuse for a moment, and when they were asked for.
async fn rows_at_last(
    visitor: &Visitor,
    node: usize,
    text: &str,
    level: Consistency,
) -> Result<(Rows, Instant), Violation> {
    let mut told = Vec::new();
    while told.len() < TRIES_MAX {
        let asked = Instant::now();
        match visitor.ask_with(node, text, QueryParameters::at(level)).await {
            Ok(Response::Rows(rows)) => return Ok((rows, asked)),
            other => told.push(format!("{other:?}")),
        }
        sleep(PAUSE).await;
    }
    Err(Violation::new(format!("node {node} does not answer {text} at {level:?}: {told:?}")))
}

/// While a node is away and the others are well, logged batches that do not need it become whole, or are absent.
pub(super) async fn check_batches_without(
    world: &World,
    clients: &mut [Client],
    away: usize,
) -> Result<(), Violation> {
    let node = (0..world.node_count()).find(|node| *node != away).expect("there are several");
    all_expired(clients).await;
    for client in clients {
        client.heed_losses();
        for tries in 1.. {
            let tables = Table::WORKED_ON.into_iter().filter(|table| *table != Table::Single);
            let mut shown = client.read_tables(node, Consistency::Quorum, tables).await?;
            shown.extend(client.read_batched(node, Consistency::Quorum).await?);
            let Some(torn) = client.model.half_written(&shown, false) else { break };
            if tries == TRIES_WITHOUT_MAX {
                return Err(Violation::new(format!("without node {away} {torn}")));
            }
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Waits until no row ends any more between one read and the next.
async fn all_expired(clients: &[Client]) {
    let expired = clients.iter().filter_map(|client| client.model.all_expired_at()).max();
    sleep_until(expired.unwrap_or_else(Instant::now)).await;
}

/// Waits until no batch is written again any more, also none that an earlier life of a node has left.
async fn all_batches_finished(world: &World) {
    while world.batches.borrow().iter().flatten().any(|counts| counts().0 > 0) {
        sleep(PAUSE).await;
    }
}

/// Waits until nobody has missed anything that another one knows of.
async fn all_is_handed_on(world: &World) {
    while !owed(world).is_empty() {
        sleep(PAUSE).await;
    }
}

/// What nodes owe to others, in words.
fn owed(world: &World) -> String {
    let lives = world.lives.borrow();
    let living =
        lives.iter().enumerate().filter_map(|(node, life)| Some((format!("node {node}"), life.as_ref()?)));
    let living = living.map(|(name, known)| (name, known.host_id()));
    // Who is gone for good has missed nothing.
    let lost = world.places.lost_ids().into_iter().map(|host| ("one that is gone".to_owned(), host));
    let others: Vec<_> = living.chain(lost).collect();
    let mut owed = Vec::new();
    for (node, marks) in world.marks.borrow().iter().enumerate() {
        let Some(marks) = marks else { continue };
        for (other, host) in &others {
            let Pending { logged_count, compared_count, .. } = marks.pending(*host);
            if logged_count + compared_count > 0 {
                owed.push(format!(
                    "node {node} is to send {logged_count} slots to {other}, and to compare {compared_count}"
                ));
            }
        }
    }
    owed.join(", ")
}

async fn check_schema(world: &World, visitor: &Visitor) -> Result<(), Violation> {
    let mut first = None;
    for node in 0..world.node_count() {
        let told = |error: std::io::Error| Violation::new(format!("node {node} shows no schema: {error}"));
        let shown = definitions_on(visitor, node).await.map_err(told)?;
        world
            .definitions
            .borrow()
            .check(&shown)
            .map_err(|violation| Violation::new(format!("on node {node}, in the end: {violation}")))?;
        let version = texts(visitor, node, "SELECT schema_version FROM system.local").await.map_err(told)?;
        let shown = (shown, version);
        if *first.get_or_insert_with(|| shown.clone()) != shown {
            let what = format!("node {node} has another schema: {shown:?}, and the first {first:?}");
            return Err(Violation::new(what));
        }
    }
    Ok(())
}

/// What is written through a node that has shown a row stands behind that row, whatever clocks show, as long as nodes
/// believe each other.
async fn check_order(world: &World, visitor: &Visitor) -> Result<(), Violation> {
    let clocks = || (0..world.node_count()).map(|node| world.clock_of(node));
    let (least, most) = (clocks().min().unwrap_or(0), clocks().max().unwrap_or(0));
    if most - least + 2 * CLOCK_STEP_MAX.as_micros() as i64 > BELIEVED_MAX_MICROS {
        return Ok(());
    }
    let read = format!("SELECT v FROM {} WHERE k = {ORDERED_KEY}", Table::Stamped);
    let is_there = |shown: &std::io::Result<Vec<Vec<Vec<u8>>>>, value: i32| {
        shown.as_ref().is_ok_and(|rows| *rows == [[value.to_be_bytes().to_vec()]])
    };
    for (value, node) in (0..world.node_count()).chain([0]).enumerate() {
        let value = value as i32;
        let before = cells_at(visitor, node, &read, Consistency::All).await;
        let write = format!("INSERT INTO {} (k, v) VALUES ({ORDERED_KEY}, {value})", Table::Stamped);
        let written = visitor.ask(node, &write, Consistency::All).await;
        let after = cells_at(visitor, node, &read, Consistency::All).await;
        let is_sure = matches!(written, Ok(Response::Void)) && before.is_ok() && after.is_ok();
        if is_sure && !is_there(&after, value) {
            let what =
                format!("node {node} has shown {before:?}, then {value} was written, and {after:?} is there");
            return Err(Violation::new(what));
        }
    }
    Ok(())
}

/// Drivers find on each node where all others are.
async fn check_peers(world: &World, visitor: &Visitor) -> Result<(), Violation> {
    for node in 0..world.node_count() {
        let rows = cells_at(visitor, node, "SELECT peer, peer_port FROM system.peers_v2", Consistency::One);
        let rows =
            rows.await.map_err(|error| Violation::new(format!("node {node} shows no peers: {error}")))?;
        let of = |other: usize| {
            let (ip, port) = (world.places.internode(other).ip(), world.places.internode(other).port());
            let IpAddr::V4(ip) = ip else { unreachable!("it is of version 4") };
            vec![ip.octets().to_vec(), i32::from(port).to_be_bytes().to_vec()]
        };
        let others: BTreeSet<_> = (0..world.node_count()).filter(|other| *other != node).map(of).collect();
        if BTreeSet::from_iter(rows.clone()) != others {
            return Err(Violation::new(format!(
                "node {node} shows the peers {rows:?}, and there are {others:?}"
            )));
        }
    }
    Ok(())
}

/// What was emptied shows on each node what was written behind that, if it was not dropped since: at `ALL`, and then
/// each by itself.
async fn check_emptied(world: &World, visitor: &Visitor) -> Result<(), Violation> {
    let emptied = world.emptied_for_sure.borrow().clone();
    let there = world.definitions.borrow().sure("several.own");
    for (name, is_sure) in there.iter().filter_map(|name| emptied.get_key_value(name)) {
        for level in [Consistency::All, Consistency::One] {
            for node in 0..world.node_count() {
                let table = name.trim_end_matches(".v");
                shows_what_came_behind(visitor, node, table, level, *is_sure).await?;
            }
        }
    }
    Ok(())
}

/// One replica shows what another does, before anybody has read them together.
async fn read_untouched(client: &mut Client, world: &World) -> Result<(), Violation> {
    let mut shown = client.read_tables(0, Consistency::One, Table::WORKED_ON).await?;
    let once = Read::whole(Table::Once, client.once.known_keys(world));
    shown.extend(client.read(0, Consistency::One, &once).await?);
    for node in 1..world.node_count() {
        let mut other = client.read_tables(node, Consistency::One, Table::WORKED_ON).await?;
        other.extend(client.read(node, Consistency::One, &once).await?);
        if let Some(place) = shown.keys().find(|place| shown[place] != other[place]) {
            let (one, other) = (shown[place], other[place]);
            let what = format!("{place:?} is {one:?} through node 0, and {other:?} through node {node}");
            return Err(Violation::new(what));
        }
    }
    let unsettled = client.once.unsettled_keys(world);
    let is_unsettled = |place: &Place| place.table == Table::Once && unsettled.contains(&place.key);
    let count = shown.iter().filter(|(place, value)| is_unsettled(place) && value.is_some()).count();
    world.ways.add(Way::Unsettled, count as u64);
    Ok(())
}

impl Client {
    /// All replicas are read and so made equal; after that one alone shows the same, through any node.
    async fn read_at_last(&mut self, world: &World) -> Result<(), Violation> {
        self.heed_losses();
        let mismatched_count = world.mismatched_count();
        let mut shown = self.read_tables(0, Consistency::All, Table::WORKED_ON).await?;
        if world.mismatched_count() > mismatched_count {
            return Err(Violation::new("replicas differ after all was brought to them".to_owned()));
        }
        let mut tries = 0;
        // A replica that was away is given its part when it is back.
        loop {
            let mut with_batched = shown.clone();
            with_batched.extend(self.read_batched(0, Consistency::All).await?);
            let Some(torn) = self.model.half_written(&with_batched, true) else { break };
            tries += 1;
            if tries == TRIES_MAX {
                return Err(Violation::new(torn));
            }
            sleep(PAUSE).await;
            shown = self.read_tables(0, Consistency::All, Table::WORKED_ON).await?;
        }
        for level in [Consistency::All, Consistency::One] {
            for node in 0..world.node_count() {
                let again = self.read_tables(node, level, Table::WORKED_ON).await?;
                if let Some(place) = shown.keys().find(|place| shown[place] != again[place]) {
                    let (one, other) = (shown[place], again[place]);
                    let what =
                        format!("{place:?} is {one:?}, and {other:?} at {level:?} through node {node}");
                    return Err(Violation::new(what));
                }
            }
        }
        Ok(())
    }

    /// A node gives no timestamps far ahead of its clock, whatever it has heard of others.
    async fn check_timestamps(&self, world: &World) -> Result<(), Violation> {
        let statement = format!("SELECT k, v, writetime(v) FROM {}", Table::Stamped);
        let Ok(rows) = cells_at(&self.visitor, 0, &statement, Consistency::All).await else { return Ok(()) };
        for row in rows {
            let [key, value, time] = &row[..] else { unreachable!("three columns were asked for") };
            let int = |bytes: &[u8]| bytes.try_into().map(i32::from_be_bytes);
            let (Ok(key), Ok(value), Ok(time)) = (int(key), int(value), time[..].try_into()) else {
                continue;
            };
            let (number, micros) = (i64::from(value), i64::from_be_bytes(time));
            let Some(node) = self.stamped_by.get(&number).filter(|_| self.keys().contains(&key)) else {
                continue;
            };
            let ahead = micros - world.clock_of(*node);
            if ahead > BELIEVED_MAX_MICROS + CLOCK_STEP_MAX.as_micros() as i64 {
                let what = format!("node {node} has given a timestamp that is {ahead} µs ahead of its clock");
                return Err(Violation::new(what));
            }
        }
        Ok(())
    }

    /// Its places in these tables, each by its key and in its table as a whole.
    async fn read_tables(
        &mut self,
        node: usize,
        level: Consistency,
        tables: impl IntoIterator<Item = Table>,
    ) -> Result<BTreeMap<Place, Option<i64>>, Violation> {
        let mut places = BTreeMap::new();
        for table in tables {
            let keys = self.keys();
            let by_key = keys.iter().map(|key| Read::partitions(table, &[*key]));
            let reads: Vec<Read> = by_key.chain([Read::whole(table, keys.clone())]).collect();
            for read in reads {
                for (place, value) in self.read(node, level, &read).await? {
                    if *places.entry(place).or_insert(value) != value {
                        let what =
                            format!("{place:?} is {:?}, and {value:?} in {}", places[&place], read.text);
                        return Err(Violation::new(what));
                    }
                }
            }
        }
        Ok(places)
    }

    /// All rows that it has written once, in logged batches.
    async fn read_batched(
        &mut self,
        node: usize,
        level: Consistency,
    ) -> Result<Vec<(Place, Option<i64>)>, Violation> {
        let mut shown = Vec::new();
        for keys in self.batched.keys().chunks(KEYS_TOGETHER) {
            shown.extend(self.read(node, level, &Read::partitions(Table::Batched, keys)).await?);
        }
        Ok(shown)
    }

    async fn read(
        &mut self,
        node: usize,
        level: Consistency,
        read: &Read,
    ) -> Result<Vec<(Place, Option<i64>)>, Violation> {
        let text = spelled(&read.text, &read.values);
        let (page, asked) = rows_at_last(&self.visitor, node, text.as_str(), level).await?;
        let mut seen = Seen::default();
        read.take(&page, &mut seen).map_err(Violation::new)?;
        let at = At { level, center: self.world.plan.center_of(node) };
        match self.shown(read, seen, at, asked) {
            Ok(seen) => Ok(seen.list().to_vec()),
            Err(Ended::Violation(violation)) => {
                Err(Violation::new(format!("in the end, at {level:?} through node {node}: {violation}")))
            }
            Err(Ended::Broken(error)) => unreachable!("nothing was asked: {error}"),
        }
    }
}
