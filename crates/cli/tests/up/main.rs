//! `convoy up` as people and stock clients meet it.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

mod access;
mod audit;
mod background;
#[path = "../documents/blocks.rs"]
mod blocks;
mod chart;
mod clients;
mod clusters;
mod daily;
mod demo;
mod deploy;
mod disk;
mod flags;
mod fleet;
mod fleet_admission;
mod flows;
mod guide_blocks;
mod guides;
mod handover;
mod health;
mod helm;
mod home;
mod karpenter;
mod karpenter_real;
mod kubectl;
mod kubectl_skyhook;
mod leadership;
mod logs;
mod member_events;
mod member_writes;
mod members;
mod monitoring;
mod ocm;
mod ocm_admission;
mod ocm_guide;
mod ocm_members;
mod ocm_real;
mod placements;
mod process;
mod prometheus;
mod rehearsal;
mod rollouts;
mod running;
mod scrape;
mod services;
mod shell;
mod skyhook_admission;
mod skyhook_metrics;
mod skyhooks;
mod takeover;
mod terminal;
mod webhooks;
mod workloads;
