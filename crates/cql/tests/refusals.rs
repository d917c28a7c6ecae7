//! Wrong statements are refused with the words of Cassandra 5.0.9, as recorded from it.

use cql::parse_statement;

fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    plain
}

#[test]
fn every_recorded_statement_is_refused_with_the_recorded_message() {
    let recorded = include_str!("data/refusals.txt");
    let mut statement = "";
    let (mut count, mut differences) = (0, Vec::new());
    for line in recorded.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(expected) = line.strip_prefix("-> ") else {
            statement = line;
            continue;
        };
        count += 1;
        let expected = unescape(expected);
        match parse_statement(&unescape(statement)) {
            Err(error) if error.message() == expected => {}
            Err(error) => differences.push(format!("{statement}\n  want {expected}\n  have {error}")),
            Ok(_) => differences.push(format!("{statement}\n  want {expected}\n  have a statement")),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(count >= 800, "only {count} recorded statements were found");
}
