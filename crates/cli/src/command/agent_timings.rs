//! The timing flags of KubeFleet's member agent, under their upstream names and with their defaults
//! and ranges.

use anyhow::{Result, ensure};
use convoy_plan::dialect::fleet_agent::{AgentTimings, Requeue};
use jiff::SignedDuration;

/// How long the agent of a member waits.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "KubeFleet member agent")]
pub(crate) struct AgentTimingFlags {
    /// Minutes to wait for the objects of a deleted Work before those with other owners are released
    #[arg(long, value_name = "MINUTES", default_value_t = 5, value_parser = clap::value_parser!(i64).range(1..=60))]
    deletion_wait_time: i64,
    /// Number of times that a Work is checked again after the fixed delay
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=40))]
    work_applier_requeue_rate_limiter_attempts_with_fixed_delay: u32,
    /// Fixed delay in seconds before a Work is checked again
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(i64).range(2..=300))]
    work_applier_requeue_rate_limiter_fixed_delay_seconds: i64,
    /// Growth of the delay in the slow stage, from 1.05 to 2
    #[arg(long, value_name = "FACTOR", default_value = "1.2", value_parser = slow_factor)]
    work_applier_requeue_rate_limiter_exponential_base_for_slow_backoff: u32,
    /// First delay in seconds of the slow stage
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(i64).range(2..=3600))]
    work_applier_requeue_rate_limiter_initial_slow_backoff_delay_seconds: i64,
    /// Maximum delay in seconds of the slow stage
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(i64).range(2..=3600))]
    work_applier_requeue_rate_limiter_max_slow_backoff_delay_seconds: i64,
    /// Growth of the delay in the fast stage, above 1 and up to 2
    #[arg(long, value_name = "FACTOR", default_value = "1.5", value_parser = fast_factor)]
    work_applier_requeue_rate_limiter_exponential_base_for_fast_backoff: u32,
    /// Maximum delay in seconds of the fast stage
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(i64).range(1..=3600))]
    work_applier_requeue_rate_limiter_max_fast_backoff_delay_seconds: i64,
    /// Whether Works that are available, or whose differences are reported, skip the slow stage
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = true)]
    work_applier_requeue_rate_limiter_skip_to_fast_backoff_for_available_or_diff_reported_work_objs:
        bool,
}

impl AgentTimingFlags {
    pub(crate) fn resolve(self) -> Result<AgentTimings> {
        let Self {
            deletion_wait_time,
            work_applier_requeue_rate_limiter_attempts_with_fixed_delay: fixed_attempts,
            work_applier_requeue_rate_limiter_fixed_delay_seconds: fixed,
            work_applier_requeue_rate_limiter_exponential_base_for_slow_backoff: slow_permille,
            work_applier_requeue_rate_limiter_initial_slow_backoff_delay_seconds: first,
            work_applier_requeue_rate_limiter_max_slow_backoff_delay_seconds: slow,
            work_applier_requeue_rate_limiter_exponential_base_for_fast_backoff: fast_permille,
            work_applier_requeue_rate_limiter_max_fast_backoff_delay_seconds: fast,
            work_applier_requeue_rate_limiter_skip_to_fast_backoff_for_available_or_diff_reported_work_objs:
                skips_slow,
        } = self;
        ensure!(
            first <= slow && slow <= fast,
            "the delays of work-applier-requeue-rate-limiter must not shrink: initial slow {first} \
             s, maximum slow {slow} s, maximum fast {fast} s"
        );
        let secs = SignedDuration::from_secs;
        let requeue = Requeue {
            fixed_attempts,
            fixed_delay: secs(fixed),
            slow_first: secs(first),
            slow_max: secs(slow),
            fast_max: secs(fast),
            slow_permille,
            fast_permille,
            skips_slow,
        };
        Ok(AgentTimings { deletion_wait: SignedDuration::from_mins(deletion_wait_time), requeue })
    }
}

fn slow_factor(text: &str) -> Result<u32, String> {
    factor(text, 1050, "from 1.05 to 2")
}

fn fast_factor(text: &str) -> Result<u32, String> {
    factor(text, 1001, "above 1 and up to 2, in thousandths")
}

/// A decimal number with up to three places, in thousandths.
fn factor(text: &str, least: u32, expected: &str) -> Result<u32, String> {
    let wrong = || format!("expected a number {expected}");
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || whole.len() > 1 || part.len() > 3 {
        return Err(wrong());
    }
    let thousandths = format!("{whole}{part:0<3}").parse().map_err(|_| wrong())?;
    if (least..=2000).contains(&thousandths) { Ok(thousandths) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        agent: AgentTimingFlags,
    }

    fn timings(flags: &[&str]) -> Result<AgentTimings> {
        let Program { agent } = Program::try_parse_from([&["convoy"], flags].concat())?;
        agent.resolve()
    }

    #[test]
    fn defaults_are_those_of_the_dialects() {
        assert_eq!(timings(&[]).unwrap(), AgentTimings::new());
    }

    #[test]
    fn flags_reach_the_timings() {
        let prefix = "--work-applier-requeue-rate-limiter";
        let agent = timings(&[
            "--deletion-wait-time=2",
            &format!("{prefix}-max-slow-backoff-delay-seconds=5"),
            &format!("{prefix}-max-fast-backoff-delay-seconds=5"),
            &format!("{prefix}-exponential-base-for-slow-backoff=1.05"),
            &format!("{prefix}-exponential-base-for-fast-backoff=2"),
        ])
        .unwrap();
        assert_eq!(agent.deletion_wait, SignedDuration::from_mins(2));
        let Requeue { slow_max, fast_max, slow_permille, fast_permille, .. } = agent.requeue;
        assert_eq!((slow_max.as_secs(), fast_max.as_secs()), (5, 5));
        assert_eq!((slow_permille, fast_permille), (1050, 2000));
    }

    #[test]
    fn values_outside_upstreams_ranges_are_refused() {
        let prefix = "--work-applier-requeue-rate-limiter";
        let wrong = [
            "--deletion-wait-time=0".to_owned(),
            format!("{prefix}-max-fast-backoff-delay-seconds=14"),
            format!("{prefix}-exponential-base-for-slow-backoff=1"),
            format!("{prefix}-exponential-base-for-fast-backoff=2.5"),
            format!("{prefix}-exponential-base-for-fast-backoff=1.-5"),
        ];
        for flag in wrong {
            assert!(timings(&[&flag]).is_err(), "{flag}");
        }
    }
}
