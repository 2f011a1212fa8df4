//! The prompts and skills of a session: read once, by name, the project's before the user's.

use jaato_plugin_sdk::types::text::{one_line, truncate_chars};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use front_matter::{ScalarTypes, read_text};
use jaato_plugin_sdk::serde_json::Value;

use crate::fill::PlaceholderSyntax;
use crate::rules;
use crate::scan::{
    PROMPT_BYTES_MAX, PromptFile, PromptFileKind, PromptFolder, PromptScan, PromptSource,
    SKILL_BYTES_MAX,
};

/// The maximum number of prompts and skills in a session. Each may be a command, and a plugin may
/// have 200 of them.
pub const PROMPTS_MAX: usize = 199;
/// The maximum size of all texts together, in bytes. They are kept as they were when the session
/// started.
const TEXTS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The maximum number of lines about problems. A folder of untrusted files may have thousands.
const LINES_MAX: usize = 100;
/// The maximum length of a name that can be typed, in characters. The format allows fewer, which is
/// reported.
const NAME_CHARS_MAX: usize = 128;
/// The maximum length of a description in the model's instructions, in characters.
const TOLD_CHARS_MAX: usize = 300;

/// The workspace's folders below its root. The first prompt with a name wins.
const OF_WORKSPACE: [(&str, PromptFileKind); 5] = [
    (".jaato/prompts", PromptFileKind::Prompts),
    (".jaato/skills", PromptFileKind::Skills),
    (".agents/skills", PromptFileKind::Skills),
    (".claude/skills", PromptFileKind::Skills),
    (".claude/commands", PromptFileKind::ClaudeCommands),
];

/// The user's folders below their home.
const OF_PERSON: [(&str, PromptFileKind); 4] = [
    (".jaato/prompts", PromptFileKind::Prompts),
    (".jaato/skills", PromptFileKind::Skills),
    (".agents/skills", PromptFileKind::Skills),
    (".claude/skills", PromptFileKind::Skills),
];

/// A prompt or a skill.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub name: String,
    /// The description in one line.
    pub description: String,
    /// The text after the front matter.
    pub body: String,
    /// The placeholders in the text.
    pub syntax: PlaceholderSyntax,
    pub source: PromptSource,
    /// The folder of a skill.
    pub skill_path: Option<PathBuf>,
    /// Whether the model may use the prompt on its own.
    pub is_for_model: bool,
    /// Whether the prompt is a command.
    pub is_for_people: bool,
    /// The author's description of the arguments.
    pub hint: String,
}

/// All prompts and skills, as they were when the session started.
#[derive(Debug, Default)]
pub struct PromptLibrary {
    by_name: BTreeMap<String, Prompt>,
    /// Skipped or unusual files, one line each.
    pub lines: Vec<String>,
    bytes: usize,
}

impl PromptLibrary {
    /// Reads the folders of a trusted workspace and of the user's home.
    pub fn read_folders(workspace: Option<&Path>, home: Option<&Path>) -> Self {
        let mut places = prompt_folders(workspace, PromptSource::Project, &OF_WORKSPACE);
        places.extend(prompt_folders(home, PromptSource::User, &OF_PERSON));
        let (mut library, mut walk) = (Self::default(), PromptScan::default());
        for place in &places {
            walk.scan_folder(place);
            for found in std::mem::take(&mut walk.found) {
                library.add_prompt_file(&found, place.source);
            }
            for line in std::mem::take(&mut walk.wrong) {
                library.add_notice(line);
            }
        }
        library
    }

    /// Lists the folders to read, in the host's notation.
    pub fn folder_names() -> Vec<String> {
        let of = |root: &str, places: &[(&str, PromptFileKind)]| -> Vec<String> {
            places.iter().map(|(folder, _)| format!("{root}/{folder}")).collect()
        };
        [of("{workspace}", &OF_WORKSPACE), of("{home}", &OF_PERSON)].concat()
    }

    /// Finds a prompt.
    pub fn get_prompt(&self, name: &str) -> Option<&Prompt> {
        self.by_name.get(name)
    }

    /// Lists all prompts by name.
    pub fn all_prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.by_name.values()
    }

    /// Lists the prompts that the model may use.
    pub fn model_prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.all_prompts().filter(|prompt| prompt.is_for_model)
    }

    /// Writes the model's instructions, in at most `bytes_max` bytes: names with descriptions, then
    /// as many names alone as fit. Returns `None` without prompts.
    pub fn format_catalog(&self, bytes_max: usize) -> Option<String> {
        let mut text = "Prompts and skills. If one fits the task, call `use_prompt` with its name before you begin.".to_owned();
        let (mut more, mut count) = (Vec::new(), 0_usize);
        for prompt in self.model_prompts() {
            count += 1;
            let line = format!(
                "\n- {}: {}",
                prompt.name,
                truncate_chars(&prompt.description, TOLD_CHARS_MAX)
            );
            if more.is_empty() && text.len() + line.len() <= bytes_max {
                text.push_str(&line);
            } else {
                more.push(prompt.name.as_str());
            }
        }
        if !more.is_empty() {
            let mut names = String::new();
            for name in &more {
                if text.len() + names.len() + name.len() + 40 > bytes_max {
                    break;
                }
                names.push_str(if names.is_empty() { "" } else { ", " });
                names.push_str(name);
            }
            text.push_str(&format!("\n- and {} more: {names}", more.len()));
        }
        (count > 0).then_some(text)
    }

    fn add_prompt_file(&mut self, found: &PromptFile, source: PromptSource) {
        let shown = found.shown.display();
        let bytes_max = if found.is_skill { SKILL_BYTES_MAX } else { PROMPT_BYTES_MAX };
        let read = read_text(&found.path, bytes_max);
        let made = read.and_then(|text| build_prompt(found, &text, source));
        let (prompt, odd) = match made {
            Ok(made) => made,
            Err(why) => return self.add_notice(format!("{shown} is left out: {why}")),
        };
        for line in odd {
            self.add_notice(format!("{shown}: {line}"));
        }
        if let Some(first) = self.by_name.get(&prompt.name) {
            // It is normal that the project's prompt replaces the user's.
            if first.source == source {
                let text = format!("{shown} is left out: there is another `{}`", prompt.name);
                self.add_notice(text);
            }
            return;
        }
        let bytes = self.bytes + prompt.body.len();
        if self.by_name.len() >= PROMPTS_MAX || bytes > TEXTS_BYTES_MAX {
            return self.add_notice(format!("{shown} is left out: there are too many"));
        }
        self.bytes = bytes;
        self.by_name.insert(prompt.name.clone(), prompt);
    }

    fn add_notice(&mut self, line: String) {
        match self.lines.len() {
            count if count < LINES_MAX => self.lines.push(one_line(&line)),
            LINES_MAX => self.lines.push("and more".to_owned()),
            _ => {}
        }
    }
}

fn prompt_folders(
    root: Option<&Path>,
    source: PromptSource,
    names: &[(&str, PromptFileKind)],
) -> Vec<PromptFolder> {
    let Some(root) = root else { return Vec::new() };
    let place = |(name, wanted): &(&str, PromptFileKind)| PromptFolder {
        folder: root.join(name),
        source,
        wanted: *wanted,
    };
    names.iter().map(place).collect()
}

/// Creates a prompt from a file, and lists what is unusual about it.
fn build_prompt(
    found: &PromptFile,
    text: &str,
    source: PromptSource,
) -> Result<(Prompt, Vec<String>), String> {
    let (front, body) = front_matter::split_front_matter(text)?;
    let (fields, how) = front.map_or_else(
        || Ok(Default::default()),
        |it| front_matter::parse_front_matter(it, ScalarTypes::Text),
    )?;
    let given = |key: &str| match fields.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Some(one_line(text)),
        _ => None,
    };
    let folder = found.path.parent().and_then(Path::file_name);
    let stem = if found.is_skill { folder } else { found.shown.file_stem() };
    let stem = stem.unwrap_or_default().to_string_lossy();
    let mut odd: Vec<String> = how.into_iter().collect();
    if text.contains(char::REPLACEMENT_CHARACTER) {
        odd.push("bytes that are not UTF-8 are read as �".to_owned());
    }
    let description = match (given("description"), found.is_skill) {
        (Some(text), _) => text,
        (None, true) => return Err("it has no description".to_owned()),
        // A command of another client needs no description. Its first line describes it.
        (None, false) => {
            let first = body.lines().map(|line| line.trim_start_matches(['#', ' ', '\t']));
            let first = first.map(one_line).find(|line| !line.is_empty());
            first.ok_or("it is empty")?
        }
    };
    let name = match given("name").filter(|name| is_valid_prompt_name(name)) {
        Some(name) if found.is_skill => name,
        _ if is_valid_prompt_name(&stem) => stem.to_string(),
        _ => return Err(format!("`{}` is not a name that can be typed", one_line(&stem))),
    };
    if found.is_skill {
        odd.extend(rules::broken_rules(&fields, &stem));
    } else if given("name").is_some_and(|given| given != name) {
        odd.push(format!("it is named `{name}` like its file, and its `name` is ignored"));
    }
    let says = |key: &str, word: &str| given(key).is_some_and(|it| it.eq_ignore_ascii_case(word));
    let prompt = Prompt {
        name,
        description: truncate_chars(&description, rules::DESCRIPTION_CHARS_MAX),
        body: body.to_owned(),
        syntax: if found.is_claude { PlaceholderSyntax::Claude } else { PlaceholderSyntax::Own },
        source,
        skill_path: found.path.parent().filter(|_| found.is_skill).map(Path::to_owned),
        is_for_model: !says("disable-model-invocation", "true"),
        is_for_people: !says("user-invocable", "false"),
        hint: given("argument-hint").unwrap_or_default(),
    };
    Ok((prompt, odd))
}

fn is_valid_prompt_name(text: &str) -> bool {
    text.chars().count() <= NAME_CHARS_MAX
        && text.starts_with(char::is_alphanumeric)
        && text.chars().all(|it| it.is_alphanumeric() || "_-".contains(it))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write_prompt(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn skill_text(name: &str) -> String {
        format!("---\nname: {name}\ndescription: Does {name}.\n---\nHow to {name}.\n")
    }

    /// A workspace and a home.
    struct PromptTestPlaces(#[expect(dead_code)] tempfile::TempDir, PathBuf, PathBuf);

    impl PromptTestPlaces {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            Self(folder, root.join("w"), root.join("h"))
        }

        fn read_library(&self) -> PromptLibrary {
            PromptLibrary::read_folders(Some(&self.1), Some(&self.2))
        }
    }

    fn prompt_names(library: &PromptLibrary) -> Vec<&str> {
        library.all_prompts().map(|prompt| prompt.name.as_str()).collect()
    }

    #[test]
    fn project_prompts_override_user_prompts_only_in_a_trusted_workspace() {
        let places = PromptTestPlaces::new();
        write_prompt(&places.1, ".agents/skills/moon/SKILL.md", &skill_text("moon"));
        write_prompt(&places.1, ".claude/commands/git/commit.md", "# Commit\nSay why.\n");
        write_prompt(&places.2, ".claude/skills/moon/SKILL.md", &skill_text("moon"));
        write_prompt(
            &places.2,
            ".jaato/prompts/sun.md",
            "---\ndescription: Shines.\n---\nShine.\n",
        );
        let library = places.read_library();
        assert_eq!(prompt_names(&library), ["commit", "moon", "sun"]);
        assert_eq!(library.get_prompt("moon").unwrap().source, PromptSource::Project);
        assert_eq!(library.get_prompt("commit").unwrap().description, "Commit");
        assert_eq!(library.lines, Vec::<String>::new());
        let untrusted = PromptLibrary::read_folders(None, Some(&places.2));
        assert_eq!(prompt_names(&untrusted), ["moon", "sun"]);
        assert_eq!(untrusted.get_prompt("moon").unwrap().source, PromptSource::User);
    }

    #[test]
    fn misnamed_skill_gets_a_notice_and_unusable_skill_is_left_out() {
        let places = PromptTestPlaces::new();
        let put = |name: &str, text: &str| {
            write_prompt(&places.1, &format!(".agents/skills/{name}/SKILL.md"), text);
        };
        put("other", &skill_text("moon"));
        put("none", "---\nname: none\n---\nx\n");
        put("open", "---\nname: open\n");
        put("laughs", "---\nname: laughs\nb: &a\n  - x\ndescription:\n  - *a\n---\nx\n");
        put("plain", "no front matter");
        put("colon", "---\nname: colon\ndescription: Use when: asked\n---\nx\n");
        put("big", &format!("{}{}", skill_text("big"), "x".repeat(300_000)));
        let library = places.read_library();
        assert_eq!(prompt_names(&library), ["colon", "moon"]);
        assert_eq!(library.get_prompt("colon").unwrap().description, "Use when: asked");
        let told = library.lines.join("\n");
        for text in [
            "big/SKILL.md is left out: it has more than 262144 bytes",
            "laughs/SKILL.md is left out: it has an alias",
            "none/SKILL.md is left out: it has no description",
            "open/SKILL.md is left out: its front matter has no end",
            "plain/SKILL.md is left out: it has no description",
            "other/SKILL.md: its name `moon` is not the name of its folder, `other`",
        ] {
            assert!(told.contains(text), "{text}\n{told}");
        }
        assert_eq!(library.lines.len(), 6);
    }

    #[test]
    fn author_decides_whether_model_or_user_may_use_a_skill() {
        let places = PromptTestPlaces::new();
        let with = |key: &str| skill_text("x").replace("name: x\n", key);
        write_prompt(
            &places.2,
            ".agents/skills/a/SKILL.md",
            &with("disable-model-invocation: true\n"),
        );
        write_prompt(&places.2, ".agents/skills/b/SKILL.md", &with("user-invocable: false\n"));
        let library = places.read_library();
        assert!(!library.get_prompt("a").unwrap().is_for_model);
        assert!(!library.get_prompt("b").unwrap().is_for_people);
        assert_eq!(library.model_prompts().count(), 1);
    }

    #[test]
    fn catalog_size_and_prompt_count_are_limited() {
        let places = PromptTestPlaces::new();
        assert_eq!(places.read_library().format_catalog(1000), None);
        for number in 0..PROMPTS_MAX + 2 {
            let text = format!("---\ndescription: {}\n---\nx\n", "d".repeat(400));
            write_prompt(&places.2, &format!(".jaato/prompts/p{number:03}.md"), &text);
        }
        let library = places.read_library();
        assert_eq!(library.all_prompts().count(), PROMPTS_MAX);
        assert_eq!(library.lines.len(), 2);
        let catalog = library.format_catalog(1000).unwrap();
        assert!(catalog.len() <= 1000, "{}", catalog.len());
        let line = format!("- p000: {}…\n", "d".repeat(TOLD_CHARS_MAX));
        assert!(catalog.contains(&line), "{catalog}");
        assert!(catalog.contains("- and 197 more: p002, p003"), "{catalog}");
    }
}
