//! Who comes to the port where nodes listen for each other and is none of them (`docs/formats/messages.md`).
//!
//! With a shared secret a stranger gets no further than the handshake. Without one whoever knows the cluster's name
//! does, and can say what a node may say; then what is said must still not cost more than there is room for.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::arena::Arena;
use super::place::storage_address;
use crate::crash::Dice;
use crate::report::Failure;

const MAGIC: &[u8] = b"PERIpeer";
const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const PROOF: u8 = 3;
/// As `peristyle cluster` calls every ring.
const CLUSTER_NAME: &str = "Peristyle Cluster";
const REQUEST: u8 = 1;
/// On an urgent connection: do you know of a ring?
const RING_QUESTION: &[u8] = b"\x02\x01\x02\"ring\"";
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections of a worker that say nothing.
const SILENT_COUNT: usize = 150;

/// Does what can be done without the secret: noise, half of a talk, lengths that nothing follows, another's proof.
pub(super) fn stranger(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut socket = connect()?;
    let has_secret = dice.between(0, 4) != 0;
    let hello = hello(dice, has_secret);
    match dice.between(0, 6) {
        0 => socket.write_all(&noise(dice, 100_000))?,
        1 => socket.write_all(&hello[..dice.between(0, hello.len() as u64) as usize])?,
        // As long as a message of the handshake may be, and it does not come.
        2 => socket.write_all(&[MAGIC, &[HELLO, 0xff, 0xff], &noise(dice, 60_000)].concat())?,
        3 => {
            let mut damaged = hello;
            let at = dice.between(0, damaged.len() as u64) as usize;
            damaged[at] ^= dice.next().to_le_bytes()[0] | 1;
            socket.write_all(&damaged)?;
        }
        4 => {
            socket.write_all(&hello)?;
            expect_end(arena, &mut socket, &[step(PROOF, &noise(dice, 33)), noise(dice, 1_000)].concat())?;
        }
        _ => {
            socket.write_all(&hello)?;
            let proof: Vec<u8> = (0..32).map(|_| dice.next().to_le_bytes()[0]).collect();
            let frame = frame(0, &message(RING_QUESTION));
            expect_end(arena, &mut socket, &[step(PROOF, &proof), frame].concat())?;
        }
    }
    arena.sleep(Duration::from_millis(dice.between(0, 200)));
    Ok(1)
}

/// Opens many connections and says nothing on them, or the half of a hello; those that are closed are opened anew.
pub(super) fn silent(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut sockets = Vec::new();
    for _ in 0..SILENT_COUNT {
        let mut socket = connect()?;
        let hello = hello(dice, false);
        socket.write_all(&hello[..dice.between(0, hello.len() as u64) as usize])?;
        sockets.push(socket);
    }
    arena.sleep(Duration::from_millis(dice.between(500, 3_000)));
    Ok(SILENT_COUNT as u64)
}

/// Says to be a node of the ring, which nobody can disprove where there is no secret; then asks without end and never
/// listens, says how much comes and sends nothing, sends frames that do not check, or what no node would say.
pub(super) fn impostor(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut socket = connect()?;
    socket.write_all(&[hello(dice, false), step(PROOF, &[0; 32])].concat())?;
    let mut welcome = [0; MAGIC.len() + 1];
    socket.read_exact(&mut welcome)?;
    if welcome[MAGIC.len()] != WELCOME {
        arena.wrong("what this program says is no hello any more".to_owned());
    }
    match dice.between(0, 4) {
        0 => {
            let many = message(RING_QUESTION).repeat(1_000);
            for number in 0..2_000 {
                socket.write_all(&frame(number, &many))?;
                if arena.is_over() {
                    break;
                }
            }
        }
        1 => {
            // As long as a frame may be, with a check that is right.
            let lengths = [(32u32 << 20).to_le_bytes(), 0u32.to_le_bytes()].concat();
            let check = head_check(0, &lengths);
            socket
                .write_all(&[&lengths[..], &check.to_le_bytes(), &[0; 4], &noise(dice, 50_000)].concat())?;
            arena.sleep(Duration::from_secs(2));
        }
        2 => {
            let mut damaged = frame(0, &message(RING_QUESTION));
            let at = dice.between(0, damaged.len() as u64) as usize;
            damaged[at] ^= dice.next().to_le_bytes()[0] | 1;
            socket.write_all(&damaged)?;
        }
        _ => {
            for number in 0..200 {
                socket.write_all(&frame(number, &message(&noise(dice, 20_000))))?;
                if arena.is_over() {
                    break;
                }
            }
        }
    }
    Ok(1)
}

fn connect() -> Result<TcpStream, Failure> {
    let socket = TcpStream::connect(storage_address())?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Sends the rest of a talk: who does not know the secret must be sent away then.
fn expect_end(arena: &Arena, socket: &mut TcpStream, rest: &[u8]) -> Result<(), Failure> {
    let mut welcome = [0; 512];
    if socket.read(&mut welcome)? == 0 {
        return Ok(());
    }
    socket.write_all(rest)?;
    loop {
        match socket.read(&mut welcome) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                arena.wrong("a stranger without the secret is not sent away".to_owned());
                return Ok(());
            }
            Err(_) => return Ok(()),
        }
    }
}

/// Bytes of any kind, up to so many.
fn noise(dice: &mut Dice, most: u64) -> Vec<u8> {
    (0..dice.between(1, most)).map(|_| dice.next().to_le_bytes()[0]).collect()
}

/// A message of the handshake.
fn step(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_le_bytes();
    let mut bytes = [MAGIC, &[kind], &length, body].concat();
    let check = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes
}

/// What a node says first, here one of any id that wants to talk on an urgent connection.
fn hello(dice: &mut Dice, has_secret: bool) -> Vec<u8> {
    const URGENT: u8 = 2;
    let mut body = Vec::new();
    for version in [1u16, 1] {
        body.extend_from_slice(&version.to_le_bytes());
    }
    // Its id, how often it was started, its cluster's id: it has not joined.
    body.extend_from_slice(&[dice.next().to_le_bytes(), dice.next().to_le_bytes()].concat());
    body.extend_from_slice(&1u64.to_le_bytes());
    body.extend_from_slice(&[0; 16]);
    body.extend_from_slice(&1u16.to_le_bytes());
    body.push(URGENT);
    body.extend_from_slice(&[0; 4]);
    body.extend_from_slice(&[u8::from(has_secret), 0]);
    (0..4).for_each(|_| body.extend_from_slice(&dice.next().to_le_bytes()));
    body.extend_from_slice(&(CLUSTER_NAME.len() as u16).to_le_bytes());
    body.extend_from_slice(CLUSTER_NAME.as_bytes());
    step(HELLO, &body)
}

fn message(body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![REQUEST];
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.extend_from_slice(&1_000_000u32.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn head_check(number: u64, lengths: &[u8]) -> u32 {
    crc32fast::hash(&[&number.to_le_bytes()[..], lengths].concat())
}

/// A frame with these messages, the one of that number on its connection.
fn frame(number: u64, messages: &[u8]) -> Vec<u8> {
    let payload = [&[0; 24][..], messages].concat();
    let lengths = [(payload.len() as u32).to_le_bytes(), 0u32.to_le_bytes()].concat();
    let head = head_check(number, &lengths);
    let mut check = crc32fast::Hasher::new_with_initial(head);
    check.update(&payload);
    [&lengths[..], &head.to_le_bytes(), &check.finalize().to_le_bytes(), &payload].concat()
}
