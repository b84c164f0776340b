use std::io::Write;

use super::*;

fn packed(kind: Compression, text: &[u8]) -> Vec<u8> {
    match kind {
        Compression::None => text.to_vec(),
        Compression::Gzip => {
            let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            e.write_all(text).unwrap();
            e.finish().unwrap()
        }
        Compression::Zstd => zstd::encode_all(text, 1).unwrap(),
        Compression::Xz => {
            let mut e = liblzma::write::XzEncoder::new(Vec::new(), 1);
            e.write_all(text).unwrap();
            e.finish().unwrap()
        }
        Compression::Bzip2 => {
            let mut e = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            e.write_all(text).unwrap();
            e.finish().unwrap()
        }
    }
}

const KINDS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2];

fn input(bytes: Vec<u8>, limits: InputLimits) -> Result<Input> {
    Input::from_reader("test", Box::new(io::Cursor::new(bytes)), limits)
}

#[test]
fn every_kind_is_told_by_content_and_may_have_several_members() {
    for kind in KINDS {
        let mut stored = packed(kind, b"first\n");
        stored.extend(packed(kind, b"second\n"));
        let len = stored.len() as u64;
        let hash = blake3::hash(&stored).to_hex().to_string();
        let mut input = input(stored, InputLimits::default()).unwrap();
        let mut text = String::new();
        input.read_to_string(&mut text).unwrap();
        assert_eq!(text, "first\nsecond\n", "{kind}");
        let facts = input.finish().unwrap();
        assert_eq!((facts.compression, facts.bytes, facts.text_bytes), (kind, len, 13));
        assert_eq!(facts.blake3, hash);
        assert_eq!(facts.changed, None);
    }
}

#[test]
fn empty_inputs_are_empty() {
    for kind in KINDS {
        let mut input = input(packed(kind, b""), InputLimits::default()).unwrap();
        assert_eq!(input.read_to_end(&mut Vec::new()).unwrap(), 0, "{kind}");
    }
}

#[test]
fn nested_compression_is_refused() {
    for kind in &KINDS[1..] {
        let nested = packed(*kind, &packed(Compression::Gzip, b"text"));
        assert!(matches!(input(nested, InputLimits::default()), Err(Error::NestedCompression { .. })), "{kind}");
    }
}

#[test]
fn a_cut_stream_gives_what_came_before_and_a_clear_error() {
    // Text that does not compress to a single block.
    let text: Vec<u8> = (0..400_000_u32).map(|i| b'a' + (i.wrapping_mul(2_654_435_761) >> 27) as u8 % 26).collect();
    for kind in &KINDS[1..] {
        let mut stored = packed(*kind, &text);
        stored.truncate(stored.len() * 9 / 10);
        let mut input = input(stored, InputLimits::default()).unwrap();
        let mut got = Vec::new();
        let error = loop {
            let mut buf = [0; 4096];
            match input.read(&mut buf) {
                Ok(0) => panic!("{kind}: a cut stream ended as if it were whole"),
                Ok(n) => got.extend_from_slice(&buf[..n]),
                Err(e) => break input.explain(e),
            }
        };
        assert!(!got.is_empty() && text.starts_with(&got), "{kind}");
        assert!(matches!(error, Error::Undecodable { compression, .. } if compression == *kind), "{error}");
        assert!(input.finish().is_ok());
    }
}

/// Everything that an input gives, and the error that ends it.
fn all_of(mut input: Input) -> (Vec<u8>, Option<Error>) {
    let (mut got, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        match input.read(&mut buf) {
            Ok(0) => return (got, None),
            Ok(n) => got.extend_from_slice(&buf[..n]),
            Err(e) => {
                // An error stays: a reader that asks again must not take it for the end.
                assert!(input.read(&mut buf).is_err());
                return (got, Some(input.explain(e)));
            }
        }
    }
}

#[test]
fn garbage_behind_a_stream_costs_none_of_its_text() {
    let text: Vec<u8> = (0..9000_u32).flat_map(|i| format!("line {i} {}\n", i * 7919 % 1000).into_bytes()).collect();
    for kind in &KINDS[1..] {
        let mut stored = packed(*kind, &text);
        stored.extend_from_slice(b"GARBAGE GARBAGE GARBAGE GARBAGE\n");
        let (got, error) = all_of(input(stored, InputLimits::default()).unwrap());
        assert_eq!(got.len(), text.len(), "{kind}");
        // gzip's own tools pass over what follows a stream; an error is as good, an end too.
        assert!(matches!(error, None | Some(Error::Undecodable { .. })), "{kind}: {error:?}");
    }
}

#[test]
fn damage_anywhere_is_an_error_and_never_an_end() {
    let text: Vec<u8> = (0..4000_u32).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
    for kind in &KINDS[1..] {
        let whole = packed(*kind, &text);
        for at in [whole.len() / 8, whole.len() / 2] {
            let mut stored = whole.clone();
            stored[at] ^= 0xff;
            let (got, error) = all_of(input(stored, InputLimits::default()).unwrap());
            // A flipped byte of a stream without checksums may decode to other text; it never ends early in silence.
            assert!(error.is_some() || got.len() == text.len(), "{kind} at {at}: {} bytes", got.len());
        }
    }
}

#[test]
fn the_place_of_damage_is_that_of_the_decoder_not_of_the_buffer() {
    let text: Vec<u8> =
        (0..40_000_u32).flat_map(|i| format!("{:x}\n", i.wrapping_mul(2_654_435_761)).into_bytes()).collect();
    // zstd's and gzip's streams may decode to other text: of zstd only those with a checksum tell.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(&text).unwrap();
    let zstd = encoder.finish().unwrap();
    for kind in &KINDS[1..] {
        let whole = if *kind == Compression::Zstd { zstd.clone() } else { packed(*kind, &text) };
        for at in [20, 5000] {
            let mut stored = whole.clone();
            stored[at..at + 4].iter_mut().for_each(|b| *b ^= 0xff);
            let (got, error) = all_of(input(stored, InputLimits::default()).unwrap());
            let Some(Error::Undecodable { at_bytes, text_bytes, .. }) = &error else { panic!("{kind}: {error:?}") };
            // zstd's decoder does not say how far it came in the block that failed.
            let least = if *kind == Compression::Zstd { 0 } else { at as u64 };
            assert!((least..=whole.len() as u64).contains(at_bytes), "{kind}: {at_bytes} for {at}");
            assert_eq!(*text_bytes, got.len() as u64, "{kind}");
        }
        let mut stored = whole;
        stored.truncate(7777);
        let error = all_of(input(stored, InputLimits::default()).unwrap()).1.unwrap().to_string();
        assert!(error.contains("ends early, at byte 7777"), "{kind}: {error}");
    }
}

#[test]
fn limits_stop_bombs_and_long_inputs() {
    let zeros = vec![0_u8; 3 << 20];
    for kind in &KINDS[1..] {
        let limits = InputLimits { max_ratio: 100, ratio_from_bytes: 1 << 20, ..InputLimits::default() };
        let mut bomb = input(packed(*kind, &zeros), limits).unwrap();
        let error = io::copy(&mut bomb, &mut io::sink()).unwrap_err();
        let error = bomb.explain(error);
        assert!(matches!(&error, Error::InputLimit { why, .. } if why.contains("bomb")), "{error}");
    }
    let limits = InputLimits { max_text_bytes: 10, ..InputLimits::default() };
    let mut long = input(b"0123456789a".to_vec(), limits).unwrap();
    let error = io::copy(&mut long, &mut io::sink()).unwrap_err();
    assert!(matches!(long.explain(error), Error::InputLimit { .. }));
}

#[test]
fn a_zstd_frame_with_a_huge_window_is_refused() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(28).unwrap();
    encoder.write_all(b"x").unwrap();
    let stored = encoder.finish().unwrap();
    let mut input = input(stored, InputLimits::default()).unwrap();
    let error = input.read_to_end(&mut Vec::new()).unwrap_err();
    assert!(matches!(input.explain(error), Error::Undecodable { .. }));
}

#[test]
fn a_file_that_changes_while_it_is_read_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fs::write(&path, "one\ntwo\n").unwrap();
    let mut input = Input::open(&path, InputLimits::default()).unwrap();
    let mut buf = [0; 4];
    input.read_exact(&mut buf).unwrap();
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"three\n").unwrap();
    io::copy(&mut input, &mut io::sink()).unwrap();
    let changed = input.finish().unwrap().changed.unwrap();
    assert!(changed.contains("from 8 to 14 bytes"), "{changed}");

    let input = Input::open(&path, InputLimits::default()).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    assert!(input.finish().unwrap().changed.is_some());
}

#[test]
fn directories_and_missing_files_are_clear_errors() {
    let dir = tempfile::tempdir().unwrap();
    let error = Input::open(dir.path(), InputLimits::default()).err().unwrap();
    assert!(error.to_string().contains("it is a directory"), "{error}");
    let error = Input::open(&dir.path().join("no"), InputLimits::default()).err().unwrap();
    assert_eq!(error.hint(), Some("check the path"));
}

#[test]
fn an_unread_rest_still_counts_for_the_hash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fs::write(&path, "0123456789").unwrap();
    let input = Input::open(&path, InputLimits::default()).unwrap();
    let facts = input.finish().unwrap();
    assert_eq!(facts.blake3, blake3::hash(b"0123456789").to_hex().to_string());
    assert_eq!((facts.bytes, facts.text_bytes), (10, 0));
}
