import com.datastax.driver.core.*;
import com.datastax.driver.core.policies.ConstantReconnectionPolicy;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

/** A round with a node lost, by the Java driver 3.x. Its statements are token-aware unless told otherwise. */
public final class Loss3 implements Loss.Driver {
  static final String KEYSPACE = "loss_java3";

  final Session session;
  final Metadata metadata;
  final Map<String, PreparedStatement> prepared = new ConcurrentHashMap<>();

  Loss3(Session session) {
    this.session = session;
    metadata = session.getCluster().getMetadata();
  }

  static Cluster connect() {
    String[] address = System.getenv("PERISTYLE_ADDRESS").split(":");
    return Cluster.builder()
        .addContactPoint(address[0])
        .withPort(Integer.parseInt(address[1]))
        .withReconnectionPolicy(new ConstantReconnectionPolicy(500))
        .withQueryOptions(new QueryOptions().setConsistencyLevel(ConsistencyLevel.QUORUM).setDefaultIdempotence(true))
        .withoutJMXReporting()
        .build();
  }

  static String address(Host host) {
    return host.getEndPoint().resolve().getAddress().getHostAddress();
  }

  @Override
  public Map<String, Set<String>> tokensOfHostsUp() {
    Map<String, Set<String>> found = new TreeMap<>();
    for (Host host : metadata.getAllHosts()) {
      if (!host.isUp()) continue;
      Set<String> tokens = found.computeIfAbsent(address(host), any -> new TreeSet<>());
      host.getTokens().forEach(token -> tokens.add(token.toString()));
    }
    return found;
  }

  @Override
  public List<String> replicas(Places.Row row) {
    return metadata.getReplicas(row.keyspace(), row.keyBytes()).stream().map(Loss3::address).toList();
  }

  BoundStatement bound(String text, Object... values) {
    return prepared.computeIfAbsent(text, session::prepare).bind(values);
  }

  @Override
  public String insert(String keyspace, int id, String value) {
    String table = (keyspace == null ? KEYSPACE : keyspace) + ".rows";
    ResultSet done = session.execute(bound("INSERT INTO " + table + " (id, v) VALUES (?, ?)", id, value));
    return address(done.getExecutionInfo().getQueriedHost());
  }

  @Override
  public String select(int id, String level) {
    BoundStatement select = bound("SELECT v FROM " + KEYSPACE + ".rows WHERE id = ?", id);
    Row row = session.execute(select.setConsistencyLevel(ConsistencyLevel.valueOf(level))).one();
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
    try (Cluster cluster = connect()) {
      Loss.round(new Loss3(cluster.connect()));
    }
  }
}
