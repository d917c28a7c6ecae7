//! A CQL connection for tools: the shell, the demo, the load generator.
//!
//! Blocking and small on purpose: one socket, requests pipelined by hand, no pool, no policies, no
//! metadata. Applications use a driver; this is for programs that want to see what the server said.
//!
//! ```no_run
//! # fn main() -> Result<(), client::ClientError> {
//! let mut connection = client::Connection::open("127.0.0.1:9042", &client::ConnectOptions::default())?;
//! let rows = connection.query("SELECT cluster_name FROM system.local")?.rows()?;
//! assert_eq!(rows.rows.len(), 1);
//! # Ok(())
//! # }
//! ```

mod answer;
mod connection;
mod error;

pub use answer::{Answer, ResultRows, Row};
pub use connection::{ConnectOptions, Connection};
pub use error::ClientError;
