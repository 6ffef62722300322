//! Hashes of a definition: one that decides trust, one that names its cached listing.

use std::fmt;

use super::auth::{Auth, Credential, OAuth};
use super::canonical::{Canon, Canonical};
use super::server::ServerEntry;
use super::transport::Transport;
use super::values::TemplateMap;
use super::words;

const MAX_SCRIPTS: usize = 256;
const MAX_PATH_BYTES: usize = 4_096;

/// The path of a file and the SHA-256 of its content.
pub type FileHash = (String, [u8; 32]);

/// Changes with every byte that could change what runs: the unexpanded definition, its name, the
/// project, and the files of the project that it runs. Comments and layout do not count.
pub fn trust_hash(
    name: &str,
    definition: &ServerEntry,
    project_root: &str,
    file_hashes: &[FileHash],
) -> TrustHash {
    let mut canon = Canon::new("switchboard trust 1");
    name.encode(&mut canon);
    project_root.encode(&mut canon);
    canon.count(file_hashes.len());
    for (path, hash) in file_hashes {
        path.encode(&mut canon);
        canon.bytes(hash);
    }
    definition.encode(&mut canon);
    TrustHash(canon.finish())
}

/// Covers what decides a server's listing, and no secret value: of `env` and `headers` the names.
pub fn definition_hash(definition: &ServerEntry) -> DefinitionHash {
    let mut canon = Canon::new("switchboard definition 1");
    definition.command.encode(&mut canon);
    definition.args.encode(&mut canon);
    definition.cwd.encode(&mut canon);
    definition.url.encode(&mut canon);
    definition.socket.encode(&mut canon);
    sorted_names(definition.env.as_ref()).encode(&mut canon);
    sorted_names(definition.headers.as_ref()).encode(&mut canon);
    definition.auth.as_ref().map(|auth| Auth::kind(auth).to_owned()).encode(&mut canon);
    definition.protocol_version.encode(&mut canon);
    DefinitionHash(canon.finish())
}

fn sorted_names(map: Option<&TemplateMap>) -> Vec<String> {
    let mut names: Vec<String> =
        map.into_iter().flat_map(TemplateMap::names).map(str::to_owned).collect();
    names.sort_unstable();
    names
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustHash([u8; 32]);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionHash([u8; 32]);

impl fmt::Display for TrustHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for TrustHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

fn hex(bytes: &[u8; 32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The words of a definition that may name a file it runs, unexpanded and as written: relative
/// ones are relative to the server's working directory. Generous on purpose: a word that names no
/// file inside the project costs one look, a script that is not hashed could be swapped.
pub fn scripts_in(definition: &ServerEntry) -> Vec<String> {
    let mut scripts = Vec::new();
    let mut add = |word: &str| {
        // `--config=run.js` names a file, too.
        let path = match word.strip_prefix('-') {
            Some(flag) => flag.split_once('=').map_or("", |(_, value)| value),
            None => word,
        };
        let fits = !path.is_empty() && path.len() <= MAX_PATH_BYTES && !path.contains("://");
        if fits && scripts.len() < MAX_SCRIPTS && !scripts.iter().any(|known| known == path) {
            scripts.push(path.to_owned());
        }
    };
    if let Ok(transport) = definition.transport("") {
        match transport {
            Transport::Stdio { command, args } => {
                std::iter::once(&command).chain(&args).for_each(|word| add(word.source()));
            }
            Transport::CommandLine { words } => words.iter().for_each(|word| add(word)),
            Transport::Http { .. } | Transport::WebSocket { .. } | Transport::Socket { .. } => {}
        }
    }
    if let Some(program) = &definition.request_headers_command {
        std::iter::once(&program.command).chain(&program.args).for_each(|word| add(word.source()));
    }
    for value in command_values(definition) {
        words::split(value).into_iter().flatten().for_each(|word| add(&word));
    }
    scripts
}

/// The command lines of values such as `!pass show token`.
fn command_values(definition: &ServerEntry) -> impl Iterator<Item = &str> {
    let maps = [&definition.env, &definition.headers].into_iter().flatten();
    let values = maps.flat_map(TemplateMap::iter).map(|(_, value)| value);
    let secret = match &definition.auth {
        Some(
            Auth::Basic { password: Credential::Inline(secret), .. }
            | Auth::ApiKey { key: Credential::Inline(secret), .. },
        ) => Some(secret),
        _ => None,
    };
    let client_secret = match &definition.oauth {
        Some(OAuth::With(options)) => options.client_secret.as_ref(),
        Some(OAuth::Off) | None => None,
    };
    let values = values.chain(&definition.bearer_token).chain(secret).chain(client_secret);
    let commands = values.filter_map(|value| value.source().strip_prefix('!'));
    commands.filter(|line| !line.starts_with('!'))
}
