//! The tool `cli_based_tool`.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{OutputStream, Process, ProcessExit, ProcessUpdate};

use crate::config::CliPlugin;
use crate::tool_result::{STDERR, STDOUT, exit_result};

/// Run a command in the user's shell. Returns stdout, stderr and returncode.
#[derive(ToolInput)]
#[tool(
    core,
    category = "system",
    destructive,
    open_world,
    parallel_safe,
    auto_background,
    available_if(
        environment_has = "shell",
        reason = "in a session whose execution environment runs commands"
    ),
    example(
        "Create a file named notes.txt with the text hello",
        command = "echo hello > notes.txt"
    ),
    example("Which files are in this folder?", command = "ls -la"),
    example("How many lines has data.csv?", command = "wc -l data.csv"),
    example("Make a folder named logs", command = "mkdir -p logs")
)]
struct CliBasedTool {
    /// Shell command.
    #[schemars(extend("x-jaato-touches" = "command"))]
    command: String,
    /// Arguments, not parsed by the shell.
    #[schemars(extend("x-jaato-touches" = "command"))]
    args: Option<Vec<String>>,
    /// Time limit.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u32>,
}

impl Tool for CliBasedTool {
    type State = CliPlugin;

    async fn call(self, cx: &Cx<CliPlugin>) -> Result<Output> {
        if self.command.trim().is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "`command` is empty")
                .with_hint("give a shell command, such as `ls -la`"));
        }
        let timeout = cx.state().effective_timeout(cx, self.timeout_seconds).await?;
        let args = self.args.unwrap_or_default();
        let process = cx.state().start_command(cx, &self.command, &args, timeout).await?;
        let exit = stream_output(cx, process).await?;
        Ok(Output::json(Value::Object(exit_result(&exit, timeout))))
    }
}

/// Streams a command's output until it ends.
async fn stream_output(host: &Reporter, mut process: Process) -> Result<ProcessExit> {
    let mut exit = None;
    while let Some(happened) = process.next().await? {
        match happened {
            ProcessUpdate::Output { stream: OutputStream::Stdout, bytes } => {
                host.keep_and_show(STDOUT, bytes).await?;
            }
            ProcessUpdate::Output { stream: OutputStream::Stderr, bytes } => {
                host.keep_and_show(STDERR, bytes).await?;
            }
            ProcessUpdate::Exited(exited) => exit = Some(exited),
        }
    }
    exit.ok_or_else(|| {
        Error::new(ErrorKind::HostBug, "the host did not report how the command ended")
    })
}

tool!(CliBasedTool);

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::{Annotations, Availability, touches};

    use super::*;
    use crate::config::TIMEOUT_SECONDS_MAX;

    /// Every request contains this text, and small models see it in their prompt.
    #[test]
    fn cli_tool_spec_stays_within_its_size_limit() {
        let spec = CliBasedTool::spec();
        let parameters = touches::without_use_keyword(&spec.parameters);
        let bytes = spec.description.len() + parameters.to_string().len();
        assert!(bytes <= 480, "{bytes}: {}", spec.parameters);
        assert_eq!(spec.parameters["required"], json!(["command"]));
        let bound = &spec.parameters["properties"]["timeout_seconds"]["maximum"];
        assert_eq!(bound.as_f64(), Some(f64::from(TIMEOUT_SECONDS_MAX)));
    }

    #[test]
    fn cli_tool_spec_promises_only_parallel_safety() {
        let spec = CliBasedTool::spec();
        let promised = Annotations {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
            parallel_safe: true,
        };
        assert_eq!((spec.name.as_str(), spec.category.as_str()), ("cli_based_tool", "system"));
        assert_eq!((spec.annotations, spec.availability), (promised, Availability::Core));
        assert!(spec.auto_background && !spec.auto_approval);
    }
}
