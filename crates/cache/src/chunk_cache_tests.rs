//! What stays and what goes.

use super::*;

fn data(index: u32) -> ChunkId {
    ChunkId { file: 1, component: Component::Data, index }
}

fn page(index: u32) -> ChunkId {
    ChunkId { file: 1, component: Component::Partitions, index }
}

fn chunk(bytes: usize) -> Chunk {
    Chunk::from(vec![7; bytes])
}

/// Room for that many chunks of 1000 bytes.
fn cache(count: usize) -> Rc<ChunkCache> {
    Rc::new(ChunkCache::new(count * (1000 + ENTRY_BYTES)))
}

/// As a read does: gets the chunk, or fetches and keeps it. Was it there?
fn read(cache: &ChunkCache, id: ChunkId) -> bool {
    let is_there = cache.get(id).is_some();
    if !is_there {
        cache.insert(id, chunk(1000));
    }
    is_there
}

/// All that the cache says of itself must be true.
fn check(cache: &ChunkCache) {
    let state = cache.state.borrow();
    let held: Vec<(&ChunkId, &Slot)> = state.slots.iter().collect();
    let cost = |(_, slot): &(&ChunkId, &Slot)| slot.chunk.len() + ENTRY_BYTES;
    assert_eq!(state.used_bytes, held.iter().map(cost).sum::<usize>());
    assert!(state.used_bytes <= state.capacity_bytes);
    for (class, wants_index) in [(&state.data, false), (&state.index, true)] {
        for (queue, bytes, in_main) in
            [(&class.small, class.small_bytes, false), (&class.main, class.main_bytes, true)]
        {
            let of_queue =
                held.iter().filter(|(id, slot)| is_index(**id) == wants_index && slot.is_in_main == in_main);
            assert_eq!(bytes, of_queue.clone().map(cost).sum::<usize>());
            assert!(of_queue.clone().all(|(id, _)| queue.contains(id)), "whatever is held has its turn");
            assert!(queue.len() >= of_queue.count());
        }
        assert!(class.ghosts.names.len() <= class.ghosts.order.len());
        assert!(class.ghosts.order.len() <= 400);
    }
}

#[test]
fn it_holds_its_budget_and_its_books_whatever_comes() {
    let cache = cache(50);
    let mut seed = 9u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..20_000 {
        let component = if random(3) == 0 { Component::Rows } else { Component::Data };
        let id = ChunkId { file: random(5), component, index: random(60) as u32 };
        if cache.get(id).is_none() {
            cache.insert(id, chunk(random(5000) as usize));
        }
        match random(500) {
            0 => cache.forget(&[random(5), random(5)]),
            1 => cache.set_capacity((1 + random(100) as usize) * 1000, random(2) as usize * 5000),
            _ => {}
        }
        if round % 50 == 0 {
            check(&cache);
        }
    }
    check(&cache);
    let some = cache.chunks_of(&[0, 1, 2]);
    cache.remove(&some[..some.len() / 2]);
    check(&cache);
    cache.forget(&[0, 1, 2, 3, 4]);
    assert_eq!(cache.stats().entry_count, 0);
    assert_eq!(cache.stats().used_bytes, 0);
}

#[test]
fn a_scan_leaves_what_is_hot() {
    let cache = cache(100);
    for _ in 0..3 {
        (0..60).for_each(|index| _ = read(&cache, data(index)));
    }
    for scanned in 1000..11_000 {
        assert!(!read(&cache, data(scanned)));
        if scanned % 5 == 0 {
            read(&cache, data(scanned / 5 % 60));
        }
    }
    let left = (0..60).filter(|index| cache.get(data(*index)).is_some()).count();
    assert_eq!(left, 60, "a scan of a hundred times the cache takes nothing of it");
}

#[test]
fn a_chunk_that_comes_back_soon_is_kept_the_second_time() {
    let cache = cache(100);
    (0..100).for_each(|index| _ = read(&cache, data(index)));
    read(&cache, data(0));
    // Pushed out of the small queue, and back while its name is known.
    (200..260).for_each(|index| _ = read(&cache, data(index)));
    assert!(!read(&cache, data(1)));
    (300..400).for_each(|index| _ = read(&cache, data(index)));
    assert!(read(&cache, data(1)));
}

#[test]
fn index_pages_outlive_data_until_they_are_most_of_it() {
    let cache = cache(100);
    (0..70).for_each(|index| _ = read(&cache, page(index)));
    // Read at random, every index page is asked for far more often than any chunk of Data.
    for index in 0..5000 {
        read(&cache, data(index));
        assert!(read(&cache, page(index % 70)), "page {} went at {index}", index % 70);
    }
    (100..1000).for_each(|index| _ = read(&cache, page(index)));
    let stats = cache.stats();
    assert!(stats.index_bytes <= stats.capacity_bytes * 8 / 10, "{stats:?}");
    check(&cache);
}

#[test]
fn index_pages_that_nobody_wants_go_in_the_end() {
    let cache = cache(100);
    for _ in 0..3 {
        (0..60).for_each(|index| _ = read(&cache, page(index)));
    }
    // A push through the index class brings them from the small into the main queue.
    (100..120).for_each(|index| _ = read(&cache, page(index)));
    (0..60_000).for_each(|index| _ = read(&cache, data(index)));
    let left = (0..60).filter(|index| cache.get(page(*index)).is_some()).count();
    assert!(left < 60, "{left} are left");
    check(&cache);
}

#[test]
fn too_large_a_chunk_and_no_room_at_all_are_no_trouble() {
    let cache = ChunkCache::new(0);
    assert!(!read(&cache, data(1)) && !read(&cache, data(1)));
    let cache = self::cache(2);
    read(&cache, data(1));
    cache.insert(data(2), chunk(1 << 20));
    assert!(read(&cache, data(1)));
    cache.set_capacity(0, 0);
    check(&cache);
}

#[test]
fn what_nobody_asked_for_makes_room_for_what_is_written_from_it() {
    let cache = cache(10);
    (0..10).for_each(|index| _ = read(&cache, data(index)));
    (0..3).for_each(|index| _ = read(&cache, data(index)));
    let mut spare = cache.reserve(6 * (1000 + ENTRY_BYTES));
    assert_eq!(spare.bytes(), 0);
    assert!((0..5).all(|index| spare.hand_out(data(index)) == Some(chunk(1000))));
    assert_eq!(spare.take_over(), 2 * (1000 + ENTRY_BYTES), "three were asked for again");
    assert_eq!(spare.hand_out(data(4)), None, "it went");
    assert!((5..10).all(|index| spare.hand_out(data(index)).is_some()));
    assert_eq!(spare.take_over(), 4 * (1000 + ENTRY_BYTES), "no more than is wanted");
    assert!(spare.hand_out(data(9)).is_some(), "it stayed, since it was of no use as room");
    check(&cache);
    // Some come again, and more: their names are in the queue twice.
    (0..40).for_each(|index| _ = read(&cache, data(index % 20)));
    check(&cache);
    assert!(cache.stats().entry_count <= 4);
    drop(spare);
    (0..60).for_each(|index| _ = read(&cache, data(index % 20)));
    check(&cache);
}

#[test]
fn a_reservation_takes_only_what_is_free_and_gives_it_back() {
    let cache = cache(10);
    (0..6).for_each(|index| _ = read(&cache, data(index)));
    let spare = cache.reserve(usize::MAX);
    assert_eq!(spare.bytes(), 4 * (1000 + ENTRY_BYTES));
    assert_eq!(cache.reserve(1).bytes(), 0, "all of it is kept back");
    (6..20).for_each(|index| _ = read(&cache, data(index)));
    check(&cache);
    assert_eq!(cache.stats().entry_count, 6);
    drop(spare);
    (100..110).for_each(|index| cache.insert_if_free(data(index), chunk(1000)));
    check(&cache);
    assert_eq!(cache.stats().entry_count, 10, "nothing went for it");
    let spare = cache.reserve(5000);
    cache.set_capacity(0, 5000);
    assert_eq!(cache.reserve(5000).bytes(), 0, "what is borrowed is not promised");
    cache.set_capacity(0, 0);
    drop(spare);
    check(&cache);
}

#[test]
fn a_sum_that_is_wrong_is_seen_at_the_next_change() {
    let cache = cache(10);
    cache.insert(data(1), chunk(1000));
    cache.state.borrow_mut().used_bytes += 1;
    let broken = runtime::caught(|| cache.insert(data(2), chunk(1000))).expect_err("it is seen");
    assert!(broken.what.contains("what is used is what the four queues hold"), "{broken}");
}
