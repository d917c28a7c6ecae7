//! Tests of what is asked for in words.

use clap::FromArgMatches;

use super::*;

#[test]
fn options_of_two_letters_are_known() {
    let words = ["peristyle", "nodetool", "compact", "-st", "-5", "-et", "7", "ks"];
    let long = with_long_options(words.iter().map(OsString::from));
    assert_eq!(long[3..], ["--start-token", "-5", "--end-token", "7", "ks"]);
    assert_eq!(with_long_options(["cqlsh", "-st"].iter().map(OsString::from))[1], "-st");
}

#[test]
fn help_is_a_command_too() {
    let long = |words: &[&str]| with_long_options(words.iter().map(OsString::from));
    assert_eq!(long(&["peristyle", "nodetool", "help"])[2..], ["--help"]);
    assert_eq!(long(&["peristyle", "nodetool", "help", "status"])[2..], ["status", "--help"]);
    assert_eq!(long(&["peristyle", "nodetool", "-p", "1", "help"])[2..], ["-p", "1", "--help"]);
    assert_eq!(
        long(&["peristyle", "nodetool", "-Da=b", "-pw", "x", "help"])[2..],
        ["-Da=b", "--password", "x", "--help"]
    );
    assert_eq!(long(&["peristyle", "nodetool", "flush", "help"])[2..], ["flush", "help"]);
}

/// Arguments as they come from a terminal.
fn parse(words: &[&str]) -> Result<NodetoolArguments, clap::Error> {
    let words = ["peristyle", "nodetool"].iter().chain(words).map(OsString::from);
    let command = NodetoolArguments::augment_args(clap::Command::new("nodetool"));
    let matches = command.try_get_matches_from(&with_long_options(words)[1..])?;
    NodetoolArguments::from_arg_matches(&matches)
}

/// Medusa and the scripts of Cassandra give these, before the command or behind it.
#[test]
fn what_leads_to_a_jvm_is_taken_and_without_effect() {
    let jmx =
        ["-Dcom.sun.jndi.rmiURLParsing=legacy", "-u", "cassandra", "-pw", "-secret", "-pwf", "/no/file"];
    let place = ["-h", "::1", "-p", "7299"];
    let command = ["snapshot", "-t", "medusa-1", "ks"];
    for words in [[&jmx[..], &place, &command].concat(), [&command[..], &place, &jmx].concat()] {
        let arguments = parse(&words).unwrap();
        assert_eq!(arguments.address(), "[::1]:7299");
        assert!(matches!(arguments.command, NodetoolCommand::Snapshot(_)));
    }
    let spelt = parse(&["--username", "u", "--password", "p", "--password-file", "f", "info"]).unwrap();
    assert_eq!(spelt.address(), "127.0.0.1:7199");
    let help = parse(&["--help"]).unwrap_err().to_string();
    for option in ["-u, --username", "--password", "--password-file", "-D"] {
        let line = help.lines().find(|line| line.trim().starts_with(option)).unwrap();
        assert!(line.contains("without effect"), "{line}");
    }
}

/// Letter by letter, `-hosts` would be the host `osts`, and `-pl` the port `l`.
#[test]
fn options_of_cassandras_repair_are_taken_or_refused_by_their_names() {
    let known = [
        "-pr -full ks",
        "-seq -st -5 -et 7 ks",
        "-hosts 10.0.0.1 -hosts 10.0.0.2 ks",
        "-dc a,b",
        "-local -force",
    ];
    for words in known {
        let words: Vec<&str> = ["-p", "7299", "repair"].into_iter().chain(words.split(' ')).collect();
        assert!(matches!(parse(&words).unwrap().command, NodetoolCommand::Repair(_)), "{words:?}");
    }
    assert!(parse(&["repair", "-st", "5", "ks"]).is_err(), "a part of the ring has two ends");
    for words in [["-dcpar", "ks"], ["-j", "2"], ["-pl", "ks"], ["--trace", "ks"], ["-prv", "ks"]] {
        let error = parse(&["repair", words[0], words[1]]).unwrap_err();
        let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
            panic!("{words:?}: {error}");
        };
        assert!(repair::is_absent(option), "{option}");
        assert!(error.to_string().contains("nodetool repair"), "{error}");
    }
}

#[test]
fn names_become_a_keyspace_and_its_tables() {
    let names = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(target(&names(&[])), json!({}));
    assert_eq!(target(&names(&["ks"])), json!({"keyspace": "ks"}));
    assert_eq!(target(&names(&["ks", "a", "b"])), json!({"keyspace": "ks", "tables": ["a", "b"]}));
}
