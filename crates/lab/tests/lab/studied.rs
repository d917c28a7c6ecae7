//! Studies over several stubs.

use std::sync::atomic::AtomicBool;

use lab::{Comparison, Contender, LabError, Offer, Pace, Part, Plan, Preparation, Repetition, Tell, Watch};

use crate::measured::plan;
use crate::stub::{Manners, Stub};

/// Keeps what it is told.
#[derive(Default)]
struct Told {
    parts: Vec<(Part, Vec<String>)>,
}

impl Tell for Told {
    fn begins(&mut self, _: &Part, _: usize, _: usize) {}

    fn leaves_out(&mut self, _: &Part) {}

    fn offers(&mut self, _: &Part, _: f64) {}

    fn ends(&mut self, part: Part, comparison: Comparison) -> Result<(), LabError> {
        let names = comparison.results().map(|(name, _)| name.to_owned()).collect();
        self.parts.push((part, names));
        Ok(())
    }
}

fn contender(name: &str, stub: &Stub) -> Contender {
    let preparation = Preparation { loads: true, ..Preparation::default() };
    Contender { name: name.to_owned(), nodes: vec![stub.address.to_string()], preparation }
}

fn study(part: Part, contenders: &[Contender]) -> Result<Told, LabError> {
    let (stop, mut told) = (AtomicBool::new(false), Told::default());
    let loaded = &mut |_: &Plan, _: &Repetition| {};
    let mut watch = Watch { tell: &mut |_| {}, loaded, stop: &stop };
    lab::study(&[part], contenders, &mut watch, &mut told)?;
    Ok(told)
}

#[test]
fn who_does_not_have_what_a_part_needs_is_left_out_of_it() {
    let able = Stub::start(Manners::default());
    let unable = Stub::start(Manners { refuses_tables: true, ..Manners::default() });
    let both = [contender("able", &able), contender("unable", &unable)];
    let plan = Plan { measured_s: 0.2, ..plan(&able, "ycsb-c", Pace::Closed { in_flight: 2 }) };
    let whole = Part::new("part", "", plan, true, Offer::AsPlanned);
    let part = Part { may_be_refused: true, ..whole.clone() };

    let told = study(part.clone(), &both).unwrap();
    let [(told, names)] = told.parts.as_slice() else { panic!("one part was told of") };
    assert_eq!(names, &["able"]);
    let [(name, why)] = told.left_out.as_slice() else { panic!("one was left out: {:?}", told.left_out) };
    assert!(name == "unable" && why.contains("no such tables here"), "{why}");

    let told = study(part.clone(), &both[1..]).unwrap();
    let [(told, names)] = told.parts.as_slice() else { panic!("one part was told of") };
    assert!(names.is_empty() && told.left_out.len() == 1, "of a lone server that can not do it, that");

    // Where all must do it, that is an error; and so is what says nothing of what a server has.
    assert!(matches!(study(whole, &both), Err(LabError::Statement { .. })));
    let dead = Stub::start(Manners { dies_at_tables: true, ..Manners::default() });
    assert!(study(part, &[contender("dead", &dead)]).is_err());
}
