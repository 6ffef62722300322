//! OAuth sign-in to servers at a URL: validates the documents and responses of servers and
//! authorization servers, without IO.
//!
//! The modules in reading order: permitted addresses, URLs from the network, the server's
//! challenge, metadata, scopes, the redirect URI, the callback, and lifetimes of tokens.

pub mod address;
pub mod link;
pub mod challenge;
pub mod metadata;
pub mod scope;
pub mod redirect;
pub mod callback;
pub mod token;
