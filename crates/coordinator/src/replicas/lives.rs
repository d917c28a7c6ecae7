//! The lives of other nodes: one that was killed may have brought its last writes to some of their replicas only.
//!
//! It sends what it has logged itself when it is there again (`settled.rs`). What it had not logged yet, or is no
//! replica of, only those have who got it. So each of them remembers for some seconds in which slots others had it
//! write, and owes to all other replicas what its own log has there:
//!
//! ```text
//!            killed   not heard any more      for long, or heard in another life: owed from here on
//!   log ────────┼────────────┼──────────────────────────┼──► end
//!            ▲                                          │
//!            └──────── where it ended a while ago ◄─────┘
//! ```
//!
//! So it is also with one that says farewell: it may, because its disk fails. Who comes back in the same life settles
//! its own.

use std::collections::BTreeMap;
use std::rc::Weak;
use std::time::Duration;

use cluster::membership::Known;
use runtime::Plant;
use schema::TableId;
use tokio::time::{Instant, sleep};
use types::Token;
use uuid::Uuid;

use super::RingSeat;
use super::marks::REMEMBERED_FOR;
use super::settled::{End, owe_places};
use super::slots::{Places, slot_of};

/// So often it is looked.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Who is not heard for so long coordinates nothing any more.
const OVER_AFTER: Duration = Duration::from_secs(10);
const _: () =
    assert!(LOOK_EVERY.as_millis() < REMEMBERED_FOR.as_millis(), "it is looked before it is forgotten");

/// Where a shard wrote lately what other nodes had asked it for, by who asked: at least for [`REMEMBERED_FOR`], and not
/// twice as long.
#[derive(Debug, Default)]
pub(super) struct WritesOfOthers {
    lately: BTreeMap<Uuid, Places>,
    before: BTreeMap<Uuid, Places>,
    /// When the later ones began to be gathered.
    since: Option<Instant>,
}

impl WritesOfOthers {
    /// A node has asked for this.
    pub(super) fn note(&mut self, node: Uuid, places: impl Iterator<Item = (TableId, Token)>) {
        let of_node = self.lately.entry(node).or_default();
        places.for_each(|(table, token)| _ = of_node.insert(table, slot_of(token)));
    }

    /// Forgets what is too old.
    pub(super) fn forget(&mut self, now: Instant) {
        if now.saturating_duration_since(*self.since.get_or_insert(now)) >= REMEMBERED_FOR {
            self.before = std::mem::take(&mut self.lately);
            self.since = Some(now);
        }
    }

    /// Adds what a node has asked for.
    pub(super) fn add_to(&self, node: Uuid, places: &mut Places) {
        let of_node = [&self.before, &self.lately].into_iter().filter_map(|of_nodes| of_nodes.get(&node));
        of_node.for_each(|of_node| places.add_all(of_node));
    }
}

/// What a node may have left that some replicas have and others have not: in these places of the log, from there on.
#[derive(Debug)]
struct Left {
    places: Places,
    from: End,
}

impl Left {
    /// And what a node has left since.
    fn add(&mut self, since: &Left) {
        self.places.add_all(&since.places);
    }
}

/// The lives of all other members.
#[derive(Debug, Default)]
struct Lives(BTreeMap<Uuid, Life>);

/// That of one that was heard.
#[derive(Debug)]
struct Life {
    incarnation: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Heard,
    /// It is not heard since then.
    Silent(Instant, Left),
    /// What it may have left is owed.
    Over,
}

/// What is seen of a member.
#[derive(Clone, Copy, Debug)]
struct Sign {
    incarnation: u64,
    is_alive: bool,
}

impl Life {
    fn begin(incarnation: u64) -> Life {
        Life { incarnation, state: State::Heard }
    }

    /// It is over: what it may have left, if nobody has seen to that.
    fn end(&mut self, left_now: impl FnOnce() -> Left) -> Option<Left> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Heard => Some(left_now()),
            State::Silent(_, mut left) => {
                left.add(&left_now());
                Some(left)
            }
            State::Over => None,
        }
    }

    /// Takes in what is seen of it; what it may have left, if it is over now. Who is silent may have others write all
    /// the same.
    fn look(&mut self, sign: Sign, now: Instant, left_now: impl FnOnce() -> Left) -> Option<Left> {
        match &mut self.state {
            _ if sign.is_alive => self.state = State::Heard,
            State::Heard => self.state = State::Silent(now, left_now()),
            State::Silent(since, _) if now.saturating_duration_since(*since) >= OVER_AFTER => {
                return self.end(left_now);
            }
            State::Silent(_, left) => left.add(&left_now()),
            State::Over => {}
        }
        None
    }
}

impl Lives {
    /// Takes in what is seen now of all members: what those lives may have left that are over since the last time.
    /// `left_now` tells what a node would have left that is not heard any more from now on.
    fn look(
        &mut self,
        signs: &BTreeMap<Uuid, Sign>,
        now: Instant,
        left_now: impl Fn(Uuid) -> Left,
    ) -> Vec<Left> {
        let mut left = Vec::new();
        self.0.retain(|node, life| {
            let is_member = signs.contains_key(node);
            left.extend(if is_member { None } else { life.end(|| left_now(*node)) });
            is_member
        });
        for (node, sign) in signs {
            let life = self.0.entry(*node).or_insert(Life::begin(sign.incarnation));
            if life.incarnation != sign.incarnation {
                left.extend(life.end(|| left_now(*node)));
                *life = Life::begin(sign.incarnation);
            }
            left.extend(life.look(*sign, now, || left_now(*node)));
        }
        left
    }

    /// From where on the log may be needed for those who are silent.
    fn doubted_from(&self) -> Option<End> {
        let silent = self.0.values().filter_map(|life| match &life.state {
            State::Silent(_, left) => Some(left.from),
            State::Heard | State::Over => None,
        });
        silent.min_by_key(End::position)
    }
}

/// What is seen of the other members that were heard.
fn signs(known: &Known) -> BTreeMap<Uuid, Sign> {
    let members = known.members();
    let members = members.iter().flat_map(|members| members.list());
    let others = members.map(|member| member.candidate.host_id).filter(|node| *node != known.host_id());
    let sign = |node| {
        let other = known.other(node);
        Some((node, Sign { incarnation: other.incarnation()?, is_alive: other.is_alive() }))
    };
    others.filter_map(sign).collect()
}

/// Owes to others what this shard has logged for lives that are over, for as long as the seat is taken.
pub(super) async fn watch_lives(seat: Weak<RingSeat>) {
    let mut lives = Lives::default();
    loop {
        sleep(LOOK_EVERY).await;
        let Some(seat) = seat.upgrade() else { return };
        let (now, marks) = (Instant::now(), seat.own_marks());
        let Some(from) = marks.ended_before() else { continue };
        let left_now = |node| Left { places: seat.marks().received_of(node), from };
        for left in lives.look(&signs(seat.known()), now, left_now) {
            if !seat.has_planted(Plant::LivesUnwatched) {
                owe_places(&seat, left.from, &left.places);
            }
        }
        marks.doubt_from(lives.doubted_from());
        marks.forget_received(now);
    }
}

#[cfg(test)]
mod tests {
    use storage::LogPosition;

    use super::*;

    const NODE: Uuid = Uuid::from_u128(1);

    /// Lives that are looked at once a second, when the log has got on by one.
    struct Story {
        lives: Lives,
        start: Instant,
        seconds: u32,
    }

    impl Story {
        fn begin() -> Story {
            Story { lives: Lives::default(), start: Instant::now(), seconds: 0 }
        }

        /// A second later that is seen: since when what it has left is owed, and is doubted.
        fn see(&mut self, sign: Option<Sign>) -> (Option<u32>, Option<u32>) {
            self.seconds += 1;
            let end = End::at(LogPosition { segment: 1, offset: self.seconds }, 1, 0, 1);
            let signs = sign.map(|sign| (NODE, sign)).into_iter().collect();
            let now = self.start + Duration::from_secs(self.seconds.into());
            let left = self.lives.look(&signs, now, |_| Left { places: Places::default(), from: end });
            assert!(left.len() < 2, "there is one node");
            let offset = |end: End| end.position().offset;
            (left.first().map(|left| offset(left.from)), self.lives.doubted_from().map(offset))
        }
    }

    const ALIVE: Sign = Sign { incarnation: 7, is_alive: true };
    const SILENT: Sign = Sign { is_alive: false, ..ALIVE };
    const BORN_AGAIN: Sign = Sign { incarnation: 8, ..ALIVE };

    #[test]
    fn who_lives_again_has_left_what_was_logged_before_it_was_missed() {
        let mut story = Story::begin();
        assert_eq!(story.see(Some(BORN_AGAIN)), (None, None), "nobody knows of another life");
        let mut story = Story::begin();
        assert_eq!([ALIVE, ALIVE].map(|sign| story.see(Some(sign))), [(None, None); 2]);
        assert_eq!(story.see(Some(BORN_AGAIN)), (Some(3), None), "its silence was not noticed");
        let silent = Sign { incarnation: 8, ..SILENT };
        assert_eq!([silent, silent].map(|sign| story.see(Some(sign))), [(None, Some(4)); 2]);
        assert_eq!(story.see(Some(ALIVE)), (Some(4), None));
    }

    #[test]
    fn who_is_silent_for_long_or_no_member_any_more_has_left_it_once() {
        let mut story = Story::begin();
        story.see(Some(ALIVE));
        for _ in 0..10 {
            assert_eq!(story.see(Some(SILENT)), (None, Some(2)));
        }
        assert_eq!(story.see(Some(SILENT)), (Some(2), None));
        assert_eq!([SILENT, BORN_AGAIN].map(|sign| story.see(Some(sign))), [(None, None); 2]);
        assert_eq!(story.see(None), (Some(15), None), "it was alive");
        assert_eq!(story.see(None), (None, None));
    }

    #[test]
    fn who_comes_back_has_left_nothing() {
        let mut story = Story::begin();
        story.see(Some(ALIVE));
        assert_eq!(story.see(Some(SILENT)), (None, Some(2)));
        assert_eq!(story.see(Some(ALIVE)), (None, None));
    }

    #[test]
    fn what_others_had_written_is_remembered_for_a_while() {
        let (table, mut writes, start) =
            (TableId(Uuid::from_u128(7)), WritesOfOthers::default(), Instant::now());
        let count = |writes: &WritesOfOthers, node| {
            let mut places = Places::default();
            writes.add_to(node, &mut places);
            places.count()
        };
        writes.forget(start);
        writes.note(NODE, [Token(0), Token(1), Token::MAX].map(|token| (table, token)).into_iter());
        assert_eq!((count(&writes, NODE), count(&writes, Uuid::nil())), (2, 0), "slots, by who asked");
        writes.forget(start + REMEMBERED_FOR);
        writes.note(NODE, [(table, Token(1)), (table, Token::MIN)].into_iter());
        assert_eq!(count(&writes, NODE), 3);
        writes.forget(start + REMEMBERED_FOR + REMEMBERED_FOR / 2);
        assert_eq!(count(&writes, NODE), 3, "it is not long ago");
        writes.forget(start + 2 * REMEMBERED_FOR);
        assert_eq!(count(&writes, NODE), 2);
        writes.forget(start + 3 * REMEMBERED_FOR);
        assert_eq!(count(&writes, NODE), 0);
    }
}
