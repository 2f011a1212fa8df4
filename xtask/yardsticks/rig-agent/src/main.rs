//! An agent with a shell, as one could write it with `rig-core` in an hour: no plugins, no prompts,
//! no records, no supervision of its child processes. The cost of `jaato run` is compared with it.
//!
//! `rig-agent TASK` asks the model at `OPENAI_BASE_URL` and prints its answer. It uses a
//! current-thread runtime, which is the cheapest for one conversation, so that the yardstick does
//! not look worse than it is.

use std::process::Stdio;

use anyhow::{Context, Result};
use rig_agent::AgentBuilder;
use rig_agent::tool::{Tool, ToolContext};
use rig_core::providers::openai::OpenAI;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::process::Command;

/// More than any script of the benchmark needs.
const REQUESTS_MAX: usize = 64;

/// The same number as in `jaato`.
const CALLS_TOGETHER: usize = 8;

#[derive(Deserialize)]
struct ShellCallArguments {
    command: String,
}

#[derive(Serialize)]
struct ShellCallOutput {
    stdout: String,
    stderr: String,
    returncode: Option<i32>,
}

/// The shell that `jaato` uses by default, so that the shell's own cost makes no difference.
const SHELL: &str = "bash";

struct RigShellTool;

impl Tool for RigShellTool {
    const NAME: &'static str = "cli_based_tool";
    type Args = ShellCallArguments;
    type Output = ShellCallOutput;
    type Error = std::io::Error;

    fn description(&self) -> String {
        "Runs a shell command and gives what it printed.".to_owned()
    }

    fn parameters(&self) -> Value {
        let command = json!({ "type": "string", "description": "The command." });
        json!({ "type": "object", "properties": { "command": command }, "required": ["command"] })
    }

    async fn call(&self, _context: &mut ToolContext, call: ShellCallArguments) -> std::io::Result<ShellCallOutput> {
        let mut shell = Command::new(SHELL);
        let output = shell.arg("-c").arg(call.command).stdin(Stdio::null()).output().await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Ok(ShellCallOutput { stdout, stderr, returncode: output.status.code() })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let task = std::env::args().nth(1).context("missing task; usage: `rig-agent TASK`")?;
    let model = OpenAI::from_env()?.chat("scripted");
    let agent = AgentBuilder::new(model).preamble("You work in a shell.").tool(RigShellTool).build();
    let run = agent.prompt(task).max_turns(REQUESTS_MAX).tool_concurrency(CALLS_TOGETHER);
    println!("{}", run.await?.output());
    Ok(())
}
