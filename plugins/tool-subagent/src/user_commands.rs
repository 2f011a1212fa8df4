//! The command `profiles`.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;
use jaato_plugin_sdk::types::text::truncate_chars;

use crate::profile::{Isolation, Profile};
use crate::profiles::Profiles;

/// The command's name.
pub const NAME: &str = "profiles";
/// The longest description in the list, in characters.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// Returns the command's spec.
pub fn profiles_command() -> CommandSpec {
    CommandSpec {
        name: NAME.to_owned(),
        description: "Lists the profiles for subagents, and what is wrong with some".to_owned(),
        parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        share_with_model: true,
        ..CommandSpec::default()
    }
}

/// Writes the list for the user.
pub fn list_profiles(profiles: &Profiles) -> String {
    let mut lines: Vec<String> = profiles.all_profiles().map(format_profile_line).collect();
    if lines.is_empty() {
        lines.push("no profiles".to_owned());
    }
    let skipped = profiles.skipped.iter();
    lines.extend(skipped.map(|it| format!("! {} is skipped: {}", it.source, it.reason)));
    lines.extend(profiles.warnings.iter().map(|line| format!("! {line}")));
    lines.extend(profiles.untrusted_folder_notice().map(|line| format!("! {line}")));
    lines.join("\n")
}

fn format_profile_line(profile: &Profile) -> String {
    let tools = &profile.tools;
    let list = |label: &str, words: &Option<Vec<String>>| {
        let words = words.as_ref()?;
        Some(format!(
            "{label} {}",
            if words.is_empty() { "none".to_owned() } else { words.join(" ") }
        ))
    };
    let facts = [
        profile.model.as_ref().map(|model| format!("model {model}")),
        list("plugins", &tools.plugins),
        list("tools", &tools.names),
        (profile.isolation == Isolation::Worktree).then(|| "in a worktree".to_owned()),
        Some(profile.source.clone()),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let description = truncate_chars(&profile.description, DESCRIPTION_CHARS_MAX);
    format!("{}  {description} ({})", profile.name, facts.join("; "))
}
