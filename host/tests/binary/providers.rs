//! Tests providers under other names: each with its own server, key and instance.

use std::fs;

use serde_json::json;

use crate::house;
use crate::support::House;
use crate::support::openai::{RUN, SECRET, assert_key_not_saved, openai_command, ship_openai};
use crate::support::server::{Answer, Server};

/// Adds a provider of the same plugin as the others.
fn configure_provider(house: &House, name: &str, server: &Server, lines: &str) {
    let base = server.base_url();
    let text = format!("[providers.{name}]\nplugin = \"openai\"\nbase_url = \"{base}\"\n{lines}\n");
    house.configure_more(&text);
}

#[test]
fn two_providers_of_one_plugin_have_separate_keys_and_headers() {
    let house = house!(ship_openai);
    let (work, home) =
        (Server::start([Answer::text(&["w"])]), Server::start([Answer::text(&["h"])]));
    configure_provider(
        &house,
        "work",
        &work,
        "api_key_env = \"WORK_KEY\"\nheaders = { x-team = \"moon\" }",
    );
    let printed = "api_key_command = \"echo asked >> asked; echo home-key-0123456789\"";
    configure_provider(&house, "home", &home, printed);
    let ask = |model: &str| {
        let words = ["run", "--model", model, "hello"];
        let command = house.command(&words).variable("WORK_KEY", "work-key-0123456789");
        // The vendor's own key is only for the vendor.
        command.variable("OPENAI_API_KEY", "sk-of-the-vendor-0123456789").run().code(0).stdout
    };
    assert_eq!((ask("work/one"), ask("home/two")), ("w\n".to_owned(), "h\n".to_owned()));
    let header = |server: &Server, name: &str| {
        server.requests()[0].header(name).map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(header(&work, "authorization"), "Bearer work-key-0123456789");
    assert_eq!(header(&home, "authorization"), "Bearer home-key-0123456789");
    assert_eq!((header(&work, "x-team"), header(&home, "x-team")), ("moon".into(), String::new()));
    assert_eq!(work.requests()[0].json()["model"], "one");
    // The command ran once for the one request, and not again.
    assert_eq!(fs::read_to_string(house.home().join("asked")).unwrap(), "asked\n");
    assert_key_not_saved(&house);
    house.assert_no_processes();
}

#[test]
fn errors_in_a_providers_section_name_their_location() {
    let house = house!(ship_openai);
    let server = Server::start([]);
    configure_provider(&house, "work", &server, "api_key_env = \"WORK_KEY\"");
    configure_provider(&house, "home", &server, "api_key_command = \"exit 3\"");
    house.configure_more("[providers.odd]\nplugin = \"tool-cli\"\n[providers.sun]\n");
    let told = |model: &str| house.command(&["run", "--model", model, "hello"]).run().stderr;
    let work = told("work/one");
    assert!(work.contains("`WORK_KEY`, which `api_key_env` names ("), "{work}");
    let home = told("home/one");
    assert!(home.contains("the key command of `api_key_command` ("), "{home}");
    assert!(home.contains(") ended with 3\n"), "{home}");
    let odd = told("odd/one");
    assert!(odd.contains("`[providers.odd]` does not name a provider plugin ("), "{odd}");
    let sun = told("sun/one");
    assert!(sun.contains("`[providers.sun]` does not name its plugin"), "{sun}");
    let moon = told("moon/one");
    assert!(
        moon.contains("known providers are: ")
            && moon.contains(", home, ")
            && moon.contains(", odd, openai"),
        "{moon}"
    );
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn model_alias_applies_its_options() {
    let house = house!(ship_openai);
    let server = Server::start([Answer::text(&["one"]), Answer::text(&["two"])]);
    configure_provider(&house, "work", &server, "");
    house.configure_more("[models.fast]\nmodel = \"work/mini\"\ntemperature = 0.5\n");
    house.command(&["run", "--model", "fast", "hello"]).run().code(0);
    let words = ["run", "--model", "fast", "--temperature", "1", "hello"];
    house.command(&words).run().code(0);
    let asked: Vec<_> = server.requests().iter().map(|asked| asked.json()).collect();
    assert_eq!((&asked[0]["model"], &asked[0]["temperature"]), (&"mini".into(), &0.5.into()));
    assert_eq!(asked[1]["temperature"], 1.0);
    let slow = house.command(&["run", "--model", "slow", "hello"]).run();
    assert!(
        slow.stderr.contains("the provider of model `slow` is unknown: use `provider/model`"),
        "{slow}"
    );
    assert!(slow.stderr.contains("or one of your names: `fast`"), "{slow}");
}

#[test]
fn model_list_asks_all_configured_providers() {
    let house = house!(ship_openai);
    let server = Server::start([]);
    configure_provider(&house, "work", &server, "");
    configure_provider(&house, "home", &server, "");
    let output = house.command(&["model", "list"]).run().code(0);
    for model in ["work/test", "home/test"] {
        assert!(output.stdout.contains(model), "{output}");
    }
    let shown = house.command(&["config", "show"]).run().code(0).stdout;
    assert!(shown.contains("providers.work.plugin = \"openai\""), "{shown}");
}

#[test]
fn legacy_ai_variables_are_honoured() {
    let house = house!(ship_openai);
    let busy = || Answer::error(503, "busy");
    let server = Server::start([busy(), Answer::text(&["hello"]), busy(), Answer::text(&["hi"])]);
    let run = |name: &str, value: &str| {
        let command =
            openai_command(&house, &server, &RUN).variable("AI_RETRY_BASE_DELAY", "0.001");
        command.variable(name, value).run().code(0)
    };
    let told = run("AI_USE_CHAT_FUNCTIONS", "0");
    assert!(told.stderr.contains("trying again"), "{told}");
    assert_eq!(server.requests()[0].json().get("tools"), None);
    let silent = run("AI_RETRY_LOG_SILENT", "1");
    assert_eq!((silent.stdout.as_str(), silent.stderr.contains("trying again")), ("hi\n", false));
    assert!(server.requests()[3].json()["tools"].is_array());
}

#[test]
fn provider_check_requests_an_answer_and_a_tool_call() {
    let house = house!(ship_openai);
    let server = Server::start([
        Answer::text_of_prompt("Hello.", 321),
        Answer::calls(&[("get_environment", json!({ "aspect": "os" }))]),
        Answer::text(&["Linux."]),
    ]);
    configure_provider(&house, "work", &server, "api_key_env = \"WORK_KEY\"");
    let check = || {
        let command = house.command(&["provider", "check", "work"]);
        command.variable("WORK_KEY", "work-key-0123456789")
    };
    let output = check().run().code(0);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines[0], "provider   work (provider-openai)");
    assert_eq!(lines[1], format!("server     {}", server.base_url()));
    assert_eq!(lines[2..4], ["key        found: variable WORK_KEY", "model      work/test"]);
    assert_eq!(lines[4], "answer     Hello.");
    assert!(lines[5].starts_with("time       ") && lines[5].ends_with(" s in all"), "{output}");
    assert!(lines[6].starts_with("tokens     321 in (0 of them from a cache), "), "{output}");
    assert_eq!(lines[7], "tool call  called `get_environment` and answered: Linux.");
    assert_eq!(lines[8], "it works");
    // Only the reading tool is offered.
    let tools = server.requests()[0].json()["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    assert_key_not_saved(&house);
    house.assert_no_processes();
}

#[test]
fn failed_provider_check_explains_the_reason() {
    let house = house!(ship_openai);
    let server = Server::start([
        Answer::error(401, "invalid api key"),
        Answer::text(&["Hello."]),
        Answer::text(&["I would rather not."]),
    ]);
    configure_provider(&house, "work", &server, "");
    house.configure_more("[providers.broken]\nplugin = \"openai\"\nheaders = 1\n");
    let check = |name: &str| house.run(&["provider", "check", name]);
    let refused = check("work/m").code(5);
    assert!(refused.stdout.contains("key        none; looked for `OPENAI_API_KEY`"), "{refused}");
    assert!(refused.stderr.contains("invalid api key"), "{refused}");
    let no_calls = check("work/m").code(1);
    assert!(no_calls.stdout.ends_with("it answers, but calls no tools\n"), "{no_calls}");
    let vendor = check("openai/gpt-5-mini").code(3);
    assert!(vendor.stdout.contains("server     https://api.openai.com"), "{vendor}");
    assert!(vendor.stderr.contains("there is no key for `https://api.openai.com`"), "{vendor}");
    let broken = check("broken/m").code(3);
    assert!(broken.stderr.contains("`headers` of `[providers.broken]` wants"), "{broken}");
    let moon = check("moon").code(3);
    assert!(moon.stderr.contains("known providers are: broken, "), "{moon}");

    let list = house.run(&["provider", "list"]).code(0);
    for line in [server.base_url().as_str(), "none", "`headers` of `[providers.broken]`"] {
        assert!(list.stdout.contains(line), "{list}");
    }
    let listed = house.run(&["provider", "list", "--json"]).code(0).json();
    let of = |name: &str| {
        let all = listed["providers"].as_array().unwrap();
        all.iter().find(|it| it["provider"] == name).unwrap().clone()
    };
    assert_eq!(of("work")["server"], server.base_url());
    assert_eq!(of("openai")["server"], "https://api.openai.com");
    assert!(of("broken")["problem"].is_object());
}

#[test]
fn login_saves_an_api_key_and_logout_deletes_it() {
    let house = house!(ship_openai);
    crate::support::ship_provider(&house, "provider_github_models");
    let server = Server::start([Answer::text(&["hello"])]);
    let line = format!("base_url = {:?}\n", server.base_url());
    house.configure_more(&format!("[providers.work]\nplugin = \"openai\"\n{line}"));
    let login = house.command(&["provider", "login", "work"]).input(format!("{SECRET}\n")).run();
    login.code(0);
    let file = house.home().join(".local/share/jaato/keys/work.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!((mode & 0o777, fs::read_to_string(&file).unwrap().as_str()), (0o600, SECRET));
    let listed = house.run(&["provider", "list"]).code(0);
    assert!(listed.stdout.contains("`jaato provider login work`"), "{listed}");
    house.run(&["run", "--model", "work/m", "hello"]).code(0);
    let key = server.requests()[0].header("authorization").map(str::to_owned);
    assert_eq!(key, Some(format!("Bearer {SECRET}")));
    house.run(&["provider", "logout", "work"]).code(0);
    assert!(!file.exists());
    let again = house.run(&["provider", "logout", "work"]).code(2);
    assert!(again.stderr.contains("no saved API key for `work`"), "{again}");
    house.run(&["provider", "logout", "../../work"]).code(2);
    let unknown = house.command(&["provider", "login", "moon"]).input("k\n").run();
    assert!(unknown.stderr.contains("no plugin offers the provider `moon`"), "{unknown}");
    // Regardless of its spelling, it is stored under the canonical name.
    house.command(&["provider", "login", "github_models"]).input("ghp_x\n").run().code(0);
    let kept = house.home().join(".local/share/jaato/keys/github-models.key");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "ghp_x");
    house.run(&["provider", "logout", "github_models"]).code(0);
    assert!(!kept.exists());
    for bad in ["", "two words\n"] {
        let output = house.command(&["provider", "login", "work"]).input(bad).run().code(2);
        assert!(output.stderr.contains("nothing was saved"), "{output}");
    }
}

#[test]
fn provider_models_are_listed_with_known_prices_and_limits() {
    let house = house!(ship_openai);
    let server = Server::start([]);
    let models = r#"{"data":[{"id":"gpt-4o"},{"id":"mine"}]}"#;
    server.set_models(Answer::status(200).body(models));
    // On the user's own server, the meaning of a name is unknown.
    let own = openai_command(&house, &server, &["provider", "models", "openai"]).run().code(0);
    assert!(own.stdout.contains("openai/mine") && !own.stdout.contains("2.5 / 10"), "{own}");
    assert!(own.stdout.contains("unknown") && own.stderr.contains("models.dev"), "{own}");
    house.configure_more("[models.\"openai/mine\"]\nprice = { input = 1, output = 2 }\n");
    let json =
        openai_command(&house, &server, &["provider", "models", "openai", "--json"]).run().code(0);
    let listed: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(listed["models"][1]["price"]["output"], 2.0, "{json}");
}
