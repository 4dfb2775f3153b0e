//! Impersonation: requests that act as another user, group or service account.

use std::collections::BTreeMap;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::account::{groups, split_user_name};
use super::rule::{AccessTarget, Attributes};
use crate::caller::{ANONYMOUS, AUTHENTICATED, Caller, UNAUTHENTICATED};
use crate::status::{ApiResult, Status};

const AUTHENTICATION: &str = "authentication.k8s.io";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// Whom a request wants to be.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    user: String,
    groups: Vec<String>,
    uid: String,
    extra: BTreeMap<String, Vec<String>>,
}

/// The caller that the headers impersonate, if any. `check` rejects what the authenticated
/// caller may not do, which must include every single part of the new identity.
pub(super) fn caller(
    headers: &HeaderMap,
    check: impl Fn(&Attributes<'_>) -> ApiResult<()>,
) -> ApiResult<Option<Caller>> {
    let Some(wanted) = Wanted::read(headers)? else { return Ok(None) };
    let Wanted { user, groups: given, uid, extra } = wanted;
    let account = split_user_name(&user);
    match account {
        Some((namespace, name)) => {
            check(&Attributes::on("impersonate", "", "serviceaccounts", namespace, name))?;
        }
        None => check(&Attributes::on("impersonate", "", "users", "", &user))?,
    }
    for group in &given {
        check(&Attributes::on("impersonate", "", "groups", "", group))?;
    }
    for (key, value) in extra.iter().flat_map(|(key, list)| list.iter().map(move |v| (key, v))) {
        let target = AccessTarget::Resource {
            group: AUTHENTICATION,
            resource: "userextras",
            subresource: key,
            name: value,
        };
        check(&Attributes { verb: "impersonate", namespace: "", target })?;
    }
    if !uid.is_empty() {
        check(&Attributes::on("impersonate", AUTHENTICATION, "uids", "", &uid))?;
    }
    let groups = match account {
        Some((namespace, _)) if given.is_empty() => groups(namespace),
        _ => given,
    };
    Ok(Some(Caller { groups: with_standing(&user, groups), name: user, uid, extra }))
}

/// Adds the group that tells whether somebody is known.
fn with_standing(user: &str, mut groups: Vec<String>) -> Vec<String> {
    let says = |name: &str| groups.iter().any(|group| group == name);
    let (unknown, known) = (says(UNAUTHENTICATED), says(AUTHENTICATED));
    if user == ANONYMOUS {
        if !unknown {
            groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !unknown && !known {
        groups.push(AUTHENTICATED.to_owned());
    }
    groups
}

impl Wanted {
    fn read(headers: &HeaderMap) -> ApiResult<Option<Self>> {
        let mut wanted = Self {
            user: texts(headers, "impersonate-user")?.into_iter().next().unwrap_or_default(),
            groups: texts(headers, "impersonate-group")?,
            uid: texts(headers, "impersonate-uid")?.into_iter().next().unwrap_or_default(),
            extra: BTreeMap::new(),
        };
        for name in headers.keys() {
            if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
                let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
                wanted.extra.entry(key).or_default().extend(texts(headers, name.as_str())?);
            }
        }
        if wanted == Self::default() {
            return Ok(None);
        }
        if wanted.user.is_empty() {
            let message = "groups, a uid or extras are impersonated without a user";
            return Err(Status::bad_request(message));
        }
        Ok(Some(wanted))
    }
}

fn texts(headers: &HeaderMap, name: &str) -> ApiResult<Vec<String>> {
    let values = headers.get_all(name).iter();
    let texts = values.map(|value| match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Status::bad_request(format!("the header {name} is not text"))),
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = list
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn every_part_of_the_identity_is_checked() {
        let asked = RefCell::new(Vec::new());
        let map = headers(&[
            ("impersonate-user", "bob"),
            ("impersonate-group", "dev"),
            ("impersonate-group", "ops"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-acme.com%2fscope", "all"),
        ]);
        let found = caller(&map, |attributes| {
            asked.borrow_mut().push(attributes.to_string());
            Ok(())
        });
        let bob = found.unwrap().unwrap();
        assert_eq!(bob.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(bob.extra["acme.com/scope"], ["all"]);
        let whole = "at the cluster scope";
        assert_eq!(
            asked.into_inner(),
            [
                format!("impersonate resource \"users\" in API group \"\" {whole}"),
                format!("impersonate resource \"groups\" in API group \"\" {whole}"),
                format!("impersonate resource \"groups\" in API group \"\" {whole}"),
                format!(
                    "impersonate resource \"userextras/acme.com/scope\" in API group \"{AUTHENTICATION}\" {whole}"
                ),
                format!("impersonate resource \"uids\" in API group \"{AUTHENTICATION}\" {whole}"),
            ]
        );
        let refused = caller(&map, |attributes| match attributes.target {
            AccessTarget::Resource { name: "ops", .. } => Err(Status::unauthorized()),
            _ => Ok(()),
        });
        assert!(refused.is_err(), "one part that may not be taken refuses the whole");
    }

    #[test]
    fn groups_follow_from_the_user() {
        let groups = |list: &[(&'static str, &str)]| {
            caller(&headers(list), |_| Ok(())).unwrap().unwrap().groups
        };
        assert_eq!(
            groups(&[("impersonate-user", "system:serviceaccount:a:b")]),
            ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]
        );
        assert_eq!(groups(&[("impersonate-user", "system:anonymous")]), [UNAUTHENTICATED]);
        assert_eq!(
            groups(&[("impersonate-user", "x"), ("impersonate-group", UNAUTHENTICATED)]),
            [UNAUTHENTICATED]
        );
        assert!(caller(&headers(&[]), |_| Ok(())).unwrap().is_none());
        assert!(caller(&headers(&[("impersonate-group", "g")]), |_| Ok(())).is_err());
    }
}
