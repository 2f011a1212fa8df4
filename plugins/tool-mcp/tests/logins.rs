//! Logins to HTTP servers: which secrets go where.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::{ErrorKind, Result};
use tool_mcp::config::{GrantKind, HttpServerAddress, OAuthSettings};
use tool_mcp::library::McpClientManager;
use tool_mcp::oauth::login_store::{StoredLogin, unix_seconds};
use tool_mcp::oauth::{LoginConsent, MemoryTokenStore, OAuthLogin, TokenStore as _};

use crate::support::{AgreeingUser, FixtureResponse, FixtureServer, HyperClient, ReceivedRequest};

/// The path of a server's resource metadata.
const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
/// The path of an authorization server's metadata.
const ISSUER: &str = "/.well-known/oauth-authorization-server";

fn base_url(seen: &ReceivedRequest) -> String {
    format!("http://{}", seen.header("host").unwrap())
}

fn bearer_token(seen: &ReceivedRequest) -> Option<&str> {
    seen.header("authorization")?.strip_prefix("Bearer ")
}

/// A server with its own authorization server, which issues `t1` for a code and `t2` for `r1`.
fn answer_as_both_servers(seen: &ReceivedRequest) -> FixtureResponse {
    let base = base_url(seen);
    match seen.path.split('?').next().unwrap() {
        RESOURCE => FixtureResponse::json_response(200, &resource_metadata(&base)),
        ISSUER => FixtureResponse::json_response(200, &issuer_metadata(&base)),
        "/register" => {
            let mut client = seen.body_message();
            client["client_id"] = "made".into();
            FixtureResponse::json_response(201, &client)
        }
        "/authorize" => {
            let (back, state) =
                (seen.form_field("redirect_uri").unwrap(), seen.form_field("state").unwrap());
            FixtureResponse::status_response(302).with_response_header(
                "location",
                &format!("{back}?code=c1&state={state}&iss={base}"),
            )
        }
        "/token" => match seen.form_field("grant_type").as_deref() {
            Some("refresh_token") => token_response("t2", "r2"),
            Some("client_credentials") => FixtureResponse::json_response(
                200,
                &json!({ "access_token": "t3", "token_type": "Bearer" }),
            ),
            _ => token_response("t1", "r1"),
        },
        "/mcp" => answer_mcp(seen, &["t1", "t2", "t3"]),
        _ => FixtureResponse::status_response(404),
    }
}

fn resource_metadata(base: &str) -> Value {
    json!({
        "resource": format!("{base}/mcp"), "authorization_servers": [base],
        "scopes_supported": ["read"],
    })
}

fn issuer_metadata(base: &str) -> Value {
    let at = |path: &str| format!("{base}/{path}");
    json!({
        "issuer": base, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "registration_endpoint": at("register"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"], "scopes_supported": ["read", "offline_access"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn token_response(access: &str, refresh: &str) -> FixtureResponse {
    let token = json!({
        "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600,
    });
    FixtureResponse::json_response(200, &token)
}

/// The server itself. It accepts these tokens.
fn answer_mcp(seen: &ReceivedRequest, tokens: &[&str]) -> FixtureResponse {
    if !bearer_token(seen).is_some_and(|token| tokens.contains(&token)) {
        let more = format!("Bearer resource_metadata=\"{}{RESOURCE}\"", base_url(seen));
        return FixtureResponse::status_response(401)
            .with_response_header("www-authenticate", &more);
    }
    let complete = |result: Value| {
        let mut result = result;
        for (key, value) in [("resultType", "complete"), ("cacheScope", "private")] {
            result[key] = value.into();
        }
        result["ttlMs"] = 0.into();
        FixtureResponse::protocol_response(seen, result)
    };
    match seen.requested_method().as_str() {
        "server/discover" => complete(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        })),
        "tools/list" => {
            let tool = json!({ "name": "echo", "inputSchema": { "type": "object" } });
            complete(json!({ "tools": [tool] }))
        }
        _ => complete(json!({ "content": [{ "type": "text", "text": "done" }] })),
    }
}

struct LoginTestBench {
    server: FixtureServer,
    store: MemoryTokenStore,
    agrees: AgreeingUser,
    settings: OAuthSettings,
}

impl LoginTestBench {
    async fn new(
        handler: impl Fn(&ReceivedRequest) -> FixtureResponse + Send + Sync + 'static,
    ) -> Self {
        let server = FixtureServer::start(handler).await;
        Self { server, store: <_>::default(), agrees: <_>::default(), settings: <_>::default() }
    }

    fn create_test_login(
        &self,
        consent: Option<Arc<dyn LoginConsent>>,
    ) -> (HttpServerAddress, Arc<OAuthLogin>) {
        let url = format!("{}/mcp", self.server.url);
        let reach =
            HttpServerAddress { url, oauth: self.settings.clone(), ..HttpServerAddress::default() };
        let (backend, store) = (Arc::new(HyperClient), Arc::new(self.store.clone()));
        let login = OAuthLogin::new("moon", &reach, backend, store, consent);
        (reach, login)
    }

    async fn connect_client(
        &self,
        consent: Option<Arc<dyn LoginConsent>>,
    ) -> Result<McpClientManager> {
        let (reach, login) = self.create_test_login(consent);
        let mut manager = McpClientManager::new()?;
        manager.connect_http("moon", &reach, Arc::new(HyperClient), Some(login)).await?;
        Ok(manager)
    }

    /// Connects as a user who logs in when asked.
    async fn connect_and_log_in(&self) -> Result<McpClientManager> {
        self.connect_client(Some(Arc::new(self.agrees.clone()))).await
    }

    fn login_count(&self) -> usize {
        self.agrees.0.load(Ordering::SeqCst)
    }

    /// Stores an expired token and a refresh token.
    async fn store_expired_login(&self, issuer: &str) {
        let kept = json!({
            "client": {
                "issuer": issuer, "id": "made", "secret": null,
                "redirect_uri": "http://127.0.0.1:3000/callback",
            },
            "tokens": {
                "client_id": "made", "issuer": issuer, "granted_scopes": ["read"],
                "token_received_at": unix_seconds() - 7200,
                "token_response": {
                    "access_token": "t0", "refresh_token": "r1", "token_type": "bearer",
                    "expires_in": 3600,
                },
            },
        });
        self.store.save_login(kept.to_string()).await.unwrap();
    }

    async fn stored_login(&self) -> StoredLogin {
        let text = self.store.load_login().await.unwrap().unwrap_or_else(|| "{}".to_owned());
        serde_json::from_str(&text).unwrap()
    }
}

async fn call_echo_tool(manager: &McpClientManager) -> Result<Value> {
    manager.call_tool("moon", "echo", Map::new()).await
}

#[tokio::test]
async fn login_token_is_bound_to_its_server_and_reused_by_the_next_process() {
    let bench = LoginTestBench::new(answer_as_both_servers).await;
    let manager = bench.connect_and_log_in().await.unwrap();
    call_echo_tool(&manager).await.unwrap();
    assert_eq!(bench.login_count(), 1);
    let url = format!("{}/mcp", bench.server.url);
    let page = &bench.server.requests_to_path("/authorize")[0];
    let token = &bench.server.requests_to_path("/token")[0];
    assert_eq!(page.form_field("code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(page.form_field("scope").as_deref(), Some("read offline_access"));
    for asked in [page, token] {
        assert_eq!(asked.form_field("resource").as_deref(), Some(url.as_str()));
        assert_eq!(
            asked.form_field("redirect_uri").as_deref(),
            Some("http://127.0.0.1:3000/callback")
        );
    }
    assert!(token.form_field("code_verifier").is_some_and(|it| it.len() >= 43));
    let registered = bench.server.requests_to_path("/register")[0].body_message();
    assert_eq!(registered["application_type"], "native");
    // The token appears only in requests to the server itself, and in no URL.
    let with_token = |seen: &&ReceivedRequest| format!("{seen:?}").contains("t1");
    let seen = bench.server.received_requests();
    assert!(seen.iter().filter(with_token).all(|seen| seen.path == "/mcp"));
    assert_eq!(bench.stored_login().await.access_token().as_deref(), Some("t1"));

    // The next process does not ask the user.
    let manager = bench.connect_client(None).await.unwrap();
    call_echo_tool(&manager).await.unwrap();
    assert_eq!(bench.server.requests_to_path("/authorize").len(), 1);
}

#[tokio::test]
async fn connect_without_a_user_names_the_login_command_and_asks_once() {
    let bench = LoginTestBench::new(answer_as_both_servers).await;
    let error = bench.connect_client(None).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert_eq!(error.message, "the server requires a login: `jaato mcp login moon`");
    assert_eq!(bench.server.received_requests().len(), 1);
}

/// Checks that a login is refused before the user is asked, and that no secret is sent.
async fn check_refused(
    handler: impl Fn(&ReceivedRequest) -> FixtureResponse + Send + Sync + 'static,
    why: &str,
) {
    let bench = LoginTestBench::new(handler).await;
    let error = bench.connect_and_log_in().await.err().unwrap();
    assert!(error.message.contains(why), "{}", error.message);
    assert_eq!(bench.login_count(), 0, "{why}");
    assert!(bench.server.requests_to_path("/token").is_empty());
}

#[tokio::test]
async fn misleading_oauth_metadata_is_refused() {
    let changed = |path: &'static str, change: fn(&mut Value)| {
        move |seen: &ReceivedRequest| {
            let base = base_url(seen);
            let mut document = match seen.path.as_str() {
                RESOURCE => resource_metadata(&base),
                ISSUER => issuer_metadata(&base),
                _ => return answer_as_both_servers(seen),
            };
            if seen.path == path {
                change(&mut document);
            }
            FixtureResponse::json_response(200, &document)
        }
    };
    let no_pkce = |it: &mut Value| it["code_challenge_methods_supported"] = Value::Null;
    check_refused(changed(ISSUER, no_pkce), "PKCE").await;
    let plain = |it: &mut Value| it["code_challenge_methods_supported"] = json!(["plain"]);
    check_refused(changed(ISSUER, plain), "PKCE").await;
    let wrong_issuer = |it: &mut Value| it["issuer"] = "https://evil.example".into();
    check_refused(changed(ISSUER, wrong_issuer), "").await;
    let other_resource = |it: &mut Value| it["resource"] = "https://bank.example/mcp".into();
    check_refused(changed(RESOURCE, other_resource), "").await;
    let elsewhere = |it: &mut Value| it["token_endpoint"] = "http://evil.example/token".into();
    check_refused(changed(ISSUER, elsewhere), "does not use https").await;
    let none = |seen: &ReceivedRequest| match seen.path.as_str() {
        "/mcp" => answer_mcp(seen, &[]),
        _ => FixtureResponse::status_response(404),
    };
    check_refused(none, "no OAuth metadata").await;
}

#[tokio::test]
async fn callback_from_another_issuer_is_not_exchanged_for_a_token() {
    let bench = LoginTestBench::new(|seen| match seen.path.split('?').next() {
        Some("/authorize") => {
            let (back, state) =
                (seen.form_field("redirect_uri").unwrap(), seen.form_field("state").unwrap());
            let back = format!("{back}?code=c1&state={state}&iss=https://evil.example");
            FixtureResponse::status_response(302).with_response_header("location", &back)
        }
        _ => answer_as_both_servers(seen),
    })
    .await;
    let error = bench.connect_and_log_in().await.err().unwrap();
    assert!(
        error.message.contains("not from the expected authorization server"),
        "{}",
        error.message
    );
    assert!(bench.server.requests_to_path("/token").is_empty());
}

#[tokio::test]
async fn expired_token_is_refreshed_once_for_all_calls_and_saved() {
    let bench = LoginTestBench::new(answer_as_both_servers).await;
    bench.store_expired_login(&bench.server.url).await;
    let manager = bench.connect_client(None).await.unwrap();
    join_all((0..20).map(|_| call_echo_tool(&manager)))
        .await
        .into_iter()
        .for_each(|it| drop(it.unwrap()));
    let asked = bench.server.requests_to_path("/token");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].form_field("refresh_token").as_deref(), Some("r1"));
    let kept = serde_json::to_value(bench.stored_login().await.tokens).unwrap();
    assert_eq!(kept["token_response"]["refresh_token"], "r2");
    let sent = bench.server.requests_to_path("/mcp");
    assert!(sent.iter().filter(|it| it.method == "POST").all(|it| bearer_token(it) == Some("t2")));
}

#[tokio::test]
async fn tokens_of_a_former_authorization_server_are_not_sent_to_another() {
    let bench = LoginTestBench::new(answer_as_both_servers).await;
    bench.store_expired_login("https://old.example").await;
    let error = bench.connect_client(None).await.err().unwrap();
    assert!(error.message.contains("jaato mcp login moon"), "{}", error.message);
    assert!(
        !bench.server.received_requests().iter().any(|seen| format!("{seen:?}").contains("r1"))
    );
    // A login there registers another client.
    bench.connect_and_log_in().await.unwrap();
    assert_eq!(bench.server.requests_to_path("/register").len(), 1);
}

#[tokio::test]
async fn server_that_lost_its_metadata_gets_no_secret() {
    let bench = LoginTestBench::new(|seen| match seen.path.as_str() {
        "/mcp" => answer_mcp(seen, &[]),
        "/token" => token_response("t1", "r1"),
        _ => FixtureResponse::status_response(404),
    })
    .await;
    bench.store_expired_login(&bench.server.url).await;
    assert!(bench.connect_client(None).await.is_err());
    assert!(bench.server.requests_to_path("/token").is_empty());
}

#[tokio::test]
async fn additional_scope_is_requested_only_once() {
    let bench = LoginTestBench::new(|seen| {
        if seen.requested_method() == "tools/call" && bearer_token(seen).is_some() {
            let more = "Bearer error=\"insufficient_scope\", scope=\"write\"";
            return FixtureResponse::status_response(403)
                .with_response_header("www-authenticate", more);
        }
        answer_as_both_servers(seen)
    })
    .await;
    let manager = bench.connect_and_log_in().await.unwrap();
    for _ in 0..3 {
        let error = call_echo_tool(&manager).await.unwrap_err();
        assert_eq!(error.message, "the server requires rights that it has already granted");
    }
    assert_eq!(bench.login_count(), 2);
    let pages = bench.server.requests_to_path("/authorize");
    assert_eq!(pages[1].form_field("scope").as_deref(), Some("read offline_access write"));
}

#[tokio::test]
async fn missing_scope_without_a_user_is_requested_at_the_next_login() {
    let bench = LoginTestBench::new(|seen| {
        if seen.requested_method() == "tools/call" {
            let more = "Bearer error=\"insufficient_scope\", scope=\"write\"";
            return FixtureResponse::status_response(403)
                .with_response_header("www-authenticate", more);
        }
        answer_as_both_servers(seen)
    })
    .await;
    let (_, login) = bench.create_test_login(None);
    login.log_in(&bench.agrees).await.unwrap();
    let alone = bench.connect_client(None).await.unwrap();
    let error = call_echo_tool(&alone).await.unwrap_err();
    assert_eq!(error.message, "the server requires more rights (`write`): `jaato mcp login moon`");
    let (_, login) = bench.create_test_login(None);
    login.log_in(&bench.agrees).await.unwrap();
    let pages = bench.server.requests_to_path("/authorize");
    assert_eq!(pages[1].form_field("scope").as_deref(), Some("read offline_access write"));
    assert!(bench.stored_login().await.wanted.is_empty());
}

#[tokio::test]
async fn login_command_uses_the_metadata_and_scopes_from_the_challenge() {
    let bench = LoginTestBench::new(|seen| match seen.path.as_str() {
        "/custom/prm.json" => {
            FixtureResponse::json_response(200, &resource_metadata(&base_url(seen)))
        }
        RESOURCE => FixtureResponse::status_response(404),
        "/mcp" if bearer_token(seen).is_none() => {
            let place = format!("{}/custom/prm.json", base_url(seen));
            let header = format!("Bearer scope=\"basic\", resource_metadata=\"{place}\"");
            FixtureResponse::status_response(401).with_response_header("www-authenticate", &header)
        }
        _ => answer_as_both_servers(seen),
    })
    .await;
    let (_, login) = bench.create_test_login(None);
    login.log_in(&bench.agrees).await.unwrap();
    assert_eq!(bench.server.requests_to_path("/custom/prm.json").len(), 1);
    let page = &bench.server.requests_to_path("/authorize")[0];
    assert_eq!(page.form_field("scope").as_deref(), Some("basic offline_access"));
    // The token is renewed there too, without another refusal.
    let mut kept = serde_json::to_value(bench.stored_login().await).unwrap();
    kept["tokens"]["token_received_at"] = (unix_seconds() - 7200).into();
    bench.store.save_login(kept.to_string()).await.unwrap();
    call_echo_tool(&bench.connect_client(None).await.unwrap()).await.unwrap();
    assert_eq!(bench.server.requests_to_path("/custom/prm.json").len(), 2);
    assert_eq!(bench.server.requests_to_path("/token").len(), 2);
}

#[tokio::test]
async fn client_credentials_login_needs_no_user_and_errors_hide_the_secret() {
    let mut bench = LoginTestBench::new(answer_as_both_servers).await;
    bench.settings = OAuthSettings {
        client_id: Some("me".to_owned()),
        client_secret: Some("moonlight".to_owned()),
        grant: GrantKind::ClientCredentials,
        ..OAuthSettings::default()
    };
    call_echo_tool(&bench.connect_client(None).await.unwrap()).await.unwrap();
    assert_eq!(bench.server.requests_to_path("/token").len(), 1);
    assert!(bench.server.requests_to_path("/authorize").is_empty());

    let mut bench = LoginTestBench::new(|seen| match seen.path.as_str() {
        "/token" => {
            let said = "the secret moonlight is wrong";
            let error = json!({ "error": "invalid_client", "error_description": said });
            FixtureResponse::json_response(400, &error)
        }
        _ => answer_as_both_servers(seen),
    })
    .await;
    bench.settings = OAuthSettings {
        client_id: Some("me".to_owned()),
        client_secret: Some("moonlight".to_owned()),
        grant: GrantKind::ClientCredentials,
        ..OAuthSettings::default()
    };
    let error = bench.connect_client(None).await.err().unwrap();
    assert!(!format!("{error:?}").contains("moonlight"), "{error:?}");
}

#[tokio::test]
async fn logout_forgets_the_login() {
    let bench = LoginTestBench::new(answer_as_both_servers).await;
    bench.connect_and_log_in().await.unwrap();
    let (_, login) = bench.create_test_login(None);
    assert!(login.log_out().await.unwrap());
    assert!(!login.log_out().await.unwrap());
    assert!(bench.connect_client(None).await.is_err());
}
