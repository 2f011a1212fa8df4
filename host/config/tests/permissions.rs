//! Files with rules: their meaning, what breaks them, their precedence, and how edits change them.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use expect_test::{Expect, expect};
use jaato_config::permissions::{
    NewRule, RuleFiles, RuleSources, add_rule, load_rules, read_cases, remove_rule,
};
use jaato_config::trust::{TrustStore, Workspace, WorkspaceState};
use jaato_policy::RuleLayer;

/// A machine with a test's files.
struct PermissionsFixture {
    folder: tempfile::TempDir,
}

impl PermissionsFixture {
    fn with_files(files: &[(&str, &str)]) -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["etc", "user", "home", "project/.jaato", "data"] {
            fs::create_dir_all(machine.folder.path().join(folder)).unwrap();
        }
        for (name, text) in files {
            let path = machine.folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        machine
    }

    fn load_rules(&self, is_trusted: bool) -> RuleFiles {
        let root = self.folder.path();
        let workspace = Workspace::find_workspace(&root.join("project"), None).unwrap();
        let store = TrustStore::in_folder(&root.join("data"));
        if is_trusted {
            store.trust_workspace(&workspace, SystemTime::UNIX_EPOCH).unwrap();
        }
        let state = store.workspace_state(&workspace).unwrap();
        let trusted = match &state {
            WorkspaceState::Trusted(trusted) => Some(trusted),
            _ => None,
        };
        load_rules(&RuleSources {
            enterprise: Some(&root.join("etc")),
            user: Some(&root.join("user")),
            home: Some(&root.join("home")),
            named: None,
            workspace: trusted,
            root: Path::new("/project"),
        })
    }

    fn format_rules(&self, is_trusted: bool) -> String {
        let files = self.load_rules(is_trusted);
        let mut text = String::new();
        let root = self.folder.path().canonicalize().unwrap().display().to_string();
        let plain = self.folder.path().display().to_string();
        // The shipped rules come last, and are the same for every test.
        let written = files.files.iter().filter(|file| file.layer != RuleLayer::Shipped);
        for file in written {
            let path = file.path.replace(&root, "").replace(&plain, "");
            text += &format!("{} {path}\n", file.layer.name());
            if let Some((outcome, line)) = file.default {
                text += &format!("  {line}: {} by default\n", outcome.name());
            }
            for rule in &file.rules {
                text += &format!("  {}: {rule}", rule.line);
                text += &rule.why.as_ref().map_or("\n".to_owned(), |why| format!(" ({why})\n"));
            }
            if let Some((line, what)) = &file.broken {
                text += &format!("  broken, line {line}: {}\n", what.replace(&plain, ""));
            }
        }
        for warning in &files.warnings {
            text += &format!("warning {}\n", warning.replace(&plain, ""));
        }
        if let Some(channel) = &files.channel {
            text += &format!("{channel:?}\n");
        }
        text
    }
}

#[track_caller]
fn check_rules(files: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&PermissionsFixture::with_files(files).format_rules(true));
}

#[test]
fn the_shipped_rules_come_last_unless_a_file_switches_them_off() {
    let layers = |text: &str| -> Vec<RuleLayer> {
        let machine = PermissionsFixture::with_files(&[("user/permissions.toml", text)]);
        machine.load_rules(false).files.iter().map(|file| file.layer).collect()
    };
    assert_eq!(layers("version = 1"), [RuleLayer::User, RuleLayer::Shipped]);
    assert_eq!(layers("version = 1\nshipped_rules = true"), [RuleLayer::User, RuleLayer::Shipped]);
    assert_eq!(layers("version = 1\nshipped_rules = false"), [RuleLayer::User]);
}

#[test]
fn toml_permissions_file_is_parsed_with_the_line_of_each_rule() {
    let text = r#"# mine
version = 1
default = "ask"

[[rules]]
decision = "allow"
command = "git status"

# never this
[[rules]]
decision = "deny"
path = "~/.ssh"
why = "keys"

[[rules]]
decision = "ask"
host = "*.example.com"
agent_type = "subagent"
destructive = true
argument.mode = "w*"
"#;
    check_rules(
        &[("user/permissions.toml", text)],
        expect![[r#"
        user /user/permissions.toml
          3: ask by default
          6: allow command = "git status"
          11: deny path = "~/.ssh" (keys)
          16: ask host = "*.example.com", argument.mode = "w*", agent_type = "subagent", destructive = true
    "#]],
    );
}

#[test]
fn permissions_files_are_ordered_enterprise_user_workspace() {
    let rule = |tool: &str| format!("[[rules]]\ndecision = \"deny\"\ntool = \"{tool}\"\n");
    let (etc, user, project) = (rule("a"), rule("b"), rule("c"));
    let files = [
        ("project/.jaato/permissions.toml", project.as_str()),
        ("user/permissions.toml", user.as_str()),
        ("etc/permissions.toml", etc.as_str()),
        ("home/.jaato/permissions.json", r#"{"blacklist":{"tools":["d"]}}"#),
    ];
    let machine = PermissionsFixture::with_files(&files);
    expect![[r#"
        enterprise /etc/permissions.toml
          2: deny tool = "a"
        user /user/permissions.toml
          2: deny tool = "b"
        user /home/.jaato/permissions.json
          1: deny tool = "d"
    "#]]
    .assert_eq(&machine.format_rules(false));
    expect![[r#"
        enterprise /etc/permissions.toml
          2: deny tool = "a"
        user /user/permissions.toml
          2: deny tool = "b"
        user /home/.jaato/permissions.json
          1: deny tool = "d"
        workspace /project/.jaato/permissions.toml
          2: deny tool = "c"
    "#]]
    .assert_eq(&machine.format_rules(true));
}

#[test]
fn errors_in_a_permissions_file_name_the_line() {
    let cases = [
        "x = 1",
        "version = 2",
        "default = \"perhaps\"",
        "[[rules]]\ndecision = \"deny\"\ncomand = \"rm\"",
        "[[rules]]\ncommand = \"rm\"",
        "[[rules]]\ndecision = \"allow\"",
        "[[rules]]\ndecision = \"allow\"\ncommand = \"git *\"\npath = \"src\"",
        "[[rules]]\ndecision = \"allow\"\ncommand = \"* status\"",
        "[[rules]]\ndecision = \"allow\"\ncompound = true",
        "[[rules]]\ndecision = \"deny\"\noptions = \"any\"\ntool = \"x\"",
        "[[rules]]\ndecision = \"deny\"\npath = \"~ann/x\"",
        "[[rules]]\ndecision = \"deny\"\ntool = \"\"",
        "[[rules]\n",
        "rules = 1",
    ];
    let mut text = String::new();
    for case in cases {
        let shown =
            PermissionsFixture::with_files(&[("user/permissions.toml", case)]).format_rules(true);
        text += shown.lines().nth(1).unwrap().trim_start();
        text.push('\n');
    }
    expect![[r#"
        broken, line 1: `x` is unknown; use one of version, default, shipped_rules, rules
        broken, line 1: `version` is the number `2`, this jaato knows 1
        broken, line 1: `default` is `perhaps`; it must be `allow`, `ask` or `deny`
        broken, line 3: `comand` is unknown; did you mean `command`?
        broken, line 2: the rule has no `decision`
        broken, line 2: a rule that allows must say what it allows; `default` is for all calls
        broken, line 2: a rule cannot allow a command by `path` or `host`: a program reaches further
        broken, line 2: a rule that allows a command names its words; only the last may be `*`
        broken, line 2: `compound` and `outside` are for rules that ask or deny
        broken, line 2: `options` needs a `command`
        broken, line 3: `~ann/x` needs the home folder, which is unknown
        broken, line 3: `tool` is empty
        broken, line 1: unclosed array table, expected `]`
        broken, line 1: `rules` is the number `1`; write `[[rules]]` above each
    "#]]
    .assert_eq(&text);
}

#[test]
fn workspace_permissions_file_cannot_allow_by_default() {
    let machine = PermissionsFixture::with_files(&[(
        "project/.jaato/permissions.toml",
        "default = \"allow\"",
    )]);
    assert!(machine.load_rules(true).files[0].broken.is_some());
    let original = r#"{"defaultPolicy": "allow"}"#;
    let machine = PermissionsFixture::with_files(&[("project/.jaato/permissions.json", original)]);
    assert_eq!(machine.load_rules(true).files[0].default, None);
}

#[test]
fn json_permissions_file_is_read_completely() {
    let text = r#"{
  "version": "1.0",
  "defaultPolicy": "deny",
  "blacklist": {
    "tools": ["dangerous"],
    "patterns": ["rm *", "web_*(*)", "git [pf]ush*"],
    "arguments": { "cli_based_tool": { "command": ["sudo"] }, "note": { "text": ["x"] } }
  },
  "whitelist": {
    "tools": ["look"],
    "patterns": ["git *", "ls", "npm run*", "note(*)", "*", "note(text=a)"],
    "arguments": { "cli_based_tool": { "command": ["npm test"] }, "readFile": { "path": ["src"] } }
  },
  "sanitization": {
    "enabled": true,
    "block_dangerous_commands": false,
    "custom_blocked_commands": ["terraform"],
    "path_scope": { "enabled": true, "allowed_roots": ["."] }
  },
  "channel": { "type": "webhook", "endpoint": "http://127.0.0.1:1/x", "timeout": 5 }
}"#;
    check_rules(
        &[("user/permissions.json", text)],
        expect![[r#"
            user /user/permissions.json
              3: deny by default
              5: deny tool = "dangerous"
              6: deny signature = "rm *"
              6: deny command = "rm"
              6: deny signature = "web_*(*)"
              6: deny signature = "git ?ush*"
              6: deny command = "git ?ush*"
              7: deny tool = "cli_based_tool", argument.command = "sudo*"
              7: deny tool = "cli_based_tool", argument.command = "* sudo"
              7: deny tool = "cli_based_tool", argument.command = "* sudo *"
              7: deny tool = "cli_based_tool", command = "sudo"
              7: deny tool = "note", argument.text = "x*"
              7: deny tool = "note", argument.text = "* x"
              7: deny tool = "note", argument.text = "* x *"
              14: deny compound = true
              17: deny command = "terraform"
              18: deny outside = [".", "/tmp"]
              10: allow tool = "look"
              11: allow command = "git"
              11: allow command = "ls"
              11: allow command = "npm run"
              11: allow tool = "note"
              12: allow tool = "cli_based_tool", command = "npm test"
              12: allow tool = "readFile", path = "src"
            warning `/user/permissions.json:11`: a pattern that allows names a command, or a tool as `tool(*)`: this one allows nothing
            warning `/user/permissions.json:11`: a pattern that allows names a command, or a tool as `tool(*)`: this one allows nothing
            AskingChannel { kind: "webhook", endpoint: Some("http://127.0.0.1:1/x"), timeout_s: 5 }
        "#]],
    );
}

#[test]
fn a_sanitization_that_is_enabled_blocks_unless_a_flag_says_otherwise() {
    let rules = |block: &str| {
        let text = format!("{{\n\"sanitization\": {block}\n}}");
        let machine = PermissionsFixture::with_files(&[("user/permissions.json", &text)]);
        let files = machine.load_rules(true).files;
        assert_eq!(files[0].broken, None, "{text}");
        let written = files[0].rules.iter().map(|rule| format!("{}: {rule}", rule.line));
        written.collect::<Vec<_>>()
    };
    let all = rules(r#"{"enabled": true}"#);
    assert_eq!(all[0], "2: deny compound = true");
    assert!(all.contains(&r#"2: deny command = "rm""#.to_owned()), "{all:?}");
    let no_shell = rules(r#"{"enabled": true, "block_shell_metacharacters": false}"#);
    assert_eq!(no_shell, all[1..]);
    let no_commands = rules(r#"{"enabled": true, "block_dangerous_commands": false}"#);
    assert_eq!(no_commands, all[..1]);
    let scope = rules(r#"{"enabled": true, "path_scope": {}}"#);
    assert_eq!(scope.last().unwrap(), r#"2: deny outside = [".", "/tmp"]"#);
    for off in [r#"{"enabled": false}"#, r#"{}"#, r#"{"block_dangerous_commands": true}"#] {
        assert_eq!(rules(off), Vec::<String>::new(), "{off}");
    }
}

#[test]
fn unknown_content_in_a_json_permissions_file_makes_it_broken() {
    for text in [
        "{",
        "[]",
        r#"{"version": "2"}"#,
        r#"{"defaultPolicy": "maybe"}"#,
        r#"{"blacklists": {}}"#,
        r#"{"blacklist": {"tool": []}}"#,
        r#"{"blacklist": {"arguments": {"a": ["b"]}}}"#,
        r#"{"channel": {"type": "pigeon"}}"#,
        r#"{"sanitization": {"enable": true}}"#,
    ] {
        let machine = PermissionsFixture::with_files(&[("user/permissions.json", text)]);
        assert!(machine.load_rules(true).files[0].broken.is_some(), "{text}");
    }
}

#[test]
fn a_file_that_others_may_write_is_broken() {
    use std::os::unix::fs::PermissionsExt as _;
    let machine =
        PermissionsFixture::with_files(&[("user/permissions.toml", "default = \"allow\"")]);
    let path = machine.folder.path().join("user/permissions.toml");
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    let files = machine.load_rules(true).files;
    assert!(files[0].broken.is_some() && files[0].default.is_none());
}

#[test]
fn rules_are_added_and_removed_with_comments_kept() {
    let rule = NewRule {
        decision: "allow".to_owned(),
        keys: vec![("tool".into(), "note".into()), ("argument.mode".into(), "r".into())],
    };
    let empty = add_rule("", &rule).unwrap().unwrap();
    expect![[r#"
        version = 1

        [[rules]]
        decision = "allow"
        tool = "note"
        argument.mode = "r"
    "#]]
    .assert_eq(&empty);
    let text = "# mine\ndefault = \"ask\" # careful\n\n# no\n[[rules]]\ndecision = \"deny\"\ntool = \"x\" # bad\n";
    let more = add_rule(text, &rule).unwrap().unwrap();
    expect![[r##"
        # mine
        default = "ask" # careful

        # no
        [[rules]]
        decision = "deny"
        tool = "x" # bad

        [[rules]]
        decision = "allow"
        tool = "note"
        argument.mode = "r"
    "##]]
    .assert_eq(&more);
    assert_eq!(add_rule(&more, &rule), Ok(None));
    assert_eq!(remove_rule(&more, 2).unwrap(), text);
    assert!(remove_rule(&more, 3).is_err());
    assert!(remove_rule(&more, 0).is_err());
    assert!(add_rule("[", &rule).is_err());
    let machine = PermissionsFixture::with_files(&[("user/permissions.toml", more.as_str())]);
    assert_eq!(machine.load_rules(true).files[0].broken, None);
}

#[test]
fn permission_test_cases_are_parsed_with_their_lines() {
    let text = "[[cases]]\ncommand = \"ls\"\nexpect = \"allow\"\n\n[[cases]]\ntool = \"note\"\narguments = { a = 1 }\nexpect = \"deny\"\nagent_type = \"subagent\"\n";
    let machine = PermissionsFixture::with_files(&[("project/cases.toml", text)]);
    let cases = read_cases(&machine.folder.path().join("project/cases.toml")).unwrap();
    let shown: Vec<String> = cases
        .iter()
        .map(|case| {
            format!(
                "{} {} {} {} {}",
                case.line, case.tool, case.arguments, case.expected, case.agent_type
            )
        })
        .collect();
    expect![[r#"
        2 cli_based_tool {"command":"ls"} allow main
        6 note {"a":1} deny subagent"#]]
    .assert_eq(&shown.join("\n"));
    for text in [
        "",
        "[[cases]]\n",
        "[[cases]]\nexpect = \"allow\"\n",
        "[[cases]]\ncommand = \"x\"\nexpect = \"no\"\n",
        "cases = 1",
    ] {
        let machine = PermissionsFixture::with_files(&[("project/cases.toml", text)]);
        read_cases(&machine.folder.path().join("project/cases.toml")).unwrap_err();
    }
}

/// The examples in the documentation may be a user's first rules, so they must mean what it says.
#[test]
fn documented_permission_examples_are_decided_as_described() {
    use jaato_policy::{CallingAgent, PluginSource, PolicyCall, Rules, WorkspaceTrust, decide};
    let page = include_str!("../../../docs/permissions.md");
    let mut blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let (rules, cases) = (blocks.next().unwrap(), blocks.next().unwrap());
    assert_eq!(blocks.next(), None);
    let machine = PermissionsFixture::with_files(&[
        ("user/permissions.toml", rules),
        ("project/cases.toml", cases),
    ]);
    let files = machine.load_rules(true).files;
    assert_eq!(files[0].broken, None);
    let home = machine.folder.path().join("home");
    let rules = Rules::from_files(files);
    let cases = read_cases(&machine.folder.path().join("project/cases.toml")).unwrap();
    let schema = serde_json::json!({ "type": "object", "properties": {
        "path": { "type": "string", "x-jaato-touches": "write" },
        "url": { "type": "string", "x-jaato-touches": "host" },
    } });
    for case in cases {
        let (tool, plugin) = (case.tool.as_str().into(), "tool-x".into());
        let (agent_type, agent_name) = (case.agent_type.as_str(), case.agent_name.as_str());
        let call = PolicyCall {
            source: PluginSource::Shipped,
            agent: CallingAgent { agent_type, agent_name },
            directory: Some(Path::new("/project")),
            home: Some(&home),
            schema: &schema,
            workspace: WorkspaceTrust::Trusted,
            ..PolicyCall::new(&tool, &plugin, &case.arguments)
        };
        let decision = decide(&rules, &call);
        let why = decision.explain(&call);
        assert_eq!(decision.outcome.name(), case.expected, "line {}: {why}", case.line);
    }
}
