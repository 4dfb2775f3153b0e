//! How a Work is to be applied.

use convoy_api::Object;
use convoy_api::object::member::{field, text};

/// The apply strategy of a Work, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strategy {
    pub(crate) method: Method,
    pub(crate) take_over: TakeOver,
    /// Whether an object that somebody changed is left alone.
    pub(crate) if_not_drifted: bool,
    pub(crate) comparison: Comparison,
    pub(crate) allow_co_ownership: bool,
}

/// How objects are brought in line with their manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// A patch that is made here from the manifest, the one before it, and the live object.
    ClientSide,
    /// The server merges, and knows which fields are whose. With `force`, fields of others are
    /// taken from them.
    ServerSide { force: bool },
    /// Differences are reported, and nothing is written.
    ReportDiff,
}

/// Which fields count as differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Those that the manifest sets.
    Partial,
    Full,
}

/// What happens to an object that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeOver {
    Always,
    IfNoDiff,
    Never,
}

impl Strategy {
    pub(crate) fn of(work: &Object) -> Self {
        let given = field(work.spec(), "applyStrategy");
        let is = |name: &str, word: &str| text(given, name) == word;
        Self {
            method: match text(given, "type") {
                "ReportDiff" => Method::ReportDiff,
                "ServerSideApply" => {
                    let config = field(given, "serverSideApplyConfig");
                    Method::ServerSide { force: field(config, "force").as_bool() == Some(true) }
                }
                _ => Method::ClientSide,
            },
            take_over: match text(given, "whenToTakeOver") {
                "IfNoDiff" => TakeOver::IfNoDiff,
                "Never" => TakeOver::Never,
                _ => TakeOver::Always,
            },
            if_not_drifted: is("whenToApply", "IfNotDrifted"),
            comparison: match text(given, "comparisonOption") {
                "FullComparison" => Comparison::Full,
                _ => Comparison::Partial,
            },
            allow_co_ownership: field(given, "allowCoOwnership").as_bool() == Some(true),
        }
    }
}

impl Strategy {
    pub(crate) fn only_reports(self) -> bool {
        self.method == Method::ReportDiff
    }
}

/// Whether the status of applied objects is reported back.
pub(crate) fn mirrors(work: &Object) -> bool {
    text(field(work.spec(), "reportBackStrategy"), "type") == "Mirror"
}
