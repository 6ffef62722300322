//! A user who answers from a list and remembers what was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard::approval::{Answer, Question};
use switchboard::host::{Asked, CannotAsk, Host};

/// Clones share the list. When it is used up, nobody is there.
#[derive(Debug, Clone, Default)]
pub struct ScriptedHost {
    script: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    answers: VecDeque<Answer>,
    asked: Vec<String>,
}

impl ScriptedHost {
    pub fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let host = Self::default();
        host.will_answer(answers);
        host
    }

    /// Appends to the list.
    pub fn will_answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.lines().answers.extend(answers);
    }

    /// Every question so far: the tool's shown name and the arguments.
    pub fn asked(&self) -> Vec<String> {
        self.lines().asked.clone()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for ScriptedHost {
    fn approve<'a>(&'a self, question: &'a Question) -> Asked<'a, Result<Answer, CannotAsk>> {
        let args = serde_json::to_string(question.args()).expect("values always serialise");
        let mut lines = self.lines();
        lines.asked.push(format!("{} {args}", question.target().shown));
        let answer = lines.answers.pop_front().ok_or(CannotAsk::NobodyThere);
        Box::pin(std::future::ready(answer))
    }
}
