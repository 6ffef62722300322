//! The settings of an entry for signing in, with all variables expanded.

use std::path::PathBuf;

use switchboard_core::config::auth::GrantType;
use switchboard_core::name::ServerName;
use switchboard_core::sign_in::address::Reach;
use url::Url;

use super::vault::Holder;
use crate::secret::Secret;

/// The server to sign in to, and how. Servers with equal terms share their tokens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Terms {
    pub(crate) server: ServerName,
    pub(crate) url: Url,
    /// The `account` of the server's entry.
    pub(crate) account: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
    /// The URL of an authorization server that the user, not a project, configured.
    pub(crate) named: Option<Url>,
    pub(crate) options: Options,
}

/// The `oauth` of the server's entry, with all variables expanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) grant: GrantType,
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) client_metadata_url: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) redirect: Option<String>,
    pub(crate) client_name: Option<String>,
    pub(crate) client_uri: Option<String>,
    pub(crate) logo_uri: Option<String>,
    /// The metadata document of the authorization server; takes precedence over discovery.
    pub(crate) metadata_url: Option<Url>,
    pub(crate) issuer_unchecked: bool,
}

impl Terms {
    /// The holder under which the server's tokens are stored.
    pub(crate) fn holder(&self) -> Holder {
        Holder { address: self.url.to_string(), account: self.account.clone() }
    }

    /// The addresses that requests on behalf of the server may reach.
    pub(crate) fn reach(&self) -> Reach {
        let reach = Reach::of(&self.url);
        match &self.named {
            Some(named) => reach.and(named),
            None => reach,
        }
    }
}
