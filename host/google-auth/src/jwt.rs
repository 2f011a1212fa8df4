//! Signs the token of a service account: RS256 of RFC 7515, in the format of Google's "self-signed
//! JWT".

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jaato_types::{Error, ErrorKind};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::file::ServiceAccount;

/// Its lifetime: the longest that Google accepts.
pub(crate) const LIFETIME_S: u64 = 3_600;

/// How far its time of creation is backdated, for fast clocks. Google's libraries do the same.
const BACKDATED_S: u64 = 10;

/// Signs a token that is valid from this second on, counted from 1970.
///
/// # Errors
/// `configuration` if the key is not valid.
pub(crate) fn sign_assertion(
    account: &ServiceAccount,
    scope: &str,
    now_s: u64,
) -> Result<String, Error> {
    let wrong = || {
        let text = format!("the private key of `{}` cannot be read", account.client_email);
        Error::new(ErrorKind::Configuration, text)
            .with_hint("it must be an RSA key in PKCS#8: download the file again")
    };
    let der = PrivatePkcs8KeyDer::from_pem_slice(account.private_key.as_bytes());
    let der = der.map_err(|_| wrong())?;
    let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| wrong())?;
    let issued_at = now_s.saturating_sub(BACKDATED_S);
    let email = account.client_email.as_str();
    let mut header = json!({ "alg": "RS256", "typ": "JWT" });
    if !account.private_key_id.is_empty() {
        header["kid"] = json!(account.private_key_id);
    }
    let claims = json!({ "iss": email, "sub": email, "scope": scope, "iat": issued_at,
        "exp": issued_at + LIFETIME_S });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&header), part(&claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| wrong())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
