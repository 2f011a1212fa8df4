//! Formats servers for the user.

use jaato_plugin_sdk::prelude::*;

use crate::config::{McpConfigOrigin, McpServerAddress};
use crate::log::{ServerLogLine, ServerLogStore, sanitize_line};
use crate::names::tool_name;
use crate::server::{McpConnectionStatus, McpServer};
use crate::servers::McpServers;

/// The maximum number of tools shown of a server.
const TOOLS_SHOWN_MAX: usize = 100;
/// The maximum number of characters shown of a tool's description.
const DESCRIPTION_CHARS_MAX: usize = 80;
/// The maximum number of properties named of a tool's arguments.
const ARGUMENTS_SHOWN_MAX: usize = 12;

fn state_label(server: &McpServer) -> &'static str {
    match server.status() {
        McpConnectionStatus::Up(connection) if !connection.is_closed() => "connected",
        McpConnectionStatus::Starting if server.time_since_start().is_none() => "not started",
        McpConnectionStatus::Starting => "starting",
        McpConnectionStatus::Up(_)
        | McpConnectionStatus::Down { .. }
        | McpConnectionStatus::Stopped => "disconnected",
        McpConnectionStatus::Disabled => "disabled",
    }
}

/// Returns the number of a server's offered tools.
pub fn allowed_tool_count(server: &McpServer) -> usize {
    server.known_description().map_or(0, |described| {
        described.tools.iter().filter(|tool| server.entry.is_tool_allowed(&tool.name)).count()
    })
}

/// Lists the servers.
pub fn list_servers(servers: &McpServers) -> String {
    let all = servers.list_servers();
    let mut lines = vec!["Configured MCP servers:".to_owned()];
    let line = |server: &std::sync::Arc<McpServer>| {
        let why = problem_line(server).map(|why| format!(": {why}")).unwrap_or_default();
        let state = state_label(server);
        format!("  {}: {} [{state}{why}]", server.name(), sanitize_line(&server.entry.shown))
    };
    lines.extend(all.iter().map(line));
    if all.is_empty() {
        lines = vec!["No MCP servers are configured.".to_owned()];
        lines.push("Use 'jaato mcp add NAME COMMAND' to add one.".to_owned());
    }
    lines.extend(config_file_lines(servers));
    lines.join("\n")
}

/// Describes a server's problem in one line.
fn problem_line(server: &McpServer) -> Option<String> {
    match server.status() {
        McpConnectionStatus::Down { why } => Some(format!(
            "{}; {}",
            sanitize_line(&why.message),
            sanitize_line(&server.down_hint(&why))
        )),
        McpConnectionStatus::Starting => {
            server.log().last_printed().map(|line| sanitize_line(&line))
        }
        McpConnectionStatus::Up(_)
        | McpConnectionStatus::Stopped
        | McpConnectionStatus::Disabled => None,
    }
}

/// Describes the problems of the files, and the file that is ignored.
fn config_file_lines(servers: &McpServers) -> impl Iterator<Item = String> {
    let lines = servers.config_problems().into_iter().chain(servers.untrusted_file_notice());
    lines.map(|line| format!("  {}", sanitize_line(&line)))
}

/// Shows the state of each server.
pub fn show_status(servers: &McpServers) -> String {
    let all = servers.list_servers();
    let is_up = |it: &&std::sync::Arc<McpServer>| state_label(it) == "connected";
    let connected = all.iter().filter(is_up).count();
    let tools: usize = all.iter().map(|it| allowed_tool_count(it)).sum();
    let mut lines =
        vec![format!("MCP: {connected} of {} servers connected, {tools} tools.", all.len())];
    for server in &all {
        let mut line = format!(
            "  {}: {}, {} tools",
            server.name(),
            state_label(server),
            allowed_tool_count(server)
        );
        match server.status() {
            McpConnectionStatus::Up(connection) => {
                line += &format!(", protocol {}", connection.info.protocol_version);
            }
            McpConnectionStatus::Down { .. }
            | McpConnectionStatus::Starting
            | McpConnectionStatus::Stopped
            | McpConnectionStatus::Disabled => {
                line.extend(problem_line(server).map(|why| format!(": {why}")));
            }
        }
        if let Some(described) = server.known_description().filter(|it| it.left_out > 0) {
            let name = server.name();
            line += &format!(
                "; {} more cannot be used: `jaato mcp show {name}` lists them",
                described.left_out
            );
        }
        lines.push(line);
    }
    lines.extend(config_file_lines(servers));
    lines.join("\n")
}

/// Shows one server.
pub fn show_server(server: &McpServer) -> String {
    let entry = &server.entry;
    let origin = match entry.origin {
        McpConfigOrigin::Workspace => ".mcp.json of the workspace",
        McpConfigOrigin::Home => "~/.mcp.json",
        McpConfigOrigin::Settings => "the configuration",
    };
    let mut lines = vec![
        format!("Server: {}", server.name()),
        format!("  Status: {}", state_label(server)),
        format!("  Type: {}", entry.transport_name()),
        format!("  From: {origin}"),
    ];
    match &entry.reach {
        McpServerAddress::Stdio(stdio) => {
            lines.push(format!("  Command: {}", sanitize_line(&entry.shown)));
            if !stdio.env.is_empty() {
                let names: Vec<&str> = stdio.env.keys().map(String::as_str).collect();
                lines.push(format!("  Variables: {}", sanitize_line(&names.join(", "))));
            }
        }
        McpServerAddress::Http(http) => {
            lines.push(format!("  URL: {}", sanitize_line(&entry.shown)));
            if !http.headers.is_empty() {
                let names: Vec<&str> = http.headers.keys().map(String::as_str).collect();
                lines.push(format!("  Headers: {}", sanitize_line(&names.join(", "))));
            }
        }
    }
    if let McpConnectionStatus::Down { why } = server.status() {
        lines.push(format!("  Problem: {}", sanitize_line(&why.message)));
        lines.extend(why.hint.map(|hint| format!("  Hint: {}", sanitize_line(&hint))));
    }
    if let Some(described) = server.known_description() {
        lines.push(format!(
            "  Says it is: {} ({})",
            sanitize_line(&described.title),
            described.protocol
        ));
        let tools = described.tools.iter().filter(|tool| entry.is_tool_allowed(&tool.name));
        lines.push(format!("  Tools ({}):", allowed_tool_count(server)));
        for tool in tools.take(TOOLS_SHOWN_MAX) {
            let first = tool.description.lines().next().unwrap_or_default();
            let about = shorten_at_word(&sanitize_line(first), DESCRIPTION_CHARS_MAX);
            lines.push(format!("    {}: {about}", sanitize_line(&tool.name)));
            let (called, arguments) =
                (tool_name(server.name(), &tool.name), format_arguments(&tool.schema));
            lines.push(format!("      {called} {{{arguments}}}"));
        }
        if allowed_tool_count(server) > TOOLS_SHOWN_MAX {
            lines.push(format!("    and {} more", allowed_tool_count(server) - TOOLS_SHOWN_MAX));
        }
        if !described.lines.is_empty() {
            lines.push("  Problems:".to_owned());
            lines.extend(described.lines.iter().map(|line| format!("    {}", sanitize_line(line))));
        }
        if !described.prompts.is_empty() {
            let names =
                described.prompts.iter().map(|it| sanitize_line(&it.name)).collect::<Vec<_>>();
            lines.push(format!("  Prompts: {}", names.join(", ")));
        }
        if described.has_resources {
            lines.push("  Resources: yes".to_owned());
        }
    }
    lines.join("\n")
}

/// Lists the arguments of a tool. A `?` marks the optional ones.
fn format_arguments(schema: &Value) -> String {
    let required = |name: &String| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name))
    };
    let all = schema["properties"].as_object();
    let shown = all.into_iter().flatten().take(ARGUMENTS_SHOWN_MAX).map(|(name, property)| {
        let mark = if required(name) { "" } else { "?" };
        let kind = property["type"].as_str().map(|kind| format!(": {kind}")).unwrap_or_default();
        sanitize_line(&format!("{name}{mark}{kind}"))
    });
    let mut shown: Vec<String> = shown.collect();
    if all.is_some_and(|all| all.len() > ARGUMENTS_SHOWN_MAX) {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// Shortens a text at the end of a word.
fn shorten_at_word(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let cut: String = text.chars().take(chars_max).collect();
    let end = cut.rfind(char::is_whitespace).unwrap_or(cut.len());
    format!("{}…", cut[..end].trim_end())
}

/// Shows the lines that servers printed, or deletes them. Blocks on the file.
pub fn show_or_clear_logs(kept: &ServerLogStore, which: Option<&str>) -> String {
    if which.is_some_and(|which| which.eq_ignore_ascii_case("clear")) {
        return format!("Cleared {} log entries.", kept.clear_logs());
    }
    let lines = kept.list_lines(which);
    match lines.is_empty() {
        true => "No log entries.".to_owned(),
        false => lines.iter().map(format_log_line).collect::<Vec<_>>().join("\n"),
    }
}

fn format_log_line(line: &ServerLogLine) -> String {
    let day = line.at % 86_400;
    let (hours, minutes, seconds) = (day / 3600, day / 60 % 60, day % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}Z {}: {}", line.server, line.text)
}

/// Returns the error for a name that already exists.
pub fn name_taken_error(name: &str) -> Error {
    let text = format!("Server '{name}' already exists.");
    Error::new(ErrorKind::Conflict, text)
        .with_hint(format!("Use 'mcp remove {name}' first to replace it."))
}
