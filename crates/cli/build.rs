//! Tells the compiler which commit and which profile it builds, for `convoy version`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CONVOY_COMMIT");
    let profile = profile().unwrap_or_default();
    // A development build has no commit: it would have to be built again after each one.
    let commit = if profile == "debug" { None } else { commit() };
    println!("cargo::rustc-env=CONVOY_COMMIT={}", commit.unwrap_or_default());
    println!("cargo::rustc-env=CONVOY_PROFILE={profile}");
}

/// The commit that whoever packages the sources gives, or that of the checkout.
fn commit() -> Option<String> {
    if let Ok(given) = std::env::var("CONVOY_COMMIT") {
        return Some(given);
    }
    // HEAD changes with a checkout, and its log with every commit.
    for file in ["../../.git/HEAD", "../../.git/logs/HEAD"] {
        if Path::new(file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    let output = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The name of the profile: cargo's own variable calls everything that is optimized `release`. It
/// is the directory in which cargo builds: `target/PROFILE/build/NAME/out`.
fn profile() -> Option<String> {
    let out = std::env::var("OUT_DIR").ok()?;
    let of_profile = Path::new(&out).ancestors().nth(3)?;
    Some(of_profile.file_name()?.to_str()?.to_owned())
}
