//! Opens connections: starts programs with their environment, connects to URLs and sockets, and
//! attaches in-process servers.

pub(crate) mod http;
pub mod in_process;
pub(crate) mod launch;
pub(crate) mod lookup;
pub mod names;
pub(crate) mod secret;
pub(crate) mod socket;
pub mod spawn;

use crate::env::Environment;
use crate::trust::Seal;
use crate::upstream::{DialError, secret_program};

/// Checks that the definition of a server without a program, and the commands of its secrets, are
/// unchanged since the approval.
async fn sealed(
    seal: Option<&Seal>,
    environment: &Environment,
    asked: Vec<Vec<String>>,
) -> Result<(), DialError> {
    let Some(seal) = seal.cloned() else { return Ok(()) };
    // A server at a URL or socket has no program; this placeholder only supplies the environment
    // and directory for the check.
    let program = secret_program(environment, Vec::new(), &environment.cwd);
    let checking = tokio::task::spawn_blocking(move || seal.check(&program, &asked));
    Ok(checking.await.map_err(|_| DialError::Unchecked)??)
}
