//! What has a level: a request to set it, or a log line.

use serde::Deserialize;
use switchboard::log_level::LogLevel;

#[derive(Deserialize)]
pub(crate) struct Levelled {
    pub(crate) level: LogLevel,
}
