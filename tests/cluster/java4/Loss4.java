import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.*;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.NodeState;
import com.datastax.oss.driver.api.core.metadata.TokenMap;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

/** A round with a node lost, by the Java driver 4.x. */
public final class Loss4 implements Loss.Driver {
  static final String KEYSPACE = "loss_java4";

  final CqlSession session;
  final Map<String, PreparedStatement> prepared = new ConcurrentHashMap<>();

  Loss4(CqlSession session) {
    this.session = session;
  }

  static CqlSession connect() {
    String[] address = System.getenv("PERISTYLE_ADDRESS").split(":");
    DriverConfigLoader options = DriverConfigLoader.programmaticBuilder()
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(10))
        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "QUORUM")
        .withBoolean(DefaultDriverOption.REQUEST_DEFAULT_IDEMPOTENCE, true)
        .withString(DefaultDriverOption.RECONNECTION_POLICY_CLASS, "ConstantReconnectionPolicy")
        .withDuration(DefaultDriverOption.RECONNECTION_BASE_DELAY, Duration.ofMillis(500))
        .build();
    return CqlSession.builder()
        .addContactPoint(new InetSocketAddress(address[0], Integer.parseInt(address[1])))
        .withLocalDatacenter("datacenter1")
        .withConfigLoader(options)
        .build();
  }

  static String address(Node node) {
    return ((InetSocketAddress) node.getEndPoint().resolve()).getAddress().getHostAddress();
  }

  TokenMap tokenMap() {
    return session.getMetadata().getTokenMap().orElseThrow();
  }

  @Override
  public Map<String, Set<String>> tokensOfHostsUp() {
    Map<String, Set<String>> found = new TreeMap<>();
    for (Node node : session.getMetadata().getNodes().values()) {
      if (node.getState() != NodeState.UP) continue;
      Set<String> tokens = found.computeIfAbsent(address(node), any -> new TreeSet<>());
      tokenMap().getTokens(node).forEach(token -> tokens.add(tokenMap().format(token)));
    }
    return found;
  }

  @Override
  public List<String> replicas(Places.Row row) {
    return tokenMap().getReplicas(row.keyspace(), row.keyBytes()).stream().map(Loss4::address).toList();
  }

  BoundStatement bound(String text, Object... values) {
    return prepared.computeIfAbsent(text, session::prepare).bind(values);
  }

  @Override
  public String insert(String keyspace, int id, String value) {
    String table = (keyspace == null ? KEYSPACE : keyspace) + ".rows";
    ResultSet done = session.execute(bound("INSERT INTO " + table + " (id, v) VALUES (?, ?)", id, value));
    return address(done.getExecutionInfo().getCoordinator());
  }

  @Override
  public String select(int id, String level) {
    BoundStatement select = bound("SELECT v FROM " + KEYSPACE + ".rows WHERE id = ?", id);
    Row row = session.execute(select.setConsistencyLevel(DefaultConsistencyLevel.valueOf(level))).one();
    return row == null ? null : row.getString(0);
  }

  @Override
  public void createTable() {
    session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}");
    session.execute("CREATE TABLE " + KEYSPACE + ".rows (id int PRIMARY KEY, v text)");
  }

  @Override
  public long count() {
    return session.execute("SELECT count(*) FROM " + KEYSPACE + ".rows").one().getLong(0);
  }

  public static void main(String[] arguments) throws Exception {
    try (CqlSession session = connect()) {
      Loss.round(new Loss4(session));
    }
  }
}
