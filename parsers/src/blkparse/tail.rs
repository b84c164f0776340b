//! What follows the RWBS letters of a line: place, length, process or error.

use kreplay_traces::event::BlockRow;
use kreplay_traces::units::SECTOR_BYTES;

use super::device;
use crate::num::{Fields, dec_i64, dec_u64, push_text, signed};

/// Reader of what follows the RWBS letters; the blk tracer prints the same.
#[derive(Default)]
pub(crate) struct Tail {
    pub(super) remark: bool,
    /// An elapsed time was below zero, which was printed as its 64-bit pattern: by how much, nanoseconds.
    pub(super) negative_ns: Option<u64>,
    comm: String,
    text: String,
}

impl Tail {
    /// Fill the row from what follows the RWBS letters; gives the byte index (in the fields' text) of the first surprise.
    #[inline]
    pub(crate) fn read<'s>(&'s mut self, row: &mut BlockRow<'s>, f: &mut Fields<'_>) -> Result<(), usize> {
        let at = f.position();
        let tail = f.rest();
        self.comm.clear();
        self.text.clear();
        match row.action {
            "A" => return remap(row, f),
            "m" => {
                push_text(&mut self.text, tail);
                row.text = Some(&self.text);
                return Ok(());
            }
            _ => {}
        }
        let has_error = matches!(row.action, "C" | "R");
        let open = tail.iter().position(|b| *b == b'[').ok_or(at + tail.len())?;
        let numbers = &tail[..open];
        let close = match tail {
            // Almost always the bracket ends the line.
            [.., b']'] if !has_error || !tail[open..tail.len() - 1].contains(&b']') => Some(tail.len() - 1),
            _ if has_error => memchr::memchr(b']', tail),
            _ => memchr::memrchr(b']', tail),
        };
        let close = close.filter(|c| *c > open).ok_or(at + tail.len())?;
        let inner = &tail[open + 1..close];
        if has_error {
            row.error = Some(signed(inner).ok_or(at + open + 1)?);
        } else {
            push_text(&mut self.comm, inner);
        }
        let after = tail[close + 1..].trim_ascii();
        match row.action {
            "U" | "UT" => row.unplugged = Some(dec_i64(after).ok_or(at + close + 1)?),
            _ if after.is_empty() => {}
            // Zone append (patched tools): the sector where the device wrote.
            "C" if after.starts_with(b"<") && after.ends_with(b">") => {
                row.from_sector_512 = Some(dec_i64(&after[1..after.len() - 1]).ok_or(at + close + 1)?);
            }
            _ if after.starts_with(b"<-")
                || after.starts_with(b">>")
                || after.starts_with(b"#")
                || after.starts_with(b"...") =>
            {
                self.remark = true
            }
            _ => return Err(at + close + 1),
        }
        self.numbers(row, numbers).map_err(|i| at + i)?;
        row.comm = (!has_error && self.comm != "(null)").then_some(self.comm.as_str());
        row.text = (!self.text.is_empty()).then_some(self.text.as_str());
        Ok(())
    }

    /// `sector + n`, `sector / newsector`, `sector`, `bytes (cdb)`, or nothing; the elapsed time may follow in
    /// parentheses (`-t`).
    #[inline]
    fn numbers(&mut self, row: &mut BlockRow<'_>, numbers: &[u8]) -> Result<(), usize> {
        let mut numbers_end = numbers.len();
        if let Some(open) = numbers.iter().position(|b| *b == b'(') {
            let inner = &numbers[open + 1..];
            let close = memchr::memchr(b')', inner).ok_or(open)?;
            let inner = inner[..close].trim_ascii();
            if let Some(wrapped) = dec_u64(inner).filter(|n| *n > i64::MAX as u64) {
                self.negative_ns = Some(wrapped.wrapping_neg());
            } else if dec_i64(inner).is_none() || inner.len() == 2 {
                push_text(&mut self.text, inner);
            }
            numbers_end = open;
        }
        let mut f = Fields::new(&numbers[..numbers_end]);
        let Some(mut first) = f.next() else { return Ok(()) };
        // Patched tools (the 2019-2020 trace extension) put an I/O priority here: `N`, or `BEST 4 0`.
        if first.iter().all(u8::is_ascii_uppercase) {
            let words = usize::from(first.len() > 1);
            first = f.nth(words).ok_or(0usize)?;
            self.remark = true;
        }
        let first = dec_i64(first).ok_or(0usize)?;
        let at = f.position();
        match f.next() {
            // A packet command has its length in bytes and no sector; a completion without a length has its sector.
            None if matches!(row.action, "Q" | "D" | "I" | "B") => row.len_bytes = Some(first),
            None => row.sector_512 = Some(first),
            Some(b"+") => {
                row.sector_512 = Some(first);
                row.len_bytes = Some(bytes_of(f.next()).ok_or(at)?);
            }
            Some(b"/") => {
                row.sector_512 = Some(first);
                row.from_sector_512 = Some(f.next().and_then(dec_i64).ok_or(at)?);
            }
            Some(_) => return Err(at),
        }
        let at = f.position();
        if f.next().is_some() { Err(at) } else { Ok(()) }
    }
}

/// `sector + n <- (maj,min) sector`.
fn remap(row: &mut BlockRow<'_>, f: &mut Fields<'_>) -> Result<(), usize> {
    let mut word = |expected: &[u8]| {
        let at = f.position();
        f.next().filter(|w| expected.is_empty() || *w == expected).map(|w| (w, at)).ok_or(at)
    };
    let number = |(word, at): (&[u8], usize)| dec_i64(word).ok_or(at);
    row.sector_512 = Some(number(word(b"")?)?);
    word(b"+")?;
    let (sectors, at) = word(b"")?;
    row.len_bytes = Some(bytes_of(Some(sectors)).ok_or(at)?);
    word(b"<-")?;
    let (dev, at) = word(b"")?;
    let dev = dev.strip_prefix(b"(").and_then(|d| d.strip_suffix(b")")).and_then(device);
    row.from_dev = Some(dev.ok_or(at)?);
    row.from_sector_512 = Some(number(word(b"")?)?);
    Ok(())
}

fn bytes_of(sectors: Option<&[u8]>) -> Option<i64> {
    dec_i64(sectors?)?.checked_mul(SECTOR_BYTES as i64)
}
