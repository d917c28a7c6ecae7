import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;

/** Where the server says that tokens and rows are: the file `PERISTYLE_PLACES` of tests/cluster/README.md. */
final class Places {
  /** The nodes that have a row, in the order of the ring. */
  record Row(String keyspace, int key, List<String> replicas) {
    String name() {
      return "row " + key + " of " + keyspace;
    }

    ByteBuffer keyBytes() {
      return ByteBuffer.allocate(4).putInt(0, key);
    }
  }

  /** Address to tokens. */
  final Map<String, Set<String>> tokens = new TreeMap<>();
  final List<Row> rows = new ArrayList<>();

  static Places read() throws IOException {
    Places places = new Places();
    for (String line : Files.readAllLines(Path.of(System.getenv("PERISTYLE_PLACES")))) {
      List<String> words = List.of(line.split(" "));
      switch (words.get(0)) {
        case "token" -> places.tokens.computeIfAbsent(words.get(1), address -> new TreeSet<>()).add(words.get(2));
        case "row" -> places.rows.add(new Row(words.get(1), Integer.parseInt(words.get(2)), words.subList(3, words.size())));
        default -> throw new IllegalStateException("a line of places: " + line);
      }
    }
    return places;
  }
}
