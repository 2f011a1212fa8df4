//! Tokens from files and from a machine's server, against servers on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jaato_google_auth::{AccessToken, CredentialsFile, GoogleCredentialSources, TokenMinter};
use jaato_http::{Client, HttpClientSettings, NetworkAccess, Proxies};
use jaato_types::{Error, ErrorKind};
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A key for these tests only, without any use.
const KEY: &str = include_str!("throwaway-key.pem");

fn new_client() -> Client {
    Client::new(HttpClientSettings {
        proxies: Proxies::without_proxies(),
        ..HttpClientSettings::default()
    })
}

/// A server that answers each request with `answer`, and records the requests.
struct TokenServer {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TokenServer {
    async fn start(answer: impl Fn(usize) -> (u16, Value) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            for number in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = String::new();
                let wants = |text: &str| {
                    let (head, body) = text.split_once("\r\n\r\n")?;
                    let head = head.to_lowercase();
                    let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
                    let length = length.map_or(0, |length| length.parse::<usize>().unwrap());
                    (body.len() >= length).then_some(())
                };
                while wants(&text).is_none() {
                    let mut bytes = [0; 4096];
                    let read = stream.read(&mut bytes).await.unwrap();
                    assert!(read > 0, "a request ended early");
                    text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
                }
                kept.lock().unwrap().push(text);
                let (status, body) = answer(number);
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\nMetadata-Flavor: Google\r\nConnection: close\r\n\
                     Content-Length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            }
        });
        Self { address, asked }
    }

    /// Starts a server that gives a token with a new number each time.
    async fn start_with_tokens() -> Self {
        Self::start(|number| {
            (200, json!({ "access_token": format!("token-{number}"), "expires_in": 3599 }))
        })
        .await
    }

    fn received_requests(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

struct CredentialsFolder(tempfile::TempDir);

impl CredentialsFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write_file(&self, content: &Value) -> PathBuf {
        let path = self.0.path().join("credentials.json");
        std::fs::write(&path, content.to_string()).unwrap();
        path
    }
}

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

fn sources_with_path(path: &Path) -> GoogleCredentialSources {
    let place = "variable GOOGLE_APPLICATION_CREDENTIALS".to_owned();
    let named = Some(CredentialsFile { path: path.to_owned(), place });
    GoogleCredentialSources { named, scope: SCOPE.to_owned(), ..GoogleCredentialSources::default() }
}

async fn mint_token(places: GoogleCredentialSources) -> Result<AccessToken, Error> {
    TokenMinter::new(places).token(&new_client(), None).await
}

fn user_credentials(token_uri: &str) -> Value {
    json!({ "type": "authorized_user", "client_id": "id", "client_secret": "a&b",
        "refresh_token": "1//refresh", "quota_project_id": "billed", "token_uri": token_uri })
}

fn service_account_credentials() -> Value {
    json!({ "type": "service_account", "project_id": "p", "private_key_id": "k1",
        "private_key": KEY, "client_email": "bot@p.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token" })
}

#[tokio::test]
async fn a_service_account_signs_its_own_token() {
    let folder = CredentialsFolder::new();
    let token = mint_token(sources_with_path(&folder.write_file(&service_account_credentials())))
        .await
        .unwrap();
    let parts: Vec<&str> = token.text.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("{} parts", parts.len()) };
    let json = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(json(header), json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
    let claims_read = json(claims);
    assert_eq!(claims_read["iss"], "bot@p.iam.gserviceaccount.com");
    assert_eq!(claims_read["sub"], claims_read["iss"]);
    assert_eq!(claims_read["scope"], SCOPE);
    assert_eq!(claims_read["aud"], Value::Null);
    let lifetime = claims_read["exp"].as_u64().unwrap() - claims_read["iat"].as_u64().unwrap();
    assert_eq!(lifetime, 3_600);
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key());
    let signed = format!("{header}.{claims}");
    public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
}

#[tokio::test]
async fn user_login_is_exchanged_once_and_again_after_a_refusal() {
    let (server, folder) = (TokenServer::start_with_tokens().await, CredentialsFolder::new());
    let path = folder.write_file(&user_credentials(&format!("http://{}/token", server.address)));
    let minter = TokenMinter::new(sources_with_path(&path));
    let first = minter.token(&new_client(), None).await.unwrap();
    assert_eq!((first.text.as_str(), first.quota_project.as_deref()), ("token-0", Some("billed")));
    assert_eq!(minter.token(&new_client(), None).await.unwrap(), first);
    let second = minter.token(&new_client(), Some("token-0")).await.unwrap();
    assert_eq!(second.text, "token-1");
    // Another caller has already replaced it.
    assert_eq!(minter.token(&new_client(), Some("token-0")).await.unwrap(), second);
    let asked = server.received_requests();
    assert_eq!(asked.len(), 2);
    let body = asked[0].split_once("\r\n\r\n").unwrap().1;
    let form =
        "grant_type=refresh_token&client_id=id&client_secret=a%26b&refresh_token=1%2F%2Frefresh";
    assert_eq!(body, form);
    assert!(asked[0].to_lowercase().contains("content-type: application/x-www-form-urlencoded"));
}

#[tokio::test]
async fn a_token_that_ends_soon_is_not_used_again() {
    let server = TokenServer::start(|number| {
        (200, json!({ "access_token": format!("token-{number}"), "expires_in": 200 }))
    })
    .await;
    let folder = CredentialsFolder::new();
    let minter = TokenMinter::new(sources_with_path(
        &folder.write_file(&user_credentials(&format!("http://{}", server.address))),
    ));
    for expected in ["token-0", "token-1"] {
        assert_eq!(minter.token(&new_client(), None).await.unwrap().text, expected);
    }
}

#[tokio::test]
async fn impersonated_service_account_gets_its_token_from_google() {
    let server = TokenServer::start(|number| match number {
        0 => (200, json!({ "access_token": "own", "expires_in": 3599 })),
        _ => (200, json!({ "accessToken": "theirs", "expireTime": "2030-01-01T00:00:00Z" })),
    })
    .await;
    let folder = CredentialsFolder::new();
    let base = format!("http://{}", server.address);
    let path = folder.write_file(&json!({ "type": "impersonated_service_account",
        "service_account_impersonation_url": format!("{base}/bot:generateAccessToken"),
        "delegates": ["d"], "source_credentials": user_credentials(&base) }));
    assert_eq!(mint_token(sources_with_path(&path)).await.unwrap().text, "theirs");
    let asked = server.received_requests();
    assert!(asked[1].starts_with("POST /bot:generateAccessToken "), "{}", asked[1]);
    assert!(asked[1].to_lowercase().contains("authorization: bearer own"));
    let body: Value = serde_json::from_str(asked[1].split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body, json!({ "scope": [SCOPE], "lifetime": "3600s", "delegates": ["d"] }));
}

#[tokio::test]
async fn metadata_server_is_asked_if_there_is_no_credentials_file() {
    let server = TokenServer::start_with_tokens().await;
    let places = GoogleCredentialSources {
        metadata: Some(server.address.clone()),
        quota_project: Some("billed".to_owned()),
        ..GoogleCredentialSources::default()
    };
    let token = mint_token(places).await.unwrap();
    assert_eq!((token.text.as_str(), token.quota_project.as_deref()), ("token-0", Some("billed")));
    let asked = &server.received_requests()[0];
    let path = "GET /computeMetadata/v1/instance/service-accounts/default/token HTTP/1.1";
    assert!(asked.starts_with(path), "{asked}");
    assert!(asked.to_lowercase().contains("metadata-flavor: google"));
}

#[tokio::test]
async fn missing_credentials_error_has_a_hint_and_metadata_is_asked_once() {
    let server = TokenServer::start(|_| (404, json!({}))).await;
    let metadata = Some(server.address.clone());
    let minter = TokenMinter::new(GoogleCredentialSources {
        metadata,
        ..GoogleCredentialSources::default()
    });
    for _ in 0..2 {
        let error = minter.token(&new_client(), None).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(error.message.contains("no the machine's metadata server"), "{error}");
        assert!(error.hint.unwrap().contains("gcloud auth application-default login"));
    }
    assert_eq!(server.received_requests().len(), 1);
    let offline = Client::new(HttpClientSettings {
        network: NetworkAccess::Offline,
        ..HttpClientSettings::default()
    });
    let metadata = Some("metadata.google.internal".to_owned());
    let minter = TokenMinter::new(GoogleCredentialSources {
        metadata,
        ..GoogleCredentialSources::default()
    });
    let error = minter.token(&offline, None).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn named_credentials_file_is_used_alone_and_its_errors_hide_its_content() {
    let (server, folder) = (TokenServer::start_with_tokens().await, CredentialsFolder::new());
    let check = async |path: PathBuf, expected: &str| {
        let metadata = Some(server.address.clone());
        let error = mint_token(GoogleCredentialSources { metadata, ..sources_with_path(&path) })
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(error.message.contains(expected), "{error}");
        assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
    };
    check(folder.0.path().join("none.json"), "cannot be read").await;
    check(folder.0.path().to_owned(), "is not a credentials file").await;
    check(folder.write_file(&json!("hidden")), "lacks a field").await;
    check(
        folder.write_file(&json!({ "type": "authorized_user", "client_id": 5, "x": "hidden" })),
        "lacks",
    )
    .await;
    let mut broken = service_account_credentials();
    broken["private_key"] = json!("hidden");
    check(folder.write_file(&broken), "the private key of `bot@p.iam.gserviceaccount.com`").await;
    for kind in ["external_account", "external_account_authorized_user", "gdch_service_account"] {
        check(folder.write_file(&json!({ "type": kind, "x": "hidden" })), "does not support").await;
    }
    let far = user_credentials("http://h.example/token");
    check(folder.write_file(&far), "without encryption").await;
    std::fs::write(folder.0.path().join("credentials.json"), "{hidden").unwrap();
    check(folder.0.path().join("credentials.json"), "is not valid JSON").await;
    assert_eq!(server.received_requests().len(), 0);
}

#[tokio::test]
async fn gcloud_credentials_are_used_if_no_file_is_named() {
    let (server, folder) = (TokenServer::start_with_tokens().await, CredentialsFolder::new());
    let path = folder.write_file(&user_credentials(&format!("http://{}", server.address)));
    let minter = TokenMinter::new(GoogleCredentialSources {
        gcloud: Some(path.clone()),
        ..GoogleCredentialSources::default()
    });
    assert_eq!(minter.used_file(), Some(format!("gcloud's file {}", path.display())));
    assert_eq!(minter.token(&new_client(), None).await.unwrap().text, "token-0");
    let none = TokenMinter::new(GoogleCredentialSources {
        gcloud: Some(path.join("none")),
        ..GoogleCredentialSources::default()
    });
    assert_eq!(none.used_file(), None);
}

#[tokio::test]
async fn secret_repeated_by_the_server_is_masked_and_lifetime_is_limited() {
    let server = TokenServer::start(|number| match number {
        0 => (400, json!({ "error": "invalid_grant", "error_description": "bad 1//refresh" })),
        _ => (200, json!({ "access_token": "t", "expires_in": u64::MAX })),
    })
    .await;
    let folder = CredentialsFolder::new();
    let minter = TokenMinter::new(sources_with_path(
        &folder.write_file(&user_credentials(&format!("http://{}", server.address))),
    ));
    let error = minter.token(&new_client(), None).await.unwrap_err();
    assert!(error.message.contains("bad ********"), "{error}");
    assert_eq!(minter.token(&new_client(), None).await.unwrap().text, "t");
}

#[tokio::test]
async fn metadata_server_that_worked_once_is_asked_again_after_a_failure() {
    let server = TokenServer::start(|number| match number {
        1 => (503, json!({})),
        _ => (200, json!({ "access_token": format!("token-{number}"), "expires_in": 1 })),
    })
    .await;
    let metadata = Some(server.address.clone());
    let minter = TokenMinter::new(GoogleCredentialSources {
        metadata,
        ..GoogleCredentialSources::default()
    });
    assert_eq!(minter.token(&new_client(), None).await.unwrap().text, "token-0");
    let error = minter.token(&new_client(), None).await.unwrap_err();
    let is_temporary = error.retry == jaato_types::Retry::Temporary;
    assert!(error.kind == ErrorKind::Provider && is_temporary, "{error}");
    assert_eq!(minter.token(&new_client(), None).await.unwrap().text, "token-2");
}
