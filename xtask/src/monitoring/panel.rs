//! Panels and dashboards in Grafana's JSON.

use serde_json::{Value, json};

/// A dashboard: rows of panels.
pub(crate) struct Dashboard {
    /// The file's name, and the end of Grafana's identifier.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Row {
    pub(crate) title: &'static str,
    pub(crate) panels: Vec<Panel>,
}

pub(crate) struct Panel {
    pub(crate) title: &'static str,
    /// What a reader should know about the numbers.
    pub(crate) about: &'static str,
    pub(crate) shape: Shape,
    pub(crate) unit: &'static str,
    pub(crate) queries: Vec<Query>,
}

/// How numbers are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Lines over time.
    Lines,
    /// Stacked areas over time, for parts of a whole.
    Stack,
    /// One number; red if it is not zero.
    Alarm,
    /// One number.
    Number,
}

pub(crate) struct Query {
    pub(crate) expr: String,
    pub(crate) legend: &'static str,
}

/// Lines over time, of expressions and their legends.
pub(crate) fn lines(
    title: &'static str,
    unit: &'static str,
    queries: &[(&str, &'static str)],
) -> Panel {
    panel(title, Shape::Lines, unit, queries)
}

/// Stacked areas over time.
pub(crate) fn stack(
    title: &'static str,
    unit: &'static str,
    queries: &[(&str, &'static str)],
) -> Panel {
    panel(title, Shape::Stack, unit, queries)
}

pub(crate) fn number(title: &'static str, expr: &str) -> Panel {
    panel(title, Shape::Number, "short", &[(expr, "")])
}

/// A number that should be zero.
pub(crate) fn alarm(title: &'static str, expr: &str) -> Panel {
    panel(title, Shape::Alarm, "short", &[(expr, "")])
}

fn panel(
    title: &'static str,
    shape: Shape,
    unit: &'static str,
    queries: &[(&str, &'static str)],
) -> Panel {
    let query = |(expr, legend): &(&str, &'static str)| Query { expr: (*expr).to_owned(), legend };
    Panel { title, about: "", shape, unit, queries: queries.iter().map(query).collect() }
}

impl Panel {
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    fn json(&self, id: usize, position: &Value) -> Value {
        let is_stat = matches!(self.shape, Shape::Alarm | Shape::Number);
        let targets: Vec<Value> = self
            .queries
            .iter()
            .zip('A'..='Z')
            .map(|(query, letter)| {
                json!({"refId": letter, "expr": query.expr, "legendFormat": query.legend,
                    "datasource": source(), "instant": is_stat, "range": !is_stat})
            })
            .collect();
        json!({
            "id": id, "title": self.title, "description": self.about, "gridPos": position,
            "type": if is_stat { "stat" } else { "timeseries" },
            "datasource": source(), "targets": targets,
            "fieldConfig": {"defaults": self.field(), "overrides": []},
            "options": self.options(),
        })
    }

    fn field(&self) -> Value {
        let steps = match self.shape {
            Shape::Alarm => {
                json!([{"color": "green", "value": null}, {"color": "red", "value": 1}])
            }
            _ => json!([{"color": "green", "value": null}]),
        };
        let mut field =
            json!({"unit": self.unit, "thresholds": {"mode": "absolute", "steps": steps}});
        if matches!(self.shape, Shape::Lines | Shape::Stack) {
            let (fill, mode) =
                if self.shape == Shape::Stack { (30, "normal") } else { (0, "none") };
            field["custom"] = json!({"drawStyle": "line", "lineWidth": 1, "fillOpacity": fill,
                "showPoints": "never", "stacking": {"mode": mode, "group": "A"}});
            field["min"] = json!(0);
        }
        field
    }

    fn options(&self) -> Value {
        match self.shape {
            Shape::Lines | Shape::Stack => json!({
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }),
            Shape::Alarm | Shape::Number => json!({
                "colorMode": "value", "graphMode": "area", "textMode": "auto",
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": false},
            }),
        }
    }
}

impl Dashboard {
    #[cfg(test)]
    pub(crate) fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.rows.iter().flat_map(|row| &row.panels)
    }

    pub(crate) fn json(&self) -> String {
        let dashboard = json!({
            "uid": format!("convoy-{}", self.name), "title": self.title, "tags": ["convoy"],
            "schemaVersion": 39, "version": 1, "editable": true, "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"}, "timezone": "browser",
            "templating": {"list": [{"name": "datasource", "label": "Data source",
                "type": "datasource", "query": "prometheus"}]},
            "links": [{"title": "Convoy", "type": "dashboards", "tags": ["convoy"],
                "asDropdown": true}],
            "annotations": {"list": []}, "panels": self.laid_out(),
        });
        let text = serde_json::to_string_pretty(&dashboard).expect("it has text keys");
        format!("{text}\n")
    }

    /// Rows of the grid, which is 24 wide: numbers are narrow and low, charts take a third or half.
    fn laid_out(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let (mut top, mut id) = (0, 0);
        for row in &self.rows {
            id += 1;
            all.push(json!({"id": id, "type": "row", "title": row.title, "collapsed": false,
                "gridPos": {"x": 0, "y": top, "w": 24, "h": 1}, "panels": []}));
            top += 1;
            let (mut left, mut lowest) = (0, 0);
            for panel in &row.panels {
                let (width, height) = match panel.shape {
                    Shape::Alarm | Shape::Number => (6, 4),
                    Shape::Lines | Shape::Stack => (12, 8),
                };
                if left + width > 24 {
                    (left, top, lowest) = (0, top + lowest, 0);
                }
                id += 1;
                let position = json!({"x": left, "y": top, "w": width, "h": height});
                all.push(panel.json(id, &position));
                left += width;
                lowest = lowest.max(height);
            }
            top += lowest;
        }
        all
    }
}

/// The data source that a reader selects at the top.
fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}
