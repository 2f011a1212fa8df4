//! Writes a PNG with four colours. Independent of charts.
//!
//! <https://www.w3.org/TR/png-3/>: a signature, then chunks of length, type, bytes and checksum.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The red, green and blue values of the colours: paper, ink, grid, axis.
const PALETTE: [u8; 12] = [255, 255, 255, 31, 119, 180, 220, 220, 220, 40, 40, 40];

/// The pixels, each a byte with the number of a colour.
pub struct Picture {
    /// The number of pixels in a row.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
    /// All rows, from the top.
    pub pixels: Vec<u8>,
}

impl Picture {
    /// Creates an empty picture.
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![0; width * height] }
    }

    /// Sets a pixel. Ignores a pixel outside the picture.
    pub fn set(&mut self, column: usize, row: usize, colour: u8) {
        if column < self.width && row < self.height {
            self.pixels[row * self.width + column] = colour;
        }
    }

    /// Fills the rectangle between two corners, both included.
    pub fn fill(&mut self, from: (usize, usize), to: (usize, usize), colour: u8) {
        for row in from.1..=to.1 {
            for column in from.0..=to.0 {
                self.set(column, row, colour);
            }
        }
    }

    /// Encodes the picture as a PNG.
    ///
    /// # Errors
    /// Fails if the bytes cannot be compressed.
    pub fn to_png(&self) -> io::Result<Vec<u8>> {
        let mut header = Vec::new();
        for side in [self.width, self.height] {
            header.extend(u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes());
        }
        // Eight bits per pixel, with a palette, standard methods, and not interlaced.
        header.extend([8, 3, 0, 0, 0]);
        let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
        for row in self.pixels.chunks(self.width) {
            // Each row starts with its filter type: none.
            rows.write_all(&[0])?;
            rows.write_all(row)?;
        }
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        write_chunk(&mut png, *b"IHDR", &header);
        write_chunk(&mut png, *b"PLTE", &PALETTE);
        write_chunk(&mut png, *b"IDAT", &rows.finish()?);
        write_chunk(&mut png, *b"IEND", &[]);
        Ok(png)
    }
}

fn write_chunk(png: &mut Vec<u8>, kind: [u8; 4], bytes: &[u8]) {
    png.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    let begin = png.len();
    png.extend(kind);
    png.extend(bytes);
    let checksum = crc32fast::hash(&png[begin..]);
    png.extend(checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_is_encoded_as_a_png_of_its_size() {
        let mut picture = Picture::new(3, 2);
        picture.fill((1, 1), (9, 9), 1);
        assert_eq!(picture.pixels, [0, 0, 0, 0, 1, 1]);
        let png = picture.to_png().unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&png[12..24], b"IHDR\0\0\0\x03\0\0\0\x02");
        // The end of every PNG, with its checksum from the standard.
        assert_eq!(&png[png.len() - 12..], b"\0\0\0\0IEND\xae\x42\x60\x82");
    }
}
