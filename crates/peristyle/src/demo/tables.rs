//! The demo's schema and where its rows come from.

/// Statements that make the tables; harmless when they are there.
///
/// Flights lie by airport and month, as a departures board would ask for them: 36 partitions of some
/// 9,400 rows, sorted by time inside.
pub(super) const SCHEMA: &[&str] = &[
    "CREATE KEYSPACE IF NOT EXISTS nycflights \
     WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS nycflights.datasets (name text PRIMARY KEY, row_count int)",
    "CREATE TABLE IF NOT EXISTS nycflights.airlines (carrier text PRIMARY KEY, name text)",
    "CREATE TABLE IF NOT EXISTS nycflights.airports (\
     faa text PRIMARY KEY, name text, lat double, lon double, alt int, tz int, dst text, tzone text)",
    "CREATE TABLE IF NOT EXISTS nycflights.planes (\
     tailnum text PRIMARY KEY, year int, type text, manufacturer text, model text, engines int, seats int, \
     speed int, engine text)",
    "CREATE TABLE IF NOT EXISTS nycflights.weather (\
     origin text, year int, month int, day int, hour int, temp double, dewp double, humid double, wind_dir int, \
     wind_speed double, wind_gust double, precip double, pressure double, visib double, time_hour timestamp, \
     PRIMARY KEY ((origin, month), time_hour))",
    "CREATE TABLE IF NOT EXISTS nycflights.flights (\
     year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, \
     sched_arr_time int, arr_delay int, carrier text, flight int, tailnum text, origin text, dest text, \
     air_time int, distance int, hour int, minute int, time_hour timestamp, \
     PRIMARY KEY ((origin, month), day, sched_dep_time, carrier, flight))",
];

/// One file of the data.
pub(super) struct Data {
    /// Its table.
    pub(super) name: &'static str,
    /// For the progress bar.
    pub(super) row_count: u64,
    /// CSV with a header, compressed with zstd.
    pub(super) compressed: &'static [u8],
}

/// All files, small ones first.
pub(super) const DATA: &[Data] = &[
    Data { name: "airlines", row_count: 16, compressed: include_bytes!("../../data/airlines.csv.zst") },
    Data { name: "airports", row_count: 1_458, compressed: include_bytes!("../../data/airports.csv.zst") },
    Data { name: "planes", row_count: 3_322, compressed: include_bytes!("../../data/planes.csv.zst") },
    Data { name: "weather", row_count: 26_115, compressed: include_bytes!("../../data/weather.csv.zst") },
    Data { name: "flights", row_count: 336_776, compressed: include_bytes!("../../data/flights.csv.zst") },
];
