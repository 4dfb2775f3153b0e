//! The nodes of a Skyhook: what is known of each before anything is decided.

use std::sync::Arc;

use convoy_api::Object;
use convoy_api::object::member::member;
use convoy_api::skyhook::{Stage, StatusWord};
use jiff::Timestamp;
use serde_json::Value;

use crate::dialect::skyhook::decide::assess::{Assessment, Assessor};
use crate::dialect::skyhook::decide::compartment::Kinds;
use crate::dialect::skyhook::names::{IGNORE, NODE_STATE};
use crate::dialect::skyhook::read::hook::Hook;
use crate::dialect::skyhook::read::observe::{Observation, observe};
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::pod::Pods;
use crate::dialect::skyhook::read::state::NodeState;
use crate::hold::HoldReason;
use crate::parallel;
use crate::taint::{Taint, Toleration, first_intolerable};

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct Member<'w> {
    pub(crate) node: &'w Object,
    pub(crate) created: Option<Timestamp>,
    /// The status word that the node carries.
    pub(crate) observed: Option<StatusWord>,
    /// Its packages, pod results included.
    pub(crate) assessed: Arc<Assessment>,
    /// Its package pods, where it has any.
    pub(crate) seen: Option<Box<Observation<'w>>>,
    /// Why it may not be started, whatever the limits; only of nodes that are not complete.
    pub(crate) obstacle: Option<Box<HoldReason>>,
    /// Whether it was picked, and when, as the Skyhook's status tells.
    pub(crate) picked_at: Option<&'w str>,
    /// It rebooted, other than by an interrupt, and has to start over.
    pub(crate) rebooted: bool,
    /// What it carries in this Skyhook's name.
    pub(crate) carried: Carried,
    /// Which of [`Kinds`] it is.
    pub(crate) kind: usize,
    /// Index of its compartment.
    pub(crate) compartment: usize,
    /// Whether it was picked in this pass.
    pub(crate) starts: bool,
}

/// What a node carries of one Skyhook, beside the state of its packages. Words that nobody
/// knows count as none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    word: Option<StatusWord>,
    label: Option<StatusWord>,
    pub(crate) is_cordoned: bool,
}

impl Carried {
    /// Whether annotation and label both are this word.
    pub(crate) fn says(self, word: StatusWord) -> bool {
        self.word == Some(word) && self.label == Some(word)
    }
}

impl Member<'_> {
    pub(crate) fn is_complete(&self) -> bool {
        self.assessed.complete
    }

    /// Someone took it out of the rollout.
    pub(crate) fn is_ignored(&self) -> bool {
        matches!(self.obstacle.as_deref(), Some(HoldReason::Ignored { .. }))
    }

    /// Where it stands before this pass decides anything: what its packages say goes before
    /// the word it carries.
    pub(crate) fn word(&self) -> StatusWord {
        if self.is_complete() {
            StatusWord::Complete
        } else if self.is_ignored() {
            StatusWord::Blocked
        } else if self.assessed.failure.is_some() {
            StatusWord::Erroring
        } else {
            // One that was complete is so no more: the spec asks for something else now.
            let begun = self.observed.filter(|word| *word != StatusWord::Complete);
            begun.unwrap_or(StatusWord::Unknown)
        }
    }

    /// Whether it takes a slot: it was started, and has neither ended nor failed. A node that
    /// was picked keeps its slot whatever word a pause left on it.
    pub(crate) fn is_in_flight(&self) -> bool {
        match self.word() {
            StatusWord::InProgress => true,
            StatusWord::Complete | StatusWord::Erroring | StatusWord::Blocked => false,
            _ => self.picked_at.is_some(),
        }
    }

    /// Whether it counts as failed at this revision.
    pub(crate) fn has_failed(&self) -> bool {
        self.word() == StatusWord::Erroring && !self.assessed.stale_failure
    }

    /// It reads erroring, but what failed has succeeded since, or is no longer asked for.
    pub(crate) fn has_recovered(&self) -> bool {
        self.word() == StatusWord::Erroring && self.assessed.failure.is_none()
    }

    /// Whether the pod that fails is still there, so that the kubelet tries it again.
    pub(crate) fn retries_by_itself(&self) -> bool {
        self.assessed.failure.is_some()
            && self.seen.as_ref().is_some_and(|seen| !seen.live.is_empty())
    }
}

/// The boot that a node runs.
pub(crate) fn boot_id(node: &Object) -> Option<&str> {
    node.status().pointer("/nodeInfo/bootID")?.as_str()
}

/// The word as it stands on the wire.
pub(crate) fn parse_word(text: &str) -> Option<StatusWord> {
    Some(match text {
        "unknown" => StatusWord::Unknown,
        "complete" => StatusWord::Complete,
        "blocked" => StatusWord::Blocked,
        "waiting" => StatusWord::Waiting,
        "disabled" => StatusWord::Disabled,
        "paused" => StatusWord::Paused,
        "in_progress" => StatusWord::InProgress,
        "erroring" => StatusWord::Erroring,
        _ => return None,
    })
}

/// The word as it stands on the wire.
pub(crate) fn word_text(word: StatusWord) -> &'static str {
    match word {
        StatusWord::Unknown => "unknown",
        StatusWord::Complete => "complete",
        StatusWord::Blocked => "blocked",
        StatusWord::Waiting => "waiting",
        StatusWord::Disabled => "disabled",
        StatusWord::Paused => "paused",
        StatusWord::InProgress => "in_progress",
        StatusWord::Erroring => "erroring",
    }
}

/// What members are gathered from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'s, 'w> {
    pub(crate) hook: &'s Hook<'w>,
    /// The Skyhooks that go first, in any order.
    pub(crate) earlier: &'s [&'s Hook<'w>],
    pub(crate) options: &'s Options,
    pub(crate) pods: &'s Pods<'w>,
    /// Packages, by unique name, whose changed config is being handed to the nodes.
    pub(crate) changing: &'s [&'s str],
}

/// The nodes that a Skyhook targets, and those that it targets no more.
#[derive(Debug)]
pub(crate) struct Gathered<'w> {
    /// Oldest first, then by name.
    pub(crate) members: Vec<Member<'w>>,
    /// Not targeted, and still cordoned in its name.
    pub(crate) left: Vec<&'w Object>,
}

/// Reads every node once: their parts lie all over the memory, and coming back costs more
/// than keeping what is found.
pub(crate) fn gather<'w>(
    around: Surroundings<'_, 'w>,
    nodes: &[&'w Object],
    kinds: &mut Kinds<'w>,
) -> Gathered<'w> {
    let asked = &*kinds;
    let pieces = parallel::pieces(nodes, |nodes| {
        let mut gather = Gather::new(around, asked.fresh());
        let mut members = Vec::with_capacity(nodes.len());
        members.extend(nodes.iter().filter_map(|node| gather.member(node)));
        (members, gather.left, gather.kinds)
    });
    let (mut members, mut left) = (Vec::new(), Vec::new());
    for (mut piece, piece_left, piece_kinds) in pieces {
        let numbers = kinds.join(piece_kinds);
        for member in &mut piece {
            member.kind = numbers[member.kind];
        }
        if members.is_empty() {
            members = piece;
            members.reserve(nodes.len() - members.len());
        } else {
            members.extend(piece);
        }
        left.extend(piece_left);
    }
    members.sort_by_key(|member| member.created); // stable: nodes come by name
    Gathered { members, left }
}

struct Gather<'s, 'w> {
    around: Surroundings<'s, 'w>,
    kinds: Kinds<'w>,
    left: Vec<&'w Object>,
    tolerations: Vec<Toleration<'s>>,
    own: Assessor<'s, 'w>,
    earlier: Vec<(&'s Hook<'w>, Assessor<'s, 'w>)>,
    priority: &'w Value,
}

impl<'s, 'w: 's> Gather<'s, 'w> {
    fn new(around: Surroundings<'s, 'w>, kinds: Kinds<'w>) -> Self {
        Self {
            around,
            kinds,
            left: Vec::new(),
            tolerations: around.hook.tolerations(around.options),
            own: Assessor::new(around.hook),
            earlier: around.earlier.iter().map(|hook| (*hook, Assessor::new(hook))).collect(),
            priority: around.hook.object.status().get("nodePriority").unwrap_or(&Value::Null),
        }
    }

    fn member(&mut self, node: &'w Object) -> Option<Member<'w>> {
        let around = self.around;
        let keys = &around.hook.keys;
        let is_cordoned = node.annotation(&keys.cordon).is_some();
        if !around.hook.selector.matches(node) {
            self.left.extend(is_cordoned.then_some(node));
            return None;
        }
        let mut assessed = self.own.read(node.annotation(&keys.node_state));
        let pods = around.pods.on(node.name());
        let mut seen = None;
        if !pods.is_empty() || !around.changing.is_empty() {
            let mut state = assessed.state.clone();
            seen = Some(Box::new(observe(around.hook, &mut state, pods)));
            crate::dialect::skyhook::decide::config::mark(around.hook, around.changing, &mut state);
            if state != assessed.state && assessed.unreadable.is_none() {
                assessed = Arc::new(Assessment::of(around.hook, state));
            }
        }
        let rebooted = around.options.reapply_on_reboot && self.has_rebooted(node);
        if rebooted {
            assessed = self.own.read(None);
        }
        let obstacle = match assessed.complete {
            true => None,
            false if rebooted => Some(HoldReason::Depends { on: "a reset after a reboot".into() }),
            false => self.obstacle(node, &assessed),
        };
        let word = node.annotation(&keys.status).and_then(parse_word);
        let label = node.label(&keys.status).and_then(parse_word);
        let carried = Carried { word, label, is_cordoned };
        Some(Member {
            node,
            created: node.created_at(),
            observed: carried.word.filter(|_| !rebooted),
            assessed,
            seen,
            obstacle: obstacle.map(Box::new),
            picked_at: self.picked_at(node).filter(|_| !rebooted),
            rebooted,
            carried,
            kind: self.kinds.of(node),
            compartment: 0,
            starts: false,
        })
    }

    /// When the node was picked, as the status tells.
    fn picked_at(&self, node: &Object) -> Option<&'w str> {
        member(self.priority, node.name())?.as_str()
    }

    /// Whether the node runs another boot than was last seen, and no interrupt, of whichever
    /// Skyhook, is the reason.
    fn has_rebooted(&self, node: &'w Object) -> bool {
        let hook = self.around.hook;
        let known = node.annotation(&hook.keys.boot).or_else(|| {
            hook.object.status().get("nodeBootIds")?.get(node.name().as_str())?.as_str()
        });
        let interrupted = |(key, value): (&str, &str)| {
            key.starts_with(NODE_STATE)
                && NodeState::parse(value).is_ok_and(|state| {
                    state
                        .values()
                        .any(|entry| entry.stage == Stage::Interrupt && entry.is_running())
                })
        };
        known.is_some_and(|known| boot_id(node).is_some_and(|now| now != known))
            && !node.annotations().any(interrupted)
    }

    /// What keeps a node from being started, the first of: a Skyhook that goes first, the
    /// ignore label, a taint, a state that cannot be read.
    fn obstacle(&mut self, node: &'w Object, assessed: &Assessment) -> Option<HoldReason> {
        if node.label(IGNORE) == Some("true") {
            return Some(HoldReason::Ignored { by: format!("label {IGNORE}") });
        }
        for (hook, assessor) in &mut self.earlier {
            if !hook.selector.matches(node) {
                continue;
            }
            if !assessor.read(node.annotation(&hook.keys.node_state)).complete {
                let rollout = hook.name().to_string();
                return Some(HoldReason::BehindRollout { rollout, priority: hook.priority });
            }
        }
        if let Some(detail) = &assessed.unreadable {
            return Some(HoldReason::NotDisruptable { detail: detail.clone() });
        }
        let taints = node.spec_member("taints")?.as_array()?;
        let taints: Vec<Taint<'_>> = taints.iter().map(Taint::from_value).collect();
        let taint = first_intolerable(&taints, &self.tolerations)?;
        Some(HoldReason::TaintNotTolerated { taint: taint.to_string() })
    }
}
