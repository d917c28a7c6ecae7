//! Clients that keep to no rule: they stall in every place, or send what nobody asks for.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use super::arena::Arena;
use super::scenarios::{connect, largest_request_bytes, page_of};
use crate::crash::Dice;
use crate::measure::statements;
use crate::report::Failure;
use crate::wire::{Answer, Request};

const STARTUP: &[u8] = b"\x04\0\0\x01\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0";
const QUERY: &[u8] =
    b"\x04\0\0\x02\x07\0\0\0\x31\0\0\0\x2aSELECT * FROM system.local WHERE key='local'\0\x01\0";
/// A frame that says it is 4 MB long, of which nothing comes.
const LARGE: &[u8] = b"\x04\0\0\x03\x07\0\x3d\x09\0\0\0\0\x10INSERT";
const MANAGEMENT: &[u8] =
    b"POST /v1/flush HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";

/// Sends a part of what is right, waits, and goes.
pub(super) fn stall(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let (port, bytes) = match dice.between(0, 5) {
        0 => (arena.management_port, MANAGEMENT.to_vec()),
        1 => (arena.port, [STARTUP, LARGE].concat()),
        2 => (arena.port, [STARTUP, QUERY, QUERY, QUERY].concat()),
        // As version 5 does, up to the middle of a segment.
        3 => (arena.port, [b"\x05".as_slice(), &STARTUP[1..], b"\xff\xff\x02"].concat()),
        _ => (arena.port, (0..64).map(|_| dice.next().to_le_bytes()[0]).collect()),
    };
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.write_all(&bytes[..dice.between(0, bytes.len() as u64 + 1) as usize])?;
    arena.sleep(Duration::from_millis(dice.between(0, 5_000)));
    Ok(1)
}

/// Thousands of frames of one kind, right or wrong, and few of the answers are read.
pub(super) fn flood(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    const REGISTER: &[u8] = b"\0\x03\0\x0fTOPOLOGY_CHANGE\0\x0dSTATUS_CHANGE\0\x0dSCHEMA_CHANGE";
    let mut connection = connect(arena)?;
    let noise: Vec<u8> = (0..dice.between(1, 20_000)).map(|_| dice.next().to_le_bytes()[0]).collect();
    let text =
        "SELECT key, cluster_name, tokens FROM system.local".to_owned() + &" ".repeat(noise.len() % 5_000);
    let text = [&(text.len() as u32).to_be_bytes()[..], text.as_bytes(), &[0, 1, 0]].concat();
    let (opcode, body): (u8, &[u8]) = match dice.between(0, 8) {
        0 => (0x05, &[]),
        1 => (0x0b, REGISTER),
        2 => (0x0f, &noise),
        3 => (0x07, &noise),
        4 => (0x0d, &noise),
        5 => (0x0a, &noise),
        6 => (dice.next().to_le_bytes()[0] & 0x1f, &noise),
        _ => (0x07, &text),
    };
    for count in 0..2_000 {
        connection.send(count, opcode, body)?;
        if arena.is_over() {
            return Ok(u64::from(count));
        }
    }
    Ok(2_000)
}

/// Powers of ten of up to as many digits as the largest frame has room for.
const EXPONENTS: [usize; 4] = [10_000, 300_000, 3_000_000, 30_000_000];

/// Rows whose places are told apart by their digits alone, if somebody sends the digits.
pub(super) fn numbered_rows(arena: &Arena) -> Result<(), Failure> {
    let table = "CREATE TABLE a.d (p int, c decimal, PRIMARY KEY (p, c))".to_owned();
    let row = |exponent| format!("INSERT INTO a.d (p, c) VALUES (1, 1e{exponent})");
    let rows = EXPONENTS.into_iter().map(row);
    statements(&arena.address, &[arena.keyspace("a"), table].into_iter().chain(rows).collect::<Vec<_>>())
}

/// Hands back paging states that nobody gave: places of numbers with millions of digits, flipped bytes, noise.
pub(super) fn forge_states(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    /// Behind version, counts, a key of four bytes and the word that a clustering comes.
    const CLUSTERING_AT: usize = 16;
    let mut connection = connect(arena)?;
    let number_bytes_max = largest_request_bytes(&mut connection)? as usize - 4096;
    let answer = connection.query("SELECT p, c FROM a.d WHERE p = 1", &page_of(2))?.answer;
    let given = if let Answer::Rows(rows) = answer { rows.metadata.paging_state } else { None };
    let Some(given) = given.filter(|state| state.len() > CLUSTERING_AT) else {
        arena.wrong("four rows in pages of two: no paging state".to_owned());
        return Ok(1);
    };
    for count in 0..20 {
        let mut state = given.clone();
        let at = dice.between(0, state.len() as u64) as usize;
        match dice.between(0, 4) {
            0 => state[at] = dice.next().to_le_bytes()[0],
            1 => state.truncate(at),
            _ => {
                // A byte is about 2.4 digits.
                let exponent = EXPONENTS[dice.between(0, EXPONENTS.len() as u64) as usize];
                let number = vec![1; (exponent * 5 / 12).min(number_bytes_max)];
                state.truncate(CLUSTERING_AT);
                state.extend_from_slice(&(4 + number.len() as u32).to_be_bytes());
                state.extend_from_slice(&[0; 4]);
                state.extend_from_slice(&number);
            }
        }
        let order = ["", " WHERE p = 1", " WHERE p = 1 ORDER BY c DESC"][dice.between(0, 3) as usize];
        let request = Request { paging_state: Some(state), ..page_of(2) };
        connection.query(&format!("SELECT p, c FROM a.d{order}"), &request)?;
        if arena.is_over() {
            return Ok(count);
        }
    }
    Ok(20)
}
