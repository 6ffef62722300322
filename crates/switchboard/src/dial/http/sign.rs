//! Signers that produce headers for each request: a program (`requestHeadersCommand`), or several
//! signers in turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use switchboard_core::config::auth::RequestHeadersCommand;
use switchboard_core::config::expand::{self, Expanded, Surroundings};
use switchboard_wire::http_client::{
    self, AuthDecision, HeaderMap, Judging, Refused, Signer, Signing, Url,
};

use super::headers::header;
use crate::dial::secret::{self, ProgramLimits, SecretError};
use crate::dial::spawn::{Program, Spawner};
use crate::env::Environment;
use crate::upstream::{DialError, secret_program};

const LARGEST_OUTPUT: usize = 64 * 1024;

/// Several signers of one request. If two set the same header, the later one takes precedence.
pub(super) struct Signers(Vec<Arc<dyn Signer>>);

impl Signers {
    pub(super) fn of(mut signers: Vec<Arc<dyn Signer>>) -> Option<Arc<dyn Signer>> {
        match signers.len() {
            0 | 1 => signers.pop(),
            _ => Some(Arc::new(Signers(signers))),
        }
    }
}

impl Signer for Signers {
    fn sign<'a>(&'a self, method: &'a str, url: &'a Url, body: &'a [u8]) -> Signing<'a> {
        Box::pin(async move {
            let mut headers = HeaderMap::new();
            for signer in &self.0 {
                for (name, value) in signer.sign(method, url, body).await? {
                    headers.extend(name.map(|name| (name, value)));
                }
            }
            Ok(headers)
        })
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> Judging<'a> {
        Box::pin(async move {
            for signer in &self.0 {
                match signer.refused(refused).await {
                    AuthDecision::Stands => {}
                    verdict => return verdict,
                }
            }
            AuthDecision::Stands
        })
    }
}

/// Runs the program of `requestHeadersCommand` for each request. The program reads the request as
/// JSON and writes the headers.
pub(super) struct HeadersCommand {
    program: Program,
    timeout: Duration,
    spawner: Arc<dyn Spawner>,
}

/// Why a program returned no headers. The error contains no output of the program.
#[derive(Debug, thiserror::Error)]
enum SignError {
    #[error("the `requestHeadersCommand` failed")]
    Command(#[source] SecretError),
    #[error("the `requestHeadersCommand` did not write a JSON object of headers")]
    Output,
}

impl HeadersCommand {
    pub(super) fn new(
        command: &RequestHeadersCommand,
        environment: &Environment,
        spawner: &Arc<dyn Spawner>,
    ) -> Result<HeadersCommand, DialError> {
        let program = environment.expanding(|with| fill(command, environment, with))?;
        Ok(HeadersCommand { program, timeout: command.timeout, spawner: Arc::clone(spawner) })
    }

    async fn headers(&self, method: &str, url: &Url, body: &[u8]) -> Result<HeaderMap, SignError> {
        let question = json!({
            "version": 1,
            "method": method,
            "url": url.as_str(),
            "bodyBase64": STANDARD.encode(body),
        });
        let limits = ProgramLimits { patience: self.timeout, output: LARGEST_OUTPUT };
        let spawner = Arc::clone(&self.spawner);
        let answer = secret::ask_with(spawner, self.program.clone(), question.to_string(), limits)
            .await
            .map_err(SignError::Command)?
            .reveal();
        let headers: BTreeMap<String, String> =
            serde_json::from_str(&answer).map_err(|_| SignError::Output)?;
        let headers = headers.iter().map(|(name, value)| header(name, value));
        headers.collect::<Option<HeaderMap>>().ok_or(SignError::Output)
    }
}

impl Signer for HeadersCommand {
    fn sign<'a>(&'a self, method: &'a str, url: &'a Url, body: &'a [u8]) -> Signing<'a> {
        Box::pin(async move {
            let headers = self.headers(method, url, body).await;
            headers.map_err(|error| Arc::new(error) as http_client::SignError)
        })
    }
}

fn fill(
    command: &RequestHeadersCommand,
    environment: &Environment,
    with: &Surroundings<'_>,
) -> Result<Program, DialError> {
    let words = std::iter::once(&command.command).chain(&command.args);
    let words = words.map(|word| expand::expand(word, with)).collect::<Result<Vec<_>, _>>()?;
    let mut program = secret_program(environment, words, &environment.cwd);
    for (name, value) in command.env.iter() {
        match expand::expand_value(value, with)? {
            Expanded::Text(text) => drop(program.env.insert(name.to_owned(), text)),
            // A `!command` in the `env` of `requestHeadersCommand` is refused: the program can
            // fetch secrets by itself.
            Expanded::Command(_) => {
                return Err(DialError::CommandInCommand { name: name.to_owned() });
            }
        }
    }
    Ok(program)
}
