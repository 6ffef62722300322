//! The user behind a session, as far as the engine may ask.

use std::pin::Pin;

use switchboard_core::approval::{Answer, Question};

/// A future that a host's answer comes from.
pub type Asked<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a host gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotAsk {
    #[error("there is nobody to ask")]
    NobodyThere,
}

/// Asks the user. A face implements this; without one, everything that asks is refused.
pub trait Host: Send + Sync {
    /// May this call be made?
    fn approve<'a>(&'a self, question: &'a Question) -> Asked<'a, Result<Answer, CannotAsk>>;
}

/// Nobody is there: fail closed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headless;

impl Host for Headless {
    fn approve<'a>(&'a self, _: &'a Question) -> Asked<'a, Result<Answer, CannotAsk>> {
        Box::pin(std::future::ready(Err(CannotAsk::NobodyThere)))
    }
}
