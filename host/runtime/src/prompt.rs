//! Gathers what the system text is made of: the user's file, the workspace's `AGENTS.md`
//! or `CLAUDE.md`, plugins' instructions, `--system`.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use jaato_config::trust::TrustedWorkspace;
use jaato_places::Why;
use jaato_registry::{Registry, Status};
use jaato_session::{PromptPart, PromptParts};
use jaato_types::{Error, ErrorKind, ToolName, ToolSpec};

use jaato_catalog::Setup;

/// Largest file that joins the prompt, in bytes: more would leave a small model no room for the
/// task.
pub const PROMPT_FILE_BYTES_MAX: u64 = 64 * 1024;

/// The trait of tools that change files.
const FILE_WRITER: &str = "file_writer";

/// Gathers the parts.
///
/// # Errors
/// When a file that the person named cannot be read, or is too large.
pub fn parts(
    setup: &Setup,
    registry: &Registry,
    system: Option<String>,
    tools: &BTreeSet<ToolName>,
) -> Result<PromptParts, Error> {
    let user_file =
        setup.config.prompt.file.as_ref().map(|path| read_prompt_file(setup, path)).transpose()?;
    let agents_files = match setup.trusted_workspace() {
        Some(workspace) => agents_files(setup, workspace)?,
        None => Vec::new(),
    };
    let plugins = editing(registry, tools).into_iter().chain(instructions(registry, tools));
    Ok(PromptParts { user_file, agents_files, plugins: plugins.collect(), system })
}

/// Reads the file that the configuration names; one that a workspace names is inside of it, and no
/// link leads out.
fn read_prompt_file(setup: &Setup, path: &Path) -> Result<PromptPart, Error> {
    let wrong = |text: String| {
        Error::new(
            ErrorKind::Configuration,
            format!("cannot use prompt file `{}`: {text}", path.display()),
        )
    };
    let opened = match setup.config.is_workspaces("prompt.file") {
        true => jaato_places::open_inside(setup.workspace.root(), path),
        false => jaato_places::open_plain(path),
    };
    let file = opened.map_err(|error| match &error.why {
        Why::System(error) => wrong(error.to_string()),
        Why::NotAFile => wrong("it is no regular file".to_owned()),
        _ => wrong(error.to_string()),
    })?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let mut text = String::new();
    let read = file.take(PROMPT_FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > PROMPT_FILE_BYTES_MAX {
        return Err(wrong(format!(
            "it has {bytes} bytes, at most {PROMPT_FILE_BYTES_MAX} are allowed"
        )));
    }
    Ok(PromptPart::new(path.display().to_string(), text))
}

fn agents_files(setup: &Setup, workspace: &TrustedWorkspace) -> Result<Vec<PromptPart>, Error> {
    let mut parts = Vec::new();
    for name in setup.workspace.agents_files(workspace) {
        let bytes_max = PROMPT_FILE_BYTES_MAX as usize;
        let read = workspace.read_beginning(&name, bytes_max).map_err(|error| {
            Error::new(ErrorKind::Configuration, format!("cannot use `{name}`: {error}"))
        })?;
        if let Some((bytes, size)) = read {
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            if size > bytes.len() as u64 {
                // Half a character at the end.
                let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER).len();
                text.truncate(whole);
                let note = format!("[truncated: the first {whole} of {size} bytes of `{name}`]");
                text = format!("{text}\n\n{note}");
            }
            parts.push(PromptPart::new(name, text));
        }
    }
    Ok(parts)
}

/// Names the instruction files of which the model gets only the beginning.
pub fn truncated_files(setup: &Setup) -> Vec<String> {
    let Some(workspace) = setup.trusted_workspace() else { return Vec::new() };
    let size = |name: &String| workspace.root().join(name).metadata().map_or(0, |it| it.len());
    let names = setup.workspace.agents_files(workspace).into_iter();
    let large = names.map(|name| (size(&name), name)).filter(|it| it.0 > PROMPT_FILE_BYTES_MAX);
    large
        .map(|(size, name)| {
            format!("`{name}` has {size} bytes; the model gets the first {PROMPT_FILE_BYTES_MAX}")
        })
        .collect()
}

/// Tells the model which tools change files, if a request has such.
fn editing(registry: &Registry, tools: &BTreeSet<ToolName>) -> Option<PromptPart> {
    let writes = |tool: &ToolSpec| tool.traits.iter().any(|it| it == FILE_WRITER);
    let in_request = registry.tools().filter(|tool| tools.contains(&tool.spec.name));
    let writing = in_request.filter(|tool| writes(tool.spec));
    let names: Vec<String> = writing.map(|tool| format!("`{}`", tool.spec.name)).collect();
    let text = format!(
        "Change files with {}, not with shell redirection, `sed` or scripts: the user then sees \
         each diff and can undo it.",
        names.join(" and ")
    );
    (!names.is_empty()).then(|| PromptPart::new("editing", text))
}

/// Instructions of the plugins of which a tool stands in the request.
fn instructions(registry: &Registry, tools: &BTreeSet<ToolName>) -> Vec<PromptPart> {
    let is_active = |name: &jaato_types::PluginName| {
        registry.tools().any(|tool| tool.plugin == name && tools.contains(&tool.spec.name))
    };
    let mut parts: Vec<_> = registry
        .plugins()
        .iter()
        .filter(|plugin| {
            plugin.status == Status::Active && is_active(&plugin.candidate.manifest.name)
        })
        .filter_map(|plugin| {
            let name = &plugin.candidate.manifest.name;
            let text = crate::core_tools::instructions(registry, name)?;
            Some(PromptPart::new(name.as_str(), text.to_owned()))
        })
        .collect();
    parts.sort_by(|a, b| a.label.cmp(&b.label));
    parts
}
