import com.datastax.oss.driver.api.core.CqlSession;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** What the applications share. */
final class Common {
  private Common() {}

  /** With the server at PERISTYLE_ADDRESS. */
  static CqlSession session() {
    String[] address = System.getenv().getOrDefault("PERISTYLE_ADDRESS", "127.0.0.1:9042").split(":");
    return CqlSession.builder()
        .addContactPoint(new InetSocketAddress(address[0], Integer.parseInt(address[1])))
        .withLocalDatacenter("datacenter1")
        .build();
  }

  /** Of each row as many replicas as PERISTYLE_REPLICAS says. */
  static String replication() {
    String replicas = System.getenv().getOrDefault("PERISTYLE_REPLICAS", "1");
    return "{'class': 'NetworkTopologyStrategy', 'datacenter1': " + replicas + "}";
  }

  /** Does the same in several threads at once; what each had to say. */
  static <T> List<T> together(int count, Callable<T> work) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(count);
    try {
      List<Future<T>> pending = new ArrayList<>();
      for (int i = 0; i < count; i++) pending.add(threads.submit(work));
      List<T> found = new ArrayList<>();
      for (Future<T> one : pending) found.add(one.get());
      return found;
    } finally {
      threads.shutdown();
    }
  }
}
