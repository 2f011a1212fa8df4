//! Adds servers to the workspace's `.mcp.json` and takes them out. What else stands in the file
//! stays as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::{self, Map};
use jaato_plugin_sdk::types::workspace_file::{
    WORKSPACE_FILE_SET, WorkspaceFileSet, WorkspaceFileStored,
};

use super::{show, take_files};
use crate::config::files::{FILE_NAME, read_document, replace};
use crate::servers::Servers;

/// Adds a server.
///
/// # Errors
/// A command that is missing, a name that is taken, a file that cannot be read or written.
pub async fn add(
    host: &Reporter,
    servers: &Arc<Servers>,
    name: &str,
    command: &str,
) -> Result<String> {
    let entry = entry(command)?;
    let name = name.to_owned();
    if servers.find(&name).is_ok() {
        return Err(show::taken(&name));
    }
    let added = name.clone();
    let change = move |servers: &mut Map<String, Value>| match servers.contains_key(&added) {
        true => Err(show::taken(&added)),
        false => {
            servers.insert(added, entry);
            Ok(())
        }
    };
    let note = change_file(host, servers, change).await?;
    Ok(format!(
        "Added MCP server '{name}' with command: {command}\nUse 'mcp connect {name}' to connect, or \
         'mcp reload' to reconnect all servers.{note}"
    ))
}

/// Takes a server out.
///
/// # Errors
/// `not_found`; a file that cannot be read or written.
pub async fn remove(host: &Reporter, servers: &Arc<Servers>, name: &str) -> Result<String> {
    let removed = name.to_owned();
    let change = move |servers: &mut Map<String, Value>| match servers.shift_remove(&removed) {
        Some(_) => Ok(()),
        None => {
            let text = format!("Server '{removed}' is not in the workspace's {FILE_NAME}.");
            Err(Error::new(ErrorKind::NotFound, text))
        }
    };
    let note = change_file(host, servers, change).await?;
    Ok(format!("Removed MCP server '{name}' from configuration.{note}"))
}

/// Writes the entry of a command line, or of an address.
fn entry(command: &str) -> Result<Value> {
    let wrong = |text: &str| {
        Error::new(ErrorKind::InvalidArguments, text).with_hint("mcp add NAME COMMAND [ARGS]")
    };
    let words = shlex::split(command).ok_or_else(|| wrong("a quote is open in the command"))?;
    match words.as_slice() {
        [] => Err(wrong("the command is missing")),
        [url] if url.starts_with("https://") || url.starts_with("http://") => {
            Ok(json!({ "type": "http", "url": url }))
        }
        [command, args @ ..] => Ok(json!({ "type": "stdio", "command": command, "args": args })),
    }
}

/// Changes the servers of the workspace's file; tells what a person should know besides.
async fn change_file(
    host: &Reporter,
    servers: &Arc<Servers>,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<()> + Send + 'static,
) -> Result<String> {
    let facts = host.session().await?;
    let trusted = facts.trusted_workspace.map(PathBuf::from);
    let is_trusted = trusted.is_some();
    let path = trusted.unwrap_or_else(|| PathBuf::from(facts.working_directory)).join(FILE_NAME);
    let place = path.clone();
    let text = host.blocking(move |_| changed(&place, change)).await??;
    if is_trusted {
        let request = WorkspaceFileSet { name: FILE_NAME.to_owned() };
        let stored: WorkspaceFileStored =
            host.service_with_bytes(WORKSPACE_FILE_SET, &request, text.as_bytes()).await?;
        let _ = stored;
        take_files(host, servers).await?;
        return Ok(String::new());
    }
    host.blocking(move |_| write(&path, &text)).await??;
    Ok("\nThe workspace is not trusted, so its file does not count: 'jaato trust'.".to_owned())
}

/// Returns the file's text with its servers changed.
fn changed(
    path: &Path,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<()>,
) -> Result<String> {
    let mut document = read_document(path).map_err(|why| unusable(path, &why))?;
    let servers = document.entry("mcpServers").or_insert_with(|| json!({}));
    let Value::Object(servers) = servers else {
        return Err(unusable(path, "`mcpServers` is no object"));
    };
    change(servers)?;
    let text = serde_json::to_string_pretty(&document);
    Ok(text.map_err(|error| unusable(path, &error.to_string()))? + "\n")
}

fn write(path: &Path, text: &str) -> Result<()> {
    replace(path, text.as_bytes()).map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Io, format!("cannot change `{}`: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_as_a_shell_does() {
        assert_eq!(
            entry("npx -y 'my server' x").unwrap(),
            json!({ "type": "stdio", "command": "npx", "args": ["-y", "my server", "x"] })
        );
        assert_eq!(
            entry("https://e.example/mcp").unwrap(),
            json!({ "type": "http", "url": "https://e.example/mcp" })
        );
        assert!(entry("").is_err() && entry("'x").is_err());
    }

    #[test]
    fn what_nobody_here_knows_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let text = "{\n  \"z\": 1,\n  \"mcpServers\": {\n    \"b\": {\n      \"command\": \"x\",\n      \"odd\": []\n    }\n  },\n  \"a\": 2\n}\n";
        std::fs::write(&path, text).unwrap();
        let add = |servers: &mut Map<String, Value>| {
            servers.insert("a".to_owned(), json!({}));
            Ok(())
        };
        write(&path, &changed(&path, add).unwrap()).unwrap();
        let remove = |servers: &mut Map<String, Value>| {
            servers.shift_remove("a");
            Ok(())
        };
        write(&path, &changed(&path, remove).unwrap()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::write(&path, "{ not json").unwrap();
        assert!(changed(&path, |_| Ok(())).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ not json");
    }
}
