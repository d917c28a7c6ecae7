import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

/** The round of tests/cluster/README.md in which a node is lost, with whichever Java driver there is. */
final class Loss {
  /** What a driver is asked for. Levels are those of CQL, by name. */
  interface Driver {
    /** Address to tokens, of the hosts that are up. */
    Map<String, Set<String>> tokensOfHostsUp();
    /** The replicas that the driver finds by itself, in its order. */
    List<String> replicas(Places.Row row);
    /** Inserts into this keyspace's table; the answer is the address of the node that was asked. */
    String insert(String keyspace, int id, String value);
    String select(int id, String level);
    /** The keyspace with a replica of every row on every node, and its table. */
    void createTable();
    long count();
  }

  private static final int WRITERS = 8;
  private static final long SETTLE_MS = 30_000;
  /** The node of the contact point: the driver's control connection goes with it. */
  private static final String LOST = "1", LOST_ADDRESS = "127.0.0.1";

  private final Driver driver;
  private final Places places;
  private final Set<Integer> acknowledged = ConcurrentHashMap.newKeySet();
  private final Queue<String> failures = new ConcurrentLinkedQueue<>();
  private final AtomicInteger next = new AtomicInteger();
  private volatile boolean isOver;

  private Loss(Driver driver, Places places) {
    this.driver = driver;
    this.places = places;
  }

  static void round(Driver driver) throws Exception {
    Loss loss = new Loss(driver, Places.read());
    loss.seesTheRing();
    loss.findsReplicas();
    driver.createTable();
    loss.losesANode();
    loss.hasAllRows();
  }

  private void seesTheRing() throws Exception {
    waitFor("all hosts are up, with our tokens", () -> driver.tokensOfHostsUp().equals(places.tokens));
    System.out.println("ok: " + places.tokens.size() + " hosts with their tokens");
  }

  private void findsReplicas() {
    int owned = 0;
    for (Places.Row row : places.rows) {
      equal(driver.replicas(row), row.replicas(), "replicas of " + row.name());
      if (row.replicas().size() > 1) continue;
      equal(driver.insert(row.keyspace(), row.key(), "v"), row.replicas().get(0), "who was asked for " + row.name());
      owned++;
    }
    check(owned > 0, "there are rows with one replica");
    System.out.println("ok: replicas of " + places.rows.size() + " rows, " + owned + " sent to their only one");
  }

  private void losesANode() throws Exception {
    ExecutorService writers = Executors.newFixedThreadPool(WRITERS);
    for (int i = 0; i < WRITERS; i++) writers.submit(this::write);
    try {
      goesOn("before");
      cluster("kill " + LOST);
      goesOn("without node " + LOST);
      waitFor("the driver sees that it is down", () -> !driver.tokensOfHostsUp().containsKey(LOST_ADDRESS));
      cluster("start " + LOST);
      goesOn("with it again");
    } finally {
      isOver = true;
      writers.shutdown();
      check(writers.awaitTermination(SETTLE_MS, TimeUnit.MILLISECONDS), "writers end");
    }
    check(failures.isEmpty(), failures.size() + " requests failed: " + failures.stream().distinct().limit(5).toList());
  }

  private void write() {
    while (!isOver) {
      int id = next.getAndIncrement();
      try {
        driver.insert(null, id, "v" + id);
        acknowledged.add(id);
        String found = driver.select(id, "QUORUM");
        if (!("v" + id).equals(found)) failures.add("row " + id + " is shown as " + found);
      } catch (RuntimeException e) {
        failures.add(e.toString());
      }
    }
  }

  /** Rows are written for a while. */
  private void goesOn(String when) throws InterruptedException {
    int before = acknowledged.size();
    Thread.sleep((long) (1000 * Double.parseDouble(System.getenv("PERISTYLE_REST_SECONDS"))));
    int written = acknowledged.size() - before;
    System.out.println("ok: " + written + " rows written " + when);
    check(written > 0, "rows are written " + when);
  }

  private static void cluster(String words) throws Exception {
    Process process = new ProcessBuilder("sh", "-c", System.getenv("PERISTYLE_CLUSTER") + " " + words).inheritIO().start();
    equal(process.waitFor(), 0, words);
  }

  private void hasAllRows() throws Exception {
    waitFor("all hosts are up again", () -> driver.tokensOfHostsUp().equals(places.tokens));
    for (String level : List.of("QUORUM", "ALL")) {
      List<Integer> lost = acknowledged.parallelStream().filter(id -> !("v" + id).equals(driver.select(id, level))).toList();
      check(lost.isEmpty(), lost.size() + " acknowledged rows are not there at " + level);
    }
    equal(driver.count(), (long) acknowledged.size(), "rows counted");
    System.out.println("ok: " + acknowledged.size() + " rows are there");
  }

  private static void waitFor(String what, Callable<Boolean> condition) throws Exception {
    long end = System.currentTimeMillis() + SETTLE_MS;
    while (!condition.call()) {
      check(System.currentTimeMillis() < end, what);
      Thread.sleep(100);
    }
  }

  private static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError("failed: " + what);
  }

  private static void equal(Object got, Object expected, String what) {
    check(got.equals(expected), what + ": got " + got + ", expected " + expected);
  }
}
