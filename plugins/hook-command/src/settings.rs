//! Which hooks are configured: in the user's configuration, in the settings files of a trusted
//! workspace, and in the user's own settings file if they ask for it.
//!
//! Invariant: a file that lists hooks and cannot be read is never taken for a file without hooks.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::prelude::Value;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::command_hooks::{
    CommandHook, SETTINGS_BYTES_MAX, SETTINGS_FILES, parse_command_hooks, parse_settings_hooks,
};

use crate::matcher::Matcher;

/// The events whose hooks jaato runs.
pub const EVENTS: [&str; 9] = [
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "Notification",
];

/// The locations of hooks.
#[derive(Debug, Clone, Default)]
pub struct HookLocations {
    /// The hooks in the configuration, by event.
    pub configured: Map<String, Value>,
    /// The root of the workspace, if it is trusted.
    pub workspace: Option<PathBuf>,
    /// Whether hooks of workspaces run.
    pub uses_workspace: bool,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// Whether the hooks of the user's own settings file run.
    pub uses_home: bool,
    /// The folder in which the session works.
    pub folder: PathBuf,
}

/// A hook with its matcher.
#[derive(Debug, Clone)]
pub struct ConfiguredHook {
    /// The entry.
    pub hook: CommandHook,
    /// The file or the section that lists it, for users.
    pub source: String,
    /// The matcher. Matches everything if it is invalid.
    pub matcher: Matcher,
}

/// All hooks.
#[derive(Debug, Clone, Default)]
pub struct LoadedHooks {
    /// Those that run, in the order of their files.
    pub hooks: Vec<ConfiguredHook>,
    /// Those of files that are not trusted, which do not run.
    pub untrusted: Vec<ConfiguredHook>,
    /// Files that cannot be read, each with the reason.
    pub broken: Vec<String>,
}

impl ConfiguredHook {
    fn new(mut hook: CommandHook, source: &str) -> Self {
        let matcher = match Matcher::parse(&hook.matcher) {
            Ok(matcher) => matcher,
            Err(problem) => {
                hook.problem.get_or_insert(problem);
                Matcher::All
            }
        };
        Self { hook, source: source.to_owned(), matcher }
    }

    /// Returns the hook for messages: its command and its source.
    pub fn label(&self) -> String {
        let command = &self.hook.command;
        let name = if command.is_empty() { &self.hook.event } else { command };
        format!("`{name}` of {}", self.source)
    }
}

impl LoadedHooks {
    /// Lists the hooks of an event for these names, each command once. The events for which there
    /// are no names have no matcher.
    pub fn matching_hooks(&self, event: &str, names: &[&str]) -> Vec<&ConfiguredHook> {
        let mut found: Vec<&ConfiguredHook> = Vec::new();
        for hook in self.hooks.iter().filter(|it| it.hook.event == event) {
            let is_new = found.iter().all(|other| {
                other.hook.command != hook.hook.command || other.hook.problem != hook.hook.problem
            });
            if is_new && (names.is_empty() || hook.matcher.is_match(names)) {
                found.push(hook);
            }
        }
        found
    }

    fn add_hooks(
        &mut self,
        source: &str,
        read: Result<Vec<CommandHook>, String>,
        is_trusted: bool,
    ) {
        match read {
            Ok(hooks) => {
                let hooks = hooks.into_iter().map(|hook| ConfiguredHook::new(hook, source));
                let to = if is_trusted { &mut self.hooks } else { &mut self.untrusted };
                to.extend(hooks);
            }
            Err(why) if is_trusted => self.broken.push(format!("`{source}`: {why}")),
            // No one counts on hooks of an untrusted file.
            Err(_) => {}
        }
    }
}

impl HookLocations {
    /// Reads all files.
    pub fn read_all_hooks(&self) -> LoadedHooks {
        let mut loaded = LoadedHooks::default();
        loaded.add_hooks("the configuration", parse_command_hooks(&self.configured), true);
        if let Some(home) = self.home.as_ref().filter(|_| self.uses_home) {
            loaded.add_hooks(
                "~/.claude/settings.json",
                read_hooks_file(&home.join(SETTINGS_FILES[0])),
                true,
            );
        }
        if !self.uses_workspace {
            return loaded;
        }
        for folder in self.workspace_folders() {
            for name in SETTINGS_FILES {
                let read = read_workspace_file(folder, name);
                loaded.add_hooks(name, read, self.workspace.is_some());
            }
            if !loaded.untrusted.is_empty() {
                break;
            }
        }
        loaded
    }

    /// Lists the root of a trusted workspace, or the folders in which an untrusted one may have
    /// hooks: the session's and those above it, up to the user's home.
    fn workspace_folders(&self) -> Vec<&Path> {
        let is_home = |folder: &Path| self.home.as_deref() == Some(folder);
        match &self.workspace {
            Some(root) if self.uses_home && is_home(root) => Vec::new(),
            Some(root) => vec![root],
            None => self.folder.ancestors().take_while(|folder| !is_home(folder)).collect(),
        }
    }
}

/// Reads the hooks of a workspace's file. A link that leads out of the workspace counts as no file,
/// because trust does not cover its target.
fn read_workspace_file(root: &Path, name: &str) -> Result<Vec<CommandHook>, String> {
    let path = root.join(name);
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let is_inside = match (path.canonicalize(), root.canonicalize()) {
        (Ok(file), Ok(root)) => file.starts_with(root) && path.parent().is_some_and(is_folder),
        _ => return Ok(Vec::new()),
    };
    match is_inside {
        true => read_hooks_file(&path),
        false => Err("it is a link that leads out of the workspace".to_owned()),
    }
}

fn read_hooks_file(path: &Path) -> Result<Vec<CommandHook>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = String::new();
    let mut limited = file.take(SETTINGS_BYTES_MAX + 1);
    limited.read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > SETTINGS_BYTES_MAX {
        return Err(format!("it has more than {SETTINGS_BYTES_MAX} bytes"));
    }
    parse_settings_hooks(&text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const STOP: &str = r#"{"hooks": {"Stop": [{"hooks": [{"command": "NAME"}]}]}}"#;

    fn workspace_with_hooks() -> (tempfile::TempDir, HookLocations) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".claude")).unwrap();
        let root = folder.path().to_owned();
        let locations = HookLocations {
            workspace: Some(root.clone()),
            uses_workspace: true,
            folder: root,
            ..HookLocations::default()
        };
        (folder, locations)
    }

    fn hook_commands(hooks: &[ConfiguredHook]) -> Vec<&str> {
        hooks.iter().map(|it| it.hook.command.as_str()).collect()
    }

    #[test]
    fn files_of_a_trusted_workspace_are_read_and_others_only_listed() {
        let (folder, mut locations) = workspace_with_hooks();
        for (name, command) in SETTINGS_FILES.iter().zip(["shared", "local"]) {
            fs::write(folder.path().join(name), STOP.replace("NAME", command)).unwrap();
        }
        let loaded = locations.read_all_hooks();
        assert_eq!(hook_commands(&loaded.hooks), ["shared", "local"]);
        assert_eq!(loaded.hooks[0].label(), "`shared` of .claude/settings.json");
        locations.workspace = None;
        locations.folder = folder.path().join("sub");
        let loaded = locations.read_all_hooks();
        assert!(loaded.hooks.is_empty());
        assert_eq!(hook_commands(&loaded.untrusted), ["shared", "local"]);
        locations.uses_workspace = false;
        assert!(locations.read_all_hooks().untrusted.is_empty());
    }

    #[test]
    fn a_trusted_file_that_cannot_be_read_is_reported() {
        let (folder, mut locations) = workspace_with_hooks();
        let path = folder.path().join(SETTINGS_FILES[0]);
        fs::write(&path, "{").unwrap();
        assert!(
            locations.read_all_hooks().broken[0]
                .starts_with("`.claude/settings.json`: it is not valid")
        );
        fs::remove_file(&path).unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), STOP).unwrap();
        std::os::unix::fs::symlink(outside.path().join("x"), &path).unwrap();
        let loaded = locations.read_all_hooks();
        assert!(loaded.broken[0].contains("leads out of the workspace"), "{loaded:?}");
        assert!(loaded.hooks.is_empty());
        locations.workspace = None;
        assert!(locations.read_all_hooks().broken.is_empty());
    }

    #[test]
    fn a_command_runs_once_for_an_event_even_if_listed_twice() {
        let text = r#"{"PreToolUse": [
            {"matcher": "Bash", "hooks": [{"command": "a"}, {"command": "b"}]},
            {"matcher": "", "hooks": [{"command": "a"}]},
            {"matcher": "(", "hooks": [{"command": "c"}]}]}"#;
        let configured: Map<String, Value> = jaato_plugin_sdk::serde_json::from_str(text).unwrap();
        let loaded = HookLocations { configured, ..HookLocations::default() }.read_all_hooks();
        let found = loaded.matching_hooks("PreToolUse", &["Bash"]);
        let found: Vec<&str> = found.iter().map(|it| it.hook.command.as_str()).collect();
        assert_eq!(found, ["a", "b", "c"]);
        assert!(loaded.matching_hooks("Stop", &["Bash"]).is_empty());
        assert!(loaded.hooks[3].hook.problem.is_some());
    }
}
