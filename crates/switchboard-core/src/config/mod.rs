//! What a configuration file says.
