//! Addresses of requests as logs show them: credentials in the query are left out.

use std::borrow::Cow;

use http::Uri;

/// Parameters whose values are credentials.
const SECRET: [&str; 10] = [
    "access_token",
    "api_key",
    "apikey",
    "authorization",
    "bearer",
    "client_secret",
    "id_token",
    "password",
    "refresh_token",
    "token",
];

/// What stands in the place of a credential.
const HIDDEN: &str = "REDACTED";

/// Path and query of an address, without credentials. Scheme, host and user are left out, as they
/// are not part of the request.
pub(crate) fn uri(uri: &Uri) -> String {
    let Some(query) = uri.query() else { return uri.path().to_owned() };
    let parts: Vec<Cow<'_, str>> = query.split('&').map(parameter).collect();
    format!("{}?{}", uri.path(), parts.join("&"))
}

fn parameter(text: &str) -> Cow<'_, str> {
    let Some((name, _)) = text.split_once('=') else { return Cow::Borrowed(text) };
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    let is_secret = SECRET.iter().any(|secret| decoded.trim().eq_ignore_ascii_case(secret));
    if is_secret { Cow::Owned(format!("{name}={HIDDEN}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_left_out_and_all_else_stays() {
        let shown = |text: &str| uri(&text.parse().unwrap());
        for (given, wanted) in [
            ("/api", "/api"),
            ("/api?watch=1&limit=5", "/api?watch=1&limit=5"),
            ("/api?token=abc&watch=1", "/api?token=REDACTED&watch=1"),
            ("/api?a=1&%74oken=abc%3D", "/api?a=1&%74oken=REDACTED"),
            ("/api?Access_Token=abc", "/api?Access_Token=REDACTED"),
            ("/api?token", "/api?token"),
            ("https://ann:pass@host/api?x=y", "/api?x=y"),
        ] {
            assert_eq!(shown(given), wanted);
        }
    }
}
