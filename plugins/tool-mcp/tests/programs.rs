//! The library with servers that are programs: starts, calls and ends them.

use std::collections::BTreeMap;

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{Map, json};
use tool_mcp::library::McpClientManager;

/// A server in shell script. It returns its process ID from a tool.
const SERVER: &str = r#"
while read -r line; do
    case $line in *\"id\":*) ;; *) continue ;; esac
    id=${line##*\"id\":}
    id=${id%%[,\}]*}
    case $line in
        *server/discover*) part='"error":{"code":-32601,"message":"no"}' ;;
        *\"initialize\"*) part='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
        *tools/list*) part='"result":{"tools":[{"name":"pid","inputSchema":{"type":"object"}}]}' ;;
        *) part="\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$$ $MOON\"}]}" ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$part}"
done
"#;

#[tokio::test]
async fn a_program_is_connected_called_and_gone_after_the_disconnect() {
    let mut manager = McpClientManager::new().unwrap();
    let env = BTreeMap::from([("MOON".to_owned(), "full".to_owned())]);
    manager.connect("shell", "sh", &["-c", SERVER], env).await.unwrap();
    let tools: Vec<_> = manager.all_tools().collect();
    assert_eq!((tools[0].0, tools[0].1[0].name.as_str()), ("shell", "pid"));
    let answer = manager.call_tool_auto("pid", Map::new()).await.unwrap();
    let said = answer["content"][0]["text"].as_str().unwrap();
    let (process, moon) = said.split_once(' ').unwrap();
    assert_eq!(moon, "full");
    manager.disconnect("shell").await.unwrap();
    // The program ends at the end of its input, and its parent then reaps it.
    while std::path::Path::new("/proc").join(process).join("fd").read_dir().is_ok() {
        tokio::task::yield_now().await;
    }
    let gone = manager.call_tool("shell", "pid", Map::new()).await.unwrap_err();
    assert_eq!(gone.message, "Server 'shell' not connected");
}

#[tokio::test]
async fn missing_or_exiting_program_is_an_error() {
    let mut manager = McpClientManager::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").display().to_string();
    let missing = manager.connect("gone", &missing, &[], BTreeMap::new()).await;
    assert_eq!(missing.unwrap_err().kind, ErrorKind::NotFound);
    let ended = manager.connect("ends", "true", &[], BTreeMap::new()).await;
    assert_eq!(ended.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(manager.all_tools().count(), 0);
    assert!(manager.call_tool_auto("pid", json!({}).as_object().cloned().unwrap()).await.is_err());
}
