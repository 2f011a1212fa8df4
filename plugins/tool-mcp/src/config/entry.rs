//! The configuration of one server.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jaato_plugin_sdk::serde::Deserialize;
use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::mcp_entry::{USER_HOME, WORKSPACE_FOLDER, to_standard_entry};
use jaato_plugin_sdk::types::{dotenv, mask};

use super::expand::{VariableLookup, expand_variables};
use super::files::{FILE_BYTES_MAX, entry_digest, read_text};
use super::oauth::OAuthSettings;

/// The default time limit of a call.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
/// The maximum time limit of a call: one day.
const TIMEOUT_MS_MAX: u64 = 24 * 3600 * 1000;
/// Shorter time limits are ignored, as in other programs, because they are seconds by mistake.
const TIMEOUT_MS_MIN: u64 = 1000;
/// The maximum number of arguments, of variables and of headers in one entry.
const WORDS_MAX: usize = 256;
/// The minimum length of a text that logs hide. Shorter texts occur inside other words.
const SECRET_BYTES_MIN: usize = 6;

/// The source of an entry, nearest first. If two entries have the same name, the nearer one
/// applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum McpConfigOrigin {
    /// `.mcp.json` of the workspace.
    Workspace,
    /// `~/.mcp.json`.
    Home,
    /// The user's configuration files.
    Settings,
}

/// The configuration of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// The key of the entry in its file.
    pub name: String,
    /// The source of the entry.
    pub origin: McpConfigOrigin,
    /// The digest of the entry as it is written in the file.
    pub digest: String,
    /// How to reach the server.
    pub reach: McpServerAddress,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The time limit of the server's start. `None` means the default for its kind of program.
    pub startup_timeout: Option<Duration>,
    /// Whether calls to all its tools may run in parallel.
    pub parallel: bool,
    /// The names of the tools to offer. `None` means all tools.
    pub tools: Option<Vec<String>>,
    /// The names of the tools to leave out.
    pub left_out: Vec<String>,
    /// Whether the server is disabled.
    pub disabled: bool,
    /// Whether its tools are part of every request.
    pub always_load: bool,
    /// The command line or URL for display. Variables appear as written in the file, and values
    /// that may be secret are left out.
    pub shown: String,
    /// The texts that variables and defaults contributed to the entry.
    pub expanded: Vec<String>,
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpServerAddress {
    /// A program with which jaato communicates over standard input and output.
    Stdio(StdioServerAddress),
    /// A URL, over streamable HTTP.
    Http(HttpServerAddress),
}

/// A local program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StdioServerAddress {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables in addition to the host's.
    pub env: BTreeMap<String, String>,
    /// The folder in which it runs. `None` means the working directory.
    pub cwd: Option<String>,
}

/// An HTTP endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpServerAddress {
    /// The URL of the endpoint.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The login settings.
    pub oauth: OAuthSettings,
}

/// An entry in its [`to_standard_entry`] form. Unknown keys are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default, rename_all = "camelCase")]
struct RawServerEntry {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    env_file: Option<String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    oauth: Value,
    timeout: Option<u64>,
    #[serde(alias = "startup_timeout")]
    startup_timeout: Option<u64>,
    parallel: bool,
    tools: Option<Vec<String>>,
    exclude_tools: Vec<String>,
    disabled: bool,
    #[serde(alias = "always_load")]
    always_load: bool,
}

/// Reads an entry. Problems that do not prevent its use go to `warnings`. Blocks if the entry names
/// a variables file.
///
/// # Errors
/// If the entry cannot be used. The error is text for the user.
pub fn parse_server_entry(
    name: &str,
    value: &Value,
    origin: McpConfigOrigin,
    lookup: VariableLookup<'_>,
    warnings: &mut Vec<String>,
) -> Result<ServerEntry, String> {
    if name.trim().is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
        return Err("a name must have 1 to 128 bytes and no control characters".to_owned());
    }
    let standard = Value::Object(to_standard_entry(value)?);
    let mut written: RawServerEntry =
        serde_json::from_value(standard).map_err(|it| it.to_string())?;
    let words = written.args.len() + written.env.len() + written.headers.len();
    if words > WORDS_MAX {
        return Err(format!("{words} arguments, variables and headers: {WORDS_MAX} at most"));
    }
    let shown = redact_address(&written);
    let mut values = Vec::new();
    let mut text = |text: &str| {
        let expanded = expand_variables(text, lookup);
        values.extend(expanded.values);
        for unset in expanded.unset {
            warnings
                .push(format!("variable `{unset}` is not set, so `${{{unset}}}` stays as written"));
        }
        if let Some((asked, _)) = text.split("${input:").nth(1).and_then(|it| it.split_once('}')) {
            warnings.push(format!(
                "`${{input:{asked}}}` stays as written, because only VS Code supports inputs; use `${{NAME}}` for a variable"
            ));
        }
        expanded.text
    };
    let mut map = |map: BTreeMap<String, String>| -> BTreeMap<String, String> {
        map.into_iter().map(|(key, value)| (key, text(&value))).collect()
    };
    let env = map(std::mem::take(&mut written.env));
    let headers = map(std::mem::take(&mut written.headers));
    let (command, url) =
        (non_empty_text(written.command.take()), non_empty_text(written.url.take()));
    let kind = written.kind.as_deref().unwrap_or(if command.is_none() && url.is_some() {
        "http"
    } else {
        "stdio"
    });
    let reach = match kind {
        "stdio" => parse_stdio_address(command, env, &mut written, &mut text, lookup)?,
        "http" => {
            let url = text(&url.ok_or("`url` is missing")?);
            check_address(&url)?;
            let oauth = OAuthSettings::parse_settings(&written.oauth, &mut text)?;
            McpServerAddress::Http(HttpServerAddress { url, headers, oauth })
        }
        "sse" => {
            let text = "`sse` is the 2024-11-05 transport, which jaato does not support: check \
                        whether the server has a streamable HTTP endpoint (`type` `http`)";
            return Err(text.to_owned());
        }
        other => return Err(format!("`type` must be `stdio` or `http`, not `{other}`")),
    };
    let timeout = parse_timeout("timeout", written.timeout, warnings).unwrap_or(TIMEOUT_DEFAULT);
    let startup_timeout = parse_timeout("startupTimeout", written.startup_timeout, warnings);
    Ok(ServerEntry {
        name: name.to_owned(),
        origin,
        digest: entry_digest(value),
        reach,
        timeout,
        startup_timeout,
        parallel: written.parallel,
        tools: written.tools.filter(|tools| !tools.iter().any(|it| it == "*")),
        left_out: written.exclude_tools,
        disabled: written.disabled,
        always_load: written.always_load,
        shown,
        expanded: values,
    })
}

/// Reads how to start a server. `text` expands the variables in a text.
fn parse_stdio_address(
    command: Option<String>,
    mut env: BTreeMap<String, String>,
    written: &mut RawServerEntry,
    text: &mut dyn FnMut(&str) -> String,
    lookup: VariableLookup<'_>,
) -> Result<McpServerAddress, String> {
    // Replaces `~` with the user's home, as a shell does.
    let path = |text: String| match (text.strip_prefix("~/"), lookup(USER_HOME)) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        (_, _) => text,
    };
    let command = command.ok_or("neither `command` nor `url` is set")?;
    let mut program = path(text(&command));
    let mut args = Vec::new();
    // `command` holds a whole command line, because no program has this name.
    if written.args.is_empty() && program.contains(' ') && !Path::new(&program).exists() {
        let words = shlex::split(&program).ok_or("unclosed quote in `command`")?;
        let mut words = words.into_iter();
        program = words.next().ok_or("`command` is empty")?;
        args.extend(words);
    }
    args.extend(written.args.iter().map(|it| text(it)));
    if let Some(file) = non_empty_text(written.env_file.take()) {
        for (name, value) in read_env_file(&path(text(&file)), lookup)? {
            env.entry(name).or_insert(value);
        }
    }
    let cwd = non_empty_text(written.cwd.take()).map(|it| path(text(&it)));
    Ok(McpServerAddress::Stdio(StdioServerAddress { command: program, args, env, cwd }))
}

fn non_empty_text(text: Option<String>) -> Option<String> {
    text.filter(|it| !it.trim().is_empty())
}

fn parse_timeout(key: &str, written: Option<u64>, warnings: &mut Vec<String>) -> Option<Duration> {
    match written? {
        time @ TIMEOUT_MS_MIN.. => Some(Duration::from_millis(time.min(TIMEOUT_MS_MAX))),
        short => {
            warnings
                .push(format!("`{key}` of {short} ms is ignored: the value is in milliseconds"));
            None
        }
    }
}

/// Reads a variables file. A relative path starts at the session's folder.
fn read_env_file(file: &str, lookup: VariableLookup<'_>) -> Result<Vec<(String, String)>, String> {
    let folder = lookup(WORKSPACE_FOLDER).unwrap_or_default();
    let text = match read_text(&Path::new(&folder).join(file), FILE_BYTES_MAX) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(format!("`envFile`: `{file}` does not exist")),
        Err(why) => return Err(format!("`envFile`: `{file}`: {why}")),
    };
    let all = dotenv::parse(&text).assignments.into_iter();
    Ok(all.map(|one| (one.name, one.value)).collect())
}

/// Returns the command line or URL for display.
fn redact_address(written: &RawServerEntry) -> String {
    match (&written.command, &written.url) {
        (Some(command), _) => {
            let line = shlex::split(command).filter(|_| written.args.is_empty());
            let words = line.unwrap_or_else(|| vec![command.clone()]);
            let words = words.iter().chain(&written.args).map(String::as_str);
            mask::mask_command_line(words).join(" ")
        }
        (None, url) => mask::mask_urls(url.as_deref().unwrap_or_default()),
    }
}

/// Checks the URL of an endpoint.
fn check_address(url: &str) -> Result<(), String> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err("`url` must begin with `http://` or `https://`".to_owned());
    }
    let parsed =
        url::Url::parse(url).map_err(|error| format!("`url` is not a valid URL: {error}"))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        // They would be shown wherever the URL is shown.
        return Err("`url` contains a user name or password: put it into `headers`".to_owned());
    }
    Ok(())
}

impl ServerEntry {
    /// Returns true if the entry allows a tool.
    pub fn is_tool_allowed(&self, tool: &str) -> bool {
        let is_among = |tools: &Vec<String>| tools.iter().any(|it| it == tool);
        self.tools.as_ref().is_none_or(is_among) && !is_among(&self.left_out)
    }

    /// Returns `stdio` or `http`.
    pub fn transport_name(&self) -> &'static str {
        match self.reach {
            McpServerAddress::Stdio(_) => "stdio",
            McpServerAddress::Http(_) => "http",
        }
    }

    /// Lists the texts of the entry that logs and errors must hide.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        let mut add = |text: &str| {
            if text.len() >= SECRET_BYTES_MIN && !secrets.iter().any(|it| it == text) {
                secrets.push(text.to_owned());
            }
        };
        // Values that are clearly not secret, such as folders, stay readable.
        self.expanded.iter().filter(|it| mask::mask_value(it) != **it).for_each(|it| add(it));
        match &self.reach {
            McpServerAddress::Http(http) => {
                http.oauth.secrets().iter().for_each(|it| add(it));
                for value in http.headers.values().filter(|it| mask::mask_value(it) != **it) {
                    add(value);
                    // The key follows the scheme: `Bearer KEY`.
                    value.split_whitespace().for_each(&mut add);
                }
                if mask::mask_urls(&http.url) != http.url {
                    let query = http.url.split_once(['?', '#']).map_or("", |(_, query)| query);
                    add(query);
                    query.split('&').filter_map(|it| it.split_once('=')).for_each(|it| add(it.1));
                }
            }
            McpServerAddress::Stdio(stdio) => {
                stdio.env.values().filter(|it| mask::mask_value(it) != **it).for_each(|it| add(it));
                let words = stdio.args.iter().map(String::as_str);
                let hidden = mask::mask_arguments(words).into_iter().zip(&stdio.args);
                for (_, word) in hidden.filter(|(shown, word)| shown != *word) {
                    add(word);
                    if let Some((_, value)) = word.split_once('=') {
                        add(value);
                    }
                }
            }
        }
        // A longer text may contain a shorter one, so it must be replaced first.
        secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
        secrets
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    fn parse_entry(value: Value) -> (Result<ServerEntry, String>, Vec<String>) {
        let lookup = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let mut warnings = Vec::new();
        (parse_server_entry("gh", &value, McpConfigOrigin::Home, &lookup, &mut warnings), warnings)
    }

    #[test]
    fn command_entry_is_a_stdio_server() {
        let value = json!({
            "command": "${HOME}/mcp-gh", "args": ["--root", "${ROOT:-/r}"], "env": { "TOKEN": "${TOKEN}" },
            "timeout": 5000, "alwaysLoad": true, "somebodyElses": 1,
        });
        let (entry, warnings) = parse_entry(value);
        let entry = entry.unwrap();
        let McpServerAddress::Stdio(stdio) = &entry.reach else { panic!("{entry:?}") };
        assert_eq!((stdio.command.as_str(), stdio.args[1].as_str()), ("/h/mcp-gh", "/r"));
        assert_eq!(entry.shown, "${HOME}/mcp-gh --root ${ROOT}");
        assert!(entry.always_load && entry.timeout == Duration::from_secs(5));
        assert_eq!(warnings, ["variable `TOKEN` is not set, so `${TOKEN}` stays as written"]);
    }

    #[test]
    fn command_line_is_split_and_folder_variables_are_expanded() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("my.env"), "A=1\nB=\"2\"\n").unwrap();
        let lookup = |name: &str| match name {
            WORKSPACE_FOLDER => folder.path().to_str().map(str::to_owned),
            USER_HOME => Some("/h".to_owned()),
            "KEY" => Some("secret-1".to_owned()),
            _ => None,
        };
        let read = |value: Value| {
            let mut warnings = Vec::new();
            let entry =
                parse_server_entry("gh", &value, McpConfigOrigin::Home, &lookup, &mut warnings)
                    .unwrap();
            let McpServerAddress::Stdio(stdio) = entry.reach.clone() else { panic!("{entry:?}") };
            (entry, stdio, warnings)
        };
        let (entry, stdio, _) = read(json!({
            "command": "~/srv --token ${env:KEY} 'a b'", "envFile": "my.env", "env": { "B": 3 },
            "cwd": "${workspaceFolder}/sub", "excludeTools": ["x"],
        }));
        assert_eq!(
            (stdio.command.as_str(), stdio.args),
            ("/h/srv", ["--token", "secret-1", "a b"].map(str::to_owned).to_vec())
        );
        assert_eq!(entry.shown, "~/srv --token ${KEY} …");
        assert_eq!(stdio.cwd.unwrap(), folder.path().join("sub").to_str().unwrap());
        let set = [("A", "1"), ("B", "3")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(stdio.env, set.into());
        assert!(entry.is_tool_allowed("y") && !entry.is_tool_allowed("x"));
        let (_, stdio, warnings) =
            read(json!({ "command": ["bun", "x"], "env": { "A": "${input:key}" } }));
        assert_eq!((stdio.command.as_str(), stdio.args[0].as_str()), ("bun", "x"));
        assert!(warnings[0].contains("only VS Code supports inputs"), "{warnings:?}");
    }

    #[test]
    fn url_entry_is_http_under_any_type_name() {
        for value in [
            json!({ "url": "https://e.example/mcp" }),
            json!({ "type": "http", "url": "https://e.example/mcp" }),
            json!({ "type": "streamableHttp", "httpUrl": "https://e.example/mcp" }),
        ] {
            assert_eq!(parse_entry(value).0.unwrap().transport_name(), "http");
        }
    }

    #[test]
    fn unusable_entry_is_refused_with_the_reason() {
        for (value, why) in [
            (json!({}), "neither `command` nor `url` is set"),
            (json!({ "type": "http" }), "`url` is missing"),
            (
                json!({ "command": "x", "envFile": "/none/.env" }),
                "`envFile`: `/none/.env` does not exist",
            ),
            (
                json!({ "type": "http", "url": "file:///x" }),
                "`url` must begin with `http://` or `https://`",
            ),
            (
                json!({ "type": "carrier-pigeon", "command": "x" }),
                "`type` must be `stdio` or `http`, not `carrier-pigeon`",
            ),
        ] {
            assert_eq!(parse_entry(value).0.unwrap_err(), why);
        }
        assert_eq!(
            parse_entry(json!({ "command": [] })).0.unwrap_err(),
            "neither `command` nor `url` is set"
        );
        assert_eq!(parse_entry(json!({ "args": {} })).0.unwrap_err(), "`args` is not a list");
        assert!(parse_entry(json!("x")).0.is_err());
        assert!(
            parse_entry(json!({ "type": "sse", "url": "https://x" }))
                .0
                .unwrap_err()
                .contains("sse")
        );
        let many = vec!["x"; WORDS_MAX + 1];
        assert!(parse_entry(json!({ "command": "x", "args": many })).0.is_err());
    }

    #[test]
    fn tools_filter_is_applied_and_timeout_in_seconds_gives_a_warning() {
        let (entry, warnings) =
            parse_entry(json!({ "command": "x", "tools": ["a"], "timeout": 30 }));
        let entry = entry.unwrap();
        assert!(entry.is_tool_allowed("a") && !entry.is_tool_allowed("b"));
        assert_eq!(entry.timeout, TIMEOUT_DEFAULT);
        assert_eq!(warnings.len(), 1);
        assert!(
            parse_entry(json!({ "command": "x", "tools": ["*"] })).0.unwrap().is_tool_allowed("b")
        );
    }

    #[test]
    fn secrets_are_not_shown_and_are_known_to_the_log() {
        let lookup = |name: &str| (name == "TOKEN").then(|| "from-variable".to_owned());
        let read = |value: Value| {
            parse_server_entry("gh", &value, McpConfigOrigin::Home, &lookup, &mut Vec::new())
                .unwrap()
        };
        let entry = read(json!({
            "command": "srv", "args": ["--token", "${TOKEN}", "--key=SECRET-1", "SECRET-2"],
            "env": { "X": "SECRET-3", "LEVEL": "debug" },
        }));
        assert_eq!(entry.shown, "srv --token ${TOKEN} --key=… …");
        let secrets = entry.secrets();
        for secret in ["from-variable", "SECRET-1", "SECRET-2", "SECRET-3"] {
            assert!(secrets.iter().any(|it| it == secret), "{secret}: {secrets:?}");
        }
        let entry = read(json!({
            "url": "https://e.example/mcp?key=${TOKEN}", "headers": { "X-A": "Bearer SECRET-4" },
        }));
        assert_eq!(entry.shown, "https://e.example/mcp?…");
        let secrets = entry.secrets();
        for secret in ["from-variable", "SECRET-4"] {
            assert!(secrets.iter().any(|it| it == secret), "{secret}: {secrets:?}");
        }
        let entry = read(json!({
            "url": "https://e.example/${TOKEN}/mcp",
            "oauth": { "clientId": "a", "clientSecret": "SECRET-5" },
        }));
        assert_eq!(entry.shown, "https://e.example/${TOKEN}/mcp");
        let secrets = entry.secrets();
        for secret in ["from-variable", "SECRET-5"] {
            assert!(secrets.iter().any(|it| it == secret), "{secret}: {secrets:?}");
        }
        let entry = read(json!({ "command": "${TOKEN}", "args": ["run", "${D:-default-1}"] }));
        assert_eq!(entry.secrets(), ["from-variable", "default-1"]);
        let entry = read(json!({ "command": "x", "cwd": "${HOME:-/home/ann}" }));
        assert!(entry.secrets().is_empty());
    }
}
