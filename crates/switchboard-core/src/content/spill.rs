//! Blobs, images and audio of a result that are stored in private files.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::block::{Block, MediaKind};
use super::{CallOutput, Media, MediaForm, ResultForm};

/// The size limit of a stored blob, in bytes.
pub const MAX_BLOB_BYTES: usize = 10 << 20;

/// A block whose data must be stored in a private file before the result is shown.
#[derive(Debug)]
pub struct Spill<'o> {
    /// The number of the block, for [`settle`](CallOutput::settle).
    pub block: usize,
    /// The file extension. It depends only on the MIME type, never on a name that the server chose.
    pub extension: &'static str,
    pub mime: &'o str,
    data: Cow<'o, str>,
}

/// Whether a [`Spill`] was stored.
#[derive(Clone, Copy)]
pub enum Settled<'p> {
    SavedTo(&'p str),
    Omitted(&'p dyn fmt::Display),
}

/// Why the data of a block cannot be stored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    #[error("larger than 10 MiB")]
    TooLarge,
    #[error("not valid base64")]
    NotBase64,
}

impl CallOutput<'_> {
    /// The blocks whose data must be stored. Call [`settle`](CallOutput::settle) for each of them
    /// before [`guard`].
    ///
    /// [`guard`]: super::guard::guard
    pub fn spills(&self, form: &ResultForm) -> Vec<Spill<'_>> {
        let mut spills = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            let (stored, is_stored) = match block {
                Block::Blob { media, .. } => (media, true),
                Block::Media(MediaKind::Image, media) => (media, form.images == MediaForm::Stored),
                Block::Media(MediaKind::Audio, media) => (media, form.audio == MediaForm::Stored),
                Block::Text { .. } | Block::Note(_) | Block::Aside(_) | Block::Json(_) => continue,
            };
            if is_stored {
                let Media { mime, data } = stored.view(&self.raw);
                spills.push(Spill { block: index, extension: extension(mime), mime, data });
            }
        }
        spills
    }

    /// Replaces a block by a note with the path of its file, or with the reason why it was not
    /// stored.
    pub fn settle(&mut self, block: usize, settled: Settled<'_>) {
        let Some(block) = self.blocks.get_mut(block) else {
            return;
        };
        let note = match (&*block, settled) {
            (Block::Blob { uri, media }, Settled::SavedTo(path)) => {
                let mime = &media.mime;
                format!("[Resource: {uri}]\nBinary content saved to {path}\nMIME type: {mime}")
            }
            (Block::Blob { uri, media }, Settled::Omitted(reason)) => {
                omitted(uri, &media.mime, reason)
            }
            (Block::Media(kind, media), settled) => {
                let kind = match kind {
                    MediaKind::Image => "Image",
                    MediaKind::Audio => "Audio content",
                };
                let outcome = match settled {
                    Settled::SavedTo(path) => format!("Saved to {path}"),
                    Settled::Omitted(reason) => format!("Omitted: {reason}"),
                };
                format!("[{kind}: {}]\n{outcome}", media.mime)
            }
            (Block::Text { .. } | Block::Note(_) | Block::Aside(_) | Block::Json(_), _) => return,
        };
        *block = Block::Aside(note);
    }
}

impl Spill<'_> {
    /// The decoded data, if it is not larger than the size limit.
    pub fn decode(&self) -> Result<Vec<u8>, BlobError> {
        if self.data.len() > MAX_BLOB_BYTES / 2 * 3 {
            return Err(BlobError::TooLarge);
        }
        let bytes = self.decode_whole()?;
        if bytes.len() > MAX_BLOB_BYTES { Err(BlobError::TooLarge) } else { Ok(bytes) }
    }

    /// The decoded data. Line breaks and missing padding are accepted, because some encoders
    /// produce them.
    pub fn decode_whole(&self) -> Result<Vec<u8>, BlobError> {
        const FORGIVING: GeneralPurpose = GeneralPurpose::new(
            &STANDARD,
            GeneralPurposeConfig::new()
                .with_decode_padding_mode(DecodePaddingMode::Indifferent)
                .with_decode_allow_trailing_bits(true),
        );
        let wrapped = self.data.bytes().any(|byte| byte.is_ascii_whitespace());
        let decoded = if wrapped {
            FORGIVING.decode(self.data.split_ascii_whitespace().collect::<String>())
        } else {
            FORGIVING.decode(self.data.as_bytes())
        };
        decoded.map_err(|_| BlobError::NotBase64)
    }
}

/// The note in place of a blob that was not stored.
pub(super) fn omitted(uri: &str, mime: &str, reason: &dyn fmt::Display) -> String {
    format!("[Resource: {uri}]\nBinary content omitted: {reason}\nMIME type: {mime}")
}

/// The file extension for a MIME type.
fn extension(mime: &str) -> &'static str {
    let essence = mime.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "audio/mp4" => "m4a",
        "video/mp4" => "mp4",
        "video/webm" | "audio/webm" => "webm",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/plain" => "txt",
        _ => "bin",
    }
}
