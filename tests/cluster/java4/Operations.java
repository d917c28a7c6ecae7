import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.uuid.Uuids;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** Requests with ids while nodes are killed, by the Java driver 4.x: each is done once. See docs/operation-ids.md. */
public final class Operations {
  static final String KEYSPACE = "operations_java4";
  static final int WORKERS = 16;
  static final double SECONDS = Double.parseDouble(System.getenv().getOrDefault("PERISTYLE_SECONDS", "5"));
  /** An id is good for five minutes. */
  static final Duration PATIENCE = Duration.ofMinutes(2);

  final AtomicInteger repeats = new AtomicInteger();
  final CqlSession session;
  final PreparedStatement count, begin, change;

  Operations(CqlSession session) {
    this.session = session;
    count = session.prepare("UPDATE " + KEYSPACE + ".visits SET count = count + 1 WHERE page = 'front'");
    begin = session.prepare(
        "INSERT INTO " + KEYSPACE + ".accounts (name, version) VALUES (?, 0) IF NOT EXISTS");
    change = session.prepare(
        "UPDATE " + KEYSPACE + ".accounts SET version = ? WHERE name = ? IF version = ?");
  }

  static CqlSession connect() {
    DriverConfigLoader options = DriverConfigLoader.programmaticBuilder()
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(10))
        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "QUORUM")
        // With an id it may be sent again, and to several nodes at once.
        .withBoolean(DefaultDriverOption.REQUEST_DEFAULT_IDEMPOTENCE, true)
        .withString(
            DefaultDriverOption.SPECULATIVE_EXECUTION_POLICY_CLASS, "ConstantSpeculativeExecutionPolicy")
        .withInt(DefaultDriverOption.SPECULATIVE_EXECUTION_MAX, 2)
        .withDuration(DefaultDriverOption.SPECULATIVE_EXECUTION_DELAY, Duration.ofMillis(50))
        .withString(DefaultDriverOption.RECONNECTION_POLICY_CLASS, "ConstantReconnectionPolicy")
        .withDuration(DefaultDriverOption.RECONNECTION_BASE_DELAY, Duration.ofMillis(500))
        .build();
    int port = Integer.parseInt(System.getenv("PERISTYLE_ADDRESS").split(":")[1]);
    return CqlSession.builder()
        .addContactPoint(new InetSocketAddress("127.0.0.1", port))
        .addContactPoint(new InetSocketAddress("127.0.0.2", port))
        .addContactPoint(new InetSocketAddress("127.0.0.3", port))
        .withLocalDatacenter("datacenter1")
        .withConfigLoader(options)
        .build();
  }

  /** The name of an operation: it goes with every attempt, those of the driver and our own. */
  static BoundStatement named(BoundStatement statement) {
    UUID id = Uuids.timeBased();
    ByteBuffer bytes = ByteBuffer.allocate(16);
    bytes.putLong(id.getMostSignificantBits()).putLong(id.getLeastSignificantBits()).flip();
    return statement.setCustomPayload(Map.of("operation-id", bytes));
  }

  ResultSet untilAnswered(BoundStatement statement) throws InterruptedException {
    BoundStatement named = named(statement);
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (true) {
      try {
        return session.execute(named);
      } catch (DriverException error) {
        // It may be done, or not: asked again under its id, it is not done again.
        repeats.incrementAndGet();
        if (System.nanoTime() > end) {
          throw error;
        }
        Thread.sleep(50);
      }
    }
  }

  /** It must be applied: a refusal would be against our own change. */
  void mustApply(BoundStatement statement, String what) throws InterruptedException {
    ResultSet result = untilAnswered(statement);
    if (!result.wasApplied()) {
      throw new IllegalStateException(what + " is refused: " + result.one().getFormattedContents());
    }
  }

  /** Counts visits, and up the version of an account that nobody else changes; returns how often. */
  int work(int worker) throws InterruptedException {
    String name = "account " + worker;
    mustApply(begin.bind(name), name);
    long end = System.nanoTime() + (long) (1e9 * SECONDS);
    int version = 0;
    while (System.nanoTime() < end) {
      version++;
      untilAnswered(count.bind());
      mustApply(change.bind(version, name, version - 1), name + ", version " + version);
    }
    return version;
  }

  void run() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(WORKERS);
    List<Future<Integer>> working = new ArrayList<>();
    for (int worker = 0; worker < WORKERS; worker++) {
      int number = worker;
      working.add(threads.submit(() -> work(number)));
    }
    long wanted = 0;
    for (Future<Integer> one : working) {
      wanted += one.get();
    }
    threads.shutdown();
    PreparedStatement read = session.prepare("SELECT count FROM " + KEYSPACE + ".visits WHERE page = 'front'");
    long counted = untilAnswered(read.bind()).one().getLong(0);
    if (wanted < SECONDS * WORKERS) {
      throw new IllegalStateException("only " + wanted + " visits in " + SECONDS + " s");
    }
    if (counted != wanted) {
      throw new IllegalStateException(counted + " visits instead of " + wanted);
    }
    System.out.println("ok: " + 2 * counted + " operations, each done once; " + repeats.get()
        + " were asked again by the application");
  }

  public static void main(String[] words) throws Exception {
    try (CqlSession session = connect()) {
      String replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
      for (String text : List.of(
          "CREATE KEYSPACE " + KEYSPACE + " WITH replication = " + replication,
          "CREATE TABLE " + KEYSPACE + ".visits (page text PRIMARY KEY, count counter)",
          "CREATE TABLE " + KEYSPACE + ".accounts (name text PRIMARY KEY, version int)")) {
        // A change of the schema has no id: to do it twice is an error.
        session.execute(SimpleStatement.newInstance(text).setIdempotent(false));
      }
      System.out.println("ready");
      new Operations(session).run();
    }
  }
}
