//! The tools `list_subagent_profiles` and `validateProfile`.

use std::path::Path;

use jaato_plugin_sdk::files::{FileKind, FileRead};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::tool_fn;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;

use crate::Subagents;
use crate::profile_file::{FILE_BYTES_MAX, ProfileSyntax};
use crate::profiles::Profiles;

/// List the profiles for subagents, and which files are skipped and why.
#[tool_fn(
    name = "list_subagent_profiles",
    category = "coordination",
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    example("which subagents are there?")
)]
async fn list_subagent_profiles(cx: &Cx<Subagents>) -> Result<Output> {
    let profiles = Profiles::load_profiles(cx).await?;
    let listed: Vec<Value> = profiles.all_profiles().map(|profile| profile.to_json()).collect();
    let mut answer = json!({ "profiles": listed, "count": listed.len() });
    if listed.is_empty() {
        answer["message"] = json!(
            "No profiles. A subagent without a profile gets your tools: call spawn_subagent with a task."
        );
    }
    if !profiles.skipped.is_empty() {
        let skipped = profiles.skipped.iter();
        answer["skipped"] =
            skipped.map(|it| json!({ "path": it.source, "reason": it.reason })).collect();
    }
    if !profiles.warnings.is_empty() {
        answer["warnings"] = json!(profiles.warnings);
    }
    if let Some(note) = profiles.untrusted_folder_notice() {
        answer["note"] = json!(note);
    }
    Ok(Output::json(answer))
}

/// Check a profile for subagents: a JSON or YAML file, or Markdown with front matter.
#[tool_fn(
    name = "validateProfile",
    category = "coordination",
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    example("check the profile reviewer.json", path = ".jaato/profiles/reviewer.json"),
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "path": { "type": "string", TOUCHES: "read", "description": "The file." },
        },
        "required": ["path"],
    })
)]
async fn validate_profile(cx: &Cx<Subagents>, path: String) -> Result<Output> {
    let (errors, warnings) = match read_profile_file(cx, &path).await? {
        Ok((syntax, text)) => {
            let checked = syntax.check_text(&text, None);
            (checked.errors, checked.warnings)
        }
        Err(why) => (vec![why], Vec::new()),
    };
    Ok(Output::json(json!({
        "valid": errors.is_empty(), "path": path, "errors": errors, "warnings": warnings,
    })))
}

/// Reads a file of the session's environment. The inner error is a reason why it is not a profile.
async fn read_profile_file(
    cx: &Cx<Subagents>,
    path: &str,
) -> Result<std::result::Result<(ProfileSyntax, String), String>> {
    if path.trim().is_empty() {
        return Ok(Err("'path' is required".to_owned()));
    }
    let Some(syntax) = ProfileSyntax::from_path(Path::new(path)) else {
        return Ok(Err("the name of a profile must end with .json, .yaml, .yml or .md".to_owned()));
    };
    let facts = match cx.files().stat(path).await {
        Ok(facts) => facts,
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Ok(Err(format!("File not found: {path}")));
        }
        Err(error) => return Err(error),
    };
    match facts.kind {
        FileKind::File if facts.size > FILE_BYTES_MAX => {
            return Ok(Err(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        FileKind::File => {}
        FileKind::Folder | FileKind::Link | FileKind::Other => {
            return Ok(Err("it is not a regular file".to_owned()));
        }
    }
    let read =
        FileRead { path: path.to_owned(), length: Some(FILE_BYTES_MAX), ..FileRead::default() };
    let (_, bytes) = cx.files().read(read).await?;
    Ok(front_matter::decode_text(&bytes).map(|text| (syntax, text)))
}
