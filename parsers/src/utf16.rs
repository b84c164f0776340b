//! Streaming UTF-16 to UTF-8, for logs that a Windows editor or shell saved.

/// A decoder that keeps what a chunk left over: an odd byte, or the first half of a surrogate pair.
#[derive(Debug)]
pub(crate) struct Utf16 {
    big_endian: bool,
    odd: Option<u8>,
    high: Option<u16>,
}

impl Utf16 {
    /// A decoder for the encoding that the first two bytes announce, or `None` where they are no UTF-16 mark.
    pub(crate) fn from_mark(head: &[u8]) -> Option<Self> {
        let big_endian = match head {
            [0xff, 0xfe, ..] => false,
            [0xfe, 0xff, ..] => true,
            _ => return None,
        };
        Some(Self { big_endian, odd: None, high: None })
    }

    /// The encoding's name.
    pub(crate) fn name(&self) -> &'static str {
        if self.big_endian { "utf-16be" } else { "utf-16le" }
    }

    /// Decode one chunk; unpaired surrogates become U+FFFD.
    pub(crate) fn decode(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut text = String::with_capacity(chunk.len());
        for &byte in chunk {
            let Some(first) = self.odd.take() else {
                self.odd = Some(byte);
                continue;
            };
            let pair = [first, byte];
            let unit = if self.big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) };
            self.unit(unit, &mut text);
        }
        text.into_bytes()
    }

    fn unit(&mut self, unit: u16, text: &mut String) {
        let units = match self.high.take() {
            Some(high) => vec![high, unit],
            None => vec![unit],
        };
        let last_is_high = (0xd800..0xdc00).contains(&unit);
        let complete = if last_is_high { &units[..units.len() - 1] } else { &units[..] };
        text.extend(char::decode_utf16(complete.iter().copied()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        self.high = last_is_high.then_some(unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_survive_any_split() {
        let bytes: Vec<u8> = "a😀b".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for cut in 0..=bytes.len() {
            let mut d = Utf16::from_mark(&[0xfe, 0xff]).unwrap();
            let mut text = d.decode(&bytes[..cut]);
            text.extend(d.decode(&bytes[cut..]));
            assert_eq!(text, "a😀b".as_bytes(), "cut at {cut}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_replaced() {
        let mut d = Utf16::from_mark(&[0xff, 0xfe]).unwrap();
        assert_eq!(d.decode(&[0x00, 0xd8, b'a', 0]), "\u{fffd}a".as_bytes());
    }
}
