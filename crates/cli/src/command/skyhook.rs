//! The Skyhook flags of `convoy run` and `convoy up`: the options of the upstream operator, with
//! the same environment variables.

use convoy_plan::dialect::skyhook::{Options, RuntimeTaint};
use smol_str::SmolStr;

/// Options of the Skyhook controller.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Skyhooks")]
pub(crate) struct SkyhookFlags {
    /// Namespace of package pods and ConfigMaps
    #[arg(long, value_name = "NAMESPACE", env = "NAMESPACE", default_value = "skyhook")]
    skyhook_namespace: SmolStr,
    /// Image of the agent that runs package steps; must have a tag
    #[arg(long, value_name = "IMAGE", env = "AGENT_IMAGE", default_value_t = Options::new().agent_image, value_parser = tagged)]
    agent_image: SmolStr,
    /// Image that package pods run after their steps
    #[arg(long, value_name = "IMAGE", env = "PAUSE_IMAGE", default_value_t = Options::new().pause_image)]
    pause_image: SmolStr,
    /// Image pull secret of package pods
    #[arg(long, value_name = "NAME", env = "IMAGE_PULL_SECRET")]
    image_pull_secret: Option<SmolStr>,
    /// Directory on the node that packages are copied to
    #[arg(long, value_name = "DIR", env = "COPY_DIR_ROOT", default_value_t = Options::new().copy_root, value_parser = absolute)]
    copy_dir_root: SmolStr,
    /// Directory on the node for package logs
    #[arg(long, value_name = "DIR", env = "AGENT_LOG_ROOT", default_value_t = Options::new().log_root, value_parser = absolute)]
    agent_log_root: SmolStr,
    /// Taint that keeps workloads off a node until its required Skyhooks are complete
    #[arg(long, value_name = "TAINT", env = "RUNTIME_REQUIRED_TAINT", default_value_t = Taint(Options::new().runtime_taint), value_parser = taint)]
    runtime_required_taint: Taint,
    /// Run all packages again on a node that rebooted, unless an interrupt rebooted it
    #[arg(long, env = "REAPPLY_ON_REBOOT")]
    reapply_on_reboot: bool,
}

impl SkyhookFlags {
    pub(crate) fn options(self) -> Options {
        Options {
            namespace: self.skyhook_namespace,
            agent_image: self.agent_image,
            pause_image: self.pause_image,
            image_pull_secret: self.image_pull_secret.filter(|name| !name.is_empty()),
            copy_root: self.copy_dir_root,
            log_root: self.agent_log_root,
            runtime_taint: self.runtime_required_taint.0,
            reapply_on_reboot: self.reapply_on_reboot,
            ..Options::new()
        }
    }
}

/// A taint as `kubectl taint` writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Taint(RuntimeTaint);

impl std::fmt::Display for Taint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RuntimeTaint { key, value, effect } = &self.0;
        write!(f, "{}", convoy_plan::taint::Taint { key, value, effect })
    }
}

fn taint(text: &str) -> Result<Taint, String> {
    const EXPECTED: &str = "expected KEY=VALUE:EFFECT or KEY:EFFECT";
    let (named, effect) = text.rsplit_once(':').ok_or(EXPECTED)?;
    if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err(format!(
            "invalid effect {effect:?}; valid: NoSchedule, PreferNoSchedule, NoExecute"
        ));
    }
    let (key, value) = named.split_once('=').unwrap_or((named, ""));
    if key.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    let [key, value, effect] = [key, value, effect].map(SmolStr::new);
    Ok(Taint(RuntimeTaint { key, value, effect }))
}

fn absolute(text: &str) -> Result<SmolStr, String> {
    match text.strip_prefix('/') {
        Some(_) => Ok(text.into()),
        None => Err("expected an absolute path".to_owned()),
    }
}

fn tagged(text: &str) -> Result<SmolStr, String> {
    let name = text.rsplit_once('/').map_or(text, |(_, name)| name);
    match name.split_once(':') {
        Some((name, tag)) if !name.is_empty() && !tag.is_empty() => Ok(text.into()),
        _ => Err("expected an image with a tag".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        flags: SkyhookFlags,
    }

    fn options(flags: &[&str]) -> Result<Options, clap::Error> {
        let program = Program::try_parse_from([&["convoy"], flags].concat())?;
        Ok(program.flags.options())
    }

    #[test]
    fn defaults_are_those_of_the_upstream_operator() {
        assert_eq!(options(&[]).unwrap(), Options::new());
    }

    #[test]
    fn every_flag_reaches_the_options() {
        let flags = [
            "--skyhook-namespace=packages",
            "--agent-image=host:5000/agent:v7",
            "--pause-image=host:5000/pause",
            "--image-pull-secret=pulls",
            "--copy-dir-root=/opt/packages",
            "--agent-log-root=/opt/logs",
            "--runtime-required-taint=example.com/late:NoExecute",
            "--reapply-on-reboot",
        ];
        let taint = ["example.com/late", "", "NoExecute"].map(SmolStr::new_static);
        let [key, value, effect] = taint;
        let expected = Options {
            namespace: "packages".into(),
            agent_image: "host:5000/agent:v7".into(),
            pause_image: "host:5000/pause".into(),
            image_pull_secret: Some("pulls".into()),
            copy_root: "/opt/packages".into(),
            log_root: "/opt/logs".into(),
            runtime_taint: RuntimeTaint { key, value, effect },
            reapply_on_reboot: true,
            ..Options::new()
        };
        assert_eq!(options(&flags).unwrap(), expected);
    }

    #[test]
    fn invalid_values_are_refused() {
        let wrong = [
            "--agent-image=host:5000/agent",
            "--agent-image=agent:",
            "--copy-dir-root=packages",
            "--agent-log-root=",
            "--runtime-required-taint=late",
            "--runtime-required-taint=late:Never",
            "--runtime-required-taint==x:NoExecute",
        ];
        for flag in wrong {
            assert!(options(&[flag]).is_err(), "{flag}");
        }
    }
}
