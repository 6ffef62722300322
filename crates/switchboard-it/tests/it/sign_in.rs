//! Signing in to servers.

mod hostile;
