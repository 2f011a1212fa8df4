//! The layers of the configuration: precedence, refused values, and the origin of each value.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::bench::ConfigFixture;
use expect_test::expect;
use jaato_config::{ConfigLayer, Overrides, parse_model_id};

#[test]
fn every_value_is_built_in_when_nothing_is_configured() {
    let bench = ConfigFixture::new();
    let config = bench.load_config().unwrap();
    for entry in config.entries() {
        assert_eq!(
            entry.origins.iter().map(|it| it.layer()).collect::<Vec<_>>(),
            [ConfigLayer::BuiltIn]
        );
    }
    assert_eq!(config.model.as_str(), "local/qwen2.5-coder-1.5b");
    assert_eq!(config.session.output_bytes_max, 16_384);
    assert!(!config.local_download && !config.offline);
    assert!(config.warnings.is_empty());
}

#[test]
fn later_layers_win_and_each_value_names_its_origin() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config(
        "[session]\nsteps_max = 1\noutput_bytes_max = 2000\nparallel_calls_max = 2\n",
    );
    bench.write_workspace_file(
        ".jaato/config.toml",
        "[session]\noutput_bytes_max = 3000\nparallel_calls_max = 3\n",
    );
    let variables = "# shared\nJAATO_SESSION_PARALLEL_CALLS_MAX=4\nJAATO_OFFLINE=no\n";
    bench.write_workspace_file(".env", variables);
    bench.trust_workspace();
    bench.set_variable("JAATO_OFFLINE", "1");
    bench.set_variable("JAATO_PROMPT_FILE", "/p.md");
    bench.overrides = Overrides { tools_enabled: Some(vec!["a".into()]), ..Overrides::default() };
    let config = bench.load_config().unwrap();
    let shown: Vec<_> = config
        .show_text()
        .lines()
        .filter(|line| !line.starts_with("session.") || !line.ends_with("# built-in"))
        .map(|line| bench.relative_text(line) + "\n")
        .collect();
    expect![[r#"
        model = "local/qwen2.5-coder-1.5b"            # built-in
        provider = ""                                 # built-in
        fallback = []                                 # built-in
        offline = true                                # variable JAATO_OFFLINE
        environment = "local"                         # built-in
        plugin_dirs = []                              # built-in
        local.download = false                        # built-in
        plugins.disabled = []                         # built-in
        plugins.isolated = []                         # built-in
        tools.enabled = ["a"]                         # command line --tools
        tools.offered = true                          # built-in
        tools.disabled = []                           # built-in
        tools.first = ["cli_based_tool", "readFile", "get_environment", "updateFile", "writeNewFile", "apply_patch", "grep_content", "glob_files", "request_clarification", "createPlan", "startPlan", "setStepStatus", "completePlan"]  # built-in
        tools.core_tokens_max = 3500                  # built-in
        tools.cli.pass = []                           # built-in
        session.steps_max = 1                         # user ROOT/user/config/config.toml:2
        session.parallel_calls_max = 4                # variables file ROOT/work/.env:2 JAATO_SESSION_PARALLEL_CALLS_MAX
        session.output_bytes_max = 3000               # workspace ROOT/work/.jaato/config.toml:2
        sessions.save = true                          # built-in
        sessions.keep_days = 0                        # built-in
        sessions.keep_megabytes = 0                   # built-in
        permissions.mode = "ask"                      # built-in
        permissions.answer_ms = 0                     # built-in
        permissions.channel = "terminal"              # built-in
        permissions.endpoint = (not set)              # built-in
        caps.cost = (not set)                         # built-in
        caps.tokens = (not set)                       # built-in
        caps.steps = (not set)                        # built-in
        gc.plugin = "gc-truncate"                     # built-in
        gc.threshold_percent = 80                     # built-in
        gc.target_percent = 60                        # built-in
        gc.pressure_percent = 90                      # built-in
        gc.auto_trigger = true                        # built-in
        gc.check_before_send = true                   # built-in
        gc.preserve_recent_turns = 5                  # built-in
        gc.summarize_middle_turns = 10                # built-in
        gc.summary_model = ""                         # built-in
        gc.pinned_turn_indices = []                   # built-in
        gc.max_turns = 0                              # built-in
        gc.notify_on_gc = true                        # built-in
        gc.deadline_ms = 10000                        # built-in
        ledger.enabled = true                         # built-in
        ledger.path = (not set)                       # built-in
        web.private_hosts = []                        # built-in
        terminals.join = true                         # built-in
        prompt.file = "/p.md"                         # variable JAATO_PROMPT_FILE
    "#]].assert_eq(&shown.concat());
}

#[test]
fn model_in_a_file_overrides_variables_and_command_line_overrides_both() {
    let mut bench = ConfigFixture::new();
    let check = |bench: &ConfigFixture, expected: &str| {
        let config = bench.load_config().unwrap();
        let place = bench.relative_text(&config.origins_of_key("model")[0].to_string());
        assert_eq!(format!("{} from {place}", config.model), expected);
    };
    check(&bench, "local/qwen2.5-coder-1.5b from built-in");
    bench.set_variable("MODEL_NAME", "gemini-2.5-flash");
    check(&bench, "gemini-2.5-flash from variable MODEL_NAME");
    bench.set_variable("JAATO_PROVIDER", "google");
    check(&bench, "google/gemini-2.5-flash from variable MODEL_NAME");
    bench.set_variable("JAATO_MODEL", "a/b");
    check(&bench, "a/b from variable JAATO_MODEL");
    bench.write_user_config("model = 'c/d/e'\n");
    check(&bench, "c/d/e from user ROOT/user/config/config.toml:1");
    bench.overrides.model = Some(parse_model_id("f/g").unwrap());
    check(&bench, "f/g from command line --model");
}

#[test]
fn model_name_variable_with_a_provider_is_used_as_it_is() {
    let mut bench = ConfigFixture::new();
    bench.set_variable("JAATO_PROVIDER", "google");
    bench.set_variable("MODEL_NAME", "x/y");
    assert_eq!(bench.load_config().unwrap().model.as_str(), "x/y");
}

#[test]
fn any_layer_may_leave_the_provider_out() {
    let mut bench = ConfigFixture::new();
    bench.set_variable("JAATO_MODEL", "gemini");
    assert_eq!(bench.load_config().unwrap().model.as_str(), "gemini");
    bench.write_user_config("provider = 'google'\n");
    assert_eq!(bench.load_config().unwrap().model.as_str(), "google/gemini");
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let mut bench = ConfigFixture::new();
    bench.set_variable("MODEL_NAME", "");
    bench.set_variable("JAATO_OFFLINE", "");
    let config = bench.load_config().unwrap();
    assert_eq!(config.origins_of_key("model")[0].layer(), ConfigLayer::BuiltIn);
    assert!(!config.offline);
}

#[test]
fn untrusted_workspace_configures_nothing() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".jaato/config.toml", "this is not even toml");
    bench.write_workspace_file(".env", "JAATO_OFFLINE=1\n");
    assert!(!bench.load_config().unwrap().offline);
}

#[test]
fn users_env_file_needs_no_trust_and_replaces_the_workspace_env_file() {
    let mut bench = ConfigFixture::new();
    bench.write_workspace_file(".env", "JAATO_OFFLINE=1\nJAATO_TOOLS_DISABLED=x\n");
    bench.trust_workspace();
    bench.write_workspace_file("my.env", "export JAATO_TOOLS_DISABLED='y'\n");
    bench.env_file = Some("my.env".into());
    let config = bench.load_config().unwrap();
    assert!(!config.offline);
    assert_eq!(config.tools_disabled, ["y"]);
}

#[test]
fn missing_requested_file_is_an_error() {
    let mut bench = ConfigFixture::new();
    bench.env_file = Some("gone.env".into());
    bench.check_refusal(expect![[r#"cannot read `ROOT/work/gone.env`: no such file"#]]);
    let mut bench = ConfigFixture::new();
    bench.config_file = Some("gone.toml".into());
    bench.check_refusal(expect![[r#"cannot read `ROOT/work/gone.toml`: no such file"#]]);
}

#[test]
fn config_file_option_replaces_the_user_config() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config("offline = true\n");
    bench.write_workspace_file("mine.toml", "[tools]\nenabled = ['b']\n");
    bench.config_file = Some("mine.toml".into());
    let config = bench.load_config().unwrap();
    assert!(!config.offline);
    assert_eq!(config.tools_enabled, ["b"]);
    assert_eq!(
        bench.relative_text(&config.origins_of_key("tools.enabled")[0].to_string()),
        "user ROOT/work/mine.toml:2"
    );
}

#[test]
fn disabled_lists_of_all_layers_are_combined() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config("[tools]\ndisabled = ['shell']\n[plugins]\ndisabled = ['tool-a']\n");
    bench.write_workspace_file(
        ".jaato/config.toml",
        "[tools]\ndisabled = []\n[plugins]\ndisabled = ['tool-b']\n",
    );
    bench.trust_workspace();
    bench.set_variable("JAATO_TOOLS_DISABLED", "web, shell");
    let config = bench.load_config().unwrap();
    assert_eq!(config.tools_disabled, ["web", "shell"]);
    assert_eq!(config.plugins_disabled, ["tool-b", "tool-a"]);
    assert_eq!(config.origins_of_key("tools.disabled").len(), 3);
}

#[test]
fn plugin_folders_of_the_command_line_come_first_and_paths_follow_their_file() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config("plugin_dirs = ['theirs', '~/p']\n");
    bench.set_variable("HOME", "/home/u");
    bench.set_variable("JAATO_PLUGIN_PATH", "one::/two");
    bench.overrides.plugin_dirs = Some(vec!["/given".into()]);
    let dirs = format!("{:?}", bench.load_config().unwrap().plugin_dirs);
    assert_eq!(
        bench.relative_text(&dirs),
        r#"["/given", "ROOT/work/one", "/two", "ROOT/user/config/theirs", "/home/u/p"]"#
    );
}

#[test]
fn configuration_loads_without_a_home_folder() {
    let mut bench = ConfigFixture::new();
    bench.folders = jaato_config::UserFolders::without_home();
    bench.set_variable("JAATO_OFFLINE", "1");
    assert!(bench.load_config().unwrap().offline);
}

#[test]
fn env_file_cannot_set_undocumented_variables() {
    let mut bench = ConfigFixture::new();
    bench.write_workspace_file(".env", "HOME=/evil\nLD_PRELOAD=/evil.so\nPROMPT=x\n");
    bench.trust_workspace();
    bench.write_user_config("prompt.file = '~/p.md'\n");
    bench.set_variable("HOME", "/home/u");
    let config = bench.load_config().unwrap();
    assert_eq!(config.prompt.file.unwrap().to_str(), Some("/home/u/p.md"));
    assert!(config.warnings.is_empty());
}

#[test]
fn invalid_env_lines_and_misspelled_variables_give_warnings() {
    let mut bench = ConfigFixture::new();
    bench.write_workspace_file("e.env", "nonsense\nJAATO_OFLINE=1\nJAATO_PROMPT_FILE=${HOME}/x\n");
    bench.env_file = Some("e.env".into());
    bench.set_variable("JAATO_MODLE", "a/b");
    bench.set_variable("JAATO_SESSION_ID", "s");
    let warnings: Vec<_> =
        bench.load_config().unwrap().warnings.iter().map(|one| one.to_string() + "\n").collect();
    expect![[r#"
        skipped `ROOT/work/e.env:1`: not `NAME=value`
        variable `JAATO_OFLINE` (ROOT/work/e.env:2) is unknown; did you mean `JAATO_OFFLINE`?
        `JAATO_PROMPT_FILE` in `ROOT/work/e.env:3` is taken as written: `${…}` is not replaced
        variable `JAATO_MODLE` (the process) is unknown; did you mean `JAATO_MODEL`?
    "#]]
    .assert_eq(&bench.relative_text(&warnings.concat()));
}

#[test]
fn workspace_cannot_set_user_only_settings() {
    let mut bench = ConfigFixture::new();
    bench.write_workspace_file(
        ".jaato/config.toml",
        "[ledger]\nenabled = false\npath = \"/evil\"\n",
    );
    bench.write_workspace_file(".env", "LEDGER_PATH=/evil\nJAATO_OFFLINE=1\n");
    bench.trust_workspace();
    let config = bench.load_config().unwrap();
    assert_eq!((config.ledger.enabled, config.ledger.path.clone()), (true, None));
    assert!(config.offline, "the rest of the file counts");
    let warnings: Vec<_> =
        config.warnings.iter().map(|warning| bench.relative_text(&warning.text) + "\n").collect();
    expect![[r#"
        `ledger.enabled` in `ROOT/work/.jaato/config.toml:2` is not used: only your own configuration or a variable can set it
        `ledger.path` in `ROOT/work/.jaato/config.toml:3` is not used: only your own configuration or a variable can set it
        `LEDGER_PATH` in `ROOT/work/.env:1` is not used: only your own configuration or a variable can set it
    "#]]
    .assert_eq(&warnings.concat());
    bench.set_variable("LEDGER_PATH", "mine.jsonl");
    let path = bench.load_config().unwrap().ledger.path;
    assert_eq!(
        path,
        Some(bench.workspace_folder().join("mine.jsonl")),
        "relative to the working directory"
    );
    bench.set_variable("LEDGER_PATH", "");
    bench.env_file = Some(bench.workspace_folder().join(".env"));
    let path = bench.load_config().unwrap().ledger.path;
    assert_eq!(path, Some("/evil".into()), "a file that the person named is the person's word");
}

#[test]
fn foreign_env_file_variables_are_found_by_name_and_never_shown() {
    let mut bench = ConfigFixture::new();
    bench.write_workspace_file(".env", "MOON_API_KEY=hidden-1\nMOON_API_KEY=hidden-2\nEMPTY=\n");
    assert!(
        bench.load_config().unwrap().env_file_variable("MOON_API_KEY").is_none(),
        "not trusted"
    );
    bench.trust_workspace();
    let config = bench.load_config().unwrap();
    let found = config.env_file_variable("MOON_API_KEY").unwrap();
    assert_eq!((found.value, found.is_own), ("hidden-2", false));
    assert_eq!(
        bench.relative_text(&found.origin.to_string()),
        "variables file ROOT/work/.env:2 MOON_API_KEY"
    );
    assert!(config.env_file_variable("EMPTY").is_none());
    assert!(config.env_file_variable("JAATO_OFFLINE").is_none());
    let all = format!("{config:?} {found:?} {}", config.show_text());
    assert!(!all.contains("hidden"), "{all}");
    bench.env_file = Some(bench.workspace_folder().join(".env"));
    assert!(bench.load_config().unwrap().env_file_variable("MOON_API_KEY").unwrap().is_own);
}

#[test]
fn user_value_of_a_plugin_setting_is_known_under_a_workspace_value() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config("[plugins.provider-moon]\nbase_url = 'https://mine'\n");
    bench.write_workspace_file(
        ".jaato/config.toml",
        "[plugins.provider-moon]\nbase_url = 'https://theirs'\nplain = true\n",
    );
    bench.trust_workspace();
    let config = bench.load_config().unwrap();
    let settings = &config.plugin_settings["provider-moon"];
    assert_eq!(settings.values()["base_url"], "https://theirs");
    let (own, origin) = settings.user_value("base_url").unwrap();
    assert_eq!((own.as_str(), origin.layer()), (Some("https://mine"), ConfigLayer::User));
    assert!(settings.user_value("plain").is_none());
}

/// Checks a workspace's settings, and the warnings about them.
#[track_caller]
fn check_workspace(user: &str, workspace: &str, expected: &[&str]) -> jaato_config::Config {
    let mut bench = ConfigFixture::new();
    bench.write_user_config(user);
    bench.write_workspace_file(".jaato/config.toml", workspace);
    bench.trust_workspace();
    let config = bench.load_config().unwrap();
    let told: Vec<_> =
        config.warnings.iter().map(|warning| bench.relative_text(&warning.text)).collect();
    assert_eq!(told, expected);
    config
}

#[test]
fn workspace_sets_only_keys_that_the_key_table_allows() {
    let yours = "only your own configuration or a variable can set it";
    let at = |key: &str, why: &str| {
        format!("`{key}` in `ROOT/work/.jaato/config.toml:1` is not used: {why}")
    };
    for key in [
        "plugin_dirs = ['vendor']",
        "tools.cli.pass = ['A_KEY']",
        "ledger.enabled = false",
        "terminals.join = true",
    ] {
        let name = key.split_once(" =").unwrap().0;
        check_workspace("", key, &[&at(name, yours)]);
    }
    // Stricter, but not looser.
    assert!(check_workspace("", "offline = true", &[]).offline);
    assert!(check_workspace("offline = true", "offline = false", &[&at("offline", yours)]).offline);
    assert!(
        !check_workspace("local.download = true", "local.download = false", &[]).local_download
    );
    check_workspace(
        "local.download = false",
        "local.download = true",
        &[&at("local.download", yours)],
    );
    // If the user chose nothing.
    assert_eq!(check_workspace("", "environment = 'docker'", &[]).environment, "docker");
    let given = at("environment", "your own configuration sets it");
    assert_eq!(
        check_workspace("environment = 'docker'", "environment = 'local'", &[&given]).environment,
        "docker"
    );
    let given = at("tools.enabled", "your own configuration sets it");
    let config = check_workspace("tools.enabled = ['a']", "tools.enabled = ['b']", &[&given]);
    assert_eq!(config.tools_enabled, ["a"]);
}

#[test]
fn workspace_prompt_file_must_be_inside_the_workspace() {
    let why = "`prompt.file` in `ROOT/work/.jaato/config.toml:1` is not used: a workspace may name only files inside it";
    for outside in ["/etc/passwd", "~/secret", "../x", "docs/../../x"] {
        let config = check_workspace("", &format!("prompt.file = '{outside}'"), &[why]);
        assert_eq!(config.prompt.file, None);
    }
    let config = check_workspace("prompt.file = '/p.md'", "prompt.file = 'docs/p.md'", &[]);
    assert!(config.prompt.file.as_ref().is_some_and(|path| path.ends_with("work/docs/p.md")));
    assert!(config.is_set_by_workspace("prompt.file") && !config.is_set_by_workspace("offline"));
    assert!(!check_workspace("prompt.file = '/p.md'", "", &[]).is_set_by_workspace("prompt.file"));
}

#[test]
fn forbidden_workspace_plugin_setting_falls_back_to_the_user_value() {
    let config = check_workspace(
        "[plugins.moon]\nshell = 'mine'\n",
        "[plugins.moon]\nshell = { path = 'theirs' }\nseconds = 7\nextra = ['x']\n",
        &[],
    );
    let mut settings = config.plugin_settings["moon"].clone();
    let dropped = settings.retain_workspace_values(|key| key == "seconds");
    let lines: Vec<_> =
        dropped.iter().map(|(key, origin)| (key.as_str(), origin.layer())).collect();
    assert_eq!(lines, [("shell", ConfigLayer::Workspace), ("extra", ConfigLayer::Workspace)]);
    assert_eq!(
        serde_json::json!(settings.values()),
        serde_json::json!({ "shell": "mine", "seconds": 7 })
    );
    assert_eq!(settings.origin("/shell").unwrap().layer(), ConfigLayer::User);
    assert_eq!(settings.origin("/shell/path").unwrap().layer(), ConfigLayer::User);
    assert_eq!(settings.origin("/extra"), None);
}

#[test]
fn ai_retry_variables_are_in_seconds_and_jaato_variables_override_them() {
    let mut bench = ConfigFixture::new();
    for (name, value) in [
        ("AI_RETRY_ATTEMPTS", "3"),
        ("AI_RETRY_BASE_DELAY", "0.25"),
        ("AI_RETRY_MAX_DELAY", "2"),
        ("AI_RETRY_LOG_SILENT", "yes"),
        ("AI_REQUEST_INTERVAL", "1.5"),
        ("AI_USE_CHAT_FUNCTIONS", "0"),
    ] {
        bench.set_variable(name, value);
    }
    let config = bench.load_config().unwrap();
    let session = &config.session;
    assert_eq!((session.attempts_max, session.retry_base_ms), (3, 250));
    assert_eq!((session.retry_wait_ms_max, session.request_interval_ms), (2_000, 1_500));
    assert!(session.retry_silent && !config.tools_offered);
    let shown = config.show_text();
    let line = shown.lines().find(|line| line.starts_with("session.retry_base_ms")).unwrap();
    assert!(line.starts_with("session.retry_base_ms = 250 "), "{line}");
    assert!(line.ends_with("# variable AI_RETRY_BASE_DELAY"), "{line}");

    bench.set_variable("JAATO_SESSION_RETRY_BASE_MS", "7");
    assert_eq!(bench.load_config().unwrap().session.retry_base_ms, 7);
    for wrong in ["soon", "-1", "1e300", ""] {
        bench.set_variable("AI_RETRY_MAX_DELAY", wrong);
        let text =
            bench.load_config().map_or_else(|error| error.to_string(), |_| "taken".to_owned());
        let told = format!("but is `{wrong}` seconds (variable AI_RETRY_MAX_DELAY)");
        assert!(text.ends_with(&told) || (wrong.is_empty() && text == "taken"), "{text}");
    }
}
