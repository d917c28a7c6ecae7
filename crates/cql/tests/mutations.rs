//! Good statements with words dropped, doubled, swapped and cut: no text makes the parser panic,
//! and whatever it accepts prints and parses to the same tree.
//!
//! The same texts every time: the sequence of mutations starts from a fixed number.

use cql::{parse_statement, parse_type};

const ROUND_COUNT: usize = 60;

/// A linear congruential generator (the constants of Knuth's MMIX): enough to pick places.
struct Picks(u64);

impl Picks {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn corpus() -> Vec<&'static str> {
    include_str!("data/statements.cql")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("--"))
        .collect()
}

/// Words, blanks and signs; joined they are the text again.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let class =
        |character: char| (character.is_alphanumeric() || character == '_', character.is_whitespace());
    for character in text.chars() {
        match pieces.last_mut() {
            Some(last)
                if class(character) != (false, false)
                    && last.ends_with(|end| class(end) == class(character)) =>
            {
                last.push(character);
            }
            _ => pieces.push(character.to_string()),
        }
    }
    pieces
}

fn check(text: &str) {
    let Ok(statement) = parse_statement(text) else { return };
    let printed = statement.to_string();
    match parse_statement(&printed) {
        Ok(again) => assert_eq!(again, statement, "{text} printed {printed}"),
        Err(error) => panic!("{text} printed {printed}: {error}"),
    }
    for (index, marker) in statement.markers.iter().enumerate() {
        assert_eq!(marker.index as usize, index, "{text}");
    }
}

#[test]
fn mutated_statements_neither_panic_nor_change_in_print() {
    let corpus = corpus();
    let words: Vec<String> = corpus.iter().flat_map(|line| pieces(line)).collect();
    let mut picks = Picks(2026);
    for _ in 0..ROUND_COUNT {
        for line in &corpus {
            let mut pieces = pieces(line);
            for _ in 0..=picks.below(3) {
                let (one, other) = (picks.below(pieces.len()), picks.below(pieces.len()));
                match picks.below(6) {
                    0 => pieces[one].clear(),
                    1 => pieces[one] = pieces[one].repeat(2),
                    2 => pieces.swap(one, other),
                    3 => pieces[one] = words[picks.below(words.len())].clone(),
                    4 => pieces.truncate(one + 1),
                    _ => pieces.insert(one, format!(" {} ", words[picks.below(words.len())])),
                }
            }
            check(&pieces.concat());
        }
    }
}

#[test]
fn every_prefix_of_a_statement_ends_without_panic() {
    for line in corpus() {
        for (end, _) in line.char_indices() {
            check(&line[..end]);
            let _ = parse_type(&line[..end]);
        }
    }
}

#[test]
fn noise_ends_without_panic() {
    const ALPHABET: [&str; 24] = [
        "'", "\"", "$", "$$", "--", "/*", "*/", "\n", "(", "[", "{", "?", ":", "0", "e", "-", "P", "é", "𝄞",
        "select", "\r", ".", "..", "\0",
    ];
    let mut picks = Picks(7);
    for _ in 0..20_000 {
        let length = picks.below(12);
        let text: String = (0..length).map(|_| ALPHABET[picks.below(ALPHABET.len())]).collect();
        check(&text);
        check(&format!("SELECT {text}"));
        check(&format!("SELECT a FROM t WHERE a = {text}"));
        check(&format!("INSERT INTO t (a) VALUES (1{text}"));
        let _ = parse_type(&text);
    }
}

/// Long texts cost in proportion to their length, also when they are refused at the end. Run
/// with a square somewhere, this takes minutes.
#[test]
fn long_statements_are_read_and_refused_in_linear_time() {
    let count = 50_000;
    let list =
        |item: fn(usize) -> String, separator: &str| (0..count).map(item).collect::<Vec<_>>().join(separator);
    for text in [
        format!("SELECT * FROM t WHERE k IN ({})", list(|index| index.to_string(), ", ")),
        format!("UPDATE t SET {} WHERE k = 1", list(|index| format!("c{index} = 1"), ", ")),
        format!("UPDATE t SET {} WHERE k = 1", list(|index| format!("m[{index}] = 1"), ", ")),
        format!("CREATE TABLE t (k int PRIMARY KEY) WITH {}", list(|index| format!("o{index} = 1"), " AND ")),
        format!(
            "CREATE TABLE t (k int PRIMARY KEY) WITH o = {{{}}}",
            list(|index| format!("'{index}': 1"), ", ")
        ),
        format!("BEGIN BATCH {}; APPLY BATCH", list(|_| "INSERT INTO t (k) VALUES (1)".to_owned(), ";\n")),
    ] {
        assert!(parse_statement(&text).is_ok(), "{}", &text[..60]);
        assert!(parse_statement(&format!("{text} = =")).is_err(), "{}", &text[..60]);
        assert!(parse_statement(&format!("{text} '")).is_err(), "{}", &text[..60]);
    }
}
