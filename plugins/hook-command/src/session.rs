//! The hooks of one session: who it is, which hooks it has, and running those of an event.

use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt as _};
use jaato_plugin_sdk::hooks::Hook;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use crate::outcome::{HookOutcome, read_outcome};
use crate::run::{CommandResult, HookCommand, run_command};
use crate::settings::{ConfiguredHook, EVENTS, HookLocations, LoadedHooks};
use crate::transcript::{LineFields, Transcript};

/// The time limit of a command whose entry sets no limit, in milliseconds.
const TIMEOUT_MS: u64 = 600_000;
/// The same before a prompt, because the user waits.
const PROMPT_TIMEOUT_MS: u64 = 30_000;
/// The longest time that the plugin asks the host for, in milliseconds.
pub const DEADLINE_MS: u64 = 600_000;
/// The time that the host needs to end a command before the plugin's own deadline, in milliseconds.
const MARGIN_MS: u64 = 500;
/// The user's limit if the host names none, in milliseconds.
const LIMIT_MS: u64 = 60_000;
/// The maximum number of commands that run at the same time, as the host allows for a call.
const RUNNING_MAX: usize = 16;

/// A session with its hooks, which stay as they were at its start.
#[derive(Debug)]
pub struct HookSession {
    /// The hooks.
    pub loaded: LoadedHooks,
    /// The session's folder.
    pub folder: PathBuf,
    /// Whether the session belongs to a subagent.
    pub is_subagent: bool,
    /// The agent's name, or `main` or `subagent`.
    pub agent_type: String,
    session_id: String,
    agent_id: String,
    project: String,
    limit_ms: u64,
    transcript: Option<Transcript>,
}

/// A hook to run, with its input.
pub struct HookJob {
    hook: ConfiguredHook,
    input: Value,
    /// The number that the caller gave the input.
    pub number: usize,
}

impl HookSession {
    /// Reads the facts and the hooks of a session. `locations` lacks the workspace, `transcripts`
    /// is the folder for transcripts.
    ///
    /// # Errors
    /// The host's error.
    pub async fn load_session(
        host: &Reporter,
        mut locations: HookLocations,
        transcripts: Option<&Path>,
    ) -> Result<Self> {
        let facts = host.session().await?;
        locations.workspace = facts.trusted_workspace.map(PathBuf::from);
        locations.folder = PathBuf::from(&facts.working_directory);
        let folder = locations.folder.clone();
        let root = locations.workspace.clone().unwrap_or_else(|| folder.clone());
        let loaded = host.blocking(move |_| locations.read_all_hooks()).await?;
        let is_subagent = facts.agent_type == "subagent";
        let has_name = !facts.agent_name.is_empty();
        Ok(Self {
            loaded,
            is_subagent,
            agent_type: if has_name { facts.agent_name } else { facts.agent_type },
            transcript: transcripts
                .filter(|_| !facts.session_id.is_empty())
                .map(|folder| Transcript::new(folder, &facts.session_id)),
            session_id: facts.session_id,
            agent_id: facts.agent_id,
            project: root.to_string_lossy().into_owned(),
            folder,
            limit_ms: facts.hook_deadline_ms.unwrap_or(LIMIT_MS),
        })
    }

    /// Returns the lines that the user must see once in a session.
    pub fn first_notices(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.loaded.broken.iter().map(|it| format!("hooks cannot be read: {it}")).collect();
        if let Some(hook) = self.loaded.untrusted.first() {
            lines.push(format!(
                "the hooks of {} do not run, because you do not trust this workspace in its \
                 current state; `jaato hook list` shows them, `jaato trust` enables them",
                hook.source
            ));
        }
        let unknown = |hook: &&ConfiguredHook| !EVENTS.contains(&hook.hook.event.as_str());
        let mut unknown: Vec<&str> =
            self.loaded.hooks.iter().filter(unknown).map(|it| it.hook.event.as_str()).collect();
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            lines.push(format!("jaato does not run hooks for {}", unknown.join(", ")));
        }
        lines
    }

    /// Returns the JSON for the commands of an event: the common fields and `more`.
    pub fn event_input(&self, event: &str, more: Value) -> Value {
        let mut input = Map::from_iter([
            ("session_id".to_owned(), json!(self.session_id)),
            ("cwd".to_owned(), json!(self.folder)),
            ("hook_event_name".to_owned(), json!(event)),
        ]);
        if self.is_subagent {
            input.insert("agent_id".to_owned(), json!(self.agent_id));
            input.insert("agent_type".to_owned(), json!(self.agent_type));
        }
        if let Value::Object(more) = more {
            input.extend(more);
        }
        Value::Object(input)
    }

    /// Adds the fields that change during a session to the inputs of an event, unless they have
    /// them. Brings the transcript up to date, because a command may read it.
    pub async fn add_current_fields(
        &self,
        host: &Reporter,
        event: &str,
        inputs: impl Iterator<Item = &mut Value>,
    ) {
        let mut fields = Map::new();
        if let Some(mode) = host.session().await.ok().and_then(|facts| facts.permission_mode) {
            fields.insert("permission_mode".to_owned(), json!(script_mode(&mode)));
        }
        if let Some(path) = self.updated_transcript(host).await {
            fields.insert("transcript_path".to_owned(), json!(path));
            if event == "SubagentStop" {
                fields.insert("agent_transcript_path".to_owned(), json!(path));
            }
        }
        for input in inputs.filter_map(Value::as_object_mut) {
            for (key, value) in &fields {
                input.entry(key).or_insert_with(|| value.clone());
            }
        }
    }

    /// Returns the path of the transcript with all messages so far, if it can be written.
    async fn updated_transcript(&self, host: &Reporter) -> Option<&Path> {
        let transcript = self.transcript.as_ref()?;
        let fields = LineFields {
            session_id: &self.session_id,
            folder: &self.folder,
            is_subagent: self.is_subagent,
        };
        match transcript.update(host, &fields).await {
            Ok(()) => Some(transcript.path()),
            Err(error) => {
                host.log(LogLevel::Warn, format!("no transcript: {}", error.message));
                None
            }
        }
    }

    /// Removes the transcript.
    pub async fn remove_transcript(&self, host: &Reporter) {
        if let Some(transcript) = &self.transcript {
            transcript.remove(host).await;
        }
    }

    /// Lists the hooks of an event for an input. `names` are the words for their matchers, empty
    /// for an event without matchers.
    pub fn event_jobs(
        &self,
        event: &str,
        names: &[&str],
        more: Value,
        number: usize,
    ) -> Vec<HookJob> {
        let hooks = self.loaded.matching_hooks(event, names);
        if hooks.is_empty() {
            return Vec::new();
        }
        let input = self.event_input(event, more);
        let job =
            |hook: &ConfiguredHook| HookJob { hook: hook.clone(), input: input.clone(), number };
        hooks.into_iter().map(job).collect()
    }

    /// Runs the hooks of an event and combines their outcomes.
    pub async fn run_event(
        &self,
        host: &Reporter,
        moment: Hook,
        event: &str,
        names: &[&str],
        more: Value,
    ) -> HookOutcome {
        let jobs = self.event_jobs(event, names, more, 0);
        let mut all = HookOutcome::default();
        for (_, outcome) in self.run_jobs(host, moment, event, jobs).await {
            all.combine(outcome);
        }
        all
    }

    /// Runs hooks at the same time. Returns each outcome with the number of its input, in order.
    pub async fn run_jobs(
        &self,
        host: &Reporter,
        moment: Hook,
        event: &str,
        mut jobs: Vec<HookJob>,
    ) -> Vec<(usize, HookOutcome)> {
        if jobs.is_empty() {
            return Vec::new();
        }
        let inputs = jobs.iter_mut().map(|job| &mut job.input);
        self.add_current_fields(host, event, inputs).await;
        let runs = jobs
            .into_iter()
            .map(|job| async move { (job.number, self.run_job(host, moment, event, &job).await) });
        stream::iter(runs).buffered(RUNNING_MAX).collect().await
    }

    async fn run_job(
        &self,
        host: &Reporter,
        moment: Hook,
        event: &str,
        job: &HookJob,
    ) -> HookOutcome {
        let label = job.hook.label();
        match self.run_single_job(host, moment, job).await {
            Ok(result) => read_outcome(event, &label, &result),
            Err(problem) => HookOutcome::from_failure(event, &label, &problem),
        }
    }

    /// Runs one hook.
    ///
    /// # Errors
    /// The reason why the entry cannot run.
    pub async fn run_single_job(
        &self,
        host: &Reporter,
        moment: Hook,
        job: &HookJob,
    ) -> std::result::Result<CommandResult, String> {
        let hook = &job.hook.hook;
        if let Some(problem) = &hook.problem {
            return Err(problem.clone());
        }
        let folder = self.folder.to_string_lossy();
        let command = HookCommand {
            command: &hook.command,
            input: &job.input.to_string(),
            folder: &folder,
            project: &self.project,
            timeout_ms: self.timeout_ms(moment, hook.timeout_ms),
        };
        Ok(run_command(host, &command).await)
    }

    /// Returns the time limit of a command: that of its entry, but less than the host waits for the
    /// plugin, so that the user learns which command was late.
    fn timeout_ms(&self, moment: Hook, asked: Option<u64>) -> u64 {
        let default = if moment == Hook::BeforePrompt { PROMPT_TIMEOUT_MS } else { TIMEOUT_MS };
        let most = moment.deadline_ms(Some(DEADLINE_MS), self.limit_ms);
        let most = most.saturating_sub(MARGIN_MS.min(most / 4)).max(1);
        asked.unwrap_or(default).min(most)
    }
}

/// Returns the name that scripts know for an approval mode.
fn script_mode(mode: &str) -> &str {
    match mode {
        "ask" => "default",
        "accept-edits" => "acceptEdits",
        // Both allow only reading.
        "plan" | "read-only" => "plan",
        "allow-all" => "bypassPermissions",
        other => other,
    }
}

impl HookJob {
    /// Returns the hook.
    pub fn hook(&self) -> &ConfiguredHook {
        &self.hook
    }
}
