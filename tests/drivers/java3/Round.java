import com.datastax.driver.core.*;
import com.datastax.driver.core.exceptions.NoHostAvailableException;
import com.datastax.driver.core.exceptions.OperationTimedOutException;
import com.datastax.driver.core.exceptions.TransportException;
import com.datastax.driver.core.policies.ConstantReconnectionPolicy;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.*;

/** The round of work of tests/drivers/README.md, with the Java driver 3.x (protocol v4). */
public final class Round {
  static final String KEYSPACE = "driver_java3";
  static final int ROWS = 100_000, PER_PARTITION = 1_000, IN_FLIGHT = 1_000;
  static final long RECOVERY_MS = 60_000;

  /** Name, CQL type, value. */
  static final Object[][] TYPES;

  static {
    try {
      TYPES = new Object[][] {
        {"c_ascii", "ascii", "abc"},
        {"c_bigint", "bigint", Long.MIN_VALUE},
        {"c_blob", "blob", ByteBuffer.wrap(new byte[] {0, -1, 16})},
        {"c_boolean", "boolean", true},
        {"c_date", "date", LocalDate.fromYearMonthDay(2024, 2, 29)},
        {"c_decimal", "decimal", new BigDecimal("-12345678901234567890.0500")},
        {"c_double", "double", -0.1},
        {"c_duration", "duration", Duration.newInstance(1, 2, 3)},
        {"c_float", "float", 3.5f},
        {"c_inet", "inet", InetAddress.getByName("2001:db8::1")},
        {"c_int", "int", Integer.MIN_VALUE},
        {"c_smallint", "smallint", Short.MIN_VALUE},
        {"c_text", "text", "gr\u00fc\u00dfe \ud83c\udf0d"},
        {"c_time", "time", 86_399_999_999_999L},
        {"c_timestamp", "timestamp", new Date(-1)},
        {"c_timeuuid", "timeuuid", UUID.fromString("13814000-1dd2-11b2-8080-808080808080")},
        {"c_tinyint", "tinyint", Byte.MIN_VALUE},
        {"c_uuid", "uuid", UUID.fromString("00112233-4455-6677-8899-aabbccddeeff")},
        {"c_varint", "varint", new BigInteger("-170141183460469231731687303715884105729")},
        {"c_list", "list<int>", Arrays.asList(3, 1, 2, 1)},
        {"c_set", "set<text>", new HashSet<>(Arrays.asList("a", "b"))},
        {"c_map", "map<text, bigint>", new HashMap<>(Map.of("k", 1L, "l", -1L))},
        {"c_frozen_list", "frozen<list<text>>", Arrays.asList("x", "y")},
        {"c_frozen_map", "frozen<map<int, frozen<list<int>>>>", Map.of(1, Arrays.asList(1, 2), 2, Collections.emptyList())},
      };
    } catch (Exception e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  static Cluster connect() {
    String[] address = System.getenv().getOrDefault("PERISTYLE_ADDRESS", "127.0.0.1:9042").split(":");
    PoolingOptions pooling = new PoolingOptions().setMaxRequestsPerConnection(HostDistance.LOCAL, 2048).setMaxQueueSize(2048);
    return Cluster.builder()
        .addContactPoint(address[0])
        .withPort(Integer.parseInt(address[1]))
        .withPoolingOptions(pooling)
        .withReconnectionPolicy(new ConstantReconnectionPolicy(200))
        .withQueryOptions(new QueryOptions().setConsistencyLevel(ConsistencyLevel.LOCAL_QUORUM).setRefreshSchemaIntervalMillis(0))
        .withProtocolVersion(ProtocolVersion.V4) // the other drivers speak v5
        .withoutJMXReporting()
        .build();
  }

  static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError("failed: " + what);
  }

  static void equal(Object got, Object expected, String what) {
    if (!Objects.equals(got, expected)) throw new AssertionError("failed: " + what + ": got " + got + ", expected " + expected);
  }

  static void schema(Cluster cluster, Session session) {
    session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.execute("USE " + KEYSPACE);
    StringBuilder columns = new StringBuilder();
    for (Object[] type : TYPES) columns.append(", ").append(type[0]).append(' ').append(type[1]);
    session.execute("CREATE TABLE every_type (k int PRIMARY KEY" + columns + ")");
    session.execute("CREATE TABLE wide (k int, c int, v text, s text STATIC, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'wide'");
    TableMetadata wide = cluster.getMetadata().getKeyspace(KEYSPACE).getTable("wide");
    equal(wide.getClusteringOrder(), List.of(ClusteringOrder.DESC), "clustering order");
    check(wide.getColumn("s").isStatic(), "static column");
    equal(wide.getOptions().getComment(), "wide", "comment");
    TableMetadata every = cluster.getMetadata().getKeyspace(KEYSPACE).getTable("every_type");
    for (Object[] type : TYPES) equal(every.getColumn((String) type[0]).getType().toString(), type[1], "type of " + type[0]);
    check(wide.exportAsString().contains("CREATE TABLE driver_java3.wide"), "export as CQL");
    check(!cluster.getMetadata().getTokenRanges().isEmpty(), "token ranges");
    equal(cluster.getConfiguration().getProtocolOptions().getProtocolVersion(), ProtocolVersion.V4, "protocol version");
  }

  static void everyType(Session session) {
    StringBuilder names = new StringBuilder("k"), marks = new StringBuilder("?");
    for (Object[] type : TYPES) {
      names.append(", ").append(type[0]);
      marks.append(", ?");
    }
    PreparedStatement insert = session.prepare("INSERT INTO every_type (" + names + ") VALUES (" + marks + ")");
    PreparedStatement select = session.prepare("SELECT * FROM every_type WHERE k = ?");
    Object[] values = new Object[TYPES.length + 1];
    values[0] = 1;
    for (int i = 0; i < TYPES.length; i++) values[i + 1] = TYPES[i][2];
    session.execute(insert.bind(values));
    Object[] nulls = new Object[TYPES.length + 1];
    nulls[0] = 2;
    session.execute(insert.bind(nulls));
    session.execute(insert.bind(3)); // the rest stays unset
    Row row = session.execute(select.bind(1)).one();
    for (Object[] type : TYPES) equal(row.getObject((String) type[0]), type[2], (String) type[0]);
    for (int key = 2; key <= 3; key++) {
      Row empty = session.execute(select.bind(key)).one();
      for (Object[] type : TYPES) check(empty.isNull((String) type[0]), "null in " + type[0]);
    }
    Row plain = session.execute("SELECT c_text, c_int FROM every_type WHERE k = ?", 1).one();
    equal(plain.getInt("c_int"), Integer.MIN_VALUE, "a plain statement with values");
  }

  static void paging(Session session) {
    PreparedStatement insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)");
    ArrayDeque<ResultSetFuture> pending = new ArrayDeque<>();
    for (int i = 0; i < ROWS; i++) {
      if (pending.size() == 500) pending.poll().getUninterruptibly();
      pending.add(session.executeAsync(insert.bind(i / PER_PARTITION, i % PER_PARTITION, "value " + i)));
    }
    while (!pending.isEmpty()) pending.poll().getUninterruptibly();
    ResultSet result = session.execute(new SimpleStatement("SELECT k, c, v FROM wide").setFetchSize(1000));
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
    int pages = result.getAllExecutionInfo().size();
    check(pages >= ROWS / 1000 && pages <= ROWS / 1000 + 2, pages + " pages");
    Statement slice = new SimpleStatement("SELECT c FROM wide WHERE k = 7").setFetchSize(10);
    PagingState state = session.execute(slice).getExecutionInfo().getPagingState();
    equal(session.execute(slice.setPagingState(state)).one().getInt(0), 989, "resumed page");
  }

  static void batches(Session session) {
    PreparedStatement insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)");
    int key = 1001;
    for (BatchStatement.Type kind : List.of(BatchStatement.Type.LOGGED, BatchStatement.Type.UNLOGGED)) {
      BatchStatement batch = new BatchStatement(kind);
      for (int c = 0; c < 10; c++) batch.add(insert.bind(key, c, "batch " + c));
      batch.add(new SimpleStatement("UPDATE wide SET s = ? WHERE k = ?", kind.name(), key));
      session.execute(batch);
      List<Row> rows = session.execute("SELECT c, s FROM wide WHERE k = ?", key).all();
      equal(rows.size(), 10, kind + " batch");
      equal(rows.get(0).getString("s"), kind.name(), "static of the batch");
      key++;
    }
  }

  static void inFlight(Session session) {
    PreparedStatement select = session.prepare("SELECT v FROM wide WHERE k = ? AND c = ?");
    List<ResultSetFuture> futures = new ArrayList<>();
    for (int i = 0; i < IN_FLIGHT; i++) futures.add(session.executeAsync(select.bind(i % 100, i)));
    for (int i = 0; i < IN_FLIGHT; i++)
      equal(futures.get(i).getUninterruptibly().one().getString(0), "value " + (i % 100 * PER_PARTITION + i), "answer in flight");
  }

  interface Condition { boolean holds(); }

  static void waitFor(String what, Condition condition) throws InterruptedException {
    long end = System.currentTimeMillis() + 10_000;
    while (!condition.holds()) {
      check(System.currentTimeMillis() < end, "no event: " + what);
      Thread.sleep(50);
    }
  }

  static void events(Session session) throws InterruptedException {
    try (Cluster other = connect()) {
      other.connect(KEYSPACE);
      session.execute("CREATE TABLE heard (k int PRIMARY KEY)");
      waitFor("created", () -> other.getMetadata().getKeyspace(KEYSPACE).getTable("heard") != null);
      session.execute("ALTER TABLE heard ADD more text");
      waitFor("altered", () -> other.getMetadata().getKeyspace(KEYSPACE).getTable("heard").getColumn("more") != null);
      session.execute("DROP TABLE heard");
      waitFor("dropped", () -> other.getMetadata().getKeyspace(KEYSPACE).getTable("heard") == null);
    }
  }

  static void reconnect(Session session) throws Exception {
    PreparedStatement select = session.prepare("SELECT v FROM wide WHERE k = ? AND c = ?");
    int status = new ProcessBuilder("sh", "-c", System.getenv("PERISTYLE_RESTART")).inheritIO().start().waitFor();
    equal(status, 0, "PERISTYLE_RESTART");
    long end = System.currentTimeMillis() + RECOVERY_MS;
    while (true) {
      try {
        equal(session.execute(select.bind(3, 4)).one().getString(0), "value 3004", "value after the restart");
        break;
      } catch (NoHostAvailableException | OperationTimedOutException | TransportException e) {
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
    try (Cluster cluster = connect()) {
      Session session = cluster.connect();
      step("schema", () -> schema(cluster, session));
      step("every type", () -> everyType(session));
      step("paging", () -> paging(session));
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
