//! Any split of an input into chunks gives the same rows and the same counts.

use kreplay_parsers::rows::Rows;
use kreplay_parsers::{Diagnostics, FORMATS, Format, ParseOptions};
use proptest::prelude::*;

/// Pieces of real lines of all formats, and noise; a case is a random sequence of them.
const PIECES: &[&str] = &[
    "7 1700000000.000001 read(3</a>, \"x\"..., 832) = 832 <0.000003>\n",
    "7 1700000000.000002 wait4(-1,  <unfinished ...>\n",
    "8 1700000000.000003 +++ exited with 0 +++\n",
    "7 1700000000.000004 <... wait4 resumed>NULL, 0, NULL) = 8 <0.000002>\n",
    "9 write(1, \"cut",
    "  8,0 1 1 0.000000001 9 Q R 64 + 8 [x]\n",
    "  8,0 1 2 0.000000002 9 C R 64 + 8 [0]\n",
    "CPU0 (8,0):\n Reads Queued: 1, 4KiB\n",
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa\n",
    " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
    " 1 2 3 4 5 6 7 8 9 10 11 12 13 14\n15 16\n",
    "# ./f ino 1 size 2\n",
    " 0: 0..1: 2..3: 2:\n",
    "% time     seconds  usecs/call     calls    errors syscall\n",
    " 54.71    0.003106           2      1247           read\n",
    "       total merged sectors      ms  total merged sectors      ms    cur    sec\n",
    "sda 1 2 3 4 5 6 7 8 9 10\n",
    "  8057892 K total memory\n",
    "dd-123   [001] d..1.  1425.576266: block_rq_issue: 8,0 R 4096 () 64 + 8 none,0,0 [dd]\n",
    "dd-123   [001]  1425.576266:   8,0    Q   R 64 + 8 [dd]\n",
    "  8,0    1  1425.576266000   123  Q   R 64 + 8 [dd]\n",
    "CPU:3 [LOST 123 EVENTS]\n",
    "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n",
    "0.001000    a b c          1950   xvda1   W 13092560   4096       -0.25\n",
    "==================== All Devices ====================\n",
    "Q2Q  0.000000072   0.001203441   1.220033412        1204\n",
    "fio version 3 iolog\n",
    "3 f read 4096 512\n",
    "128166372003061629,hm,0,Write,7014912,4096,26\n",
    "0,20941264,8192,W,0.551706\n",
    "419,W,8792731648,16384,1577808000000607\n",
    "1538323200,12910952,8,1,1063\n",
    "1,5633898,2a,512,42932745\n",
    "0 4892 syslogd 904265560 8 W 6 0 531e7799\n",
    "48513000 1 6249728 48 0\n",
    "12.345678 1 128 16 1\n",
    "Binary file matches\n",
    "\r\n",
    "\n",
    "\0",
    ")",
    "\"",
    "<",
    "> ",
    "\u{e4}",
];

fn parse(format: &dyn Format, chunks: &[&[u8]]) -> (Rows, Diagnostics) {
    let (mut rows, mut diag) = (Rows::default(), Diagnostics::new());
    let mut parser = format.parser(&ParseOptions::default());
    for chunk in chunks {
        parser.feed(chunk, &mut rows, &mut diag);
    }
    parser.finish(&mut rows, &mut diag);
    (rows, diag)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn splits_do_not_matter(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..24),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = pieces.concat().into_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(text.len() + 1)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let chunks: Vec<&[u8]> = at.windows(2).map(|w| &text[w[0]..w[1]]).collect();
        for format in FORMATS {
            let whole = parse(*format, &[&text]);
            let split = parse(*format, &chunks);
            prop_assert!(whole.1.adds_up(), "{}: {:?}", format.id(), whole.1);
            prop_assert_eq!(&whole.0, &split.0, "{}", format.id());
            prop_assert_eq!(format!("{:?}", whole.1), format!("{:?}", split.1), "{}", format.id());
        }
    }

    #[test]
    fn splits_of_binary_records_do_not_matter(
        records in prop::collection::vec((0usize..6, prop::collection::vec(any::<u8>(), 40..70)), 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        const MAGICS: [&[u8]; 6] =
            [&[7, 0x74, 0x61, 0x65], &[0x65, 0x61, 0x74, 7], &[8, 0x74, 0x61, 0x65], &[3, 9, 0, 0, 0, 0, 0, 0], &[1, 0, 0, 0], &[]];
        let bytes: Vec<u8> =
            records.iter().flat_map(|(magic, rest)| MAGICS[*magic].iter().chain(rest).copied()).collect();
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let chunks: Vec<&[u8]> = at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        for format in FORMATS {
            let whole = parse(*format, &[&bytes]);
            let split = parse(*format, &chunks);
            prop_assert!(whole.1.adds_up(), "{}: {:?}", format.id(), whole.1);
            prop_assert_eq!(&whole.0, &split.0, "{}", format.id());
            prop_assert_eq!(format!("{:?}", whole.1), format!("{:?}", split.1), "{}", format.id());
        }
    }

    #[test]
    fn any_bytes_are_survived(text in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in FORMATS {
            let (_, diag) = parse(*format, &[&text]);
            prop_assert!(diag.adds_up(), "{}: {:?}", format.id(), diag);
        }
    }
}
