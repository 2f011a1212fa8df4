//! Tests the tool and the commands through the plugin boundary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::service::SessionFacts;
use jaato_plugin_sdk::types::{ConditionDecision, ErrorKind};
use jaato_plugin_testkit::FakeHost;

/// A workspace and a home.
struct PromptsFixture {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl PromptsFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["w", "h"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        Self { _folder: folder, root }
    }

    fn with_file(self, name: &str, text: &str) -> Self {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    fn prompts_host(&self) -> FakeHost {
        self.host_with_workspace(Some(self.path("w")))
    }

    fn host_with_workspace(&self, trusted_workspace: Option<String>) -> FakeHost {
        let mut facts =
            SessionFacts { working_directory: self.path("w"), ..SessionFacts::default() };
        facts.trusted_workspace = trusted_workspace;
        host_with_home(&self.root.join("h")).with_session(facts)
    }
}

fn host_with_home(home: &Path) -> FakeHost {
    FakeHost::new(tool_prompts::__jaato::MODULE).with_config(json!({ "home": home }))
}

const SKILL: &str = "---\nname: moon\ndescription: Looks at the moon.\n---\nLook up.\n";
const PROMPT: &str = "---\ndescription: Reviews.\n---\nReview {{path}} as {{who:a friend}}.\n";

fn skill_and_prompt_fixture() -> PromptsFixture {
    PromptsFixture::new()
        .with_file("w/.agents/skills/moon/SKILL.md", SKILL)
        .with_file("w/.agents/skills/moon/references/far.md", "The far side.\n")
        .with_file("w/secret.md", "secret")
        .with_file("h/.jaato/prompts/review.md", PROMPT)
}

#[track_caller]
fn use_prompt(host: &FakeHost, arguments: Value) -> Value {
    Value::Object(host.call("use_prompt", arguments).unwrap().content)
}

#[test]
fn prompt_and_skill_results_match_the_original() {
    let places = skill_and_prompt_fixture();
    let host = places.prompts_host();
    assert_eq!(
        use_prompt(&host, json!({ "name": "review", "arguments": "src/a.rs who='a stranger'" })),
        json!({ "name": "review", "content": "Review src/a.rs as a stranger.\n", "source": "user",
                "instruction": "Follow the content." })
    );
    let skill = use_prompt(&host, json!({ "name": "/moon" }));
    assert_eq!((&skill["content"], &skill["source"]), (&json!("Look up.\n"), &json!("project")));
    assert_eq!(skill["skill_path"], places.path("w/.agents/skills/moon"));
    let file = use_prompt(&host, json!({ "name": "moon", "file": "references/far.md" }));
    assert_eq!(file["content"], "The far side.\n");
}

#[test]
fn unknown_prompt_or_file_is_an_error_that_lists_the_available_ones() {
    let places = skill_and_prompt_fixture();
    let host = places.prompts_host();
    let refused = |arguments: Value| host.call("use_prompt", arguments).unwrap_err();
    let error = refused(json!({ "name": "sun" }));
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert_eq!(error.message, "there is no prompt or skill `sun`");
    assert_eq!(error.hint.as_deref(), Some("there are: moon, review"));
    for file in ["../../../secret.md", "/etc/passwd", "none.md", "references"] {
        let error = refused(json!({ "name": "moon", "file": file }));
        assert_eq!(error.kind, ErrorKind::NotFound, "{file}");
    }
    std::os::unix::fs::symlink(
        places.path("w/secret.md"),
        places.path("w/.agents/skills/moon/link.md"),
    )
    .unwrap();
    let error = refused(json!({ "name": "moon", "file": "link.md" }));
    assert_eq!(error.message, "`link.md` of `moon`: the skill has no such file");
    let long = "x".repeat(20_000);
    let error = refused(json!({ "name": "review", "arguments": long }));
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[test]
fn commands_and_catalog_are_fixed_at_session_start() {
    let places = skill_and_prompt_fixture();
    let host = places.prompts_host();
    let instance = host.create(None).unwrap();
    let set = host.tools_set().unwrap();
    let names: Vec<&str> = set.commands.iter().map(|command| command.name.as_str()).collect();
    assert_eq!(names, ["moon", "review"]);
    assert!(set.commands.iter().all(|command| command.as_prompt));
    let usage = &set.commands[1].parameters["properties"]["arguments"]["description"];
    assert_eq!(usage, "path= who=a friend");
    let catalog = set.instructions.unwrap();
    assert!(catalog.contains("- moon: Looks at the moon.\n- review: Reviews."), "{catalog}");

    fs::remove_dir_all(places.root.join("w/.agents")).unwrap();
    fs::write(places.root.join("h/.jaato/prompts/review.md"), "changed").unwrap();
    let said = |name: &str, arguments: Value| {
        instance.command(name, arguments).unwrap().content["result"].as_str().unwrap().to_owned()
    };
    assert_eq!(said("review", json!({ "arguments": "a" })), "Review a as a friend.\n");
    assert_eq!(said("prompt", json!({ "name": "review" })), "Review {{path}} as a friend.\n");
    assert!(
        said("moon", json!({})).starts_with("Use the skill `moon`, whose other files are in `")
    );
    let list = said("prompts", json!({}));
    assert_eq!(list, "/moon  Looks at the moon. (project skill)\n/review  Reviews. (user prompt)");
}

#[test]
fn untrusted_workspace_offers_no_prompts() {
    let places = skill_and_prompt_fixture();
    let host = places.host_with_workspace(None);
    let error = host.call("use_prompt", json!({ "name": "moon" })).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("there are: review"));
}

#[test]
fn skill_hidden_from_the_model_is_available_only_to_the_user() {
    let hidden = SKILL.replace("name: moon", "name: moon\ndisable-model-invocation: true");
    let places = PromptsFixture::new().with_file("h/.claude/skills/moon/SKILL.md", &hidden);
    let host = places.prompts_host();
    let instance = host.create(None).unwrap();
    assert_eq!(host.tools_set().unwrap().instructions, None);
    let error = host.call("use_prompt", json!({ "name": "moon" })).unwrap_err();
    assert_eq!(error.message, "the author of `moon` does not let models use it");
    assert!(instance.command("moon", json!({})).is_ok());
    assert!(!instance.condition("use_prompt", ConditionDecision::Available).unwrap().holds);
}

#[test]
fn nothing_is_offered_without_prompts_and_skills() {
    let places = PromptsFixture::new();
    let host = places.prompts_host();
    let instance = host.create(None).unwrap();
    assert!(host.tools_set().is_none());
    assert!(!instance.condition("use_prompt", ConditionDecision::Available).unwrap().holds);
    let list = instance.command("prompts", json!({})).unwrap();
    assert_eq!(list.content["result"], "no prompts and no skills");
}

jaato_plugin_testkit::conformance!(tool_prompts: tool);
