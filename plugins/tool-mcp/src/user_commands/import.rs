//! `mcp import`: imports servers from other programs' files.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::mcp_entry::{server_entries, to_standard_entry};

use super::edit;
use crate::config::McpConfigOrigin;
use crate::config::entry;
use crate::config::files::{parse_config, read_text, top_level_members};
use crate::servers::McpServers;

/// The maximum size of a file. Claude Code stores its history next to its servers.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Programs and their configuration files, from the programs' documentation. `~/` is the user's
/// home, and other paths are relative to the workspace.
const SOURCES: [(&str, &[&str]); 8] = [
    ("claude", &["~/.claude.json"]),
    (
        "claude-desktop",
        &[
            "~/.config/Claude/claude_desktop_config.json",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
        ],
    ),
    ("codex", &["~/.codex/config.toml", ".codex/config.toml"]),
    ("cursor", &["~/.cursor/mcp.json", ".cursor/mcp.json"]),
    ("gemini", &["~/.gemini/settings.json", ".gemini/settings.json"]),
    ("opencode", &["~/.config/opencode/opencode.json", "opencode.json", "opencode.jsonc"]),
    (
        "vscode",
        &[
            "~/.config/Code/User/mcp.json",
            "~/Library/Application Support/Code/User/mcp.json",
            ".vscode/mcp.json",
        ],
    ),
    ("windsurf", &["~/.codeium/windsurf/mcp_config.json"]),
];

/// An existing file of another program.
struct ImportableConfig {
    program: String,
    shown: String,
    origin: McpConfigOrigin,
    servers: Result<Map<String, Value>, String>,
}

/// Returns the names of the programs.
pub fn program_names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|(program, _)| *program)
}

/// Lists the servers that can be imported, or imports them from a program or a file: all servers,
/// or the named ones.
///
/// # Errors
/// An error if the program is unknown, or a file cannot be read or written.
pub async fn import_servers(
    host: &Reporter,
    servers: &Arc<McpServers>,
    from: Option<&str>,
    named: &[String],
) -> Result<String> {
    let folder = PathBuf::from(host.session().await?.working_directory);
    let home = servers.places.home.clone();
    let wanted = from.map(str::to_owned);
    let found =
        host.blocking(move |_| find_importable_configs(&folder, home, wanted.as_deref())).await?;
    let Some(from) = from else { return Ok(format_configs(&found)) };
    if found.is_empty() {
        let known: Vec<&str> = program_names().collect();
        let text = format!("found no MCP configuration of `{from}`");
        return Err(Error::new(ErrorKind::NotFound, text)
            .with_hint(format!("mcp import {}|FILE [SERVER…]", known.join("|"))));
    }
    let mut lines = Vec::new();
    for file in found {
        let from_file = match file.servers {
            Ok(servers) => servers,
            Err(why) => {
                lines.push(format!("{}: {why}", file.shown));
                continue;
            }
        };
        let mut taken = Map::new();
        for (name, entry) in from_file {
            if !named.is_empty() && !named.contains(&name) {
                continue;
            }
            match importable_entry(servers, &name, &entry, file.origin) {
                Ok((entry, shown)) => {
                    lines.push(format!("Imported '{name}' from {}: {shown}", file.shown));
                    taken.insert(name, entry);
                }
                Err(why) => lines.push(format!("Skipped '{name}' from {}: {why}", file.shown)),
            }
        }
        if !taken.is_empty() {
            lines.extend(edit::insert_servers(host, servers, file.origin, taken).await?);
        }
    }
    if lines.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "no server has this name"));
    }
    Ok(lines.join("\n"))
}

/// Returns an entry in jaato's format, and a text that shows it.
fn importable_entry(
    servers: &McpServers,
    name: &str,
    entry: &Value,
    origin: McpConfigOrigin,
) -> Result<(Value, String), String> {
    if servers.find_server(name).is_ok() {
        return Err("a server with this name already exists".to_owned());
    }
    let entry = Value::Object(to_standard_entry(entry)?);
    let lookup = |name: &str| std::env::var(name).ok();
    let read = entry::parse_server_entry(name, &entry, origin, &lookup, &mut Vec::new())?;
    Ok((entry, read.shown))
}

/// Finds the files of one program or of all programs, or a given file.
fn find_importable_configs(
    folder: &std::path::Path,
    home: Option<PathBuf>,
    wanted: Option<&str>,
) -> Vec<ImportableConfig> {
    let mut all = Vec::new();
    let mut look = |program: &str, shown: &str| {
        let in_home = shown.strip_prefix("~/");
        let path = match (in_home, &home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return,
            (None, _) => folder.join(shown),
        };
        let text = match read_text(&path, FILE_BYTES_MAX) {
            Ok(None) => return,
            Ok(Some(text)) => Ok(text),
            Err(why) => Err(why),
        };
        let origin =
            if in_home.is_some() { McpConfigOrigin::Home } else { McpConfigOrigin::Workspace };
        let servers = text.and_then(|text| servers_in_file(&text, shown, folder));
        let is_empty = servers.as_ref().is_ok_and(Map::is_empty);
        if !is_empty {
            all.push(ImportableConfig {
                program: program.to_owned(),
                shown: shown.to_owned(),
                origin,
                servers,
            });
        }
    };
    let known = wanted.is_none_or(|wanted| program_names().any(|program| program == wanted));
    match wanted.filter(|_| !known) {
        Some(file) => look(file, file),
        None => {
            let meant = SOURCES.iter().filter(|it| wanted.is_none_or(|wanted| wanted == it.0));
            for (program, files) in meant {
                files.iter().for_each(|file| look(program, file));
            }
        }
    }
    all
}

/// Returns the servers of a file: the global ones, and in Claude Code's file also those of this
/// folder.
fn servers_in_file(
    text: &str,
    name: &str,
    folder: &std::path::Path,
) -> Result<Map<String, Value>, String> {
    let mut file = match name.ends_with(".toml") {
        true => toml::from_str(text).map_err(|error| error.message().to_owned())?,
        false => top_level_members(&parse_config(text)?)?,
    };
    let here =
        folder.to_str().and_then(|folder| file.get("projects")?.get(folder)?.get("mcpServers"));
    let here = here.and_then(Value::as_object).cloned().unwrap_or_default();
    file.retain(|key, _| key != "projects");
    // Settings without servers are not an error here.
    let mut servers = server_entries(file).unwrap_or_default();
    servers.extend(here);
    Ok(servers)
}

fn format_configs(found: &[ImportableConfig]) -> String {
    if found.is_empty() {
        let known: Vec<&str> = program_names().collect();
        return format!("No servers of other programs are here: {}.", known.join(", "));
    }
    let mut lines = Vec::new();
    for file in found {
        let says = match &file.servers {
            Ok(servers) => servers.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
            Err(why) => why.clone(),
        };
        lines.push(format!("{} ({}): {says}", file.program, file.shown));
    }
    lines.push("Use 'mcp import PROGRAM [SERVER…]' to import them.".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_other_programs_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (home, work) = (folder.path().join("h"), folder.path().join("w"));
        for it in [".codex", ".gemini", ".config"] {
            std::fs::create_dir_all(home.join(it)).unwrap();
        }
        std::fs::create_dir_all(work.join(".vscode")).unwrap();
        let codex = "model = \"m\"\n[mcp_servers.a]\ncommand = \"x\"\nenv_vars = []\n";
        std::fs::write(home.join(".codex/config.toml"), codex).unwrap();
        std::fs::write(home.join(".gemini/settings.json"), "{\"theme\": \"dark\"}").unwrap();
        let claude = json!({
            "numStartups": 3, "mcpServers": { "b": { "command": "x" } },
            "projects": { work.to_str().unwrap(): { "mcpServers": { "c": { "command": "x" } } }, "/o": {} },
        });
        std::fs::write(home.join(".claude.json"), claude.to_string()).unwrap();
        let vscode =
            "{ \"inputs\": [], // mine\n \"servers\": { \"d\": { \"url\": \"http://x\" }, } }";
        std::fs::write(work.join(".vscode/mcp.json"), vscode).unwrap();
        let all = find_importable_configs(&work, Some(home.clone()), None);
        let expected = "claude (~/.claude.json): b, c\ncodex (~/.codex/config.toml): a\n\
                        vscode (.vscode/mcp.json): d\nUse 'mcp import PROGRAM [SERVER…]' to import them.";
        assert_eq!(format_configs(&all), expected);
        let one = find_importable_configs(&work, Some(home.clone()), Some("codex"));
        assert_eq!((one.len(), one[0].origin), (1, McpConfigOrigin::Home));
        let file = home.join(".codex/config.toml");
        assert_eq!(find_importable_configs(&work, None, file.to_str()).len(), 1);
        assert!(find_importable_configs(&work, None, Some("codex")).is_empty());
    }
}
