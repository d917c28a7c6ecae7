import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.Row;
import java.util.ArrayList;
import java.util.List;
import org.cognitor.cassandra.migration.Database;
import org.cognitor.cassandra.migration.MigrationConfiguration;
import org.cognitor.cassandra.migration.MigrationRepository;
import org.cognitor.cassandra.migration.MigrationTask;

/** Cassandra-migration: scripts run in turn by whoever has the lead, which is taken with a condition. */
public final class Migration {
  static final String KEYSPACE = "application_migration";
  static final String LEADERS = KEYSPACE + ".schema_migration_leader";

  static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError("failed: " + what);
  }

  /** What an application does when it starts. */
  static Void migrate() {
    MigrationConfiguration configuration = new MigrationConfiguration().withKeyspaceName(KEYSPACE);
    try (Database database = new Database(Common.session(), configuration)) {
      new MigrationTask(database, new MigrationRepository("cql"), true).migrate();
    }
    return null;
  }

  /** Every script was run once, and nobody has the lead. */
  static void look(CqlSession session) {
    List<String> scripts = new ArrayList<>();
    for (Row row : session.execute("SELECT * FROM " + KEYSPACE + ".schema_migration")) {
      check(row.getBoolean("applied_successful"), "it was run well: " + row.getString("script_name"));
      scripts.add(row.getInt("version") + " " + row.getString("script_name"));
    }
    List<String> all = List.of("1 001_accounts.cql", "2 002_owners.cql", "3 003_visits.cql");
    check(scripts.equals(all), "the scripts in their order: " + scripts);
    check(session.execute("SELECT * FROM " + LEADERS).one() == null, "nobody has the lead");
    long starts = session.execute("SELECT runs FROM " + KEYSPACE + ".visit WHERE page = 'start'").one().getLong(0);
    check(starts == 1, "the script that counts was run once: " + starts);
    String owner = session.execute("SELECT owner FROM " + KEYSPACE + ".account WHERE id = 1").one().getString(0);
    check(owner.equals("ada"), "the column that was added has its value: " + owner);
  }

  static void prepare(CqlSession session) {
    session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = "
        + Common.replication());
  }

  public static void main(String[] arguments) throws Exception {
    try (CqlSession session = Common.session()) {
      prepare(session);
      migrate();
      look(session);
      System.out.println("ok: three scripts");

      migrate();
      look(session);
      System.out.println("ok: nothing to do");

      prepare(session);
      Common.together(2, Migration::migrate);
      look(session);
      System.out.println("ok: two at once, each script once");
    }
    System.out.println("ok: all");
  }
}
