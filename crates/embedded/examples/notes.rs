//! A small program with a database of its own: `cargo run -p peristyle-embedded --example notes [directory]`.
//!
//! Without a directory the database is in memory. It prints how long it took from nothing to the answer.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that measures and prints")]

use std::time::Instant;

use embedded::{Database, Error, Timestamp};

fn main() -> Result<(), Error> {
    let started = Instant::now();
    let database = match std::env::args().nth(1) {
        Some(directory) => Database::open(directory)?,
        None => Database::in_memory()?,
    };
    let opened = started.elapsed();
    for cql in [
        "CREATE KEYSPACE IF NOT EXISTS notes \
         WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "USE notes",
        "CREATE TABLE IF NOT EXISTS notes (topic text, written timestamp, body text, tags set<text>, \
         PRIMARY KEY (topic, written)) WITH CLUSTERING ORDER BY (written DESC)",
    ] {
        database.query(cql, ()).wait()?;
    }
    let with_schema = started.elapsed();

    let insert =
        database.prepare("INSERT INTO notes (topic, written, body, tags) VALUES (?, ?, ?, ?)").wait()?;
    let now = Timestamp::from(std::time::SystemTime::now());
    database.query(&insert, ("rust", now, "a database is a crate", ["embedded", "cql"])).wait()?;

    let rows =
        database.query("SELECT written, body, tags FROM notes WHERE topic = ? LIMIT 3", ("rust",)).wait()?;
    let notes = rows.all::<(Timestamp, String, Vec<String>)>().wait()?;
    let answered = started.elapsed();

    for (written, body, tags) in notes {
        println!("{} {body} {tags:?}", written.0);
    }
    println!("open {opened:.1?}, schema {with_schema:.1?}, answer {answered:.1?}");
    database.close().wait()
}
