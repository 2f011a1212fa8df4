//! Tests configuration: errors show their place, and values their origin.

use expect_test::{Expect, expect};

use crate::house;

/// Runs a list with each of these invalid configurations. The snapshot contains all messages.
#[track_caller]
fn assert_refused(configurations: &[&str], expected: Expect) {
    let house = house!();
    let refusal = |text: &&str| {
        house.configure(text);
        let output = house.run(&["tool", "list"]);
        assert_eq!((output.code, output.stdout.as_str()), (3, ""), "{output}");
        house.normalize_output(&output.stderr)
    };
    expected.assert_eq(&configurations.iter().map(refusal).collect::<String>());
}

#[test]
fn config_errors_name_the_place_and_the_expected_value() {
    assert_refused(
        &[
            "modle = \"local/x\"\n",
            "[session]\nstep_max = 3\n",
            "[zzz]\nx = 3\n",
            "offline = \"yes please\"\n",
            "\n[tools]\ndisabled = 3\n",
            "[session]\nsteps_max = 0\n",
            "model = \n",
        ],
        expect![[r#"
            error: unknown key `modle` (user $HOUSE/home/.config/jaato/config.toml:1)
            hint: did you mean `model`?
            error: unknown key `session.step_max` (user $HOUSE/home/.config/jaato/config.toml:2)
            hint: did you mean `session.steps_max`?
            error: unknown key `zzz` (user $HOUSE/home/.config/jaato/config.toml:1)
            hint: known here: `model`, `provider`, `fallback`, `offline`, `environment`, `plugin_dirs`, `local`, `plugins`, `tools`, `session`, `sessions`, `permissions`, `caps`, `gc`, `ledger`, `web`, `terminals`, `prompt`, `models`, `providers`
            error: `offline` takes true or false, but is the text `yes please` (user $HOUSE/home/.config/jaato/config.toml:1)
            hint: see `offline` in docs/configuration.md
            error: `tools.disabled` takes a list of names, but is the number `3` (user $HOUSE/home/.config/jaato/config.toml:3)
            hint: see `tools.disabled` in docs/configuration.md
            error: `session.steps_max` takes a whole number from 1 to 10000, but is `0` (user $HOUSE/home/.config/jaato/config.toml:2)
            hint: see `session.steps_max` in docs/configuration.md
            error: `$HOUSE/home/.config/jaato/config.toml:1:9` is not valid toml: string values must be quoted, expected literal string
        "#]],
    );
}

#[test]
fn config_file_with_invalid_utf8_is_refused() {
    let house = house!();
    let path = house.configure("");
    std::fs::write(path, b"model = \"\xff\"\n").unwrap();
    let output = house.run(&["tool", "list"]).code(3);
    expect![[r#"
        error: cannot read `$HOUSE/home/.config/jaato/config.toml`: it is not utf-8 (byte 9)
    "#]]
    .assert_eq(&house.normalize_output(&output.stderr));
}

#[test]
fn a_newer_version_makes_unknown_keys_a_warning() {
    let house = house!();
    house.configure("version = 2\nmoon = true\n[session]\nsteps_max = 9\n");
    let output = house.run(&["tool", "list"]).code(0);
    expect![[r#"
        note: ignored unknown key `moon` (user $HOUSE/home/.config/jaato/config.toml:2): the file is of a newer version than 1, which is what this host knows
    "#]].assert_eq(&house.normalize_output(&output.stderr));
    assert!(house.run(&["config", "show"]).code(0).stdout.contains('9'));
    assert_refused(
        &["version = 1\nmoon = true\n"],
        expect![[r#"
            error: unknown key `moon` (user $HOUSE/home/.config/jaato/config.toml:2)
            hint: known here: `model`, `provider`, `fallback`, `offline`, `environment`, `plugin_dirs`, `local`, `plugins`, `tools`, `session`, `sessions`, `permissions`, `caps`, `gc`, `ledger`, `web`, `terminals`, `prompt`, `models`, `providers`
        "#]],
    );
}

#[test]
fn config_file_given_as_an_option_must_exist() {
    let house = house!();
    let output = house.run(&["--config", "moon.toml", "tool", "list"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: cannot read `$HOUSE/workspace/moon.toml`: no such file
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn config_file_given_as_an_option_replaces_the_users_file() {
    let house = house!();
    house.configure("modle = 1\n");
    house.write("workspace/moon.toml", "[session]\nsteps_max = 3\n");
    let output = house.run(&["config", "show", "--config", "moon.toml"]).expect_silent();
    assert!(output.stdout.contains("moon.toml:2"), "{output}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a whole screen")]
fn each_value_is_shown_with_the_layer_that_it_came_from() {
    let house = house!();
    house.configure("provider = \"moon\"\n[tools]\ndisabled = [\"a\"]\n");
    house.write("workspace/.jaato/config.toml", "[session]\nsteps_max = 7\n");
    house.write("workspace/.env", "JAATO_SESSION_RETRY_BASE_MS=500\n");
    house.run(&["trust"]).expect_silent();
    let output = house
        .command(&["--offline", "config", "show"])
        .variable("JAATO_TOOLS_DISABLED", "b,c")
        .run()
        .expect_silent();
    expect![[r#"
        model = "local/qwen2.5-coder-1.5b"            # built-in
        provider = "moon"                             # user $HOUSE/home/.config/jaato/config.toml:1
        fallback = []                                 # built-in
        offline = true                                # command line --offline
        environment = "local"                         # built-in
        plugin_dirs = []                              # built-in
        local.download = false                        # built-in
        plugins.disabled = []                         # built-in
        plugins.isolated = []                         # built-in
        tools.enabled = []                            # built-in
        tools.offered = true                          # built-in
        tools.disabled = ["b", "c", "a"]              # variable JAATO_TOOLS_DISABLED, user $HOUSE/home/.config/jaato/config.toml:3
        tools.first = ["cli_based_tool", "readFile", "get_environment", "updateFile", "writeNewFile", "apply_patch", "grep_content", "glob_files", "request_clarification", "createPlan", "startPlan", "setStepStatus", "completePlan"]  # built-in
        tools.core_tokens_max = 3500                  # built-in
        tools.cli.pass = []                           # built-in
        session.steps_max = 7                         # workspace $HOUSE/workspace/.jaato/config.toml:2
        session.calls_per_step_max = 32               # built-in
        session.parallel_calls_max = 8                # built-in
        session.output_bytes_max = 16384              # built-in
        session.answer_bytes_max = 1048576            # built-in
        session.answer_tokens_max = 0                 # built-in
        session.empty_answers_max = 2                 # built-in
        session.provider_idle_ms = 120000             # built-in
        session.provider_keep_alive_ms = 900000       # built-in
        session.call_deadline_ms = 600000             # built-in
        session.hook_deadline_ms = 60000              # built-in
        session.auto_background_threshold_ms = 10000  # built-in
        session.tasks_max = 8                         # built-in
        session.objects_tokens_max = 2000             # built-in
        session.attempts_max = 5                      # built-in
        session.retry_base_ms = 500                   # variables file $HOUSE/workspace/.env:1 JAATO_SESSION_RETRY_BASE_MS
        session.retry_wait_ms_max = 30000             # built-in
        session.retry_silent = false                  # built-in
        session.request_interval_ms = 0               # built-in
        session.retry_after_ms_max = 120000           # built-in
        session.streaming = true                      # built-in
        session.temperature = (not set)               # built-in
        session.effort = (not set)                    # built-in
        session.seed = (not set)                      # built-in
        session.stop = []                             # built-in
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
        prompt.file = (not set)                       # built-in
    "#]].assert_eq(&house.normalize_output(&output.stdout));
}

#[test]
fn the_files_are_listed_with_whether_they_are_read() {
    let house = house!();
    let listed = |words: &[&str]| house.normalize_output(&house.run(words).expect_silent().stdout);
    expect![[r#"
        LAYER           STATE      FILE
        user            not there  $HOUSE/home/.config/jaato/config.toml
        workspace       not there  $HOUSE/workspace/.jaato/config.toml
        variables file  not there  $HOUSE/workspace/.env
    "#]]
    .assert_eq(&listed(&["config", "path"]));
    house.configure("offline = true\n");
    house.write("workspace/.env", "JAATO_OFFLINE=1\n");
    expect![[r#"
        LAYER           STATE        FILE
        user            read         $HOUSE/home/.config/jaato/config.toml
        workspace       not there    $HOUSE/workspace/.jaato/config.toml
        variables file  not trusted  $HOUSE/workspace/.env
    "#]]
    .assert_eq(&listed(&["config", "path"]));
    house.run(&["trust"]).expect_silent();
    house.write("workspace/moon.toml", "");
    expect![[r#"
        [
          {
            "layer": "user",
            "path": "$HOUSE/workspace/moon.toml",
            "state": "read"
          },
          {
            "layer": "workspace",
            "path": "$HOUSE/workspace/.jaato/config.toml",
            "state": "not there"
          },
          {
            "layer": "variables file",
            "path": "$HOUSE/workspace/.env",
            "state": "read"
          }
        ]
    "#]]
    .assert_eq(&listed(&["config", "path", "--config", "moon.toml", "--json"]));
}

#[test]
fn a_disabled_plugin_is_listed_and_not_used() {
    let house = house!(ships "probe");
    house.configure("[plugins]\ndisabled = [\"fixture-probe\"]\n");
    let list = house.run(&["plugin", "list"]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        PLUGIN            VERSION  FROM     STATUS    RUNS          OFFERS
        fixture-probe     0.1.0    shipped  disabled  -
        tool-environment  0.1.0    shipped  active    inside jaato  get_environment

        fixture-probe ($HOUSE/plugins/libfixture_probe.so): it is disabled by `[plugins] disabled`
          jaato plugin enable fixture-probe
    "#]]
    .assert_eq(&list.to_string());
    assert!(!house.run(&["tool", "list"]).expect_silent().stdout.contains("echo"));
    house.run(&["call", "count"]).code(2);
}

#[test]
fn disabled_tools_are_listed_and_cannot_be_called() {
    let house = house!(ships "echo");
    house.configure("[tools]\ndisabled = [\"get_environment\"]\n");
    expect![[r#"
        TOOL              PLUGIN            STATUS    PROMISES   DESCRIPTION
        count_bytes_echo  fixture-echo      enabled   read-only  `count_bytes_echo` counts the bytes of a text.
        get_environment   tool-environment  disabled  read-only  Get facts about this computer, its terminal and this session.
        list_tools        jaato             enabled   read-only  Find more tools.
        get_tool_schemas  jaato             enabled   read-only  Show tools with their arguments.
        view_environment  jaato             enabled   read-only  Look at objects that tools have found in this conversation.
    "#]].assert_eq(&house.run(&["tool", "list"]).expect_silent().stdout);
    let output = house.run(&["call", "get_environment"]).code(1);
    expect![[r#"
        exit 1
        --- stderr
        error: the tool `get_environment` is disabled by `[tools] disabled`
        hint: continue without it, or tell the user that it is needed
    "#]]
    .assert_eq(&output.to_string());
    house.run(&["call", "count_bytes_echo", r#"{"text": "a b"}"#]).expect_silent();
}

#[test]
fn only_tools_in_the_enabled_list_are_enabled() {
    let house = house!(ships "echo");
    house.configure("[tools]\nenabled = [\"count_bytes_echo\"]\n");
    expect![[r#"
        TOOL              PLUGIN            STATUS       PROMISES   DESCRIPTION
        count_bytes_echo  fixture-echo      enabled      read-only  `count_bytes_echo` counts the bytes of a text.
        get_environment   tool-environment  not enabled  read-only  Get facts about this computer, its terminal and this session.
        list_tools        jaato             enabled      read-only  Find more tools.
        get_tool_schemas  jaato             enabled      read-only  Show tools with their arguments.
        view_environment  jaato             enabled      read-only  Look at objects that tools have found in this conversation.
    "#]].assert_eq(&house.run(&["tool", "list"]).expect_silent().stdout);
    let output = house.run(&["call", "get_environment"]).code(1);
    expect![[r#"
        exit 1
        --- stderr
        error: the tool `get_environment` is disabled because `[tools] enabled` or `--tools` does not name it
        hint: continue without it, or tell the user that it is needed
    "#]].assert_eq(&output.to_string());
}

#[test]
fn settings_for_a_plugin_without_settings_are_refused_at_first_use() {
    let house = house!();
    house.configure("\n[plugins.tool-environment]\nmoon = 1\n");
    let output = house.run(&["call", "get_environment"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        note: `[plugins.tool-environment]` is set, but the plugin takes no configuration (user $HOUSE/home/.config/jaato/config.toml:3)
        error: `[plugins.tool-environment]` is set, but the plugin takes no configuration (user $HOUSE/home/.config/jaato/config.toml:3)
    "#]].assert_eq(&output.to_string());
}

#[test]
fn settings_are_checked_by_the_plugins_own_schema() {
    let house = house!();
    house.ship(&crate::support::fixtures::built_library("provider_scripted"));
    house.configure("model = \"scripted/test\"\n[plugins.provider-scripted]\nscript = 5\n");
    let output = house.run(&["run", "hello"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        note: `[plugins.provider-scripted]` is wrong at `/script`: `5` is a number, and it must be a text in quotes (user $HOUSE/home/.config/jaato/config.toml:3)
        error: `[plugins.provider-scripted]` is wrong at `/script`: `5` is a number, and it must be a text in quotes (user $HOUSE/home/.config/jaato/config.toml:3)
    "#]].assert_eq(&output.to_string());
    house.configure("model = \"scripted/test\"\n[plugins.provider-scripted]\nscirpt = \"x\"\n");
    let output = house.run(&["run", "hello"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        note: `[plugins.provider-scripted]` has no key `scirpt` (user $HOUSE/home/.config/jaato/config.toml:3)
        hint: did you mean `script`?
        error: `[plugins.provider-scripted]` has no key `scirpt` (user $HOUSE/home/.config/jaato/config.toml:3)
        hint: did you mean `script`?
    "#]].assert_eq(&output.to_string());
}

#[test]
fn settings_of_a_missing_plugin_are_ignored() {
    let house = house!();
    house.configure("[plugins.tool-moon]\nphase = \"full\"\n");
    house.run(&["tool", "list"]).code(0);
}

#[test]
fn misspelled_jaato_variable_causes_a_note() {
    let house = house!();
    let output = house.command(&["tool", "list"]).variable("JAATO_MODLE", "x/y").run().code(0);
    expect![[r#"
        note: variable `JAATO_MODLE` (the process) is unknown; did you mean `JAATO_MODEL`?
    "#]]
    .assert_eq(&house.normalize_output(&output.stderr));
}

#[test]
fn secrets_are_not_shown() {
    let house = house!();
    house.configure("[plugins.tool-moon]\napi_key = \"hush-hush\"\n");
    let output = house.run(&["config", "show"]).code(0);
    assert!(!output.stdout.contains("hush-hush"), "{output}");
}

#[test]
fn values_of_headers_variables_arguments_and_queries_are_not_shown() {
    let house = house!();
    house.configure(
        r#"[plugins.tool-moon]
base_url = "https://u:HUSH-1@e.example/v1?key=HUSH-2"
api_key_command = "echo HUSH-3"
headers = { cookie = "HUSH-4" }
servers = { a = { command = "srv", args = ["--token", "HUSH-5", "HUSH-6"], env = { X = "HUSH-7" } } }
"#,
    );
    let shown = house.run(&["config", "show"]).stdout;
    assert!(shown.contains("https://***@e.example/v1?…") && shown.contains("--token"), "{shown}");
    assert!(!shown.contains("HUSH"), "{shown}");
}
