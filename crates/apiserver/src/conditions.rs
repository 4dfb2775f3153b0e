//! Conditions in the status of an object.

use serde_json::{Value, json};

/// A condition as it should read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'c> {
    pub kind: &'c str,
    pub is_true: bool,
    pub reason: &'c str,
    pub message: &'c str,
}

/// Sets a condition. Its time is that of the last change between true and false.
pub(crate) fn set(status: &mut Value, condition: &Condition<'_>, now: &str) {
    let wanted = if condition.is_true { "True" } else { "False" };
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let list = status["conditions"].as_array_mut().expect("made a list above");
    let place = list.iter().position(|known| known["type"] == condition.kind);
    let since = match place {
        Some(at) if list[at]["status"] == wanted => list[at]["lastTransitionTime"].clone(),
        _ => json!(now),
    };
    let new = json!({"type": condition.kind, "status": wanted, "lastTransitionTime": since,
        "reason": condition.reason, "message": condition.message});
    match place {
        Some(at) => list[at] = new,
        None => list.push(new),
    }
}

pub(crate) fn is_true(status: &Value, kind: &str) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|known| known["type"] == kind && known["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conditions_time_is_that_of_its_last_turn() {
        let mut status = json!({"conditions": null});
        let condition =
            |is_true, message| Condition { kind: "Ready", is_true, reason: "R", message };
        set(&mut status, &condition(true, "a"), "1");
        set(&mut status, &condition(true, "b"), "2");
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "1");
        assert_eq!(status["conditions"][0]["message"], "b");
        assert!(is_true(&status, "Ready") && !is_true(&status, "Other"));
        set(&mut status, &condition(false, "b"), "3");
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "3");
        assert_eq!(status["conditions"].as_array().unwrap().len(), 1);
    }
}
