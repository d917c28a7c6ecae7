//! A table with `read_repair = 'NONE'`.

use super::*;

#[test]
fn a_read_shows_what_is_newest_and_leaves_replicas_as_they_are() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        let tables = [table(), unrepaired_table()];
        ring.lose(2).await;
        for table in &tables {
            let mutation = insert_into(table, 1, "v", 1);
            ring.replicas(0).write(vec![mutation], Consistency::Quorum, PATIENCE).await.expect("two live");
        }
        ring.find(2).await;
        for (table, holders) in tables.iter().zip([3, 2]) {
            let command = ReadCommand { table: Arc::clone(table), ..command(1) };
            let read = ring.replicas(0).read(&command, Consistency::All, PATIENCE).await.expect("all live");
            assert_eq!(read.partitions.len(), 1);
            let mut having = 0;
            for (shards, _) in &ring.nodes {
                let page = shards.handles()[0].local().read(&command).await.expect("reads");
                having += page.partitions.len();
            }
            assert_eq!(having, holders, "{}", table.name());
        }
    });
}
