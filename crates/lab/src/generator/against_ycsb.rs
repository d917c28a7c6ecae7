//! Our draws beside those of the stock YCSB, as `ycsb_draws.txt` keeps them.
//!
//! Three comparisons. From a fraction that YCSB's own class was given, ours must give the same item: that judges the
//! formulas, digit by digit. Counts of as many draws must agree by chi-square, over ranges that cover all items and
//! over the hottest hundred one by one: that judges the choice as a whole, our random numbers included. And a choice
//! with a slightly wrong skew (theta off by 0.005, growth without YCSB's flaw) must *not* agree: that judges the
//! comparison. Counts alone do not see everything: a scrambled choice with zeta off by 4% passes. The fractions do.
//!
//! Sixty fractions are kept for each generator. A throwaway program compared a million (2026-11-29): all gave the
//! same item, zipfian and scrambled.
//!
//! A chi-square fails when YCSB would exceed it once in a million runs against itself; a hottest item or a share,
//! when it is six standard deviations off (once in 500 million). Over all comparisons here, a right generator fails
//! for fewer than 1 seed in 30,000. The seeds are fixed, so it fails always or never.

use super::*;

/// How many draws each count is of: as many as YCSB's.
pub(super) const DRAW_COUNT: u64 = 2_000_000;
/// A normal variable exceeds this once in a million.
const ONE_IN_A_MILLION: f64 = 4.753;
const DEVIATIONS_MAX: f64 = 6.0;
/// Cells of fewer expected draws are taken together, since chi-square needs some in each.
const CELL_MIN: f64 = 10.0;

/// What a chi-square came to.
#[derive(Debug)]
pub(super) struct Outcome {
    chi_square: f64,
    freedom: usize,
}

impl Outcome {
    /// Whether chance alone gives as much more often than once in a million.
    pub(super) fn agrees(&self) -> bool {
        // Wilson and Hilferty: the cube root of a chi-square is nearly normal.
        let freedom = self.freedom as f64;
        let spread = 2.0 / (9.0 * freedom.max(1.0));
        self.chi_square <= freedom * (1.0 - spread + ONE_IN_A_MILLION * spread.sqrt()).powi(3)
    }
}

/// Judges counts by the share that a law gives each. They must be all of `DRAW_COUNT` draws.
pub(super) fn chi_square_of_law(cells: impl IntoIterator<Item = (u64, f64)>) -> Outcome {
    let cells = cells.into_iter().map(|(count, share)| (count as f64, share * DRAW_COUNT as f64));
    let (cells, drawn) = large_cells(cells, |(_, expected)| *expected);
    assert_eq!(drawn, DRAW_COUNT as f64, "the cells leave draws out");
    let chi_square = cells.iter().map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    Outcome { chi_square, freedom: cells.len() - 1 }
}

/// Judges two counts of as many draws by each other.
fn chi_square_of_two(cells: impl IntoIterator<Item = (u64, u64)>) -> Outcome {
    let cells = cells.into_iter().map(|(ours, theirs)| (ours as f64, theirs as f64));
    let (cells, drawn) = large_cells(cells, |(ours, theirs)| (ours + theirs) / 2.0);
    assert_eq!(drawn, DRAW_COUNT as f64, "the cells leave draws out");
    let chi_square = cells.iter().map(|(ours, theirs)| (ours - theirs).powi(2) / (ours + theirs)).sum();
    Outcome { chi_square, freedom: cells.len() - 1 }
}

/// The cells with the small ones taken together, and the sum of their first parts.
fn large_cells(
    cells: impl Iterator<Item = (f64, f64)>,
    expected: impl Fn(&(f64, f64)) -> f64,
) -> (Vec<(f64, f64)>, f64) {
    let (mut large, small): (Vec<_>, Vec<_>) = cells.partition(|cell| expected(cell) >= CELL_MIN);
    let rest = small.iter().fold((0.0, 0.0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
    if expected(&rest) > 0.0 {
        large.push(rest);
    }
    let drawn = large.iter().map(|cell| cell.0).sum();
    (large, drawn)
}

/// What is recorded of one of YCSB's generators.
#[derive(Default)]
struct Recorded {
    /// The hottest items with their counts, and the share of each and all hotter ones.
    hot: Vec<(u64, u64, f64)>,
    /// First item, last item, count.
    ranges: Vec<(u64, u64, u64)>,
    /// Fraction and item.
    pairs: Vec<(f64, u64)>,
}

fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("ycsb_draws.txt").lines();
    lines.filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace().collect())
}

/// Row, hash and key of what YCSB hashed.
pub(super) fn recorded_keys() -> Vec<(u64, u64, &'static str)> {
    let keys = lines().filter(|words| words.first() == Some(&"key"));
    keys.map(|words| (words[1].parse().unwrap(), words[2].parse().unwrap(), words[3])).collect()
}

/// What is recorded of the generator of a name and a number of items.
fn recorded(name: &str) -> Recorded {
    let mut recorded = Recorded::default();
    let section =
        lines().skip_while(|words| words.first() != Some(&"generator") || words[1..].join(" ") != name);
    for words in section.skip(1).take_while(|words| words.first() != Some(&"generator")) {
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        match words.first() {
            Some(&"hot") => recorded.hot.push((number(1), number(2), words[3].parse().unwrap())),
            Some(&"range") => recorded.ranges.push((number(1), number(2), number(3))),
            Some(&"pair") => recorded.pairs.push((words[1].parse().unwrap(), number(2))),
            _ => {}
        }
    }
    assert!(!recorded.ranges.is_empty(), "nothing is recorded of {name}");
    recorded
}

/// How often we draw each item below a bound.
fn counts(item_bound: u64, mut draw: impl FnMut(&mut Random) -> u64) -> Vec<u64> {
    let mut random = Random::new(20_261_129, 0);
    let mut counts = vec![0; item_bound as usize];
    (0..DRAW_COUNT).for_each(|_| counts[draw(&mut random) as usize] += 1);
    counts
}

/// Our counts of the recorded ranges beside YCSB's.
fn over_ranges(recorded: &Recorded, counts: &[u64]) -> Outcome {
    let ours = |first: u64, last: u64| counts[first as usize..=last as usize].iter().sum();
    chi_square_of_two(recorded.ranges.iter().map(|(first, last, theirs)| (ours(*first, *last), *theirs)))
}

/// Our counts of the hottest items beside YCSB's, and of all others together.
fn over_hot_items(recorded: &Recorded, counts: &[u64]) -> Outcome {
    let hot: Vec<(u64, u64)> =
        recorded.hot.iter().map(|(item, theirs, _)| (counts[*item as usize], *theirs)).collect();
    let (ours, theirs) = hot.iter().fold((0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
    chi_square_of_two(hot.into_iter().chain([(DRAW_COUNT - ours, DRAW_COUNT - theirs)]))
}

/// Each of the hottest items, and each share of them, within six standard deviations.
fn check_hot_items(name: &str, recorded: &Recorded, counts: &[u64]) {
    assert_eq!(recorded.hot.len(), 100, "{name}");
    let mut sum = 0;
    for (item, theirs, share) in &recorded.hot {
        let ours = counts[*item as usize];
        let deviation = ((ours + theirs) as f64).sqrt();
        let difference = ours as f64 - *theirs as f64;
        assert!(difference.abs() <= DEVIATIONS_MAX * deviation, "{name}: item {item}: {ours}, YCSB {theirs}");
        sum += ours;
        let our_share = sum as f64 / DRAW_COUNT as f64;
        let deviation = (2.0 * share * (1.0 - share) / DRAW_COUNT as f64).sqrt();
        let difference = our_share - share;
        assert!(
            difference.abs() <= DEVIATIONS_MAX * deviation,
            "{name}: to {item}: {our_share}, YCSB {share}"
        );
    }
}

fn check(name: &str, item_bound: u64, draw: impl FnMut(&mut Random) -> u64) {
    let (recorded, counts) = (recorded(name), counts(item_bound, draw));
    let ranges = over_ranges(&recorded, &counts);
    println!("{name}: ranges {ranges:?}");
    assert!(ranges.agrees(), "{name}: ranges {ranges:?}");
    if !recorded.hot.is_empty() {
        let hot = over_hot_items(&recorded, &counts);
        println!("{name}: hot {hot:?}");
        assert!(hot.agrees(), "{name}: hot {hot:?}");
        check_hot_items(name, &recorded, &counts);
    }
}

fn check_pairs(name: &str, mut item_at: impl FnMut(f64) -> u64) {
    let pairs = recorded(name).pairs;
    assert_eq!(pairs.len(), 60, "{name}");
    for (fraction, item) in pairs {
        assert_eq!(item_at(fraction), item, "{name}: fraction {fraction}");
    }
}

#[test]
fn from_the_same_fraction_comes_the_same_item() {
    for items in [1000, 100_000] {
        let zipfian = Zipfian::new(items, ZIPFIAN_CONSTANT);
        check_pairs(&format!("zipfian {items}"), |fraction| zipfian.item_at(fraction, items));
        let scrambled = Scrambled::new(items);
        check_pairs(&format!("scrambled {items}"), |fraction| scrambled.row_at(fraction));
        let mut latest = Latest::new(items);
        check_pairs(&format!("latest {items}"), |fraction| latest.row_at(fraction, items));
    }
    let mut grown = Latest::new(1000);
    check_pairs("grown 2000", |fraction| grown.row_at(fraction, 2000));
}

#[test]
fn zipfian_draws_as_ycsb() {
    for items in [1000, 100_000] {
        let zipfian = Zipfian::new(items, ZIPFIAN_CONSTANT);
        check(&format!("zipfian {items}"), items, |random| zipfian.draw(random));
    }
}

#[test]
fn scrambled_draws_as_ycsb() {
    for items in [1000, 100_000] {
        let scrambled = Scrambled::new(items);
        check(&format!("scrambled {items}"), items, |random| scrambled.draw(random));
    }
}

#[test]
fn latest_draws_as_ycsb() {
    for items in [1000, 100_000] {
        let mut latest = Latest::new(items);
        check(&format!("latest {items}"), items + 1, |random| latest.draw(items, random));
    }
}

#[test]
fn latest_that_grew_draws_as_ycsb() {
    // Row by row, as inserts come.
    let mut latest = Latest::new(1000);
    (1000..2000).for_each(|newest_row| _ = latest.draw(newest_row, &mut Random::new(1, 0)));
    check("grown 2000", 2001, |random| latest.draw(2000, random));
}

#[test]
fn uniform_draws_as_ycsb() {
    for items in [1000, 100_000] {
        let uniform = Uniform::over(0..=items - 1);
        check(&format!("uniform {items}"), items, |random| uniform.draw(random));
    }
}

#[test]
fn a_slightly_wrong_skew_is_seen() {
    let disagrees = |name: &str, counts: Vec<u64>| {
        let recorded = recorded(name);
        let (ranges, hot) = (over_ranges(&recorded, &counts), over_hot_items(&recorded, &counts));
        assert!(!ranges.agrees() && !hot.agrees(), "{name}: {ranges:?}, {hot:?}");
    };
    let zipfian = Zipfian::new(1000, 0.985);
    disagrees("zipfian 1000", counts(1000, |random| zipfian.draw(random)));
    let true_zipfian = TrueZipfian::new(1000, ZIPFIAN_CONSTANT);
    disagrees("zipfian 1000", counts(1000, |random| true_zipfian.draw(random)));
    let universe = Zipfian::new(10_000_000_001, 0.985);
    disagrees("scrambled 1000", counts(1000, |random| fnv64(universe.draw(random)) % 1000));
    let mut made_anew = Latest::new(2000);
    disagrees("grown 2000", counts(2001, |random| made_anew.draw(2000, random)));
}

#[test]
fn a_choice_moves_to_another_thread() {
    fn check_send<T: Send + 'static>() {}
    check_send::<(Random, Zipfian, TrueZipfian, Scrambled, Latest, Uniform, Discrete<u8>)>();
}
