//! A session without a model: `jaato call --batch` with some plugins, told what to call one line after the other.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::home::Home;
use crate::artifacts::{self, CargoShows, Selection};
use crate::build_plugins::HOST;
use crate::child;
use crate::gather::gather;
use crate::workspace::Workspace;

/// A copy of the release build with a few plugins beside it, where they are trusted as it is.
pub struct Installed {
    pub home: Home,
    jaato: PathBuf,
}

/// A session that calls tools.
pub struct Batch {
    child: Child,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Installed {
    /// Builds and copies; the person's configuration is `config`.
    pub fn new(
        workspace: &Workspace,
        name: &str,
        plugins: &[&str],
        fixtures: &[&str],
        config: &str,
    ) -> Result<Self> {
        let names = [&[HOST], plugins].concat();
        let selection = Selection::Packages(&names);
        let built = artifacts::build(workspace, "release", selection, &mut CargoShows)?;
        let mut libraries = Vec::new();
        for plugin in plugins {
            libraries.push(built.plugin(workspace, plugin)?);
        }
        for fixture in fixtures {
            let selection = Selection::Fixture(fixture);
            let built = artifacts::build(workspace, "release", selection, &mut CargoShows)?;
            libraries.push(built.fixture(workspace, fixture)?);
        }
        let home = Home::new(workspace, name)?;
        home.configure(config)?;
        let folder = home.beside("bin");
        fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
        let jaato = folder.join(format!("{HOST}{}", std::env::consts::EXE_SUFFIX));
        fs::copy(built.binary(HOST)?, &jaato)
            .with_context(|| format!("copying to `{}`", jaato.display()))?;
        gather(&libraries, &home.beside("plugins"))?;
        Ok(Self { home, jaato })
    }

    /// Starts a session.
    pub fn start(&self, variables: &[(&str, OsString)], words: &[&str]) -> Result<Batch> {
        let mut command = self.home.command(&self.jaato);
        command.args(["call", "--batch"]).args(words);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", child::shown(&command)))?;
        let input = child.stdin.take().context("the session has no standard input")?;
        let answers = child.stdout.take().context("the session has no standard output")?;
        Ok(Batch { child, input, answers: BufReader::new(answers) })
    }

    /// A file of the working directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.work().join(name)
    }
}

impl Batch {
    /// Calls a tool and waits for its result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let line = json!({ "tool": tool, "args": arguments }).to_string() + "\n";
        self.input.write_all(line.as_bytes()).context("telling the session what to call")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).context("reading the session's answer")?;
        let mut answer: Value = serde_json::from_str(&answer)
            .with_context(|| format!("the session answered `{tool}` with `{answer}`"))?;
        if !answer["error"].is_null() {
            bail!("`{tool}` failed: {}", answer["error"]);
        }
        Ok(answer["result"].take())
    }

    /// The session's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lets it end.
    pub fn end(self) -> Result<()> {
        let Self { mut child, input, answers } = self;
        drop((input, answers));
        let status = child.wait().context("waiting for the session")?;
        if status.success() { Ok(()) } else { bail!("the session ended with {status}") }
    }
}
