//! Test hosts: a user who answers from a list and records the questions, and a slow user.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use switchboard::approval::{ApprovalAnswer, Question};
use switchboard::host::{Abilities, CannotAsk, Host, HostFuture, ServerQuestion, Topic};
use switchboard::name::ServerName;
use switchboard_wire::{Notification, Raw, RpcError};
use tokio::sync::Notify;

/// Answers from a list that clones share. Once it is used up, the user cannot be asked.
#[derive(Debug, Clone, Default)]
pub struct ScriptedHost {
    script: Arc<Mutex<Lines>>,
    heard: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Lines {
    answers: VecDeque<ApprovalAnswer>,
    asked: Vec<String>,
    /// The results of server-to-client requests, by topic.
    replies: Vec<(Topic, Value)>,
    told: Vec<String>,
}

impl ScriptedHost {
    pub fn answering(answers: impl IntoIterator<Item = ApprovalAnswer>) -> Self {
        let host = Self::default();
        host.will_answer(answers);
        host
    }

    /// Appends to the list of the user's answers.
    pub fn will_answer(&self, answers: impl IntoIterator<Item = ApprovalAnswer>) {
        self.lines().answers.extend(answers);
    }

    /// Declares the capability of this topic, and answers its requests with this result.
    pub fn will_reply(&self, topic: Topic, reply: Value) {
        self.lines().replies.push((topic, reply));
    }

    /// The notifications of servers so far: method and parameters.
    pub fn told(&self) -> Vec<String> {
        self.lines().told.clone()
    }

    /// Waits for a notification, and returns the first one.
    pub async fn until_told(&self) -> String {
        loop {
            if let Some(first) = self.told().into_iter().next() {
                return first;
            }
            self.heard.notified().await;
        }
    }

    /// Every approval question so far: the tool's shown name and the arguments.
    pub fn asked(&self) -> Vec<String> {
        self.lines().asked.clone()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for ScriptedHost {
    fn approve<'a>(
        &'a self,
        question: &'a Question,
    ) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
        let args = serde_json::to_string(question.args()).expect("values always serialise");
        let mut lines = self.lines();
        lines.asked.push(format!("{} {args}", question.target().shown));
        let answer = lines.answers.pop_front().ok_or(CannotAsk::NoUser);
        Box::pin(ready(answer))
    }

    fn abilities(&self) -> Abilities {
        let lines = self.lines();
        let offered = |topic| {
            let offers = lines.replies.iter().any(|(offered, _)| *offered == topic);
            offers.then(|| Raw::from_json("{}".to_owned()))
        };
        Abilities {
            roots: offered(Topic::Roots),
            sampling: offered(Topic::Sampling),
            elicitation: offered(Topic::Elicitation),
        }
    }

    fn answer<'a>(&'a self, question: ServerQuestion<'a>) -> HostFuture<'a, Result<Raw, RpcError>> {
        let mut lines = self.lines();
        let params = question.params.map_or("", Raw::as_str);
        lines.asked.push(format!("{} {} {params}", question.server, question.topic.method()));
        let reply = lines.replies.iter().find(|(topic, _)| *topic == question.topic);
        let reply = reply.map(|(_, reply)| Raw::from_json(reply.to_string()));
        Box::pin(ready(reply.ok_or_else(|| question.topic.refused())))
    }

    fn tell(&self, server: &ServerName, notice: &Notification) {
        let params = notice.params.as_ref().map_or("", Raw::as_str);
        self.lines().told.push(format!("{server} {} {params}", notice.method));
        self.heard.notify_one();
    }
}

/// A user who answers server-to-client requests after a delay, or never if there is no delay.
#[derive(Debug, Clone)]
pub struct SlowHost {
    pub thinks: Option<Duration>,
    pub reply: Value,
}

impl Host for SlowHost {
    fn approve<'a>(&'a self, _: &'a Question) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
        Box::pin(ready(Err(CannotAsk::NoUser)))
    }

    fn abilities(&self) -> Abilities {
        Abilities::all()
    }

    fn answer<'a>(&'a self, _: ServerQuestion<'a>) -> HostFuture<'a, Result<Raw, RpcError>> {
        Box::pin(async {
            match self.thinks {
                Some(time) => tokio::time::sleep(time).await,
                None => pending().await,
            }
            Ok(Raw::from_json(self.reply.to_string()))
        })
    }
}
