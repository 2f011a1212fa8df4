//! Tests which key goes where, with real files and variables.

use std::path::Path;

use jaato_config::trust::{TrustStore, Workspace, WorkspaceState};
use jaato_config::{
    Config, ConfigSources, EnvironmentVariables, Overrides, UserFolders, load_config,
};
use jaato_types::ProviderPreset;

use super::*;
use crate::section::SettingsSection;

const NAME: &str = "provider-openai";
const VENDOR: &str = "https://api.openai.com";
const GROQ: &str = "https://api.groq.com/openai/v1";
const LOCAL: &str = "http://localhost:11434/v1";

/// The configuration of a user and a workspace.
#[derive(Clone, Copy, Default)]
struct CredentialCase<'a> {
    /// Lines of `[plugins.provider-openai]` in the user's file.
    own: &'a str,
    /// The same in the workspace's file.
    workspace: &'a str,
    /// The workspace's `.env`.
    env: &'a str,
    /// A file named by `--env-file`.
    env_file: Option<&'a str>,
    /// Variables of the process.
    variables: &'a [(&'a str, &'a str)],
    /// Whether all of it is in `[providers.work]` instead.
    is_provider: bool,
    /// The variable of the server that the plugin knows as `work`, empty if that needs no key.
    preset: Option<&'a str>,
}

fn openai_key_spec() -> CredentialSpec {
    CredentialSpec {
        variable: "OPENAI_API_KEY".to_owned(),
        scheme: "bearer".to_owned(),
        origin: VENDOR.to_owned(),
        base_url_variable: "OPENAI_BASE_URL".to_owned(),
        ..CredentialSpec::default()
    }
}

fn write_file(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn settings_section(case: &CredentialCase<'_>) -> SettingsSection {
    if case.is_provider {
        SettingsSection::Provider("work".into())
    } else {
        SettingsSection::Plugin(NAME.into())
    }
}

fn read_credentials(case: &CredentialCase<'_>) -> Result<PluginCredentials, Error> {
    let root = tempfile::tempdir().unwrap();
    let folders = UserFolders::under_root(root.path());
    write_file(
        folders.config_folder().unwrap(),
        "config.toml",
        &format!("{}\n{}\n", settings_section(case), case.own),
    );
    let place = root.path().join("workspace");
    std::fs::create_dir_all(place.join(".git")).unwrap();
    write_file(
        &place,
        ".jaato/config.toml",
        &format!("{}\n{}\n", settings_section(case), case.workspace),
    );
    write_file(&place, ".env", case.env);
    let env_file = case.env_file.map(|text| {
        write_file(root.path(), "named.env", text);
        root.path().join("named.env")
    });
    let store = TrustStore::in_folder(folders.data_folder().unwrap());
    let workspace = Workspace::find_workspace(&place, None).unwrap();
    store.trust_workspace(&workspace, std::time::SystemTime::UNIX_EPOCH).unwrap();
    let WorkspaceState::Trusted(workspace) = store.workspace_state(&workspace).unwrap() else {
        panic!("the workspace is trusted");
    };
    let variables: EnvironmentVariables = case.variables.iter().copied().collect();
    let config = load_config(ConfigSources {
        folders: &folders,
        config_file: None,
        env_file: env_file.as_deref(),
        workspace: Some(&workspace),
        variables: &variables,
        working_directory: &place,
        overrides: Overrides::default(),
    })
    .unwrap();
    let (plugin, section) = (PluginName::from(NAME), settings_section(case));
    let settings = section.settings(&config);
    let preset = ProviderPreset {
        name: "work".to_owned(),
        base_url: GROQ.to_owned(),
        variable: case.preset.unwrap_or_default().to_owned(),
        ..ProviderPreset::default()
    };
    let preset = case.preset.map(|_| &preset);
    let found = CredentialSources {
        section: &section,
        settings,
        preset,
        config: &config,
        variables: &variables,
        stored: None,
    };
    PluginCredentials::from_sources(&plugin, &[openai_key_spec()], &found)
        .map_err(|error| clean_error(error, root.path()))
}

fn clean_error(error: Error, root: &Path) -> Error {
    let message = error.message.replace(&root.display().to_string(), "");
    Error { message, ..error }
}

/// Returns the key for a request to this URL, `none`, or the kind and the beginning of the error.
fn granted_secret(case: &CredentialCase<'_>, url: &str) -> String {
    let grant = read_credentials(case)
        .and_then(|read| read.grant_secret("OPENAI_API_KEY", &Url::parse(url).unwrap()));
    match grant {
        Ok(Some(grant)) => grant.secret.reveal().to_owned(),
        Ok(None) => "none".to_owned(),
        Err(error) => format!("{}: {}", error.kind.name(), error.message),
    }
}

#[track_caller]
fn check_request(case: &CredentialCase<'_>, url: &str, expected: &str) {
    let found = granted_secret(case, url);
    let is_same = if expected.ends_with('…') {
        found.starts_with(expected.trim_end_matches('…'))
    } else {
        found == expected
    };
    assert!(is_same, "{found}\nis not\n{expected}");
}

const KEY: (&str, &str) = ("OPENAI_API_KEY", "own-key");

#[test]
fn key_is_sent_only_to_the_vendor() {
    let case = CredentialCase { variables: &[KEY], ..CredentialCase::default() };
    check_request(&case, "https://api.openai.com/v1/models", "own-key");
    check_request(&case, "https://api.openai.com:443/v1/models", "own-key");
    for other in [
        "https://evil.example/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.evil.example/",
        "https://api.openai.com@evil.example/",
        "http://localhost:11434/v1",
    ] {
        check_request(
            &case,
            other,
            "configuration: the credential `OPENAI_API_KEY` (variable OPENAI_API_KEY) is for \
             `https://api.openai.com` and is not sent to `…",
        );
    }
}

/// Returns how this case's key goes to a local server.
fn granted_scheme(case: &CredentialCase<'_>) -> SecretScheme {
    let url = Url::parse(LOCAL).unwrap();
    read_credentials(case).unwrap().grant_secret("OPENAI_API_KEY", &url).unwrap().unwrap().scheme
}

#[test]
fn workspace_sets_the_key_header_only_for_its_own_key() {
    let here = ("OPENAI_BASE_URL", LOCAL);
    let header = |name: &str| SecretScheme::Header(name.to_owned());
    let own = CredentialCase {
        own: "key_header = \"api-key\"",
        variables: &[KEY, here],
        ..CredentialCase::default()
    };
    assert_eq!(granted_scheme(&own), header("api-key"));
    assert_eq!(granted_scheme(&CredentialCase { own: "", ..own }), SecretScheme::Bearer);
    let workspaces = CredentialCase {
        workspace: "key_header = \"x-key\"\napi_key = \"team-key\"\nbase_url = \"http://localhost:11434/v1\"",
        ..CredentialCase::default()
    };
    assert_eq!(granted_scheme(&workspaces), header("x-key"));
    // The user's own key does not move because a workspace says so.
    let both = CredentialCase { workspace: "key_header = \"x-key\"", ..own };
    assert_eq!(granted_scheme(&both), header("api-key"));
    assert_eq!(granted_scheme(&CredentialCase { own: "", ..both }), SecretScheme::Bearer);
}

#[test]
fn invalid_key_header_is_refused_with_its_origin() {
    for bad in ["7", "\"\"", "\"a b\"", "\"Host\"", "\"Content-Length\""] {
        let own = format!("key_header = {bad}");
        let error = read_credentials(&CredentialCase { own: &own, ..CredentialCase::default() })
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration, "{bad}");
        assert!(error.message.contains("wants the name of a header"), "{error}");
        assert!(error.message.contains("config.toml:2"), "{error}");
    }
}

#[test]
fn every_key_is_taken_out_of_texts() {
    let keys = CredentialCase {
        own: "api_key = \"sk-own-0123456789\"",
        variables: &[("OPENAI_API_KEY", "sk-VAR-0123456789")],
        ..CredentialCase::default()
    };
    let text = "bad sk-own-0123456789 and sk-var-0123456789, not sk%2Down%2D0123456789";
    let cleaned = read_credentials(&keys).unwrap().without_secrets(text.to_owned());
    assert_eq!(cleaned, "bad ******** and ********, not ********");
}

#[test]
fn a_missing_key_matters_only_at_the_vendors() {
    let case = CredentialCase::default();
    check_request(
        &case,
        "https://api.openai.com/v1",
        "not_found: there is no key for `https://api.openai.com`: `OPENAI_API_KEY` is not set",
    );
    check_request(&case, LOCAL, "none");
    check_request(
        &CredentialCase { variables: &[("OPENAI_API_KEY", " ")], ..CredentialCase::default() },
        LOCAL,
        "none",
    );
}

#[test]
fn base_url_of_the_user_moves_the_key_to_that_server() {
    let by_variable = CredentialCase {
        variables: &[KEY, ("OPENAI_BASE_URL", LOCAL)],
        ..CredentialCase::default()
    };
    let line = format!("base_url = \"{LOCAL}\"");
    let by_file = CredentialCase { own: &line, variables: &[KEY], ..CredentialCase::default() };
    let env = format!("OPENAI_BASE_URL={LOCAL}\n");
    let by_named_file =
        CredentialCase { env_file: Some(&env), variables: &[KEY], ..CredentialCase::default() };
    for case in [by_variable, by_file, by_named_file] {
        assert_eq!(read_credentials(&case).unwrap().base_url(), Some(LOCAL));
        check_request(&case, LOCAL, "own-key");
        check_request(&case, "http://localhost:11435/v1", "configuration: …");
        // The vendor's key now belongs to the other server.
        check_request(&case, "https://api.openai.com/v1", "configuration: …");
    }
}

#[test]
fn workspace_base_url_never_gets_the_users_key() {
    let in_file = CredentialCase {
        workspace: "base_url = \"https://evil.example/v1\"",
        variables: &[KEY],
        ..CredentialCase::default()
    };
    let in_env = CredentialCase {
        env: "OPENAI_BASE_URL=https://evil.example/v1\n",
        own: "api_key = \"own-key\"",
        ..CredentialCase::default()
    };
    for case in [in_file, in_env] {
        assert_eq!(read_credentials(&case).unwrap().base_url(), Some("https://evil.example/v1"));
        let found = granted_secret(&case, "https://evil.example/v1");
        assert!(found.starts_with("configuration: the credential `OPENAI_API_KEY` ("), "{found}");
        let end = "is for `https://api.openai.com` and is not sent to `https://evil.example`";
        assert!(found.ends_with(end), "{found}");
    }
}

#[test]
fn a_workspaces_server_gets_the_workspaces_key() {
    let case = CredentialCase {
        workspace: "base_url = \"https://team.example/v1\"",
        env: "OPENAI_API_KEY=team-key\n",
        variables: &[KEY],
        ..CredentialCase::default()
    };
    check_request(&case, "https://team.example/v1", "team-key");
    check_request(&case, "https://api.openai.com/v1", "own-key");
    let case = CredentialCase {
        workspace: "base_url = \"https://team.example/v1\"\napi_key = \"team-key\"",
        own: "api_key = \"own-key\"",
        ..CredentialCase::default()
    };
    check_request(&case, "https://team.example/v1", "team-key");
}

#[test]
fn a_workspace_may_name_the_server_that_is_configured_anyway() {
    let line = "base_url = \"https://mine.example/v1\"";
    let case = CredentialCase {
        own: line,
        workspace: line,
        variables: &[KEY],
        ..CredentialCase::default()
    };
    check_request(&case, "https://mine.example/v1", "own-key");
}

#[test]
fn variables_win_over_files() {
    let case = CredentialCase {
        own: "base_url = \"https://file.example\"\napi_key = \"file-key\"",
        workspace: "base_url = \"https://workspace.example\"",
        env: "OPENAI_BASE_URL=https://env.example\nOPENAI_API_KEY=env-key\n",
        variables: &[KEY, ("OPENAI_BASE_URL", "https://variable.example")],
        ..CredentialCase::default()
    };
    assert_eq!(read_credentials(&case).unwrap().base_url(), Some("https://variable.example"));
    check_request(&case, "https://variable.example", "own-key");
    let case = CredentialCase { variables: &[], ..case };
    assert_eq!(read_credentials(&case).unwrap().base_url(), Some("https://env.example"));
    check_request(&case, "https://env.example", "env-key");
    check_request(&case, "https://file.example", "env-key");
    check_request(&case, "https://workspace.example", "configuration: …");
}

#[test]
fn key_is_sent_unencrypted_only_to_loopback_or_with_user_permission() {
    let far = "http://192.168.1.5:8000/v1";
    let line = format!("base_url = \"{far}\"");
    let case = CredentialCase { own: &line, variables: &[KEY], ..CredentialCase::default() };
    check_request(
        &case,
        far,
        "configuration: the credential `OPENAI_API_KEY` (variable OPENAI_API_KEY) is not sent to \
         `http://192.168.1.5:8000`, which is not encrypted",
    );
    check_request(&CredentialCase { variables: &[], ..case }, far, "none");
    let allowed = format!("{line}\nplain_http = true");
    check_request(
        &CredentialCase { own: &allowed, variables: &[KEY], ..CredentialCase::default() },
        far,
        "own-key",
    );
    let by_workspace = CredentialCase {
        own: &line,
        workspace: "plain_http = true",
        variables: &[KEY],
        ..CredentialCase::default()
    };
    check_request(
        &by_workspace,
        far,
        "configuration: `plain_http` of `[plugins.provider-openai]` cannot be set by a workspace …",
    );
    // The resolver decides where a name below `localhost` leads.
    for far in ["http://a.localhost:1", "http://localhost.:1", "http://127.0.0.1.example:1"] {
        let own = format!("base_url = \"{far}\"");
        let case = CredentialCase { own: &own, variables: &[KEY], ..CredentialCase::default() };
        check_request(&case, far, "configuration: …");
    }
    for near in ["http://localhost:1", "http://127.8.9.1:1", "http://[::1]:1"] {
        let line = format!("base_url = \"{near}\"");
        check_request(
            &CredentialCase { own: &line, variables: &[KEY], ..CredentialCase::default() },
            near,
            "own-key",
        );
    }
}

#[test]
fn invalid_credential_settings_are_reported_with_their_origin() {
    for (own, text) in [
        ("api_key = 7", "`api_key` of `[plugins.provider-openai]` wants a text"),
        ("plain_http = \"yes\"", "`plain_http` of `[plugins.provider-openai]` wants true or false"),
        ("base_url = \"moon\"", "`moon` is not a base url"),
        ("base_url = \"ftp://h\"", "`ftp://h` is not a base url"),
    ] {
        let error =
            read_credentials(&CredentialCase { own, ..CredentialCase::default() }).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration, "{own}");
        assert_eq!(error.message, format!("{text} (user /config/config.toml:2)"), "{own}");
    }
}

#[test]
fn a_server_that_a_plugin_knows_gets_the_key_of_its_own_variable() {
    let keys = [KEY, ("GROQ_API_KEY", "groq")];
    let case = CredentialCase {
        is_provider: true,
        preset: Some("GROQ_API_KEY"),
        variables: &keys,
        ..CredentialCase::default()
    };
    check_request(&case, GROQ, "groq");
    check_request(&case, VENDOR, "configuration: the credential `GROQ_API_KEY` (…");
    assert_eq!(read_credentials(&case).unwrap().base_url(), Some(GROQ));
    let none = CredentialCase { variables: &[KEY], ..case };
    check_request(
        &none,
        GROQ,
        "not_found: there is no key for `https://api.groq.com`: `GROQ_API_KEY` is…",
    );
    // For any other server, its variable provides no key.
    let elsewhere = format!("base_url = {LOCAL:?}");
    check_request(&CredentialCase { own: &elsewhere, ..case }, LOCAL, "none");
    check_request(&CredentialCase { own: "api_key = \"own\"", ..none }, GROQ, "own");
    check_request(&CredentialCase { workspace: &elsewhere, ..case }, LOCAL, "none");
}

#[test]
fn a_known_server_may_need_no_key_and_gets_one_all_the_same() {
    let case = CredentialCase {
        is_provider: true,
        preset: Some(""),
        variables: &[KEY],
        ..CredentialCase::default()
    };
    check_request(&case, GROQ, "none");
    check_request(&CredentialCase { own: "api_key = \"own\"", ..case }, GROQ, "own");
    let looked_for = &read_credentials(&case).unwrap().list_access().keys[0].looked_for;
    assert_eq!(looked_for, "`api_key` under `[providers.work]`");
}

#[tokio::test]
async fn key_command_is_not_run_if_another_key_takes_precedence() {
    let own = "api_key_command = \"pass show vendor\"";
    let url = Url::parse(VENDOR).unwrap();
    let client = Client::new(jaato_http::HttpClientSettings::default());
    let broken = async |_: String, _: String| Err(Error::failed("it was run"));
    let fetched = async |case: &CredentialCase<'_>| {
        let read = read_credentials(case).unwrap();
        read.prepare_key("OPENAI_API_KEY", &url, &client, None, broken)
            .await
            .map_err(|it| it.message)
    };
    assert_eq!(
        fetched(&CredentialCase { own, variables: &[KEY], ..CredentialCase::default() }).await,
        Ok(())
    );
    let alone = fetched(&CredentialCase { own, ..CredentialCase::default() }).await;
    assert_eq!(alone, Err("it was run".to_owned()));
}

#[test]
fn provider_key_is_not_used_if_a_workspace_sets_its_plugin() {
    let own = "api_key = \"mine\"";
    let case = CredentialCase { is_provider: true, own, ..CredentialCase::default() };
    check_request(&case, VENDOR, "mine");
    let led = CredentialCase { workspace: "plugin = \"openai\"", ..case };
    check_request(
        &led,
        VENDOR,
        "not_found: there is no key for `https://api.openai.com`: `OPENAI_API_KEY`…",
    );
    check_request(&CredentialCase { variables: &[KEY], ..led }, VENDOR, "own-key");
    let theirs = "plugin = \"openai\"\napi_key = \"theirs\"";
    check_request(&CredentialCase { workspace: theirs, ..case }, VENDOR, "theirs");
}

#[tokio::test]
async fn minted_token_is_sent_only_to_vendor_servers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.json");
    let spec = CredentialSpec {
        variable: "GOOGLE_APPLICATION_CREDENTIALS".to_owned(),
        scheme: "bearer".to_owned(),
        mint: Some(jaato_types::TokenRecipe::default()),
        origin: "https://aiplatform.googleapis.com".to_owned(),
        origins: vec!["https://*-aiplatform.googleapis.com".to_owned()],
        ..CredentialSpec::default()
    };
    let section = SettingsSection::Plugin(NAME.into());
    let regional = Url::parse("https://eu-aiplatform.googleapis.com/v1").unwrap();
    let elsewhere = Url::parse("https://eu-aiplatform.googleapis.com.example/v1").unwrap();
    let client = Client::new(jaato_http::HttpClientSettings::default());
    let run = async |_: String, _: String| Err(Error::failed("no command is run"));
    let check = async |variables: &[(&str, &str)], expected: [Result<bool, ErrorKind>; 3]| {
        let (config, variables) = (Config::default(), variables.iter().copied().collect());
        let (config, variables) = (&config, &variables);
        let found = CredentialSources {
            section: &section,
            settings: None,
            preset: None,
            config,
            variables,
            stored: None,
        };
        let read =
            PluginCredentials::from_sources(&NAME.into(), std::slice::from_ref(&spec), &found)
                .unwrap();
        let fetched = read.prepare_key(&spec.variable, &regional, &client, None, run).await;
        let granted = |url: &Url| {
            let grant = read.grant_secret(&spec.variable, url);
            grant.map(|grant| grant.is_some()).map_err(|error| error.kind)
        };
        let fetched = fetched.map(|()| true).map_err(|error| error.kind);
        let found = if fetched.is_err() {
            [fetched, Ok(false), Ok(false)]
        } else {
            [fetched, granted(&regional), granted(&elsewhere)]
        };
        assert_eq!(found, expected, "{variables:?}");
    };
    let off = ("NO_GCE_CHECK", "true");
    check(&[off], [Ok(true), Err(ErrorKind::NotFound), Ok(false)]).await;
    // A provider under its own name gets none of the vendor's keys.
    let own = "base_url = \"https://gate.example\"";
    let gate =
        read_credentials(&CredentialCase { is_provider: true, own, ..CredentialCase::default() })
            .unwrap();
    assert!(gate.list_access().keys.iter().all(|key| key.found.is_none()));
    let broken = file.to_str().unwrap();
    let named = ("GOOGLE_APPLICATION_CREDENTIALS", broken);
    check(&[off, named], [Err(ErrorKind::Configuration), Ok(false), Ok(false)]).await;
}

#[test]
fn a_credential_that_is_not_declared_is_refused() {
    let credentials =
        read_credentials(&CredentialCase { variables: &[KEY], ..CredentialCase::default() })
            .unwrap();
    let url = Url::parse(VENDOR).unwrap();
    let error = credentials.grant_secret("AWS_SECRET_ACCESS_KEY", &url).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[test]
fn declarations_that_cannot_be_used_are_the_plugins_fault() {
    let read = |spec: CredentialSpec| {
        let (config, variables) = (Config::default(), EnvironmentVariables::default());
        let (plugin, section) = (PluginName::from(NAME), SettingsSection::Plugin(NAME.into()));
        let (section, config, variables) = (&section, &config, &variables);
        let found = CredentialSources {
            section,
            settings: None,
            preset: None,
            config,
            variables,
            stored: None,
        };
        PluginCredentials::from_sources(&plugin, &[spec], &found).map(drop)
    };
    for scheme in ["", "basic", "header:", "query:"] {
        let error =
            read(CredentialSpec { scheme: scheme.to_owned(), ..openai_key_spec() }).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PluginMisbehaved, "{scheme}");
    }
    for scheme in ["bearer", "header:x-api-key", "query:key"] {
        assert_eq!(read(CredentialSpec { scheme: scheme.to_owned(), ..openai_key_spec() }), Ok(()));
    }
    let error =
        read(CredentialSpec { origin: "moon".to_owned(), ..openai_key_spec() }).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PluginMisbehaved);
}

#[test]
fn nothing_shows_a_key() {
    let case = CredentialCase {
        own: "api_key = \"file-key\"",
        env: "OPENAI_API_KEY=env-key\n",
        variables: &[KEY],
        ..CredentialCase::default()
    };
    let credentials = read_credentials(&case).unwrap();
    let grant = credentials.grant_secret("OPENAI_API_KEY", &Url::parse(VENDOR).unwrap()).unwrap();
    let shown = format!("{credentials:?} {grant:?}");
    assert!(shown.contains("********"), "{shown}");
    for key in ["own-key", "env-key", "file-key"] {
        assert!(!shown.contains(key), "{shown}");
    }
}

/// Returns the case of a provider under its own name.
fn provider_case<'a>(own: &'a str, variables: &'a [(&'a str, &'a str)]) -> CredentialCase<'a> {
    CredentialCase { own, variables, is_provider: true, ..CredentialCase::default() }
}

#[test]
fn a_provider_with_a_server_of_its_own_has_a_key_of_its_own_and_not_the_vendors() {
    let url = "https://work.example/v1/models";
    let vendors = &[KEY, ("OPENAI_BASE_URL", "https://other.example/v1")];
    let base = "base_url = \"https://work.example/v1\"\n";
    check_request(&provider_case(base, vendors), url, "none");
    check_request(
        &provider_case(&format!("{base}api_key = \"work-key\""), vendors),
        url,
        "work-key",
    );
    // Without its own server, it is the vendor and has the vendor's key.
    check_request(&provider_case("", vendors), "https://api.openai.com/v1/models", "own-key");
    check_request(
        &provider_case("", vendors),
        "https://other.example/v1",
        "configuration: the credential…",
    );
}

#[test]
fn key_is_read_from_the_variable_that_the_user_names() {
    let url = "https://work.example/v1/models";
    let own = "base_url = \"https://work.example/v1\"\napi_key_env = \"WORK_KEY\"";
    check_request(&provider_case(own, &[("WORK_KEY", " work-key ")]), url, "work-key");
    let case = provider_case(own, &[KEY]);
    check_request(&case, url, "not_found: `WORK_KEY`, which `api_key_env` names (…");
    let of_plugin =
        CredentialCase { is_provider: false, ..provider_case(own, &[("WORK_KEY", "k")]) };
    check_request(&of_plugin, url, "k");
    // These would access the user's secrets.
    for line in ["api_key_env = \"AWS_SECRET\"", "api_key_command = \"cat /etc/passwd\""] {
        let case = CredentialCase { workspace: line, ..provider_case("", &[KEY]) };
        let key = line.split(' ').next().unwrap();
        let refused = format!("configuration: `{key}` of `[providers.work]` cannot be set by a…");
        check_request(&case, "https://api.openai.com/v1", &refused);
    }
}

#[tokio::test]
async fn a_command_is_run_once_and_before_its_key_is_needed() {
    let own = "base_url = \"https://work.example/v1\"\napi_key_command = \"pass show work\"";
    let credentials = read_credentials(&provider_case(own, &[])).unwrap();
    let url = Url::parse("https://work.example/v1").unwrap();
    let client = Client::new(jaato_http::HttpClientSettings::default());
    let grant = || credentials.grant_secret("OPENAI_API_KEY", &url);
    assert_eq!(grant().unwrap_err().kind, ErrorKind::HostBug);
    let broken =
        |_: String, whose: String| async move { Err(Error::new(ErrorKind::Configuration, whose)) };
    let error =
        credentials.prepare_key("OPENAI_API_KEY", &url, &client, None, broken).await.unwrap_err();
    assert!(error.message.starts_with("`api_key_command` ("), "{error}");
    let times = std::sync::atomic::AtomicU32::new(0);
    let print = |line: String, _: String| {
        times.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move { Ok(format!("{line}, a key of some length")) }
    };
    credentials.prepare_key("OPENAI_API_KEY", &url, &client, None, &print).await.unwrap();
    credentials.prepare_key("OPENAI_API_KEY", &url, &client, None, &print).await.unwrap();
    assert_eq!(times.into_inner(), 1);
    let secret = grant().unwrap().unwrap().secret;
    assert_eq!(secret.reveal(), "pass show work, a key of some length");
    let told = format!("wrong key {}", secret.reveal());
    assert_eq!(credentials.without_secrets(told), "wrong key ********");
    assert!(!format!("{credentials:?}").contains("some length"));
}

#[test]
fn configured_headers_are_sent_only_to_the_users_own_server() {
    let own = "base_url = \"https://work.example/v1\"\nheaders = { X-Team = \"moon\" }";
    let credentials = read_credentials(&provider_case(own, &[])).unwrap();
    let headers = |url: &str| credentials.headers(&Url::parse(url).unwrap()).len();
    assert_eq!(headers("https://work.example/v1/chat"), 1);
    assert_eq!((headers("https://api.openai.com/v1"), headers("http://work.example/")), (0, 0));
    for wrong in ["1", "{ Host = \"a\" }", "{ a = 1 }", "{ \"a b\" = \"c\" }"] {
        let error =
            read_credentials(&provider_case(&format!("headers = {wrong}"), &[])).unwrap_err();
        assert!(error.message.contains("`headers` of `[providers.work]` wants"), "{error}");
    }
}
