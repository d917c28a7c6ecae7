//! The shell at a terminal: line editing, history, a prompt that tells the keyspace.

use std::path::PathBuf;

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::shell::{Flow, Shell};
use super::statements::Statements;

/// Lines kept from one session to the next.
const HISTORY_LINE_COUNT_MAX: usize = 10_000;

/// Reads and runs statements until EXIT or the end of input.
pub(crate) fn run(shell: &mut Shell) {
    shell.set_interactive();
    let mut editor = match editor() {
        Ok(editor) => editor,
        Err(error) => return shell.report(&format!("the terminal cannot be used: {error}")),
    };
    let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".peristyle_cqlsh_history"));
    if let Some(history) = &history {
        // There is none before the first session.
        let _ = editor.load_history(history);
    }
    greet(shell);
    let mut statements = Statements::default();
    loop {
        match editor.readline(&prompt(shell, &statements)) {
            Ok(line) => {
                if !line.trim().is_empty() {
                    let _ = editor.add_history_entry(line.as_str());
                }
                let exits = statements.add(&line).iter().any(|statement| shell.run(statement) == Flow::Exit);
                if exits {
                    break;
                }
            }
            // Ctrl-C gives up what was begun.
            Err(ReadlineError::Interrupted) => {
                statements.take_rest();
            }
            Err(_) => break,
        }
    }
    if let Some(history) = &history {
        let _ = editor.save_history(history);
    }
}

fn editor() -> rustyline::Result<DefaultEditor> {
    let config =
        rustyline::Config::builder().max_history_size(HISTORY_LINE_COUNT_MAX)?.auto_add_history(false);
    DefaultEditor::with_config(config.build())
}

fn greet(shell: &mut Shell) {
    match shell.server_facts() {
        Ok((cluster, versions)) => {
            println!("Connected to {cluster} at {}", shell.address());
            println!("{versions}\nUse HELP for help.");
        }
        Err(error) => shell.report(&error.to_string()),
    }
}

fn prompt(shell: &Shell, statements: &Statements) -> String {
    let prompt = match &shell.keyspace {
        Some(keyspace) => format!("cqlsh:{keyspace}> "),
        None => "cqlsh> ".to_owned(),
    };
    match statements.is_empty() {
        true => prompt,
        false => format!("{}... ", " ".repeat(prompt.chars().count().saturating_sub(4))),
    }
}
