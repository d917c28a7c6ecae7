//! Clients that keep to no rule: they stall in every place, or send what nobody asks for.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use super::arena::Arena;
use super::scenarios::connect;
use crate::crash::Dice;
use crate::report::Failure;

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
        1 => (arena.port(), [STARTUP, LARGE].concat()),
        2 => (arena.port(), [STARTUP, QUERY, QUERY, QUERY].concat()),
        // As version 5 does, up to the middle of a segment.
        3 => (arena.port(), [b"\x05".as_slice(), &STARTUP[1..], b"\xff\xff\x02"].concat()),
        _ => (arena.port(), (0..64).map(|_| dice.next().to_le_bytes()[0]).collect()),
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
