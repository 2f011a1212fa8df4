//! The two agents to compare, `jaato run` and the yardstick, both with the same scripted model.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::wait::WaitStatus;

use super::memory::{Looker, Seen};
use super::script::{LAST_WORDS, Script};
use super::server::{Asked, Server};
use super::tree::{Ended, Tree};
use crate::bench::home::Home;
use crate::bench::yardstick::Yardstick;
use xtask::run;
use xtask::workspace::Workspace;

/// The task for both. The script ignores it.
const TASK: &str = "Do what there is to do.";

/// A run that takes longer counts as hanging.
const RUN_S_MAX: Duration = Duration::from_secs(60);

/// The most bytes to show of a failed agent's output.
const COMPLAINT_BYTES_MAX: usize = 2_000;

/// One of the two agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Jaato,
    Yardstick,
}

/// Both agents, built and warmed up, and the model.
pub struct Agents {
    home: Home,
    jaato: PathBuf,
    yardstick: PathBuf,
    pub server: Server,
}

/// A complete run.
pub struct Run {
    /// When it started.
    pub started: Instant,
    pub ended: Ended,
    pub asked: Vec<Asked>,
}

impl Agents {
    /// Builds both and runs each once, so that descriptions are cached and files are in memory.
    pub fn new(workspace: &Workspace, name: &str) -> Result<Self> {
        let jaato = run::build_release(workspace)?;
        let yardstick = Yardstick::build(workspace, "rig-agent")?.program().to_owned();
        let script = Script::one_by_one(&["echo warm"]);
        let server = Server::start(script.clone())?;
        let agents = Self { home: Home::new(workspace, name)?, jaato, yardstick, server };
        for who in [Who::Jaato, Who::Yardstick] {
            agents.run(who, &script)?;
        }
        Ok(agents)
    }

    /// Returns a file to which a command can write for the benchmark.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.beside(name)
    }

    /// Runs the conversation to its end, which must match the script.
    pub fn run(&self, who: Who, script: &Script) -> Result<Run> {
        let started = Instant::now();
        let tree = self.start(who, script)?;
        self.finish(tree, started)
    }

    /// Returns the home that both use.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Returns a `jaato` command in the home.
    pub fn jaato(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(&self.jaato);
        command.args(words);
        command
    }

    /// Runs the conversation and observes the memory.
    pub fn run_looked_at(&self, who: Who, script: &Script) -> Result<(Run, Seen)> {
        let started = Instant::now();
        let tree = self.start(who, script)?;
        let looker = Looker::start(tree.id());
        let run = self.finish(tree, started);
        let seen = looker.stop()?;
        Ok((run?, seen))
    }

    /// Starts a conversation.
    pub fn start(&self, who: Who, script: &Script) -> Result<Tree> {
        self.server.play(script.clone());
        self.server.take_asked();
        let mut command = self.command(who);
        let create = |path: PathBuf| {
            File::create(&path).with_context(|| format!("making `{}`", path.display()))
        };
        command.stdin(Stdio::null());
        command.stdout(create(self.said())?).stderr(create(self.complained())?);
        Tree::start(&mut command)
    }

    fn command(&self, who: Who) -> Command {
        let mut command = match who {
            Who::Jaato => {
                let mut command = self.home.command(&self.jaato);
                command.args(["run", "--yes", "--model", "openai/scripted"]);
                command
            }
            Who::Yardstick => self.home.command(&self.yardstick),
        };
        command
            .env("OPENAI_BASE_URL", self.server.base_url())
            .env("OPENAI_API_KEY", "for-the-bench");
        command.arg(TASK);
        command
    }

    fn finish(&self, tree: Tree, started: Instant) -> Result<Run> {
        let ended = tree.end(RUN_S_MAX)?;
        let said = read(self.said())?;
        let well = matches!(ended.status, WaitStatus::Exited(_, 0));
        if !well || ended.killed > 0 || said.trim_end() != LAST_WORDS {
            bail!("an agent did not finish: {}", self.describe(&ended)?);
        }
        Ok(Run { started, ended, asked: self.server.take_asked() })
    }

    /// Describes a failed run.
    pub fn describe(&self, ended: &Ended) -> Result<String> {
        let (said, complained) = (read(self.said())?, read(self.complained())?);
        let from = complained.len().saturating_sub(COMPLAINT_BYTES_MAX);
        let complaint = complained.get(from..).unwrap_or(&complained);
        Ok(format!(
            "{:?}, {} processes had to be killed; it said `{}`\n{complaint}",
            ended.status,
            ended.killed,
            said.trim_end()
        ))
    }

    fn said(&self) -> PathBuf {
        self.home.beside("stdout")
    }

    fn complained(&self) -> PathBuf {
        self.home.beside("stderr")
    }
}

fn read(path: PathBuf) -> Result<String> {
    let bytes = fs::read(&path).with_context(|| format!("reading `{}`", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
