//! The nodes of a Skyhook: what is known of each before anything is decided.

use std::sync::Arc;

use convoy_api::Object;
use convoy_api::skyhook::{Stage, StatusWord};
use jiff::Timestamp;

use crate::dialect::skyhook::decide::assess::{Assessment, Assessor};
use crate::dialect::skyhook::names::{IGNORE, NODE_STATE};
use crate::dialect::skyhook::read::config::mark;
use crate::dialect::skyhook::read::hook::{Hook, Picks};
use crate::dialect::skyhook::read::node::{boot_id, parse_word, taints};
use crate::dialect::skyhook::read::observe::{Observation, observe};
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::pod::Pods;
use crate::dialect::skyhook::read::state::NodeState;
use crate::gate::Permit;
use crate::hold::HoldReason;
use crate::parallel;
use crate::selector::label_sets::LabelSets;
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
    /// Which batch it was picked for, as its annotation tells.
    pub(crate) mark: Option<&'w str>,
    /// It rebooted, other than by an interrupt, and has to start over.
    pub(crate) rebooted: bool,
    /// The annotations and labels of this Skyhook on it.
    pub(crate) marks: NodeMarks,
    /// Which of the [`LabelSets`] it is in.
    pub(crate) label_set: usize,
    /// Index of its compartment.
    pub(crate) compartment: usize,
    /// The gate's permit, if it starts now.
    pub(crate) starts: Option<Permit>,
}

/// The annotations and labels of one Skyhook on a node, beside the state of its packages. Unknown
/// status words count as none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeMarks {
    word: Option<StatusWord>,
    label: Option<StatusWord>,
    pub(crate) is_cordoned: bool,
}

impl NodeMarks {
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

    /// Its status before this decision: the state of its packages counts before the word that the
    /// node carries.
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

    /// Whether a package pod is at work on it and may still succeed.
    pub(crate) fn is_at_work(&self) -> bool {
        self.seen.as_deref().is_some_and(Observation::is_at_work)
    }

    /// What keeps it from starting, whatever the limits. A node whose failing pod is still there
    /// cannot start again: the kubelet retries the pod.
    pub(crate) fn obstacle_to_start(&self) -> Option<HoldReason> {
        if let Some(reason) = self.obstacle.as_deref() {
            return Some(reason.clone());
        }
        let failure = self.assessed.failure.as_ref()?;
        let retried = self.seen.as_ref().is_some_and(|seen| !seen.live.is_empty());
        retried.then(|| HoldReason::Failed { detail: failure.clone() })
    }

    /// Its rank among the nodes that may start: nodes that were disturbed before and can go on
    /// come first, then those never started, then those that were blocked, then those that failed.
    pub(crate) fn precedence(&self) -> u8 {
        match self.word() {
            StatusWord::Erroring if self.has_recovered() => 0,
            StatusWord::Erroring => 3,
            StatusWord::Blocked => 2,
            _ => 1,
        }
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
    /// Packages, by unique name, whose changed config nodes are being told about.
    pub(crate) changing: &'s [&'s str],
}

/// The nodes that a Skyhook targets, and those that it targets no more.
#[derive(Debug)]
pub(crate) struct Gathered<'w> {
    /// Oldest first, then by name.
    pub(crate) members: Vec<Member<'w>>,
    /// Not targeted, and still cordoned by this Skyhook.
    pub(crate) untargeted: Vec<&'w Object>,
}

/// Reads every node once: their parts lie all over the memory, and coming back costs more
/// than keeping what is found.
pub(crate) fn gather<'w>(
    around: Surroundings<'_, 'w>,
    nodes: &[&'w Object],
    label_sets: &mut LabelSets<'w>,
) -> Gathered<'w> {
    let asked = &*label_sets;
    let pieces = parallel::pieces(nodes, |nodes| {
        let mut gather = Gather::new(around, asked.fresh());
        let mut members = Vec::with_capacity(nodes.len());
        members.extend(nodes.iter().filter_map(|node| gather.member(node)));
        (members, gather.untargeted, gather.label_sets)
    });
    let (mut members, mut untargeted) = (Vec::new(), Vec::new());
    for (mut piece, piece_untargeted, piece_label_sets) in pieces {
        let numbers = label_sets.join(piece_label_sets);
        for member in &mut piece {
            member.label_set = numbers[member.label_set];
        }
        if members.is_empty() {
            members = piece;
            members.reserve(nodes.len() - members.len());
        } else {
            members.extend(piece);
        }
        untargeted.extend(piece_untargeted);
    }
    members.sort_by_key(|member| member.created); // stable: nodes come by name
    Gathered { members, untargeted }
}

struct Gather<'s, 'w> {
    around: Surroundings<'s, 'w>,
    label_sets: LabelSets<'w>,
    untargeted: Vec<&'w Object>,
    tolerations: Vec<Toleration<'s>>,
    own: Assessor<'s, 'w>,
    earlier: Vec<(&'s Hook<'w>, Assessor<'s, 'w>)>,
    picks: Picks<'w>,
}

impl<'s, 'w: 's> Gather<'s, 'w> {
    fn new(around: Surroundings<'s, 'w>, label_sets: LabelSets<'w>) -> Self {
        Self {
            around,
            label_sets,
            untargeted: Vec::new(),
            tolerations: around.hook.tolerations(around.options),
            own: Assessor::new(around.hook),
            earlier: around.earlier.iter().map(|hook| (*hook, Assessor::new(hook))).collect(),
            picks: around.hook.published_picks(),
        }
    }

    fn member(&mut self, node: &'w Object) -> Option<Member<'w>> {
        let around = self.around;
        let keys = &around.hook.keys;
        let is_cordoned = node.annotation(&keys.cordon).is_some();
        if !around.hook.selector.matches(node) {
            self.untargeted.extend(is_cordoned.then_some(node));
            return None;
        }
        let mut assessed = self.own.read(node.annotation(&keys.node_state));
        let pods = around.pods.on(node.name());
        let mut seen = None;
        if !pods.is_empty() || !around.changing.is_empty() {
            let mut state = assessed.state.clone();
            seen = Some(Box::new(observe(around.hook, &mut state, pods)));
            mark(around.hook, around.changing, &mut state);
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
            false if rebooted => {
                Some(HoldReason::Depends { on: "its reset after a reboot".into() })
            }
            false => self.obstacle(node, &assessed),
        };
        let word = node.annotation(&keys.status).and_then(parse_word);
        let label = node.label(&keys.status).and_then(parse_word);
        let marks = NodeMarks { word, label, is_cordoned };
        Some(Member {
            node,
            created: node.created_at(),
            observed: marks.word.filter(|_| !rebooted),
            assessed,
            seen,
            obstacle: obstacle.map(Box::new),
            picked_at: self.picked_at(node).filter(|_| !rebooted),
            mark: node.annotation(&keys.batch),
            rebooted,
            marks,
            label_set: self.label_sets.set_of(node),
            compartment: 0,
            starts: None,
        })
    }

    /// When the node was picked, as the status tells.
    fn picked_at(&self, node: &Object) -> Option<&'w str> {
        self.picks.at(node.name())
    }

    /// Whether the node runs another boot than was last seen, and no interrupt, of whichever
    /// Skyhook, is the reason.
    fn has_rebooted(&self, node: &'w Object) -> bool {
        let hook = self.around.hook;
        let known = node.annotation(&hook.keys.boot).or_else(|| hook.published_boot(node.name()));
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

    /// What keeps a node from being started, the first of: the ignore label, a Skyhook that goes
    /// first and is not complete there, a node state that cannot be read, a taint. The label goes
    /// first so that a picked node that someone ignores releases its slot.
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
        let taints: Vec<Taint<'_>> = taints(node).iter().map(Taint::from_value).collect();
        let taint = first_intolerable(&taints, &self.tolerations)?;
        Some(HoldReason::TaintNotTolerated { taint: taint.to_string() })
    }
}
