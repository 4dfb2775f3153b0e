//! Runs errands on a server: sends what they ask for, and tells the loop what is answered.

use std::sync::Arc;

use futures_util::future::join_all;
use kube::Client;
use tokio::sync::mpsc;

use crate::api;
use crate::discovery::Discovery;
use crate::errand::{Ask, Call, Ended, Errand, Reply};
use crate::run::Message;

pub(crate) struct Executor {
    pub(crate) client: Client,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) messages: mpsc::Sender<Message>,
}

impl Executor {
    pub(crate) async fn carry_out(&self, mut errand: Errand) -> Ended {
        loop {
            let asks = errand.asks();
            if let Some(ended) = errand.ended() {
                return ended;
            }
            let sent = asks.into_iter().map(|ask| self.send(&errand, ask));
            for (call, reply) in join_all(sent).await {
                if let Some(news) = errand.replied(call, reply) {
                    // The loop outlives its writes; without it nobody needs to know.
                    drop(self.messages.send(Message::News(news)).await);
                }
            }
        }
    }

    async fn send(&self, errand: &Errand, ask: Ask) -> (Call, Reply) {
        let Ask { call, after } = ask;
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        let kind = errand.kind(call);
        let reply = match self.discovery.find(&self.client, kind).await {
            Ok(Some(resource)) => {
                match api::fetch(&self.client, errand.request(call, &resource)).await {
                    Ok(answer) => Reply::Answer(answer.trimmed()),
                    Err(error) => Reply::Lost(api::chain(&error)),
                }
            }
            Ok(None) => Reply::Impossible(format!("{kind} is not served")),
            Err(error) => Reply::Unsent(api::chain(&error)),
        };
        (call, reply)
    }
}
