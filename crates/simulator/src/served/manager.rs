//! Somebody who manages a node while clients use it: flushes, compactions, snapshots, over the management port.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::PATIENCE;
use super::tables::Table;
use super::tenant::Tenant;
use super::{clients_address, node_address};
use crate::dice::Dice;
use crate::scenario::Violation;
use crate::ways::Way;

/// Where the management port is.
pub(super) const PORT: u16 = 7199;

impl Tenant {
    /// Asks for something now and then: of what clients see nothing changes by it.
    pub(super) async fn manage(&self, dice: &Dice, reads_may_fail: bool) -> Result<(), Violation> {
        for number in 0..dice.below(4) {
            tokio::time::sleep(Duration::from_millis(dice.between(1, 2_000))).await;
            let (path, body) = wanted(dice, number);
            let status = match tokio::time::timeout(PATIENCE, self.post(path, &body)).await {
                Ok(Ok(status)) => status,
                // The network broke the connection, or the node is gone.
                Ok(Err(_)) => continue,
                Err(_) if !self.world.hosts.is_alive(self.node) => return Ok(()),
                Err(_) => return Err(self.wrong(format!("{path}: no answer within {PATIENCE:?}"))),
            };
            self.note(format_args!("{path} {body}: {status}"));
            match status.as_str() {
                "200" => self.world.ways.add(Way::Managed, 1),
                // It may be what the files could not be read for.
                "500" if reads_may_fail || !self.world.hosts.is_alive(self.node) => {}
                _ => return Err(self.wrong(format!("{path} {body} is answered {status}"))),
            }
        }
        Ok(())
    }

    /// The status of the answer.
    async fn post(&self, path: &str, body: &str) -> io::Result<String> {
        let network = self.world.network.host(clients_address(self.node));
        let mut stream = network.connect(SocketAddr::new(node_address(self.node), PORT)).await?;
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(status.to_owned())
    }
}

/// A path, and what goes with it.
fn wanted(dice: &Dice, number: usize) -> (&'static str, String) {
    let table = dice.pick(&Table::ALL).name();
    let target = format!(r#"{{"keyspace": "s", "tables": ["{table}"]}}"#);
    match dice.below(6) {
        0..3 => ("/v1/flush", target),
        3 | 4 => ("/v1/compact", target),
        _ => {
            let tag = dice.between(0, u64::from(u32::MAX));
            ("/v1/snapshot", format!(r#"{{"tag": "t{number}-{tag}", "keyspaces": ["s"]}}"#))
        }
    }
}
