use super::*;
use crate::event::SyscallRow;

#[test]
fn every_column_of_a_quantity_is_64_bit_and_names_are_unique() {
    fn check<T: Table>() {
        let columns = T::columns();
        let mut names: Vec<_> = columns.iter().map(|c| c.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), columns.len(), "{}", T::NAME);
        for c in &columns {
            let narrow = c.data_type.is_integer() && c.data_type != arrow::datatypes::DataType::Int64;
            assert!(!narrow, "{}.{} is a narrow integer", T::NAME, c.name);
        }
    }
    check::<Syscalls>();
    check::<Blocks>();
    check::<Vmstats>();
    check::<Faults>();
    check::<Processes>();
    check::<Files>();
    check::<Rejects>();
}

#[test]
fn the_schemas_are_as_documented() {
    let mut text = String::new();
    fn describe<T: Table>(text: &mut String) {
        use std::fmt::Write;
        writeln!(text, "[{}]", T::NAME).unwrap();
        for c in T::columns() {
            let null = if c.nullable { "?" } else { "" };
            let delta = if c.delta { " delta" } else { "" };
            writeln!(text, "{}: {}{null}{delta}", c.name, c.data_type).unwrap();
        }
    }
    describe::<Syscalls>(&mut text);
    describe::<Blocks>(&mut text);
    describe::<Vmstats>(&mut text);
    describe::<Faults>(&mut text);
    describe::<Processes>(&mut text);
    describe::<Files>(&mut text);
    describe::<Rejects>(&mut text);
    // A change here is a change of the file format: raise SCHEMA_VERSION unless it only adds nullable columns.
    insta::assert_snapshot!(text);
}

#[test]
fn a_row_comes_back_from_a_batch() {
    let mut builder = <Syscalls as Table>::Builder::with_capacity(2);
    let row = SyscallRow {
        time_ns: 5,
        tid: 7,
        call: "pread64",
        ret: Some(4096),
        path: Some("/a \"b\""),
        flags: Some("O_RDONLY"),
        line: 3,
        ..SyscallRow::default()
    };
    builder.push(&row);
    let failed = SyscallRow { call: "open", errno: Some("ENOENT"), unfinished: true, ..SyscallRow::default() };
    builder.push(&failed);
    let batch = builder.finish().unwrap();
    let view = <Syscalls as Table>::View::new(&batch, None).unwrap();
    assert_eq!(view.row(0), row);
    assert_eq!(view.row(1), failed);
    let mut later = row;
    Syscalls::shift(&mut later, 2);
    assert_eq!(later.time_ns, 3);
}
