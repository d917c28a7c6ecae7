//! Texts that are no scripts are refused in words, most with the line.

use super::*;

const HEAD: &str =
    "name = 'own'\nabout = 'mine'\ntables = ['CREATE TABLE {keyspace}.t (k text PRIMARY KEY)']\n";
const VALUES: &str = "[values]\nk = { kind = 'template', text = '{partition}' }\n";
const READ: &str =
    "[[operation]]\nname = 'read'\nstatement = 'SELECT * FROM {keyspace}.t WHERE k = ?'\nvalues = ['k']\n";

fn refused(text: &str) -> String {
    Script::of(&plan(text, 100), text).err().map_or_else(|| "nothing".to_owned(), |error| error.to_string())
}

#[test]
fn a_small_script_is_one() {
    assert_eq!(refused(&format!("{HEAD}{VALUES}{READ}")), "nothing");
}

#[test]
fn what_the_text_alone_shows_is_refused_in_words() {
    let with = |more: &str| refused(&format!("{HEAD}{more}{VALUES}{READ}"));
    let operation = |more: &str| refused(&format!("{HEAD}{VALUES}{READ}{more}"));
    let value = |generator: &str| refused(&format!("{HEAD}{VALUES}v = {{ {generator} }}\n{READ}"));
    assert!(
        with("colour = 'red'\n").contains("line 4: unknown field `colour`"),
        "{}",
        with("colour = 'red'\n")
    );
    assert!(with("partition = 'zipf'\n").contains("no distribution 'zipf'"));
    assert!(with("row = 'latest'\n").contains("neither 'latest' nor 'next'"));
    assert!(with("partitions = 0\n").contains("measure nothing"));
    assert!(with("rows-per-partition = 101\n").contains("own has 101 rows in each partition"));
    assert!(operation("rows = [2, 1]\n").contains("ends before it begins"));
    assert!(operation("weight = -1\n").contains("-1 is no weight"));
    assert!(operation("weight = 0\n").contains("all operations have the weight 0"));
    assert!(
        operation("turns = []\nfirst = { statement = 'DROP TABLE {keyspace}.t' }\n").contains("no SELECT")
    );
    assert!(operation("[[operation.turns]]\nstatement = 'SELECT'\n").contains("either a statement or turns"));
    assert!(operation(READ).contains("two operations are called 'read'"));
    let unnamed = READ.replace("{keyspace}.", "").replace("'read'", "'other'");
    assert!(operation(&unnamed).contains("does not say {keyspace}"));
    let rows = "[[operation]]\nname = 'w'\nstatement = 'DELETE FROM {keyspace}.t WHERE k = ?'\nrows = 1\n";
    assert!(operation(rows).contains("only a SELECT has rows"));
    assert!(operation("batch = 'unlogged'\n").contains("a batch is of writes"));
    assert!(operation("batch = 'logged'\n").contains("a batch is of writes"));
    assert!(operation(&rows.replace("rows = 1", "batch = 'unlogged'")).contains("it has times"));
    assert!(value("kind = 'colour'").contains("unknown variant `colour`"));
    assert!(value("kind = 'row', from = 1").contains("unknown field `from`"));
    assert!(value("kind = 'template', text = '{colour}'").contains("no place of a text"));
    assert!(refused(HEAD).contains("no [[operation]]"));
    assert!(refused("name = ").contains("line 1"));
    let tables = HEAD.replace("{keyspace}.", "");
    assert!(refused(&format!("{tables}{VALUES}{READ}")).contains("does not say {keyspace}"));
}

#[test]
fn what_a_server_shows_is_refused_in_words() {
    let learned = |text: &str, prepared: &[Prepared]| {
        let mut script = Script::of(&plan(text, 100), text).unwrap();
        script.learn(prepared).unwrap_err().to_string()
    };
    let text = format!("{HEAD}{VALUES}{READ}");
    let markers = [("k", CqlType::Text), ("l", CqlType::Int)];
    let count = learned(&text, &[prepared(&markers, 1, &[])]);
    assert_eq!(
        count,
        "the workload own: operation 'read': there are 2 markers and 1 values \
         (in `SELECT * FROM {keyspace}.t WHERE k = ?`)"
    );
    assert!(
        learned(&text, &[prepared(&markers[1..], 1, &[])])
            .contains("'k' can not make a value of type int for l")
    );
    let unknown = text.replace("values = ['k']", "values = ['no']");
    assert!(learned(&unknown, &[prepared(&markers[..1], 1, &[])]).contains("there is no value 'no'"));
}

#[test]
fn a_condition_is_known_by_its_words() {
    let effect = |statement: &str| StatementText::of(statement, &[]).effect();
    assert_eq!(effect("select * from t"), Ok(Effect::Read));
    assert_eq!(effect("UPDATE t SET a = 'IF it rains' WHERE k = ?"), Ok(Effect::Write));
    assert_eq!(effect("UPDATE t SET a = 1 WHERE k = ? if a = 0"), Ok(Effect::Condition));
    assert_eq!(
        effect("BEGIN BATCH INSERT INTO t (k) VALUES (?) IF NOT EXISTS APPLY BATCH"),
        Ok(Effect::Condition)
    );
    assert!(effect("TRUNCATE t").is_err());
}
