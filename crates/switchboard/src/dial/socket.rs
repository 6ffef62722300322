//! Servers that listen on a Unix socket, with one message per line, as on stdio.

use std::io;
use std::path::PathBuf;

use switchboard_core::config::expand;
use switchboard_core::config::values::Template;
use tokio::net::UnixStream;

use super::sealed;
use crate::env::Environment;
use crate::trust::Seal;
use crate::upstream::DialError;

/// A socket as written in the configuration; variables are expanded at dial time.
#[derive(PartialEq)]
pub(crate) struct SocketRecipe {
    pub(crate) path: Template,
    pub(crate) environment: Environment,
    pub(crate) seal: Option<Seal>,
}

impl SocketRecipe {
    pub(crate) async fn connect(&self) -> Result<UnixStream, DialError> {
        let path = self.environment.expanding(|with| expand::expand(&self.path, with))?;
        let path = self.environment.cwd.join(PathBuf::from(path));
        sealed(self.seal.as_ref(), &self.environment, Vec::new()).await?;
        let failed = |cause: io::Error| DialError::Socket { path: path.clone(), cause };
        UnixStream::connect(&path).await.map_err(failed)
    }
}
