import com.datastax.oss.driver.api.core.AllNodesFailedException;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.DriverTimeoutException;
import com.datastax.oss.driver.api.core.DefaultProtocolVersion;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.connection.ClosedConnectionException;
import com.datastax.oss.driver.api.core.connection.HeartbeatException;
import com.datastax.oss.driver.api.core.cql.*;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.*;
import java.util.concurrent.CompletionStage;

/** The round of work of tests/drivers/README.md, with the Java driver 4.x (protocol v5). */
public final class Round {
  static final String KEYSPACE = "driver_java4";
  static final int ROWS = 100_000, PER_PARTITION = 1_000, IN_FLIGHT = 1_000;
  static final int LARGE_ROWS = 1_000, LARGE_PARTITIONS = 4, LARGE_BYTES = 50_000;
  static final long RECOVERY_MS = 60_000;

  /** Name, CQL type, value. */
  static Object[][] types() throws Exception {
    return new Object[][] {
      {"c_ascii", "ascii", "abc"},
      {"c_bigint", "bigint", Long.MIN_VALUE},
      {"c_blob", "blob", ByteBuffer.wrap(new byte[] {0, -1, 16})},
      {"c_boolean", "boolean", true},
      {"c_date", "date", LocalDate.of(2024, 2, 29)},
      {"c_decimal", "decimal", new BigDecimal("-12345678901234567890.0500")},
      {"c_double", "double", -0.1},
      {"c_duration", "duration", CqlDuration.newInstance(1, 2, 3)},
      {"c_float", "float", 3.5f},
      {"c_inet", "inet", InetAddress.getByName("2001:db8::1")},
      {"c_int", "int", Integer.MIN_VALUE},
      {"c_smallint", "smallint", Short.MIN_VALUE},
      {"c_text", "text", "gr\u00fc\u00dfe \ud83c\udf0d"},
      {"c_time", "time", LocalTime.ofNanoOfDay(86_399_999_999_999L)},
      {"c_timestamp", "timestamp", Instant.ofEpochMilli(-1)},
      {"c_timeuuid", "timeuuid", UUID.fromString("13814000-1dd2-11b2-8080-808080808080")},
      {"c_tinyint", "tinyint", Byte.MIN_VALUE},
      {"c_uuid", "uuid", UUID.fromString("00112233-4455-6677-8899-aabbccddeeff")},
      {"c_varint", "varint", new BigInteger("-170141183460469231731687303715884105729")},
      {"c_list", "list<int>", Arrays.asList(3, 1, 2, 1)},
      {"c_set", "set<text>", new HashSet<>(Arrays.asList("a", "b"))},
      {"c_map", "map<text, bigint>", Map.of("k", 1L, "l", -1L)},
      {"c_frozen_list", "frozen<list<text>>", Arrays.asList("x", "y")},
      {"c_frozen_map", "frozen<map<int, frozen<list<int>>>>", Map.of(1, Arrays.asList(1, 2), 2, Collections.emptyList())},
    };
  }

  static CqlSessionBuilder builder() {
    String[] address = System.getenv().getOrDefault("PERISTYLE_ADDRESS", "127.0.0.1:9042").split(":");
    DriverConfigLoader options = DriverConfigLoader.programmaticBuilder()
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(30))
        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "LOCAL_QUORUM")
        .withString(DefaultDriverOption.RECONNECTION_POLICY_CLASS, "ConstantReconnectionPolicy")
        .withDuration(DefaultDriverOption.RECONNECTION_BASE_DELAY, Duration.ofMillis(200))
        .withDuration(DefaultDriverOption.METADATA_SCHEMA_WINDOW, Duration.ofMillis(50))
        .withInt(DefaultDriverOption.CONNECTION_MAX_REQUESTS, 2048)
        .build();
    return CqlSession.builder()
        .addContactPoint(new InetSocketAddress(address[0], Integer.parseInt(address[1])))
        .withLocalDatacenter("datacenter1")
        .withConfigLoader(options);
  }

  static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError("failed: " + what);
  }

  static void equal(Object got, Object expected, String what) {
    if (!Objects.equals(got, expected)) throw new AssertionError("failed: " + what + ": got " + got + ", expected " + expected);
  }

  static Optional<TableMetadata> table(CqlSession session, String name) {
    return session.getMetadata().getKeyspace(KEYSPACE).flatMap(keyspace -> keyspace.getTable(name));
  }

  static void schema(CqlSession session) throws Exception {
    session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.execute("USE " + KEYSPACE);
    StringBuilder columns = new StringBuilder();
    for (Object[] type : types()) columns.append(", ").append(type[0]).append(' ').append(type[1]);
    session.execute("CREATE TABLE every_type (k int PRIMARY KEY" + columns + ")");
    session.execute("CREATE TABLE wide (k int, c int, v text, s text STATIC, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'wide'");
    TableMetadata wide = table(session, "wide").get();
    equal(new ArrayList<>(wide.getClusteringColumns().values()), List.of(ClusteringOrder.DESC), "clustering order");
    check(wide.getColumn("s").get().isStatic(), "static column");
    check(wide.describe(true).contains("wide"), "describe");
    TableMetadata every = table(session, "every_type").get();
    for (Object[] type : types()) equal(every.getColumn((String) type[0]).get().getType().asCql(true, true), type[1], "type of " + type[0]);
    check(session.getMetadata().getTokenMap().isPresent(), "token map");
    equal(session.getContext().getProtocolVersion(), DefaultProtocolVersion.V5, "protocol version");
  }

  static void everyType(CqlSession session) throws Exception {
    StringBuilder names = new StringBuilder("k"), marks = new StringBuilder("?");
    for (Object[] type : types()) {
      names.append(", ").append(type[0]);
      marks.append(", ?");
    }
    PreparedStatement insert = session.prepare("INSERT INTO every_type (" + names + ") VALUES (" + marks + ")");
    PreparedStatement select = session.prepare("SELECT * FROM every_type WHERE k = ?");
    Object[] values = new Object[types().length + 1], nulls = new Object[types().length + 1];
    values[0] = 1;
    nulls[0] = 2;
    for (int i = 0; i < types().length; i++) values[i + 1] = types()[i][2];
    session.execute(insert.bind(values));
    session.execute(insert.bind(nulls));
    session.execute(insert.bind(3)); // the rest stays unset
    Row row = session.execute(select.bind(1)).one();
    for (Object[] type : types()) equal(row.getObject((String) type[0]), type[2], (String) type[0]);
    for (int key = 2; key <= 3; key++) {
      Row empty = session.execute(select.bind(key)).one();
      for (Object[] type : types()) check(empty.isNull((String) type[0]), "null in " + type[0]);
    }
    Row plain = session.execute("SELECT c_text, c_int FROM every_type WHERE k = ?", 1).one();
    equal(plain.getInt("c_int"), Integer.MIN_VALUE, "a plain statement with values");
  }

  static void paging(CqlSession session) {
    PreparedStatement insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)");
    ArrayDeque<CompletionStage<AsyncResultSet>> pending = new ArrayDeque<>();
    for (int i = 0; i < ROWS; i++) {
      if (pending.size() == 500) pending.poll().toCompletableFuture().join();
      pending.add(session.executeAsync(insert.bind(i / PER_PARTITION, i % PER_PARTITION, "value " + i)));
    }
    while (!pending.isEmpty()) pending.poll().toCompletableFuture().join();
    ResultSet result = session.execute(SimpleStatement.newInstance("SELECT k, c, v FROM wide").setPageSize(1000));
    Map<Integer, Integer> last = new HashMap<>();
    int seen = 0;
    for (Row row : result) {
      int k = row.getInt(0), c = row.getInt(1);
      equal(row.getString(2), "value " + (k * PER_PARTITION + c), "value");
      equal(c, last.getOrDefault(k, PER_PARTITION) - 1, "falling order");
      last.put(k, c);
      seen++;
    }
    equal(seen, ROWS, "rows");
    int pages = result.getExecutionInfos().size();
    check(pages >= ROWS / 1000 && pages <= ROWS / 1000 + 2, pages + " pages");
    SimpleStatement slice = SimpleStatement.newInstance("SELECT c FROM wide WHERE k = 7").setPageSize(10);
    ByteBuffer state = session.execute(slice).getExecutionInfo().getPagingState();
    equal(session.execute(slice.setPagingState(state)).one().getInt(0), 989, "resumed page");
  }

  /** A page of the driver's default size would be 250 MB of these: it ends by bytes, and the driver asks for the next. */
  static void largeRows(CqlSession session) {
    session.execute("CREATE TABLE large (k int, c int, v text, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO large (k, c, v) VALUES (?, ?, ?)");
    ArrayDeque<CompletionStage<AsyncResultSet>> pending = new ArrayDeque<>();
    for (int i = 0; i < LARGE_ROWS; i++) {
      if (pending.size() == 50) pending.poll().toCompletableFuture().join();
      pending.add(session.executeAsync(insert.bind(i % LARGE_PARTITIONS, i / LARGE_PARTITIONS, large(i))));
    }
    while (!pending.isEmpty()) pending.poll().toCompletableFuture().join();
    int each = LARGE_ROWS / LARGE_PARTITIONS;
    equal(readLarge(session, "SELECT k, c, v FROM large"), LARGE_ROWS, "rows of a scan");
    equal(readLarge(session, "SELECT k, c, v FROM large WHERE k = 3"), each, "rows of a partition");
    equal(readLarge(session, "SELECT k, c, v FROM large WHERE k = 3 AND c >= 10 AND c < 110"), 100, "rows of a slice");
    equal(readLarge(session, "SELECT k, c, v FROM large WHERE k = 3 ORDER BY c DESC"), each, "rows backwards");
    equal(readLarge(session, "SELECT k, c, v FROM large WHERE k IN (0, 1, 2, 3)"), LARGE_ROWS, "rows of keys");
    Set<String> texts = new HashSet<>();
    for (Row row : session.execute("SELECT JSON k, c, v FROM large")) texts.add(row.getString(0));
    equal(texts.size(), LARGE_ROWS, "rows as JSON");
    for (int i = 0; i < LARGE_ROWS; i++) {
      String text = String.format("{\"k\": %d, \"c\": %d, \"v\": \"%s\"}", i % LARGE_PARTITIONS, i / LARGE_PARTITIONS, large(i));
      check(texts.contains(text), "JSON of row " + i);
    }
  }

  static String large(int i) {
    return ("value " + i + " ").repeat(LARGE_BYTES).substring(0, LARGE_BYTES);
  }

  /** How many different rows there are, each with its own value. */
  static int readLarge(CqlSession session, String text) {
    Set<Integer> seen = new HashSet<>();
    for (Row row : session.execute(text)) {
      int i = row.getInt(1) * LARGE_PARTITIONS + row.getInt(0);
      check(row.getString(2).equals(large(i)), "value of row " + i);
      check(seen.add(i), "row " + i + " comes once");
    }
    return seen.size();
  }

  static void batches(CqlSession session) {
    PreparedStatement insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)");
    int key = 1001;
    for (DefaultBatchType kind : List.of(DefaultBatchType.LOGGED, DefaultBatchType.UNLOGGED)) {
      BatchStatementBuilder batch = BatchStatement.builder(kind);
      for (int c = 0; c < 10; c++) batch.addStatement(insert.bind(key, c, "batch " + c));
      batch.addStatement(SimpleStatement.newInstance("UPDATE wide SET s = ? WHERE k = ?", kind.name(), key));
      session.execute(batch.build());
      List<Row> rows = session.execute("SELECT c, s FROM wide WHERE k = ?", key).all();
      equal(rows.size(), 10, kind + " batch");
      equal(rows.get(0).getString("s"), kind.name(), "static of the batch");
      key++;
    }
  }

  static void inFlight(CqlSession session) {
    PreparedStatement select = session.prepare("SELECT v FROM wide WHERE k = ? AND c = ?");
    List<CompletionStage<AsyncResultSet>> futures = new ArrayList<>();
    for (int i = 0; i < IN_FLIGHT; i++) futures.add(session.executeAsync(select.bind(i % 100, i)));
    for (int i = 0; i < IN_FLIGHT; i++)
      equal(futures.get(i).toCompletableFuture().join().one().getString(0), "value " + (i % 100 * PER_PARTITION + i), "answer in flight");
  }

  interface Condition { boolean holds(); }

  static void waitFor(String what, Condition condition) throws InterruptedException {
    long end = System.currentTimeMillis() + 10_000;
    while (!condition.holds()) {
      check(System.currentTimeMillis() < end, "no event: " + what);
      Thread.sleep(50);
    }
  }

  static void events(CqlSession session) throws InterruptedException {
    try (CqlSession other = builder().withKeyspace(KEYSPACE).build()) {
      session.execute("CREATE TABLE heard (k int PRIMARY KEY)");
      waitFor("created", () -> table(other, "heard").isPresent());
      session.execute("ALTER TABLE heard ADD more text");
      waitFor("altered", () -> table(other, "heard").get().getColumn("more").isPresent());
      session.execute("DROP TABLE heard");
      waitFor("dropped", () -> table(other, "heard").isEmpty());
    }
  }

  static void reconnect(CqlSession session) throws Exception {
    PreparedStatement select = session.prepare("SELECT v FROM wide WHERE k = ? AND c = ?");
    int status = new ProcessBuilder("sh", "-c", System.getenv("PERISTYLE_RESTART")).inheritIO().start().waitFor();
    equal(status, 0, "PERISTYLE_RESTART");
    long end = System.currentTimeMillis() + RECOVERY_MS;
    while (true) {
      try {
        equal(session.execute(select.bind(3, 4)).one().getString(0), "value 3004", "value after the restart");
        break;
      } catch (AllNodesFailedException | DriverTimeoutException | ClosedConnectionException | HeartbeatException e) {
        check(System.currentTimeMillis() < end, "no recovery: " + e);
        Thread.sleep(100);
      }
    }
    equal(session.execute("SELECT count(*) FROM wide WHERE k = 9").one().getLong(0), (long) PER_PARTITION, "rows after the restart");
  }

  interface Step { void run() throws Exception; }

  static void step(String name, Step step) throws Exception {
    long started = System.nanoTime();
    step.run();
    System.out.printf(Locale.ROOT, "ok: %s (%.1f s)%n", name, (System.nanoTime() - started) / 1e9);
  }

  public static void main(String[] arguments) throws Exception {
    try (CqlSession session = builder().build()) {
      step("schema", () -> schema(session));
      step("every type", () -> everyType(session));
      step("paging", () -> paging(session));
      step("large rows", () -> largeRows(session));
      step("batches", () -> batches(session));
      step("in flight", () -> inFlight(session));
      step("events", () -> events(session));
      if (System.getenv("PERISTYLE_RESTART") != null) step("reconnect", () -> reconnect(session));
      session.execute("DROP KEYSPACE " + KEYSPACE);
    } catch (Throwable e) {
      e.printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }
}
