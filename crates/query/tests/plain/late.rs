//! Writes that wait longer than a write may take.

use std::time::Duration;

use query::{Consistency, PLAIN_BATCH_MAX, PlainUpdate, PlainWrite, QueryError, TimeoutKind, WriteType};
use tokio::time::Instant;

use crate::common::{Session, int, text, with_slow_disk};
use crate::given::*;

const INSERT: &str = "INSERT INTO numbers (k, v) VALUES (?, ?)";

fn writes(session: &Session, update: &PlainUpdate) -> Vec<PlainWrite> {
    let keys = (0..PLAIN_BATCH_MAX as i32).map(i32::to_be_bytes);
    let write = |key: [u8; 4]| {
        let values: [&[u8]; 2] = [&key, b"v"];
        session.engine.plain_write(update, values.into_iter(), Consistency::One, None).unwrap()
    };
    keys.map(write).collect()
}

#[test]
fn writes_that_wait_too_long_for_the_log_end_as_every_write_does_and_stand() {
    const LIMIT: Duration = Duration::from_millis(70);
    // Longer for one operation than all writes may take.
    with_slow_disk(10 * LIMIT, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v text)").await;
        let update = plain_update(&session, INSERT).await.unwrap();
        let writes = writes(&session, &update);
        session.timeouts.set(TimeoutKind::Write, LIMIT);
        let (_, batches) = session.engine.plain_writes(&writes);
        assert_eq!(batches.len(), 2, "each shard has some");
        let full = session.execute(INSERT, vec![int(-1), text("v")]).await.unwrap_err();
        let (consistency, write_type) = (Consistency::One, WriteType::Simple);
        assert_eq!(full, QueryError::WriteTimeout { consistency, received: 0, block_for: 1, write_type });
        for batch in batches {
            let of_batch: Vec<_> = batch.iter().map(|index| writes[index].clone()).collect();
            let all = (0..of_batch.len()).collect();
            let begun = Instant::now();
            let written = session.engine.remote_writes(of_batch).await;
            assert_eq!((written.done.len(), written.doubtful), (0, all));
            assert_eq!(written.error.as_ref(), Some(&full));
            let waited = begun.elapsed();
            assert!((LIMIT..2 * LIMIT).contains(&waited), "as long as a write may take: {waited:?}");
        }
        session.timeouts.set(TimeoutKind::Write, 1_000 * LIMIT);
        session.check("SELECT count(*) FROM numbers", &["17"]).await;
        let written = session.engine.remote_writes(vec![writes[0].clone()]).await;
        assert_eq!((written.done.len(), written.error), (1, None), "others are written");
    });
}
