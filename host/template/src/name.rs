//! Names of plugins, and the names derived from them in Rust and in files.

use crate::TemplateKind;
use crate::error::TemplateError;

/// Longest name. It is part of file names and of a tool's name, for which providers have limits.
pub const NAME_BYTES_MAX: usize = 48;

/// Type and crate names that the sources or Rust already use.
const TAKEN: &[&str] = &[
    "Abstract",
    "Alloc",
    "As",
    "Async",
    "Await",
    "Become",
    "BeforeTool",
    "Box",
    "Break",
    "Completion",
    "Const",
    "Continue",
    "Core",
    "Crate",
    "Cx",
    "Delta",
    "Do",
    "Dyn",
    "Else",
    "Enum",
    "Err",
    "Error",
    "Extern",
    "False",
    "Final",
    "FinishReason",
    "Fn",
    "For",
    "Gc",
    "GcPlan",
    "GcRequest",
    "Gen",
    "GuardAnswer",
    "Hook",
    "Hooks",
    "If",
    "Impl",
    "In",
    "Let",
    "Loop",
    "Macro",
    "Match",
    "Message",
    "Mod",
    "ModelInfo",
    "Move",
    "Mut",
    "None",
    "Ok",
    "Option",
    "Output",
    "Override",
    "Part",
    "Priv",
    "Provider",
    "ProviderSpec",
    "Pub",
    "Ref",
    "Request",
    "Result",
    "Return",
    "Self",
    "Some",
    "Static",
    "Std",
    "String",
    "Struct",
    "Super",
    "Test",
    "Tool",
    "ToolInput",
    "Trait",
    "True",
    "Try",
    "Type",
    "Typeof",
    "Unsafe",
    "Unsized",
    "Usage",
    "Use",
    "Vec",
    "Virtual",
    "Where",
    "While",
    "Yield",
];

/// Checks that a plugin can have this name.
///
/// # Errors
/// The problem with the name.
pub fn check_name(name: &str) -> Result<(), TemplateError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_plain)
        && !name.ends_with('-')
        && !name.contains("--")
        && name.len() <= NAME_BYTES_MAX;
    if !good {
        return Err(TemplateError::Name(name.to_owned()));
    }
    // The sdk's own crates cannot be dependencies of a crate with the same name.
    let is_ours = name.starts_with("jaato-plugin-") || name == "jaato-types";
    if is_ours || TAKEN.contains(&type_name(name).as_str()) {
        return Err(TemplateError::NameTaken(name.to_owned()));
    }
    Ok(())
}

/// Returns the file name of a plugin's library on this system.
pub fn library_name(plugin: &str) -> String {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    format!("{DLL_PREFIX}{}{DLL_SUFFIX}", crate_name(plugin))
}

/// Returns the name of the crate in Rust.
pub(crate) fn crate_name(plugin: &str) -> String {
    plugin.replace('-', "_")
}

/// Returns the name without its kind, which users and models see.
pub(crate) fn short_name(name: &str) -> &str {
    let kinds = TemplateKind::ALL.iter();
    let short = kinds
        .filter(|kind| **kind != TemplateKind::C)
        .filter_map(|kind| name.strip_prefix(kind.kind_name())?.strip_prefix('-'))
        .find(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    short.unwrap_or(name)
}

/// Returns the Rust type: `tool-moon-phase` becomes `MoonPhase`, which determines the tool's name
/// `moon_phase`.
pub(crate) fn type_name(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    short_name(name).split('-').filter_map(capital).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_and_reserved_plugin_names_are_refused() {
        for good in ["moon-phase", "a", "tool-x2"] {
            check_name(good).unwrap();
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        check_name(&long[1..]).unwrap();
        for bad in ["", "Moon", "moon_phase", "-a", "a-", "a--b", "2a", "a/b", "..", "é", &long] {
            assert!(matches!(check_name(bad), Err(TemplateError::Name(_))), "{bad}");
        }
        for taken in [
            "fn",
            "tool",
            "tool-string",
            "gc-gc",
            "provider-self",
            "model-info",
            "yield",
            "ok",
            "jaato-plugin-sdk",
            "jaato-types",
        ] {
            assert!(matches!(check_name(taken), Err(TemplateError::NameTaken(_))), "{taken}");
        }
    }

    #[test]
    fn type_name_is_made_without_the_plugin_kind() {
        assert_eq!(type_name("tool-moon-phase"), "MoonPhase");
        assert_eq!(type_name("moon-phase"), "MoonPhase");
        assert_eq!(type_name("gc-2nd"), "Gc2nd");
        assert_eq!(type_name("tool"), "Tool");
        assert_eq!(short_name("provider-parrot"), "parrot");
    }
}
