//! One stream of records out of a trace's per-CPU files.
//!
//! A k-way merge by (time, device, sequence) that holds one record of each file: memory does not grow with the trace.
//! Damaged stretches of a file are passed on as they are, for the parser to reject in its place.

use std::io::{self, Read};

use super::record::Layout;

/// Bytes read from a file at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reads as the records of all inputs in time order.
pub struct Merged<R> {
    inputs: Vec<Source<R>>,
    /// The rest of a piece for which the caller had no room.
    out: Vec<u8>,
    out_at: usize,
    failed: Option<io::Error>,
}

struct Source<R> {
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    done: bool,
    /// Length of the piece at the front, and its key.
    next: Option<(Key, usize)>,
}

type Key = (u64, u32, u32);

impl<R: Read> Merged<R> {
    /// Merge these inputs; where all else is equal, the earlier one goes first.
    pub fn new(readers: Vec<R>) -> Self {
        let inputs = readers
            .into_iter()
            .map(|reader| Source { reader, buffer: Vec::new(), at: 0, done: false, next: None })
            .collect();
        Self { inputs, out: Vec::new(), out_at: 0, failed: None }
    }

    /// The inputs, after reading.
    pub fn into_inner(self) -> Vec<R> {
        self.inputs.into_iter().map(|s| s.reader).collect()
    }

    /// The inputs, while reading.
    pub fn inputs(&self) -> impl Iterator<Item = &R> {
        self.inputs.iter().map(|s| &s.reader)
    }
}

impl<R: Read> Source<R> {
    /// Make sure that the front piece is known; `None` at the end.
    fn peek(&mut self) -> io::Result<Option<(Key, usize)>> {
        if self.next.is_none() {
            self.next = self.find()?;
        }
        Ok(self.next)
    }

    fn find(&mut self) -> io::Result<Option<(Key, usize)>> {
        loop {
            let rest = &self.buffer[self.at..];
            let layout = Layout::of(rest).and_then(|l| l.header_bytes().map(|h| (l, h)));
            match layout {
                Some((layout, header)) if rest.len() >= header => {
                    let length = header + layout.payload_bytes(rest);
                    if rest.len() >= length {
                        return Ok(Some((layout.key(rest), length)));
                    }
                }
                None if rest.len() >= 4 => {
                    // No record: pass bytes on until one begins, before everything else of this file.
                    let skip = super::resync(&rest[1..]).map_or(rest.len() - 3, |s| s + 1);
                    return Ok(Some(((0, 0, 0), skip)));
                }
                _ => {}
            }
            if self.done {
                return Ok((!rest.is_empty()).then_some(((u64::MAX, 0, 0), rest.len())));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK_BYTES, 0);
        let read = self.reader.read(&mut self.buffer[length..]);
        self.buffer.truncate(length + *read.as_ref().unwrap_or(&0));
        self.done = matches!(read, Ok(0));
        read.map(|_| ())
    }
}

impl<R: Read> Merged<R> {
    /// The source whose front piece is next, and the piece's length; `None` at the end.
    #[inline]
    fn next(&mut self) -> io::Result<Option<(usize, usize)>> {
        let mut best: Option<(Key, usize, usize)> = None;
        for (index, source) in self.inputs.iter_mut().enumerate() {
            if let Some((key, length)) = source.peek()?
                && best.is_none_or(|b| key < b.0)
            {
                best = Some((key, index, length));
            }
        }
        Ok(best.map(|(_, index, length)| (index, length)))
    }
}

impl<R: Read> Read for Merged<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut n = buf.len().min(self.out.len() - self.out_at);
        buf[..n].copy_from_slice(&self.out[self.out_at..self.out_at + n]);
        self.out_at += n;
        while n < buf.len() {
            let (index, length) = match self.failed.take().map_or_else(|| self.next(), Err) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                // What came before it is given first.
                Err(e) if n > 0 => {
                    self.failed = Some(e);
                    break;
                }
                Err(e) => return Err(e),
            };
            // Whole records, where there is room for one: who gets them has nothing to put together.
            if n > 0 && length > buf.len() - n {
                break;
            }
            let source = &mut self.inputs[index];
            let piece = &source.buffer[source.at..source.at + length];
            source.at += length;
            source.next = None;
            let fits = length.min(buf.len() - n);
            buf[n..n + fits].copy_from_slice(&piece[..fits]);
            n += fits;
            self.out.clear();
            self.out.extend_from_slice(&piece[fits..]);
            self.out_at = 0;
        }
        Ok(n)
    }
}
