//! Signs a JWT that authenticates a client (RFC 7523), with ES256 or RS256.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};

/// The lifetime of a JWT.
const SECONDS: u64 = 300;

/// A private key of a supported type.
enum JwtSigningKey {
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// Signs a JWT that authenticates the client to the authorization server `audience`.
///
/// # Errors
/// `configuration` if the key is invalid.
pub fn sign_client_assertion(
    pem: &str,
    client_id: &str,
    audience: &str,
    now: u64,
) -> Result<String> {
    let random = SystemRandom::new();
    let key = parse_signing_key(pem, &random)?;
    let algorithm = match key {
        JwtSigningKey::Ecdsa(_) => "ES256",
        JwtSigningKey::Rsa(_) => "RS256",
    };
    let unique: [u8; 16] =
        ring::rand::generate(&random).map_err(|_| unusable_key_error())?.expose();
    let header = json!({ "alg": algorithm, "typ": "JWT" });
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": audience, "iat": now, "exp": now + SECONDS,
        "jti": URL_SAFE_NO_PAD.encode(unique),
    });
    let encoded = |text: String| URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
    let signature = match &key {
        JwtSigningKey::Ecdsa(key) => key
            .sign(&random, signed.as_bytes())
            .map_err(|_| unusable_key_error())?
            .as_ref()
            .to_vec(),
        JwtSigningKey::Rsa(key) => {
            let mut signature = vec![0; key.public().modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature)
                .map_err(|_| unusable_key_error())?;
            signature
        }
    };
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Reads a PKCS#8 key in PEM.
fn parse_signing_key(pem: &str, random: &SystemRandom) -> Result<JwtSigningKey> {
    // Variables and JSON may escape line breaks.
    let pem = pem.replace("\\n", "\n");
    let begin = "-----BEGIN PRIVATE KEY-----";
    let inside = pem.split_once(begin).and_then(|(_, rest)| rest.split_once("-----END"));
    let base64: String =
        inside.map(|(inside, _)| inside).unwrap_or_default().split_whitespace().collect();
    let der = STANDARD.decode(base64).map_err(|_| unusable_key_error())?;
    if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, random) {
        return Ok(JwtSigningKey::Ecdsa(key));
    }
    RsaKeyPair::from_pkcs8(&der).map(JwtSigningKey::Rsa).map_err(|_| unusable_key_error())
}

fn unusable_key_error() -> Error {
    let text = "`privateKey` in its entry is not a P-256 or RSA key as PKCS#8 in PEM";
    Error::new(ErrorKind::Configuration, text)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::{self, Value};
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};

    use super::*;

    #[test]
    fn client_assertion_has_a_valid_signature_and_names_the_client() {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let body = STANDARD.encode(made.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
        let token = sign_client_assertion(&pem, "me", "https://as.example", 1000).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random);
        let key = UnparsedPublicKey::new(
            &ECDSA_P256_SHA256_FIXED,
            key.unwrap().public_key().as_ref().to_vec(),
        );
        key.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((claims["sub"].as_str(), claims["exp"].as_u64()), (Some("me"), Some(1300)));
        assert!(sign_client_assertion(&pem.replace('\n', "\\n"), "me", "x", 1).is_ok());
        let error = sign_client_assertion("moonlight", "me", "x", 1).unwrap_err();
        assert!(!error.message.contains("moonlight"));
    }
}
