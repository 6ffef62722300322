//! Two hashes of a definition: the trust hash for approval, and the definition hash for the cached
//! listing.

use std::collections::HashSet;
use std::fmt;

use super::auth::{Auth, Credential, OAuth, OAuthOptions};
use super::canonical::{Canon, Canonical};
use super::expand::variables_in;
use super::server::ServerEntry;
use super::transport::Transport;
use super::values::{Template, TemplateMap};
use super::words;

const MAX_PATH_BYTES: usize = 4_096;
const LARGEST_DEFINITION: usize = 16 * 1024;
const MOST_NAMES: usize = 200;

/// The path of a file with symbolic links resolved, and the SHA-256 of its content.
pub type FileHash = (String, [u8; 32]);

/// The trust hash covers every byte that could change what runs: the definition before expansion,
/// its name, the project, and the files of the project that it runs. It does not cover comments and
/// layout. It covers `disabled` only if the project enables a server that the user disabled.
pub fn trust_hash(
    name: &str,
    definition: &ServerEntry,
    project_root: &str,
    file_hashes: &[FileHash],
) -> TrustHash {
    let mut canon = Canon::new("switchboard trust 2");
    name.encode(&mut canon);
    project_root.encode(&mut canon);
    canon.count(file_hashes.len());
    for (path, hash) in file_hashes {
        path.encode(&mut canon);
        canon.bytes(hash);
    }
    let disabled = definition.disabled.filter(|is_off| !is_off);
    ServerEntry { disabled, ..definition.clone() }.encode(&mut canon);
    TrustHash(canon.finish())
}

/// Why a definition is too large for the user to review; `None` if it is not.
pub(super) fn review_obstacle(definition: &ServerEntry) -> Option<&'static str> {
    let maps = [&definition.env, &definition.headers].into_iter().flatten();
    if maps.map(|map| map.names().count()).any(|count| count > MOST_NAMES) {
        return Some("more than 200 variables or headers");
    }
    let mut canon = Canon::new("");
    definition.encode(&mut canon);
    (canon.size() > LARGEST_DEFINITION).then_some("more than 16 KiB of text")
}

/// The definition hash covers the fields that decide a server's listing. It covers no secrets: for
/// `env` and `headers`, only the names are hashed.
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

/// A SHA-256 hash, displayed in hexadecimal.
macro_rules! hash_type {
    ($name:ident) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

hash_type!(TrustHash);
hash_type!(DefinitionHash);

/// The words of a definition that may name a file that it runs, before expansion. Relative paths
/// are relative to the server's working directory.
pub fn words_in(definition: &ServerEntry) -> Vec<String> {
    let mut words: Vec<String> = match definition.transport("") {
        Ok(Transport::Stdio { command, args }) => {
            std::iter::once(&command).chain(&args).map(|word| word.source().to_owned()).collect()
        }
        Ok(Transport::CommandLine { words }) => words,
        Ok(Transport::Http { .. } | Transport::WebSocket { .. } | Transport::Socket { .. })
        | Err(_) => Vec::new(),
    };
    if let Some(program) = &definition.request_headers_command {
        let program = std::iter::once(&program.command).chain(&program.args);
        words.extend(program.map(|word| word.source().to_owned()));
    }
    for value in command_values(definition) {
        words.extend(words::split(value).into_iter().flatten());
    }
    // Values of variables are included, because many variables name files to load, such as
    // `NODE_OPTIONS`, `LD_PRELOAD` or `BASH_ENV`.
    let env = definition.env.iter().flat_map(TemplateMap::iter).map(|(_, value)| value);
    let texts = env.filter(|value| value.command_line().is_none());
    words.extend(texts.map(|value| value.source().to_owned()));
    words
}

/// Whether one of the words may be code, as in `python -c`, `node --eval=…` or `sh -lc`. This can
/// be a false positive, because other programs use the same flags for other purposes.
pub fn runs_code(definition: &ServerEntry) -> bool {
    const LONG: [&str; 6] = ["--eval", "--print", "--command", "--exec", "eval", "-Command"];
    // A flag may be combined with other short flags, as in `bash -lic`.
    let short = |flag: &str| {
        let letters = flag.strip_prefix('-').unwrap_or_default();
        !letters.is_empty()
            && letters.bytes().all(|letter| letter.is_ascii_alphabetic())
            && letters.contains(['c', 'e', 'E', 'p', 'r'])
    };
    let is_flag = |flag: &str| LONG.contains(&flag) || short(flag);
    let words = words_in(definition);
    let is_code = |word: &str| {
        word.contains(|c: char| c.is_whitespace() || "();|&<>\"'`$*?[]{}\\~".contains(c))
    };
    let follows_flag = words.windows(2).any(|pair| match pair {
        [flag, code] => is_flag(flag) && is_code(code),
        _ => false,
    });
    let within = |word: &String| {
        let value = word.split_once('=').filter(|(flag, _)| is_flag(flag));
        value.is_some_and(|(_, code)| is_code(code))
    };
    // The code may follow its flag in the same word, as in `python -Bc'import server'`.
    let attached = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let mut letters = letters.chars().take_while(char::is_ascii_alphabetic);
        letters.any(|letter| matches!(letter, 'c' | 'e' | 'E')) && is_code(word)
    };
    follows_flag || words.iter().any(|word| within(word) || attached(word))
}

/// The programs that a definition starts, before expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// The program of the server; `None` if the server is at a URL or socket.
    pub server: Option<String>,
    /// The programs of the `!command` values.
    pub commands: Vec<String>,
}

pub fn programs_in(definition: &ServerEntry) -> Programs {
    let server = match definition.transport("") {
        Ok(Transport::Stdio { command, .. }) => Some(command.source().to_owned()),
        Ok(Transport::CommandLine { words }) => words.into_iter().next(),
        Ok(Transport::Http { .. } | Transport::WebSocket { .. } | Transport::Socket { .. })
        | Err(_) => None,
    };
    Programs { server, commands: values(definition).filter_map(Template::program).collect() }
}

/// The possible paths in the words of a command line, each once.
pub fn paths_in<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut paths = Vec::new();
    let mut known = HashSet::new();
    for path in words.flat_map(path_candidates) {
        let fits = !path.is_empty() && path.len() <= MAX_PATH_BYTES;
        if fits && known.insert(path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// The parts of a word that may name a file, such as `run.js`, `--config=run.js`, `-frun.awk`,
/// `RC=./rc.sh`, `@args` or `-javaagent:run.jar`. A word may also contain a command line, a list or
/// code with paths in it.
fn path_candidates(word: &str) -> impl Iterator<Item = &str> {
    let whole = (!word.starts_with('-')).then_some(word);
    let value = word.split_once('=').map(|(_, value)| value);
    let flag = word.strip_prefix('-').filter(|flag| !flag.starts_with('-') && value.is_none());
    let mut letters = flag.unwrap_or_default().chars();
    letters.next();
    let separates = |c: char| c.is_whitespace() || matches!(c, '=' | ':' | ';' | ',');
    let parts = word.split(separates).filter(|part| part.len() < word.len());
    let ends = move |c: char| separates(c) || "'\"`()[]{}<>|&@!*\\".contains(c);
    let inner = word.split(ends).filter(|part| part.len() < word.len());
    // The items of such a list may contain blanks.
    let listed = [',', ':', ';'].into_iter().flat_map(|c| word.split(c));
    let listed = listed.filter(|part| part.len() < word.len());
    // The colon in a `file:` URL does not separate paths, even within quotes.
    let quoted = word.split(['\'', '"', '`']).filter(|part| part.len() < word.len());
    let named = [whole, value, Some(letters.as_str())].into_iter().flatten();
    named.chain(parts).chain(inner).chain(quoted).chain(listed)
}

/// The variables that a definition reads, and the commands that it runs in addition to the server.
/// Both are shown to the user, who decides whether to trust the definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The names of environment variables, each once.
    pub variables: Vec<String>,
    /// The command lines of the `!command` values, not expanded.
    pub commands: Vec<String>,
}

pub fn reach(definition: &ServerEntry) -> Reach {
    let mut variables: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !variables.iter().any(|known| known == name) {
            variables.push(name.to_owned());
        }
    };
    for template in templates(definition) {
        variables_in(template).into_iter().for_each(&mut add);
    }
    definition.bearer_token_env.iter().for_each(|name| add(name));
    if let Some(
        Auth::Basic { password: Credential::Variable(name), .. }
        | Auth::ApiKey { key: Credential::Variable(name), .. },
    ) = &definition.auth
    {
        add(name);
    }
    Reach { variables, commands: command_values(definition).map(str::to_owned).collect() }
}

/// All templates that are expanded when the server is used.
fn templates(definition: &ServerEntry) -> impl Iterator<Item = &Template> {
    // A `url` that is a command line is not expanded.
    let literal = matches!(definition.transport(""), Ok(Transport::CommandLine { .. }));
    let url = definition.url.as_ref().filter(|_| !literal);
    let program = definition.request_headers_command.iter();
    let single = [&definition.command, &definition.cwd, &definition.socket, &definition.ca_file];
    single
        .into_iter()
        .flatten()
        .chain(url)
        .chain(definition.args.iter().flatten())
        .chain(program.flat_map(|program| std::iter::once(&program.command).chain(&program.args)))
        .chain(values(definition))
        .chain(oauth_templates(definition))
}

/// All values of a definition that may be a `!command`.
fn values(definition: &ServerEntry) -> impl Iterator<Item = &Template> {
    let maps = [&definition.env, &definition.headers].into_iter().flatten();
    let (username, secret) = match &definition.auth {
        Some(Auth::Basic { username, password: Credential::Inline(secret) }) => {
            (Some(username), Some(secret))
        }
        Some(Auth::Basic { username, password: Credential::Variable(_) }) => (Some(username), None),
        Some(Auth::ApiKey { key: Credential::Inline(secret), .. }) => (None, Some(secret)),
        Some(
            Auth::ApiKey { key: Credential::Variable(_), .. }
            | Auth::Off
            | Auth::OAuth
            | Auth::Bearer
            | Auth::Custom,
        )
        | None => (None, None),
    };
    let client_secret = oauth(definition).and_then(|options| options.client_secret.as_ref());
    maps.flat_map(TemplateMap::iter)
        .map(|(_, value)| value)
        .chain(&definition.bearer_token)
        .chain(username)
        .chain(secret)
        .chain(client_secret)
}

fn oauth(definition: &ServerEntry) -> Option<&OAuthOptions> {
    match &definition.oauth {
        Some(OAuth::With(options)) => Some(options),
        Some(OAuth::Off) | None => None,
    }
}

/// The templates of the OAuth options, except the client secret.
fn oauth_templates(definition: &ServerEntry) -> impl Iterator<Item = &Template> {
    oauth(definition).into_iter().flat_map(|options| {
        let single = [
            &options.client_id,
            &options.client_metadata_url,
            &options.scope,
            &options.redirect_uri,
            &options.client_name,
            &options.client_uri,
            &options.logo_uri,
            &options.auth_server_metadata_url,
        ];
        let params = options.authorization_params.iter().map(|(_, value)| value);
        single.into_iter().flatten().chain(params)
    })
}

/// The command lines of values such as `!pass show token`.
fn command_values(definition: &ServerEntry) -> impl Iterator<Item = &str> {
    values(definition).filter_map(Template::command_line)
}
