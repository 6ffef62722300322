//! The canonical bytes of a definition, for hashing. Equal definitions have equal bytes in any
//! layout of the file.
//!
//! Every part has its length before it, so that different definitions never have the same bytes.

use std::time::Duration;

use sha2::{Digest, Sha256};

pub(super) struct Canon {
    hash: Sha256,
    /// The number of bytes hashed so far, without the length prefixes.
    bytes: usize,
}

impl Canon {
    /// Starts a hash. `purpose` names its kind and version, so that hashes of different kinds are
    /// never equal.
    pub(super) fn new(purpose: &str) -> Self {
        let mut canon = Self { hash: Sha256::new(), bytes: 0 };
        canon.bytes(purpose.as_bytes());
        canon
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes += bytes.len();
        self.hash.update(bytes);
    }

    pub(super) fn count(&mut self, count: usize) {
        self.hash.update((count as u64).to_le_bytes());
    }

    /// The number of bytes hashed so far, without the length prefixes.
    pub(super) fn size(&self) -> usize {
        self.bytes
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.hash.finalize().into()
    }
}

pub(super) trait Canonical {
    fn encode(&self, canon: &mut Canon);
}

impl Canonical for str {
    fn encode(&self, canon: &mut Canon) {
        canon.bytes(self.as_bytes());
    }
}

impl<T: Canonical + ?Sized> Canonical for &T {
    fn encode(&self, canon: &mut Canon) {
        (**self).encode(canon);
    }
}

impl Canonical for String {
    fn encode(&self, canon: &mut Canon) {
        self.as_str().encode(canon);
    }
}

impl Canonical for bool {
    fn encode(&self, canon: &mut Canon) {
        canon.bytes(&[u8::from(*self)]);
    }
}

impl Canonical for Duration {
    fn encode(&self, canon: &mut Canon) {
        canon.bytes(&self.as_nanos().to_le_bytes());
    }
}

impl<T: Canonical> Canonical for Option<T> {
    fn encode(&self, canon: &mut Canon) {
        canon.count(usize::from(self.is_some()));
        if let Some(value) = self {
            value.encode(canon);
        }
    }
}

impl<T: Canonical> Canonical for Vec<T> {
    fn encode(&self, canon: &mut Canon) {
        canon.count(self.len());
        for value in self {
            value.encode(canon);
        }
    }
}

impl<A: Canonical, B: Canonical> Canonical for (A, B) {
    fn encode(&self, canon: &mut Canon) {
        self.0.encode(canon);
        self.1.encode(canon);
    }
}
