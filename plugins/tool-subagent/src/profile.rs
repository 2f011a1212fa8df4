//! A profile of subagents, and how it is read from the keys of a file. Pure.
//!
//! The keys and messages are those of the original plugin, with further keys of jaato and of Claude
//! Code. Unknown keys are ignored, because profiles of other clients have their own.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::text::visible_line;

use crate::field_reader::FieldReader;
use crate::tool_choice::{ToolChoice, parse_tool_names};

/// The longest description that is kept, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1024;
/// The longest name, in characters: a child session's name has the same limit.
const NAME_CHARS_MAX: usize = 64;
/// The maximum number of requests in a turn if a profile in the original's format names none.
const STEPS_MAX: u32 = 10;
/// The types of gc.
const GC_TYPES: [&str; 4] = ["truncate", "summarize", "hybrid", "budget"];
/// Keys of other programs that jaato ignores, although they change what a subagent does there.
const IGNORED_KEYS: [&str; 8] = [
    "background",
    "effort",
    "hooks",
    "mcpServers",
    "memory",
    "permissionMode",
    "plugin_configs",
    "skills",
];

/// A kind of subagent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The name: 1 to 64 of a-z, A-Z, 0-9, `-`, `_`.
    pub name: String,
    /// The description in one line, which may be empty.
    pub description: String,
    /// The model, by any name that a user may give. `None` means the opener's model.
    pub model: Option<String>,
    /// The tools.
    pub tools: ToolChoice,
    /// Instructions added to the system prompt.
    pub instructions: Option<String>,
    /// The settings of the gc, as written. `type` is one of `truncate`, `summarize`, `hybrid` and
    /// `budget`, or absent.
    pub gc: Option<Map<String, Value>>,
    /// The limits.
    pub limits: ProfileLimits,
    /// Whether such a subagent may start without a permission prompt. Only the user's own profiles
    /// can say so.
    pub is_auto_approved: bool,
    /// The three lines of an icon.
    pub icon: Option<Vec<String>>,
    /// The name of an icon.
    pub icon_name: Option<String>,
    /// Where a subagent works.
    pub isolation: Isolation,
    /// The source, for the user: `config.toml` or a path.
    pub source: String,
}

/// The limits of a subagent, in addition to those of its opener.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProfileLimits {
    /// The maximum number of requests in a turn (`max_turns`).
    pub steps_max: Option<u32>,
    /// The maximum cost in US dollars (`max_cost`).
    pub cost_max: Option<f64>,
    /// The maximum number of tokens in all requests and answers (`max_tokens`).
    pub tokens_max: Option<u64>,
    /// The maximum running time in seconds (`max_seconds`).
    pub seconds_max: Option<u64>,
}

/// Where a subagent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Isolation {
    /// In the opener's folder.
    #[default]
    None,
    /// In a git worktree of its own.
    Worktree,
}

/// The format of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileFormat {
    /// The original's keys in JSON, YAML or the configuration.
    Keys,
    /// Markdown with front matter, as Claude Code's subagents.
    Markdown,
}

/// The result of checking a profile.
#[derive(Debug, Default)]
pub struct CheckedProfile {
    /// The profile, without a source, if there are no errors.
    pub profile: Option<Profile>,
    /// Reasons why the profile cannot be used.
    pub errors: Vec<String>,
    /// Parts that are not used.
    pub warnings: Vec<String>,
}

impl Profile {
    /// Checks the keys of a profile. `name` is its name if it has no key `name`. Without one, the
    /// keys `name` and `description` are required.
    pub fn from_checked_fields(
        fields: &Map<String, Value>,
        format: ProfileFormat,
        name: Option<&str>,
    ) -> CheckedProfile {
        let mut reader = FieldReader::new(fields);
        let is_strict = name.is_none();
        let name = reader.read_text("name").or_else(|| name.map(str::to_owned));
        match &name {
            None if !reader.has_field("name") => reader.add_error("'name' is required"),
            None => {}
            Some(name) if !is_valid_profile_name(name) => reader.add_error(format!(
                "'name' must have 1 to {NAME_CHARS_MAX} letters (a-z, A-Z), digits, '-' or '_', got '{}'",
                visible_line(name, NAME_CHARS_MAX)
            )),
            Some(_) => {}
        }
        if is_strict && !reader.has_field("description") {
            reader.add_error("'description' is required");
        }
        let description = reader.read_text("description").unwrap_or_default();
        let profile = Self {
            name: name.unwrap_or_default(),
            description: visible_line(&description, DESCRIPTION_CHARS_MAX),
            model: read_model(&mut reader),
            tools: read_tools(&mut reader),
            instructions: reader
                .read_text("system_instructions")
                .filter(|text| !text.trim().is_empty()),
            gc: read_gc(&mut reader),
            limits: read_limits(&mut reader, format),
            is_auto_approved: reader.read_bool("auto_approved").unwrap_or_default(),
            icon: read_icon(&mut reader),
            icon_name: reader.read_text("icon_name"),
            isolation: read_isolation(&mut reader),
            source: String::new(),
        };
        for key in IGNORED_KEYS {
            if reader.has_field(key) {
                reader.add_warning(format!(
                    "'{key}' is ignored: jaato does not set it for a subagent"
                ));
            }
        }
        let (errors, warnings) = reader.into_errors_and_warnings();
        CheckedProfile { profile: errors.is_empty().then_some(profile), errors, warnings }
    }

    /// Describes the profile for the model and for programs.
    pub fn to_json(&self) -> Value {
        let mut json = json!({ "name": self.name, "description": self.description });
        let mut set = |key: &str, value: Value| {
            if !value.is_null() {
                json[key] = value;
            }
        };
        set("plugins", json!(self.tools.plugins));
        set("tools", json!(self.tools.names));
        if !self.tools.denied.is_empty() {
            set("tools_denied", json!(self.tools.denied));
        }
        set("model", json!(self.model));
        set("max_turns", json!(self.limits.steps_max));
        set("max_cost", json!(self.limits.cost_max));
        set("max_tokens", json!(self.limits.tokens_max));
        set("max_seconds", json!(self.limits.seconds_max));
        set("auto_approved", json!(self.is_auto_approved));
        set("gc", self.gc.clone().map_or(Value::Null, Value::Object));
        set("icon_name", json!(self.icon_name));
        if self.isolation == Isolation::Worktree {
            set("isolation", json!("worktree"));
        }
        set("source", json!(self.source));
        json
    }
}

fn is_valid_profile_name(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Reads `model` and `provider` as one name.
fn read_model(reader: &mut FieldReader<'_>) -> Option<String> {
    let given = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let model = reader.read_text("model").and_then(given).filter(|model| model != "inherit");
    let provider = reader.read_text("provider").and_then(given).map(|name| match name.as_str() {
        "google_genai" => "google".to_owned(),
        _ => name.replace('_', "-"),
    });
    match (model, provider) {
        (Some(model), Some(provider)) if !model.starts_with(&format!("{provider}/")) => {
            Some(format!("{provider}/{model}"))
        }
        (None, Some(_)) => {
            reader.add_warning("'provider' is ignored without 'model'");
            None
        }
        (model, _) => model,
    }
}

fn read_tools(reader: &mut FieldReader<'_>) -> ToolChoice {
    let plugins = reader.read_text_list("plugins");
    let mut names_of = |key: &str| {
        let (names, warnings) = parse_tool_names(&reader.read_list_or_text(key)?);
        warnings.into_iter().for_each(|text| reader.add_warning(text));
        Some(names)
    };
    let names = names_of("tools");
    ToolChoice { names, plugins, denied: names_of("disallowedTools").unwrap_or_default() }
}

fn read_gc(reader: &mut FieldReader<'_>) -> Option<Map<String, Value>> {
    let gc = reader.read_object("gc")?;
    match gc.get("type") {
        None => {}
        Some(Value::String(kind)) if GC_TYPES.contains(&kind.as_str()) => {}
        Some(kind) => {
            let shown = kind.as_str().map_or_else(|| kind.to_string(), str::to_owned);
            reader.add_error(format!(
                "gc.type '{}' is invalid. Must be one of: {}",
                visible_line(&shown, NAME_CHARS_MAX),
                GC_TYPES.join(", ")
            ));
        }
    }
    Some(gc)
}

fn read_limits(reader: &mut FieldReader<'_>, format: ProfileFormat) -> ProfileLimits {
    let steps = reader
        .read_positive_integer("max_turns")
        .or_else(|| reader.read_positive_integer("maxTurns"));
    let steps_max = steps.map(|steps| u32::try_from(steps).unwrap_or(u32::MAX));
    ProfileLimits {
        // Claude Code's subagents have no limit by default.
        steps_max: steps_max.or((format == ProfileFormat::Keys).then_some(STEPS_MAX)),
        cost_max: reader.read_positive_number("max_cost"),
        tokens_max: reader.read_positive_integer("max_tokens"),
        seconds_max: reader.read_positive_integer("max_seconds"),
    }
}

fn read_icon(reader: &mut FieldReader<'_>) -> Option<Vec<String>> {
    let icon = reader.read_text_list("icon")?;
    if icon.len() != 3 {
        reader.add_error(format!("'icon' must contain exactly 3 strings, got {}", icon.len()));
    }
    Some(icon)
}

fn read_isolation(reader: &mut FieldReader<'_>) -> Isolation {
    match reader.read_text("isolation").as_deref() {
        None | Some("" | "none") => Isolation::None,
        Some("worktree") => Isolation::Worktree,
        Some(other) => {
            let other = visible_line(other, NAME_CHARS_MAX);
            reader.add_error(format!("'isolation' must be 'worktree' or 'none', got '{other}'"));
            Isolation::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_profile(fields: Value, format: ProfileFormat) -> CheckedProfile {
        Profile::from_checked_fields(fields.as_object().unwrap(), format, Some("stem"))
    }

    #[test]
    fn all_keys_of_a_profile_are_read() {
        let fields = json!({
            "name": "full", "description": "Does\nall.", "plugins": ["cli", "todo(preload)"],
            "tools": ["Read", "moon"], "disallowedTools": "Write", "model": "gemini-3", "provider": "google_genai",
            "system_instructions": "Be brief.", "gc": { "type": "budget", "target_percent": 50 },
            "max_turns": 5, "max_cost": 0.5, "max_tokens": 1000, "max_seconds": 60, "auto_approved": true,
            "icon": ["a", "b", "c"], "icon_name": "x", "isolation": "worktree", "other": [1],
        });
        let checked = check_profile(fields, ProfileFormat::Keys);
        assert_eq!((checked.errors.len(), checked.warnings.len()), (0, 0), "{checked:?}");
        let profile = checked.profile.unwrap();
        assert_eq!(
            profile.to_json(),
            json!({
                "name": "full", "description": "Does all.", "plugins": ["cli", "todo(preload)"],
                "tools": ["readFile", "viewImage", "moon"], "tools_denied": ["writeNewFile", "updateFile"],
                "model": "google/gemini-3", "max_turns": 5, "max_cost": 0.5, "max_tokens": 1000,
                "max_seconds": 60, "auto_approved": true, "gc": { "type": "budget", "target_percent": 50 },
                "icon_name": "x", "isolation": "worktree", "source": "",
            })
        );
        assert_eq!(profile.instructions.as_deref(), Some("Be brief."));
        assert_eq!(profile.icon.unwrap().len(), 3);
    }

    #[test]
    fn absent_keys_have_defaults() {
        let profile = check_profile(json!({ "name": null, "tools": null }), ProfileFormat::Keys)
            .profile
            .unwrap();
        let expected = json!({
            "name": "stem", "description": "", "max_turns": 10, "auto_approved": false, "source": "",
        });
        assert_eq!(profile.to_json(), expected);
        let markdown =
            check_profile(json!({ "model": "inherit" }), ProfileFormat::Markdown).profile.unwrap();
        assert_eq!((markdown.limits, markdown.model), (ProfileLimits::default(), None));
        let bare = Profile::from_checked_fields(&Map::new(), ProfileFormat::Keys, None);
        assert_eq!(bare.errors, ["'name' is required", "'description' is required"]);
    }

    #[test]
    fn values_of_wrong_types_are_errors() {
        let errors = |fields: Value| {
            let checked = check_profile(fields, ProfileFormat::Keys);
            assert!(checked.profile.is_none());
            checked.errors
        };
        for (fields, expected) in [
            (json!({ "name": 1 }), "'name' must be a string"),
            (
                json!({ "name": "a b" }),
                "'name' must have 1 to 64 letters (a-z, A-Z), digits, '-' or '_', got 'a b'",
            ),
            (json!({ "plugins": "cli" }), "'plugins' must be an array"),
            (json!({ "plugins": [1] }), "'plugins' must contain only strings"),
            (json!({ "tools": {} }), "'tools' must be an array of strings or a list with commas"),
            (json!({ "max_turns": 0 }), "'max_turns' must be a positive integer"),
            (json!({ "max_turns": "5" }), "'max_turns' must be a positive integer"),
            (json!({ "max_turns": true }), "'max_turns' must be a positive integer"),
            (json!({ "max_turns": 1.5 }), "'max_turns' must be a positive integer"),
            (json!({ "max_cost": -1 }), "'max_cost' must be a positive number"),
            (json!({ "max_cost": "1" }), "'max_cost' must be a positive number"),
            (json!({ "auto_approved": "yes" }), "'auto_approved' must be a boolean"),
            (json!({ "icon": ["x"] }), "'icon' must contain exactly 3 strings, got 1"),
            (json!({ "gc": [] }), "'gc' must be an object"),
            (
                json!({ "gc": { "type": "zz" } }),
                "gc.type 'zz' is invalid. Must be one of: truncate, summarize, hybrid, budget",
            ),
            (json!({ "isolation": "vm" }), "'isolation' must be 'worktree' or 'none', got 'vm'"),
        ] {
            assert_eq!(errors(fields), [expected]);
        }
        assert_eq!(errors(json!({ "model": 1, "icon": 2, "gc": 3 })).len(), 3);
    }

    #[test]
    fn model_and_provider_become_one_name() {
        let model =
            |fields: Value| check_profile(fields, ProfileFormat::Keys).profile.unwrap().model;
        for (model_key, provider, expected) in [
            (json!("a"), json!("anthropic"), Some("anthropic/a")),
            (json!("anthropic/a"), json!("anthropic"), Some("anthropic/a")),
            (json!("a/b"), json!("openai"), Some("openai/a/b")),
            (json!("gpt"), json!("github_models"), Some("github-models/gpt")),
            (json!("a"), json!(null), Some("a")),
            (json!("inherit"), json!(null), None),
            (json!(" "), json!("x"), None),
        ] {
            assert_eq!(
                model(json!({ "model": model_key, "provider": provider })).as_deref(),
                expected
            );
        }
    }

    #[test]
    fn keys_that_jaato_ignores_are_warnings() {
        let checked = check_profile(
            json!({ "hooks": {}, "plugin_configs": {}, "color": "red" }),
            ProfileFormat::Markdown,
        );
        let expected = [
            "'hooks' is ignored: jaato does not set it for a subagent",
            "'plugin_configs' is ignored: jaato does not set it for a subagent",
        ];
        assert_eq!(checked.warnings, expected);
    }
}
