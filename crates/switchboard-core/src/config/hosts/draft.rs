//! Converts one entry of a host's file: maps its keys to our fields.

use std::collections::HashSet;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::HostFile;
use super::variables::Variables;
use crate::config::auth::Auth;
use crate::config::diagnostic::DiagnosticKind;
use crate::config::fields::{boolean, endpoint, list, milliseconds, seconds, string, templates};
use crate::config::layers::ConfigOrigin;
use crate::config::reader::{ConfigReader, KeyedValue, Member, Read};
use crate::config::server::ServerEntry;
use crate::config::values::{Template, TemplateMap, TransportType};

/// The meaning of a key in a host's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Our field with this name. Its value is parsed like in our own files.
    Field(&'static str),
    /// `env`: a map of strings, in which some hosts also write numbers.
    Env,
    Headers,
    /// The command: a string, a list that includes the arguments, or an object with `path`, `args`
    /// and `env`.
    Program,
    /// The type of transport, in any spelling.
    Transport,
    /// The URL. It implies this transport, unless the entry has a `type`.
    UrlOf(TransportType),
    /// Whether the server is enabled.
    Enabled,
    /// The names of environment variables that the host passes on to the server.
    PassedOn,
    /// Headers, each with the name of the environment variable that holds its value.
    HeadersFromVariables,
    /// The name of the environment variable that holds the bearer token.
    BearerVariable,
    StartSeconds,
    StartMilliseconds,
    RequestSeconds,
    RequestMilliseconds,
    /// An object that contains the usual keys of an entry.
    Nested,
    /// The path of a file of environment variables, which is unsupported.
    FileOfVariables,
    /// The key concerns only the host and is ignored.
    Nothing,
}

/// The meaning of a key in the files of most hosts.
fn usual(key: &str) -> Meaning {
    match key {
        "command" => Meaning::Program,
        "args" => Meaning::Field("args"),
        "cwd" => Meaning::Field("cwd"),
        "url" => Meaning::Field("url"),
        "disabled" => Meaning::Field("disabled"),
        "env" => Meaning::Env,
        "headers" => Meaning::Headers,
        "type" | "transport" | "transportType" => Meaning::Transport,
        "enabled" => Meaning::Enabled,
        "envFile" => Meaning::FileOfVariables,
        _ => Meaning::Nothing,
    }
}

/// The limits of `startTimeoutMs`. A host's value outside of these limits is replaced by the
/// nearest limit.
const START: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(300);

pub(super) struct Draft {
    entry: ServerEntry,
    /// Whether the entry has an explicit `type`.
    typed: bool,
}

impl Draft {
    /// Reads the supported keys of an entry. `None` if a value is invalid or if only the host can
    /// expand it.
    pub(super) fn read(file: &mut HostFile<'_, '_>, server: &Member<'_>) -> Option<Draft> {
        let variables = Variables { host: file.host, project: file.project };
        let keys = file.host.row().keys;
        let mut draft = Draft { entry: ServerEntry::default(), typed: false };
        let mut sound = true;
        for member in file.reader.members(server.input()).ok()? {
            let own = keys.iter().find(|(key, _)| *key == member.name);
            let meaning = own.map_or_else(|| usual(member.name), |(_, meaning)| *meaning);
            // Some hosts write `null` for keys that are not set.
            if meaning == Meaning::Nothing || matches!(member.value, Value::NullKeyword(_)) {
                continue;
            }
            let fillable = variables.check(file.reader, &member);
            sound &= fillable && draft.take(file.reader, &member, meaning).is_ok();
        }
        variables.translate(&mut draft.entry);
        sound.then_some(draft)
    }

    /// The complete entry; `None` if it has no endpoint or starts this gateway.
    pub(super) fn finish(self) -> Option<ServerEntry> {
        let entry = self.entry;
        let [command, url, _] = entry.endpoints();
        ((command.is_some() || url.is_some()) && !entry.is_gateway()).then_some(entry)
    }

    fn take(
        &mut self,
        reader: &mut ConfigReader<'_>,
        member: &Member<'_>,
        means: Meaning,
    ) -> Read<()> {
        let input = member.input();
        let at = reader.origin(member.offset);
        match means {
            Meaning::Field(field) => self.field(reader, member, field)?,
            Meaning::Env => add(&mut self.entry.env, texts(reader, input)?),
            Meaning::Headers => add(&mut self.entry.headers, texts(reader, input)?),
            Meaning::Program => self.program(reader, member)?,
            Meaning::Transport => {
                self.entry.transport_type = transport(&string(reader, input)?);
                // The explicit `type` replaces the transport that the URL implied, so its origin is
                // removed.
                self.entry.origins.remove("type");
                self.typed = true;
            }
            Meaning::UrlOf(implied) => self.url(endpoint(reader, input)?, implied),
            Meaning::Enabled if boolean(reader, input)? => return Ok(()),
            Meaning::Enabled => self.entry.disabled = Some(true),
            Meaning::PassedOn => add(&mut self.entry.env, passed_on(reader, input)?),
            Meaning::HeadersFromVariables => {
                let names = texts(reader, input)?;
                let variable = |(name, variable): (String, Template)| {
                    (name, Template::new(format!("${{{}}}", variable.source())))
                };
                add(&mut self.entry.headers, names.into_iter().map(variable).collect());
            }
            Meaning::BearerVariable => {
                self.field(reader, member, "bearerTokenEnv")?;
                self.entry.auth = Some(Auth::Bearer);
            }
            Meaning::StartSeconds => self.start(seconds(reader, input)?),
            Meaning::StartMilliseconds => self.start(milliseconds(reader, input)?),
            Meaning::RequestSeconds => self.entry.request_timeout = Some(seconds(reader, input)?),
            Meaning::RequestMilliseconds => {
                self.entry.request_timeout = Some(milliseconds(reader, input)?);
            }
            Meaning::Nested => {
                for part in reader.members(input)? {
                    let means = usual(part.name);
                    if means != Meaning::Nothing && !matches!(part.value, Value::NullKeyword(_)) {
                        self.take(reader, &part, means)?;
                    }
                }
            }
            Meaning::FileOfVariables => {
                let key = member.key.clone();
                reader.warn(member.value.start(), DiagnosticKind::FileOfVariables { key });
            }
            Meaning::Nothing => {}
        }
        self.note_origins(means, &at);
        Ok(())
    }

    /// Records `at` as the origin of the field that this key set, unless the field has an origin.
    fn note_origins(&mut self, means: Meaning, at: &ConfigOrigin) {
        let keys: &[&'static str] = match means {
            Meaning::Field(_) | Meaning::Nested | Meaning::FileOfVariables | Meaning::Nothing => {
                &[]
            }
            Meaning::Headers | Meaning::HeadersFromVariables => &["headers"],
            Meaning::Env | Meaning::PassedOn => &["env"],
            Meaning::Program => &["command", "args", "env"],
            Meaning::Transport => &["type"],
            Meaning::UrlOf(_) => &["url", "type"],
            Meaning::Enabled => &["disabled"],
            Meaning::BearerVariable => &["auth"],
            Meaning::StartSeconds | Meaning::StartMilliseconds => &["startTimeoutMs"],
            Meaning::RequestSeconds | Meaning::RequestMilliseconds => &["requestTimeoutMs"],
        };
        for key in keys {
            if self.entry.has(key) {
                self.entry.origins.entry(key).or_insert_with(|| at.clone());
            }
        }
    }

    fn field(&mut self, reader: &mut ConfigReader<'_>, member: &Member<'_>, key: &str) -> Read<()> {
        self.entry.read_field(reader, key, member).unwrap_or(Ok(()))
    }

    fn program(&mut self, reader: &mut ConfigReader<'_>, member: &Member<'_>) -> Read<()> {
        let input = member.input();
        match input.value {
            Value::Array(_) => {
                let mut words = templates(reader, input)?.into_iter();
                self.entry.command = words.next();
                self.entry.args = Some(words.collect());
            }
            Value::Object(_) => {
                for part in reader.members(input)? {
                    match part.name {
                        "path" => self.field(reader, &part, "command")?,
                        "args" => self.field(reader, &part, "args")?,
                        "env" if !matches!(part.value, Value::NullKeyword(_)) => {
                            add(&mut self.entry.env, texts(reader, part.input())?);
                        }
                        _ => {}
                    }
                }
            }
            _ => self.field(reader, member, "command")?,
        }
        Ok(())
    }

    fn url(&mut self, url: Template, implied: TransportType) {
        // If the entry has URLs of two transports, the newer transport takes precedence.
        if self.entry.url.is_some() && implied == TransportType::Sse {
            return;
        }
        self.entry.url = Some(url);
        if !self.typed {
            self.entry.transport_type = Some(implied);
        }
    }

    fn start(&mut self, time: Duration) {
        self.entry.start_timeout = Some(time.clamp(*START.start(), *START.end()));
    }
}

/// Adds the pairs whose names the map does not contain.
fn add(map: &mut Option<TemplateMap>, pairs: Vec<(String, Template)>) {
    let map = map.get_or_insert_default();
    let mut known: HashSet<String> = map.names().map(str::to_owned).collect();
    map.0.extend(pairs.into_iter().filter(|(name, _)| known.insert(name.clone())));
}

/// Reads a map of strings. Numbers and booleans are read as their text; `null` means that the name
/// is not set.
fn texts(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Vec<(String, Template)>> {
    let mut pairs = Vec::new();
    for member in reader.members(input)? {
        let text = match member.value {
            Value::NullKeyword(_) => continue,
            Value::NumberLit(number) => number.value.to_owned(),
            Value::BooleanLit(literal) => literal.value.to_string(),
            Value::StringLit(_) | Value::Object(_) | Value::Array(_) => {
                string(reader, member.input())?
            }
        };
        pairs.push((member.name.to_owned(), Template::new(text)));
    }
    Ok(pairs)
}

/// Reads names of environment variables, written as strings or as objects with a `name`.
fn passed_on(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<Vec<(String, Template)>> {
    list(reader, input, |reader, KeyedValue { key, value }| {
        let named = value.as_object().and_then(|object| object.get("name"));
        let value = named.map_or(value, |property| &property.value);
        let name = string(reader, KeyedValue { key, value })?;
        // If the variable is not set, the expansion of the template reports this.
        let reference = Template::new(format!("${{{name}}}"));
        Ok((name, reference))
    })
}

fn transport(word: &str) -> Option<TransportType> {
    let plain = |c: &char| c.is_ascii_alphanumeric();
    let word: String = word.chars().filter(plain).map(|c| c.to_ascii_lowercase()).collect();
    match word.as_str() {
        "stdio" | "local" => Some(TransportType::Stdio),
        "http" => Some(TransportType::Http),
        "streamablehttp" => Some(TransportType::StreamableHttp),
        "sse" => Some(TransportType::Sse),
        "ws" | "websocket" => Some(TransportType::WebSocket),
        // Any other word, such as `remote`, names no transport, so the URL decides.
        _ => None,
    }
}
