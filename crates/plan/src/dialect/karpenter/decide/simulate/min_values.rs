//! `minValues`: how many different values of a label the machines of a claim have to leave open.

use std::collections::BTreeSet;

use super::offer::Offer;
use crate::dialect::karpenter::read::pool::Pool;

/// What upstream says when `offers` leave too few values of a label open; none if they do not.
pub(crate) fn unmet(pool: &Pool<'_>, offers: &[Offer<'_>]) -> Option<String> {
    let is_short = |(key, least): &&(smol_str::SmolStr, usize)| {
        let values = offers.iter().filter_map(|offer| offer.label(key));
        values.collect::<BTreeSet<&str>>().len() < *least
    };
    let (key, _) = pool.min_values.iter().find(is_short)?;
    Some(format!("minValues requirement is not met for label(s) (label(s)=[{key}])"))
}
