//! The aspect `network`: the proxies, certificates and exceptions that jaato and programs use.
//!
//! It only reads variables and makes no connections. Credentials never leave this module.
//!
//! Invariant: the report describes the behaviour of jaato's own client. The client reads proxies as
//! curl does (the lower-case name wins, and `ALL_PROXY` applies if neither is set) and always
//! checks certificates. The original's variables that the client does not read are listed as such.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

use crate::facts::ReadableVariables;
use crate::mask;

/// Certificate files and folders, by field and variable.
const CERTIFICATES: [(&str, &str); 4] = [
    ("ssl_cert_file", "SSL_CERT_FILE"),
    ("ssl_cert_dir", "SSL_CERT_DIR"),
    ("requests_ca_bundle", "REQUESTS_CA_BUNDLE"),
    ("curl_ca_bundle", "CURL_CA_BUNDLE"),
];

/// Variables of the original for features that jaato's client does not have.
const NOT_READ: [&str; 3] = ["JAATO_KERBEROS_PROXY", "JAATO_NO_PROXY", "JAATO_SSL_VERIFY"];

/// Returns proxies with masked user and password, the authentication of proxies, certificates and
/// exceptions.
pub(crate) fn network_fields(variables: &ReadableVariables) -> Map<String, Value> {
    let http = variables.first_set(&["http_proxy", "HTTP_PROXY"]).map(mask::mask_proxy);
    let https = variables.first_set(&["https_proxy", "HTTPS_PROXY"]).map(mask::mask_proxy);
    let all = variables.first_set(&["all_proxy", "ALL_PROXY"]).map(mask::mask_proxy);
    let any = || [&http, &https, &all].into_iter().flatten();
    let auth = if any().any(|proxy| proxy.has_user) { "basic" } else { "none" };
    let mut proxy = json!({
        "http_proxy": http.as_ref().map(|proxy| &proxy.shown),
        "https_proxy": https.as_ref().map(|proxy| &proxy.shown),
        "configured": any().next().is_some(),
    });
    if let Some(all) = &all {
        proxy["all_proxy"] = json!(all.shown);
    }
    let mut report = Map::from_iter([
        ("proxy".to_owned(), proxy),
        ("proxy_auth".to_owned(), json!({ "type": auth })),
        ("ssl".to_owned(), ssl_json(variables)),
        ("no_proxy".to_owned(), no_proxy_json(variables)),
    ]);
    let not_read: Vec<_> =
        NOT_READ.into_iter().filter(|name| variables.get(name).is_some()).collect();
    if !not_read.is_empty() {
        report.insert("not_read_by_jaato".to_owned(), json!(not_read));
    }
    report
}

fn ssl_json(variables: &ReadableVariables) -> Value {
    let mut report = Map::from_iter([("verify".to_owned(), json!(true))]);
    for (field, variable) in CERTIFICATES {
        if let Some(path) = variables.get(variable) {
            report.insert(field.to_owned(), json!(mask::mask_path(path)));
        }
    }
    Value::Object(report)
}

fn no_proxy_json(variables: &ReadableVariables) -> Value {
    let hosts = variables.first_set(&["no_proxy", "NO_PROXY"]).map(mask::mask_host_list);
    hosts.map_or(Value::Null, |hosts| json!({ "no_proxy": hosts }))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::testing::{readable_variables, report_lines};

    #[track_caller]
    fn check_network(set: &[(&str, &str)], expected: Expect) {
        expected.assert_eq(&report_lines(&network_fields(&readable_variables(set))));
    }

    #[test]
    fn direct_connection_is_reported_without_a_proxy() {
        check_network(
            &[],
            expect![[r#"
                no_proxy = null
                proxy.configured = false
                proxy.http_proxy = null
                proxy.https_proxy = null
                proxy_auth.type = "none"
                ssl.verify = true
            "#]],
        );
    }

    #[test]
    fn corporate_network_is_reported_completely() {
        check_network(
            &[
                ("HTTPS_PROXY", "http://proxy.corp.com:8080"),
                ("http_proxy", "http://proxy.corp.com:8081"),
                ("JAATO_KERBEROS_PROXY", "Yes"),
                ("JAATO_SSL_VERIFY", "0"),
                ("SSL_CERT_FILE", "/etc/ssl/ca.pem"),
                ("SSL_CERT_DIR", "/etc/ssl/certs"),
                ("REQUESTS_CA_BUNDLE", "/etc/ssl/requests.crt"),
                ("CURL_CA_BUNDLE", "/etc/ssl/curl.crt"),
                ("NO_PROXY", "localhost,127.0.0.1,.corp.com"),
                ("JAATO_NO_PROXY", "github.com,api.github.com"),
            ],
            expect![[r#"
                no_proxy.no_proxy = "localhost,127.0.0.1,.corp.com"
                not_read_by_jaato = ["JAATO_KERBEROS_PROXY","JAATO_NO_PROXY","JAATO_SSL_VERIFY"]
                proxy.configured = true
                proxy.http_proxy = "http://proxy.corp.com:8081"
                proxy.https_proxy = "http://proxy.corp.com:8080"
                proxy_auth.type = "none"
                ssl.curl_ca_bundle = "/etc/ssl/curl.crt"
                ssl.requests_ca_bundle = "/etc/ssl/requests.crt"
                ssl.ssl_cert_dir = "/etc/ssl/certs"
                ssl.ssl_cert_file = "/etc/ssl/ca.pem"
                ssl.verify = true
            "#]],
        );
    }

    #[test]
    fn lowercase_proxy_variable_wins_and_an_empty_one_is_ignored() {
        check_network(
            &[
                ("HTTP_PROXY", "http://upper:1"),
                ("http_proxy", "http://lower:1"),
                ("HTTPS_PROXY", "http://upper:2"),
                ("https_proxy", " "),
                ("ALL_PROXY", "socks5://all:3"),
                ("no_proxy", "a"),
            ],
            expect![[r#"
                no_proxy.no_proxy = "a"
                proxy.all_proxy = "socks5://all:3"
                proxy.configured = true
                proxy.http_proxy = "http://lower:1"
                proxy.https_proxy = "http://upper:2"
                proxy_auth.type = "none"
                ssl.verify = true
            "#]],
        );
    }

    #[test]
    fn network_report_never_shows_credentials() {
        let secrets = "http://us3r:s3cret@proxy:8080/s3cret?k=s3cret";
        let set = ReadableVariables::NAMES.map(|name| (name, secrets));
        let told = report_lines(&network_fields(&readable_variables(&set)));
        assert!(!told.contains("s3cret") && !told.contains("us3r"), "{told}");
        check_network(
            &[("HTTP_PROXY", secrets)],
            expect![[r#"
                no_proxy = null
                proxy.configured = true
                proxy.http_proxy = "http://***:***@proxy:8080"
                proxy.https_proxy = null
                proxy_auth.type = "basic"
                ssl.verify = true
            "#]],
        );
    }
}
