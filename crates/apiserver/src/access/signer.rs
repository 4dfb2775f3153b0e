//! Signs and verifies the JSON Web Tokens of service accounts (ES256, one key). rcgen reads and
//! writes the key, ring computes the signatures.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The key pair that signs and verifies service-account tokens.
pub struct Signer {
    /// The key as it is stored. It signs in ASN.1 form, which tokens do not use.
    stored: KeyPair,
    /// The same key for signatures in the fixed-length form of RFC 7518.
    pair: EcdsaKeyPair,
    random: SystemRandom,
    key_id: String,
}

/// Why a signing key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    #[error("could not generate a signing key")]
    Generate(#[source] rcgen::Error),
    #[error("the signing key is not a PEM-encoded P-256 private key in PKCS#8 form")]
    Pem(#[source] rcgen::Error),
    #[error("the signing key is not usable for ES256: {0}")]
    Key(String),
}

/// Longer texts are rejected without being decoded.
const TOKEN_BYTES_MAX: usize = 16 << 10;

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
}

impl Signer {
    /// Generates a new key.
    pub fn generate() -> Result<Self, SignerError> {
        let stored =
            KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(SignerError::Generate)?;
        Self::new(stored)
    }

    pub fn from_pem(pem: &str) -> Result<Self, SignerError> {
        let stored = KeyPair::from_pkcs8_pem_and_sign_algo(pem, &PKCS_ECDSA_P256_SHA256)
            .map_err(SignerError::Pem)?;
        Self::new(stored)
    }

    fn new(stored: KeyPair) -> Result<Self, SignerError> {
        let random = SystemRandom::new();
        let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(signing, stored.serialized_der(), &random)
            .map_err(|error| SignerError::Key(error.to_string()))?;
        // The key id of Kubernetes: the digest of the public key's SubjectPublicKeyInfo.
        let key_id = URL_SAFE_NO_PAD.encode(Sha256::digest(stored.subject_public_key_info()));
        Ok(Self { stored, pair, random, key_id })
    }

    /// The private key. Store it where only the server can read it.
    pub fn to_pem(&self) -> String {
        self.stored.serialize_pem()
    }

    /// Signs a token with these claims; `None` if the system provides no random numbers.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": "ES256", "kid": self.key_id});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.pair.sign(&self.random, text.as_bytes()).ok()?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns the claims of a token as JSON, if this key signed it.
    pub(crate) fn verify(&self, token: &str) -> Option<Vec<u8>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (text, signature) = token.rsplit_once('.')?;
        let (header, claims) = text.split_once('.')?;
        let header: Header = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        // The token must not choose the algorithm.
        if header.alg != "ES256" || header.kid.is_some_and(|kid| kid != self.key_id) {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.stored.public_key_raw());
        key.verify(text.as_bytes(), &signature).ok()?;
        URL_SAFE_NO_PAD.decode(claims).ok()
    }

    /// The public key as a JSON Web Key Set, for clients that verify tokens themselves.
    pub(crate) fn key_set(&self) -> Value {
        let point = self.stored.public_key_raw();
        // An uncompressed point: a tag byte, then two coordinates of 32 bytes.
        let (x, y) = point[1..].split_at(32);
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        }]})
    }
}

/// Shows the key id only.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_as_pem() {
        let signer = Signer::generate().unwrap();
        let again = Signer::from_pem(&signer.to_pem()).unwrap();
        let token = signer.sign(&json!({"sub": "a"})).unwrap();
        assert_eq!(again.verify(&token).unwrap(), br#"{"sub":"a"}"#);
        assert!(!format!("{signer:?}").contains(&signer.to_pem()[40..60]));
        assert!(Signer::from_pem("no key").is_err());
        let other_curve = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        assert!(Signer::from_pem(&other_curve.serialize_pem()).is_err());
    }

    #[test]
    fn only_what_this_key_signed_is_believed() {
        let signer = Signer::generate().unwrap();
        let token = signer.sign(&json!({"sub": "a"})).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let other = Signer::generate().unwrap().sign(&json!({"sub": "a"})).unwrap();
        let none = format!("{}.{}.", encode(r#"{"alg":"none"}"#), parts[1]);
        let symmetric = format!("{}.{}.{}", encode(r#"{"alg":"HS256"}"#), parts[1], parts[2]);
        let tampered = format!("{}.{}.{}", parts[0], encode(r#"{"sub":"b"}"#), parts[2]);
        let headless = format!("{}.{}", parts[1], parts[2]);
        let padded = format!("{token}=");
        let cut = token[..token.len() - 1].to_owned();
        let long = format!("{}.{}.{}", parts[0], "A".repeat(TOKEN_BYTES_MAX), parts[2]);
        for wrong in [other, none, symmetric, tampered, headless, padded, cut, long, "..".into()] {
            assert!(signer.verify(&wrong).is_none(), "{}", &wrong[..wrong.len().min(80)]);
        }
        // Every single character counts.
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert!(signer.verify(std::str::from_utf8(&bytes).unwrap()).is_none(), "at {at}");
        }
    }
}
