//! Kernel parameters of a pod: their names, and that they are not those of the host.

use crate::kinds::at::{At, Errors};

const LONGEST: usize = 253;
const PATTERN: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Parameters that belong to the IPC namespace; a name that ends with a dot is a prefix.
const IPC: [&str; 4] = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."];

pub(super) fn validate(spec: &At<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for sysctl in spec.get("securityContext.sysctls").items() {
        let name = sysctl.get("name");
        let text = name.text();
        if text.is_empty() {
            errors.push(name.required(""));
        } else if !is_valid(text) {
            let detail =
                format!("must have at most {LONGEST} characters and match regex {PATTERN}");
            errors.push(name.invalid_as(text, &detail));
        } else if seen.contains(&text) {
            errors.push(name.duplicate());
        }
        seen.push(text);
        let dotted = text.replace('/', ".");
        let of_host = if spec.get("hostNetwork").is_true() && dotted.starts_with("net.") {
            "hostNetwork"
        } else if spec.get("hostIPC").is_true() && IPC.iter().any(|ipc| dotted.starts_with(ipc)) {
            "hostIPC"
        } else {
            continue;
        };
        let detail = format!("may not be specified when '{of_host}' is true");
        errors.push(name.invalid_as(text, &detail));
    }
}

/// Segments of lower-case letters, digits, dashes and underscores between dots or slashes.
fn is_valid(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.iter().all(|end| end.is_some_and(|byte| plain(*byte)))
            && bytes.iter().all(|byte| plain(*byte) || b"-_".contains(byte))
    };
    name.len() <= LONGEST && name.split(['.', '/']).all(is_segment)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_checked() {
        let sysctls =
            ["foo-", "kernel.shmmax", "safe-and-unsafe", "bar..", "net/ipv4/ip_local", ""];
        let sysctls = sysctls.map(|name| json!({"name": name, "value": "1"}));
        let spec = json!({"hostNetwork": true, "securityContext": {"sysctls": sysctls}});
        let mut errors = Errors::new();
        validate(&At::new("spec", &spec), &mut errors);
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let expected = [
            "spec.securityContext.sysctls[0].name: Invalid value: \"foo-\": must have at most",
            "spec.securityContext.sysctls[3].name: Invalid value: \"bar..\": must have at most",
            "spec.securityContext.sysctls[4].name: Invalid value: \"net/ipv4/ip_local\": may not",
            "spec.securityContext.sysctls[5].name: Required value",
        ];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{told}");
        }
    }
}
