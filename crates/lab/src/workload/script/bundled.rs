//! The scripts that come with the lab: the workloads of other tools, each of which says in its head what it mends, and
//! one that audits counters.

/// Names, and texts.
pub(crate) const BUNDLED: &[(&str, &str)] = &[
    ("counters", include_str!("../../../workloads/counters.toml")),
    ("tlp-keyvalue", include_str!("../../../workloads/tlp-keyvalue.toml")),
    ("tlp-timeseries", include_str!("../../../workloads/tlp-timeseries.toml")),
    ("tlp-udt-timeseries", include_str!("../../../workloads/tlp-udt-timeseries.toml")),
    ("tlp-random-access", include_str!("../../../workloads/tlp-random-access.toml")),
    ("tlp-counters", include_str!("../../../workloads/tlp-counters.toml")),
    ("tlp-allow-filtering", include_str!("../../../workloads/tlp-allow-filtering.toml")),
    ("tlp-maps", include_str!("../../../workloads/tlp-maps.toml")),
    ("tlp-sets", include_str!("../../../workloads/tlp-sets.toml")),
    ("tlp-lwt", include_str!("../../../workloads/tlp-lwt.toml")),
    ("tlp-locking", include_str!("../../../workloads/tlp-locking.toml")),
    ("stress-write", include_str!("../../../workloads/stress-write.toml")),
    ("stress-read", include_str!("../../../workloads/stress-read.toml")),
    ("stress-mixed", include_str!("../../../workloads/stress-mixed.toml")),
    ("stress-counter-write", include_str!("../../../workloads/stress-counter-write.toml")),
    ("stress-counter-read", include_str!("../../../workloads/stress-counter-read.toml")),
    ("nb-keyvalue", include_str!("../../../workloads/nb-keyvalue.toml")),
    ("nb-timeseries", include_str!("../../../workloads/nb-timeseries.toml")),
    ("nb-tabular", include_str!("../../../workloads/nb-tabular.toml")),
];
