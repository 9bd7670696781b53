//! Files that hold cubins: a cubin itself, a container of several images ("fatbin"), or a host program with containers.

use crate::elf::{Elf, ElfError, MACHINE_CUDA};
use crate::unpack;
use std::borrow::Cow;
use std::fmt;

/// A piece of GPU code in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image<'a> {
    pub kind: ImageKind,
    /// The number of the image's generation; 0 if only the image itself gives it.
    pub sm: u32,
    /// The container's description of the image; `None` if the image is the whole file.
    pub container: Option<Container>,
    packing: Packing,
    packed: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packing {
    None,
    /// Compressed data, with its size when unpacked.
    Lz4(u64),
    Zstandard(u64),
}

/// The total size to which the compressed images of a file may be unpacked, unless the user raises it. Even a small
/// file can unpack to very large images.
pub const UNPACK_LIMIT: u64 = 256 << 20;

impl<'a> Image<'a> {
    /// The bytes of the image. `room` is the number of bytes that may still be unpacked; the size of an unpacked image
    /// is subtracted from it.
    pub fn content(&self, room: &mut u64) -> Result<Cow<'a, [u8]>, ImageError> {
        let (Packing::Lz4(size) | Packing::Zstandard(size)) = self.packing else {
            return Ok(Cow::Borrowed(self.packed));
        };
        *room = room.checked_sub(size).ok_or(ImageError::TooLarge { size, room: *room })?;
        let unpack = if let Packing::Lz4(_) = self.packing { unpack::lz4 } else { unpack::zstandard };
        unpack(self.packed, size as usize).map(Cow::Owned).ok_or(ImageError::Damaged)
    }
}

/// The description of an image in its container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Container {
    pub version: (u16, u16),
    pub compressed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageKind {
    Cubin,
    /// PTX source text.
    Ptx,
    Other(u16),
}

/// The reason why an image cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageError {
    /// The file is of no kind that holds GPU code.
    Unknown,
    /// A host program without GPU code.
    NoImages,
    Truncated,
    /// The compressed data is damaged.
    Damaged,
    /// The unpacked image would exceed the limit.
    TooLarge {
        size: u64,
        room: u64,
    },
    /// Sections of a host program overlap.
    Overlap,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageError::Unknown => "neither a cubin nor a file that holds cubins",
            ImageError::NoImages => "the program has no GPU code",
            ImageError::Truncated => "the file is truncated",
            ImageError::Damaged => "the compressed data is damaged",
            ImageError::Overlap => "sections with GPU code overlap",
            ImageError::TooLarge { size, room } => {
                return write!(
                    f,
                    "unpacks to {size} bytes, but only {room} bytes are left of the limit; raise it with --unpack-limit"
                );
            }
        })
    }
}

impl std::error::Error for ImageError {}

impl From<ElfError> for ImageError {
    fn from(_: ElfError) -> ImageError {
        ImageError::Truncated
    }
}

const CONTAINER_MAGIC: &[u8] = b"\x50\xed\x55\xba";
/// The sections of host programs that hold containers. Those in the second are relocatable.
const CONTAINER_SECTIONS: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];
const KIND_PTX: u16 = 1;
const KIND_CUBIN: u16 = 2;
const FLAG_LZ4: u64 = 1 << 13;
const FLAG_ZSTANDARD: u64 = 1 << 15;

/// The number of bytes that [`may_hold_images`] examines.
pub const MAGIC_BYTES: u64 = 4;

/// Whether a file with these first bytes may hold images.
pub fn may_hold_images(start: &[u8]) -> bool {
    start.starts_with(CONTAINER_MAGIC) || start.starts_with(b"\x7fELF")
}

/// The images of a file, in order.
pub fn images(bytes: &[u8]) -> Result<Vec<Image<'_>>, ImageError> {
    if bytes.starts_with(CONTAINER_MAGIC) {
        let mut out = Vec::new();
        containers(bytes, &mut out)?;
        return Ok(out);
    }
    let elf = Elf::new(bytes).map_err(|error| match error {
        ElfError::NotElf => ImageError::Unknown,
        _ => ImageError::Truncated,
    })?;
    if elf.machine == MACHINE_CUDA {
        let (kind, packing) = (ImageKind::Cubin, Packing::None);
        return Ok(vec![Image { kind, sm: 0, container: None, packing, packed: bytes }]);
    }
    let mut out = Vec::new();
    let mut rest = bytes.len();
    for section in elf.sections.iter().filter(|section| CONTAINER_SECTIONS.contains(&section.name)) {
        let content = elf.content(section)?;
        // Otherwise a small file could repeat the same bytes in many sections.
        rest = rest.checked_sub(content.len()).ok_or(ImageError::Overlap)?;
        containers(content, &mut out)?;
    }
    if out.is_empty() { Err(ImageError::NoImages) } else { Ok(out) }
}

#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn slice(self, offset: usize, size: usize) -> Result<&'a [u8], ImageError> {
        let end = offset.checked_add(size).ok_or(ImageError::Truncated)?;
        self.0.get(offset..end).ok_or(ImageError::Truncated)
    }

    /// A little-endian number of at most eight bytes.
    fn number(self, offset: usize, size: usize) -> Result<u64, ImageError> {
        let bytes = self.slice(offset, size)?;
        Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }
}

/// Reads consecutive containers, with zeros between them.
fn containers<'a>(mut bytes: &'a [u8], out: &mut Vec<Image<'a>>) -> Result<(), ImageError> {
    loop {
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        bytes = &bytes[zeros..];
        if !bytes.starts_with(CONTAINER_MAGIC) {
            return if bytes.is_empty() { Ok(()) } else { Err(ImageError::Truncated) };
        }
        let container = Bytes(bytes);
        let header = container.number(6, 2)? as usize;
        let size = container.number(8, 8)? as usize;
        container_images(container.slice(header, size)?, out)?;
        bytes = &bytes[header + size..];
        if header + size == 0 {
            return Err(ImageError::Truncated);
        }
    }
}

fn container_images<'a>(mut bytes: &'a [u8], out: &mut Vec<Image<'a>>) -> Result<(), ImageError> {
    while !bytes.is_empty() {
        let image = Bytes(bytes);
        let header = image.number(4, 4)? as usize;
        // The size includes padding.
        let size = image.number(8, 8)? as usize;
        let compressed = image.number(16, 4)? as usize;
        let flags = image.number(40, 8)?;
        let unpacked = image.number(56, 8)?;
        let content = image.slice(header, size)?;
        let packing = match () {
            () if flags & FLAG_ZSTANDARD != 0 => Packing::Zstandard(unpacked),
            () if flags & FLAG_LZ4 != 0 => Packing::Lz4(unpacked),
            () => Packing::None,
        };
        let packed =
            if packing == Packing::None { content } else { content.get(..compressed).unwrap_or(content) };
        out.push(Image {
            kind: match image.number(0, 2)? as u16 {
                KIND_PTX => ImageKind::Ptx,
                KIND_CUBIN => ImageKind::Cubin,
                other => ImageKind::Other(other),
            },
            sm: image.number(28, 4)? as u32,
            container: Some(Container {
                version: (image.number(26, 2)? as u16, image.number(24, 2)? as u16),
                compressed: packing != Packing::None,
            }),
            packing,
            packed,
        });
        let end = header.checked_add(size).filter(|&end| end > 0).ok_or(ImageError::Truncated)?;
        bytes = &bytes[end..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A container with one image.
    fn container(kind: u8, flags: u16, unpacked: u8, content: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 64];
        image[0] = kind;
        image[4] = 64;
        image[8] = content.len() as u8;
        image[16] = content.len() as u8;
        image[28] = 90;
        image[40..42].copy_from_slice(&flags.to_le_bytes());
        image[56] = unpacked;
        image.extend(content);
        let mut out = CONTAINER_MAGIC.to_vec();
        out.extend([1, 0, 16, 0, image.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
        out.extend(image);
        out
    }

    /// The content of a file's first image.
    fn first(bytes: &[u8], mut room: u64) -> Result<Vec<u8>, ImageError> {
        images(bytes).unwrap()[0].content(&mut room).map(Cow::into_owned)
    }

    /// Four bytes of Zstandard, and the number of bytes that they expand to.
    const ZSTANDARD: &[u8] = b"\x28\xb5\x2f\xfd\x20\x03\x1b\x00\x00c";

    #[test]
    fn reads_containers() {
        let plain = container(1, 0, 0, b"text");
        let found = images(&plain).unwrap();
        assert_eq!((found[0].kind, found[0].sm), (ImageKind::Ptx, 90));
        assert_eq!(first(&plain, 0), Ok(b"text".to_vec()));
        let packed = container(2, 1 << 13, 8, b"\x12a\x01\x00\x10b");
        assert_eq!(first(&packed, 8), Ok(b"aaaaaaab".to_vec()));
        let packed = container(2, 1 << 15, 3, ZSTANDARD);
        assert_eq!(first(&packed, 3), Ok(b"ccc".to_vec()));
        assert_eq!(first(&container(2, 1 << 15, 9, b"xyz"), 9), Err(ImageError::Damaged));
        let two = [plain.as_slice(), &[0; 8], &packed].concat();
        assert_eq!(images(&two).unwrap().len(), 2);
        for len in 4..plain.len() {
            assert_eq!(images(&plain[..len]), Err(ImageError::Truncated));
        }
        assert_eq!(images(b"MZ"), Err(ImageError::Unknown));
    }

    #[test]
    fn all_images_share_one_limit() {
        let lz4 = container(2, 1 << 13, 8, b"\x12a\x01\x00\x10b");
        let file =
            [lz4.as_slice(), &container(2, 1 << 15, 3, ZSTANDARD), &container(2, 0, 0, b"plain")].concat();
        let images = images(&file).unwrap();
        let contents = |mut room: u64| -> Vec<_> {
            images.iter().map(|image| image.content(&mut room).map(|content| content.len())).collect()
        };
        assert_eq!(contents(11), [Ok(8), Ok(3), Ok(5)]);
        assert_eq!(contents(10), [Ok(8), Err(ImageError::TooLarge { size: 3, room: 2 }), Ok(5)]);
    }
}
