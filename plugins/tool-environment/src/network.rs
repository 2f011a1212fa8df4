//! The aspect `network`: which proxies, certificates and exceptions programs here are told to use.
//!
//! Only variables are read; nothing is connected to. Credentials never leave this module.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

use crate::facts::Variables;
use crate::mask;

/// Files and folders of certificates, by field and variable.
const CERTIFICATES: [(&str, &str); 4] = [
    ("ssl_cert_file", "SSL_CERT_FILE"),
    ("ssl_cert_dir", "SSL_CERT_DIR"),
    ("requests_ca_bundle", "REQUESTS_CA_BUNDLE"),
    ("curl_ca_bundle", "CURL_CA_BUNDLE"),
];

/// Proxies with user and password masked, how one logs in there, certificates and exceptions.
pub(crate) fn network(variables: &Variables) -> Map<String, Value> {
    let http = variables.first(&["HTTP_PROXY", "http_proxy"]).map(mask::proxy);
    let https = variables.first(&["HTTPS_PROXY", "https_proxy"]).map(mask::proxy);
    let has_user = [&http, &https].into_iter().flatten().any(|proxy| proxy.has_user);
    let proxy = json!({
        "http_proxy": http.as_ref().map(|proxy| &proxy.shown),
        "https_proxy": https.as_ref().map(|proxy| &proxy.shown),
        "configured": http.is_some() || https.is_some(),
    });
    Map::from_iter([
        ("proxy".to_owned(), proxy),
        ("proxy_auth".to_owned(), proxy_auth(variables, has_user)),
        ("ssl".to_owned(), ssl(variables)),
        ("no_proxy".to_owned(), no_proxy(variables)),
    ])
}

fn proxy_auth(variables: &Variables, has_user: bool) -> Value {
    if is_one_of(variables.get("JAATO_KERBEROS_PROXY"), ["true", "1", "yes"]) {
        return json!({ "type": "kerberos", "kerberos_enabled": true });
    }
    json!({ "type": if has_user { "basic" } else { "none" } })
}

fn ssl(variables: &Variables) -> Value {
    let verify = !is_one_of(variables.get("JAATO_SSL_VERIFY"), ["false", "0", "no"]);
    let mut report = Map::from_iter([("verify".to_owned(), json!(verify))]);
    for (field, variable) in CERTIFICATES {
        if let Some(path) = variables.get(variable) {
            report.insert(field.to_owned(), json!(mask::path(path)));
        }
    }
    Value::Object(report)
}

fn no_proxy(variables: &Variables) -> Value {
    let common = variables.first(&["NO_PROXY", "no_proxy"]).map(mask::host_list);
    let own = variables.get("JAATO_NO_PROXY").map(mask::host_list);
    if common.is_none() && own.is_none() {
        return Value::Null;
    }
    json!({ "no_proxy": common, "jaato_no_proxy": own })
}

fn is_one_of(value: Option<&str>, words: [&str; 3]) -> bool {
    value.is_some_and(|value| words.iter().any(|word| word.eq_ignore_ascii_case(value.trim())))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::testing::{lines, variables};

    #[track_caller]
    fn check(set: &[(&str, &str)], expected: Expect) {
        expected.assert_eq(&lines(&network(&variables(set))));
    }

    #[test]
    fn a_direct_connection_says_so() {
        check(
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
    fn a_corporate_network_is_told_whole() {
        check(
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
                no_proxy.jaato_no_proxy = "github.com,api.github.com"
                no_proxy.no_proxy = "localhost,127.0.0.1,.corp.com"
                proxy.configured = true
                proxy.http_proxy = "http://proxy.corp.com:8081"
                proxy.https_proxy = "http://proxy.corp.com:8080"
                proxy_auth.kerberos_enabled = true
                proxy_auth.type = "kerberos"
                ssl.curl_ca_bundle = "/etc/ssl/curl.crt"
                ssl.requests_ca_bundle = "/etc/ssl/requests.crt"
                ssl.ssl_cert_dir = "/etc/ssl/certs"
                ssl.ssl_cert_file = "/etc/ssl/ca.pem"
                ssl.verify = false
            "#]],
        );
    }

    #[test]
    fn upper_case_wins_and_an_empty_variable_is_none() {
        check(
            &[
                ("HTTP_PROXY", "http://upper:1"),
                ("http_proxy", "http://lower:1"),
                ("HTTPS_PROXY", " "),
                ("https_proxy", "http://lower:2"),
                ("no_proxy", "a"),
                ("JAATO_KERBEROS_PROXY", "false"),
                ("JAATO_SSL_VERIFY", "true"),
            ],
            expect![[r#"
                no_proxy.jaato_no_proxy = null
                no_proxy.no_proxy = "a"
                proxy.configured = true
                proxy.http_proxy = "http://upper:1"
                proxy.https_proxy = "http://lower:2"
                proxy_auth.type = "none"
                ssl.verify = true
            "#]],
        );
    }

    #[test]
    fn no_credential_is_told_wherever_it_was_put() {
        let secrets = "http://us3r:s3cret@proxy:8080/s3cret?k=s3cret";
        let set = Variables::NAMES.map(|name| (name, secrets));
        let told = lines(&network(&variables(&set)));
        assert!(!told.contains("s3cret") && !told.contains("us3r"), "{told}");
        check(
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
