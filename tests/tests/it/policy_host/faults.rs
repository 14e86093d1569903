//! Faults that end an instance.

use coretuner_controller::Controller;
use coretuner_core::event::{Batch, Event};
use coretuner_core::model::{ClassId, Eligibility, GroupSpec, JobId, JobSpec, NodeId, NodeSpec, QueueId, ResizeRights};
use coretuner_core::port::{FaultKind, Policy, PolicyFault};
use coretuner_policy_host::{LoadError, Mode, Services, WasmPolicy};

use super::{MODES, cycles, image, load, misbehaving, patient, small, start, unchanged};

/// The guest behaves in its first call and fails in its second; afterwards the instance is gone until it is reset, and
/// the new one goes the same way, with an allowance of its own.
fn check_fault(mode: Mode, config: &str, kind: FaultKind, message: &str) -> PolicyFault {
    let of_time = matches!(kind, FaultKind::Deadline | FaultKind::Fuel);
    let mut policy = start(&load(mode, if of_time { small() } else { patient() }), config);
    for round in 0..2 {
        let fault = cycles(&mut policy, 2).unwrap_err();
        assert_eq!(fault.kind, kind, "{config} in {mode:?}, round {round}: {fault} {:?}", fault.backtrace);
        assert!(fault.message.contains(message), "{config} in {mode:?}: {fault}");
        let gone = policy.decide(&image(&[])).unwrap_err();
        assert_eq!((gone.kind, gone.message.contains("reset")), (FaultKind::Start, true), "{gone}");
        policy.reset().unwrap();
        assert!(policy.needs_image());
        if round == 1 {
            return fault;
        }
    }
    unreachable!("the second round returns")
}

#[test]
fn an_endless_loop_ends_at_its_deadline_on_every_call() {
    let config = r#"{"fault": "endless-loop", "at": 2}"#;
    let fault = check_fault(Mode::Production, config, FaultKind::Deadline, "`decide` ran past its deadline of 60 ms");
    assert!(!fault.backtrace.is_empty());
    check_fault(Mode::Metered, config, FaultKind::Fuel, "burnt its 30000000 units of fuel");
}

#[test]
fn a_panic_tells_its_text_and_where() {
    for mode in MODES {
        let fault = check_fault(mode, r#"{"fault": "panic", "at": 2}"#, FaultKind::Trap, "`decide` trapped");
        let output = fault.output_tail.join("\n");
        assert!(output.contains("call 2 fell over"), "{output}");
        let frames = fault.backtrace.join("\n");
        assert!(frames.contains("misbehaving::exports") && fault.backtrace.len() <= 20, "{frames}");
    }
}

#[test]
fn memory_and_stack_are_bounded() {
    for mode in MODES {
        let hog = check_fault(mode, r#"{"fault": "memory-hog", "at": 2}"#, FaultKind::Memory, "67108864 are allowed");
        assert!(!hog.backtrace.is_empty());
        let config = r#"{"fault": "stack-overflow", "at": 2}"#;
        check_fault(mode, config, FaultKind::StackOverflow, "overflowed its stack");
    }
}

#[test]
fn answers_are_bounded_and_decoded_with_care() {
    for mode in MODES {
        let check = |config: &str, kind: FaultKind, message: &str| _ = check_fault(mode, config, kind, message);
        let too_large = FaultKind::AnswerTooLarge;
        check(r#"{"fault": "huge-answer", "at": 2, "amount": 1000000}"#, too_large, "more than 1048576 bytes");
        check(r#"{"fault": "huge-log", "at": 2, "amount": 2000000}"#, too_large, "more than 1048576 bytes");
        check(r#"{"fault": "list-out-of-bounds", "at": 2}"#, FaultKind::InvalidAnswer, "cannot be decoded");
        check(r#"{"fault": "bad-text", "at": 2}"#, FaultKind::InvalidAnswer, "cannot be decoded");
    }
}

#[test]
fn a_policy_that_cannot_be_configured_says_why() {
    let check = |mode: Mode, config: &str, expected: &[&str]| {
        let Err(error) = load(mode, small()).instantiate(config, Services::default()) else {
            panic!("{config} was taken");
        };
        let shown = match &error {
            LoadError::Start { fault, .. } => format!("{error} {}", fault.output_tail.join(" ")),
            _ => error.to_string(),
        };
        for part in expected {
            assert!(shown.contains(part), "{shown}\nlacks {part}");
        }
    };
    for mode in MODES {
        let refuses = "policy `misbehaving` refuses its configuration";
        check(mode, r#"{"fault": "refuse-configuration"}"#, &[refuses, "I do not like it"]);
        check(mode, r#"{"falt": 1}"#, &[refuses, "unknown field `falt`"]);
        check(mode, &" ".repeat(2 << 20), &[refuses, "1048576 are allowed"]);
        check(mode, r#"{"fault": "trap-in-configure"}"#, &["does not start", "(trap)", "configure fell over"]);
    }
    let slow = r#"{"fault": "loop-in-configure"}"#;
    check(Mode::Production, slow, &["does not start", "`configure` ran past its deadline of 60 ms"]);
    check(Mode::Metered, slow, &["does not start", "`configure` burnt its"]);
}

#[test]
fn a_refused_new_configuration_leaves_the_old_one() {
    let mut policy = misbehaving(Mode::Metered, "{}");
    let error = policy.reconfigure(r#"{"fault": "refuse-configuration"}"#).unwrap_err();
    assert!(error.to_string().contains("I do not like it"), "{error}");
    cycles(&mut policy, 3).unwrap();
    policy.reconfigure(r#"{"fault": "panic"}"#).unwrap();
    assert_eq!(policy.decide(&unchanged(3)).unwrap_err().kind, FaultKind::Trap);
    policy.reset().unwrap();
    assert_eq!(cycles(&mut policy, 1).unwrap_err().kind, FaultKind::Trap);
}

/// A cluster of one node with 8 GPUs and `jobs` one-GPU jobs.
fn batch(jobs: u32) -> Batch {
    let node = NodeSpec {
        name: "n".into(),
        gpu_kind: "V100".into(),
        cpu_milli: 24_000,
        memory_mib: 512_000,
        storage_mib_per_s: 0,
        devices: 8,
        device_memory_mib: 16_000,
        zone: None,
        rack: None,
        link_domain: None,
    };
    let mut events = vec![
        Event::NodeSet { id: NodeId(0), spec: node },
        Event::ClassSet { id: ClassId(0), nodes: Eligibility::All },
        Event::QueueSet { id: QueueId(0), spec: queue() },
    ];
    events.extend((0..jobs).map(|id| Event::JobSubmitted { id: JobId(id), spec: job() }));
    Batch { now_ns: 1, events, timer: false }
}

fn queue() -> coretuner_core::model::QueueSpec {
    coretuner_core::model::QueueSpec {
        name: "q".into(),
        parent: None,
        weight_milli: 1000,
        guaranteed_gpu_milli: None,
        maximum_gpu_milli: None,
        guaranteed_cpu_milli: None,
        maximum_cpu_milli: None,
    }
}

fn job() -> JobSpec {
    let group = GroupSpec {
        role: "worker".into(),
        workers_min: 1,
        workers_max: 1,
        gpu_milli: 1000,
        cpu_milli: 3000,
        memory_mib: 64_000,
        cpu_milli_min: 1000,
        cpu_milli_max: 24_000,
        memory_mib_min: 20_000,
        memory_mib_max: 512_000,
        resize_rights: ResizeRights::ALL,
    };
    JobSpec {
        name: "j".into(),
        user: "u".into(),
        queue: QueueId(0),
        eligibility: ClassId(0),
        priority: 0,
        tier: 0,
        preemptible: true,
        submit_ns: 0,
        groups: vec![group],
        work_iterations: 100,
        estimated_duration_ns: 0,
        deadline_ns: 0,
        kind: None,
        labels: Vec::new(),
    }
}

fn controller(config: &str) -> Controller<WasmPolicy> {
    Controller::new(misbehaving(Mode::Metered, config))
}

#[test]
fn impossible_plans_are_refused_and_the_cluster_stays_whole() {
    for fault in ["unknown-ids", "overcommit"] {
        let mut controller = controller(&format!(r#"{{"fault": "{fault}"}}"#));
        let outcome = controller.run_batch(&batch(3)).unwrap();
        assert!(outcome.commands.is_empty() && outcome.report.fault.is_none(), "{fault}: {:?}", outcome.report);
        assert!(!outcome.report.verdicts.is_empty(), "{fault}");
        controller.state().check_invariants().unwrap();
    }
}

#[test]
fn the_fallback_answers_the_cycle_of_a_fault() {
    for fault in ["panic", "ragged-columns", "endless-loop", "bad-text"] {
        let mut controller = controller(&format!(r#"{{"fault": "{fault}"}}"#));
        let outcome = controller.run_batch(&batch(3)).unwrap();
        assert!(outcome.report.fault.is_some() && outcome.report.fallback, "{fault}: {:?}", outcome.report);
        assert_eq!(outcome.commands.len(), 3, "{fault}");
        controller.state().check_invariants().unwrap();
    }
}

#[test]
fn one_bad_instance_does_not_touch_another_of_the_same_policy() {
    for mode in MODES {
        let loaded = load(mode, small());
        let mut bad = start(&loaded, r#"{"fault": "panic"}"#);
        let mut good = start(&loaded, "{}");
        assert!(cycles(&mut bad, 1).is_err());
        assert_eq!(cycles(&mut good, 3).unwrap().len(), 3);
    }
}
