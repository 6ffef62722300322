//! Sign-ins to servers at a URL: the flows, the tokens, and their storage.

mod account;
mod accounts;
mod bearer;
pub(crate) mod callback;
pub(crate) mod discover;
mod error;
mod flow;
pub(crate) mod grant;
pub(crate) mod net;
pub(crate) mod register;
pub(crate) mod requests;
mod sign_in;
pub(crate) mod takeover;
pub(crate) mod terms;
pub mod tokens;
pub(crate) mod vault;

pub(crate) use account::Account;
pub(crate) use accounts::Accounts;
pub(crate) use error::AuthError;
pub(crate) use sign_in::Started;
pub use sign_in::{Begun, DevicePending, Forgotten, Pending, SignIn, SignInMethod, SignedIn};
pub use tokens::TokenLocation;
pub(crate) use vault::Vault;
