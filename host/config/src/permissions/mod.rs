//! Files with rules about tool calls: those of this machine, of the user, and of a trusted
//! workspace.
//!
//! Reads and edits the files. `jaato_policy` knows the meaning of the rules. A file that cannot be
//! parsed counts as broken and is never ignored, because it may contain a rule that denies a call.

mod cases;
mod edit;
mod json;
mod toml;

use std::path::{Path, PathBuf};

use jaato_policy::{
    Glob, PathPattern, RestOfCommand, RuleConditions, RuleFile, RuleLayer, RuleOutcome,
    shipped_rules,
};

use crate::CONFIG_BYTES_MAX;
use crate::trust::TrustedWorkspace;

pub use cases::{RuleCase, read_cases};
pub use edit::{DEFINITION_KEY, NewRule, add_rule, edit_rules, remove_rule};

/// Our own format.
pub const RULES_FILE: &str = "permissions.toml";

/// The original's format.
pub const ORIGINAL_FILE: &str = "permissions.json";

/// The original's variable with the path of one more file of the user.
pub const ORIGINAL_VARIABLE: &str = "PERMISSION_CONFIG_PATH";

/// The folder for files of this machine's administrator.
pub const ENTERPRISE_FOLDER: &str = "/etc/jaato";

/// The places of files with rules.
#[derive(Debug, Clone, Copy)]
pub struct RuleSources<'a> {
    /// The folder of this machine.
    pub enterprise: Option<&'a Path>,
    /// The user's folder with `config.toml`.
    pub user: Option<&'a Path>,
    /// The user's home folder.
    pub home: Option<&'a Path>,
    /// A file that the user names with [`ORIGINAL_VARIABLE`].
    pub named: Option<&'a Path>,
    /// The workspace, if it is trusted.
    pub workspace: Option<&'a TrustedWorkspace>,
    /// The workspace's root, the base of relative paths in rules.
    pub root: &'a Path,
}

/// The content of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleFiles {
    /// Files with rules, in order of precedence.
    pub files: Vec<RuleFile>,
    /// How the user is asked, if a file in the original's format says so. The file with the highest
    /// precedence counts.
    pub channel: Option<AskingChannel>,
    /// Parts of the files that have no meaning here.
    pub warnings: Vec<String>,
}

/// `channel` of `permissions.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingChannel {
    /// `console`, `webhook`, `queue` or `file`.
    pub kind: String,
    /// A URL, or a folder.
    pub endpoint: Option<String>,
    /// The longest wait for an answer. 0 or less means no limit.
    pub timeout_s: i64,
}

/// The content of one file.
#[derive(Debug)]
struct ParsedRuleFile {
    file: RuleFile,
    /// Whether it disables the shipped rules.
    without_shipped: bool,
    channel: Option<AskingChannel>,
    warnings: Vec<String>,
}

/// The origin of a file, for its parser.
#[derive(Debug, Clone, Copy)]
struct RuleFileOrigin<'a> {
    layer: RuleLayer,
    path: &'a Path,
    home: Option<&'a Path>,
    root: &'a Path,
}

/// Reads all existing files.
pub fn load_rules(sources: &RuleSources<'_>) -> RuleFiles {
    let original_user = sources.home.map(|home| home.join(".jaato"));
    let folders = [
        (RuleLayer::Enterprise, sources.enterprise),
        (RuleLayer::User, sources.user),
        (RuleLayer::User, original_user.as_deref()),
    ];
    let mut found: Vec<(RuleLayer, PathBuf)> = Vec::new();
    for (layer, folder) in folders {
        let Some(folder) = folder else { continue };
        found.extend([RULES_FILE, ORIGINAL_FILE].map(|name| (layer, folder.join(name))));
    }
    found.extend(sources.named.map(|path| (RuleLayer::User, path.to_owned())));
    let (mut files, mut without_shipped) = (RuleFiles::default(), false);
    let mut add = |parsed: ParsedRuleFile| {
        without_shipped |= parsed.without_shipped;
        files.add_file(parsed);
    };
    for (layer, path) in found {
        let origin = RuleFileOrigin { layer, path: &path, home: sources.home, root: sources.root };
        match jaato_places::read_own_file(&path, CONFIG_BYTES_MAX) {
            Ok(None) if sources.named == Some(&path) => {
                let what = format!("it does not exist, but `{ORIGINAL_VARIABLE}` names it");
                add(broken_file(&origin, 0, what));
            }
            Ok(None) => {}
            Ok(Some(bytes)) => add(parse_rule_file(&origin, &bytes)),
            // A home that is not a folder has no files.
            Err(error) if error.is_missing() || error.has_non_folder_parent() => {}
            Err(error) => add(broken_file(&origin, 0, error.with_hint())),
        }
    }
    for name in [RULES_FILE, ORIGINAL_FILE] {
        let Some(workspace) = sources.workspace else { break };
        let name = format!("{}/{name}", crate::trust::WORKSPACE_FOLDER);
        let path = workspace.root().join(&name);
        let origin = RuleFileOrigin {
            layer: RuleLayer::Workspace,
            path: &path,
            home: sources.home,
            root: sources.root,
        };
        match workspace.read_file(&name) {
            Ok(None) => {}
            Ok(Some(bytes)) => add(parse_rule_file(&origin, &bytes)),
            Err(error) => add(broken_file(&origin, 0, error.to_string())),
        }
    }
    if !without_shipped {
        files.files.push(shipped_rules());
    }
    files
}

/// Checks the text of a file before it is written. Returns the line and the error.
pub fn load_text_rules(
    path: &Path,
    text: &str,
    is_workspace: bool,
    home: Option<&Path>,
    root: &Path,
) -> Option<(usize, String)> {
    let layer = if is_workspace { RuleLayer::Workspace } else { RuleLayer::User };
    // If the home is unknown, any path will do, because this only checks whether the file can be
    // parsed.
    let home = Some(home.unwrap_or(Path::new("/")));
    parse_rule_file(&RuleFileOrigin { layer, path, home, root }, text.as_bytes()).file.broken
}

impl RuleFiles {
    fn add_file(&mut self, parsed: ParsedRuleFile) {
        self.files.push(parsed.file);
        self.channel = self.channel.take().or(parsed.channel);
        self.warnings.extend(parsed.warnings);
    }
}

fn parse_rule_file(origin: &RuleFileOrigin<'_>, bytes: &[u8]) -> ParsedRuleFile {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return broken_file(origin, 0, "it is not utf-8".to_owned());
    };
    let is_original = origin.path.extension().is_some_and(|ending| ending == "json");
    let parsed = if is_original {
        json::parse_json_rules(origin, text)
    } else {
        toml::parse_toml_rules(origin, text)
    };
    parsed.unwrap_or_else(|(line, what)| broken_file(origin, line, what))
}

fn broken_file(origin: &RuleFileOrigin<'_>, line: usize, what: String) -> ParsedRuleFile {
    let file = RuleFile { broken: Some((line, what)), ..origin.empty_file() };
    ParsedRuleFile { file, without_shipped: false, channel: None, warnings: Vec::new() }
}

impl RuleFileOrigin<'_> {
    fn empty_file(&self) -> RuleFile {
        let path = self.path.display().to_string().into();
        RuleFile { layer: self.layer, path, default: None, rules: Vec::new(), broken: None }
    }

    /// Refuses a workspace's rule that allows more than the user can see in it, because the file
    /// comes with the repository.
    fn check_allow_of_workspace(
        &self,
        outcome: RuleOutcome,
        when: &RuleConditions,
    ) -> Result<(), String> {
        if outcome != RuleOutcome::Allow || self.layer != RuleLayer::Workspace {
            return Ok(());
        }
        let refused = |what: &str| Err(format!("a rule of a workspace that allows {what}"));
        let is_broad = |glob: &Option<Glob>| {
            glob.as_ref().is_some_and(|glob| glob.as_str().contains(['*', '?']))
        };
        if is_broad(&when.tool) || is_broad(&when.plugin) {
            return refused("names its tool and plugin in full, without `*` and `?`");
        }
        match &when.command {
            None if when.tool.is_none() => refused("names a tool or a command"),
            Some(command) if command.rest == RestOfCommand::AnyOptions => {
                refused("cannot say `options = \"any\"`")
            }
            Some(_) | None => match &when.path {
                Some(path) if !path.path.starts_with(self.root) => {
                    refused(&format!("names a path inside the workspace, not `{}`", path.written))
                }
                Some(_) | None => Ok(()),
            },
        }
    }

    /// Parses a path of a rule, and makes `~` and relative paths absolute.
    fn path_pattern(&self, written: &str) -> Result<PathPattern, String> {
        let path = match (written.strip_prefix('~'), self.home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(&rest[1..]),
            (Some(_), _) => {
                return Err(format!("`{written}` needs the home folder, which is unknown"));
            }
            (None, _) => self.root.join(written),
        };
        let mut whole = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => _ = whole.pop(),
                std::path::Component::CurDir => {}
                other => whole.push(other),
            }
        }
        Ok(PathPattern { written: written.to_owned(), path: whole })
    }
}
