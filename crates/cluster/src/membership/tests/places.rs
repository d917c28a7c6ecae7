//! Members that are elsewhere than they were, and nodes that take the places of others.

use std::net::{IpAddr, Ipv4Addr};

use super::*;

/// Where nobody is, as somebody mistypes an address.
const NOBODYS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4)), 7000);

/// The node with the addresses of another place.
fn at(node: usize, place: usize) -> Candidate {
    let Candidate { address, cql_address, .. } = member(place);
    Candidate { address, cql_address, ..member(node) }
}

#[test]
fn a_member_with_other_addresses_takes_part_again_and_is_found_there() {
    run(async {
        let world = World::new(3);
        let mut nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        let mut events = nodes[0].known.events();
        drop(nodes.remove(2));
        sleep(Duration::from_secs(5)).await;
        nodes.push(world.start_as(2, at(2, 7), &[]));
        timeout(Duration::from_secs(10), nodes[2].known.may_serve()).await.expect("it is found");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.epochs(), [(0, 4); 3], "it is agreed on once");
        let (was, is) = (member(2).cql_address, member(7).cql_address);
        let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
        assert_eq!(told, [Event::Down(was), Event::Left(was), Event::Joined(is), Event::Up(is)]);
        // Two are enough, and one of them is the one that is elsewhere.
        drop(nodes.remove(1));
        sleep(Duration::from_secs(10)).await;
        nodes[1].change(0, keyspace("k")).await.expect("they agree");
        nodes[0].change(1, keyspace("l")).await.expect("they agree");
    });
}

#[test]
fn a_whole_ring_with_other_addresses_finds_together_by_its_seeds() {
    run(async {
        let world = World::new(3);
        drop(world.ring().await);
        sleep(Duration::from_secs(1)).await;
        // Only the first is a seed: the others find each other by what it tells them.
        let nodes: Vec<_> = (0..3).map(|node| world.start_as(node, at(node, node + 10), &[10])).collect();
        for node in &nodes {
            timeout(Duration::from_secs(60), node.known.may_serve()).await.expect("it is found");
        }
        nodes[2].change(0, keyspace("k")).await.expect("agreed");
        let members = nodes[0].known.members().expect("a ring");
        let addresses = members.list().iter().map(|member| member.candidate.address);
        assert!(addresses.eq((10..13).map(address)));
    });
}

#[test]
fn members_that_have_changed_their_addresses_with_each_other_are_found() {
    run(async {
        let world = World::new(3);
        drop(world.ring().await);
        sleep(Duration::from_secs(1)).await;
        let nodes =
            [(0, 1), (1, 2), (2, 0)].map(|(node, place)| world.start_as(node, at(node, place), &[0, 1]));
        for node in &nodes {
            timeout(Duration::from_secs(60), node.known.may_serve()).await.expect("it is found");
        }
        nodes[1].change(0, keyspace("k")).await.expect("agreed");
        assert!(nodes.iter().all(|node| node.failed.borrow().is_none()));
    });
}

#[test]
fn an_empty_node_takes_the_place_of_a_dead_member_and_serves_when_it_has_its_rows() {
    run(async {
        let mut world = World::new(3);
        let mut nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        nodes[0].change(0, keyspace("k")).await.expect("agreed");
        nodes[0].change(1, table("k")).await.expect("agreed");
        let mut events = nodes[0].known.events();
        drop(nodes.remove(2));
        sleep(Duration::from_secs(5)).await;
        let ghost = world.disks[2].clone();
        let ghost_metadata = world.metadata[2].borrow().clone();
        nodes.push(world.replace(2, 33, &[0, 2]));
        nodes[2].is_in().await;
        sleep(Duration::from_secs(20)).await;
        let id = candidate(33).host_id;
        let state =
            |nodes: &[Running]| nodes[0].known.members().expect("a ring").get(id).map(|member| member.state);
        assert_eq!(state(&nodes), Some(MemberState::Joining));
        assert!(!nodes[0].known.other(id).is_up(), "nobody is served by it");
        assert_eq!(nodes[0].known.fence(), 4);
        nodes[2].proposer.propose(Command::Filled { host_id: id }).await.expect("agreed");
        timeout(Duration::from_secs(1), nodes[2].known.may_serve()).await.expect("it has its rows");
        sleep(Duration::from_secs(1)).await;
        assert_eq!((state(&nodes), world.epochs()), (Some(MemberState::Normal), vec![(2, 5); 3]));
        let address = member(2).cql_address;
        let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
        assert_eq!(
            told,
            [Event::Down(address), Event::Left(address), Event::Joined(address), Event::Up(address)]
        );
        // It votes, and who had its place does not.
        drop(nodes.remove(1));
        sleep(Duration::from_secs(10)).await;
        nodes[1].change(2, keyspace("l")).await.expect("they agree");
        // That one comes back, elsewhere.
        world.disks[1] = ghost;
        *world.metadata[1].borrow_mut() = ghost_metadata;
        let ghost = world.start_as(1, at(2, 8), &[0]);
        sleep(Duration::from_secs(20)).await;
        let ended = ghost.failed.borrow();
        assert!(matches!(&*ended, Some(MembershipError::Removed { .. })), "{ended:?}");
        assert!(!ghost.known.is_serving());
    });
}

/// It hears its leader, and learns by its own log that its place was taken: it went on as if it were alone.
#[test]
fn a_withdrawn_member_whose_place_is_taken_ends() {
    run(async {
        let world = World::new(4);
        let nodes = [0, 1, 2].map(|node| world.start(node, &[0]));
        for node in &nodes {
            node.is_in().await;
        }
        sleep(Duration::from_secs(5)).await;
        nodes[2].known.withdraw(true);
        sleep(FAREWELL).await;
        let newcomer = Candidate { host_id: candidate(44).host_id, ..member(3) };
        let newcomer = world.start_with(3, newcomer, &[0], (Vec::new(), Some(address(2))));
        newcomer.is_in().await;
        sleep(Duration::from_secs(5)).await;
        let ended = nodes[2].failed.borrow();
        assert!(matches!(&*ended, Some(MembershipError::LeftOut)), "{ended:?}");
        assert!(nodes[..2].iter().all(|node| node.failed.borrow().is_none()));
    });
}

#[test]
fn a_ring_that_has_lost_most_voters_goes_on_by_force_and_others_take_the_places_of_the_lost() {
    run(async {
        let mut world = World::new(3);
        let nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        nodes[0].change(0, keyspace("k")).await.expect("agreed");
        nodes[0].change(1, table("k")).await.expect("agreed");
        drop(nodes);
        sleep(Duration::from_secs(1)).await;
        let stopped = |world: &World| {
            let disk: Arc<dyn Disk> = Arc::new(world.disks[1].clone());
            StoppedMember::read(&disk, Path::new("/node/agreement"), member(1).host_id, Arc::default())
        };
        let found = stopped(&world).expect("a member");
        assert_eq!((found.voters()[0].len(), found.voters().len(), found.members().epoch()), (3, 1, 3));
        let refused = |survivors: &[usize]| {
            let survivors: Vec<SocketAddr> = survivors.iter().copied().map(address).collect();
            found.lost(&survivors).map(|lost| lost.len()).map_err(|error| error.to_string())
        };
        assert!(refused(&[0, 1]).expect_err("two of three").contains("they are a majority"));
        assert!(refused(&[0]).expect_err("another").contains("is not among the survivors"));
        assert!(
            refused(&[1, 9]).expect_err("nobody").contains("no member of the ring is at 127.0.0.10:7000")
        );
        assert_eq!(refused(&[1]), Ok(2));
        let random = runtime::SeededRandom::new(3);
        found.recover(&[address(1)], &random).expect("written");
        let survivor = world.start(1, &[0]);
        timeout(Duration::from_secs(10), survivor.known.may_serve()).await.expect("it serves");
        survivor.change(2, keyspace("l")).await.expect("it is a majority of itself");
        // Both places can be taken, though no majority of their rows is left: that was lost before.
        let nodes = [(0, 31), (2, 33)].map(|(node, id)| world.replace(node, id, &[1]));
        for node in &nodes {
            node.is_in().await;
        }
        let ids = [31, 33].map(|id| candidate(id).host_id);
        for host_id in ids {
            survivor.proposer.propose(Command::Filled { host_id }).await.expect("agreed");
        }
        for node in &nodes {
            timeout(Duration::from_secs(10), node.known.may_serve()).await.expect("it has its rows");
        }
        sleep(Duration::from_secs(5)).await;
        drop(survivor);
        sleep(Duration::from_secs(10)).await;
        nodes[0].change(3, keyspace("m")).await.expect("two of three agree");
        assert_eq!(nodes[1].known.schema_epoch(), 4);
    });
}

#[test]
fn a_lost_member_that_comes_back_ends_and_another_survivor_takes_part() {
    run(async {
        let world = World::new(5);
        let nodes = world.ring().await;
        sleep(Duration::from_secs(10)).await;
        nodes[0].change(0, keyspace("k")).await.expect("agreed");
        drop(nodes);
        sleep(Duration::from_secs(1)).await;
        let read = |node: usize| {
            let disk: Arc<dyn Disk> = Arc::new(world.disks[node].clone());
            let read = StoppedMember::read(
                &disk,
                Path::new("/node/agreement"),
                member(node).host_id,
                Arc::default(),
            );
            read.expect("a member")
        };
        let best = if read(3).last() >= read(4).last() { 3 } else { 4 };
        let survivors = [address(3), address(4)];
        read(best).recover(&survivors, &runtime::SeededRandom::new(3)).expect("written");
        let nodes = [3, 4].map(|node| world.start(node, &[0]));
        for node in &nodes {
            timeout(Duration::from_secs(30), node.known.may_serve()).await.expect("it serves");
        }
        sleep(Duration::from_secs(10)).await;
        nodes[0].change(1, keyspace("l")).await.expect("both agree");
        let lost = world.start(1, &[0]);
        sleep(Duration::from_secs(20)).await;
        assert!(matches!(&*lost.failed.borrow(), Some(MembershipError::Removed { .. })));
        assert_eq!(nodes[1].known.schema_epoch(), 2);
    });
}

/// They were the majority, and took the survivors over when they came back.
#[test]
fn those_that_were_given_up_come_back_all_together_and_change_nothing_at_the_survivors() {
    run(async {
        let mut world = World::new(5);
        let nodes = world.ring().await;
        sleep(Duration::from_secs(10)).await;
        nodes[0].change(0, keyspace("k")).await.expect("agreed");
        drop(nodes);
        sleep(Duration::from_secs(1)).await;
        let read = |node: usize| {
            let disk: Arc<dyn Disk> = Arc::new(world.disks[node].clone());
            let (directory, host_id) = (Path::new("/node/agreement"), member(node).host_id);
            StoppedMember::read(&disk, directory, host_id, Arc::default()).expect("a member")
        };
        let best = if read(3).last() >= read(4).last() { 3 } else { 4 };
        let survivors = [address(3), address(4)];
        read(best).recover(&survivors, &runtime::SeededRandom::new(3)).expect("written");
        let survivors = [3, 4].map(|node| world.start(node, &[3]));
        for node in &survivors {
            timeout(Duration::from_secs(30), node.known.may_serve()).await.expect("it serves");
        }
        survivors[0].change(1, keyspace("l")).await.expect("both agree");
        // One has its place taken before.
        let (disk, metadata) = (world.disks[0].clone(), world.metadata[0].borrow().clone());
        let newcomer = world.replace(0, 44, &[3]);
        newcomer.is_in().await;
        drop(newcomer);
        sleep(Duration::from_secs(1)).await;
        world.disks[0] = disk;
        *world.metadata[0].borrow_mut() = metadata;
        let epoch = survivors[0].known.ring_epoch();
        let _lost = [0, 1, 2].map(|node| world.start(node, &[0]));
        sleep(Duration::from_secs(60)).await;
        for node in &survivors {
            assert!(node.failed.borrow().is_none(), "{:?}", node.failed.borrow());
            assert_eq!((node.known.schema_epoch(), node.known.ring_epoch()), (2, epoch));
        }
        survivors[1].change(2, keyspace("m")).await.expect("they agree as before");
    });
}

#[test]
fn who_lives_keeps_its_place_and_nobody_takes_one_that_is_not_there() {
    run(async {
        let world = World::new(4);
        let nodes: Vec<_> = (0..3).map(|node| world.start(node, &[0])).collect();
        for node in &nodes {
            node.is_in().await;
        }
        sleep(Duration::from_secs(5)).await;
        let newcomer = Candidate { host_id: candidate(44).host_id, ..member(3) };
        let refused = async |replaces: usize, history: Vec<Transformation>, seeds: &[usize]| {
            let options = (history, Some(address(replaces)));
            let node = world.start_with(3, newcomer.clone(), seeds, options);
            sleep(Duration::from_secs(20)).await;
            let failed = node.failed.take();
            drop(node);
            sleep(Duration::from_secs(1)).await;
            failed.expect("it fails").to_string()
        };
        let why = refused(1, Vec::new(), &[0]).await;
        assert!(why.contains("is alive, and keeps its place"), "{why}");
        let why = refused(0, Vec::new(), &[0]).await;
        assert!(why.contains("is alive, and keeps its place"), "{why}");
        let why = refused(7, Vec::new(), &[0]).await;
        assert!(why.contains("no member of the ring is at 127.0.0.8:7000"), "{why}");
        let why = refused(1, vec![keyspace("own")], &[0]).await;
        assert!(why.contains("empty directory"), "{why}");
        let why = refused(1, Vec::new(), &[3]).await;
        assert!(why.contains("needs a seed"), "{why}");
        assert_eq!(nodes[0].known.members().expect("a ring").epoch(), 3, "nothing has changed");
    });
}

/// What a member has claimed in a life before would hide where it is now.
#[test]
fn a_member_that_is_back_where_it_was_is_found_there() {
    run(async {
        let world = World::new(3);
        let mut nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        drop(nodes.remove(2));
        drop(nodes.remove(1));
        // Alone with another member it can not have it agreed on.
        let elsewhere = world.start_as(2, at(2, 7), &[]);
        sleep(Duration::from_millis(50)).await;
        drop(elsewhere);
        nodes.push(world.start(1, &[0]));
        nodes.push(world.start(2, &[0]));
        sleep(Duration::from_secs(10)).await;
        assert!(nodes[0].known.other(member(2).host_id).is_up());
        drop(nodes.remove(1));
        sleep(Duration::from_secs(10)).await;
        nodes[0].change(0, keyspace("k")).await.expect("they agree");
    });
}

/// What nobody had reached was agreed on; and started again in its place, the member told nobody, for its own history
/// was old: it served clients, cut off for ever.
#[test]
fn a_place_where_nobody_is_reached_is_not_agreed_on_and_a_right_start_heals_it() {
    run(async {
        let world = World::new(3);
        let mut nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        drop(nodes.remove(2));
        sleep(Duration::from_secs(2)).await;
        let mistyped = Candidate { address: NOBODYS, ..member(2) };
        let node = world.start_behind(address(2), 2, mistyped.clone(), &[0], (Vec::new(), None));
        sleep(Duration::from_secs(20)).await;
        assert!(!node.known.is_serving() && node.failed.borrow().is_none());
        assert_eq!(nodes[0].known.ring_epoch(), 3, "nothing is agreed on");
        drop(node);
        // Of an earlier program it was.
        let presences = BTreeMap::from([(member(2).host_id, mistyped.presence())]);
        nodes[0].proposer.propose(Command::Present { presences }).await.expect("agreed");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(nodes[0].known.ring_epoch(), 4);
        let again = world.start(2, &[]);
        timeout(Duration::from_secs(10), again.known.may_serve()).await.expect("it is found");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.epochs(), [(0, 5); 3], "where it is, is agreed on");
        assert!(nodes.iter().chain([&again]).all(|node| {
            let mut others =
                (0..3).map(|other| member(other).host_id).filter(|id| *id != node.known.host_id());
            others.all(|other| node.known.other(other).is_up())
        }));
    });
}

/// Both had the place of the other taken, tens of times, and the one that was started first lost it.
#[test]
fn a_copy_of_a_member_that_lives_ends_and_the_member_stays() {
    run(async {
        let mut world = World::new(3);
        let nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        world.disks.push(world.disks[2].kill());
        let metadata = world.metadata[2].borrow().clone();
        world.metadata.push(Rc::new(RefCell::new(metadata)));
        for place in [7, 2] {
            let copy = world.start_behind(address(7), 3, at(2, place), &[0], (Vec::new(), None));
            sleep(Duration::from_secs(10)).await;
            let why = copy.failed.take().expect("it ends").to_string();
            let lives = format!("node {} lives at 127.0.0.3:7000, and another one", member(2).host_id);
            assert!(why.contains(&lives), "{why}");
            assert!(!copy.known.is_serving());
        }
        sleep(Duration::from_secs(2)).await;
        assert_eq!(nodes.iter().map(|node| node.known.ring_epoch()).collect::<Vec<_>>(), [3; 3]);
        assert!(nodes.iter().all(|node| node.failed.borrow().is_none()));
        assert!(nodes[0].known.other(member(2).host_id).is_up());
        nodes[2].change(0, keyspace("k")).await.expect("agreed");
    });
}

/// It became a member that was always away.
#[test]
fn a_node_that_nobody_reaches_is_not_let_in() {
    run(async {
        let world = World::new(2);
        let first = world.start(0, &[0]);
        first.is_in().await;
        let mistyped = Candidate { address: NOBODYS, ..member(1) };
        let node = world.start_behind(address(1), 1, mistyped, &[0], (Vec::new(), None));
        sleep(Duration::from_secs(15)).await;
        let failed = node.failed.take().expect("it ends").to_string();
        assert!(failed.contains("the node at 127.0.0.1:7000 can not reach it at 1.2.3.4:7000"), "{failed}");
        drop(node);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(first.known.ring_epoch(), 1);
        world.start(1, &[0]).is_in().await;
    });
}

#[test]
fn a_lost_member_is_removed_and_does_not_vote_any_more() {
    run(async {
        let world = World::new(3);
        let mut nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        let lost = nodes.remove(2).known.host_id();
        nodes[1].proposer.propose(Command::Remove { host_id: lost }).await.expect("agreed");
        sleep(Duration::from_secs(5)).await;
        assert_eq!(nodes[0].known.members().expect("a ring").list().len(), 2);
        nodes[0].change(0, keyspace("k")).await.expect("agreed");
        // Started again, it hears of it.
        let again = world.start(2, &[0]);
        sleep(Duration::from_secs(20)).await;
        let ended = again.failed.borrow();
        assert!(matches!(&*ended, Some(MembershipError::Removed { .. })), "{ended:?}");
    });
}

/// It served its own clients beside the ring that it was told of.
#[test]
fn a_member_of_another_cluster_than_its_seeds_ends() {
    run(async {
        let world = World::new(2);
        let first = world.start(0, &[]);
        first.is_in().await;
        let other = world.start(1, &[]);
        other.is_in().await;
        drop(other);
        sleep(Duration::from_secs(1)).await;
        let other = world.start(1, &[0]);
        sleep(Duration::from_secs(5)).await;
        let ended = other.failed.take();
        assert!(matches!(ended, Some(MembershipError::OtherCluster { .. })), "{ended:?}");
        assert!(!other.known.is_serving());
        // Seeds that are not there say nothing.
        drop(first);
        sleep(Duration::from_secs(1)).await;
        let alone = world.start(1, &[0]);
        timeout(Duration::from_secs(5), alone.known.may_serve()).await.expect("it goes on alone");
    });
}
