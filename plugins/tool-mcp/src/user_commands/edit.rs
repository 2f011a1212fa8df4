//! Adds servers to a `.mcp.json` and removes them. Other content of the file, including comments,
//! stays unchanged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::{self, Map};
use jaato_plugin_sdk::types::mcp_entry::{server_entries, servers_path, to_standard_entry};
use jaato_plugin_sdk::types::workspace_file::{
    WORKSPACE_FILE_SET, WorkspaceFileSet, WorkspaceFileSetAnswer,
};
use jsonc_parser::cst::{CstInputValue, CstObject};
use lexopt::Arg::{Long, Short, Value as Word};
use lexopt::ValueExt as _;

use super::{apply_config_files, show};
use crate::config::McpConfigOrigin;
use crate::config::entry;
use crate::config::files::{
    FILE_BYTES_MAX, FILE_NAME, parse_config, read_text, replace_file, top_level_members,
};
use crate::servers::McpServers;

/// How `mcp add` is typed.
pub const ADD_HELP: &str = "mcp add [OPTIONS] NAME [--] COMMAND [ARGS]
mcp add [OPTIONS] NAME ADDRESS
mcp add [OPTIONS] NAME '{ JSON of an entry }'

  -e, --env KEY=VALUE         a variable of the program
  -t, --transport stdio|http  the transport; by default jaato derives it from the address
  -H, --header 'NAME: VALUE'  a header of each request
  -s, --scope workspace|user  .mcp.json of the workspace (default) or of your home
      --url ADDRESS           the address, in place of a word
      --cwd FOLDER            where the program runs
      --timeout MS            how long a call may take
      --tools A,B             the tools that are offered
      --exclude-tools A,B     the tools that are not
      --bearer-token-env-var VARIABLE, --client-id ID, --client-secret SECRET, --callback-port PORT
                              the login
A variable is put in where the value is written as '${NAME}'.";

/// The parsed words of `mcp add`.
#[derive(Debug, PartialEq)]
struct ParsedAddCommand {
    name: String,
    entry: Value,
    origin: McpConfigOrigin,
}

/// Adds a server. `words` are the words after `mcp add`.
///
/// # Errors
/// An error if the words do not form an entry, the name is taken, or a file cannot be read or
/// written.
pub async fn add_server(
    host: &Reporter,
    servers: &Arc<McpServers>,
    words: Vec<String>,
) -> Result<String> {
    let wrong = |text: String| {
        Error::new(ErrorKind::InvalidArguments, text).with_hint("see `mcp add --help`")
    };
    let Some(ParsedAddCommand { name, entry, origin }) = parse_add_command(words).map_err(wrong)?
    else {
        return Ok(ADD_HELP.to_owned());
    };
    let mut notes = Vec::new();
    let lookup = |name: &str| std::env::var(name).ok();
    let read =
        entry::parse_server_entry(&name, &entry, origin, &lookup, &mut notes).map_err(wrong)?;
    if servers.find_server(&name).is_ok() {
        return Err(show::name_taken_error(&name));
    }
    if origin == McpConfigOrigin::Workspace
        && !read.secrets().is_empty()
        && read.expanded.is_empty()
    {
        notes.push(format!(
            "a value is stored as plain text in {FILE_NAME}, which others may read; use '${{NAME}}' to take it from a variable"
        ));
    }
    let all = Map::from_iter([(name.clone(), entry)]);
    notes.extend(insert_servers(host, servers, origin, all).await?);
    let mut lines = vec![
        format!("Added MCP server '{name}' with command: {}", read.shown),
        format!("Use 'mcp connect {name}' to connect, or 'mcp reload' to reconnect all servers."),
    ];
    lines.extend(notes);
    Ok(lines.join("\n"))
}

/// Writes servers to a file. Returns a note for the user.
///
/// # Errors
/// An error if the file already contains a name, or cannot be read or written.
pub async fn insert_servers(
    host: &Reporter,
    servers: &Arc<McpServers>,
    origin: McpConfigOrigin,
    all: Map<String, Value>,
) -> Result<Option<String>> {
    let change = move |servers: &CstObject| {
        for (name, entry) in &all {
            if servers.get(name).is_some() {
                return Err(show::name_taken_error(name));
            }
            servers.append(name, to_cst_value(entry));
        }
        Ok(())
    };
    change_file(host, servers, origin, change).await
}

/// Removes a server from the workspace's file or the user's file.
///
/// # Errors
/// `not_found`, or an error if the file cannot be read or written.
pub async fn remove_server(
    host: &Reporter,
    servers: &Arc<McpServers>,
    name: &str,
) -> Result<String> {
    let known = servers.find_server(name).map(|server| server.entry.origin);
    let origin = match known {
        Ok(McpConfigOrigin::Home) => McpConfigOrigin::Home,
        _ => McpConfigOrigin::Workspace,
    };
    let removed = name.to_owned();
    let change = move |servers: &CstObject| match servers.get(&removed) {
        Some(property) => {
            property.remove();
            Ok(())
        }
        None => {
            let text = format!("Server '{removed}' is not in the workspace's {FILE_NAME}.");
            Err(Error::new(ErrorKind::NotFound, text))
        }
    };
    let note = change_file(host, servers, origin, change).await?;
    let note = note.map(|note| format!("\n{note}")).unwrap_or_default();
    Ok(format!("Removed MCP server '{name}' from configuration.{note}"))
}

/// Parses the words after `mcp add`, in the syntax of Claude Code, codex and Gemini CLI. Returns
/// `None` if they ask for help.
fn parse_add_command(words: Vec<String>) -> Result<Option<ParsedAddCommand>, String> {
    let parser = &mut lexopt::Parser::from_args(words);
    let (mut entry, mut oauth) = (Map::new(), Map::new());
    let (mut name, mut origin) = (None, McpConfigOrigin::Workspace);
    let text = |error: lexopt::Error| error.to_string();
    while let Some(word) = parser.next().map_err(text)? {
        match word {
            Short('h') | Long("help") => return Ok(None),
            Short('e') | Long("env") => {
                let given = option_value(parser)?;
                let (key, value) = given.split_once('=').ok_or("`--env` takes KEY=VALUE")?;
                set_member(&mut entry, "env", key, value);
            }
            Short('H') | Long("header") => {
                let given = option_value(parser)?;
                let (key, value) = given.split_once(':').ok_or("`--header` takes 'NAME: VALUE'")?;
                set_member(&mut entry, "headers", key.trim(), value.trim());
            }
            Long("bearer-token-env-var") => {
                let variable = option_value(parser)?;
                let credential = format!("Bearer ${{{variable}}}");
                set_member(&mut entry, "headers", "Authorization", &credential);
            }
            Short('s') | Long("scope") => {
                origin = match option_value(parser)?.as_str() {
                    "workspace" | "project" | "local" => McpConfigOrigin::Workspace,
                    "user" | "home" | "global" => McpConfigOrigin::Home,
                    other => {
                        return Err(format!("`--scope` is `workspace` or `user`, not `{other}`"));
                    }
                }
            }
            Short('t') | Long("transport" | "type") => {
                set_key(&mut entry, "type", option_value(parser)?)
            }
            Long("url") => set_key(&mut entry, "url", option_value(parser)?),
            Long("cwd") => set_key(&mut entry, "cwd", option_value(parser)?),
            Long("timeout") => set_key(&mut entry, "timeout", option_number(parser)?),
            Long("startup-timeout") => {
                set_key(&mut entry, "startupTimeout", option_number(parser)?)
            }
            Long("tools" | "include-tools") => {
                set_key(&mut entry, "tools", split_list(&option_value(parser)?))
            }
            Long("exclude-tools") => {
                set_key(&mut entry, "excludeTools", split_list(&option_value(parser)?))
            }
            Long("client-id") => set_key(&mut oauth, "clientId", option_value(parser)?),
            Long("client-secret") => set_key(&mut oauth, "clientSecret", option_value(parser)?),
            Long("callback-port") => set_key(&mut oauth, "callbackPort", option_number(parser)?),
            Word(word) if name.is_none() => name = Some(word.string().map_err(text)?),
            Word(word) => {
                let word = word.string().map_err(text)?;
                parse_address(&mut entry, word, parser)?;
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    let name = name.ok_or("the server's name is missing")?;
    if !oauth.is_empty() {
        set_key(&mut entry, "oauth", oauth);
    }
    // The JSON may be in any program's format.
    let mut entry = to_standard_entry(&Value::Object(entry))?;
    if !entry.contains_key("type") {
        let kind = if entry.contains_key("url") { "http" } else { "stdio" };
        entry.shift_insert(0, "type".to_owned(), kind.into());
    }
    if !entry.contains_key("command") && !entry.contains_key("url") {
        return Err("the command or the address is missing".to_owned());
    }
    Ok(Some(ParsedAddCommand { name, entry: Value::Object(entry), origin }))
}

/// Parses the word after the name: a URL, JSON, or a command with the remaining words as arguments.
fn parse_address(
    entry: &mut Map<String, Value>,
    word: String,
    parser: &mut lexopt::Parser,
) -> Result<(), String> {
    if entry.contains_key("command") || entry.contains_key("url") {
        return Err(format!("unexpected argument `{word}` after the address"));
    }
    if word.starts_with("https://") || word.starts_with("http://") {
        set_key(entry, "url", word);
    } else if word.starts_with('{') {
        let json = serde_json::from_str(&word).map_err(|error| error.to_string())?;
        let Value::Object(json) = json else { return Err("the JSON is not an object".into()) };
        entry.extend(json);
    } else {
        let text = |error: lexopt::Error| error.to_string();
        let args = parser.raw_args().map_err(text)?;
        let args: Result<Vec<String>, _> = args.map(|it| it.string()).collect();
        set_key(entry, "command", word);
        set_key(entry, "args", args.map_err(text)?);
    }
    Ok(())
}

/// Returns the value of an option.
fn option_value(parser: &mut lexopt::Parser) -> Result<String, String> {
    parser.value().and_then(|it| it.string()).map_err(|error| error.to_string())
}

fn set_key(entry: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    entry.insert(key.to_owned(), value.into());
}

fn set_member(entry: &mut Map<String, Value>, key: &str, name: &str, value: &str) {
    entry.entry(key).or_insert_with(|| json!({}))[name] = value.into();
}

fn split_list(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect()
}

fn option_number(parser: &mut lexopt::Parser) -> Result<u64, String> {
    let text = option_value(parser)?;
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// Changes the servers of a file. Returns a note for the user.
async fn change_file(
    host: &Reporter,
    servers: &Arc<McpServers>,
    origin: McpConfigOrigin,
    change: impl FnOnce(&CstObject) -> Result<()> + Send + 'static,
) -> Result<Option<String>> {
    let facts = host.session().await?;
    let trusted = facts.trusted_workspace.map(PathBuf::from);
    let is_trusted = trusted.is_some() && origin == McpConfigOrigin::Workspace;
    let folder =
        match origin {
            McpConfigOrigin::Home => servers.places.home.clone().ok_or_else(|| {
                Error::new(ErrorKind::Unavailable, "cannot find your home folder")
            })?,
            McpConfigOrigin::Workspace | McpConfigOrigin::Settings => {
                trusted.unwrap_or_else(|| PathBuf::from(facts.working_directory))
            }
        };
    let path = folder.join(FILE_NAME);
    let place = path.clone();
    let text = host.blocking(move |_| apply_file_change(&place, change)).await??;
    if is_trusted {
        let request = WorkspaceFileSet { name: FILE_NAME.to_owned() };
        let stored: WorkspaceFileSetAnswer =
            host.service_with_bytes(WORKSPACE_FILE_SET, &request, text.as_bytes()).await?;
        let _ = stored;
    } else {
        host.blocking(move |_| write_config_file(&path, &text)).await??;
        if origin == McpConfigOrigin::Workspace {
            let note = "The workspace is not trusted, so its file is ignored: run 'jaato trust'.";
            return Ok(Some(note.to_owned()));
        }
    }
    apply_config_files(host, servers).await?;
    Ok(None)
}

/// Returns the file's text with its servers changed.
fn apply_file_change(path: &Path, change: impl FnOnce(&CstObject) -> Result<()>) -> Result<String> {
    let unusable = |why: String| unusable_file_error(path, &why);
    let text = read_text(path, FILE_BYTES_MAX).map_err(unusable)?.unwrap_or_default();
    let file = parse_config(&text).map_err(unusable)?;
    let members = top_level_members(&file).map_err(unusable)?;
    let keys = servers_path(&members).map_err(unusable)?;
    server_entries(members).map_err(unusable)?;
    let mut servers = file.object_value_or_set();
    for key in keys {
        servers = servers.object_value_or_set(&key);
    }
    change(&servers)?;
    let text = file.to_string();
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

/// Converts a value for the file.
fn to_cst_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(to_cst_value).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), to_cst_value(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

fn write_config_file(path: &Path, text: &str) -> Result<()> {
    replace_file(path, text.as_bytes())
        .map_err(|error| unusable_file_error(path, &error.to_string()))
}

fn unusable_file_error(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Io, format!("cannot change `{}`: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_parses_to(line: &str, name: &str, entry: Value) {
        let words = shlex::split(line).unwrap();
        let expected =
            ParsedAddCommand { name: name.to_owned(), entry, origin: McpConfigOrigin::Workspace };
        assert_eq!(parse_add_command(words), Ok(Some(expected)), "{line}");
    }

    #[test]
    fn add_command_lines_of_other_programs_are_parsed() {
        let docker = json!({ "type": "stdio", "command": "docker", "args": ["run", "-i", "-e", "X", "img"] });
        assert_parses_to("gh -- docker run -i -e X img", "gh", docker.clone());
        assert_parses_to("gh docker run -i -e X img", "gh", docker.clone());
        let mut with = docker;
        with["env"] = json!({ "K": "V=1", "L": "2" });
        with = json!({ "type": "stdio", "env": with["env"], "command": "docker", "args": with["args"] });
        assert_parses_to("-e K=V=1 --env L=2 gh -- docker run -i -e X img", "gh", with.clone());
        assert_parses_to("gh -e K=V=1 --env=L=2 -- docker run -i -e X img", "gh", with);
        let linear = json!({ "type": "http", "url": "https://e.example/mcp" });
        assert_parses_to("--transport http linear https://e.example/mcp", "linear", linear.clone());
        assert_parses_to("linear --url https://e.example/mcp", "linear", linear.clone());
        assert_parses_to(
            r#"linear '{"type": "http", "url": "https://e.example/mcp"}'"#,
            "linear",
            linear.clone(),
        );
        assert_parses_to(r#"linear '{"httpUrl": "https://e.example/mcp"}'"#, "linear", linear);
        let headers =
            json!({ "type": "http", "url": "http://e.example", "headers": { "X-A": "b: c" } });
        assert_parses_to("x http://e.example --header 'X-A: b: c'", "x", headers);
        let home = parse_add_command(shlex::split("-s user x y").unwrap()).unwrap().unwrap();
        assert_eq!((home.origin, home.name.as_str()), (McpConfigOrigin::Home, "x"));
        assert_eq!(parse_add_command(vec!["--help".to_owned()]), Ok(None));
    }

    #[test]
    fn invalid_add_commands_are_refused() {
        for (line, why) in [
            ("", "the server's name is missing"),
            ("x", "the command or the address is missing"),
            ("x --trust y", "invalid option '--trust'"),
            ("x https://e.example more", "unexpected argument `more` after the address"),
            ("-e K x y", "`--env` takes KEY=VALUE"),
            ("-s moon x y", "`--scope` is `workspace` or `user`, not `moon`"),
            ("x '{'", "EOF while parsing an object at line 1 column 1"),
        ] {
            assert_eq!(
                parse_add_command(shlex::split(line).unwrap()),
                Err(why.to_owned()),
                "{line}"
            );
        }
    }

    #[test]
    fn edit_keeps_the_rest_of_the_file_including_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let text = "{\n  // mine\n  \"z\": 1,\n  \"servers\": {\n    \"b\": {\n      \"command\": \"x\", // odd\n    },\n  },\n}\n";
        std::fs::write(&path, text).unwrap();
        let entry = json!({ "command": "y", "args": ["1"] });
        let add = |servers: &CstObject| {
            servers.append("a", to_cst_value(&entry));
            Ok(())
        };
        let added = apply_file_change(&path, add).unwrap();
        assert!(added.contains("// mine") && added.contains("// odd"), "{added}");
        let members = top_level_members(&parse_config(&added).unwrap()).unwrap();
        assert_eq!(server_entries(members).unwrap()["a"], entry);
        write_config_file(&path, &added).unwrap();
        let remove = |servers: &CstObject| {
            servers.get("a").unwrap().remove();
            Ok(())
        };
        assert_eq!(apply_file_change(&path, remove).unwrap(), text);
        std::fs::write(&path, "{ not json").unwrap();
        assert!(apply_file_change(&path, |_| Ok(())).is_err());
        std::fs::remove_file(&path).unwrap();
        let new = "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"y\",\n      \"args\": [\"1\"]\n    }\n  }\n}\n";
        let add = |servers: &CstObject| {
            servers.append("a", to_cst_value(&entry));
            Ok(())
        };
        assert_eq!(apply_file_change(&path, add).unwrap(), new);
    }
}
