//! All code of this crate that exists only for Pi: edits of its settings, findings about it, and
//! the texts and prompt commands of its extension. The format of its list of servers is
//! [`config::pi_servers`](crate::config::pi_servers), beside the other formats.

pub mod findings;
pub mod prompts;
pub mod settings;
pub mod text;
