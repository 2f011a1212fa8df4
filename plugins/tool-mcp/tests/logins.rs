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

use crate::support::{Agrees, FixtureServer, Given, HyperClient, ReceivedRequest};

/// The path of a server's resource metadata.
const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
/// The path of an authorization server's metadata.
const ISSUER: &str = "/.well-known/oauth-authorization-server";

fn base(seen: &ReceivedRequest) -> String {
    format!("http://{}", seen.header("host").unwrap())
}

fn token(seen: &ReceivedRequest) -> Option<&str> {
    seen.header("authorization")?.strip_prefix("Bearer ")
}

/// A server with its own authorization server, which issues `t1` for a code and `t2` for `r1`.
fn both(seen: &ReceivedRequest) -> Given {
    let base = base(seen);
    match seen.path.split('?').next().unwrap() {
        RESOURCE => Given::json(200, &resource(&base)),
        ISSUER => Given::json(200, &issuer(&base)),
        "/register" => {
            let mut client = seen.message();
            client["client_id"] = "made".into();
            Given::json(201, &client)
        }
        "/authorize" => {
            let (back, state) = (seen.field("redirect_uri").unwrap(), seen.field("state").unwrap());
            Given::status(302)
                .header("location", &format!("{back}?code=c1&state={state}&iss={base}"))
        }
        "/token" => match seen.field("grant_type").as_deref() {
            Some("refresh_token") => given("t2", "r2"),
            Some("client_credentials") => {
                Given::json(200, &json!({ "access_token": "t3", "token_type": "Bearer" }))
            }
            _ => given("t1", "r1"),
        },
        "/mcp" => answer_mcp(seen, &["t1", "t2", "t3"]),
        _ => Given::status(404),
    }
}

fn resource(base: &str) -> Value {
    json!({
        "resource": format!("{base}/mcp"), "authorization_servers": [base],
        "scopes_supported": ["read"],
    })
}

fn issuer(base: &str) -> Value {
    let at = |path: &str| format!("{base}/{path}");
    json!({
        "issuer": base, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "registration_endpoint": at("register"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"], "scopes_supported": ["read", "offline_access"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn given(access: &str, refresh: &str) -> Given {
    let token = json!({
        "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600,
    });
    Given::json(200, &token)
}

/// The server itself. It accepts these tokens.
fn answer_mcp(seen: &ReceivedRequest, tokens: &[&str]) -> Given {
    if !token(seen).is_some_and(|token| tokens.contains(&token)) {
        let more = format!("Bearer resource_metadata=\"{}{RESOURCE}\"", base(seen));
        return Given::status(401).header("www-authenticate", &more);
    }
    let complete = |result: Value| {
        let mut result = result;
        for (key, value) in [("resultType", "complete"), ("cacheScope", "private")] {
            result[key] = value.into();
        }
        result["ttlMs"] = 0.into();
        Given::result(seen, result)
    };
    match seen.asks().as_str() {
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

struct Bench {
    server: FixtureServer,
    store: MemoryTokenStore,
    agrees: Agrees,
    settings: OAuthSettings,
}

impl Bench {
    async fn new(handler: impl Fn(&ReceivedRequest) -> Given + Send + Sync + 'static) -> Self {
        let server = FixtureServer::start(handler).await;
        Self { server, store: <_>::default(), agrees: <_>::default(), settings: <_>::default() }
    }

    fn login(
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

    async fn connect(&self, consent: Option<Arc<dyn LoginConsent>>) -> Result<McpClientManager> {
        let (reach, login) = self.login(consent);
        let mut manager = McpClientManager::new()?;
        manager.connect_http("moon", &reach, Arc::new(HyperClient), Some(login)).await?;
        Ok(manager)
    }

    /// Connects as a user who logs in when asked.
    async fn agreeing(&self) -> Result<McpClientManager> {
        self.connect(Some(Arc::new(self.agrees.clone()))).await
    }

    fn times_asked(&self) -> usize {
        self.agrees.0.load(Ordering::SeqCst)
    }

    /// Stores an expired token and a refresh token.
    async fn keep_old(&self, issuer: &str) {
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
        self.store.save(kept.to_string()).await.unwrap();
    }

    async fn kept(&self) -> StoredLogin {
        let text = self.store.load().await.unwrap().unwrap_or_else(|| "{}".to_owned());
        serde_json::from_str(&text).unwrap()
    }
}

async fn call(manager: &McpClientManager) -> Result<Value> {
    manager.call_tool("moon", "echo", Map::new()).await
}

#[tokio::test]
async fn login_token_is_bound_to_its_server_and_reused_by_the_next_process() {
    let bench = Bench::new(both).await;
    let manager = bench.agreeing().await.unwrap();
    call(&manager).await.unwrap();
    assert_eq!(bench.times_asked(), 1);
    let url = format!("{}/mcp", bench.server.url);
    let page = &bench.server.at("/authorize")[0];
    let token = &bench.server.at("/token")[0];
    assert_eq!(page.field("code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(page.field("scope").as_deref(), Some("read offline_access"));
    for asked in [page, token] {
        assert_eq!(asked.field("resource").as_deref(), Some(url.as_str()));
        assert_eq!(asked.field("redirect_uri").as_deref(), Some("http://127.0.0.1:3000/callback"));
    }
    assert!(token.field("code_verifier").is_some_and(|it| it.len() >= 43));
    let registered = bench.server.at("/register")[0].message();
    assert_eq!(registered["application_type"], "native");
    // The token appears only in requests to the server itself, and in no URL.
    let with_token = |seen: &&ReceivedRequest| format!("{seen:?}").contains("t1");
    let seen = bench.server.seen();
    assert!(seen.iter().filter(with_token).all(|seen| seen.path == "/mcp"));
    assert_eq!(bench.kept().await.access_token().as_deref(), Some("t1"));

    // The next process does not ask the user.
    let manager = bench.connect(None).await.unwrap();
    call(&manager).await.unwrap();
    assert_eq!(bench.server.at("/authorize").len(), 1);
}

#[tokio::test]
async fn connect_without_a_user_names_the_login_command_and_asks_once() {
    let bench = Bench::new(both).await;
    let error = bench.connect(None).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert_eq!(error.message, "the server requires a login: `jaato mcp login moon`");
    assert_eq!(bench.server.seen().len(), 1);
}

/// Checks that a login is refused before the user is asked, and that no secret is sent.
async fn check_refused(
    handler: impl Fn(&ReceivedRequest) -> Given + Send + Sync + 'static,
    why: &str,
) {
    let bench = Bench::new(handler).await;
    let error = bench.agreeing().await.err().unwrap();
    assert!(error.message.contains(why), "{}", error.message);
    assert_eq!(bench.times_asked(), 0, "{why}");
    assert!(bench.server.at("/token").is_empty());
}

#[tokio::test]
async fn misleading_oauth_metadata_is_refused() {
    let changed = |path: &'static str, change: fn(&mut Value)| {
        move |seen: &ReceivedRequest| {
            let base = base(seen);
            let mut document = match seen.path.as_str() {
                RESOURCE => resource(&base),
                ISSUER => issuer(&base),
                _ => return both(seen),
            };
            if seen.path == path {
                change(&mut document);
            }
            Given::json(200, &document)
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
        _ => Given::status(404),
    };
    check_refused(none, "no OAuth metadata").await;
}

#[tokio::test]
async fn callback_from_another_issuer_is_not_exchanged_for_a_token() {
    let bench = Bench::new(|seen| match seen.path.split('?').next() {
        Some("/authorize") => {
            let (back, state) = (seen.field("redirect_uri").unwrap(), seen.field("state").unwrap());
            let back = format!("{back}?code=c1&state={state}&iss=https://evil.example");
            Given::status(302).header("location", &back)
        }
        _ => both(seen),
    })
    .await;
    let error = bench.agreeing().await.err().unwrap();
    assert!(
        error.message.contains("not from the expected authorization server"),
        "{}",
        error.message
    );
    assert!(bench.server.at("/token").is_empty());
}

#[tokio::test]
async fn expired_token_is_refreshed_once_for_all_calls_and_saved() {
    let bench = Bench::new(both).await;
    bench.keep_old(&bench.server.url).await;
    let manager = bench.connect(None).await.unwrap();
    join_all((0..20).map(|_| call(&manager))).await.into_iter().for_each(|it| drop(it.unwrap()));
    let asked = bench.server.at("/token");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].field("refresh_token").as_deref(), Some("r1"));
    let kept = serde_json::to_value(bench.kept().await.tokens).unwrap();
    assert_eq!(kept["token_response"]["refresh_token"], "r2");
    let sent = bench.server.at("/mcp");
    assert!(sent.iter().filter(|it| it.method == "POST").all(|it| token(it) == Some("t2")));
}

#[tokio::test]
async fn tokens_of_a_former_authorization_server_are_not_sent_to_another() {
    let bench = Bench::new(both).await;
    bench.keep_old("https://old.example").await;
    let error = bench.connect(None).await.err().unwrap();
    assert!(error.message.contains("jaato mcp login moon"), "{}", error.message);
    assert!(!bench.server.seen().iter().any(|seen| format!("{seen:?}").contains("r1")));
    // A login there registers another client.
    bench.agreeing().await.unwrap();
    assert_eq!(bench.server.at("/register").len(), 1);
}

#[tokio::test]
async fn server_that_lost_its_metadata_gets_no_secret() {
    let bench = Bench::new(|seen| match seen.path.as_str() {
        "/mcp" => answer_mcp(seen, &[]),
        "/token" => given("t1", "r1"),
        _ => Given::status(404),
    })
    .await;
    bench.keep_old(&bench.server.url).await;
    assert!(bench.connect(None).await.is_err());
    assert!(bench.server.at("/token").is_empty());
}

#[tokio::test]
async fn additional_scope_is_requested_only_once() {
    let bench = Bench::new(|seen| {
        if seen.asks() == "tools/call" && token(seen).is_some() {
            let more = "Bearer error=\"insufficient_scope\", scope=\"write\"";
            return Given::status(403).header("www-authenticate", more);
        }
        both(seen)
    })
    .await;
    let manager = bench.agreeing().await.unwrap();
    for _ in 0..3 {
        let error = call(&manager).await.unwrap_err();
        assert_eq!(error.message, "the server requires rights that it has already granted");
    }
    assert_eq!(bench.times_asked(), 2);
    let pages = bench.server.at("/authorize");
    assert_eq!(pages[1].field("scope").as_deref(), Some("read offline_access write"));
}

#[tokio::test]
async fn missing_scope_without_a_user_is_requested_at_the_next_login() {
    let bench = Bench::new(|seen| {
        if seen.asks() == "tools/call" {
            let more = "Bearer error=\"insufficient_scope\", scope=\"write\"";
            return Given::status(403).header("www-authenticate", more);
        }
        both(seen)
    })
    .await;
    let (_, login) = bench.login(None);
    login.log_in(&bench.agrees).await.unwrap();
    let alone = bench.connect(None).await.unwrap();
    let error = call(&alone).await.unwrap_err();
    assert_eq!(error.message, "the server requires more rights (`write`): `jaato mcp login moon`");
    let (_, login) = bench.login(None);
    login.log_in(&bench.agrees).await.unwrap();
    let pages = bench.server.at("/authorize");
    assert_eq!(pages[1].field("scope").as_deref(), Some("read offline_access write"));
    assert!(bench.kept().await.wanted.is_empty());
}

#[tokio::test]
async fn login_command_uses_the_metadata_and_scopes_from_the_challenge() {
    let bench = Bench::new(|seen| match seen.path.as_str() {
        "/custom/prm.json" => Given::json(200, &resource(&base(seen))),
        RESOURCE => Given::status(404),
        "/mcp" if token(seen).is_none() => {
            let place = format!("{}/custom/prm.json", base(seen));
            let header = format!("Bearer scope=\"basic\", resource_metadata=\"{place}\"");
            Given::status(401).header("www-authenticate", &header)
        }
        _ => both(seen),
    })
    .await;
    let (_, login) = bench.login(None);
    login.log_in(&bench.agrees).await.unwrap();
    assert_eq!(bench.server.at("/custom/prm.json").len(), 1);
    let page = &bench.server.at("/authorize")[0];
    assert_eq!(page.field("scope").as_deref(), Some("basic offline_access"));
    // The token is renewed there too, without another refusal.
    let mut kept = serde_json::to_value(bench.kept().await).unwrap();
    kept["tokens"]["token_received_at"] = (unix_seconds() - 7200).into();
    bench.store.save(kept.to_string()).await.unwrap();
    call(&bench.connect(None).await.unwrap()).await.unwrap();
    assert_eq!(bench.server.at("/custom/prm.json").len(), 2);
    assert_eq!(bench.server.at("/token").len(), 2);
}

#[tokio::test]
async fn client_credentials_login_needs_no_user_and_errors_hide_the_secret() {
    let mut bench = Bench::new(both).await;
    bench.settings = OAuthSettings {
        client_id: Some("me".to_owned()),
        client_secret: Some("moonlight".to_owned()),
        grant: GrantKind::ClientCredentials,
        ..OAuthSettings::default()
    };
    call(&bench.connect(None).await.unwrap()).await.unwrap();
    assert_eq!(bench.server.at("/token").len(), 1);
    assert!(bench.server.at("/authorize").is_empty());

    let mut bench = Bench::new(|seen| match seen.path.as_str() {
        "/token" => {
            let said = "the secret moonlight is wrong";
            let error = json!({ "error": "invalid_client", "error_description": said });
            Given::json(400, &error)
        }
        _ => both(seen),
    })
    .await;
    bench.settings = OAuthSettings {
        client_id: Some("me".to_owned()),
        client_secret: Some("moonlight".to_owned()),
        grant: GrantKind::ClientCredentials,
        ..OAuthSettings::default()
    };
    let error = bench.connect(None).await.err().unwrap();
    assert!(!format!("{error:?}").contains("moonlight"), "{error:?}");
}

#[tokio::test]
async fn logout_forgets_the_login() {
    let bench = Bench::new(both).await;
    bench.agreeing().await.unwrap();
    let (_, login) = bench.login(None);
    assert!(login.log_out().await.unwrap());
    assert!(!login.log_out().await.unwrap());
    assert!(bench.connect(None).await.is_err());
}
