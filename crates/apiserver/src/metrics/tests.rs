//! Every name that dashboards ask for is served.

use convoy_store::{MemoryBackend, Settings};
use serde_json::json;

use super::*;
use crate::query::Query;
use crate::testing::TestServer;

#[test]
fn requests_are_counted_under_known_names() {
    let metrics = Metrics::default();
    let query = Query::default();
    let info = RequestInfo::read("GET", "/api/v1/namespaces/a/pods", &query);
    metrics.answered(&info, false, 200, Duration::from_millis(3));
    let store = Store::open(MemoryBackend, Settings::default()).unwrap();
    let in_flight = metrics.begin(true);
    metrics.webhook_called("a.b.c", "CREATE", "admit", true, Duration::from_millis(2));
    let text = metrics.text(&store, Counts { written: 5, dropped: 2 });
    for line in [
        "apiserver_audit_event_total 7",
        "apiserver_audit_error_total{plugin=\"log\"} 2",
        "apiserver_request_total{verb=\"LIST\",group=\"\",version=\"v1\",resource=\"pods\",subresource=\"\",scope=\"namespace\",component=\"apiserver\",dry_run=\"\",code=\"200\"} 1",
        "apiserver_request_duration_seconds_bucket{le=\"0.005\",verb=\"LIST\",group=\"\",resource=\"pods\"} 1",
        "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1",
        "convoy_store_history_events 0",
        "process_resident_memory_bytes ",
        "apiserver_admission_webhook_admission_duration_seconds_count{name=\"a.b.c\",operation=\"CREATE\",type=\"admit\",rejected=\"true\"} 1",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    drop(in_flight);
    let text = metrics.text(&store, Counts::default());
    assert!(text.contains("apiserver_current_inflight_requests{request_kind=\"mutating\"} 0"));
}

/// What the contract of the server names, besides what is told of each queue.
const NAMES: [&str; 23] = [
    "apiserver_request_total{",
    "apiserver_request_duration_seconds_bucket{",
    "apiserver_current_inflight_requests{",
    "apiserver_longrunning_requests ",
    "apiserver_watch_events_total{",
    "apiserver_watch_events_sizes_bucket{",
    "apiserver_storage_objects{",
    "apiserver_resource_objects{",
    "apiserver_storage_size_bytes ",
    "apiserver_audit_event_total ",
    "apiserver_admission_webhook_admission_duration_seconds_bucket{",
    "apiserver_watch_cache_events_dispatched_total ",
    "etcd_request_duration_seconds_bucket{",
    "process_cpu_seconds_total ",
    "process_start_time_seconds ",
    "process_max_fds ",
    "process_open_fds ",
    "convoy_store_commit_seconds_bucket{",
    "convoy_store_batch_size_bucket{",
    "convoy_store_fsync_seconds_bucket{",
    "convoy_store_log_bytes ",
    "convoy_store_snapshot_seconds_bucket{",
    "convoy_store_history_events ",
];

const OF_QUEUES: [&str; 7] = [
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds_count",
    "workqueue_work_duration_seconds_count",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "workqueue_retries_total",
];

#[test]
fn everything_that_dashboards_ask_for_is_served() {
    let metrics = Metrics::default();
    let settings = Settings { inline: true, ..Settings::default() };
    let store = Store::open(Metered::new(MemoryBackend, metrics.store.clone()), settings).unwrap();
    let test = TestServer::over(store).with_metrics(metrics);
    test.create("/api/v1/namespaces", &json!({"metadata": {"name": "a"}}));
    test.server.metrics.webhook_called("a.b.c", "CREATE", "admit", true, Duration::from_millis(2));
    test.run(crate::chores::settle(&test.server));
    // Sends what is there, and ends.
    test.server.end_watches();
    let watched = test.send("GET", "/api/v1/namespaces?watch=1", &[], "");
    assert!(!watched.bytes.is_empty());
    let text = test.send("GET", "/metrics", &[], "").bytes;
    let text = String::from_utf8(text.to_vec()).unwrap();
    let has = |name: &str| text.lines().any(|line| line.starts_with(name));
    for name in NAMES {
        assert!(has(name), "{name}\n{text}");
    }
    let labels = "{group=\"\",version=\"v1\",resource=\"namespaces\"}";
    assert!(has(&format!("apiserver_watch_events_total{labels} 1")), "{text}");
    assert!(
        has(&format!("apiserver_watch_events_sizes_sum{labels} {}.0", watched.bytes.len())),
        "{text}"
    );
    for queue in
        ["garbage_collector_attempt_to_delete", "namespace", "crd_finalizer", "logical_clusters"]
    {
        for name in OF_QUEUES {
            assert!(has(&format!("{name}{{name=\"{queue}\"}} ")), "{name} {queue}\n{text}");
        }
    }
    assert!(has("workqueue_adds_total{name=\"namespace\"} 1"), "{text}");
    assert!(has("workqueue_depth{name=\"namespace\"} 0"), "{text}");
}
