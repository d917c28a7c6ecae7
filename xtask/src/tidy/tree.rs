//! The repository's text files, read once.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report::Failure;

/// One text file.
pub(crate) struct TextFile {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All files that git knows or would add.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    /// Every file, whatever it holds.
    pub(crate) paths: Vec<String>,
    /// Those we read: Rust, Markdown, TOML.
    pub(crate) files: Vec<TextFile>,
}

impl Tree {
    /// Lists with git, so that build output and ignored files stay out, and reads the text.
    pub(crate) fn read(root: &Path) -> Result<Tree, Failure> {
        let list = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(root)
            .output()?;
        if !list.status.success() {
            return Err(Failure::new("list the files with git"));
        }
        let list = String::from_utf8(list.stdout)?;
        let mut paths: Vec<String> =
            list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        // A file deleted but not yet committed is still listed.
        paths.retain(|path| root.join(path).is_file());
        paths.sort();
        let mut files = Vec::new();
        for path in &paths {
            if [".rs", ".md", ".toml"].iter().any(|ending| path.ends_with(ending)) {
                let text = std::fs::read_to_string(root.join(path))
                    .map_err(|error| Failure::new(format!("read {path}: {error}")))?;
                files.push(TextFile { path: path.clone(), text });
            }
        }
        Ok(Tree { root: root.to_owned(), paths, files })
    }

    /// Files with this ending.
    pub(crate) fn with_ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a TextFile> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// Names of the folders in `crates/`.
    pub(crate) fn crates(&self) -> Vec<&str> {
        let manifests = self.files.iter().filter_map(|file| {
            let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some(name)
        });
        manifests.collect()
    }

    /// A tree for tests.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let files: Vec<TextFile> = files
            .iter()
            .map(|(path, text)| TextFile { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        Tree {
            root: PathBuf::from("/nowhere"),
            paths: files.iter().map(|file| file.path.clone()).collect(),
            files,
        }
    }
}

/// Names in the dependency tables of a `Cargo.toml`, with their lines. Understands the two ways they
/// are written here: `name.workspace = true` and `name = …`.
pub(crate) fn dependencies_of(manifest: &str, tables: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = tables.contains(&table);
            // `[dependencies.name]`
            let named = table.rsplit_once('.').filter(|(table, _)| tables.contains(table));
            found.extend(named.map(|(_, name)| (index + 1, name.to_owned())));
            continue;
        }
        if inside && !line.is_empty() && !line.starts_with('#') {
            let name: String = line.chars().take_while(|c| !matches!(c, '.' | '=' | ' ')).collect();
            if name.starts_with(|c: char| c.is_ascii_alphabetic()) && line.contains('=') {
                found.push((index + 1, name));
            }
        }
    }
    found
}
