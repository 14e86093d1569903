//! The `coretuner` command from outside: exit codes, messages, files.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

use coretuner_tests::paths;

pub(super) const OK: i32 = 0;
pub(super) const FAILED: i32 = 1;
const USAGE: i32 = 2;
const INPUT: i32 = 64;

/// The command in an environment without the user's settings.
pub(super) fn coretuner() -> Command {
    let mut command = Command::new(paths::coretuner());
    for name in
        ["CORETUNER_DATA", "CORETUNER_CACHE_DIR", "CORETUNER_POLICY_DIR", "RUST_LOG", "HTTP_PROXY", "http_proxy"]
    {
        command.env_remove(name);
    }
    command
}

fn run(args: &[&str]) -> Output {
    coretuner().args(args).output().expect("the program starts")
}

/// Exit code and standard error with line breaks and box drawing taken out, so that messages can be searched.
fn check(args: &[&str], code: i32, parts: &[&str]) {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{errors}");
    for part in parts {
        assert!(errors.contains(part), "{args:?}: `{part}` is not in\n{errors}");
    }
    assert!(!errors.contains("panicked"), "{errors}");
}

/// A file that a policy's name resolves to; not a component.
fn garbage(folder: &Path) -> String {
    let path = folder.join("garbage.wasm");
    std::fs::write(&path, b"this is no WebAssembly").expect("written");
    path.display().to_string()
}

#[test]
fn usage_errors_are_2() {
    check(&[], USAGE, &["Usage"]);
    check(&["simulate", "--nonsense"], USAGE, &["--nonsense"]);
    check(&["simulate", "--window", "9..3"], USAGE, &["above the last"]);
    check(&["compare", "--policies", "a,b", "--baseline", "c"], USAGE, &["the baseline c is not among the policies"]);
    check(&["predict"], USAGE, &["--kind"]);
    check(&["compare", "--loads", "0"], USAGE, &["above zero"]);
}

#[test]
fn help_and_version_are_0() {
    for args in [&["--help"][..], &["simulate", "--help"], &["compare", "--help"], &["--version"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(OK), "{args:?}");
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn a_missing_trace_says_what_was_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = garbage(folder.path());
    check(
        &["simulate", "--policy", &policy, "--trace", "no-such.csv"],
        INPUT,
        &["no trace `no-such.csv`", "trace fetch"],
    );
    let cache = folder.path().display().to_string();
    let args = ["simulate", "--policy", &policy, "--trace", "philly", "--cache-dir", &cache];
    check(&args, INPUT, &["published trace `philly` is not here", "coretuner trace fetch philly"]);
}

#[test]
fn a_malformed_trace_is_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = garbage(folder.path());
    let trace = folder.path().join("bad.csv");
    std::fs::write(&trace, "0,alexnet,0.0,3349,1\n1,alexnet,soon,3349,1\n").expect("written");
    let trace = trace.display().to_string();
    let args = ["simulate", "--policy", &policy, "--trace", &trace, "--format", "synergy"];
    check(&args, INPUT, &["bad.csv", "line 2", "column 3", "1,alexnet,soon,3349,1"]);
}

#[test]
fn an_unknown_model_or_gpu_kind_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = garbage(folder.path());
    let trace = folder.path().join("model.csv");
    std::fs::write(&trace, "0,skynet,0.0,3349,1\n").expect("written");
    let trace = trace.display().to_string();
    let args = ["simulate", "--policy", &policy, "--trace", &trace, "--format", "synergy"];
    check(&args, INPUT, &["unknown model `skynet`", "line 1"]);
    check(&["predict", "--kind", "skynet"], INPUT, &["unknown model `skynet`", "resnet18"]);
}

#[test]
fn an_unknown_policy_lists_what_was_tried_and_known() {
    let folder = tempfile::tempdir().expect("a folder");
    garbage(folder.path());
    let place = folder.path().display().to_string();
    let tried = format!("{place}/nosuch.wasm");
    let args = ["simulate", "--policy", "nosuch", "--policy-dir", &place];
    check(&args, INPUT, &["unknown policy `nosuch`", &tried, "garbage", "cargo xtask guests"]);
    check(&["simulate", "--policy", "./nosuch.wasm"], INPUT, &["there is no policy file ./nosuch.wasm"]);
}

#[test]
fn a_file_beside_us_does_not_hide_a_policy_of_that_name() {
    let (here, policies) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    garbage(policies.path());
    for name in ["garbage", "mine"] {
        std::fs::write(here.path().join(name), b"a program").expect("written");
    }
    let check = |policy: &str, parts: &[&str]| {
        let args = ["policy", "inspect", policy, "--policy-dir", &policies.path().display().to_string()];
        let output = coretuner().args(args).current_dir(here.path()).output().expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(INPUT), "{errors}");
        parts.iter().for_each(|part| assert!(errors.contains(part), "{policy}: `{part}` is not in\n{errors}"));
    };
    check("garbage", &[&policies.path().join("garbage.wasm").display().to_string(), "is not a policy component"]);
    check("./garbage", &["./garbage", "is not a policy component"]);
    check("mine", &["unknown policy `mine`", "write `./mine`", "cargo xtask guests"]);
    check("garbage.wasm", &["there is no policy file garbage.wasm"]);
}

#[test]
fn bytes_that_are_no_component_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = garbage(folder.path());
    check(&["policy", "check", &policy], FAILED, &["not acceptable", "`garbage` is not a policy component"]);
    check(&["policy", "inspect", &policy], INPUT, &["`garbage` is not a policy component"]);
    check(&["simulate", "--policy", &policy, "--jobs", "5"], INPUT, &["`garbage` is not a policy component"]);
}

#[test]
fn bad_configurations_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = garbage(folder.path());
    let check_config = |config: &str, parts: &[&str]| {
        check(&["simulate", "--policy", &policy, "--policy-config", config], INPUT, parts);
    };
    check_config("{\"a\": oops}", &["is not JSON", "oops", "here"]);
    check_config("[1]", &["must be a JSON object"]);
    check_config("@no-such.json", &["cannot read the policy configuration no-such.json"]);
}

#[test]
fn places_are_checked_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = garbage(folder.path());
    let file = folder.path().join("file");
    std::fs::write(&file, b"").expect("written");
    let below = file.join("out").display().to_string();
    let args = ["simulate", "--policy", &policy, "--out", &below];
    check(&args, FAILED, &["cannot create the output folder", &below]);
    let missing = folder.path().join("no/report.html").display().to_string();
    check(&["simulate", "--policy", &policy, "--report", &missing], FAILED, &["cannot write into"]);
    let place = folder.path().display().to_string();
    check(&["simulate", "--policy", &policy, "--report", &place], FAILED, &["is a folder"]);
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_none() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("the device");
    let output = coretuner().arg("limits").stdout(full).output().expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(FAILED), "{errors}");
    assert!(errors.contains("No space left on device"), "{errors}");

    let mut child = coretuner().arg("limits").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(OK));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn limits_and_completions_print() {
    let table = String::from_utf8(run(&["limits"]).stdout).expect("text");
    assert!(table.contains("decide_deadline_ms") && table.contains("operator"), "{table}");
    let json: serde_json::Value = serde_json::from_slice(&run(&["limits", "--json"]).stdout).expect("JSON");
    assert!(json.as_array().is_some_and(|rows| rows.len() > 10));
    for shell in ["bash", "zsh", "fish"] {
        let script = String::from_utf8(run(&["completions", shell]).stdout).expect("text");
        assert!(script.contains("simulate"), "{shell}");
    }
    check(&["completions", "tcl"], USAGE, &["tcl"]);
}

/// Answers one request with these bytes after the status line; a shorter body than announced breaks off.
fn serve(status: &'static str, body: Vec<u8>, announced: usize) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/trace.csv", listener.local_addr().expect("an address"));
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        read_head(&mut stream);
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {announced}\r\nConnection: close\r\n\r\n");
        // The client may hang up as soon as it has seen enough.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    });
    (url, served)
}

fn read_head(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            _ => return,
        }
    }
}

/// Synergy's 8-job test trace, byte for byte: msr-fiddle/synergy `simulator/test_trace/test_trace.csv`, MIT licence,
/// copyright Microsoft Corporation.
const TEST_TRACE: &[u8] = b"0,alexnet,.123,3349,4\n\
1,gnmt,.286,26435,1\n\
2,transformer,.317,13451,2\n\
3,deepspeech,.453,26088,1\n\
4,lstm,.464,184737,4\n\
5,gnmt,.468,50620,2\n\
6,res18,.498,4686,4\n\
7,transformer,.609,9931,4\n\
";

#[test]
fn fetching_checks_what_comes() {
    let fetch = |url: &str, code: i32, parts: &[&str]| {
        let cache = tempfile::tempdir().expect("a folder");
        let place = cache.path().display().to_string();
        check(&["trace", "fetch", "synergy-test", "--from", url, "--cache-dir", &place], code, parts);
        let left = std::fs::read_dir(cache.path()).expect("listed").count();
        assert_eq!(left, usize::from(code == OK), "files kept");
    };
    let against = |status, body: Vec<u8>, announced, code, parts: &[&str]| {
        let (url, served) = serve(status, body, announced);
        fetch(&url, code, parts);
        served.join().expect("served");
    };
    against("200 OK", vec![b'x'; 182], 182, FAILED, &["does not have the published content", "nothing was kept"]);
    against("404 Not Found", Vec::new(), 0, FAILED, &["answered with status 404", "--from"]);
    against("200 OK", vec![b'x'; 50], 182, FAILED, &["broke off after 50 of 182 bytes"]);
    against("200 OK", vec![b'x'; 50], 50, FAILED, &["broke off after 50 of 182 bytes"]);
    against("200 OK", vec![b'x'; 5000], 5000, FAILED, &["182 are published"]);
    against("200 OK", TEST_TRACE.to_vec(), 182, OK, &["as published"]);
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    fetch(&format!("http://{closed}/x"), FAILED, &["cannot reach", "--trace"]);
    check(&["trace", "fetch", "nothing"], INPUT, &["no published trace is named `nothing`"]);
}

#[test]
fn fetched_traces_are_found_by_name() {
    let cache = tempfile::tempdir().expect("a folder");
    let place = cache.path().display().to_string();
    let (url, served) = serve("200 OK", TEST_TRACE.to_vec(), TEST_TRACE.len());
    check(&["trace", "fetch", "synergy-test", "--from", &url, "--cache-dir", &place], OK, &["fetched from"]);
    served.join().expect("served");
    check(&["trace", "fetch", "synergy-test", "--cache-dir", &place], OK, &["was here already"]);
    let output = run(&["trace", "inspect", "--trace", "synergy-test", "--cache-dir", &place, "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(info["jobs"], 8);
}

#[test]
fn the_list_of_published_traces_needs_no_network() {
    let output = run(&["trace", "fetch"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("philly") && text.contains("MIT") && text.contains("openb-default"), "{text}");
}

/// A short run without the model.
pub(super) const SHORT: [&str; 10] =
    ["--jobs", "30", "--nodes", "2", "--load", "4", "--predictor", "profile", "--gangs", "single"];

fn fifo() -> String {
    paths::guest("fifo").display().to_string()
}

#[test]
fn a_run_gives_the_same_bytes_and_whole_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("out").display().to_string();
    let fifo = fifo();
    let simulate = |more: &[&str]| {
        let output = coretuner().args(["simulate", "--policy", &fifo]).args(SHORT).args(more).output().expect("starts");
        assert_eq!(output.status.code(), Some(OK), "{}", String::from_utf8_lossy(&output.stderr));
        output
    };
    let first = simulate(&["--json"]);
    let second = simulate(&["--json", "--out", &place]);
    assert!(!first.stdout.is_empty() && first.stdout == second.stdout);
    assert!(String::from_utf8_lossy(&first.stderr).contains("run took"));
    let mut names: Vec<_> =
        std::fs::read_dir(&place).expect("listed").map(|entry| entry.expect("entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["jobs.csv", "report.html", "result.json", "series.csv"]);
    assert_eq!(std::fs::read(Path::new(&place).join("result.json")).expect("read"), first.stdout);
    let report = std::fs::read_to_string(Path::new(&place).join("report.html")).expect("read");
    assert!(!report.contains("http://") && !report.contains("https://") && !report.contains("<script>"));
    let table = String::from_utf8(simulate(&[]).stdout).expect("text");
    assert!(table.contains("job completion time [") && table.contains("assumption: R1"), "{table}");
}

#[test]
fn a_comparison_does_not_depend_on_threads() {
    let fifo = fifo();
    let policies = format!("{fifo},{fifo}");
    let compare = |threads: &str| {
        let args = ["compare", "--policies", &policies, "--seeds", "1..3", "--json", "--threads", threads];
        let output = coretuner().args(args).args(SHORT).output().expect("starts");
        assert_eq!(output.status.code(), Some(OK), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let one = compare("1");
    assert!(one == compare("4"));
    let document: serde_json::Value = serde_json::from_slice(&one).expect("JSON");
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(6));
    let same =
        document["summary"].as_array().expect("rows").iter().find(|row| row["policy"] == "fifo#2").expect("a row");
    assert_eq!(same["versus_baseline"]["relative"], 0.0, "{same}");
}

#[test]
fn a_full_disk_leaves_no_report() {
    let fifo = fifo();
    let mut args = vec!["simulate", "--policy", &fifo, "--report", "/dev/full"];
    args.extend(SHORT);
    check(&args, FAILED, &["cannot write /dev/full", "No space left on device"]);
}

#[test]
fn unknown_configuration_fields_are_refused() {
    let fifo = fifo();
    let mut args = vec!["simulate", "--policy", &fifo, "--policy-config", "{\"nonsense\": 1}"];
    args.extend(SHORT);
    check(&args, INPUT, &["policy fifo does not take this configuration", "nonsense", "policy inspect fifo"]);
}

#[test]
fn a_gpu_kind_without_a_known_speed_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.csv");
    std::fs::write(&trace, TEST_TRACE).expect("written");
    let converted = folder.path().join("own.csv").display().to_string();
    check(&["trace", "convert", &trace.display().to_string(), "--to", &converted], OK, &["own.nodes.csv"]);
    let nodes = folder.path().join("own.nodes.csv");
    let text = std::fs::read_to_string(&nodes).expect("read");
    std::fs::write(&nodes, text.replace("V100", "Quantum9")).expect("written");
    check(&["trace", "inspect", &converted], INPUT, &["Quantum9", "alexnet", "line"]);
}

#[test]
fn conversion_can_be_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.csv");
    std::fs::write(&trace, TEST_TRACE).expect("written");
    let trace = trace.display().to_string();
    for name in ["out.json", "out.csv"] {
        let to = folder.path().join(name).display().to_string();
        check(&["trace", "convert", &trace, "--to", &to], OK, &["8 jobs"]);
        let output = run(&["trace", "inspect", &to, "--json"]);
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&info["jobs"], &info["format"]), (&8.into(), &"coretuner".into()), "{info}");
    }
    check(&["trace", "convert", &trace, "--to", "/dev/null/x.json"], FAILED, &["cannot write into"]);
    check(&["trace", "convert", &trace, "--to", "x.txt"], USAGE, &[".json or a .csv"]);
}
