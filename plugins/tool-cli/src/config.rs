//! The `[plugins.tool-cli]` settings, and the conversion of a command line to a program with
//! arguments.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{Process, Spawn};
use jaato_plugin_sdk::types::execution::EnvironmentFacts;
use jaato_plugin_sdk::{schemars, serde_json};

/// The default time limit of a command, if neither the call, the configuration nor the execution
/// environment sets one. It is shorter than the session's own limit of 600 s, at which the
/// command's output would be lost.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The longest time that a call may ask for.
pub const TIMEOUT_SECONDS_MAX: u32 = 3600;

/// The shells to try if the user sets none.
const SHELLS: [&str; 2] = ["bash", "/bin/sh"];

/// `[plugins.tool-cli]`.
#[tool_type]
#[derive(Debug, Default)]
#[serde(default)]
struct CliConfig {
    /// Folders to append to `PATH` for commands.
    #[schemars(extend("x-jaato-path" = "file"))]
    extra_paths: Vec<String>,
    /// The shell that runs commands. It must accept `-c`. The default is `bash`, else `/bin/sh`.
    #[schemars(extend("x-jaato-path" = "home"))]
    shell: Option<String>,
    /// Time limit in seconds for a command that sets none itself. The default is the execution
    /// environment's limit (`shell_timeout`).
    #[schemars(range(min = 1, max = 3600))]
    #[schemars(extend("x-jaato-workspace" = true))]
    timeout_seconds: Option<u32>,
}

/// The plugin's state: its configuration, and whether bash is missing.
pub struct CliPlugin {
    config: CliConfig,
    lacks_bash: AtomicBool,
    environment: OnceLock<CommandEnvironment>,
}

/// The execution environment's facts about commands. Requested once, when they are needed.
#[derive(Debug, Clone)]
struct CommandEnvironment {
    /// The shell of an environment that is not this machine. `None` if the environment names none.
    shell: Option<String>,
    /// The environment's default time limit of a command.
    timeout: Option<Duration>,
}

impl State for CliPlugin {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::new(home.config().await?))
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(CliConfig)).ok();
    }
}

impl CliPlugin {
    fn new(config: CliConfig) -> Self {
        Self { config, lacks_bash: AtomicBool::new(false), environment: OnceLock::new() }
    }

    async fn command_environment(&self, host: &Reporter) -> Result<&CommandEnvironment> {
        if let Some(told) = self.environment.get() {
            return Ok(told);
        }
        let told = CommandEnvironment::from_facts(host.environment().await?);
        // A concurrent request got the same facts.
        Ok(self.environment.get_or_init(|| told))
    }

    /// Returns the time limit of a command: from the call, or else the user's configuration, or
    /// else the environment.
    pub async fn effective_timeout(&self, host: &Reporter, asked: Option<u32>) -> Result<Duration> {
        if let Some(seconds) = asked.or(self.config.timeout_seconds) {
            return Ok(Duration::from_secs(seconds.clamp(1, TIMEOUT_SECONDS_MAX).into()));
        }
        Ok(self.command_environment(host).await?.timeout.unwrap_or(TIMEOUT))
    }

    /// Starts a command in the shell.
    pub async fn start_command(
        &self,
        host: &Reporter,
        command: &str,
        args: &[String],
        timeout: Duration,
    ) -> Result<Process> {
        let deadline_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let spawn = |shell: &str| Spawn {
            extra_paths: self.config.extra_paths.clone(),
            variables: variables_against_configured_programs(),
            ..shell_spawn(shell, command, args).deadline_ms(deadline_ms)
        };
        if let Some(shell) = &self.config.shell {
            return host.process(&spawn(shell)).await;
        }
        if let Some(shell) = &self.command_environment(host).await?.shell {
            return host.process(&spawn(shell)).await;
        }
        let [bash, sh] = SHELLS;
        if !self.lacks_bash.load(Relaxed) {
            match host.process(&spawn(bash)).await {
                // The directory may be missing instead. The next attempt then reports it.
                Err(error) if error.kind == ErrorKind::NotFound => {}
                started => return started,
            }
        }
        let started = host.process(&spawn(sh)).await?;
        self.lacks_bash.store(true, Relaxed);
        Ok(started)
    }
}

impl CommandEnvironment {
    fn from_facts(facts: EnvironmentFacts) -> Self {
        let elsewhere = facts.shell.filter(|_| !facts.is_host);
        let timeout = Some(Duration::from_millis(facts.shell_timeout_ms));
        Self {
            shell: elsewhere.map(|shell| shell.path),
            timeout: timeout.filter(|timeout| !timeout.is_zero()),
        }
    }
}

/// Variables that keep read-only programs from running other programs, because jaato's default
/// rules allow read-only programs without a permission prompt. A pager would also wait for keys.
fn variables_against_configured_programs() -> BTreeMap<String, String> {
    let variables = [("GIT_PAGER", "cat"), ("RIPGREP_CONFIG_PATH", "")];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Runs a command in a shell. If there are arguments, the shell runs exactly these: `"$@"` expands
/// to words that the shell never parses as a script.
fn shell_spawn(shell: &str, command: &str, args: &[String]) -> Spawn {
    let spawn = Spawn::program(shell).arg("-c");
    if args.is_empty() {
        return spawn.arg(command).label(command);
    }
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let label = words.clone().collect::<Vec<_>>().join(" ");
    let spawn = spawn.arg("\"$@\"").arg(shell);
    words.fold(spawn, Spawn::arg).label(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_alone_runs_as_a_script_and_with_arguments_as_a_program() {
        let script = shell_spawn("bash", "ls | wc -l", &[]);
        assert_eq!(script.args, ["-c", "ls | wc -l"]);
        let words = shell_spawn("bash", "echo", &["$HOME".to_owned(), "a b".to_owned()]);
        assert_eq!(words.args, ["-c", "\"$@\"", "bash", "echo", "$HOME", "a b"]);
        assert_eq!(words.label.as_deref(), Some("echo $HOME a b"));
    }

    #[test]
    fn config_schema_states_the_timeout_maximum() {
        let mut description = Description::default();
        CliPlugin::describe(&mut description);
        let schema = description.config_schema.unwrap();
        let bound = &schema["properties"]["timeout_seconds"]["maximum"];
        assert_eq!(bound.as_f64(), Some(f64::from(TIMEOUT_SECONDS_MAX)), "{schema}");
    }
}
