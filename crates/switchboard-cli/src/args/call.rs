//! The arguments of `call`, `read` and `prompt`, and ad-hoc servers.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Format;

#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// The name of the tool, with or without the prefix of its server
    pub(crate) tool: String,
    /// The tool's arguments; they take precedence over `--args`
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// The tool's arguments as a JSON object, or from a file, or from standard input
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
    /// Filter the JSON of the result with this jq program, and print only its output
    #[arg(long, value_name = "JQ", conflicts_with = "raw")]
    pub(crate) select: Option<String>,
    /// Time limit for the server's start and for the call, such as `30s` or `2m`; progress
    /// restarts the limit of the call
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Approve the call in advance, if a rule requires approval
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Look up the tool on this server only
    #[arg(long)]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHoc,
    #[command(flatten)]
    pub(crate) printed: Printed,
}

/// How a result is printed.
#[derive(Debug, Args)]
pub(crate) struct Printed {
    /// Save images, audio and blobs in this directory, or as this file, which must not exist
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Print the JSON of the server's result unchanged, on one line
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// An ad-hoc server, which is not in the configuration. Nothing about it is stored.
#[derive(Debug, Args)]
pub(crate) struct AdHoc {
    /// Use only the server of this command line; quotes are recognised, but no shell runs
    #[arg(long, value_name = "COMMAND ARGS", conflicts_with_all = ["url", "server"])]
    pub(crate) stdio: Option<String>,
    /// Use only the server at this URL
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    pub(crate) url: Option<String>,
}

impl AdHoc {
    pub(crate) fn is_given(&self) -> bool {
        self.stdio.is_some() || self.url.is_some()
    }
}

const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses a time limit such as `30`, `30s`, `500ms`, `2m` or `1h`.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("a time is a number with ms, s, m or h".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "a time begins with a number".to_owned())?;
    let time = Duration::from_millis(number.saturating_mul(milliseconds));
    if time.is_zero() || time > MAX_TIMEOUT {
        return Err("a time is at least 1ms and at most 24h".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_argument_is_a_number_with_a_unit() {
        let check = |text: &str, expected: Result<u64, &str>| {
            let expected = expected.map(Duration::from_millis).map_err(str::to_owned);
            assert_eq!(time(text), expected, "{text}");
        };
        check("30", Ok(30_000));
        check("30s", Ok(30_000));
        check("250ms", Ok(250));
        check("2m", Ok(120_000));
        check("24h", Ok(86_400_000));
        check("", Err("a time begins with a number"));
        check("s", Err("a time begins with a number"));
        check("1.5s", Err("a time is a number with ms, s, m or h"));
        check("-1s", Err("a time is a number with ms, s, m or h"));
        check("0", Err("a time is at least 1ms and at most 24h"));
        check("25h", Err("a time is at least 1ms and at most 24h"));
        check("99999999999999999999", Err("a time begins with a number"));
        check("9999999999999999999", Err("a time is at least 1ms and at most 24h"));
    }
}
