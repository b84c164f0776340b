//! vmstat's columns, by the names in its header line.

use kreplay_traces::event::VmstatRow;

/// One column of the time-series modes of Linux' vmstat, procps 2.0 to procps-ng 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    R,
    B,
    W,
    Swpd,
    Free,
    Buff,
    Cache,
    Inact,
    Active,
    Si,
    So,
    Bi,
    Bo,
    In,
    Cs,
    Us,
    Sy,
    Id,
    Wa,
    St,
    Gu,
}

impl Column {
    /// The column of this name.
    pub(super) fn by_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"r" => Self::R,
            b"b" => Self::B,
            b"w" => Self::W,
            b"swpd" => Self::Swpd,
            b"free" => Self::Free,
            b"buff" => Self::Buff,
            b"cache" => Self::Cache,
            b"inact" => Self::Inact,
            b"active" => Self::Active,
            b"si" => Self::Si,
            b"so" => Self::So,
            b"bi" => Self::Bi,
            b"bo" => Self::Bo,
            b"in" => Self::In,
            b"cs" => Self::Cs,
            b"us" => Self::Us,
            b"sy" => Self::Sy,
            b"id" => Self::Id,
            b"wa" => Self::Wa,
            b"st" => Self::St,
            b"gu" => Self::Gu,
            _ => return None,
        })
    }

    /// Whether the value is in memory units (scaled by `-S`).
    pub(super) fn is_memory(self) -> bool {
        use Column::*;
        matches!(self, Swpd | Free | Buff | Cache | Inact | Active | Si | So)
    }

    /// Whether the value is an average over the interval (since boot, in a run's first row), not what is now.
    pub(super) fn is_rate(self) -> bool {
        use Column::*;
        !matches!(self, R | B | W | Swpd | Free | Buff | Cache | Inact | Active)
    }

    /// Whether the value is a share of the processors' time, per cent.
    pub(super) fn is_share(self) -> bool {
        use Column::*;
        matches!(self, Us | Sy | Id | Wa | St | Gu)
    }

    /// Put a value into its place.
    pub(super) fn set(self, row: &mut VmstatRow, value: i64) {
        let place = match self {
            Self::R => &mut row.r,
            Self::B => &mut row.b,
            Self::W => &mut row.w,
            Self::Swpd => &mut row.swpd_kib,
            Self::Free => &mut row.free_kib,
            Self::Buff => &mut row.buff_kib,
            Self::Cache => &mut row.cache_kib,
            Self::Inact => &mut row.inact_kib,
            Self::Active => &mut row.active_kib,
            Self::Si => &mut row.si_kib_s,
            Self::So => &mut row.so_kib_s,
            Self::Bi => &mut row.bi_kib_s,
            Self::Bo => &mut row.bo_kib_s,
            Self::In => &mut row.in_s,
            Self::Cs => &mut row.cs_s,
            Self::Us => &mut row.us_pct,
            Self::Sy => &mut row.sy_pct,
            Self::Id => &mut row.id_pct,
            Self::Wa => &mut row.wa_pct,
            Self::St => &mut row.st_pct,
            Self::Gu => &mut row.gu_pct,
        };
        *place = Some(value);
    }
}

/// A header line: the columns in their order, and the zone word where `-t` adds the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) columns: Vec<Column>,
    pub(super) zone: Option<String>,
}

/// What a line is, seen as a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeaderLine {
    /// A whole header.
    Whole(Header),
    /// The beginning of one that a mailer wrapped: `id` is missing.
    Begun,
}

/// Read a header line: `r b ... id ...`, all of it known names, and perhaps a zone at its end.
pub(super) fn header(line: &[u8]) -> Option<HeaderLine> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    if words.next() != Some(b"r") || words.next() != Some(b"b") {
        return None;
    }
    let mut header = Header { columns: vec![Column::R, Column::B], zone: None };
    for word in words {
        header.push(word)?;
    }
    let has = |column| header.columns.contains(&column);
    if has(Column::Id) {
        return has(Column::Free).then_some(HeaderLine::Whole(header));
    }
    (header.columns.len() > 2).then_some(HeaderLine::Begun)
}

impl Header {
    /// Take one more word of the header line.
    fn push(&mut self, word: &[u8]) -> Option<()> {
        match Column::by_name(word) {
            Some(column) if self.zone.is_none() && !self.columns.contains(&column) => self.columns.push(column),
            None if self.zone.is_none() && self.columns.contains(&Column::Id) && is_zone(word) => {
                self.zone = Some(String::from_utf8_lossy(word).into_owned());
            }
            _ => return None,
        }
        Some(())
    }

    /// The header with what a mailer put on the next line (`wa st`, a zone); `None` where the line is no part of it.
    pub(super) fn continued(&self, line: &[u8]) -> Option<Self> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).peekable();
        words.peek()?;
        let mut longer = self.clone();
        for word in words {
            longer.push(word)?;
        }
        Some(longer)
    }
}

/// `UTC`, `CEST`, `+03`.
pub(super) fn is_zone(word: &[u8]) -> bool {
    let letters = word.iter().all(u8::is_ascii_uppercase) && (2..=5).contains(&word.len());
    let offset =
        matches!(word, [b'+' | b'-', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
    letters || offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_every_era() {
        let count = |line: &str| match header(line.as_bytes()) {
            Some(HeaderLine::Whole(h)) => Some((h.columns.len(), h.zone)),
            _ => None,
        };
        let old = " r  b  w   swpd   free   buff  cache  si  so    bi    bo   in    cs  us  sy  id";
        let new = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa";
        assert_eq!(count(old), Some((16, None)));
        assert_eq!(count(new), Some((16, None)));
        assert_eq!(count(&format!("{new} st")), Some((17, None)));
        assert_eq!(count(&format!("{new} st gu    UTC")), Some((18, Some("UTC".into()))));
        assert_eq!(count(&format!("{new} st    +03")), Some((17, Some("+03".into()))));
        assert_eq!(count(" r b swpd free inact active si so bi bo in cs us sy id wa"), Some((16, None)));
        assert_eq!(
            header(b" r  b  w   swpd   free   buff  cache  si  so    bi    bo   in    cs  us  sy"),
            Some(HeaderLine::Begun)
        );
    }

    #[test]
    fn other_systems_have_other_names() {
        for line in [
            " r b w     avm    fre   flt  re  pi  po    fr  sr ad0 md0   in   sy   cs us sy id",
            " r b w   swap  free  re  mf pi po fr de sr m0 m1 m2 m3   in   sy   cs us sy id",
            " r  b   avm   fre  re  pi  po  fr   sr  cy  in   sy  cs us sy id wa",
            "r b x",
            "",
        ] {
            assert_eq!(header(line.as_bytes()), None, "{line}");
        }
    }
}
