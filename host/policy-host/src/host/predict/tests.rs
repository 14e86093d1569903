use std::sync::Mutex;

use coretuner_contract::cluster::JobRows;
use coretuner_core::port::PredictorIdentity;

use super::*;

/// Answers kind × 100 + point index; remembers what it was asked.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<Vec<u32>>>,
    delay: Duration,
    ragged: bool,
}

impl Predictor for Fake {
    fn identity(&self) -> PredictorIdentity {
        PredictorIdentity { name: "fake".into(), digest: String::new(), engine: String::new() }
    }

    #[expect(clippy::disallowed_methods, reason = "a slow predictor is what is tested")]
    fn curves(&self, query: &CurveQuery) -> Result<port::Curves, port::PredictError> {
        if query.model == "none" {
            return Err(port::PredictError::UnknownModel(query.model.clone()));
        }
        std::thread::sleep(self.delay);
        let kinds: Vec<u32> = query.kinds.iter().map(|kind| kind.unwrap().0).collect();
        let points = query.points();
        let value = |kind: &u32| {
            let kind = *kind;
            (0..points).map(move |point| (kind * 100) as f32 + point as f32)
        };
        let mean: Vec<f32> = kinds.iter().flat_map(value).collect();
        let low = if self.ragged { Vec::new() } else { mean.clone() };
        self.asked.lock().unwrap().push(kinds.clone());
        Ok(port::Curves { low, high: mean.clone(), mean, version: kinds })
    }

    fn next_probe(&self, kind: KindId) -> Option<u32> {
        Some(kind.0 * 1000)
    }
}

/// Jobs 10.. of the given kinds on a cluster whose second string names the GPU kind.
fn session(fake: &Arc<Fake>, kinds: &[u32]) -> PredictSession {
    let mut session = PredictSession::new(Some(Arc::clone(fake) as Arc<dyn Predictor>), true);
    let id = (10..).take(kinds.len()).collect();
    let jobs = JobRows { id, kind: kinds.to_vec(), ..JobRows::default() };
    session.observe(&Delta { strings: vec!["node".into(), "V100".into()], jobs: Some(jobs), ..Delta::default() });
    session
}

fn request(jobs: &[u32]) -> CurveRequest {
    CurveRequest {
        model: String::new(),
        jobs: jobs.to_vec(),
        gpu_kind_name: 1,
        gpus: vec![1],
        nodes_spanned: vec![1],
        cpu_milli: vec![1000, 2000],
        memory_mib: vec![1],
    }
}

fn ask(session: &mut PredictSession, request: &CurveRequest) -> Result<Curves, PredictError> {
    session.query(&Limits::default(), None, request).0
}

#[test]
fn jobs_of_one_kind_are_computed_once_and_remembered() {
    let fake = Arc::new(Fake::default());
    let mut session = session(&fake, &[7, 3, 7, NONE]);
    let curves = ask(&mut session, &request(&[12, 11, 10, 13])).unwrap();
    assert_eq!(curves.mean[..6], [700.0, 701.0, 300.0, 301.0, 700.0, 701.0]);
    assert!(curves.mean[6..].iter().all(|value| value.is_nan()) && curves.mean.len() == 8);
    assert_eq!(curves.version, [7, 3, 7, 0]);
    ask(&mut session, &request(&[10, 11])).unwrap();
    assert_eq!(*fake.asked.lock().unwrap(), [vec![3, 7]]);
}

#[test]
fn a_changed_estimate_is_asked_again() {
    let fake = Arc::new(Fake::default());
    let mut session = session(&fake, &[7, 3]);
    ask(&mut session, &request(&[10, 11])).unwrap();
    session.observe(&Delta { base_revision: 1, estimates_changed: vec![11], ..Delta::default() });
    ask(&mut session, &request(&[10, 11])).unwrap();
    assert_eq!(*fake.asked.lock().unwrap(), [vec![3, 7], vec![3]]);
}

#[test]
fn the_charge_does_not_depend_on_what_is_remembered() {
    let mut session = session(&Arc::new(Fake::default()), &[7, 3, 7]);
    let mut cost = || session.query(&Limits::default(), None, &request(&[10, 11, 12])).1;
    let first = cost();
    assert_eq!(first, QueryCost { rows: 4, answer_bytes: 84 });
    assert_eq!(cost(), first);
}

#[test]
fn bad_queries_are_refused_with_a_reason() {
    let fake = Arc::new(Fake::default());
    let check = |change: &dyn Fn(&mut CurveRequest), expected: PredictError| {
        let mut asked = request(&[10]);
        change(&mut asked);
        let limits = Limits { predict_rows: 4, ..Limits::default() };
        let answer = session(&fake, &[7, 3]).query(&limits, None, &asked).0;
        assert_eq!(answer.unwrap_err(), expected);
    };
    check(&|r| r.jobs = vec![99], PredictError::UnknownJob);
    check(&|r| r.cpu_milli = vec![0; 5], PredictError::TooManyRows);
    check(&|r| r.jobs = vec![10, 10, 11], PredictError::TooManyRows);
    check(&|r| r.gpus = vec![1, 2], PredictError::Unavailable);
    check(&|r| r.gpu_kind_name = 2, PredictError::Unavailable);
    check(&|r| r.model = "none".into(), PredictError::UnknownModel);
}

#[test]
fn a_removed_job_is_unknown_and_an_image_starts_anew() {
    let fake = Arc::new(Fake::default());
    let mut session = session(&fake, &[7, 3]);
    session.observe(&Delta { base_revision: 1, removed_jobs: vec![10], ..Delta::default() });
    assert_eq!(ask(&mut session, &request(&[10])).unwrap_err(), PredictError::UnknownJob);
    assert_eq!((session.next_probe(10), session.next_probe(11)), (None, Some(3000)));
    session.observe(&Delta { strings: vec!["only".into()], ..Delta::default() });
    assert_eq!(ask(&mut session, &request(&[11])).unwrap_err(), PredictError::UnknownJob);
}

#[test]
fn wall_time_is_bounded_in_production_and_a_late_answer_kept() {
    let fake = Arc::new(Fake { delay: Duration::from_millis(5), ..Fake::default() });
    let mut session = session(&fake, &[7, 3]);
    let limits = Limits::default();
    let wall = Some(Duration::from_millis(1));
    assert_eq!(session.query(&limits, wall, &request(&[10])).0.unwrap_err(), PredictError::Late);
    assert_eq!(session.query(&limits, wall, &request(&[11])).0.unwrap_err(), PredictError::Late);
    assert!(session.query(&limits, wall, &request(&[10])).0.is_ok());
    session.begin_cycle();
    assert_eq!(*fake.asked.lock().unwrap(), [vec![7]]);
}

#[test]
fn a_predictor_of_the_wrong_shape_or_none_is_unavailable() {
    let fake = Arc::new(Fake { ragged: true, ..Fake::default() });
    assert_eq!(ask(&mut session(&fake, &[7]), &request(&[10])).unwrap_err(), PredictError::Unavailable);
    let mut none = PredictSession::new(None, true);
    none.observe(&Delta { strings: vec!["a".into(), "b".into()], ..Delta::default() });
    assert!(ask(&mut none, &request(&[])).unwrap().mean.is_empty());
}

#[test]
fn the_memo_is_bounded() {
    let fake = Arc::new(Fake::default());
    let mut session = session(&fake, &[7, 3]);
    let limits = Limits { predict_memo_points: 3, ..Limits::default() };
    for _ in 0..2 {
        assert_eq!(session.query(&limits, None, &request(&[10, 11])).0.unwrap().mean.len(), 4);
    }
    assert_eq!(fake.asked.lock().unwrap().len(), 2);
}
