//! Tests a plugin's own data: values, secrets, programs on the host's side, and counted tokens.

use std::fs;

use serde_json::{Value, json};

use crate::house;
use crate::support::{Command, House, Output, fixture};

/// Returns an installation in which the fixture has all grants that it lists, in a worker if
/// `in_worker` is set.
fn house_with_grant(in_worker: bool) -> Option<House> {
    let house = House::new()?;
    if in_worker {
        house.ship_to_user(&fixture("wants"));
        house.run(&["plugin", "grant", "fixture-wants"]).expect_silent();
    } else {
        house.ship(&fixture("wants"));
    }
    Some(house)
}

fn call_tool(house: &House, tool: &str, arguments: &Value) -> Output {
    house.run(&["call", tool, &arguments.to_string()])
}

fn service_arguments(operation: &str, request: &Value, bytes: &str) -> Value {
    json!({ "operation": operation, "request": request, "bytes": bytes })
}

#[track_caller]
fn ask_service(house: &House, operation: &str, request: &Value, bytes: &str) -> Value {
    call_tool(house, "ask_wanted", &service_arguments(operation, request, bytes)).code(0).json()
}

#[test]
fn stored_values_survive_host_restart_and_plugin_update() {
    for in_worker in [false, true] {
        let Some(house) = house_with_grant(in_worker) else { return };
        let key = json!({ "key": "moon/phase" });
        ask_service(&house, "store.set", &key, "full");
        let read = ask_service(&house, "store.get", &key, "");
        assert_eq!((&read["answer"]["found"], &read["bytes"]), (&json!(true), &json!("full")));
        // The instance's own context accesses the same store.
        let at_home = json!({ "operation": "store.get", "request": key, "at_home": true });
        assert_eq!(call_tool(&house, "ask_wanted", &at_home).code(0).json()["bytes"], "full");
        let here = json!({ "key": "moon/phase", "of": "workspace" });
        assert_eq!(ask_service(&house, "store.get", &here, "")["answer"]["found"], false);
        ask_service(&house, "store.set", &here, "dark");
        let elsewhere = house.path().join("elsewhere");
        fs::create_dir_all(elsewhere.join(".git")).unwrap();
        let arguments = service_arguments("store.get", &here, "").to_string();
        let other = house.command(&["call", "ask_wanted", &arguments]).directory(&elsewhere);
        assert_eq!(other.run().code(0).json()["answer"]["found"], false, "another workspace");
        // Another file with the same name is the same plugin.
        if in_worker {
            let file = house.user_plugins().join(fixture("wants").file_name().unwrap());
            let mut bytes = fs::read(&file).unwrap();
            bytes.push(0);
            fs::write(&file, bytes).unwrap();
        }
        assert_eq!(ask_service(&house, "store.get", &here, "")["bytes"], "dark");
        let folder = ask_service(&house, "store.folder", &json!({}), "")["answer"]["path"].clone();
        assert!(std::path::Path::new(folder.as_str().unwrap()).is_dir(), "{folder}");
        assert!(!house.workspace().join(".jaato").exists(), "nothing is written there");
    }
}

#[test]
fn invalid_requests_and_request_floods_of_a_plugin_are_bounded() {
    for in_worker in [false, true] {
        let Some(house) = house_with_grant(in_worker) else { return };
        let missing = house.path().join("missing").display().to_string();
        for (operation, request, told) in [
            ("store.set", json!({ "key": "" }), "a key has 1 to 200 bytes"),
            ("store.set", json!({ "key": "k".repeat(201) }), "a key has 1 to 200 bytes"),
            ("store.get", json!({ "key": 7 }), "invalid type"),
            ("store.get", json!({ "key": "k", "of": "moonlight" }), "moonlight"),
            ("store.set", json!({ "key": "k", "expected": "moonlight" }), "neither"),
            ("secret.set", json!({ "name": "" }), "the name of a secret"),
            ("secret.get", json!({ "name": [] }), "invalid type"),
            ("count", json!({}), "not both or neither"),
            ("count", json!({ "text": "a", "request": { "messages": [] } }), "not both or neither"),
            ("count", json!({ "text": "a", "model": "nobody/m" }), "no plugin offers"),
            ("host_process.spawn", json!({ "program": missing }), &missing),
            ("host_process.write", json!({ "process": 1 }), "has no running program"),
        ] {
            let output =
                call_tool(&house, "ask_wanted", &service_arguments(operation, &request, "x"));
            assert!(output.code != 0 && output.stderr.contains(told), "{operation}: {output}");
        }
        let storm = |operation: &str, request: Value, times: u32| {
            let arguments = json!({ "operation": operation, "request": request, "times": times });
            call_tool(&house, "ask_often", &arguments).code(0).json()
        };
        let secrets = storm("secret.set", json!({ "name": "s#" }), 70);
        assert_eq!(secrets, json!({ "ok": 64, "limit_reached": 6 }));
        assert_eq!(storm("store.set", json!({ "key": "k#" }), 200), json!({ "ok": 200 }));
        assert_eq!(storm("count", json!({ "text": "#" }), 200), json!({ "ok": 200 }));
    }
}

#[test]
fn conditional_write_fails_after_a_concurrent_change() {
    let house = house!(ships "wants");
    let absent = json!({ "key": "k", "expected": "absent" });
    ask_service(&house, "store.set", &absent, "first");
    let output =
        call_tool(&house, "ask_wanted", &service_arguments("store.set", &absent, "second"));
    assert!(output.stderr.contains("`k` has changed"), "{output}");
    assert_eq!(ask_service(&house, "store.get", &json!({ "key": "k" }), "")["bytes"], "first");
}

#[test]
fn full_disk_leaves_the_stored_value_unchanged() {
    let house = house!(ships "wants");
    ask_service(&house, "store.set", &json!({ "key": "k" }), "small");
    // A limit on file size simulates a full disk. The writer gets an error instead of a signal.
    let large =
        service_arguments("store.set", &json!({ "key": "k" }), &"x".repeat(600 * 1024)).to_string();
    let file = house.write(
        "large.json",
        &format!(
            "{}\n",
            json!({ "tool": "ask_wanted", "args":
        serde_json::from_str::<Value>(&large).unwrap() })
        ),
    );
    let line = format!(
        "trap '' XFSZ; ulimit -f 512; {} call --batch < {}",
        house.binary().display(),
        file.display()
    );
    let output = Command::program(&house, "bash", &["-c", &line]).run();
    assert!(output.stdout.contains("its stored value is unchanged"), "{output}");
    assert_eq!(ask_service(&house, "store.get", &json!({ "key": "k" }), "")["bytes"], "small");
}

#[test]
fn secrets_belong_to_one_plugin_and_are_masked() {
    for in_worker in [false, true] {
        let Some(house) = house_with_grant(in_worker) else { return };
        let secret = "correct-horse-battery-staple";
        let kept = ask_service(&house, "secret.set", &json!({ "name": "token" }), secret);
        assert_eq!(kept["answer"]["by_system"], false);
        assert_eq!(
            ask_service(&house, "secret.get", &json!({ "name": "token" }), "")["bytes"],
            secret
        );
        let told = call_tool(&house, "tell_secret", &json!({ "name": "token" })).code(1);
        assert!(told.stderr.contains("the server refused `********`"), "{told}");
        assert!(!told.to_string().contains(secret));
        let log = fs::read_to_string(house.cache_folder().join("jaato.log")).unwrap_or_default();
        assert!(!log.contains(secret), "{log}");
        ask_service(&house, "secret.delete", &json!({ "name": "token" }), "");
        let gone = ask_service(&house, "secret.get", &json!({ "name": "token" }), "");
        assert_eq!(gone["answer"]["found"], false);
    }
}

#[test]
fn secrets_are_kept_by_the_systems_tool_if_available() {
    let house = house!(ships "wants");
    // Stores its input under its arguments, like the real one.
    let tool = house.write(
        "tools/secret-tool",
        "#!/bin/sh\nverb=$1; shift\n[ \"$verb\" = store ] && shift\n\
         file=$HOME/kept-$(printf '%s ' \"$@\" | tr -c 'a-z0-9-' _)\ncase $verb in\n\
         store) cat > \"$file\";;\nlookup) cat \"$file\";;\nclear) rm -f \"$file\";;\nesac\n",
    );
    crate::support::set_mode(&tool, 0o755);
    let path = format!("{}:/usr/bin:/bin", house.path().join("tools").display());
    let run = |operation: &str, bytes: &str| {
        let arguments =
            service_arguments(operation, &json!({ "name": "token" }), bytes).to_string();
        let command = house.command(&["call", "ask_wanted", &arguments]);
        command.variable("PATH", &path).run().code(0).json()
    };
    assert_eq!(run("secret.set", "moonlight")["answer"]["by_system"], true);
    let kept = house.home().join("kept-service_jaato_plugin_fixture-wants_token_");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "moonlight");
    let own = house.home().join(".local/share/jaato/plugin-secrets/fixture-wants");
    for entry in fs::read_dir(own).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().len(), 0, "the secret is not in a file");
    }
    assert_eq!(run("secret.get", "")["bytes"], "moonlight");
    // A value that is not text is not passed to the tool.
    assert_eq!(run("secret.set", "two\nlines")["answer"]["by_system"], false);
    assert_eq!(run("secret.get", "")["bytes"], "two\nlines");
    run("secret.delete", "");
    assert_eq!(run("secret.get", "")["answer"]["found"], false);
}

#[test]
fn helper_programs_live_as_long_as_their_instance() {
    for in_worker in [false, true] {
        let Some(house) = house_with_grant(in_worker) else { return };
        let mut batch = house.command(&["call", "--batch"]).start();
        let mut said = |line: &str| {
            let call = json!({ "tool": "use_helper", "args": { "line": line } });
            batch.write(format!("{call}\n").as_bytes());
            serde_json::from_str::<Value>(&batch.next_line()).unwrap()
        };
        let first = said("one");
        let second = said("two");
        let result = |answer: &Value| answer.get("result").unwrap_or(answer).clone();
        let (first, second) = (result(&first), result(&second));
        assert_eq!((&first["repeated"], &first["is_new"]), (&json!("one\n"), &json!(true)));
        assert_eq!((&second["repeated"], &second["is_new"]), (&json!("two\n"), &json!(false)));
        assert_eq!(first["pid"], second["pid"]);
        let pid = first["pid"].as_u64().unwrap();
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
        batch.finish().code(0);
        house.assert_no_processes();
    }
}

#[test]
fn tokens_are_estimated_when_no_provider_counts_them() {
    let house = house!(ships "wants");
    let counted = ask_service(&house, "count", &json!({ "text": "moonlight" }), "");
    assert_eq!(counted["answer"], json!({ "tokens": 3, "is_estimate": true }));
    house.ship(&crate::support::fixtures::built_library("provider_scripted"));
    let of_model = json!({ "text": "moonlight", "model": "scripted/test" });
    let counted = ask_service(&house, "count", &of_model, "");
    let expected = json!({ "tokens": 3, "is_estimate": true, "model": "scripted/test" });
    assert_eq!(counted["answer"], expected);
}

#[test]
fn plugin_settings_come_from_variables_and_show_their_origin() {
    let house = house!(ships "wants");
    house.configure("[plugins.fixture-wants]\nphase = \"new\"\n");
    let file = house.write("named.env", "WANTS_DAYS=7\nWANTS_PHASE=full\n");
    let file = file.display().to_string();
    let told = house.run(&["call", "tell_settings", "{}", "--env-file", &file]).code(0).json();
    assert_eq!(told, json!({ "phase": "full", "days": 7 }));
    let shown = house.command(&["config", "show", "--env-file", &file]);
    let shown = shown.variable("WANTS_DAYS", "9").run().code(0);
    let line = |key: &str| {
        let start = format!("plugins.fixture-wants.{key} ");
        let line = shown.stdout.lines().find(|line| line.starts_with(&start)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("days"), "plugins.fixture-wants.days = 9 # variable WANTS_DAYS");
    let of_file = line("phase");
    assert!(of_file.contains("phase = \"full\" #") && of_file.contains("named.env:2"), "{of_file}");
    let all = [
        &["tool", "list"][..],
        &["plugin", "list"],
        &["doctor"],
        &["model", "list"],
        &["provider", "list"],
        &["command"],
        &["environment", "list"],
        &["config", "path"],
    ];
    let missing = house.path().join("missing.env").display().to_string();
    for words in all {
        let output = house.run(&[words, &["--env-file", &missing]].concat());
        assert_eq!(output.code, 3, "{words:?}: {output}");
        assert!(output.stderr.contains(&missing), "{words:?}: {output}");
    }
}

#[test]
fn workspace_variables_set_only_settings_that_the_schema_allows() {
    let house = house!(ships "wants");
    house.write("workspace/.env", "WANTS_PHASE=full\nWANTS_DAYS=3\n");
    let settings = || house.run(&["call", "tell_settings", "{}"]).code(0).json();
    assert_eq!(settings(), json!({}));
    house.run(&["trust"]).code(0);
    assert_eq!(settings(), json!({ "phase": "full" }));
    let shown = house.run(&["config", "show"]).code(0);
    let line = shown.stdout.lines().find(|line| line.contains("fixture-wants")).unwrap();
    assert!(line.contains("phase = \"full\"") && line.contains("/.env:1"), "{shown}");
    assert!(!shown.stdout.contains("fixture-wants.days"), "{shown}");
}

#[test]
fn untrusted_plugin_gets_no_settings_from_variables() {
    let house = house!(drops in "wants");
    let call = house.command(&["call", "tell_settings", "{}"]).variable("WANTS_PHASE", "full");
    assert_eq!(call.run().code(0).json(), json!({}));
    let shown = house.command(&["config", "show"]).variable("WANTS_PHASE", "full").run().code(0);
    assert!(!shown.stdout.contains("fixture-wants"), "{shown}");
}

#[test]
fn invalid_plugin_settings_are_reported_with_their_location() {
    let house = house!(ships "wants");
    let stderr = |text: &str, variable: Option<&str>| {
        house.configure(text);
        let call = house.command(&["call", "get_environment"]);
        let call = match variable {
            Some(value) => call.variable("WANTS_DAYS", value),
            None => call,
        };
        let output = call.run().code(0);
        house.normalize_output(&output.stderr)
    };
    let config = "user $HOUSE/home/.config/jaato/config.toml:2";
    assert_eq!(
        stderr("[plugins.fixture-wants]\nphse = \"full\"\n", None),
        format!(
            "note: `[plugins.fixture-wants]` has no key `phse` ({config})\nhint: did you mean `phase`?\n"
        )
    );
    let wrong = stderr("[plugins.fixture-wants]\nphase = 3\n", None);
    assert!(wrong.contains("is wrong at `/phase`") && wrong.contains(config), "{wrong}");
    let wrong = stderr("", Some("many"));
    assert!(wrong.contains("`WANTS_DAYS` wants a whole number (variable WANTS_DAYS)"), "{wrong}");
    let wrong = stderr("", Some("-3"));
    assert!(wrong.contains("is wrong at `/days`"), "{wrong}");
    assert!(wrong.contains("(variable WANTS_DAYS)"), "{wrong}");
    assert_eq!(stderr("[plugins.fixture-wants]\nphase = \"full\"\n", Some("3")), "");
}
