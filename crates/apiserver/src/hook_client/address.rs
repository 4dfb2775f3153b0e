//! The addresses at which a webhook may be called.
//!
//! Private and loopback addresses are where webhooks are. Link-local ones are where clouds serve
//! the credentials of a machine, and where the addresses of a Service must not be either.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

/// Resolves names to addresses that a webhook may have.
#[derive(Clone, Debug)]
pub(super) struct Resolver(GaiResolver);

impl Resolver {
    pub(super) fn new() -> Self {
        Self(GaiResolver::new())
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolved = self.0.call(name.clone());
        Box::pin(async move {
            let found: Vec<SocketAddr> = resolved.await?.collect();
            let first = found.first().copied();
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|address| is_allowed(address.ip())).collect();
            match (allowed.is_empty(), first) {
                (true, Some(first)) => Err(io::Error::other(refusal(first.ip()))),
                _ => Ok(allowed.into_iter()),
            }
        })
    }
}

/// Refuses a URL whose host is an address that no webhook may have; names are looked at when they
/// are resolved.
pub(super) fn check(url: &Uri) -> Result<(), String> {
    let host = url.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) if !is_allowed(address) => Err(refusal(address)),
        _ => Ok(()),
    }
}

fn refusal(address: IpAddr) -> String {
    format!(
        "webhooks are not called at {address}: link-local, multicast and unspecified addresses \
         are not allowed"
    )
}

fn is_allowed(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            !(address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
                || address.octets()[0] == 0)
        }
        IpAddr::V6(address) => {
            !(address.is_unicast_link_local() || address.is_multicast() || address.is_unspecified())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_not_called_where_credentials_are_served() {
        let is_refused = |url: &str| check(&url.parse().unwrap()).is_err();
        for url in [
            "https://169.254.169.254/latest",
            "https://[fe80::1]:443/",
            "https://[::ffff:169.254.169.254]/",
            "https://0.0.0.0:8443/",
            "https://[::]/",
            "https://224.0.0.1/",
            "https://255.255.255.255/",
        ] {
            assert!(is_refused(url), "{url}");
        }
        for url in
            ["https://127.0.0.1:9443/", "https://10.0.0.1/", "https://[::1]/", "https://hook/"]
        {
            assert!(!is_refused(url), "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_is_as_good_as_its_addresses() {
        let resolve = |name: &str| Resolver::new().call(name.parse().unwrap());
        assert!(resolve("localhost").await.unwrap().all(|address| address.ip().is_loopback()));
        let refused = resolve("169.254.169.254").await.unwrap_err();
        assert!(refused.to_string().contains("169.254.169.254"), "{refused}");
    }
}
