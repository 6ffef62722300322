//! Qwen Code: the form of Gemini CLI, from which it descends.

use super::Row;
use super::gemini_cli::{self, ALLOWED};
use crate::config::install::form::{Extra, Form, Word};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Qwen Code",
    syntax: Syntax::Jsonc,
    read: gemini_cli::read,
    install: Form {
        then: &[Extra {
            key: "trust",
            value: Word::True,
            why: "Qwen Code does not ask for approval: Switchboard asks before destructive calls",
        }],
        grants: &[ALLOWED],
        ..Form::USUAL
    },
};
