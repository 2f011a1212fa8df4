//! Tests Google's generateContent with a strict fake, which refuses what the vendor refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jaato_vendors::google::{FakeGoogle, GoogleTurn};
use serde_json::json;

use crate::house;
use crate::support::openai::SECRET;
use crate::support::server::{Answer, BodyStep, Server};
use crate::support::{House, fixtures, library_name};
use crate::vendors;

const RUN: [&str; 4] = ["run", "--model", "google/gemini-4-argon", "hello"];
const CHAT: [&str; 3] = ["chat", "--model", "google/gemini-4-argon"];

/// Ships the plugin with short waits.
fn add_plugin(house: &House) {
    crate::support::ship_provider(house, "provider_google_genai");
}

/// Starts a server that answers like the vendor.
fn serve_vendor(vendor: &Arc<FakeGoogle>) -> Server {
    let vendor = Arc::clone(vendor);
    vendors::start_vendor_server(move |asked| vendor.answer(asked))
}

fn fake_google(turns: impl IntoIterator<Item = GoogleTurn>) -> Arc<FakeGoogle> {
    Arc::new(FakeGoogle::new(turns))
}

#[test]
fn google_project_can_be_set_in_a_trusted_workspaces_variables() {
    let house = house!(add_plugin);
    let vendor = fake_google([GoogleTurn::text("hello")]);
    let server = serve_vendor(&vendor);
    house.write("workspace/.env", "PROJECT_ID=theirs\nLOCATION=eu\n");
    house.run(&["trust"]).code(0);
    let command = house
        .command(&RUN)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("GOOGLE_OAUTH_ACCESS_TOKEN", SECRET)
        .variable("GOOGLE_CLOUD_LOCATION", "global")
        .variable("GOOGLE_CLOUD_PROJECT", "of-something-else");
    assert_eq!(command.run().code(0).stdout, "hello\n");
    let path = server.other_requests().pop().unwrap().path;
    assert!(path.starts_with("/v1beta1/projects/theirs/locations/global/"), "{path}");
    let wrong = house.command(&RUN).variable("GOOGLE_GENAI_USE_VERTEXAI", "perhaps").run();
    assert!(wrong.stderr.contains("`GOOGLE_GENAI_USE_VERTEXAI` wants true or false"), "{wrong}");
}

/// Returns the file that `gcloud auth application-default login` writes, for a user whose tokens
/// come from a server.
fn login_json(tokens: &Server) -> String {
    json!({ "type": "authorized_user", "client_id": "id", "client_secret": SECRET,
        "refresh_token": "1//refresh", "quota_project_id": "billed",
        "token_uri": format!("{}/token", tokens.root_url()) })
    .to_string()
}

/// Starts a server that returns a token with another number each time.
fn serve_tokens() -> Server {
    let given = AtomicU32::new(0);
    Server::start_with(move |_| {
        let token = format!("token-{}", given.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "access_token": token, "expires_in": 3599 }).to_string();
        Answer::status(200).then(BodyStep::Bytes(body.into_bytes()))
    })
}

#[test]
fn google_tokens_are_created_from_the_users_login_and_renewed_if_refused() {
    let house = house!(add_plugin);
    let (tokens, vendor) =
        (serve_tokens(), fake_google([GoogleTurn::text("hello"), GoogleTurn::text("again")]));
    let answers = Arc::clone(&vendor);
    let server = vendors::start_vendor_server(move |asked| {
        if asked.header("authorization") == Some("Bearer token-0") {
            let refused = json!({ "error": { "code": 401, "status": "UNAUTHENTICATED" } });
            let body = refused.to_string().into_bytes();
            return jaato_vendors::VendorAnswer { status: 401, headers: vec![], body };
        }
        answers.answer(asked)
    });
    house.write("home/.config/gcloud/application_default_credentials.json", &login_json(&tokens));
    let command = house
        .command(&CHAT)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("PROJECT_ID", "mine");
    let output = command.input("one\ntwo\n").run().code(0);
    assert!(output.stdout.contains("hello") && output.stdout.contains("again"), "{output}");
    assert_eq!(tokens.other_requests().len(), 2, "a second token replaces the refused one");
    let last = server.other_requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer token-1"));
    assert_eq!(last.header("x-goog-user-project"), Some("billed"));
    assert!(!output.to_string().contains("token-"), "{output}");
    let checked = house
        .command(&["provider", "check", "google/gemini-4-argon"])
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("PROJECT_ID", "mine")
        .run();
    assert!(checked.stdout.contains("gcloud's file"), "{checked}");
}

#[test]
fn google_credentials_file_can_be_named_in_a_workspace_and_must_exist() {
    let house = house!(add_plugin);
    let (tokens, vendor) = (serve_tokens(), fake_google([GoogleTurn::text("hello")]));
    let server = serve_vendor(&vendor);
    let lines =
        "PROJECT_ID=theirs\nLOCATION=global\nGOOGLE_APPLICATION_CREDENTIALS=keys/mine.json\n";
    house.write("workspace/.env", lines);
    house.write("workspace/keys/mine.json", &login_json(&tokens));
    house.run(&["trust"]).code(0);
    let at =
        |words: &[&str]| house.command(words).variable("GOOGLE_GEMINI_BASE_URL", server.root_url());
    assert_eq!(at(&RUN).run().code(0).stdout, "hello\n");
    assert_eq!(
        server.other_requests().pop().unwrap().header("authorization"),
        Some("Bearer token-0")
    );
    house.write("workspace/.env", &lines.replace("mine.json", "none.json"));
    house.run(&["trust"]).code(0);
    let output = at(&RUN).run().code(3);
    assert!(output.stderr.contains("none.json") && output.stderr.contains("cannot be read"));
    // The user named none. In tests the machine is asked only on loopback.
    house.write("workspace/.env", "PROJECT_ID=theirs\n");
    house.run(&["trust"]).code(0);
    let output = at(&RUN).variable("GCE_METADATA_HOST", "127.0.0.1:9").run();
    assert!(output.stderr.contains("gcloud auth application-default login"), "{output}");
}

#[test]
fn untrusted_google_plugin_receives_no_variables() {
    let house = house!();
    let built = fixtures::test_house().unwrap().join("plugins");
    house.ship_to_user(&built.join(library_name("provider_google_genai")));
    let server = serve_vendor(&fake_google([]));
    let command = house
        .command(&RUN)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("PROJECT_ID", "private");
    let output = command.run();
    let asked = server.other_requests();
    assert!(!asked.is_empty(), "{output}");
    for asked in asked {
        assert!(asked.path.starts_with("/v1beta/models"), "{}", asked.path);
    }
}
