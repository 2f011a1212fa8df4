//! The two agents to compare, `jaato run` and the yardstick, both with the same scripted model.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::wait::WaitStatus;

use super::memory::{MemoryObserver, ObservedMemory};
use super::script::{LAST_WORDS, ModelScript};
use super::server::{ModelRequestRecord, ScriptedModelServer};
use super::tree::{ProcessTree, ProcessTreeOutcome};
use crate::bench::home::BenchmarkHome;
use crate::bench::yardstick::Yardstick;
use xtask::run;
use xtask::workspace::CargoWorkspace;

/// The task for both. The script ignores it.
const TASK: &str = "Do what needs to be done.";

/// A run that takes longer counts as hanging.
const RUN_S_MAX: Duration = Duration::from_secs(60);

/// The maximum number of bytes to show of a failed agent's output.
const COMPLAINT_BYTES_MAX: usize = 2_000;

/// One of the two agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentKind {
    Jaato,
    /// `jaato` with `--no-save`.
    JaatoUnsaved,
    Yardstick,
}

/// Both agents, built and warmed up, and the model.
pub struct BenchmarkAgents {
    home: BenchmarkHome,
    jaato: PathBuf,
    yardstick: PathBuf,
    pub server: ScriptedModelServer,
}

/// A complete run.
pub struct AgentRun {
    /// When it started.
    pub started: Instant,
    pub ended: ProcessTreeOutcome,
    pub asked: Vec<ModelRequestRecord>,
}

impl BenchmarkAgents {
    /// Builds both and runs each once, so that descriptions are cached and files are in memory.
    pub fn new(workspace: &CargoWorkspace, name: &str) -> Result<Self> {
        let jaato = run::build_release(workspace)?;
        let yardstick =
            Yardstick::build_yardstick(workspace, "rig-agent")?.program_path().to_owned();
        let script = ModelScript::with_command_per_step(&["echo warm"]);
        let server = ScriptedModelServer::start_server(script.clone())?;
        let agents = Self { home: BenchmarkHome::new(workspace, name)?, jaato, yardstick, server };
        for who in [AgentKind::Jaato, AgentKind::Yardstick] {
            agents.run_script(who, &script)?;
        }
        Ok(agents)
    }

    /// Returns a file to which a command can write for the benchmark.
    pub fn output_path(&self, name: &str) -> PathBuf {
        self.home.sibling_path(name)
    }

    /// Runs the conversation to its end, which must match the script.
    pub fn run_script(&self, who: AgentKind, script: &ModelScript) -> Result<AgentRun> {
        let started = Instant::now();
        let tree = self.start_agent(who, script)?;
        self.finish_run(tree, started)
    }

    /// Returns the home that both use.
    pub fn home(&self) -> &BenchmarkHome {
        &self.home
    }

    /// Returns a `jaato` command in the home.
    pub fn jaato_command(&self, words: &[&str]) -> Command {
        let mut command = self.home.isolated_command(&self.jaato);
        command.args(words);
        command
    }

    /// Runs the conversation and observes the memory.
    pub fn run_with_memory(
        &self,
        who: AgentKind,
        script: &ModelScript,
    ) -> Result<(AgentRun, ObservedMemory)> {
        let started = Instant::now();
        let tree = self.start_agent(who, script)?;
        let looker = MemoryObserver::start_observing(tree.process_id());
        let run = self.finish_run(tree, started);
        let seen = looker.stop_observing()?;
        Ok((run?, seen))
    }

    /// Starts a conversation.
    pub fn start_agent(&self, who: AgentKind, script: &ModelScript) -> Result<ProcessTree> {
        self.server.play_script(script.clone());
        self.server.take_requests();
        let mut command = self.agent_command(who);
        let create = |path: PathBuf| {
            File::create(&path).with_context(|| format!("making `{}`", path.display()))
        };
        command.stdin(Stdio::null());
        command.stdout(create(self.output_file())?).stderr(create(self.error_file())?);
        ProcessTree::start_tree(&mut command)
    }

    fn agent_command(&self, who: AgentKind) -> Command {
        let mut command = match who {
            AgentKind::Jaato | AgentKind::JaatoUnsaved => {
                let mut command = self.home.isolated_command(&self.jaato);
                command.args(["run", "--yes", "--model", "openai/scripted"]);
                command.args((who == AgentKind::JaatoUnsaved).then_some("--no-save"));
                command
            }
            AgentKind::Yardstick => self.home.isolated_command(&self.yardstick),
        };
        command
            .env("OPENAI_BASE_URL", self.server.base_url())
            .env("OPENAI_API_KEY", "for-the-bench");
        command.arg(TASK);
        command
    }

    fn finish_run(&self, tree: ProcessTree, started: Instant) -> Result<AgentRun> {
        let ended = tree.wait_for_end(RUN_S_MAX)?;
        let said = read_output(self.output_file())?;
        let well = matches!(ended.status, WaitStatus::Exited(_, 0));
        if !well || ended.killed > 0 || !said.trim_end().ends_with(LAST_WORDS) {
            bail!("an agent did not finish: {}", self.describe_failure(&ended)?);
        }
        Ok(AgentRun { started, ended, asked: self.server.take_requests() })
    }

    /// Describes a failed run.
    pub fn describe_failure(&self, ended: &ProcessTreeOutcome) -> Result<String> {
        let (said, complained) =
            (read_output(self.output_file())?, read_output(self.error_file())?);
        let from = complained.len().saturating_sub(COMPLAINT_BYTES_MAX);
        let complaint = complained.get(from..).unwrap_or(&complained);
        Ok(format!(
            "{:?}, {} processes had to be killed; it said `{}`\n{complaint}",
            ended.status,
            ended.killed,
            said.trim_end()
        ))
    }

    fn output_file(&self) -> PathBuf {
        self.home.sibling_path("stdout")
    }

    fn error_file(&self) -> PathBuf {
        self.home.sibling_path("stderr")
    }
}

fn read_output(path: PathBuf) -> Result<String> {
    let bytes = fs::read(&path).with_context(|| format!("reading `{}`", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
