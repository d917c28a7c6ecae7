//! Commands that Cassandra's `nodetool` has and ours has not: somebody who types one must learn that, and
//! not be told to look for a slip of the fingers. `docs/compatibility.md` (D100) lists them, too.

/// Their names, sorted.
#[rustfmt::skip]
const ABSENT: &[&str] = &[
    "autorepairstatus", "bootstrap", "checktokenmetadata", "cidrfilteringstats", "cleanup",
    "clientstats", "datapaths", "decommission", "disableauditlog",
    "disablefullquerylog",
    "disableoldprotocolversions", "dropcidrgroup", "enableauditlog", "enablefullquerylog",
    "enableoldprotocolversions",
    "forcecompact", "garbagecollect", "gcstats", "getauditlog", "getauthcacheconfig",
    "getautorepairconfig", "getbatchlogreplaythrottle", "getcidrgroupsofip", "getcolumnindexsize",
    "getcompactionthreshold", "getconcurrency", "getconcurrentcompactors", "getconcurrentviewbuilders",
    "getdefaultrf", "getfullquerylog", "getguardrailsconfig", "getinterdcstreamthroughput",
    "getlogginglevels", "getsnapshotthrottle", "getsstables",
    "getstreamthroughput",
    "invalidatecidrpermissionscache", "invalidatecountercache", "invalidatecredentialscache",
    "invalidatejmxpermissionscache", "invalidatekeycache", "invalidatenetworkpermissionscache",
    "invalidatepermissionscache", "invalidaterolescache", "invalidaterowcache", "join",
    "move", "profileload", "rangekeysample", "rebuild",
    "rebuild_index", "refreshsizeestimates", "reloadcidrgroupscache",
    "reloadlocalschema", "reloadseeds", "reloadtriggers", "relocatesstables",
    "repair_admin", "replaybatchlog", "resetfullquerylog", "resetlocalschema",
    "setauthcacheconfig", "setautorepairconfig", "setbatchlogreplaythrottle", "setcachecapacity",
    "setcachekeystosave", "setcolumnindexsize", "setcompactionthreshold", "setconcurrency",
    "setconcurrentcompactors", "setconcurrentviewbuilders", "setdefaultrf", "setguardrailsconfig",
    "setinterdcstreamthroughput", "setlogginglevel", "setmaxhintwindow",
    "setsnapshotthrottle", "setstreamthroughput", "sjk",
    "sstablerepairedset", "statusautocompaction",
    "stopdaemon", "tablehistograms", "toppartitions", "updatecidrgroup",
    "viewbuildstatus",
];

/// Has Cassandra 5 a command of that name which is not built here?
pub(super) fn is_absent(name: &str) -> bool {
    ABSENT.contains(&name)
}

#[cfg(test)]
mod tests {
    use clap::Subcommand;

    use super::*;
    use crate::nodetool::NodetoolCommand;

    #[test]
    fn what_is_built_is_not_absent_and_what_is_absent_is_documented() {
        assert!(ABSENT.is_sorted());
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
        let page = std::fs::read_to_string(page).unwrap();
        let row = page.lines().find(|line| line.starts_with("| D100 |")).unwrap();
        for name in ABSENT {
            assert!(!NodetoolCommand::has_subcommand(name), "{name} is built");
            assert!(row.contains(&format!("`{name}`")), "{name} is not in D100");
        }
        assert_eq!(row.matches('`').count(), 2 * (ABSENT.len() + 1), "and no other beside `nodetool`");
    }
}
