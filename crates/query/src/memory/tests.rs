//! Lines, rooms and the one large answer, stepped by hand.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::*;

const KIB: usize = 1 << 10;

fn memory(kibibytes: usize) -> Rc<AnswerMemory> {
    AnswerMemory::new(kibibytes * KIB, LargeAnswer::new(1000 * KIB))
}

/// A client whose answers take about so much.
fn lane(kibibytes: usize) -> Rc<Lane> {
    let lane = Rc::new(Lane::default());
    lane.learn(kibibytes * KIB * 4 / 5);
    (0..500).for_each(|_| lane.learn(kibibytes * KIB * 4 / 5));
    lane
}

fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[test]
fn lanes_are_served_in_turns_and_each_in_its_order() {
    let memory = memory(64);
    let (greedy, modest) = (lane(16), lane(16));
    let mut first: Vec<AnswerRoom> = Vec::new();
    while let Some(room) = memory.try_room(&greedy, 4 * KIB) {
        first.push(room);
    }
    assert_eq!(memory.held_bytes(), 64 * KIB, "small rooms may fill all of it");
    let (mut one, mut two) = (pin!(memory.wait_for_room(&greedy)), pin!(memory.wait_for_room(&greedy)));
    assert!(poll(one.as_mut()).is_none() && poll(two.as_mut()).is_none());
    let mut three = pin!(memory.wait_for_room(&modest));
    assert!(poll(three.as_mut()).is_none());
    assert!(memory.is_wanted());
    first.pop();
    let one = poll(one.as_mut());
    assert!(one.is_some() && poll(three.as_mut()).is_none());
    drop(one);
    assert!(poll(two.as_mut()).is_none(), "the other client comes before the second of the first");
    let three = poll(three.as_mut());
    assert!(three.is_some());
    drop(three);
    assert!(poll(two.as_mut()).is_some() && !memory.is_wanted());
    drop(first);
    assert_eq!(memory.held_bytes(), 0);
}

#[test]
fn who_leaves_the_line_gives_its_place_and_its_room_up() {
    let memory = memory(64);
    let lanes = [lane(4), lane(4), lane(4)];
    let mut untaken = memory.hold_untaken();
    let busy = memory.room_of_its_own();
    untaken.set(64 * KIB);
    let mut called = Box::pin(memory.wait_for_room(&lanes[0]));
    let mut left = Box::pin(memory.wait_for_room(&lanes[1]));
    let mut last = pin!(memory.wait_for_room(&lanes[2]));
    assert!(
        poll(called.as_mut()).is_none() && poll(left.as_mut()).is_none() && poll(last.as_mut()).is_none()
    );
    drop(left);
    drop(busy);
    // Called, but it never comes.
    drop(called);
    assert!(poll(last.as_mut()).is_some());
}

#[test]
fn a_client_that_takes_no_answers_is_given_no_room_until_it_does() {
    let memory = memory(64);
    let (lazy, other) = (lane(4), lane(4));
    memory.hold_back(&lazy, true);
    let mut waiting = pin!(memory.wait_for_room(&lazy));
    assert!(poll(waiting.as_mut()).is_none());
    assert!(memory.try_room(&other, 4 * KIB).is_some(), "others are");
    memory.hold_back(&lazy, false);
    assert!(poll(waiting.as_mut()).is_some());
}

#[test]
fn while_all_is_held_by_who_takes_nothing_small_rooms_are_given_one_at_a_time() {
    let memory = memory(64);
    let mut untaken = memory.hold_untaken();
    untaken.set(100 * KIB);
    let (one, two) = (lane(4), lane(4));
    let room = memory.try_room(&one, 4 * KIB);
    assert!(room.is_some());
    assert!(memory.try_room(&two, 4 * KIB).is_none());
    assert_eq!(memory.output_bytes(), 0);
    drop((room, untaken));
    assert_eq!(memory.held_bytes(), 0);
}

#[test]
fn large_rooms_leave_some_for_small_ones() {
    let memory = memory(1024);
    let large = lane(128);
    let rooms: Vec<AnswerRoom> = std::iter::from_fn(|| memory.try_room(&large, 128 * KIB)).collect();
    assert!(memory.held_bytes() <= 768 * KIB, "{}", memory.held_bytes());
    assert!(rooms.len() > 6, "the less there is the smaller they are: {}", rooms.len());
    assert!(memory.try_room(&lane(4), 4 * KIB).is_some());
}

#[test]
fn a_page_grows_as_long_as_there_is_room_and_ends_when_there_is_none() {
    let memory = memory(1024);
    let page_bytes = memory.page_bytes();
    assert_eq!(page_bytes, 128 * KIB);
    let mut room = memory.try_room(&lane(4), 4 * KIB).expect("room");
    let mut reads = 0;
    loop {
        match room.for_page(reads > 0) {
            ReadRoom::Bytes(bytes) => room.take(bytes),
            ReadRoom::PageIsFull => break,
            ReadRoom::TooMuch => panic!("it can be given in pages"),
        }
        reads += 1;
        assert_eq!(memory.held_bytes(), room.bytes());
    }
    assert_eq!((room.used_bytes(), reads), (page_bytes, 4), "4, 12, 48 and 64 KiB");
    let mut full = memory.hold_untaken();
    full.set(1000 * KIB);
    let mut tight = memory.room_of_its_own();
    tight.take(tight.bytes());
    assert_eq!(tight.for_page(true), ReadRoom::PageIsFull);
    assert_eq!(tight.for_page(false), ReadRoom::Bytes(READ_BYTES_MIN));
}

#[test]
fn an_answer_without_pages_waits_for_the_one_large_room_and_has_an_end_there_too() {
    let memory = memory(64);
    let mut one = memory.room_of_its_own();
    one.take(16 * KIB);
    let large = poll(pin!(one.for_all()));
    assert_eq!(large, Some(ReadRoom::Bytes((1000 - 16) * KIB)));
    assert_eq!(memory.held_bytes(), 0, "it is no longer in the common memory");
    let mut two = memory.room_of_its_own();
    assert!(poll(pin!(one.for_row(900 * KIB))).expect("there already"));
    {
        let mut waiting = pin!(two.for_row(100 * KIB));
        assert!(poll(waiting.as_mut()).is_none() && memory.is_wanted());
        one.take(1000 * KIB);
        assert_eq!(poll(pin!(one.for_all())), Some(ReadRoom::TooMuch));
        // The answer goes to a client, who has to take it first.
        let mut untaken = memory.hold_untaken();
        untaken.take_over(one, 5 * KIB);
        assert!(poll(waiting.as_mut()).is_none());
        untaken.set(0);
        assert_eq!(poll(waiting.as_mut()), Some(true));
    }
    assert_eq!(poll(pin!(two.for_row(2000 * KIB))), Some(false), "more than any answer may have");
}

#[test]
fn who_waits_for_the_large_room_is_not_waited_for() {
    let memory = memory(64);
    let mut holder = memory.room_of_its_own();
    assert_eq!(poll(pin!(holder.for_row(500 * KIB))), Some(true));
    let mut untaken = memory.hold_untaken();
    untaken.take_over(holder, 500 * KIB);
    let mut others = memory.hold_untaken();
    others.set(60 * KIB);
    let client = lane(4);
    let mut waits = memory.try_room(&client, 4 * KIB).expect("small ones have a part");
    {
        let mut large = pin!(waits.for_row(500 * KIB));
        assert!(poll(large.as_mut()).is_none(), "a client that takes nothing has the large room");
        assert!(memory.try_room(&lane(4), 4 * KIB).is_some(), "nothing ends that it could wait for");
    }
    drop(waits);
    drop((untaken, others));
    assert_eq!(memory.held_bytes(), 0);
}
