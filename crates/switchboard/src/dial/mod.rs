//! From a recipe to something that carries messages: programs, what they are given, addresses, and
//! in-process servers.

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

/// Whether a server that is no program, and the commands that are asked for its values, are still
/// what was approved.
async fn sealed(
    seal: Option<&Seal>,
    environment: &Environment,
    asked: Vec<Vec<String>>,
) -> Result<(), DialError> {
    let Some(seal) = seal.cloned() else { return Ok(()) };
    // Nothing of its own runs.
    let program = secret_program(environment, Vec::new(), &environment.cwd);
    let checking = tokio::task::spawn_blocking(move || seal.check(&program, &asked));
    Ok(checking.await.map_err(|_| DialError::Unchecked)??)
}
