//! Collects the parts of the system prompt: the user's file, the workspace's `AGENTS.md` or
//! `CLAUDE.md`, plugins' instructions, and `--system`.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use jaato_config::trust::TrustedWorkspace;
use jaato_places::PathProblem;
use jaato_registry::{PluginStatus, Registry};
use jaato_session::{PromptPart, PromptParts};
use jaato_types::{Error, ErrorKind, ToolName, ToolSpec};

use encoding_rs::UTF_8;
use jaato_catalog::Setup;

/// Largest prompt file, in bytes. More would leave a small model no space for the task.
pub const PROMPT_FILE_BYTES_MAX: u64 = 64 * 1024;

/// The trait of tools that change files.
const FILE_WRITER: &str = "file_writer";

/// Collects the parts.
///
/// # Errors
/// If a file that the user named cannot be read or is too large.
pub fn collect_prompt_parts(
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
    let plugins = editing_instructions(registry, tools)
        .into_iter()
        .chain(plugin_instructions(registry, tools));
    Ok(PromptParts { user_file, agents_files, plugins: plugins.collect(), system })
}

/// Reads the configured prompt file. A file that a workspace names must be inside the workspace,
/// also after links are resolved.
fn read_prompt_file(setup: &Setup, path: &Path) -> Result<PromptPart, Error> {
    let wrong = |text: String| {
        Error::new(
            ErrorKind::Configuration,
            format!("cannot use prompt file `{}`: {text}", path.display()),
        )
    };
    let opened = match setup.config.is_set_by_workspace("prompt.file") {
        true => jaato_places::open_file_inside(setup.workspace.root(), path),
        false => jaato_places::open_plain_file(path),
    };
    let file = opened.map_err(|error| match &error.why {
        PathProblem::System(error) => wrong(error.to_string()),
        PathProblem::NotAFile => wrong("it is not a regular file".to_owned()),
        _ => wrong(error.to_string()),
    })?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let mut read = Vec::new();
    let all = file.take(PROMPT_FILE_BYTES_MAX + 1).read_to_end(&mut read);
    all.map_err(|error| wrong(error.to_string()))?;
    if read.len() as u64 > PROMPT_FILE_BYTES_MAX {
        return Err(wrong(format!(
            "it has {bytes} bytes, but the limit is {PROMPT_FILE_BYTES_MAX}"
        )));
    }
    let DecodedInstructions { text, is_damaged, .. } = decode_instructions(&read, false);
    if is_damaged {
        return Err(wrong("it is neither UTF-8 nor UTF-16 with a byte order mark".to_owned()));
    }
    Ok(PromptPart::new(path.display().to_string(), text))
}

fn agents_files(setup: &Setup, workspace: &TrustedWorkspace) -> Result<Vec<PromptPart>, Error> {
    let mut parts = Vec::new();
    for name in setup.workspace.agents_files(workspace) {
        let bytes_max = PROMPT_FILE_BYTES_MAX as usize;
        let read = workspace.read_file_start(&name, bytes_max).map_err(|error| {
            Error::new(ErrorKind::Configuration, format!("cannot use `{name}`: {error}"))
        })?;
        if let Some((bytes, size)) = read {
            let DecodedInstructions { mut text, is_utf16, .. } =
                decode_instructions(&bytes, size > bytes.len() as u64);
            if size > bytes.len() as u64 {
                let whole = if is_utf16 { bytes.len() } else { text.len() };
                let note = format!("[truncated: the first {whole} of {size} bytes of `{name}`]");
                text = format!("{text}\n\n{note}");
            }
            // A subfolder's file may be a link to the file above it.
            if !parts.iter().any(|part: &PromptPart| part.text == text) {
                parts.push(PromptPart::new(name, text));
            }
        }
    }
    Ok(parts)
}

/// An instruction file as text.
struct DecodedInstructions {
    text: String,
    /// Whether invalid bytes were replaced.
    is_damaged: bool,
    is_utf16: bool,
}

/// Decodes UTF-8 or, with a byte order mark, UTF-16. Drops a partial character at the end of a
/// truncated file.
fn decode_instructions(bytes: &[u8], is_cut: bool) -> DecodedInstructions {
    let (text, encoding, _) = UTF_8.decode(bytes);
    let whole = match is_cut {
        true => text.trim_end_matches(char::REPLACEMENT_CHARACTER),
        false => &text,
    };
    let is_damaged = whole.contains([char::REPLACEMENT_CHARACTER, '\0']);
    DecodedInstructions { text: whole.to_owned(), is_damaged, is_utf16: encoding != UTF_8 }
}

/// Returns notes about instruction files that are truncated or contain invalid bytes.
pub fn notes_on_files(setup: &Setup) -> Vec<String> {
    let Some(workspace) = setup.trusted_workspace() else { return Vec::new() };
    let mut notes = Vec::new();
    for name in setup.workspace.agents_files(workspace) {
        let (bytes, size) = match workspace.read_file_start(&name, PROMPT_FILE_BYTES_MAX as usize) {
            Ok(Some(read)) => read,
            Ok(None) => {
                notes.push(format!(
                    "`{name}` is not read: it is not a regular file inside the workspace"
                ));
                continue;
            }
            // A session that needs an unreadable file reports it.
            Err(_) => continue,
        };
        let is_cut = size > bytes.len() as u64;
        if is_cut {
            notes.push(format!(
                "`{name}` has {size} bytes; the model gets the first {PROMPT_FILE_BYTES_MAX}"
            ));
        }
        if decode_instructions(&bytes, is_cut).is_damaged {
            notes.push(format!(
                "`{name}` is not UTF-8 everywhere: the model gets a replacement character for each \
                 wrong byte"
            ));
        }
    }
    notes
}

/// Tells the model which tools change files, if the request has any.
fn editing_instructions(registry: &Registry, tools: &BTreeSet<ToolName>) -> Option<PromptPart> {
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

/// Returns the instructions of plugins that have a tool in the request.
fn plugin_instructions(registry: &Registry, tools: &BTreeSet<ToolName>) -> Vec<PromptPart> {
    let is_active = |name: &jaato_types::PluginName| {
        registry.tools().any(|tool| tool.plugin == name && tools.contains(&tool.spec.name))
    };
    let mut parts: Vec<_> = registry
        .plugins()
        .iter()
        .filter(|plugin| {
            plugin.status == PluginStatus::Active && is_active(&plugin.candidate.manifest.name)
        })
        .filter_map(|plugin| {
            let name = &plugin.candidate.manifest.name;
            let text = crate::core_tools::tool_instructions(registry, name)?;
            Some(PromptPart::new(name.as_str(), text.to_owned()))
        })
        .collect();
    parts.sort_by(|a, b| a.label.cmp(&b.label));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_decoded_from_utf8_and_utf16_and_damage_is_noticed() {
        let utf16 = |unit: fn(u16) -> [u8; 2], mark: [u8; 2]| {
            [&mark[..], &"Grüße 🦀".encode_utf16().flat_map(unit).collect::<Vec<_>>()].concat()
        };
        let texts = [
            "Grüße 🦀".as_bytes().to_vec(),
            "\u{feff}Grüße 🦀".as_bytes().to_vec(),
            utf16(u16::to_le_bytes, [0xff, 0xfe]),
            utf16(u16::to_be_bytes, [0xfe, 0xff]),
        ];
        for bytes in texts {
            let DecodedInstructions { text, is_damaged, .. } = decode_instructions(&bytes, false);
            assert_eq!((text.as_str(), is_damaged), ("Grüße 🦀", false));
            assert!(!decode_instructions(&bytes[..bytes.len() - 1], true).is_damaged);
        }
        assert!(decode_instructions(b"caf\xe9 au lait", false).is_damaged);
        assert!(decode_instructions(b"R\0u\0l\0e\0", false).is_damaged);
    }
}
