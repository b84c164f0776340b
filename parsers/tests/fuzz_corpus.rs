//! The inputs that the fuzz targets keep, run as ordinary tests, with seeds of every format and their mutations.

#![allow(clippy::print_stdout, reason = "a program for people to look at")]

use std::path::{Path, PathBuf};

use kreplay_parsers::FORMATS;
use kreplay_parsers::fuzzing::{check_blkparse_format, check_detect, check_format, check_input};

/// A few lines of each text format.
const SEEDS: &[&str] = &[
    "7 1700000000.000001 openat(AT_FDCWD</a>, \"b\\303\\244\"..., O_RDONLY) = 3</a/b> <0.000003>\n\
     7 1700000000.000002 wait4(-1,  <unfinished ...>\n8 1700000000.000003 +++ exited with 0 +++\n\
     7 1700000000.000004 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8\n",
    "[pid 7] write(1, \"x\"..., 5strace: Process 8 attached\n <unfinished ...>\n[pid 7] <... write resumed>) = 5\n",
    "write(2, \"done\"..., 33done (1).\n) = 33\n% time     seconds  usecs/call     calls    errors syscall\n",
    "  8,0    1       19     2.000000123  4321  Q  WS 1 + 8 [kworker/u8:0]\n  8,0 1 2 1266874889.7 9 A W 64 + 8 <- (9,127) =\n274432\n\
     CPU0 (8,0):\n Reads Queued: 13, 52KiB\t Writes Queued: 0, 0KiB\n",
    " r  b  w   swpd   free   buff  cache  si  so    bi    bo   in    cs  us  sy\nid\n 1  2  3  4  5  6  7  8  9  10  11  12  13  14\n15  16\n\
     vmstat -S M 5\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st gu  UTC\n\
     1 0 0 1 2 3 0 -1 0 0 0 0 0 0 99 1 0 0 2023-11-14 22:13:21\n",
    "dd-123   [001] d..1.  1425.576266: block_rq_issue: 8,0 R 4096 () 64 + 8 none,0,0 [dd]\n\
     dd-123   [001]  1425.576266:   8,0    Q   R 64 + 8 [dd]\nCPU:3 [LOST 123 EVENTS]\n",
    "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n0.001000    a b c          1950   xvda1   W 13 4096 0.25\n",
    "# ./a b ino 14 size 1048576\n   0:        0..     255:     265728..    265983:    256:            \n",
    "fio version 3 iolog\n1 f add\n2 f open\n3 f read 4096 512\nfio version 2 iolog\nf wait 100 0\nf write 0 512\n",
    "128166372003061629,hm,0,Write,7014912,4096,26\n0,20941264,8192,W,0.551706\n419,W,8792731648,16384,1577808000000607\n\
     1538323200,12910952,8,1,1063\n1,5633898,2a,512,42932745\n",
    "0 4892 syslogd 904265560 8 W 6 0 531e7799\n48513000 1 6249728 48 0\n12.345678 1 128 16 1\n",
    "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ---- ---- ---- ----\n \
     54.71    0.003106           2      1247           read\n100.00    0.003206                  1248         1 total\n",
    "       total merged sectors      ms  total merged sectors      ms    cur    sec  UTC\nsda 1 2 3 4 5 6 7 8 9 10 2023-11-14 22:13:20\n\
     vda reads read sectors writes requested writes\n 1 2 3 4\n  8057892 K total memory\n 12 forks\n",
    "==================== All Devices ====================\n ALL MIN AVG MAX N\n---- ---- ---- ---- ----\n\
     Q2Q  0.000000072   0.001203441   1.220033412        1204\n==================== Device Overhead ====\n ( 8, 0) | 1.5%\n",
    "# entries-in-buffer/entries-written: 3/10   #P:2\n  8,0    1  1425.576266000   123  Q   R 64 + 8 [dd]\n\
     dd 1 [000] 3,000001: block:block_plug: [dd]\ndd-1 [001] 1.5: blktrace: 8,0 1,2d Q R 64 + 8 [dd]\n",
];

/// `fuzz/regressions/TARGET/*`: what once broke a promise.
#[test]
fn kept_inputs_hold() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions");
    let list = |dir: &Path| -> Vec<PathBuf> {
        let mut paths: Vec<_> = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
        paths.sort();
        paths
    };
    let mut kept = 0;
    for target in list(&dir) {
        let name = target.file_name().unwrap().to_string_lossy().into_owned();
        for path in list(&target) {
            run_target(&name, &std::fs::read(&path).unwrap());
            kept += 1;
        }
    }
    println!("{kept} kept inputs");
}

/// What the fuzz target of that name does.
fn run_target(name: &str, data: &[u8]) {
    match name {
        "blkparse_format" => check_blkparse_format(data),
        "detect" => check_detect(data),
        "input" => check_input(data),
        format => check_format(&format.replace('_', "-"), data),
    }
}

#[test]
fn every_format_has_a_fuzz_target() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = std::fs::read_to_string(dir.join("Cargo.toml")).unwrap();
    for format in FORMATS {
        let target = format.id().replace('-', "_");
        let text = std::fs::read_to_string(dir.join(format!("fuzz_targets/{target}.rs"))).unwrap_or_default();
        assert!(text.contains(&format!("check_format(\"{}\", data)", format.id())), "no target for {}", format.id());
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is not in the manifest");
    }
}

/// Rounds of the mutation tests: `KREPLAY_FUZZ_ROUNDS` asks for more.
fn rounds(usual: usize) -> usize {
    std::env::var("KREPLAY_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Byte noise over the seeds, by a small generator with a fixed start: the same inputs on every machine.
#[test]
fn mutated_seeds_hold() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for round in 0..rounds(6000) {
        let format = FORMATS[random(FORMATS.len())].id();
        let mut input = vec![random(64) as u8];
        input.extend_from_slice(SEEDS[round % SEEDS.len()].as_bytes());
        for _ in 0..random(8) {
            let at = 1 + random(input.len() - 1);
            match random(5) {
                0 => input[at] = random(256) as u8,
                1 => input[at] = b" \n\"()<>[]{},=+-0\\"[random(17)],
                2 => input.truncate(at.max(2)),
                3 => {
                    let end = (at + random(40)).min(input.len());
                    let piece = input[at..end].to_vec();
                    input.splice(at..at, piece);
                }
                _ => {
                    let end = (at + random(20)).min(input.len());
                    input.drain(at..end);
                    if input.len() < 2 {
                        break;
                    }
                }
            }
        }
        check_format(format, &input);
        check_detect(&input[1..]);
    }
}

/// Binary records with noise.
#[test]
fn mutated_binary_records_hold() {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..rounds(3000) {
        let format = FORMATS[random(FORMATS.len())].id();
        let mut input = vec![1 + random(90) as u8];
        for _ in 0..random(6) {
            let magic: [u8; 4] = [[7, 0x74, 0x61, 0x65], [0x65, 0x61, 0x74, 7], [8, 0x74, 0x61, 0x65]][random(3)];
            input.extend_from_slice(&magic);
            input.extend((0..40 + random(30)).map(|_| (random(256) * usize::from(random(3) == 0)) as u8));
        }
        check_format(format, &input);
    }
}
