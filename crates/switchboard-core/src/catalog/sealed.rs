//! The format of cache and pin files: a header line with a checksum, then the content.

use sha2::{Digest, Sha256};

/// The kind of a file, given by the first two words of its header.
#[derive(Clone, Copy, Debug)]
pub struct Seal {
    pub magic: &'static str,
    pub version: u32,
}

impl Seal {
    /// A file with this content. The header contains `fields`, which have no spaces.
    pub fn close(self, fields: &[&str], body: &[u8]) -> Vec<u8> {
        let Seal { magic, version } = self;
        let fields = fields.join(" ");
        let sum = checksum(&fields, body);
        let mut file = format!("{magic} {version} {fields} {} {sum}\n", body.len()).into_bytes();
        file.extend_from_slice(body);
        file
    }

    /// The header fields and the content of a file. `None` if the file is damaged or of another
    /// kind.
    pub fn open<const N: usize>(self, file: &[u8]) -> Option<([&str; N], &[u8])> {
        let end = file.iter().position(|byte| *byte == b'\n')?;
        let (header, rest) = file.split_at_checked(end)?;
        let body = rest.get(1..)?;
        let header = std::str::from_utf8(header).ok()?;
        let mut words = header.split(' ');
        if words.next()? != self.magic || words.next()? != self.version.to_string() {
            return None;
        }
        let mut fields = [""; N];
        for field in &mut fields {
            *field = words.next()?;
        }
        let length: usize = words.next()?.parse().ok()?;
        let whole = body.len() == length && words.next()? == checksum(&fields.join(" "), body);
        (whole && words.next().is_none()).then_some((fields, body))
    }
}

fn checksum(fields: &str, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update((fields.len() as u64).to_le_bytes());
    hash.update(fields);
    hash.update(body);
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
