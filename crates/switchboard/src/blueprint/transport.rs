//! Derives the transport of a server from its entry: program, URL or socket, and its seal.

use switchboard_core::config::layers::{Server, Trust};
use switchboard_core::config::settings::Settings;
use switchboard_core::config::transport::Transport as Configured;
use switchboard_core::config::values::Template;
use switchboard_core::name::ServerName;

use super::Blueprint;
use crate::dial::http::{RemoteRecipe, Speaks};
use crate::dial::launch::{Ground, Launching, Resolving};
use crate::dial::socket::SocketRecipe;
use crate::dial::spawn::Confinement;
use crate::env::Environment;
use crate::paths::Paths;
use crate::trust::{Seal, TrustStore};
use crate::upstream::{CommandWords, ProgramRecipe, Transport};

impl Blueprint {
    pub(super) fn transport(
        &self,
        name: &ServerName,
        server: &Server,
        settings: &Settings,
    ) -> Transport {
        let definition = &server.definition;
        let program = |words| {
            let means = (&self.environment, &self.paths);
            let mut recipe = program(name, server, words, settings, means);
            recipe.launching.start_timeout = self.start_timeout(definition, settings);
            Transport::Program(Box::new(recipe))
        };
        let seal = seal(name, server, (&self.environment, &self.paths));
        let remote = |url: &Template, speaks| {
            Transport::Remote(Box::new(RemoteRecipe {
                server: name.clone(),
                url: url.clone(),
                speaks,
                headers: definition.headers.clone().unwrap_or_default(),
                auth: definition.auth.clone(),
                bearer_token: definition.bearer_token.clone(),
                bearer_token_env: definition.bearer_token_env.clone(),
                oauth: definition.sign_in().filter(|_| speaks != Speaks::WebSocket),
                account: definition.account.clone(),
                bearer_token_store: definition.bearer_token_store == Some(true),
                vault: self.vault.storing(settings.oauth_credential_store),
                headers_command: definition.request_headers_command.clone(),
                ca_file: definition.ca_file.clone(),
                environment: self.environment.clone(),
                seal: seal.clone(),
            }))
        };
        match &server.transport {
            Configured::Stdio { command, args } => {
                program(CommandWords::Templates { command: command.clone(), args: args.clone() })
            }
            Configured::CommandLine { words } => program(CommandWords::Literal(words.clone())),
            Configured::Http { url, mode } => remote(url, Speaks::Http(*mode)),
            Configured::WebSocket { url } => remote(url, Speaks::WebSocket),
            Configured::Socket { path } => Transport::Socket(Box::new(SocketRecipe {
                path: path.clone(),
                environment: self.environment.clone(),
                seal,
            })),
        }
    }
}

fn seal(
    name: &ServerName,
    server: &Server,
    (environment, paths): (&Environment, &Paths),
) -> Option<Seal> {
    match server.trust {
        Trust::UserFile => None,
        Trust::Approved(hash) => Some(Seal {
            server: name.to_string(),
            definition: server.definition.clone(),
            environment: environment.clone(),
            hash,
            store: TrustStore::at(paths.trust()),
        }),
    }
}

/// The recipe of a stdio server.
pub(crate) fn program(
    name: &ServerName,
    server: &Server,
    words: CommandWords,
    settings: &Settings,
    (environment, paths): (&Environment, &Paths),
) -> ProgramRecipe {
    let definition = &server.definition;
    let off = environment.variable("SWITCHBOARD_LAUNCHER") == Some("off")
        || definition.resolve_launcher == Some(false);
    let launching = Launching {
        resolving: if off { Resolving::Off } else { Resolving::On },
        // If an entry sets `cwd` or belongs to the project, files in its working directory may
        // decide what its launcher starts.
        ground: match (&server.trust, &definition.cwd) {
            (Trust::UserFile, None) => Ground::Foreign,
            (Trust::UserFile, Some(_)) | (Trust::Approved(_), _) => Ground::Own,
        },
        home: paths.launchers(),
        log: paths.log_of(name),
        start_timeout: definition.start_timeout.unwrap_or(settings.start_timeout),
        withheld: environment.withheld().collect(),
    };
    ProgramRecipe {
        words,
        seal: seal(name, server, (environment, paths)),
        env: definition.env_with(settings, |name| environment.variable(name).is_some()),
        cwd: definition.cwd.clone(),
        inherit_env: definition.inherit_env == Some(true),
        confinement: match definition.confine {
            None | Some(true) => Confinement::WherePossible,
            Some(false) => Confinement::Off,
        },
        environment: environment.clone(),
        launching,
    }
}
