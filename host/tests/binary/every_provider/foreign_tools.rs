//! Tests MCP tools with schemas as many generators write them: no vendor refuses a request because
//! of one, and each tool can be called.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{AnswerPart, ModelTurn, PROVIDERS, text_turn};
use crate::support::{fixtures, library_name};

/// `$filter` under the name that vendors accept.
const FILTER: &str = "_filter-0c097d40d6";

#[test]
fn every_vendor_takes_the_schemas_of_every_generator() {
    let file = "../plugins/tool-mcp/tests/fixtures/schemas.json";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let rows: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let rows = rows.as_array().unwrap();
    let program = fixtures::built_program("mcp_server");
    let entry = json!({ "command": program, "args": ["listed", file], "alwaysLoad": true });
    for provider in &PROVIDERS {
        let Some(house) = provider.new_house() else { return };
        house.ship(&fixtures::test_house().unwrap().join("plugins").join(library_name("tool_mcp")));
        house.write("home/.mcp.json", &json!({ "mcpServers": { "all": entry } }).to_string());
        house.run(&["mcp", "connect", "all"]).code(0);
        let given = json!({ FILTER: "a", "items__-e6e65aa0ef": ["b"], "_type-86f1f0bb4e": "t" });
        let call = ModelTurn::Says(vec![AnswerPart::Call("mcp__all__zod3_odd", given)]);
        let vendor = provider.fake_vendor([call, text_turn("done")]);
        let server = provider.serve(&vendor, super::unchanged_answer);
        provider.configure_server(&house, &server);
        house.configure_more("[tools]\ncore_tokens_max = 1000000\n");
        let words = ["run", "--yes", "--model", provider.model, "--tools", "mcp__all__*", "go"];
        let run = provider.command(&house, &words).run().code(0);
        assert_eq!(run.stdout, "done\n", "{}: {run}", provider.name);
        let asked = provider.completion_requests(&server);
        let body = String::from_utf8_lossy(&asked.last().unwrap().body).into_owned();
        let count = body.matches("\"mcp__all__").count();
        assert!(count >= rows.len(), "{}: {count} tools", provider.name);
        for name in ["$filter", "items[]", "@type"] {
            assert!(body.contains(name), "{}: {name}: {body}", provider.name);
        }
    }
}
