//! The `level` member of log lines and of `logging/setLevel`.

use serde::Deserialize;
use switchboard::log_level::LogLevel;

#[derive(Deserialize)]
pub(crate) struct Levelled {
    pub(crate) level: LogLevel,
}
