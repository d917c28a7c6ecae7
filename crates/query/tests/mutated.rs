//! Statements made of pieces of other statements: none of them may do more than fail.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test reads its corpus")]

mod common;

use common::with_session;
use query::BindValue;

/// A small generator, so that a seed repeats its run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// The statements of the recorded scripts.
fn corpus() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cql");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut statements = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "cql")) {
        let text = std::fs::read_to_string(path).unwrap();
        let mut statement = String::new();
        for line in text.lines() {
            if line.starts_with('>') || line.starts_with("--") || line.is_empty() {
                if !statement.is_empty() {
                    statements.push(std::mem::take(&mut statement));
                }
            } else {
                statement.push_str(line.trim_end_matches(';'));
                statement.push(' ');
            }
        }
    }
    statements
}

fn words(statement: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in statement.chars() {
        let is_word = character.is_alphanumeric() || character == '_' || character == '.';
        if !is_word {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
        if !is_word {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Anything that a client may bind.
fn value(dice: &mut Dice) -> BindValue {
    match dice.below(8) {
        0 => BindValue::Null,
        1 => BindValue::Unset,
        2 => BindValue::Set(vec![0, 0, 0, 1].into()),
        3 => BindValue::Set(vec![0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1].into()),
        4 => BindValue::Set(vec![0, 0, 0, 1, 0, 0, 0, 1, b'a', 0, 0, 0, 4, 0, 0, 0, 1].into()),
        _ => BindValue::Set((0..dice.below(20)).map(|_| dice.below(256) as u8).collect::<Vec<u8>>().into()),
    }
}

#[test]
fn statements_made_of_pieces_of_others_never_panic() {
    let corpus = corpus();
    assert!(corpus.len() > 500, "the recorded scripts are there");
    let usable: Vec<&String> = corpus.iter().filter(|text| !text.starts_with("USE")).collect();
    let all_words: Vec<String> = usable.iter().flat_map(|text| words(text)).collect();
    with_session(async |mut session| {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        for statement in &usable {
            let _ = session.send(statement).await;
        }
        for _ in 0..6_000 {
            let mut pieces = words(usable[dice.below(usable.len())]);
            for _ in 0..=dice.below(3) {
                let at = dice.below(pieces.len());
                match dice.below(4) {
                    0 => pieces[at] = all_words[dice.below(all_words.len())].clone(),
                    1 => pieces.insert(at, all_words[dice.below(all_words.len())].clone()),
                    2 if pieces.len() > 1 => {
                        pieces.remove(at);
                    }
                    _ => {
                        let other = words(usable[dice.below(usable.len())]);
                        let from = dice.below(other.len());
                        pieces.truncate(at);
                        pieces.extend_from_slice(&other[from..]);
                        if pieces.is_empty() {
                            pieces.push(" ".into());
                        }
                    }
                }
            }
            let markers = dice.below(2) * dice.below(4);
            for _ in 0..markers {
                let at = dice.below(pieces.len());
                pieces[at] = "?".into();
            }
            let text = pieces.concat();
            // Dropping or emptying tables would leave nothing to ask.
            if text.starts_with("DROP") || text.starts_with("TRUNCATE") || text.starts_with("USE") {
                continue;
            }
            let answer = match session.engine.prepare(&session.state, &text, None).await {
                Ok(info) if !info.variables.is_empty() => {
                    let values = info.variables.iter().map(|_| value(&mut dice)).collect();
                    session.execute(&text, values).await
                }
                _ => session.send(&text).await,
            };
            if let Err(query::QueryError::Server(message)) = &answer {
                panic!("{text}\n{message}");
            }
        }
    });
}
