//! Configuration files: what is refused, with which words, and what is only a warning.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::bench::ConfigFixture;
use expect_test::{Expect, expect};

/// Checks the error of each of these files.
#[track_caller]
fn check_load(texts: &[&str], expected: Expect) {
    let bench = ConfigFixture::new();
    let refusal = |text: &&str| {
        bench.write_user_config(text);
        bench.refusal()
    };
    expected.assert_eq(&texts.iter().map(refusal).collect::<Vec<_>>().join("\n"));
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    check_load(
        &["version = 1\n\n[session]\nstep_max = 3\n", "ofline = true\n", "steps_max = 3\n"],
        expect![[r#"
            unknown key `session.step_max` (user ROOT/user/config/config.toml:4)
            hint: did you mean `session.steps_max`?
            unknown key `ofline` (user ROOT/user/config/config.toml:1)
            hint: did you mean `offline`?
            unknown key `steps_max` (user ROOT/user/config/config.toml:1)
            hint: did you mean `session.steps_max`?"#]],
    );
}

#[test]
fn unknown_key_without_a_similar_key_lists_the_known_keys() {
    check_load(
        &["[tools]\ncolour = 'red'\n", "[colour]\nx = 1\n"],
        expect![[r#"
            unknown key `tools.colour` (user ROOT/user/config/config.toml:2)
            hint: known here: `enabled`, `offered`, `disabled`, `first`, `core_tokens_max`, `cli.pass`
            unknown key `colour` (user ROOT/user/config/config.toml:1)
            hint: known here: `model`, `provider`, `fallback`, `offline`, `environment`, `plugin_dirs`, `local`, `plugins`, `tools`, `session`, `sessions`, `permissions`, `caps`, `gc`, `ledger`, `web`, `terminals`, `prompt`, `models`, `providers`"#]],
    );
}

#[test]
fn misspelled_section_gets_a_suggestion() {
    check_load(
        &["[tool]\ndisabled = ['a']\n"],
        expect![[r#"
            unknown key `tool` (user ROOT/user/config/config.toml:1)
            hint: did you mean `tools`?"#]],
    );
}

#[test]
fn wrong_type_error_names_expected_and_found_type() {
    check_load(
        &[
            "offline = 'yes'\n",
            "[tools]\nenabled = ['a', 3]\n",
            "session = 3\n",
            "[model]\nname = 'x'\n",
        ],
        expect![[r#"
            `offline` takes true or false, but is the text `yes` (user ROOT/user/config/config.toml:1)
            hint: see `offline` in docs/configuration.md
            `tools.enabled` takes a list of names, but is the list [the text `a`, the number `3`] (user ROOT/user/config/config.toml:2)
            hint: see `tools.enabled` in docs/configuration.md
            `session` takes a section `[session]`, but is the number `3` (user ROOT/user/config/config.toml:1)
            hint: see `session` in docs/configuration.md
            `model` takes a model as `provider/model`, or your own name for it, but is a section (user ROOT/user/config/config.toml:1)
            hint: see `model` in docs/configuration.md"#]],
    );
}

#[test]
fn a_number_out_of_range_is_refused_at_both_ends_and_taken_at_the_limits() {
    check_load(
        &[
            "[session]\nsteps_max = 0\n",
            "[session]\nsteps_max = 10_001\n",
            "[session]\nsteps_max = -1\n",
        ],
        expect![[r#"
            `session.steps_max` takes a whole number from 1 to 10000, but is `0` (user ROOT/user/config/config.toml:2)
            hint: see `session.steps_max` in docs/configuration.md
            `session.steps_max` takes a whole number from 1 to 10000, but is `10001` (user ROOT/user/config/config.toml:2)
            hint: see `session.steps_max` in docs/configuration.md
            `session.steps_max` takes a whole number from 1 to 10000, but is the number `-1` (user ROOT/user/config/config.toml:2)
            hint: see `session.steps_max` in docs/configuration.md"#]],
    );
    for steps in [1, 10_000] {
        let bench = ConfigFixture::new();
        bench.write_user_config(&format!("[session]\nsteps_max = {steps}\n"));
        assert_eq!(bench.load_config().unwrap().session.steps_max, steps);
    }
}

#[test]
fn a_wrong_value_is_refused_even_where_a_later_layer_wins() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config("offline = 3\n");
    bench.set_variable("JAATO_OFFLINE", "1");
    assert!(bench.load_config().is_err());
}

#[test]
fn unknown_keys_in_a_newer_file_are_warnings() {
    let bench = ConfigFixture::new();
    bench.write_user_config("version = 2\noffline = true\ncolour = 'red'\n[session]\nmood = 1\n");
    let config = bench.load_config().unwrap();
    assert!(config.offline);
    let warnings: Vec<_> = config.warnings.iter().map(|one| one.to_string() + "\n").collect();
    expect![[r#"
        ignored unknown key `colour` (user ROOT/user/config/config.toml:3): the file is of a newer version than 1, which is what this host knows
        ignored unknown key `session.mood` (user ROOT/user/config/config.toml:5): the file is of a newer version than 1, which is what this host knows
    "#]]
    .assert_eq(&bench.relative_text(&warnings.concat()));
}

#[test]
fn invalid_version_is_refused() {
    for bad in ["0", "-1", "'1'", "1.0", "true"] {
        let bench = ConfigFixture::new();
        bench.write_user_config(&format!("version = {bad}\n"));
        let error = bench.load_config().unwrap_err();
        assert!(error.to_string().starts_with("`version` takes a whole number"), "{bad}: {error}");
    }
}

#[test]
fn file_that_is_not_toml_not_utf8_or_too_large_is_refused() {
    check_load(
        &["offline = true\n[session\n"],
        expect![[r#"
            `ROOT/user/config/config.toml:2:9` is not valid toml: unclosed table, expected `]`"#]],
    );
    let bench = ConfigFixture::new();
    let path = bench.folders.config_file().unwrap();
    std::fs::write(&path, b"a = '\xff'").unwrap();
    bench.check_refusal(expect![[
        r#"cannot read `ROOT/user/config/config.toml`: it is not utf-8 (byte 5)"#
    ]]);
    bench.write_user_config(&"#".repeat(1024 * 1024));
    assert!(bench.load_config().is_ok());
    bench.write_user_config(&"#".repeat(1024 * 1024 + 1));
    bench.check_refusal(expect![[
        r#"cannot read `ROOT/user/config/config.toml`: it is larger than 1048576 bytes"#
    ]]);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(bench.load_config().unwrap_err().to_string().starts_with("cannot read `"));
}

#[test]
fn settings_of_plugins_are_kept_raw_with_their_places() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config(
        "[plugins]\ndisabled = ['tool-x']\n[plugins.tool-web]\nurl = 'http://u:p@h/'\nlimit = 3\n\
         [plugins.tool-web.auth]\napi_key = 's3cret'\nuser = 'bob'\n",
    );
    bench.write_workspace_file(
        ".jaato/config.toml",
        "[plugins.tool-web]\nlimit = 4\nservers = [\n  { name = 'a' },\n  { name = 'b' },\n]\n",
    );
    bench.trust_workspace();
    let config = bench.load_config().unwrap();
    let settings = &config.plugin_settings["tool-web"];
    let expected = serde_json::json!({
        "auth": { "api_key": "s3cret", "user": "bob" },
        "limit": 4,
        "servers": [{ "name": "a" }, { "name": "b" }],
        "url": "http://u:p@h/",
    });
    assert_eq!(serde_json::Value::Object(settings.values().clone()), expected);
    let place = |pointer| bench.relative_text(&settings.origin(pointer).unwrap().to_string());
    assert_eq!(place("/limit"), "workspace ROOT/work/.jaato/config.toml:2");
    assert_eq!(place("/servers/1/name"), "workspace ROOT/work/.jaato/config.toml:5");
    assert_eq!(place("/auth/user"), "user ROOT/user/config/config.toml:8");
    assert_eq!(place("/auth/missing"), "user ROOT/user/config/config.toml:6");
    assert_eq!(settings.origin("/none"), None);
}

#[test]
fn secrets_are_not_shown() {
    let bench = ConfigFixture::new();
    bench.write_user_config(
        "[plugins.p]\napi_key = 'hush'\nurl = 'http://bob:hush@h/x'\nn = 1\n\
         args = ['--token', 'hush', 80, { a = 'hush' }]\nrun_command = ['srv', '-k', 'hush', 1]\n\
         text_command = 'srv ${A:-x hush} --b'\n\
         [plugins.p.deep]\nlist = [{ token = 'hush', name = 'ok' }]\nsecret = { a = 'hush' }\n",
    );
    let shown = bench.load_config().unwrap().show_text();
    assert!(!shown.contains("hush"), "{shown}");
    let plugin: String = shown
        .lines()
        .filter(|it| it.starts_with("plugins.p."))
        .fold(String::new(), |all, line| all + line.split("  #").next().unwrap().trim_end() + "\n");
    expect![[r#"
        plugins.p.api_key = ********
        plugins.p.args = ["--token","…","80","…"]
        plugins.p.deep = {"list":[{"name":"ok","token":"********"}],"secret":"********"}
        plugins.p.n = 1
        plugins.p.run_command = ["srv","-k","…","1"]
        plugins.p.text_command = "srv ${A} --b"
        plugins.p.url = "http://***@h/x"
    "#]]
    .assert_eq(&plugin);
}

#[test]
fn configuration_listing_shows_limits_with_secret_like_names() {
    let bench = ConfigFixture::new();
    bench.write_user_config(
        "[session]\nobjects_tokens_max = 7\n[models.\"o/key\"]\ncontext_limit = 800\n\
         [plugins.p]\nmax_tokens = 4096\nkeyed = true\npassword = 1234\napi_keys = []\n\
         token_limits = { prompt = 5, answer = [6] }\nkeywords = [\"moon\"]\n",
    );
    let shown = bench.load_config().unwrap().show_text();
    let lines = shown.lines().map(|line| line.split("  #").next().unwrap().trim_end());
    let named = ["session.objects_tokens_max", "models.", "plugins.p."];
    let lines = lines.filter(|line| named.iter().any(|name| line.starts_with(name)));
    expect![[r#"
        session.objects_tokens_max = 7
        models."o/key".context_limit = 800
        plugins.p.api_keys = []
        plugins.p.keyed = true
        plugins.p.keywords = ["moon"]
        plugins.p.max_tokens = 4096
        plugins.p.password = ********
        plugins.p.token_limits = {"answer":[6],"prompt":5}
    "#]]
    .assert_eq(&lines.fold(String::new(), |all, line| all + line + "\n"));
}

#[test]
fn plugins_section_accepts_only_sections_and_two_lists() {
    check_load(
        &["[plugins]\ntool-web = 3\n", "[plugins.p]\nx = inf\n"],
        expect![[r#"
            unknown key `plugins.tool-web` (user ROOT/user/config/config.toml:2)
            hint: known here: `disabled`, `isolated`
            `plugins.p.x` takes a number of at most 64 bits, not `inf` or `nan`, but is the number `inf` (user ROOT/user/config/config.toml:2)
            hint: see `plugins.p.x` in docs/configuration.md"#]],
    );
}

#[test]
fn model_settings_are_validated() {
    check_load(
        &[
            "[models.\"openai/x\"]\ncontext_limt = 9000\n",
            "[models.\"openai/x\"]\ncontext_limit = 255\n",
            "[models.\"openai/x\"]\ncontext_limit = \"8k\"\n",
            "[models.x]\ncontext_limit = 9000\n",
            "[models]\n\"openai/x\" = 9000\n",
            "models = 9000\n",
        ],
        expect![[r#"
            unknown key `models."openai/x".context_limt` (user ROOT/user/config/config.toml:2)
            hint: did you mean `context_limit`?
            `models."openai/x".context_limit` takes a whole number from 256 to 100000000, but is the number `255` (user ROOT/user/config/config.toml:2)
            hint: see `models."openai/x".context_limit` in docs/configuration.md
            `models."openai/x".context_limit` takes a whole number from 256 to 100000000, but is the text `8k` (user ROOT/user/config/config.toml:2)
            hint: see `models."openai/x".context_limit` in docs/configuration.md
            `models."x"` takes `model = "provider/model"`, being a name of your own, but is a section without (user ROOT/user/config/config.toml:1)
            hint: see `models."x"` in docs/configuration.md
            `models."openai/x"` takes a section, but is the number `9000` (user ROOT/user/config/config.toml:2)
            hint: see `models."openai/x"` in docs/configuration.md
            `models` takes a section `[models]`, but is the number `9000` (user ROOT/user/config/config.toml:1)
            hint: see `models` in docs/configuration.md"#]],
    );
}

#[test]
fn model_setting_is_shown_with_its_origin() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config("[models.\"openai/x\"]\ncontext_limit = 9000\n[models.\"local/y\"]\n");
    bench.write_workspace_file(
        ".jaato/config.toml",
        "[models.\"openai/x\"]\ncontext_limit = 8000\n",
    );
    bench.trust_workspace();
    let config = bench.load_config().unwrap();
    assert_eq!(config.model_settings["openai/x"].context_limit, Some(8_000));
    assert_eq!(config.model_settings["local/y"].context_limit, None);
    let line =
        config.show_text().lines().find(|line| line.starts_with("models.")).unwrap().to_owned();
    assert!(line.starts_with("models.\"openai/x\".context_limit = 8000"), "{line}");
    assert!(line.contains("/.jaato/config.toml:2"), "{line}");
}

#[test]
fn workspace_cannot_set_model_price_extra_body_or_extra_headers() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config("[models.'a/b']\nprice = { input = 3, output = 15 }\n");
    bench.write_workspace_file(
        ".jaato/config.toml",
        "[models.'a/b']\nprice = { input = 0, output = 0 }\nextra_body = { tools = [] }\n\
         extra_headers = { x = 'y' }\ntemperature = 0.5\n",
    );
    bench.trust_workspace();
    let config = bench.load_config().unwrap();
    let says = config.settings_for_model(&config.model_by_name("a/b"));
    assert_eq!(says.price.map(|price| price.input), Some(3.0));
    assert_eq!((says.extra_body, says.extra_headers), (None, None));
    assert!(says.temperature.is_some());
    let told: Vec<_> = config.warnings.iter().map(|warning| warning.text.clone()).collect();
    assert_eq!(told.iter().filter(|text| text.contains("can set it")).count(), 3, "{told:?}");
}

#[test]
fn model_alias_of_the_user_has_its_own_settings() {
    let mut bench = ConfigFixture::new();
    bench.write_user_config(
        "model = 'fast'\n[models.fast]\nmodel = 'work/gpt-5-mini'\neffort = 'low'\n\
         [models.'work/gpt-5-mini']\neffort = 'high'\ntemperature = 0.25\nstop = ['END']\n\
         context_limit = 9000\n",
    );
    let config = bench.load_config().unwrap();
    assert_eq!(config.model.as_str(), "work/gpt-5-mini");
    assert_eq!(config.model_alias.as_deref(), Some("fast"));
    let says = config.settings_for_model(&config.model_by_name("fast"));
    assert_eq!(says.effort, jaato_config::parse_effort("low"));
    assert_eq!(says.temperature.map(|it| it.get()), Some(0.25));
    assert_eq!((says.context_limit, says.seed), (Some(9000), None));
    let shown = config.show_text();
    for line in [
        "models.\"fast\".model = \"work/gpt-5-mini\"",
        "models.\"fast\".effort = \"low\"",
        "models.\"work/gpt-5-mini\".temperature = 0.25",
        "models.\"work/gpt-5-mini\".stop = [\"END\"]",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    // A variable, and the command line, also accept it.
    bench.overrides.model = jaato_config::parse_model_name("fast");
    assert_eq!(bench.load_config().unwrap().model_alias.as_deref(), Some("fast"));
    bench.overrides.model = jaato_config::parse_model_name("slow");
    let config = bench.load_config().unwrap();
    assert_eq!((config.model.as_str(), config.model_alias), ("slow", None), "no alias named it");
}
