//! What goes wrong before a format is known, and compressed files.

use std::io::Write;
use std::path::Path;

use super::testing::file;
use super::{ReadOptions, read};

const TRACE: &str = "0,alexnet,0.0,3349,1\n1,gnmt,1.5,26435,2\n";

fn check(path: &Path, expected: &str) {
    let error = read(path, &ReadOptions::default()).expect_err("not readable");
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn files_that_cannot_be_read_say_why() {
    check(Path::new("no/such/trace.csv"), "cannot open `no/such/trace.csv`");
    check(&std::env::temp_dir(), "cannot read");
    check(file("what is this?\n").path(), "looks like none of the known trace formats");
    check(file("").path(), "looks like none of the known trace formats");
    check(file("job_id,submission_time,duration,num_gpu\n").path(), "has no jobs");
    check(file("0,resnet99,0.0,10,1\n").path(), "line 1 (job `job-0`): unknown model `resnet99`");
}

#[test]
fn text_that_is_no_text_names_its_line() {
    let mut file = file(TRACE);
    file.write_all(b"2,\xff\xfe,3,4,5\n").expect("written");
    check(file.path(), "line 3: is not UTF-8 text");
}

#[test]
fn gzip_is_recognised_and_a_cut_one_is_an_error() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(TRACE.as_bytes()).expect("packed");
    let bytes = packer.finish().expect("packed");
    let mut whole = file("");
    whole.write_all(&bytes).expect("written");
    let plain = read(file(TRACE).path(), &ReadOptions::default()).expect("plain");
    let packed = read(whole.path(), &ReadOptions::default()).expect("packed");
    assert_eq!(format!("{:?}", plain.jobs), format!("{:?}", packed.jobs));
    let mut cut = file("");
    cut.write_all(&bytes[..bytes.len() - 6]).expect("written");
    check(cut.path(), "cannot read");
}

#[test]
fn an_unknown_gpu_kind_names_the_job() {
    let nodes = file("# coretuner-nodes v1\nname,gpu_kind,devices,cpu_milli,memory_mib\nn,H200,8,24000,512000\n");
    let options = ReadOptions { cluster: Some(nodes.path().to_owned()), ..ReadOptions::default() };
    let jobs = file("job_id,submission_time,duration,num_gpu\na,5,10,1\n");
    let error = read(jobs.path(), &options).expect_err("no speed");
    let text = error.to_string();
    assert!(text.contains("line 2 (job `a`)") && text.contains("no known speed on GPU kind `H200`"), "{text}");
}
