//! `docs/configuration.md`, rendered from the table of options.

use std::fmt::Write;

use crate::options::OPTIONS;

const HEAD: &str = "\
# Configuration

A node needs no configuration: `peristyle serve` starts with the defaults below. To change one, write a file
and name it (`peristyle serve --config peristyle.toml`), or give the flag; a flag wins over the file. Each
option is a line of the file, all at its top level, and a flag of `peristyle serve`: the same name with
hyphens (`data_dir` is `--data-dir`).

An option that does not exist is an error that names the nearest one, and so is a value that makes no sense,
with file and line: nothing is ignored.

Sizes are whole numbers with `KiB`, `MiB`, `GiB` or `TiB` (`K`, `KB` and so on mean the same powers of 1024);
times are whole numbers with `us`, `ms`, `s`, `m` or `h`. In a file they stand in quotes; numbers, `true` and `false`
need none.

| option | value | default | effect |
|---|---|---|---|
";

const EXAMPLE: &str = "
A file with every option at its default:

```toml
";

const TAIL: &str = "\
```

This page is rendered from the table in `crates/config`; its test says how to render it anew.
";

/// Renders the page.
pub fn render_document() -> String {
    let mut page = String::from(HEAD);
    for option in OPTIONS {
        let _ = writeln!(
            page,
            "| `{}` | {} | `{}` | {} |",
            option.name, option.value, option.default, option.about
        );
    }
    page.push_str(EXAMPLE);
    for option in OPTIONS {
        let _ = writeln!(page, "{} = {}", option.name, in_toml(option.default));
    }
    page.push_str(TAIL);
    page
}

/// A value as it stands in a file: numbers and switches bare, the rest in quotes. No default needs escaping.
fn in_toml(value: &str) -> String {
    match value {
        "true" | "false" => value.to_owned(),
        _ if value.parse::<i64>().is_ok() => value.to_owned(),
        _ => format!("\"{value}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const PAGE_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test looks at the repository")]
    fn the_page_is_what_the_table_says() {
        let rendered = render_document();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(PAGE_PATH, &rendered).unwrap();
        }
        let page = std::fs::read(PAGE_PATH).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(
            page.unwrap_or_default() == rendered,
            "docs/configuration.md is out of date: BLESS=1 cargo test -p peristyle-config"
        );
    }

    #[test]
    fn the_example_is_the_default_configuration() {
        let page = render_document();
        let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let mut config = Config::default();
        config.apply_file("example".as_ref(), example).unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(example.lines().count(), OPTIONS.len());
    }
}
