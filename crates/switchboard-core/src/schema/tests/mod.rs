//! Tests of the schema module.

mod check;
mod hostile;
mod outline;
mod signature;
