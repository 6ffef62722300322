//! What a server's entry says about signing in, with every variable filled in.

use std::path::PathBuf;

use switchboard_core::config::auth::GrantType;
use switchboard_core::name::ServerName;
use switchboard_core::sign_in::address::Reach;
use url::Url;

use super::vault::Holder;
use crate::secret::Secret;

/// The server to sign in to, and how. The same terms share their tokens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Terms {
    pub(crate) server: ServerName,
    pub(crate) url: Url,
    /// The `account` of the entry.
    pub(crate) account: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
    /// The host of an authorization server that the user named, not a project.
    pub(crate) named: Option<Url>,
    pub(crate) options: Options,
}

/// The `oauth` of the entry.
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
    /// The document that describes the authorization server, whatever the server says.
    pub(crate) metadata_url: Option<Url>,
    pub(crate) issuer_unchecked: bool,
}

impl Terms {
    /// What its tokens are kept for.
    pub(crate) fn holder(&self) -> Holder {
        Holder { address: self.url.to_string(), account: self.account.clone() }
    }

    /// Where requests on behalf of the server may go.
    pub(crate) fn reach(&self) -> Reach {
        let reach = Reach::of(&self.url);
        match &self.named {
            Some(named) => reach.and(named),
            None => reach,
        }
    }
}
