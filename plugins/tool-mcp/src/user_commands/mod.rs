//! The command `mcp`, with which the user shows, adds, removes, connects and disconnects servers.
//!
//! Also runs the prompts of servers, each of which is a command.

mod edit;
mod import;
mod login;
mod show;

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::hooks::{CompleteWords, WordChoice, WordChoices};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;

use crate::call::{self, McpRequest};
use crate::content::McpContent;
use crate::server::{McpConnectionStatus, McpServer};
use crate::server_description::take_member;
use crate::server_requests::SessionCall;
use crate::servers::{McpServers, read_config_files};

/// The name of the command.
pub const NAME: &str = "mcp";

const HELP: &str = "mcp list                       the configured servers and their states
mcp status                     states, tools, what is wrong
mcp show NAME                  one server: its settings, tools with their arguments, problems
mcp add NAME COMMAND [ARGS]    adds a server to the workspace's .mcp.json; an http address is one too;
                               'mcp add --help' shows the options
mcp import [PROGRAM|FILE]      imports servers from Claude Code, codex, Gemini CLI, VS Code, Cursor, ...
mcp remove NAME                takes one out of the file
mcp connect NAME               connects a server, or tries again at once
mcp disconnect NAME            ends it until it is connected again
mcp login NAME [--no-browser]  logs in to a server over HTTP, in your browser or by a link
mcp logout NAME                forgets that login
mcp reload                     reads the files again
mcp logs [NAME|clear]          what servers printed and what became of them, in earlier runs too
mcp help                       this text

Servers are configured in the workspace's .mcp.json (once it is trusted), in ~/.mcp.json, and under
[plugins.tool-mcp.servers.NAME] of your configuration; the nearest counts.";

const ACTIONS: [(&str, &str); 13] = [
    ("list", "the configured servers"),
    ("status", "states, tools, what is wrong"),
    ("show", "one server"),
    ("add", "adds a server"),
    ("import", "imports servers from other programs"),
    ("remove", "removes a server"),
    ("connect", "connects a server"),
    ("disconnect", "ends a server"),
    ("login", "logs in to a server over HTTP"),
    ("logout", "forgets a login"),
    ("reload", "reads the files again"),
    ("logs", "what servers printed"),
    ("help", "how it is typed"),
];

/// The maximum time that a list in a conversation waits for starting servers.
const CHAT_WAIT: Duration = Duration::from_secs(2);
/// The maximum time that a list at a shell waits for servers that were up before.
const KNOWN_WAIT: Duration = Duration::from_secs(5);

/// The maximum number of messages used from a prompt.
const MESSAGES_MAX: usize = 100;

/// Describes the command's syntax.
pub fn mcp_command_spec() -> CommandSpec {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let mut rest = text(
        "For `add`: the command and its arguments, or an address. For `import`: which servers.",
    );
    rest["x-capture-rest"] = true.into();
    CommandSpec {
        name: NAME.to_owned(),
        description: "Servers of the Model Context Protocol: mcp add NAME COMMAND".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": text("list, status, show, add, import, remove, connect, disconnect, login, logout, reload, logs, help."),
                "name": text("Which server."),
                "command": rest,
            },
            "additionalProperties": false,
        }),
        completes: true,
        ..CommandSpec::default()
    }
}

/// Runs a command that the user typed.
///
/// # Errors
/// An error if a word is unknown, a server is missing, or a file cannot be written.
pub async fn run_mcp_command(
    host: &Reporter,
    servers: &Arc<McpServers>,
    arguments: &Value,
) -> Result<Output> {
    let given = |name: &str| arguments[name].as_str().map(str::trim).filter(|it| !it.is_empty());
    let named = || {
        let missing = || Error::new(ErrorKind::InvalidArguments, "the server's name is missing");
        given("name").ok_or_else(|| missing().with_hint("see `mcp help`"))
    };
    let words = |with_name: bool| {
        let rest = shlex::split(given("command").unwrap_or_default());
        let open = || Error::new(ErrorKind::InvalidArguments, "unclosed quote");
        let rest = rest.ok_or_else(open)?;
        let name = given("name").filter(|_| with_name).map(str::to_owned);
        Ok::<Vec<String>, Error>(name.into_iter().chain(rest).collect())
    };
    let action = given("action").unwrap_or("list").to_lowercase();
    let shown = match action.as_str() {
        "list" | "status" => servers.list_servers(),
        "show" => vec![servers.find_server(named()?)?],
        _ => Vec::new(),
    };
    if !shown.is_empty() {
        // In a conversation, servers continue to start after the answer. At a shell, the user wants
        // to know whether they work.
        let is_chat = host.session().await?.context.is_some();
        let most = |server: &McpServer| match (is_chat, server.known_description()) {
            (true, _) => CHAT_WAIT,
            (false, Some(_)) => KNOWN_WAIT,
            (false, None) => server.start_time(),
        };
        servers.start_and_wait(&shown, most, host).await;
    }
    let text = match action.as_str() {
        "list" => show::list_servers(servers),
        "status" => show::show_status(servers),
        "show" => show::show_server(&*servers.find_server(named()?)?),
        "logs" => {
            let (lines, which) =
                (Arc::clone(&servers.around.lines), given("name").map(str::to_owned));
            host.blocking(move |_| show::show_or_clear_logs(&lines, which.as_deref())).await?
        }
        "help" => HELP.to_owned(),
        "add" | "add-json" => edit::add_server(host, servers, words(true)?).await?,
        "import" => import::import_servers(host, servers, given("name"), &words(false)?).await?,
        "remove" => edit::remove_server(host, servers, named()?).await?,
        "connect" => connect_server(host, servers, &servers.find_server(named()?)?).await?,
        "disconnect" => disconnect_server(&*servers.find_server(named()?)?),
        "login" => {
            login::log_in(host, servers, &servers.find_server(named()?)?, given("command")).await?
        }
        "logout" => login::log_out(&servers.find_server(named()?)?).await?,
        "reload" => reload_config(host, servers).await?,
        other => {
            let text = format!("unknown `mcp` action `{other}`");
            return Err(Error::new(ErrorKind::InvalidArguments, text).with_hint("see `mcp help`"));
        }
    };
    Ok(Output::text(text))
}

/// Suggests words while the user types.
pub fn suggest_words(servers: &McpServers, asked: &CompleteWords) -> WordChoices {
    let choices = match (asked.command.as_str(), asked.words.as_slice()) {
        (NAME, []) => ACTIONS.map(|(word, says)| WordChoice::new(word, says)).to_vec(),
        (NAME, [action]) if action.eq_ignore_ascii_case("import") => {
            import::program_names().map(|program| WordChoice::new(program, "")).collect()
        }
        (NAME, [action]) => {
            let takes = ["show", "remove", "connect", "disconnect", "login", "logout", "logs"];
            let is_taken = takes.iter().any(|it| it.eq_ignore_ascii_case(action));
            let all = servers.list_servers();
            let named = all.iter().filter(|_| is_taken);
            named.map(|it| WordChoice::new(it.name(), it.entry.shown.clone())).collect()
        }
        _ => Vec::new(),
    };
    WordChoices { choices }
}

async fn connect_server(
    host: &Reporter,
    servers: &McpServers,
    server: &Arc<McpServer>,
) -> Result<String> {
    let name = server.name();
    match server.status() {
        McpConnectionStatus::Up(connection) if !connection.is_closed() => {
            let tools = show::allowed_tool_count(server);
            return Ok(format!("Server '{name}' is already connected ({tools} tools available)."));
        }
        McpConnectionStatus::Disabled => {
            let text = format!("Server '{name}' is disabled by its entry.");
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        McpConnectionStatus::Up(_)
        | McpConnectionStatus::Down { .. }
        | McpConnectionStatus::Starting
        | McpConnectionStatus::Stopped => {}
    }
    server.reconnect_now();
    servers.start_and_wait(std::slice::from_ref(server), McpServer::start_time, host).await;
    match server.wait_until_connected().await {
        Ok(_) => {
            let tools = show::allowed_tool_count(server);
            Ok(format!("Connected to '{name}' successfully ({tools} tools available)."))
        }
        Err(error) => {
            let text = format!("Failed to connect to '{name}': {}", error.message);
            Err(Error { hint: Some(server.down_hint(&error)), message: text, ..error })
        }
    }
}

fn disconnect_server(server: &McpServer) -> String {
    server.stop_connection();
    format!("Disconnected from '{}'.", server.name())
}

/// Reads the files again and reports the changes.
async fn reload_config(host: &Reporter, servers: &Arc<McpServers>) -> Result<String> {
    let before = servers.current_offer();
    apply_config_files(host, servers).await?;
    let all = servers.list_servers();
    let active: Vec<&Arc<McpServer>> = all.iter().filter(|it| !it.entry.disabled).collect();
    let settled = active.iter().map(|server| server.wait_until_connected());
    let outcomes = futures_util::future::join_all(settled).await;
    let connected = outcomes.iter().filter(|it| it.is_ok()).count();
    let tools: usize = active.iter().map(|server| show::allowed_tool_count(server)).sum();
    let mut lines = vec![format!(
        "Reloaded configuration: {connected} servers connected, {tools} tools available."
    )];
    for (server, outcome) in active.iter().zip(&outcomes) {
        if let Err(error) = outcome {
            lines.push(format!("  failed: {}: {}", server.name(), error.message));
        }
    }
    let now = crate::offer::McpOffer::from_servers(&all);
    lines.extend(
        now.tools.keys().filter(|it| !before.tools.contains_key(*it)).map(|it| format!("  + {it}")),
    );
    lines.extend(
        before.tools.keys().filter(|it| !now.tools.contains_key(*it)).map(|it| format!("  - {it}")),
    );
    lines.extend(servers.config_problems().into_iter().map(|line| format!("  {line}")));
    Ok(lines.join("\n"))
}

/// Reads the files and applies their content.
pub(super) async fn apply_config_files(host: &Reporter, servers: &Arc<McpServers>) -> Result<()> {
    let mut places = servers.places.clone();
    // The user may have withdrawn the trust.
    let facts = host.session().await?;
    places.workspace = facts.trusted_workspace.map(std::path::PathBuf::from);
    places.agreed = facts.agreed_variables;
    places.folder = std::path::PathBuf::from(facts.working_directory);
    let (configured, prints) = host.blocking(move |_| read_config_files(&places)).await?;
    servers.apply_config(configured, prints);
    Ok(())
}

/// Fills a server's prompt. The text becomes the user's next message.
///
/// # Errors
/// An error if the prompt no longer exists, or the server's error.
pub async fn run_prompt(
    host: &Reporter,
    servers: &Arc<McpServers>,
    name: &str,
    arguments: Value,
) -> Result<Output> {
    let offer = servers.current_offer();
    let Some(meant) = offer.prompts.get(name) else {
        let text = format!("the MCP server no longer has a prompt `{name}`");
        return Err(Error::new(ErrorKind::UnknownOperation, text));
    };
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => <_>::default(),
    };
    let site = Arc::new(SessionCall::new(host.clone(), meant.server.name(), &meant.what.name));
    let asked = McpRequest::Prompt { name: meant.what.name.clone(), arguments };
    let mut answer = call::send_mcp_request(&meant.server, &asked, Some(site)).await?;
    let messages = match take_member(&mut answer, "messages") {
        Value::Array(messages) => messages,
        _ => Vec::new(),
    };
    Ok(Output::text(format_prompt_messages(messages)))
}

/// Joins messages to one text. Content that is not text is named.
fn format_prompt_messages(messages: Vec<Value>) -> String {
    let is_one = messages.len() == 1;
    let mut texts = Vec::new();
    for mut message in messages.into_iter().take(MESSAGES_MAX) {
        let mut content = McpContent::default();
        match take_member(&mut message, "content") {
            Value::Array(blocks) => content.add_blocks(blocks),
            block => content.add_blocks(vec![block]),
        }
        let blocks = content.blocks.iter().map(|block| match block {
            Value::String(text) => text.clone(),
            other => other["text"].as_str().map_or_else(|| other.to_string(), str::to_owned),
        });
        let text = blocks.collect::<Vec<_>>().join("\n");
        texts.push(match message["role"].as_str() {
            Some("assistant") => format!("You said: {text}"),
            _ if is_one => text,
            _ => format!("I said: {text}"),
        });
    }
    texts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_messages_are_formatted_as_one_text() {
        let user = json!({ "role": "user", "content": { "type": "text", "text": "Review it." } });
        assert_eq!(format_prompt_messages(vec![user.clone()]), "Review it.");
        let model =
            json!({ "role": "assistant", "content": [{ "type": "text", "text": "Which?" }] });
        assert_eq!(
            format_prompt_messages(vec![user, model]),
            "I said: Review it.\n\nYou said: Which?"
        );
        assert_eq!(
            format_prompt_messages(vec![json!(1)]),
            "{\"type\":\"\",\"left_out\":\"its kind is unknown\"}"
        );
    }
}
