// Asks Cassandra's own strategies for the replicas of tokens in rings made at random, and prints the answers that
// the test beside compares ours with:
//
//   javac -cp 'CASSANDRA/lib/*' -d OUT Placements.java
//   java -cp 'OUT:CASSANDRA/lib/*' Placements > placements.tsv
//
// A line is a ring, a strategy, and answers, separated by tabs. A ring is a list of nodes, each with its data centre,
// rack and the slots (of 4,096) that end with its tokens: dc1/r2:17,980. A strategy is a list of factors: dc1=3,dc2=2, or
// *=3 for SimpleStrategy. An answer is a slot, whose last token was asked for, and nodes by their number in the list:
// 17:0,3,1.

import java.net.InetAddress;
import java.util.*;
import java.util.stream.*;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.dht.*;
import org.apache.cassandra.locator.*;

public class Placements
{
    static final Random random = new Random(5);
    static final int SLOTS = 4096;
    static final java.io.PrintStream answers = System.out;

    public static void main(String[] args) throws Exception
    {
        System.setOut(System.err); // what Cassandra logs
        DatabaseDescriptor.clientInitialization();
        DatabaseDescriptor.setPartitionerUnsafe(Murmur3Partitioner.instance);
        for (int ring = 0; ring < 40; ring++)
            ring();
        System.exit(0);
    }

    static void ring() throws Exception
    {
        int nodes = 1 + random.nextInt(12);
        List<Integer> slots = IntStream.range(0, SLOTS).boxed().collect(Collectors.toList());
        Collections.shuffle(slots, random);
        Map<InetAddressAndPort, String[]> sites = new LinkedHashMap<>();
        Map<InetAddressAndPort, List<Integer>> owned = new LinkedHashMap<>();
        for (int node = 0; node < nodes; node++)
        {
            InetAddressAndPort address = InetAddressAndPort.getByAddress(new byte[]{ 10, 0, 0, (byte) node });
            sites.put(address, new String[]{ "dc" + (1 + random.nextInt(2)), "r" + (1 + random.nextInt(4)) });
            owned.put(address, slots.subList(node * 8, node * 8 + 1 + random.nextInt(6)));
        }
        IEndpointSnitch snitch = new AbstractNetworkTopologySnitch()
        {
            public String getDatacenter(InetAddressAndPort node) { return sites.get(node)[0]; }
            public String getRack(InetAddressAndPort node) { return sites.get(node)[1]; }
        };
        TokenMetadata metadata = new TokenMetadata(snitch);
        for (InetAddressAndPort node : owned.keySet())
            metadata.updateNormalTokens(owned.get(node).stream().map(Placements::token).collect(Collectors.toList()), node);
        String factor = Integer.toString(random.nextInt(6));
        ask(metadata, owned, sites, "*=" + factor,
            new SimpleStrategy("k", metadata, snitch, Map.of("replication_factor", factor)));
        for (int i = 0; i < 2; i++)
        {
            Map<String, String> factors = new TreeMap<>();
            for (String center : List.of("dc1", "dc2", "dc3"))
                if (random.nextInt(4) > 0)
                    factors.put(center, Integer.toString(random.nextInt(6)));
            String text = factors.entrySet().stream().map(Object::toString).collect(Collectors.joining(","));
            ask(metadata, owned, sites, text, new NetworkTopologyStrategy("k", metadata, snitch, factors));
        }
    }

    static Token token(int slot) { return new Murmur3Partitioner.LongToken(((slot + 1L) << 52) - 1 ^ Long.MIN_VALUE); }

    static void ask(TokenMetadata metadata, Map<InetAddressAndPort, List<Integer>> owned,
                    Map<InetAddressAndPort, String[]> sites, String strategyText, AbstractReplicationStrategy strategy)
    {
        List<InetAddressAndPort> nodes = new ArrayList<>(owned.keySet());
        String ring = nodes.stream().map(node -> String.join("/", sites.get(node)) + ":" + list(owned.get(node)))
                           .collect(Collectors.joining(" "));
        Set<Integer> asked = new TreeSet<>(List.of(0, SLOTS - 1));
        owned.values().forEach(asked::addAll);
        String told = asked.stream().map(slot -> {
            List<Integer> replicas = strategy.calculateNaturalReplicas(token(slot), metadata).endpointList().stream()
                                             .map(nodes::indexOf).collect(Collectors.toList());
            return slot + ":" + list(replicas);
        }).collect(Collectors.joining(" "));
        answers.println(ring + "\t" + strategyText + "\t" + told);
    }

    static String list(List<Integer> numbers)
    {
        return numbers.stream().map(Object::toString).collect(Collectors.joining(","));
    }
}
