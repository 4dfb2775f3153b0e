//! Defaults of horizontal autoscalers.

use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};

pub(super) fn autoscaler(version: &str, object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::absent(spec, "minReplicas", || json!(1));
    if version == "v1" {
        return;
    }
    if fill::is_empty_list(spec, "metrics") {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.insert("metrics".into(), json!([metric]));
    }
    if let Some(behavior) = fill::fields(spec.get_mut("behavior")) {
        up(behavior);
        down(behavior);
    }
}

/// Up at once, by four pods or by doubling, whichever is more.
fn up(behavior: &mut Fields) {
    let Some(rules) = fill::make(behavior, "scaleUp") else { return };
    fill::absent(rules, "stabilizationWindowSeconds", || json!(0));
    fill::absent(rules, "selectPolicy", || json!("Max"));
    fill::absent(rules, "policies", || {
        json!([{"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15}])
    });
}

fn down(behavior: &mut Fields) {
    let Some(rules) = fill::make(behavior, "scaleDown") else { return };
    fill::absent(rules, "selectPolicy", || json!("Max"));
    fill::absent(
        rules,
        "policies",
        || json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
    );
}
