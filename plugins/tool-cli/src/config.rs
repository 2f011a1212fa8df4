//! `[plugins.tool-cli]`, and how a command line becomes a program with words.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{Process, Spawn};
use jaato_plugin_sdk::{schemars, serde_json};

/// How long a command may take where nobody says otherwise. The session's own bound is 600 s: the command
/// must end before it, or what it printed would be lost.
pub const TIMEOUT_SECONDS: u32 = 300;

/// Longest time that a call may ask for.
pub const TIMEOUT_SECONDS_MAX: u32 = 3600;

/// The shells that are tried, where the person names none.
const SHELLS: [&str; 2] = ["bash", "/bin/sh"];

/// `[plugins.tool-cli]`.
#[tool_type]
#[derive(Debug, Default)]
#[serde(default)]
struct Config {
    /// Folders that are appended to `PATH` for commands, as absolute paths.
    extra_paths: Vec<String>,
    /// The shell that runs commands: it must understand `-c`. Without it `bash`, else `/bin/sh`.
    shell: Option<String>,
    /// How many seconds a command may take that does not say so itself.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u32>,
}

/// The plugin's state: its configuration, and which shell there is.
pub struct Cli {
    config: Config,
    lacks_bash: AtomicBool,
    /// The shell of an environment that is not this machine; none where it names none. Asked once.
    elsewhere: OnceLock<Option<String>>,
}

impl State for Cli {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::new(home.config().await?))
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
    }
}

impl Cli {
    fn new(config: Config) -> Self {
        Self { config, lacks_bash: AtomicBool::new(false), elsewhere: OnceLock::new() }
    }

    /// Returns the shell that an environment names which is not this machine.
    async fn shell_elsewhere(&self, host: &Reporter) -> Result<Option<&str>> {
        if self.elsewhere.get().is_none() {
            let shell = match host.environment().await {
                Ok(facts) if facts.is_host => None,
                Ok(facts) => facts.shell.map(|shell| shell.path),
                // Programs run all the same on a host that has only them.
                Err(error) if error.kind == ErrorKind::UnknownOperation => None,
                Err(error) => return Err(error),
            };
            // Whoever asked first has said the same.
            let _ = self.elsewhere.set(shell);
        }
        Ok(self.elsewhere.get().and_then(Option::as_deref))
    }

    /// Returns how long a command may take, in seconds.
    pub fn timeout_seconds(&self, asked: Option<u32>) -> u32 {
        let timeout = asked.or(self.config.timeout_seconds).unwrap_or(TIMEOUT_SECONDS);
        timeout.clamp(1, TIMEOUT_SECONDS_MAX)
    }

    /// Starts a command in the shell.
    pub async fn start(
        &self,
        host: &Reporter,
        command: &str,
        args: &[String],
        seconds: u32,
    ) -> Result<Process> {
        let spawn = |shell: &str| Spawn {
            extra_paths: self.config.extra_paths.clone(),
            ..in_shell(shell, command, args).deadline_ms(u64::from(seconds) * 1000)
        };
        if let Some(shell) = &self.config.shell {
            return host.process(&spawn(shell)).await;
        }
        if let Some(shell) = self.shell_elsewhere(host).await? {
            return host.process(&spawn(shell)).await;
        }
        let [bash, sh] = SHELLS;
        if !self.lacks_bash.load(Relaxed) {
            match host.process(&spawn(bash)).await {
                // Or the directory is not there, which the next attempt tells again.
                Err(error) if error.kind == ErrorKind::NotFound => {}
                started => return started,
            }
        }
        let started = host.process(&spawn(sh)).await?;
        self.lacks_bash.store(true, Relaxed);
        Ok(started)
    }
}

/// With words, the shell runs exactly them: `"$@"` is expanded to words and never read as a script.
fn in_shell(shell: &str, command: &str, args: &[String]) -> Spawn {
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
    fn a_command_alone_is_a_script_and_with_words_it_is_a_program() {
        let script = in_shell("bash", "ls | wc -l", &[]);
        assert_eq!(script.args, ["-c", "ls | wc -l"]);
        let words = in_shell("bash", "echo", &["$HOME".to_owned(), "a b".to_owned()]);
        assert_eq!(words.args, ["-c", "\"$@\"", "bash", "echo", "$HOME", "a b"]);
        assert_eq!(words.label.as_deref(), Some("echo $HOME a b"));
    }

    #[test]
    fn a_call_wins_over_the_configuration_and_both_are_bounded() {
        let cli = |timeout_seconds| Cli::new(Config { timeout_seconds, ..Config::default() });
        assert_eq!(cli(None).timeout_seconds(None), TIMEOUT_SECONDS);
        assert_eq!(cli(Some(20)).timeout_seconds(None), 20);
        assert_eq!(cli(Some(20)).timeout_seconds(Some(30)), 30);
        assert_eq!(cli(None).timeout_seconds(Some(0)), 1);
        assert_eq!(cli(None).timeout_seconds(Some(u32::MAX)), TIMEOUT_SECONDS_MAX);
    }

    #[test]
    fn the_bound_in_the_schema_is_the_one_that_holds() {
        let mut description = Description::default();
        Cli::describe(&mut description);
        let schema = description.config_schema.unwrap();
        let bound = &schema["properties"]["timeout_seconds"]["maximum"];
        assert_eq!(bound.as_f64(), Some(f64::from(TIMEOUT_SECONDS_MAX)), "{schema}");
    }
}
