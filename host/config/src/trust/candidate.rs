//! A workspace before the user trusts it: what its files would enable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jaato_policy::{RuleFile, RuleLayer, RuleOutcome};
use jaato_types::command_hooks::{SETTINGS_FILES, parse_settings_hooks};
use jaato_types::mcp_entry::{
    AgreedVariables, canonical_json, referenced_variables, server_entries, to_standard_entry,
};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::Value;

use super::store::RecordedTrust;
use super::{MCP_FILE, TrustError, TrustStore, TrustedWorkspace, Workspace, scan};
use crate::CONFIG_BYTES_MAX;
use crate::permissions::{RuleSources, load_rules};

/// The covered files of a workspace at one moment. They are not trusted, so their content is only
/// shown.
#[derive(Debug)]
pub struct TrustCandidate(TrustedWorkspace);

/// An entry of the workspace's `.mcp.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct McpEntry {
    /// The server's key.
    pub server: String,
    /// The entry as it is written.
    pub entry: Value,
}

impl TrustStore {
    /// Reads a workspace before the user is asked whether to trust it.
    ///
    /// # Errors
    /// File system errors, and exceeded limits.
    pub fn read_candidate(&self, workspace: &Workspace) -> Result<TrustCandidate, TrustError> {
        let names = covered_names(workspace, &self.read_trust()?)?;
        let files = scan::digest_files(workspace.root(), &names, BTreeMap::new())?;
        Ok(TrustCandidate(TrustedWorkspace::new(workspace.root(), files, Vec::new())))
    }
}

/// Lists the names of the files that trust would cover.
pub(super) fn covered_names(
    workspace: &Workspace,
    trust: &RecordedTrust,
) -> Result<BTreeSet<String>, TrustError> {
    let known = trust.workspaces.get(workspace.recorded_root()?);
    let mut recorded = known.map(|known| known.files.clone()).unwrap_or_default();
    recorded.retain(|name, _| !workspace.is_replaced(name));
    workspace.all_covered_names(&recorded)
}

impl TrustCandidate {
    /// Lists the names of the covered files.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.0.file_names()
    }

    /// Returns the digest over all covered files.
    pub fn digest(&self) -> String {
        self.0.digest()
    }

    pub(super) fn file_digests(&self) -> &BTreeMap<String, String> {
        &self.0.files
    }

    /// Lists the MCP servers of the workspace. Returns none if the file cannot be parsed, because
    /// then none start.
    pub fn mcp_entries(&self) -> Vec<McpEntry> {
        let Ok(Some(bytes)) = self.0.read_file(MCP_FILE) else { return Vec::new() };
        if bytes.len() as u64 > CONFIG_BYTES_MAX {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        // With comments, like the plugin for servers.
        let text = text.trim_start_matches('\u{feff}');
        let file = CstRootNode::parse(text, &ParseOptions::default());
        let file = file.ok().and_then(|file| file.to_serde_value());
        let Some(Value::Object(file)) = file else { return Vec::new() };
        let servers = server_entries(file).unwrap_or_default();
        servers.into_iter().map(|(server, entry)| McpEntry { server, entry }).collect()
    }

    /// Lists the commands that hooks of the workspace run, each with its event and matcher. Lists
    /// none of a file that cannot be parsed, because then none run.
    pub fn hook_commands(&self) -> Vec<String> {
        let read = |name: &&str| {
            let bytes = self.0.read_file(name).ok().flatten()?;
            parse_settings_hooks(&String::from_utf8(bytes).ok()?).ok()
        };
        let hooks = SETTINGS_FILES.iter().filter_map(read).flatten();
        hooks.filter(|hook| hook.problem.is_none()).map(|hook| hook.to_string()).collect()
    }

    /// Lists the workspace's rules that allow calls, as messages show them.
    pub fn allow_rules(&self, home: Option<&Path>) -> Vec<String> {
        let sources = RuleSources {
            enterprise: None,
            user: None,
            home,
            named: None,
            workspace: Some(&self.0),
            root: self.0.root(),
        };
        let mut files = load_rules(&sources).files;
        files.retain(|file| file.layer == RuleLayer::Workspace);
        let allows = |file: &RuleFile| -> Vec<String> {
            let default = file.default.filter(|(outcome, _)| *outcome == RuleOutcome::Allow);
            let default = default.map(|_| "allow by default".to_owned());
            let rules = file.rules.iter().filter(|rule| rule.outcome == RuleOutcome::Allow);
            rules.map(ToString::to_string).chain(default).collect()
        };
        files.iter().flat_map(allows).collect()
    }
}

impl McpEntry {
    /// Returns the entry in standard form, regardless of the program that it was written for.
    /// Returns null if it cannot be parsed.
    pub fn standard_entry(&self) -> Value {
        to_standard_entry(&self.entry).map_or(Value::Null, Value::Object)
    }

    /// Returns the variables that would be sent to the server.
    pub fn referenced_variables(&self) -> AgreedVariables {
        AgreedVariables {
            server: self.server.clone(),
            entry: scan::content_digest(canonical_json(&self.entry).as_bytes()),
            variables: referenced_variables(&self.entry),
        }
    }
}
