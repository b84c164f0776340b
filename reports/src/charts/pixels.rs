//! A PNG file from rows of RGB: one deflated stream, each row as its difference from the one above (W3C, "Portable Network Graphics
//! Specification", third edition: chunks, filter type 2).

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Write};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Eight bits a channel, RGB, the one compression and filter method, not interlaced.
const KIND: [u8; 5] = [8, 2, 0, 0, 0];
/// Filter "up".
const UP: u8 = 2;

/// A picture under way.
pub(super) struct Pixels {
    width: u32,
    height: u32,
    above: Vec<u8>,
    data: ZlibEncoder<Vec<u8>>,
    rows: u32,
}

impl Pixels {
    /// A picture of this size, pixels.
    pub(super) fn new(width: u32, height: u32) -> Pixels {
        let data = ZlibEncoder::new(Vec::new(), Compression::default());
        Pixels { width, height, above: vec![0; width as usize * 3], data, rows: 0 }
    }

    /// Adds a row, three bytes a pixel.
    ///
    /// # Errors
    /// If it has not the picture's width, or compression fails.
    pub(super) fn row(&mut self, row: Vec<u8>) -> io::Result<()> {
        if row.len() != self.above.len() {
            return Err(io::Error::other(format!("a row of {} bytes for {} pixels", row.len(), self.width)));
        }
        let difference: Vec<u8> = row.iter().zip(&self.above).map(|(a, b)| a.wrapping_sub(*b)).collect();
        self.data.write_all(&[UP])?;
        self.data.write_all(&difference)?;
        self.above = row;
        self.rows += 1;
        Ok(())
    }

    /// The file.
    ///
    /// # Errors
    /// If rows are missing or too many, or compression fails.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        if self.rows != self.height {
            return Err(io::Error::other(format!("{} rows for a height of {}", self.rows, self.height)));
        }
        let data = self.data.finish()?;
        let mut head = [self.width.to_be_bytes(), self.height.to_be_bytes()].concat();
        head.extend(KIND);
        let mut out = SIGNATURE.to_vec();
        for (name, body) in [(b"IHDR", head.as_slice()), (b"IDAT", &data), (b"IEND", &[])] {
            let length = u32::try_from(body.len()).map_err(io::Error::other)?;
            out.extend(length.to_be_bytes());
            let mut crc = Crc::new();
            crc.update(name);
            crc.update(body);
            out.extend(name);
            out.extend(body);
            out.extend(crc.sum().to_be_bytes());
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_file_has_its_chunks_and_rows() {
        let mut picture = Pixels::new(2, 2);
        picture.row(vec![1, 2, 3, 4, 5, 6]).unwrap();
        picture.row(vec![1, 2, 3, 4, 5, 7]).unwrap();
        let file = picture.finish().unwrap();
        assert_eq!(file[..8], SIGNATURE);
        assert_eq!(file[8..29], *b"\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x02\x08\x02\0\0\0");
        // The end that every PNG file has.
        assert_eq!(file[file.len() - 12..], *b"\0\0\0\0IEND\xae\x42\x60\x82");
        let at = file.windows(4).position(|w| w == b"IDAT").unwrap() + 4;
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(&file[at..]).read_to_end(&mut rows).unwrap();
        assert_eq!(rows, [2, 1, 2, 3, 4, 5, 6, 2, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_picture_that_is_not_whole_is_refused() {
        assert!(Pixels::new(1, 1).finish().is_err());
        assert!(Pixels::new(1, 1).row(vec![0; 4]).is_err());
    }
}
