//! What befalls a node under load, and what that costs.

use std::rc::Rc;
use std::time::Duration;

use cluster::membership::Known;
use coordinator::replicas::Marks;
use protocol::Consistency;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::super::World;
use super::super::operator::cells_at;
use super::super::settle;
use super::super::visitor::Visitor;
use super::agreed;
use super::figures::{read_p99, slow_for, worst_moment};
use super::load::{Load, Record};
use super::start;
use crate::peers::identity::address;
use crate::scenario::Violation;

/// Requests that are under way when what the nodes bear is measured.
const PRESSED: usize = 256;
const PRESSED_FOR: Duration = Duration::from_secs(4);
/// So long all is well before a node is hit, and so long what becomes of it is watched.
pub(super) const BEFORE: Duration = Duration::from_secs(4);
pub(super) const WATCHED: Duration = Duration::from_secs(6);
/// How long a node is away that has missed much.
const AWAY: Duration = Duration::from_secs(60);
/// By then it has got it.
const BACK_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The worst 100 ms has this part of the rate.
const RATE_PART_MIN: f64 = 0.6;
/// So long reads may take more than twice as long as before.
const SLOW_MAX: Duration = Duration::from_millis(300);
/// What was missed is sent so many times as fast as it was written.
const SENT_TIMES_MIN: f64 = 3.0;
/// So long after the last of it all replicas are equal.
const EQUAL_WITHIN: Duration = Duration::from_secs(2);
/// A node that was killed has looked by then what others may have missed of its writes.
const LOOKED_AFTER: Duration = Duration::from_millis(500);
/// By then they have it.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// The node that is hit.
pub(super) const HIT: usize = 1;

/// What befalls it.
#[derive(Clone, Copy, Debug)]
enum Scene {
    Killed,
    StandsStill,
    CutOff,
}

/// Plays all scenes; tells all figures.
pub(super) async fn play(world: &Rc<World>, load: &Load) -> Result<(), Violation> {
    load.press(PRESSED, Instant::now() + PRESSED_FOR / 4).await;
    let borne = load.press(PRESSED, Instant::now() + PRESSED_FOR).await;
    load.drain().await;
    let rate = borne / 2.0;
    world
        .stage
        .note(format_args!("three nodes bear {borne:.0} requests a second, and are offered {rate:.0}"));
    let mut missed = Vec::new();
    for (number, scene) in [Scene::Killed, Scene::StandsStill, Scene::CutOff].into_iter().enumerate() {
        missed.extend(play_one(world, load, rate, (scene, number as u64 + 2)).await?);
    }
    missed.extend(be_away(world, load, rate).await?);
    missed.extend(return_at_once(world, load, rate).await?);
    missed.extend(agreed::play(world).await?);
    match missed.is_empty() {
        true => Ok(()),
        false => Err(Violation::new(missed.join("; "))),
    }
}

/// Tells a figure; says so if it is out of its bound.
pub(super) fn tell(world: &World, is_within: bool, what: String) -> Option<String> {
    world.stage.note(format_args!("{what}{}", if is_within { "" } else { ", which misses its bound" }));
    (!is_within).then_some(what)
}

async fn play_one(
    world: &Rc<World>,
    load: &Load,
    rate: f64,
    (scene, incarnation): (Scene, u64),
) -> Result<Vec<String>, Violation> {
    let begun = Instant::now();
    let offering = load.offer(rate, begun + BEFORE + WATCHED);
    let acting = async {
        sleep(BEFORE).await;
        let hit = Instant::now();
        world.hit(scene).await;
        hit
    };
    let ((), hit) = futures_util::future::join(offering, acting).await;
    let end = Instant::now();
    world.let_go(scene, incarnation);
    let all_serve = timeout(settle::BOUND, settle::all_serve(world)).await;
    all_serve.map_err(|_| Violation::new(format!("{scene:?}: the nodes do not come together")))?;
    sleep(WATCHED).await;
    load.drain().await;
    let records = load.since(begun);
    let (apart, counted): (Vec<Record>, Vec<Record>) =
        records.iter().copied().partition(|record| record.node == HIT && is_lost(record, hit));
    let offered =
        counted.iter().filter(|record| record.sent >= hit).count() as f64 / (end - hit).as_secs_f64();
    let part = worst_moment(&counted, offered, (hit, end));
    let base = read_p99(&records, begun + BEFORE / 2, hit - Duration::from_millis(100));
    let slow = slow_for(&counted, 2 * base, (hit, end));
    let failed_count = counted.iter().filter(|record| !record.answered.is_some_and(|(_, good)| good)).count();
    let failed = format!(
        "{scene:?}: {} requests to that node counted apart, {failed_count} of {} others failed",
        apart.len(),
        counted.len()
    );
    let rate_kept = format!("{scene:?}: the worst 100 ms has {:.0}% of the rate", 100.0 * part);
    let reads = format!(
        "{scene:?}: reads of 99% took {} ms before, and more than twice that for {} ms",
        base.as_millis(),
        slow.as_millis()
    );
    let figures = [
        tell(world, failed_count == 0, failed),
        tell(world, part >= RATE_PART_MIN, rate_kept),
        tell(world, slow <= SLOW_MAX, reads),
    ];
    Ok(figures.into_iter().flatten().collect())
}

/// Was it asked of the node that was hit, and under way then or later?
fn is_lost(record: &Record, hit: Instant) -> bool {
    record.answered.is_none_or(|(when, _)| when >= hit)
}

impl World {
    async fn hit(&self, scene: Scene) {
        match scene {
            Scene::Killed => self.kill_one(HIT).await,
            Scene::StandsStill => self.stage.hosts.pause(HIT),
            Scene::CutOff => {
                self.for_each_link(|one, other| self.stage.network.cut(address(one), address(other)))
            }
        }
    }

    fn let_go(self: &Rc<Self>, scene: Scene, incarnation: u64) {
        match scene {
            Scene::Killed => start(self, HIT, incarnation),
            Scene::StandsStill => self.stage.hosts.go_on(HIT),
            Scene::CutOff => {
                self.for_each_link(|one, other| self.stage.network.heal(address(one), address(other)))
            }
        }
    }

    /// Both ways between the node and all others.
    fn for_each_link(&self, act: impl Fn(usize, usize)) {
        for other in (0..self.node_count()).filter(|other| *other != HIT) {
            act(HIT, other);
            act(other, HIT);
        }
    }

    pub(super) async fn kill_one(&self, number: usize) {
        self.lives.borrow_mut()[number] = None;
        self.marks.borrow_mut()[number] = None;
        self.stage.hosts.kill(number).await;
        let left = self.stage.hosts.disk(number).kill();
        self.stage.hosts.put_disk(number, left);
    }

    /// Slots in which others have missed something, as far as that node knows.
    fn owed_by(&self, number: usize) -> usize {
        let lives = self.lives.borrow();
        let hosts = lives.iter().flatten().map(Known::host_id);
        let marks = self.marks.borrow();
        marks[number].as_ref().map_or(0, |marks| hosts.map(|host| marks.slot_count(host)).sum())
    }

    fn owed_to(&self, host: Uuid) -> usize {
        self.marks.borrow().iter().flatten().map(|marks: &Marks| marks.slot_count(host)).sum()
    }
}

/// A node is away for a minute, and gets what it has missed while the load goes on.
async fn be_away(world: &Rc<World>, load: &Load, rate: f64) -> Result<Vec<String>, Violation> {
    let host = world.lives.borrow()[HIT].as_ref().map(Known::host_id).expect("it serves");
    let begun = Instant::now();
    load.offer(rate, begun + BEFORE).await;
    world.kill_one(HIT).await;
    load.offer(rate, Instant::now() + AWAY).await;
    let returned = Instant::now();
    start(world, HIT, 9);
    let getting = async {
        settle::all_serve(world).await;
        let serves = Instant::now();
        while world.owed_to(host) > 0 {
            sleep(LOOK_EVERY).await;
        }
        (serves, Instant::now())
    };
    let until = returned + BACK_WITHIN;
    let (serves, sent) = tokio::select! {
        biased;
        times = getting => times,
        () = load.offer(rate, until) => {
            let left = world.owed_to(host);
            return Err(Violation::new(format!("{left} slots were not sent within {BACK_WITHIN:?}")));
        }
    };
    load.drain().await;
    let records = load.since(begun);
    let equal = equal_since(world).await?;
    let times = AWAY.as_secs_f64() / (sent - serves).as_secs_f64().max(1e-3);
    let base = read_p99(&records, begun + BEFORE / 2, begun + BEFORE);
    let meanwhile = read_p99(&records, returned, sent);
    world.stage.note(format_args!(
        "Away: reads of 99% took {} ms before, and {} ms while it got what it missed",
        base.as_millis(),
        meanwhile.as_millis()
    ));
    let figures = [
        tell(
            world,
            times >= SENT_TIMES_MIN,
            format!(
                "Away for {} s: served {} ms after its start, and had what it missed {} ms later, {times:.1} times as \
                 fast as it was written",
                AWAY.as_secs(),
                (serves - returned).as_millis(),
                (sent - serves).as_millis()
            ),
        ),
        tell(
            world,
            equal <= EQUAL_WITHIN,
            format!("Away: all rows were equal {} ms after the last was sent", equal.as_millis()),
        ),
    ];
    Ok(figures.into_iter().flatten().collect())
}

/// A node is killed and started again at once: it does not know which of its last writes the others have.
async fn return_at_once(world: &Rc<World>, load: &Load, rate: f64) -> Result<Vec<String>, Violation> {
    let begun = Instant::now();
    load.offer(rate, begun + BEFORE).await;
    world.kill_one(HIT).await;
    start(world, HIT, 10);
    let settling = async {
        settle::all_serve(world).await;
        let (serves, mut slot_count) = (Instant::now(), 0);
        // It has looked by then.
        while serves.elapsed() < LOOKED_AFTER || world.owed_by(HIT) > 0 {
            slot_count = slot_count.max(world.owed_by(HIT));
            sleep(LOOK_EVERY).await;
        }
        (serves, slot_count, Instant::now())
    };
    let (serves, slot_count, settled) = tokio::select! {
        biased;
        settled = settling => settled,
        () = load.offer(rate, begun + BACK_WITHIN) => {
            let left = world.owed_by(HIT);
            return Err(Violation::new(format!("{left} slots were not settled within {BACK_WITHIN:?}")));
        }
    };
    load.drain().await;
    let took = settled - serves;
    let what = format!(
        "Killed and back at once: {slot_count} slots were not known to be settled, and were {} ms later",
        took.as_millis()
    );
    Ok(tell(world, took <= SETTLED_WITHIN, what).into_iter().collect())
}

/// How long it takes until each node by itself shows what all together do.
async fn equal_since(world: &Rc<World>) -> Result<Duration, Violation> {
    let (visitor, begun) = (Visitor::new(world, 101), Instant::now());
    let statement = "SELECT k, v FROM load.rows";
    let mut own = vec![Vec::new(); world.node_count()];
    while begun.elapsed() < BACK_WITHIN {
        let looked = begun.elapsed();
        for (number, own) in own.iter_mut().enumerate() {
            *own = cells_at(&visitor, number, statement, Consistency::One).await.unwrap_or_default();
        }
        if own.windows(2).all(|pair| pair[0] == pair[1]) && !own[0].is_empty() {
            return Ok(looked);
        }
        sleep(LOOK_EVERY).await;
    }
    Err(Violation::new("the nodes never show the same".to_owned()))
}
