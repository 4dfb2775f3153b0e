//! Signed tokens: JSON Web Tokens over ES256, with one key that somebody else keeps.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The key that signs tokens of service accounts, and knows them again.
pub struct Signer {
    pair: EcdsaKeyPair,
    pkcs8: Box<[u8]>,
    random: SystemRandom,
    key_id: String,
}

/// Why a signing key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    #[error("no random numbers for a signing key")]
    Random,
    #[error("the signing key is not PEM of a private key")]
    Pem,
    #[error("the signing key is not a P-256 key in PKCS#8: {0}")]
    Key(String),
}

/// What precedes the point of a P-256 key in a `SubjectPublicKeyInfo`.
const KEY_INFO: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Longer texts are not tokens of ours.
const TOKEN_BYTES_MAX: usize = 16 << 10;

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
}

impl Signer {
    /// A new key.
    pub fn generate() -> Result<Self, SignerError> {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|_| SignerError::Random)?;
        Self::from_pkcs8(document.as_ref())
    }

    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, SignerError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random)
            .map_err(|error| SignerError::Key(error.to_string()))?;
        let info = [&KEY_INFO[..], pair.public_key().as_ref()].concat();
        let key_id = URL_SAFE_NO_PAD.encode(Sha256::digest(info));
        Ok(Self { pair, pkcs8: pkcs8.into(), random, key_id })
    }

    pub fn from_pem(pem: &str) -> Result<Self, SignerError> {
        let (_, rest) = pem.split_once(PEM_BEGIN).ok_or(SignerError::Pem)?;
        let (body, _) = rest.split_once(PEM_END).ok_or(SignerError::Pem)?;
        let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
        Self::from_pkcs8(&STANDARD.decode(body).map_err(|_| SignerError::Pem)?)
    }

    /// The private key, to be kept where nobody else reads it.
    pub fn to_pem(&self) -> String {
        let body = STANDARD.encode(&self.pkcs8);
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(64)
            .map(|line| std::str::from_utf8(line).expect("base64 is ASCII"))
            .collect();
        format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", lines.join("\n"))
    }

    /// A token that makes these claims; none if the machine has no random numbers to give.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": "ES256", "kid": self.key_id});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.pair.sign(&self.random, text.as_bytes()).ok()?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token, as bytes of JSON, if this key signed it.
    pub(crate) fn verify(&self, token: &str) -> Option<Vec<u8>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (text, signature) = token.rsplit_once('.')?;
        let (header, claims) = text.split_once('.')?;
        let header: Header = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        // The algorithm is ours to choose, never the token's.
        if header.alg != "ES256" || header.kid.is_some_and(|kid| kid != self.key_id) {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        key.verify(text.as_bytes(), &signature).ok()?;
        URL_SAFE_NO_PAD.decode(claims).ok()
    }

    /// The public half, for those who check tokens themselves.
    pub(crate) fn key_set(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        // An uncompressed point: a mark, then two coordinates of 32 bytes.
        let (x, y) = point[1..].split_at(32);
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        }]})
    }
}

/// Names the key and shows nothing of it.
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
        assert!(Signer::from_pkcs8(b"no key").is_err());
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
