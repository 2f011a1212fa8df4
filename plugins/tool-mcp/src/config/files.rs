//! Reads and merges the files that configure servers: the workspace's file, the user's file and the
//! configuration.
//!
//! A broken file or entry is skipped and reported in one line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::serde_json::{Map, Value};
use jaato_plugin_sdk::types::mcp_entry::{
    AgreedVariables, USER_HOME, WORKSPACE_FOLDER, canonical_json, referenced_variables,
    server_entries,
};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use sha2::{Digest as _, Sha256};

use super::entry::{self, McpConfigOrigin, ServerEntry};
use super::expand::VariableLookup;

/// The name of the file, in a workspace and in a home folder.
pub const FILE_NAME: &str = ".mcp.json";
/// The maximum size of a file.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The maximum number of servers, because each may be a process.
pub const SERVERS_MAX: usize = 32;
/// The maximum number of variables that one line names.
const NAMES_SHOWN_MAX: usize = 8;

/// The locations of the configuration.
#[derive(Debug, Clone, Default)]
pub struct McpConfigLocations {
    /// The workspace, if it is trusted.
    pub workspace: Option<PathBuf>,
    /// The variables that servers of the workspace may receive.
    pub agreed: Vec<AgreedVariables>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The session's working directory.
    pub folder: PathBuf,
    /// The content of the configuration files.
    pub settings: Map<String, Value>,
}

/// The merged content of all files.
#[derive(Debug, Default)]
pub struct LoadedMcpConfig {
    /// Servers by name.
    pub servers: BTreeMap<String, ServerEntry>,
    /// Problems, one per line.
    pub lines: Vec<String>,
    /// The workspace's file, if it is ignored because the workspace is not trusted.
    pub untrusted: Option<PathBuf>,
}

impl McpConfigLocations {
    /// Reads all files.
    pub fn read_all_files(&self, lookup: VariableLookup<'_>) -> LoadedMcpConfig {
        let lookup: VariableLookup<'_> = &|name| match name {
            WORKSPACE_FOLDER => self.folder.to_str().map(str::to_owned),
            USER_HOME => self.home.as_ref()?.to_str().map(str::to_owned),
            _ => lookup(name),
        };
        let mut configured =
            LoadedMcpConfig { untrusted: self.find_untrusted_file(), ..LoadedMcpConfig::default() };
        let files =
            [(McpConfigOrigin::Workspace, &self.workspace), (McpConfigOrigin::Home, &self.home)];
        // If the workspace is the user's home, both files are the same.
        let is_same = self.workspace == self.home;
        for (origin, folder) in files.into_iter().take(if is_same { 1 } else { 2 }) {
            let Some(path) = folder.as_ref().map(|folder| folder.join(FILE_NAME)) else { continue };
            let servers = match origin == McpConfigOrigin::Workspace && !is_same {
                true => read_workspace_file(&path)
                    .map(|servers| self.retain_approved_servers(servers, &mut configured)),
                false => read_config_file(&path),
            };
            match servers {
                Ok(servers) => configured.add_file(&servers, origin, lookup),
                Err(why) => configured.lines.push(format!("`{}`: {why}", path.display())),
            }
        }
        configured.add_file(&self.settings, McpConfigOrigin::Settings, lookup);
        configured
    }

    /// Finds the file of an untrusted workspace, from the session's folder upwards. The search ends
    /// at the user's home, because the file there belongs to the user.
    fn find_untrusted_file(&self) -> Option<PathBuf> {
        let folders = self.folder.ancestors().filter(|_| self.workspace.is_none());
        let folders = folders.take_while(|folder| Some(*folder) != self.home.as_deref());
        folders.map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file())
    }

    /// Returns the servers of the workspace that get only variables to which the user has agreed.
    /// Each of the other servers is reported in one line.
    fn retain_approved_servers(
        &self,
        servers: Map<String, Value>,
        configured: &mut LoadedMcpConfig,
    ) -> Map<String, Value> {
        let mut agreed = Map::new();
        for (name, entry) in servers {
            let missing = self.unapproved_variables(&name, &entry);
            if missing.is_empty() {
                agreed.insert(name, entry);
                continue;
            }
            let listed: Vec<&str> =
                missing.iter().take(NAMES_SHOWN_MAX).map(String::as_str).collect();
            let more = match missing.len() - listed.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            configured.lines.push(format!(
                "server `{name}` was not started: it uses {}{more} without your permission; run \
                 `jaato trust` to review it",
                listed.join(", ")
            ));
        }
        agreed
    }

    /// Returns the variables that an entry uses without the user's agreement.
    fn unapproved_variables(&self, name: &str, entry: &Value) -> BTreeSet<String> {
        let mut missing = referenced_variables(entry);
        if missing.is_empty() {
            return missing;
        }
        let digest = entry_digest(entry);
        for it in self.agreed.iter().filter(|it| it.server == name && it.entry == digest) {
            missing.retain(|variable| !it.variables.contains(variable));
        }
        missing
    }
}

/// Returns the digest that identifies an entry in agreements and answers.
pub(super) fn entry_digest(entry: &Value) -> String {
    let digest = Sha256::digest(canonical_json(entry));
    digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

impl LoadedMcpConfig {
    /// Adds the servers of one file. Servers from nearer files take precedence.
    fn add_file(
        &mut self,
        servers: &Map<String, Value>,
        origin: McpConfigOrigin,
        lookup: VariableLookup<'_>,
    ) {
        for (name, value) in servers {
            if self.servers.contains_key(name) {
                continue;
            }
            if self.servers.len() >= SERVERS_MAX {
                self.lines.push(format!("more than {SERVERS_MAX} servers: `{name}` is ignored"));
                return;
            }
            let mut warnings = Vec::new();
            match entry::parse_server_entry(name, value, origin, lookup, &mut warnings) {
                Ok(entry) => {
                    self.servers.insert(name.clone(), entry);
                }
                Err(why) => self.lines.push(format!("server `{name}` is ignored: {why}")),
            }
            self.lines.extend(warnings.into_iter().map(|it| format!("server `{name}`: {it}")));
        }
    }
}

/// Reads the servers from the workspace's file. A link that leads out of the workspace is refused,
/// because trust does not cover its target.
fn read_workspace_file(path: &Path) -> Result<Map<String, Value>, String> {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (path.canonicalize(), folder) {
        (Ok(file), Some(folder)) if !file.starts_with(&folder) => {
            Err("it is a link to a file outside of the workspace".to_owned())
        }
        _ => read_config_file(path),
    }
}

/// Reads the servers from a file. Returns an empty map if the file does not exist.
///
/// # Errors
/// If the file cannot be used. The error is text for the user.
pub fn read_config_file(path: &Path) -> Result<Map<String, Value>, String> {
    match read_text(path, FILE_BYTES_MAX)? {
        Some(text) => server_entries(top_level_members(&parse_config(&text)?)?),
        None => Ok(Map::new()),
    }
}

/// Reads a file of at most `bytes_max` bytes. Returns `None` if the file does not exist.
///
/// # Errors
/// If the file cannot be used. The error is text for the user.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<Option<String>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = String::new();
    let mut limited = file.take(bytes_max + 1);
    limited.read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > bytes_max {
        return Err(format!("it has more than {bytes_max} bytes"));
    }
    Ok(Some(text.trim_start_matches('\u{feff}').to_owned()))
}

/// Parses JSON that may contain comments and trailing commas.
///
/// # Errors
/// The problem and its position.
pub fn parse_config(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())
}

/// Returns the members of a file's object, which are empty for an empty file.
///
/// # Errors
/// An error if the file does not hold an object.
pub fn top_level_members(file: &CstRootNode) -> Result<Map<String, Value>, String> {
    match file.to_serde_value() {
        None => Ok(Map::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err("it is not a JSON object".to_owned()),
    }
}

/// Replaces a file atomically. The file keeps its mode, and only the user can read a new file. A
/// link itself is replaced, because a repository may contain a link that leads out of it.
///
/// # Errors
/// An error if the file cannot be written.
pub fn replace_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o600, |it| it.permissions().mode() & 0o777);
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let write = || {
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&new)?.write_all(text)?;
        fs::set_permissions(&new, Permissions::from_mode(mode))?;
        fs::rename(&new, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    fn config_locations() -> (tempfile::TempDir, McpConfigLocations) {
        let folder = tempfile::tempdir().unwrap();
        let (workspace, home) = (folder.path().join("w"), folder.path().join("h"));
        for folder in [&workspace, &home] {
            fs::create_dir(folder).unwrap();
        }
        let places = McpConfigLocations {
            workspace: Some(workspace),
            home: Some(home),
            ..McpConfigLocations::default()
        };
        (folder, places)
    }

    fn write_test_config(folder: &Option<PathBuf>, text: &str) {
        fs::write(folder.as_ref().unwrap().join(FILE_NAME), text).unwrap();
    }

    fn names_and_origins(configured: &LoadedMcpConfig) -> Vec<(&str, McpConfigOrigin)> {
        configured.servers.values().map(|it| (it.name.as_str(), it.origin)).collect()
    }

    #[test]
    fn replaced_file_keeps_its_mode_and_a_symlink_is_replaced_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real"), folder.path().join("link"));
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        replace_file(&file, b"one").unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace_file(&link, b"two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        assert_eq!(fs::read_to_string(&link).unwrap(), "two");
        assert!(!link.is_symlink());
        replace_file(&file, b"three").unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode()), ("three", 0o640));
        replace_file(&folder.path().join("none/file"), b"x").unwrap_err();
    }

    #[test]
    fn the_nearest_file_wins() {
        let (_folder, mut places) = config_locations();
        write_test_config(&places.workspace, r#"{"mcpServers": {"a": {"command": "near"}}}"#);
        write_test_config(
            &places.home,
            r#"{"mcpServers": {"a": {"command": "far"}, "b": {"command": "x"}}}"#,
        );
        let settings = json!({ "b": { "command": "y" }, "c": { "command": "z" } });
        places.settings = settings.as_object().unwrap().clone();
        let configured = places.read_all_files(&|_| None);
        let expected = [
            ("a", McpConfigOrigin::Workspace),
            ("b", McpConfigOrigin::Home),
            ("c", McpConfigOrigin::Settings),
        ];
        assert_eq!(names_and_origins(&configured), expected);
        assert_eq!(configured.servers["a"].shown, "near");
        // The file of an untrusted workspace is ignored.
        places.workspace = None;
        assert_eq!(places.read_all_files(&|_| None).servers["a"].shown, "far");
    }

    #[test]
    fn workspace_entry_gets_variables_only_with_consent_to_that_entry() {
        let (_folder, mut places) = config_locations();
        let entry = json!({ "url": "http://e.example/${KEY}" });
        let text = json!({ "mcpServers": { "a": entry, "b": { "command": "x" } } }).to_string();
        write_test_config(&places.workspace, &text);
        write_test_config(&places.home, &json!({ "mcpServers": { "own": entry } }).to_string());
        let lookup = |name: &str| (name == "KEY").then(|| "k".to_owned());
        let configured = places.read_all_files(&lookup);
        assert_eq!(
            names_and_origins(&configured),
            [("b", McpConfigOrigin::Workspace), ("own", McpConfigOrigin::Home)]
        );
        let line = "server `a` was not started: it uses KEY without your permission; run \
                    `jaato trust` to review it";
        assert_eq!(configured.lines, [line]);
        let agreed = AgreedVariables {
            server: "a".to_owned(),
            entry: entry_digest(&entry),
            variables: ["KEY".to_owned()].into(),
        };
        places.agreed = vec![agreed.clone()];
        assert_eq!(places.read_all_files(&lookup).servers["a"].shown, "http://e.example/${KEY}");
        // The agreement does not cover another server, entry or variable.
        places.agreed = vec![AgreedVariables { server: "b".to_owned(), ..agreed.clone() }];
        assert!(!places.read_all_files(&lookup).servers.contains_key("a"));
        places.agreed = vec![AgreedVariables { variables: BTreeSet::new(), ..agreed.clone() }];
        assert!(!places.read_all_files(&lookup).servers.contains_key("a"));
        places.agreed = vec![agreed];
        write_test_config(&places.workspace, &text.replace("e.example", "evil.example"));
        assert!(!places.read_all_files(&lookup).servers.contains_key("a"));
    }

    #[test]
    fn a_link_out_of_the_workspace_is_not_read() {
        let (_folder, places) = config_locations();
        let home = places.home.as_ref().unwrap();
        let outside = home.join("servers.json");
        fs::write(&outside, r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        let link = places.workspace.as_ref().unwrap().join(FILE_NAME);
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let configured = places.read_all_files(&|_| None);
        assert!(configured.servers.is_empty(), "{configured:?}");
        assert!(configured.lines[0].contains("outside of the workspace"), "{configured:?}");
    }

    #[test]
    fn broken_files_and_entries_are_skipped_with_one_line_each() {
        let (_folder, places) = config_locations();
        write_test_config(&places.workspace, "{ not json");
        write_test_config(
            &places.home,
            r#"{"mcpServers": {"a": {"command": 1}, "b": {"command": "x"}}}"#,
        );
        let configured = places.read_all_files(&|_| None);
        assert_eq!(names_and_origins(&configured), [("b", McpConfigOrigin::Home)]);
        assert_eq!(configured.lines.len(), 2, "{:?}", configured.lines);
    }

    #[test]
    fn folder_and_oversized_file_are_reported() {
        let (_folder, places) = config_locations();
        fs::create_dir(places.workspace.as_ref().unwrap().join(FILE_NAME)).unwrap();
        write_test_config(&places.home, &" ".repeat(FILE_BYTES_MAX as usize + 1));
        assert_eq!(places.read_all_files(&|_| None).lines.len(), 2);
        write_test_config(&places.home, &" ".repeat(FILE_BYTES_MAX as usize));
        assert_eq!(places.read_all_files(&|_| None).lines.len(), 1);
    }

    #[test]
    fn servers_beyond_the_maximum_are_ignored() {
        let (_folder, mut places) = config_locations();
        for number in 0..=SERVERS_MAX {
            places.settings.insert(format!("s{number:03}"), json!({ "command": "x" }));
        }
        let configured = places.read_all_files(&|_| None);
        assert_eq!(configured.servers.len(), SERVERS_MAX);
        assert_eq!(configured.lines, ["more than 32 servers: `s032` is ignored"]);
    }
}
