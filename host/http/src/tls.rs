//! TLS for the client: rustls with ring, and the system's trusted certificates.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::HttpError;

/// Trusts the system's certificates (also `SSL_CERT_FILE` and `SSL_CERT_DIR`). Reads files, which
/// takes milliseconds.
pub(crate) fn config_with_system_roots() -> Result<ClientConfig, HttpError> {
    let config =
        tls_builder()?.with_platform_verifier().map_err(|error| tls_setup_error(&error))?;
    Ok(config.with_no_client_auth())
}

/// Trusts no certificate, for connections without TLS. Reads nothing, so that a model server on
/// loopback works on a machine without any certificates.
pub(crate) fn config_without_roots() -> Result<ClientConfig, HttpError> {
    Ok(tls_builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// Accepts any certificate. Reads nothing.
pub(crate) fn config_without_checks() -> Result<ClientConfig, HttpError> {
    let config =
        tls_builder()?.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate));
    Ok(config.with_no_client_auth())
}

/// Accepts every certificate and every signature.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn tls_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, HttpError> {
    // Passed explicitly, because a default provider for the process would be a hidden global.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    builder.with_safe_default_protocol_versions().map_err(|error| tls_setup_error(&error))
}

fn tls_setup_error(error: &rustls::Error) -> HttpError {
    let reason = match error {
        rustls::Error::General(text) if text.starts_with("No CA") => {
            "this system has no root certificates".to_owned()
        }
        other => other.to_string(),
    };
    HttpError::SetUp { reason }
}
