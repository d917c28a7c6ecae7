import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import liquibase.Contexts;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.ClassLoaderResourceAccessor;

/** Liquibase: change logs run under its lock, by one and by two at once. */
public final class Liquibase {
  static final String KEYSPACE = "application_liquibase";
  /** In which two processes come to ask for the lock, again and again. */
  static final long WAIT_MS = 12_000;

  static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError("failed: " + what);
  }

  static Connection connect(String keyspace) throws SQLException {
    String address = System.getenv().getOrDefault("PERISTYLE_ADDRESS", "127.0.0.1:9042");
    String options = "?localdatacenter=datacenter1&compliancemode=Liquibase";
    return DriverManager.getConnection("jdbc:cassandra://" + address + "/" + keyspace + options);
  }

  /** Runs a change log, as an application does when it starts. */
  static void update(String changes) throws Exception {
    Database database =
        DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connect(KEYSPACE)));
    ClassLoaderResourceAccessor files = new ClassLoaderResourceAccessor();
    try (liquibase.Liquibase liquibase = new liquibase.Liquibase(changes, files, database)) {
      liquibase.update(new Contexts());
    }
  }

  /** A process that runs a change log, on a machine of that address, as it believes: Liquibase tells owners by it. */
  static Process start(String changes, String address) throws Exception {
    Path hosts = Files.createTempFile("hosts", null);
    hosts.toFile().deleteOnExit();
    String name = Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
    Files.writeString(hosts, "127.0.0.1 localhost\n" + address + " " + name + "\n");
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx256m",
            "-Djdk.net.hosts.file=" + hosts,
            "-Dliquibase.changelogLockPollRate=1",
            "-cp",
            System.getProperty("java.class.path"),
            "Liquibase",
            changes)
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  /** The first column of all rows, as text. */
  static List<String> column(Connection connection, String query) throws SQLException {
    List<String> found = new ArrayList<>();
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(query)) {
      while (rows.next()) found.add(rows.getString(1));
    }
    return found;
  }

  static void execute(String query) throws SQLException {
    try (Connection connection = connect("system"); Statement statement = connection.createStatement()) {
      statement.execute(query);
    }
  }

  /** Takes the lock for somebody else, or frees it. */
  static void lock(boolean taken) throws SQLException {
    execute("UPDATE " + KEYSPACE + ".databasechangeloglock SET locked = " + taken + ", lockedby = 'somebody else'"
        + " WHERE id = 1 IF locked = " + !taken);
  }

  /** These changes were made, each once, and the lock is taken or free. */
  static void look(List<String> changes, String runs, boolean taken) throws SQLException {
    try (Connection connection = connect(KEYSPACE)) {
      List<String> made = column(connection, "SELECT id FROM databasechangelog");
      made.sort(null);
      check(made.equals(changes), "the changes that were made: " + made);
      List<String> counted = column(connection, "SELECT runs FROM visit WHERE page = 'start'");
      check(counted.equals(List.of(runs)), "changes that count were made once: " + counted);
      check(column(connection, "SELECT owner FROM account WHERE id = 1").equals(List.of("ada")), "the row inserted");
      List<String> locked = column(connection, "SELECT locked FROM databasechangeloglock WHERE id = 1");
      check(locked.equals(List.of(String.valueOf(taken))), "the lock is taken or free: " + locked);
    }
  }

  public static void main(String[] arguments) throws Exception {
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    Logger.getLogger("").setLevel(Level.WARNING);
    if (arguments.length > 0) {
      update(arguments[0]);
      return;
    }
    execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = "
        + Common.replication());
    List<String> first = List.of("1-account", "2-owner", "3-ada", "4-visit", "5-start");
    update("changes.xml");
    look(first, "1", false);
    System.out.println("ok: a change log");

    update("changes.xml");
    look(first, "1", false);
    System.out.println("ok: nothing to do");

    lock(true);
    List<Process> rivals = List.of(start("more.xml", "192.0.2.1"), start("more.xml", "192.0.2.2"));
    Thread.sleep(WAIT_MS);
    for (Process rival : rivals) check(rival.isAlive(), "it waits for the lock");
    look(first, "1", true);
    lock(false);
    for (Process rival : rivals) check(rival.waitFor() == 0, "one of two at once ends well");
    look(List.of("1-account", "2-owner", "3-ada", "4-visit", "5-start", "6-twice", "7-since", "8-thrice"), "3", false);
    System.out.println("ok: two at once, each change once");
    System.out.println("ok: all");
    System.exit(0);
  }
}
