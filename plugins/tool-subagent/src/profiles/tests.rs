//! Tests of sources, precedence and broken files.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A workspace and a home.
struct ProfileTestPlaces {
    _folder: tempfile::TempDir,
    places: ProfilePlaces,
}

impl ProfileTestPlaces {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["h", "w/sub"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let places = ProfilePlaces {
            home: Some(root.join("h")),
            workspace: Some(root.join("w")),
            working_directory: root.join("w/sub"),
            ..ProfilePlaces::default()
        };
        Self { _folder: folder, places }
    }

    fn root_folder(&self) -> &Path {
        self.places.home.as_ref().unwrap().parent().unwrap()
    }

    fn write_file(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.root_folder().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read_test_profiles(&self) -> Profiles {
        Profiles::read_all_profiles(&self.places)
    }

    /// Returns the skipped files below the root, with their reasons.
    fn skipped_files(&self, profiles: &Profiles) -> Vec<String> {
        let root = format!("{}/", self.root_folder().display());
        let line = |it: &SkippedProfile| format!("{}: {}", it.source, it.reason);
        profiles.skipped.iter().map(line).map(|it| it.replace(&root, "")).collect()
    }
}

fn profile_names(profiles: &Profiles) -> Vec<&str> {
    profiles.all_profiles().map(|it| it.name.as_str()).collect()
}

fn profile_markdown(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\nWork.\n")
}

#[test]
fn first_profile_with_a_name_counts_and_the_others_are_reported() {
    let mut places = ProfileTestPlaces::new();
    let fields = json!({ "description": "config" });
    places.places.config.profiles =
        BTreeMap::from([("a".to_owned(), fields.as_object().unwrap().clone())]);
    for name in ["a", "b"] {
        places.write_file(&format!("h/.jaato/profiles/{name}.yaml"), "description: home\n");
    }
    for name in ["a", "b", "c"] {
        let text = format!("{{\"name\": \"{name}\", \"description\": \"workspace\"}}");
        places.write_file(&format!("w/.jaato/profiles/x-{name}.json"), text);
    }
    places.write_file("w/.jaato/agents/c.md", profile_markdown("c", "agents"));
    places.write_file("w/.claude/agents/deep/er/d.md", profile_markdown("d", "claude"));
    places.write_file("h/.claude/agents/e.md", profile_markdown("e", "home claude"));
    let profiles = places.read_test_profiles();
    let descriptions: Vec<&str> =
        profiles.all_profiles().map(|it| it.description.as_str()).collect();
    assert_eq!(profile_names(&profiles), ["a", "b", "c", "d", "e"]);
    assert_eq!(descriptions, ["config", "home", "workspace", "claude", "home claude"]);
    let expected = [
        "h/.jaato/profiles/a.yaml: `config.toml: profiles.a` already has the name `a`",
        "w/.jaato/profiles/x-a.json: `config.toml: profiles.a` already has the name `a`",
        "w/.jaato/profiles/x-b.json: `h/.jaato/profiles/b.yaml` already has the name `b`",
        "w/.jaato/agents/c.md: `w/.jaato/profiles/x-c.json` already has the name `c`",
    ];
    assert_eq!(places.skipped_files(&profiles), expected);
}

#[test]
fn unknown_profile_is_an_error_that_lists_the_others() {
    let places = ProfileTestPlaces::new();
    let error = places.read_test_profiles().find_profile("zz").unwrap_err();
    assert_eq!(error.message, "Profile 'zz' not found. Available: []");
    places.write_file("h/.jaato/agents/b.md", profile_markdown("b", "x"));
    places.write_file("h/.jaato/agents/a.md", profile_markdown("a", "x"));
    let profiles = places.read_test_profiles();
    assert_eq!(profiles.find_profile(" a ").unwrap().name, "a");
    let error = profiles.find_profile("zz").unwrap_err();
    assert_eq!(error.message, "Profile 'zz' not found. Available: ['a', 'b']");
    assert_eq!((error.kind, error.hint), (ErrorKind::NotFound, None));
}

#[test]
fn profiles_of_an_untrusted_workspace_are_ignored_and_reported() {
    let mut places = ProfileTestPlaces::new();
    places.places.workspace = None;
    places.write_file("w/.claude/agents/a.md", profile_markdown("a", "x"));
    // Without a marker, the working directory is the workspace.
    assert_eq!(places.read_test_profiles().untrusted_folder_notice(), None);
    places.write_file("w/.git/HEAD", "");
    let profiles = places.read_test_profiles();
    assert!(profile_names(&profiles).is_empty());
    let note = format!(
        "`{}/w/.claude/agents` is ignored, because the workspace is not trusted; run \
         `jaato trust`",
        places.root_folder().display()
    );
    assert_eq!(profiles.untrusted_folder_notice(), Some(note.clone()));
    assert_eq!(profiles.find_profile("a").unwrap_err().hint, Some(note));
    // Folders in the user's home are the user's.
    places.places.working_directory = places.root_folder().join("h/work");
    places.write_file("h/.jaato/agents/b.md", profile_markdown("b", "x"));
    assert_eq!(places.read_test_profiles().untrusted_folder_notice(), None);
}

#[test]
fn broken_and_hostile_files_are_skipped_with_a_reason() {
    let places = ProfileTestPlaces::new();
    places.write_file("w/.jaato/profiles/a.json", "{");
    places.write_file("w/.jaato/profiles/b.yaml", "x: &x [*x]");
    places.write_file("w/.jaato/profiles/c.yml", [0xff, 0xfe, 0x00, 0xd8, 0x80, 0x81]);
    places.write_file("w/.jaato/profiles/d.json", " ".repeat(FILE_BYTES_MAX as usize + 1));
    places.write_file("w/.jaato/profiles/e.yaml", "max_turns: 0\nicon: [x]\n");
    places.write_file("w/.jaato/profiles/not a name.yaml", "description: x\n");
    places.write_file("w/.jaato/profiles/notes.txt", "not read");
    places.write_file("w/.claude/agents/README.md", "# Agents\n");
    fs::create_dir(places.root_folder().join("w/.jaato/profiles/folder.json")).unwrap();
    let profiles = places.read_test_profiles();
    assert!(profile_names(&profiles).is_empty());
    let expected = [
        "w/.jaato/profiles/a.json: Invalid JSON: EOF while parsing an object at line 1 column 1",
        "w/.jaato/profiles/b.yaml: Invalid YAML: it has an alias (`*`)",
        "w/.jaato/profiles/c.yml: it is not UTF-8 text",
        "w/.jaato/profiles/d.json: it has more than 65536 bytes",
        "w/.jaato/profiles/e.yaml: 'max_turns' must be a positive integer; 'icon' must contain exactly 3 strings, got 1",
        "w/.jaato/profiles/not a name.yaml: 'name' must have 1 to 64 letters (a-z, A-Z), digits, '-' or '_', got 'not a name'",
        "w/.claude/agents/README.md: it has no front matter between two lines `---`",
    ];
    assert_eq!(places.skipped_files(&profiles), expected);
}

#[test]
fn links_out_of_a_workspace_are_not_followed() {
    let places = ProfileTestPlaces::new();
    places.write_file("out/agents/a.md", profile_markdown("a", "x"));
    places.write_file("w/.jaato/agents/b.md", profile_markdown("b", "x"));
    fs::create_dir_all(places.root_folder().join("w/.claude")).unwrap();
    symlink(places.root_folder().join("out/agents"), places.root_folder().join("w/.claude/agents"))
        .unwrap();
    symlink(
        places.root_folder().join("out/agents"),
        places.root_folder().join("w/.jaato/agents/c"),
    )
    .unwrap();
    symlink(
        places.root_folder().join("out/agents/a.md"),
        places.root_folder().join("w/.jaato/agents/d.md"),
    )
    .unwrap();
    symlink(
        places.root_folder().join("w/.jaato/agents"),
        places.root_folder().join("w/.jaato/agents/loop"),
    )
    .unwrap();
    let profiles = places.read_test_profiles();
    assert_eq!(profile_names(&profiles), ["b"]);
    let expected = [
        "w/.jaato/agents/c: a link leads out of the folder",
        "w/.jaato/agents/d.md: a link leads out of the folder",
        "w/.claude/agents: its path contains a link",
    ];
    assert_eq!(places.skipped_files(&profiles), expected);
}

#[test]
fn workspace_profile_cannot_approve_itself() {
    let places = ProfileTestPlaces::new();
    for root in ["h", "w"] {
        places.write_file(&format!("{root}/.jaato/profiles/{root}.yaml"), "auto_approved: true\n");
    }
    let profiles = places.read_test_profiles();
    assert!(profiles.find_profile("h").unwrap().is_auto_approved);
    assert!(!profiles.find_profile("w").unwrap().is_auto_approved);
    assert!(profiles.warnings[0].ends_with("'auto_approved' is ignored in a workspace's profile"));
}

#[test]
fn instructions_get_folders_and_no_other_variables() {
    let places = ProfileTestPlaces::new();
    let text = "system_instructions: 'Work in ${workspaceRoot}, ${cwd}, ${HOME}; ${PATH} ${x'\n";
    places.write_file("w/.jaato/profiles/a.yaml", text);
    places
        .write_file("w/.jaato/agents/b.md", profile_markdown("b", "x").replace("Work", "${HOME}"));
    let profiles = places.read_test_profiles();
    let root = places.root_folder().display();
    assert_eq!(
        profiles.find_profile("a").unwrap().instructions,
        Some(format!("Work in {root}/w, {root}/w/sub, {root}/h; ${{PATH}} ${{x"))
    );
    assert_eq!(profiles.find_profile("b").unwrap().instructions.as_deref(), Some("${HOME}."));
}

#[test]
fn models_of_claude_code_need_a_setting() {
    let mut places = ProfileTestPlaces::new();
    for model in ["sonnet", "opus", "own/model"] {
        let text = format!("---\ndescription: x\nmodel: {model}\n---\n");
        places.write_file(&format!("w/.claude/agents/{}.md", model.replace('/', "-")), text);
    }
    places.places.config.models =
        BTreeMap::from([("opus".to_owned(), "anthropic/claude-opus-5-5".to_owned())]);
    let profiles = places.read_test_profiles();
    let model = |name: &str| profiles.find_profile(name).unwrap().model.clone();
    assert_eq!(model("opus").as_deref(), Some("anthropic/claude-opus-5-5"));
    assert_eq!(model("own-model").as_deref(), Some("own/model"));
    assert_eq!(model("sonnet"), None);
    assert_eq!(profiles.warnings.len(), 1);
    assert!(profiles.warnings[0].contains("`sonnet` is not set"), "{:?}", profiles.warnings);
}

#[test]
fn number_of_profiles_is_limited() {
    let places = ProfileTestPlaces::new();
    for number in 0..=PROFILES_MAX {
        places.write_file(&format!("w/.jaato/profiles/p{number:03}.yaml"), "description: x\n");
    }
    let profiles = places.read_test_profiles();
    assert_eq!(profiles.all_profiles().count(), PROFILES_MAX);
    let expected = ["w/.jaato/profiles/p200.yaml: there are more than 200 profiles"];
    assert_eq!(places.skipped_files(&profiles), expected);
}
