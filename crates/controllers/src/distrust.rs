//! Why a server's certificate is not trusted, in words that say what to change. The library's own
//! word is `UnknownIssuer`.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// What to do if `error` is about the certificate of a server.
pub(crate) fn advice(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let rustls::Error::InvalidCertificate(why) = of_tls(error)? else { return None };
    Some(match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no certificate authority that is trusted here signed the certificate of the server: \
             compare certificate-authority of the kubeconfig with the authority of the server"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate of the server has expired: renew it, or set the clock of this machine"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate of the server is not valid yet: set the clock of this machine"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate of the server is for another name: use an address that it names, or \
             set tls-server-name in the kubeconfig"
        }
        _ => return None,
    })
}

/// The error of the TLS library among the causes. An [`io::Error`] names the causes of the error that
/// it wraps, and not that error.
fn of_tls<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(found) = error.downcast_ref::<rustls::Error>() {
        return Some(found);
    }
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let within = wrapped.and_then(|wrapped| of_tls(wrapped));
    within.or_else(|| error.source().and_then(of_tls))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice_for(why: CertificateError) -> Option<&'static str> {
        let of_tls = rustls::Error::InvalidCertificate(why);
        let wrapped = io::Error::new(io::ErrorKind::InvalidData, of_tls);
        advice(&kube::Error::Service(Box::new(io::Error::other(wrapped))))
    }

    #[test]
    fn each_reason_says_what_to_change() {
        for (why, word) in [
            (CertificateError::UnknownIssuer, "certificate-authority"),
            (CertificateError::Expired, "has expired"),
            (CertificateError::NotValidYet, "clock"),
            (CertificateError::NotValidForName, "tls-server-name"),
        ] {
            let advice = advice_for(why.clone()).unwrap();
            assert!(advice.contains(word), "{why:?}: {advice}");
        }
        assert_eq!(advice_for(CertificateError::Revoked), None);
        assert_eq!(advice(&kube::Error::Service("no route".into())), None);
    }
}
