//! Nodes that come, go and change their labels.

use std::time::Duration;

use convoy_sim::seed::Seed;
use http::Method;
use serde_json::{Value, json};

use super::{NODES, POOLS};
use crate::stage::Stage;

/// How many things happen to nodes before it is quiet.
const CHANGES: u32 = 6;

pub(super) struct Crowd<'s> {
    stage: &'s Stage,
    seed: Seed,
    done: u32,
    joined: u32,
}

impl<'s> Crowd<'s> {
    pub(super) fn new(stage: &'s Stage) -> Self {
        Self { stage, seed: Seed::new(1).child("crowd", ""), done: 0, joined: 0 }
    }

    /// Some unrest. At its end a node joins; its name.
    pub(super) async fn stir(&mut self) -> String {
        for _ in 0..CHANGES {
            self.act().await;
            let pause = u64::try_from(self.draw(150, 700)).unwrap();
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        self.join().await
    }

    async fn act(&mut self) {
        let stage = self.stage;
        let nodes = stage.get(NODES).await;
        let nodes = nodes["items"].as_array().unwrap().iter();
        // The first must be there to fail.
        let mut nodes: Vec<&Value> =
            nodes.filter(|node| node["metadata"]["name"] != "a-0").collect();
        let node = nodes.swap_remove(self.draw(0, nodes.len() - 1));
        let path = format!("{NODES}/{}", node["metadata"]["name"].as_str().unwrap());
        let label = async |key: &str, value: Value| {
            let patch = json!({"metadata": {"labels": {key: value}}});
            stage.send(Method::PATCH, &path, patch).await;
        };
        match self.draw(0, 9) {
            0 => drop(self.join().await),
            1 => drop(stage.send(Method::DELETE, &path, json!({})).await),
            2..=6 => label("pool", json!(POOLS[self.draw(0, 3)])).await,
            // It leaves the Skyhook, or comes back.
            _ => {
                let is_in = node["metadata"]["labels"]["fleet"] == "yes";
                label("fleet", json!(if is_in { "no" } else { "yes" })).await;
            }
        }
    }

    async fn join(&mut self) -> String {
        let name = format!("late-{}", self.joined);
        self.joined += 1;
        let pool = POOLS[self.draw(0, 3)];
        let node = json!({"metadata": {"name": name, "labels": {"fleet": "yes", "pool": pool},
            "annotations": {"sim.convoy.dev/node": "true"}}});
        self.stage.send(Method::POST, NODES, node).await;
        name
    }

    fn draw(&mut self, least: usize, most: usize) -> usize {
        self.done += 1;
        let [least, most] = [least, most].map(|bound| i64::try_from(bound).unwrap());
        usize::try_from(self.seed.nth(self.done).between(least, most)).unwrap()
    }
}
