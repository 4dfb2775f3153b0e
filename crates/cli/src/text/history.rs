//! The revisions of a rollout, and what people asked of it.

use convoy_api::ObjectKey;
use convoy_plan::Revision;
use convoy_plan::intervention::Record;
use jiff::Timestamp;

use super::style::{self, HEADING, painted};
use super::table::{Cell, Table};
use super::time;
use super::words::{plain, target};

/// The two tables of `convoy history`.
pub(crate) fn history(
    rollout: &ObjectKey,
    revisions: &[Revision],
    records: &[Record],
    now: Timestamp,
) -> String {
    let mut text = format!("{}\n", painted(HEADING, &target(rollout)));
    if revisions.is_empty() {
        text.push_str("no revisions\n");
    } else {
        let headings = ["REVISION", "OBJECT", "AGE", "CURRENT", "CONTENT"].map(Cell::heading);
        let mut table = Table::new(&headings);
        for revision in revisions {
            let age = revision.created_at.map_or("-".to_owned(), |since| time::age(since, now));
            let current = if revision.is_current { "yes" } else { "" };
            table.row(vec![
                Cell::new(revision.number.to_string()),
                Cell::new(plain(&revision.object)),
                Cell::new(age),
                Cell::new(current).styled(style::GOOD),
                Cell::new(plain(&revision.content)),
            ]);
        }
        table.write(&mut text, 0);
    }
    if records.is_empty() {
        text.push_str("no interventions recorded\n");
        return text;
    }
    let headings = ["INTERVENTION", "BY", "AGE", "REASON"].map(Cell::heading);
    let mut table = Table::new(&headings);
    for record in records {
        table.row(vec![
            Cell::new(plain(&record.verb)),
            Cell::new(plain(&record.actor)),
            Cell::new(time::age(record.at, now)),
            Cell::new(plain(&record.reason)),
        ]);
    }
    text.push('\n');
    table.write(&mut text, 0);
    text
}
